"""`bench compare --ask` of three runs or more: those whose order is open are asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import eyechart
from eyechart.harness.analysis.adaptive.next_pairs import more_pairs, planned
from eyechart.harness.analysis.adaptive.next_ranked import (
    BEST,
    RANKS,
    lines_of_all,
    more_of_open,
    open_pairs,
    why_none_is_open,
)
from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.family import rank_runs
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import CompareError, UsageError
from eyechart.harness.settings.judging import MARGIN
from eyechart.providers.base import Request
from tests.conftest import Lab, right
from tests.test_analysis_family import right_to
from tests.test_face_asked_pair import Pair, lengths_of

LINES = ("--lengths", "2,4,8,16,32,64", "--samples", "5")
SEES = {"far": 32, "mid": 16, "near": 2}


@pytest.fixture
def runs(lab: Lab) -> Pair:
    """Three models: the near one is surely the last, and the order of the others is open."""
    found = Pair(lab)
    for name, length in SEES.items():
        found.run(name, right_to(length), *LINES)
    return found


def count(runs: Pair) -> dict[str, int]:
    """What each model was asked since its run."""
    return {name: len(asked) for name, asked in runs.asked.items()}


def test_the_run_that_is_surely_last_is_not_asked(runs: Pair) -> None:
    """The others are, with as many samples each, around their crossings, until all is known."""
    before = json.loads(runs.lab.bench("compare", *runs.folders, "--json").out)["runs"]
    assert [(one["rank_best"], one["rank_last"]) for one in before] == [(1, 2), (1, 2), (3, 3)]
    done = runs.ask("--json")
    assert done.code == 0, done.err
    said = " ".join(done.err.split())
    assert "asking at most 45 samples: the runs whose order is open are asked, in 4 waves" in said
    assert said.endswith(
        "no two neighbours in the ranking are open decided: far/x counts exactly "
        "further than mid/x, mid/x "
        "counts exactly further than near/x"
    )
    after = json.loads(done.out)["runs"]
    assert [(one["rank_best"], one["rank_last"]) for one in after] == [(1, 1), (2, 2), (3, 3)]
    asked = count(runs)
    assert asked["near"] == 0
    assert asked["far"] == asked["mid"] > 0
    assert lengths_of(runs.asked["far"]) <= {32, 64}
    assert lengths_of(runs.asked["mid"]) <= {16, 32}
    shown = runs.lab.bench("compare", *runs.folders).out.split("each pair")[0]
    rows = [line.split("|") for line in shown.splitlines() if "/x" in line]
    assert [row[3].strip() for row in rows] == ["1", "2", "3"]


def test_which_is_best_needs_no_order_of_the_others(lab: Lab) -> None:
    """Two models behind the best one are open, and are not asked once it is known."""
    runs = Pair(lab)
    for name, length in {"far": 64, "one": 4, "two": 4}.items():
        runs.run(name, right_to(length), *LINES[:3], "8")
    ranking = rank_runs([read_run(folder) for folder in runs.folders])
    assert open_pairs(ranking, RANKS, MARGIN) == [(1, 2)]
    assert open_pairs(ranking, BEST, MARGIN) == []
    done = runs.ask("--settle", "best")
    said = " ".join(done.err.split())
    assert (
        "it is decided which run is right furthest decided: far/x counts exactly further than"
        in said
    )
    assert sum(count(runs).values()) == 0


@pytest.mark.parametrize(
    ("settle", "words"),
    [
        (
            BEST,
            (
                "two/x and three/x are equivalent to one/x (areas equal within 5 points, a factor "
                "of 1.11 in length over these lines), so which of them is right furthest stays open"
            ),
        ),
        (RANKS, "the neighbours whose order is open are equivalent (areas equal within 5 points, "),
    ],
)
def test_equivalent_runs_are_asked_no_more_and_have_no_order(
    lab: Lab, settle: str, words: str
) -> None:
    """Their ranks are 1 to 3 each, so nothing says that it is decided which is right furthest."""
    runs = Pair(lab)
    for name in ("one", "two", "three"):
        runs.run(name, right_to(8), "--lengths", "2,4,8,16", "--samples", "20")
    done = runs.ask("--settle", settle, "--json")
    assert [(one["rank_best"], one["rank_last"]) for one in json.loads(done.out)["runs"]] == [
        (1, 3)
    ] * 3
    said = " ".join(done.err.split())
    assert f"no further samples are asked: {words}" in said
    assert "equivalent: one/x and two/x" in said
    assert "decided" not in said.partition(words)[2]
    assert sum(count(runs).values()) == 0


def test_what_more_samples_do_not_show_is_not_called_decided(lab: Lab) -> None:
    """Two of the runs see beyond the longest line, or a run is wrong everywhere."""
    runs = Pair(lab)
    for name, length in {"a": 99, "b": 99, "c": 2}.items():
        runs.run(name, right_to(length), *LINES[:2], "--samples", "20")
    ranking = rank_runs([read_run(folder) for folder in runs.folders])
    assert open_pairs(ranking, RANKS, MARGIN) == open_pairs(ranking, BEST, MARGIN) == []
    assert why_none_is_open(ranking, BEST, MARGIN) == (
        "more samples would not show which run is right furthest"
    )
    assert why_none_is_open(ranking, RANKS, MARGIN) == (
        "more samples would not show the order that is open"
    )


def test_a_limit_is_that_of_all_runs(runs: Pair) -> None:
    """And the same command goes on, with the samples that it has."""
    done = runs.ask("--max-requests", "7")
    assert sum(count(runs).values()) <= 7
    said = " ".join(done.err.split())
    assert "asking at most 7 samples" in said
    assert said.endswith("decided: mid/x counts exactly further than near/x; open: far/x and mid/x")
    assert all(read_run(folder).missing == 0 for folder in runs.folders)


def test_lines_that_only_others_have_come_first(runs: Pair) -> None:
    """With as many samples as the run that has fewest there."""
    runs.run("short", right_to(32), "--lengths", "2,4,8", "--samples", "9")
    short = runs.folders[-1]
    ranking = rank_runs([read_run(folder) for folder in runs.folders])
    wanted = lines_of_all(ranking, RANKS, MARGIN)[short]
    assert [wanted[key] for key in wanted] == [9, 9, 9, 5, 5, 5]
    said = " ".join(runs.ask("--max-requests", "15").err.split())
    assert "only samples on lines that only other runs have (15)" in said
    assert count(runs) == {"far": 0, "mid": 0, "near": 0, "short": 15}
    assert lengths_of(runs.asked["short"]) == {16, 32, 64}
    assert {line.length for _, line in planned(read_run(short))} == {2, 4, 8, 16, 32, 64}


def test_runs_without_a_sample_in_common_are_asked_the_same_lines(lab: Lab) -> None:
    """As two runs are; a limit that is too small leaves the same remedy."""
    runs = Pair(lab)
    for name, lines in {"far": "2,8,32", "mid": "2,8,32", "near": "4,16,64"}.items():
        runs.run(name, right_to(SEES[name]), "--lengths", lines, "--samples", "4")
    refused = lab.bench("compare", *runs.folders)
    remedy = "; ask both the same --lengths, or compare them with --ask"
    refused.one_line(2, f"mid/x and near/x have no scored sample in common{remedy}")
    with pytest.raises(CompareError, match=r"ask both the same lengths, .* with ask=True"):
        eyechart.compare(runs.folders, tasks=lab.ones)
    few = runs.ask("--max-requests", "1")
    assert few.code == 2
    assert "only samples on lines that only other runs have (36), in 4 waves" in few.err
    assert few.err.splitlines()[-1].endswith(f"no scored sample in common{remedy}")
    done = runs.ask("--max-requests", "200", "--json")
    assert done.code == 0
    assert "first 29 on lines that only other runs have; then" in done.err
    assert [one["name"] for one in json.loads(done.out)["runs"]] == ["far/x", "mid/x", "near/x"]
    assert {line.length for _, line in planned(read_run(runs.folders[0]))} >= {4, 16, 64}


def test_a_run_whose_order_is_found_does_not_get_the_lines_of_others(lab: Lab) -> None:
    """They would not change it."""
    runs = Pair(lab)
    for name in ("far", "mid"):
        runs.run(name, right_to(32), *LINES[:3], "8")
    runs.run("near", right_to(2), "--lengths", "2,4,8", "--samples", "16")
    said = " ".join(runs.ask().err.split())
    assert "first" not in said
    assert "mid/x counts exactly further than near/x" in said
    assert count(runs)["near"] == 0 < count(runs)["far"]


def test_runs_that_see_beyond_all_lines_are_not_asked(lab: Lab) -> None:
    """No reply could tell them apart; nor could one where something else limits a length."""
    runs = Pair(lab)

    def refuses(request: Request) -> Any:
        is_long = min(lengths_of([request.sample_id])) > 8
        return "I'm sorry, but I can't help with that." if is_long else right(request)

    scripts: dict[str, Callable[[Request], Any]] = {
        "a": right_to(99),
        "b": right_to(99),
        "c": refuses,
    }
    for name, script in scripts.items():
        runs.run(name, script, "--lengths", "2,4,8,16,32,64", "--samples", "20")
    ranking = rank_runs([read_run(folder) for folder in runs.folders])
    assert [one.is_ranked for one in ranking.runs] == [True, True, False]
    assert ranking.comparisons[0, 1].change(1e-9) == "undecided"
    assert open_pairs(ranking, RANKS, 1e-9) == []


def test_each_draw_is_a_request(lab: Lab) -> None:
    """So a wave asks fewer rows, and the limit holds."""
    runs = Pair(lab)
    for name, length in SEES.items():
        runs.run(name, right_to(length), *LINES, "--draws", "2", "--temperature", "1")
    ranking = rank_runs([read_run(folder) for folder in runs.folders])
    wanted = more_of_open(ranking, open_pairs(ranking, RANKS, MARGIN), 40)
    rows = {
        one.name: sum(wanted[one.run.folder].values()) - sum(planned(one.run).values())
        for one in ranking.runs
        if one.run.folder in wanted
    }
    assert rows == {"far/x": 10, "mid/x": 10}
    pair = [read_run(folder) for folder in runs.folders[:2]]
    more = more_pairs(pair[0], pair[1], compare_runs(pair[0], pair[1]), 40)
    rows_of_pair = [
        sum(counts.values()) - sum(planned(run).values())
        for counts, run in zip(more, pair, strict=True)
    ]
    assert rows_of_pair == [10, 10]
    runs.ask("--max-requests", "20")
    assert 0 < sum(count(runs).values()) <= 20


def test_ready_items_are_asked_as_far_as_they_go(lab: Lab) -> None:
    """What a task does not have is no sample without a reply."""
    rows = [
        {"variables": {"row": "1" * length}, "target": length, "length": length}
        for length in (2, 4, 8)
        for _ in range(4)
    ]
    lab.ones.with_name("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = lab.ones.with_name("ready.yaml")
    task.write_text(
        "version: 1\ntitle: x\nitems: rows.jsonl\nanswer: integer\n"
        "prompt: 'How many ones? {{ row }} {{ phrase }}'\n"
    )
    folders = []
    for name in ("oracle:2", "oracle:4", "oracle:8"):
        out = lab.folder / name.replace(":", "")
        command = ("--task", task, "--model", name, "--samples", "3", "--out", out)
        done = lab.bench("run", *command)
        assert done.code == 0, done.err
        folders += [path.parent for path in out.rglob("manifest.json")]
    done = lab.bench("compare", *folders, "--ask", "-t", task, "--max-requests", "200")
    assert done.code == 0, done.err
    assert "has no reply" not in done.err
    assert "no line has more samples" in " ".join(done.err.split())
    pair = lab.bench("compare", *folders[:2], "--ask", "-t", task, "--max-requests", "200")
    assert "no line has more samples" in " ".join(pair.err.split())


def test_python_ranks_a_list(runs: Pair) -> None:
    """As the command does, with the same sentence."""
    ranking = eyechart.compare(runs.folders, tasks=runs.lab.ones)
    assert list(ranking.ranks["run"]) == ["far/x", "mid/x", "near/x"]
    assert list(ranking.ranks["rank_last"]) == [2, 2, 3]
    assert len(ranking.pairs) == 3
    measures = {"accuracy", "effective_length", "near_length", "apart_length", "area"}
    assert set(ranking.table["measure"]) == measures
    assert count(runs) == dict.fromkeys(SEES, 0)
    asked = eyechart.compare(
        runs.folders, ask=True, settle="best", max_requests=45, tasks=runs.lab.ones
    )
    assert list(asked.ranks["rank_last"]) == [1, 2, 3]
    assert count(runs)["near"] == 0
    assert " ".join(repr(asked).split()) in " ".join(
        runs.lab.bench("compare", *runs.folders, "--all-findings").out.split()
    )
    assert "far/x" in asked._repr_html_()


def test_python_says_mistakes_of_a_list(runs: Pair) -> None:
    """By the names of its own arguments."""
    first = runs.folders[0]
    with pytest.raises(UsageError, match="a list of runs must have two or more, not 1"):
        eyechart.compare([first])
    with pytest.raises(UsageError, match="second stands beside a list of runs; add it"):
        eyechart.compare(runs.folders, first)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=r"settle, max_requests, .* are for ask=True"):
        eyechart.compare(runs.folders, settle="best", tasks=runs.lab.ones)
    with pytest.raises(UsageError, match="settle is ranks or best, not 'x'"):
        eyechart.compare(runs.folders, ask=True, settle="x", tasks=runs.lab.ones)
    with pytest.raises(UsageError, match="each run of the list must be a path, not 5"):
        eyechart.compare([first, 5])  # type: ignore[list-item]
