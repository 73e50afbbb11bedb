"""Several replies to one prompt, recorded elsewhere: which draw of which row each of them is."""

from __future__ import annotations

from tests.conftest import Lab, records
from tests.test_recorded import lines, take
from tests.test_recorded_items import letters, said

ONES = ("--axis", "separator=none")


def test_a_column_of_draws_needs_no_option(lab: Lab) -> None:
    """Rows may have unequal numbers of draws, which is said; a draw that a prompt lacks, or a
    number that is used for one prompt only, leaves no gap. Rows without a draw are named.
    """
    task = letters(lab, [7, 7, 7])
    rows = [
        {"id": f"q{place}", "draw": draw, "reply": reply}
        for place, replies in enumerate(({"0": "7", "1": "7", "3": "7"}, {"88": "8"}, {"2": "8"}))
        for draw, reply in replies.items()
    ]
    done = take(lab, said(lab, rows), task)
    assert "5 new replies, 0 known before, 0 rows" in done.err
    assert [record.get("draw", 1) for record in records(lab.the_run())] == [1, 2, 3, 1, 1]
    assert "Of 3 prompts, each asked 1 to 3 times, 1 got several replies" in done.out
    assert "pass@3 100 % (of the 1 prompt with 3 replies or more)" in done.out
    bare = take(lab, said(lab, [*rows, {"id": "q1", "reply": "7"}]), task, model="bare")
    assert ":6: the row has no draw, and other rows have one" in bare.err
    once = take(lab, said(lab, rows), task, "--field", "draw=", model="once")
    assert "3 new replies, 0 known before, 2 repeated" in once.err


def test_draws_under_another_name_are_named(lab: Lab) -> None:
    """The second row of a sample in a new file is not known before: it may be a draw, also when it
    has the same reply, and also in another file of the same import.
    """
    task = letters(lab, [3, 4])
    rows = [{"item": 0, "Attempt": n, "reply": "3"} for n in range(3)]
    path = said(lab, rows)
    for _ in range(2):
        done = take(lab, path, task)
        assert (
            f"{path}:2: its sample has its reply from another row, 2 rows in all; if these are "
            "draws of one prompt, import with --field draw=Attempt into another --out"
        ) in done.err
    assert "0 new replies, 1 known before, 2 repeated" in done.err
    files = [lines(lab.folder / f"{n}.jsonl", [row]) for n, row in enumerate(rows)]
    several = take(lab, files[0], task, *map(str, files[1:]), model="several")
    assert "1 new reply, 0 known before, 2 repeated" in several.err
    other = take(lab, said(lab, [rows[0], {**rows[1], "reply": "4"}]), task, model="other")
    assert "if both are draws of one prompt, number them with --field draw=Attempt" in other.err


def test_draws_of_rows_that_bring_their_samples(lab: Lab) -> None:
    """A reply joins the row with its target and length, also where another draw of it is lacking,
    and also when it comes with a later import.
    """
    rows = [
        {"reply": str(n), "target": n, "length": 5, "draw": draw}
        for draw, targets in ((1, (3, 5, 4, 5)), (2, (5, 4, 5)))
        for n in targets
    ]
    for some in (rows[:5], rows):
        done = take(lab, lines(lab.folder / "log.jsonl", some), lab.ones, *ONES)
        assert (done.code, "not scored" in done.out) == (0, False), "a draw less is not missing"
    found = [(one["index"], one.get("draw", 1), one["target"]) for one in records(lab.the_run())]
    assert found == [(0, 1, 3), (1, 1, 5), (2, 1, 4), (3, 1, 5), (1, 2, 5), (2, 2, 4), (3, 2, 5)]


def test_repeats_of_lm_eval_are_draws(lab: Lab) -> None:
    """A document with several replies gives a draw for each, and the same file again nothing; one
    with several requests is no sample with a reply.
    """
    task = letters(lab, [2, 4, 2])
    rows = [
        {"doc_id": place, "doc": {}, "resps": resps, "filtered_resps": [resps[0][0]]}
        for place, resps in enumerate(([["2", "3", "2"]], [["4"]], [["2"], ["3"]]))
    ]
    path = lines(lab.folder / "samples_letters.jsonl", rows)
    done = take(lab, path, task)
    assert "4 new replies, 0 known before, 1 row that" in done.err
    assert f"{path}:3: the row has 2 replies that are texts" in done.err
    assert [(one.get("draw", 1), one["reply"]) for one in records(lab.the_run())] == [
        *((1, "2"), (2, "3"), (3, "2"), (1, "4"))
    ]
    assert "0 new replies, 4 known before" in take(lab, path, task).err
