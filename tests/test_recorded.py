"""`bench import --model`: replies that somebody else collected, as a run like any other."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.plan.plan import plan
from eyechart.harness.satellites.recorded.fields import RowError, prompt_text, whole
from eyechart.harness.task.catalogue import built_in_files, open_task
from tests.conftest import Done, Lab, records

ITEMS = """\
version: 1
title: Words
items: words.jsonl
axes:
  hint: {default: [no], values: {no: "", yes: "Take care."}}
prompt: "Count {{ word }}. {{ hint }} End with {{ phrase }}"
answer: integer
"""


def words(lab: Lab) -> Path:
    """A task of four ready items, two of which have the same length."""
    items = [
        {"variables": {"word": f"w{n}"}, "target": n, "length": n, "metadata": {"id": f"x{place}"}}
        for place, n in enumerate((3, 4, 3, 5))
    ]
    folder = lab.folder / "lab"
    (folder / "words.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (folder / "words.yaml").write_text(ITEMS)
    return folder / "words.yaml"


def lines(path: Path, rows: Sequence[Mapping[str, Any] | str]) -> Path:
    """A file of JSON Lines; a text is written as it is."""
    texts = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def take(lab: Lab, file: Path, task: Path, *arguments: str, model: str = "them") -> Done:
    """`bench import` of recorded replies."""
    command = ("import", file, "--task", task, "--model", model, "--out", lab.out)
    return lab.bench(*command, *arguments)


def outcomes(lab: Lab) -> dict[str, int]:
    """Outcome -> its number in the only run; without those that are not there."""
    cells = read_run(lab.the_run()).cells
    names = ("correct", "incorrect", "unparsed", "refused", "truncated", "error", "not_run")
    return {name: int(cells[name].sum()) for name in names if cells[name].sum()}


@pytest.mark.parametrize(
    "form", ["csv", "jsonl.gz", "lm-eval", "batch", "messages", "id", "prompt"]
)
def test_replies_find_their_items(lab: Lab, form: str) -> None:
    """By number, by id in the metadata, by sample id, or by prompt; in the form of each tool."""
    task, said = words(lab), ["3", "9", "Final answer: 3", "5"]
    path, options = lab.folder / "them.jsonl", ["--axis", "hint=yes"]
    rows: list[dict[str, Any]]
    if form == "csv":
        path = path.with_suffix(".csv")
        cells = [f'{place},"{reply}",Take care.\n' for place, reply in enumerate(said)]
        path.write_text("number,said,how\n" + "".join(cells))
        options = ["--field", "reply=said,item=number,hint=how"]
    elif form == "jsonl.gz":
        path = path.with_suffix(".jsonl.gz")
        rows = [{"out": {"texts": [reply]}, "q": f"x{n}"} for n, reply in enumerate(said)]
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
        options += ["--field", "reply=out.texts.0", "--field", "item=q"]
    elif form == "lm-eval":
        rows = [{"doc_id": n, "doc": {}, "resps": [[reply]]} for n, reply in enumerate(said)]
        lines(path, rows)
    elif form == "batch":
        lines(path, [batch_line(f"x{n}", reply) for n, reply in enumerate(said)])
    elif form == "messages":
        lines(path, [message_line(f"x{n}", reply) for n, reply in enumerate(said)])
    elif form == "id":
        places = ((3, 0), (4, 0), (3, 1), (5, 0))
        name = "lab/words@1|hint=yes|length={}|seed=0|index={}"
        ids = [name.format(*place) for place in places]
        lines(path, [{"id": one, "reply": r} for one, r in zip(ids, said, strict=True)])
    else:
        prompts = [f"Count w{n}. Take care. End with Final answer:" for n in (3, 4, 5)]
        rows = [{"prompt": p, "reply": r} for p, r in zip(prompts, ["3", "9", "5"], strict=True)]
        lines(path, rows)
    assert take(lab, path, task, *options).code == (form == "prompt")
    twin = {"correct": 2, "incorrect": 1, "not_run": 1}  # its prompt is that of another item
    assert outcomes(lab) == (twin if form == "prompt" else {"correct": 3, "incorrect": 1})
    run = read_run(lab.the_run())
    assert {condition.label for condition in run.conditions} == {"hint=yes"}
    assert (run.fingerprint() is None) == (form == "prompt")
    shown = lab.bench("samples", lab.the_run(), "--task", task, "--json", "--limit", "1")
    assert json.loads(shown.out)["prompt"] == "Count w3. Take care. End with Final answer:"


def batch_line(custom_id: str, reply: str) -> dict[str, Any]:
    """A line of replies of OpenAI's Batch API to somebody else's request."""
    choice = {"message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    body = {"model": "gpt-x", "choices": [choice], "usage": usage}
    response = {"status_code": 200, "body": body}
    return {"id": "b", "custom_id": custom_id, "response": response, "error": None}


def message_line(custom_id: str, reply: str) -> dict[str, Any]:
    """A line of results of Anthropic's Message Batches."""
    message = {"content": [{"type": "text", "text": reply}], "stop_reason": "end_turn"}
    return {"custom_id": custom_id, "result": {"type": "succeeded", "message": message}}


def test_requests_beside_a_batch_give_the_prompts(lab: Lab) -> None:
    """Then a reply is found by what was asked, and its usage is kept."""
    task, body = words(lab), {"messages": [{"role": "user", "content": "Count w4.  End with "}]}
    body["messages"][0]["content"] = "Count w4.  End with Final answer:"
    asked = lines(lab.folder / "asked.jsonl", [{"custom_id": "mine", "body": body}])
    replies = lines(lab.folder / "said.jsonl", [batch_line("mine", "Final answer: 4")])
    command = ("import", asked, replies, "--task", task, "--model", "them", "--out", lab.out)
    assert "3 of 4 samples are not scored: not run 3." in lab.bench(*command).out
    board = lab.bench("leaderboard", "--out", lab.out).err
    assert "hint=no: 3 samples have no recorded reply\n" in board  # nothing can ask them
    (record,) = records(lab.the_run())
    assert record["id"] == "lab/words@1|hint=no|length=4|seed=0|index=0"
    usage = (record["prompt_tokens"], record["output_tokens"], record["model"])
    assert usage == (9, 4, "gpt-x")


GIVEN: list[dict[str, Any] | str] = [
    {"said": "3", "n": 3, "sep": ", ", "line": 3},
    "no JSON",
    {"said": "4", "n": 3, "sep": ",", "line": 3, "tokens": 7, "cut": False},
    {"said": "", "n": 5, "sep": ",", "line": 3},
    {"n": 5, "sep": ",", "line": 5, "broke": "503"},
    {"said": "Let me see", "n": 5, "sep": ",", "line": 5, "cut": True},
    {"said": "3", "n": 3, "sep": ",", "line": 3},
    {"said": "3", "n": 3, "sep": ",", "line": 3},
    {"said": "3", "n": "three", "sep": ",", "line": 3},
]
OF_GIVEN = ("--field", "reply=said,target=n,length=n,separator=sep")


def test_a_row_may_bring_its_sample(lab: Lab) -> None:
    """What it lacks stays empty; bad lines are named and do not stop the rest; equal rows of one
    file are different replies, and the same file again changes nothing.
    """
    empty = {"said": None, "cut": "", "broke": ""}
    rows = [row if isinstance(row, str) else {**empty, **row} for row in GIVEN]
    path = lines(lab.folder / "them.jsonl", rows)
    fields = (*OF_GIVEN, "--field", "cut_off=cut,error=broke")
    done = take(lab, path, lab.ones, *fields, "--recorded-by", "Ann", "--recorded-at", "2026-04")
    assert done.code == 1
    said = done.err.splitlines()
    assert [line.partition(": ")[2] for line in said[:4]] == [
        f"{path}:1: axis 'separator' has no value ', '; it has none, space, comma",
        f"{path}:2: no JSON: invalid literal, expected 'null'",
        f"{path}:4: length 5 is not on the line 3 of the task",
        f"{path}:9: length is 'three', no whole number from 0 on",
    ]
    assert said[4] == "5 new replies, 0 known before, 4 rows that cannot be used"
    assert outcomes(lab) == {"correct": 2, "incorrect": 1, "truncated": 1, "error": 1}
    assert "The replies were recorded by Ann in 2026-04, and not asked here." in done.out
    written = records(lab.the_run())
    facts = ("line", "length", "index", "target")
    assert [tuple(one[name] for name in facts) for one in written] == [
        *((3, 3, 0, 3), (5, 5, 0, 5), (5, 5, 1, 5), (3, 3, 1, 3), (3, 3, 2, 3))
    ]
    first = written[0]
    assert (first["finish_reason"], first["prompt_tokens"], first["latency_s"]) == (None,) * 3
    assert not first.keys() & {"at", "chars", "attempts", "prompt"}
    before = {file: file.read_bytes() for file in lab.the_run().rglob("*") if file.is_file()}
    again = take(lab, path, lab.ones, *fields)
    assert "0 new replies, 5 known before" in again.err
    assert {
        file: file.read_bytes() for file in lab.the_run().rglob("*") if file.is_file()
    } == before
    lines(path, [*rows, {"said": "5", "n": 5, "sep": ",", "line": 5, "cut": "", "broke": ""}])
    assert "1 new reply, 5 known before" in take(lab, path, lab.ones, *fields).err
    recorded = read_manifest(lab.the_run()).recorded
    assert recorded is not None
    assert [file.name for file in recorded.files] == ["them.jsonl"] * 2


def test_recorded_replies_are_compared_shown_and_exported(lab: Lab) -> None:
    """As those of any other run; two recorded runs are paired where both were asked the same."""
    rows = [{"said": str(n), "n": n, "sep": ","} for n in (3, 3, 5, 5)]
    path = lines(lab.folder / "them.jsonl", rows)
    other = [{"said": "3", "n": n, "sep": ","} for n in (3, 3, 5, 5)]
    theirs = lines(lab.folder / "others.jsonl", other)
    for file, model in ((path, "vendor/one"), (theirs, "vendor/two")):
        assert take(lab, file, lab.ones, *OF_GIVEN, model=model).code == 0
    first, second = find_runs(lab.out)
    compared = lab.bench("compare", first, second)
    assert compared.code == 0
    assert "vendor/one" in compared.out
    assert "4 of 4 recorded" in lab.bench("runs", "--out", lab.out).out
    page = lab.folder / "page.html"
    assert lab.bench("report", first, second, "-o", page).code == 0
    assert "them.jsonl" in page.read_text()
    about = ("--model-id", "vendor/one", "--organization", "us", "--relationship", "third_party")
    kept = lab.folder / "store"
    export = ("export", "every-eval-ever", first, "-o", kept, "--task", lab.ones)
    lab.bench(*export, *about).one_line(2, "not known, since it was not recorded", "--no-samples")
    assert lab.bench(*export, *about, "--no-samples").code == 0
    (exported,) = (json.loads(file.read_text()) for file in kept.rglob("*.json"))
    details = exported["evaluation_results"][0]["generation_config"]
    assert "evaluation_timestamp" not in exported
    assert details["additional_details"] == {"recorded": "recorded (them.jsonl)"}
    board = lab.out / "leaderboard.csv"
    assert lab.bench("leaderboard", "--out", lab.out).code == 0
    assert "recorded (them.jsonl)" in board.read_text()
    assert "auto" not in board.read_text()


def test_rows_that_are_hard_to_read(lab: Lab) -> None:
    """Half a character becomes U+FFFD; what is no number or no list is named, and nothing else."""
    hard: list[dict[str, Any] | str] = [
        '{"reply": "3 \\ud83d", "target": 3, "length": 3, "prompt": "how \\ud83d"}',
        '{"reply": "3", "target": NaN, "length": 3}',
        '{"reply": "3", "target": 3, "length": ' + 5000 * "9" + "}",
        '{"reply": ["3"], "target": "3", "length": "3"}',
        "[" * 3000,
        "[1, 2]",
        '{"reply": true, "target": 3e0, "length": 3.0}',
    ]
    done = take(lab, lines(lab.folder / "them.jsonl", hard), lab.plain)
    assert done.code == 1
    assert "Traceback" not in done.err
    assert [line.split(":")[2] for line in done.err.splitlines() if ".jsonl:" in line] == [
        *("2", "3", "4", "5", "6")
    ]
    assert "reply is a list, no text; name its text as --field reply=reply.0" in done.err
    written = records(lab.the_run())
    assert [one["reply"] for one in written] == ["3 \ufffd", "True"]
    assert (written[0]["prompt"], written[1]["target"]) == ("how \ufffd", 3)


def test_an_index_with_gaps(lab: Lab) -> None:
    """Is said with what helps; rows can be numbered as they come instead."""
    rows = [{"reply": "3", "target": 3, "length": 3, "index": n} for n in (1, 4)]
    path = lines(lab.folder / "them.jsonl", rows)
    done = take(lab, path, lab.plain)
    assert done.code == 1
    assert "3 numbers below the largest index of a line have no row" in done.err
    assert outcomes(lab) == {"correct": 2, "not_run": 3}
    other = take(lab, path, lab.plain, "--field", "index=", model="other")
    assert (other.code, "index" in other.err) == (0, False)


def test_asked_and_recorded_never_mix(lab: Lab) -> None:
    """Neither in a run that was asked, nor in one that was recorded."""
    path = lines(lab.folder / "them.jsonl", [{"said": "3", "n": 3, "sep": ","}])
    lab.bench_ask("--model", "oracle:5")
    folder = lab.the_run()
    before = (folder / "samples.jsonl").read_bytes()
    take(lab, path, lab.ones, *OF_GIVEN, model="oracle/5").one_line(1, str(folder), "recorded")
    assert (folder / "samples.jsonl").read_bytes() == before
    take(lab, path, lab.ones, *OF_GIVEN, model="oracle/9")
    asked = lab.bench_run("--model", "oracle:9")
    assert "recorded replies, which asked ones never join" in asked.err
    assert asked.code == 1


def test_one_run_is_of_one_model(lab: Lab) -> None:
    """Of several the one that it is named after, or that --where chooses; others never mix in."""
    rows = [{"reply": "3", "target": 3, "length": 3, "model": name} for name in ("a", "b", "a")]
    path = lines(lab.folder / "them.jsonl", rows)
    done = take(lab, path, lab.plain)
    done.one_line(2, "the rows name 2 models ('a', 'b')", "--where model=NAME")
    chosen = take(lab, path, lab.plain, "--where", "model=b", model="other")
    assert chosen.code == 0
    assert "1 new reply, 0 known before, 2 of other rows, 0 rows that" in chosen.err
    assert "the rows name the model 'b'; their run is that of 'other'" in chosen.err
    named = take(lab, path, lab.plain, model="vendor/A@high")
    assert "the rows name 2 models; only those of 'a' are taken" in named.err
    assert "2 new replies, 0 known before, 1 of other rows, 0 rows that" in named.err


def test_rows_of_another_model_never_take_a_number(lab: Lab) -> None:
    """Though they come first and have the same numbers."""
    rows = [
        {"reply": reply, "target": n, "length": n, "index": 0, "model": name}
        for name, off in (("first", 0), ("second", 1))
        for n, reply in ((3, str(3 + off)), (4, str(4 + off)))
    ]
    done = take(lab, lines(lab.folder / "them.jsonl", rows), lab.plain, model="second")
    assert "2 new replies, 0 known before, 2 of other rows, 0 rows that" in done.err
    assert [one["reply"] for one in records(lab.the_run())] == ["4", "5"]


def test_the_same_reply_to_a_sample_is_taken_once(lab: Lab) -> None:
    """As where lm-eval writes a line for each of its filters; another reply is refused."""
    rows = [
        {"reply": reply, "target": 5, "length": 5, "index": 0}
        for reply in ("5", "5", "5 ", "Five is 5")
    ]
    done = take(lab, lines(lab.folder / "them.jsonl", rows), lab.plain)
    assert "1 new reply, 0 known before, 1 repeated, 2 rows that cannot be used" in done.err


@pytest.mark.parametrize("none", ["", "None", "nan", "0", "False", "null", None, False, 0, {}, []])
def test_an_error_that_is_none(lab: Lab, none: object) -> None:
    """Tables say it in many ways; the reply counts."""
    row = {"reply": "5", "target": 5, "length": 5, "error": none}
    assert take(lab, lines(lab.folder / "them.jsonl", [row]), lab.plain).code == 0
    assert outcomes(lab) == {"correct": 1}


def test_an_error_beside_a_reply_is_named(lab: Lab) -> None:
    """The row counts as failed, as a request that breaks off has part of a reply."""
    row = {"reply": "5", "target": 5, "length": 5, "error": "timeout"}
    rows = [{**row, "index": number} for number in (0, 1)] + [{**row, "reply": "", "index": 2}]
    path = lines(lab.folder / "them.jsonl", rows)
    done = take(lab, path, lab.plain)
    assert (
        f"{path}:1: a reply with an error, or broken off by its server, 2 rows in all" in done.err
    )
    assert outcomes(lab) == {"error": 3}


def test_why_a_reply_ended_is_read_in_any_words(lab: Lab) -> None:
    """A reply that the server broke off is no reply, and others have the outcome of live ones."""
    words = ("STOP", "MAX_TOKENS", "FinishReason.SAFETY", "network_error", {"type": "length"})
    row = {"reply": "the row has 5, so", "target": 5, "length": 5}
    rows = [{**row, "index": i, "finish_reason": word} for i, word in enumerate(words)]
    path = lines(lab.folder / "them.jsonl", rows)
    done = take(lab, path, lab.plain)
    assert f"{path}:4: a reply with an error, or broken off by its server, 1 row in" in done.err
    assert "without a recorded reply" not in done.err
    assert "1 of 5 samples is not scored: error 1." in done.out
    assert outcomes(lab) == {"correct": 1, "truncated": 2, "refused": 1, "error": 1}


@pytest.mark.parametrize(
    "said",
    [{"stop_reason": "max_tokens"}, {"done_reason": "length"}, {"finish": "length"}],
)
def test_why_a_reply_ended_is_read_by_other_names(lab: Lab, said: dict[str, str]) -> None:
    """Those of vendors and servers, unless the column has no word for it, or none is wanted."""
    row = {"reply": "the row has 5, so", "target": 5, "length": 5}
    path = lines(lab.folder / "them.jsonl", [{**row, **said}])
    assert take(lab, path, lab.plain).code == 0
    assert outcomes(lab) == {"truncated": 1}
    (name,) = said
    others = [{**row, name: "2026-04-01"}, {**row, name: 4.5}]
    take(lab, lines(lab.folder / "others.jsonl", others), lab.plain, model="other")
    take(lab, path, lab.plain, "--field", "finish_reason=", model="unread")
    later = [one for run in find_runs(lab.out) if "them" not in run.parts for one in records(run)]
    assert [one.get("finish_reason") for one in later] == [None] * 3


def test_a_figure_that_cannot_be_true_costs_only_itself(lab: Lab) -> None:
    """The reply is worth more."""
    rows = [
        {"reply": "5", "target": 5, "length": 5, "prompt_tokens": bad, "output_tokens": 7}
        for bad in ("-3", "abc", "NaN")
    ]
    assert take(lab, lines(lab.folder / "them.jsonl", rows), lab.plain).code == 0
    written = records(lab.the_run())
    assert [(one.get("prompt_tokens"), one["output_tokens"]) for one in written] == [(None, 7)] * 3


def test_rows_with_and_without_a_number(lab: Lab) -> None:
    """Those with one keep it; the others are named."""
    rows = [{"reply": "5", "target": 5, "length": 5, "index": n} for n in (None, 1, 0)]
    path = lines(lab.folder / "them.jsonl", rows)
    done = take(lab, path, lab.plain)
    assert f"{path}:1: the row has no index, and other rows have one" in done.err
    assert "2 new replies" in done.err


def test_a_table_that_is_broken(lab: Lab) -> None:
    """A quote that stays open is named by its line, a column that is there twice by its name."""
    path = lab.folder / "them.csv"
    path.write_text('target,length,reply\n4,4,4\n5,5,"5\n9,9,9\n')
    done = take(lab, path, lab.plain)
    assert f"{path}:3: no CSV: unexpected end of data; a quote that is opened on line 3" in done.err
    assert "1 new reply" in done.err
    path.write_text("target,length,reply,reply\n4,4,4,5\n")
    take(lab, path, lab.plain).one_line(1, "its header names 'reply' twice")


@pytest.mark.parametrize(
    ("where", "taken"),
    [
        (("phase!=try",), [4, 5]),
        (("phase=try",), [3]),
        (("phase!=try", "meta.cut=false"), [5]),
        (("phase=a,b",), [5]),
        (("phase!=",), [3, 4, 5]),
    ],
)
def test_where_chooses_rows(lab: Lab, where: Sequence[str], taken: Sequence[int]) -> None:
    """All of several conditions hold; a value is taken whole, with its commas."""
    rows = [
        {"reply": "x", "target": n, "length": n, "phase": phase, "meta": {"cut": n < 5}}
        for n, phase in ((3, "try"), (4, "a"), (5, "a,b"))
    ]
    path = lines(lab.folder / "them.jsonl", rows)
    options = [part for text in where for part in ("--where", text)]
    assert take(lab, path, lab.plain, *options).code == 0
    assert [one["length"] for one in records(lab.the_run())] == taken


@pytest.mark.parametrize(
    ("arguments", "words_of"),
    [
        (["--field", "rply=x"], ["'rply'", "'reply'"]),
        (["--field", "reply"], ["FIELD=COLUMN"]),
        (["--axis", "hint=yes"], ["no axis 'hint'"]),
        (["--axis", "separator=dot"], ["no value 'dot'"]),
        (["--where", "x"], ["COLUMN!=VALUE"]),
        (["--where", "!=x"], ["COLUMN!=VALUE"]),
        (["--recorded-at", "May"], ["2026-04"]),
    ],
)
def test_wrong_options_are_one_line(lab: Lab, arguments: list[str], words_of: list[str]) -> None:
    """Before anything is written."""
    path = lines(lab.folder / "them.jsonl", [{"reply": "3"}])
    take(lab, path, lab.ones, *arguments).one_line(2, *words_of)
    assert not lab.out.exists()


def test_a_task_in_the_place_of_the_replies_is_one_line(lab: Lab) -> None:
    """Which says what goes where."""
    path = lines(lab.folder / "them.jsonl", [{"reply": "3"}])
    take(lab, lab.ones, path).one_line(2, "holds no replies", f"REPLIES --task {lab.ones}")


def test_a_file_without_a_usable_row_makes_no_run(lab: Lab) -> None:
    """Each row says what it lacks; options of recorded replies need a model."""
    path = lines(lab.folder / "them.jsonl", [{"text": "3"}, {"reply": "3"}, {"reply": "3", "n": 3}])
    done = take(lab, path, lab.plain)
    assert done.code == 1
    assert (
        f"{path}:1: the row has no column 'reply'; did you mean --field reply=text? the" in done.err
    )
    assert "it needs its target and length" in done.err
    assert not find_runs(lab.out)
    wrong = take(lab, path, lab.plain, "--where", "reply!=5", "--field", "target=repli,length=n")
    assert wrong.err.splitlines() == [
        f"bench: {path}:1: no column 'reply'; the columns are text",
        f"bench: {path}:2: no column 'repli'; did you mean 'reply'? the columns are reply",
        f"bench: {path}:3: no column 'repli'; did you mean 'reply'? the columns are reply, n",
        "0 new replies, 0 known before, 3 rows that cannot be used",
        "bench: no reply was taken",
    ]
    path = path.with_suffix(".csv")
    path.write_text("item,Draw,Reply\nq1,0,5\n")
    assert "did you mean --field reply=Reply?" in take(lab, path, lab.plain).err
    lab.bench("import", path, "--field", "reply=text", "--out", lab.out).one_line(2, "--model")


@pytest.mark.parametrize(("given", "number"), [("7", 7), (7.0, 7), (0, 0), (" 7.0", 7)])
def test_whole_numbers(given: object, number: int) -> None:
    """Also where a file writes them as texts or with a point."""
    assert whole(given) == number


@pytest.mark.parametrize("given", [True, -1, 1.5, "x", None, "1_0", "1,000", "٣", "-1"])
def test_what_is_no_whole_number(given: object) -> None:
    """And is refused."""
    with pytest.raises((ValueError, RowError)):
        whole(given)


def test_the_prompt_of_a_chat() -> None:
    """Is what the user said last, also where the messages are written as a text."""
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert prompt_text(messages) == prompt_text(json.dumps(messages)) == "u"
    assert prompt_text("[{no list") == "[{no list"
    parts = [{"type": "input_text", "text": "u"}, {"type": "input_text", "text": "v"}]
    assert prompt_text([{"role": "user", "content": parts}]) == "uv"


def test_a_log_of_inspect_needs_its_package(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    log = lines(lab.folder / "log.eval", ["any"])
    take(lab, log, words(lab), "--axis", "hint=yes").one_line(2, "pip install -e '.[inspect]'")


@pytest.mark.parametrize("exact", [True, False])
def test_own_samples_have_the_lines_that_they_were_made_for(lab: Lab, exact: bool) -> None:
    """Exact lengths stay exact, though some of them lie in a band of the task by chance."""
    task = open_task("counting/words", built_in_files()["counting/words"], trial=False)
    asked = plan(task, lengths=task.lengths, samples=3, exact=exact)
    rows = [{"id": sample.id, "reply": f"Final answer: {sample.target}"} for sample in asked]
    command = ("import", lines(lab.folder / "own.jsonl", rows), "--task", "counting/words")
    done = lab.bench(*command, "--model", "them", "--out", lab.out)
    assert done.code == 0, done.err
    (folder,) = (lab.out / "runs" / "them" / "counting").iterdir()
    found = read_run(folder)
    assert {cell.line for cell in found.manifest.cells} == set(asked.lines)
    assert found.cells["correct"].tolist() == [3] * len(asked.lines)
