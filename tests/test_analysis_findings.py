"""Findings: their kinds, their order, and which of them stand below a table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import eyechart.harness.analysis
from eyechart.harness.analysis.findings.finding import (
    MOST_NAMES,
    MOST_SHOWN,
    Finding,
    Kind,
    below_a_table,
    in_order,
    of_several,
)
from eyechart.harness.analysis.findings.kinds import OF_A_COMPARISON, OF_A_RUN
from eyechart.harness.analysis.findings.served import NOT_ALL_SCORED, REFUSED_SETTINGS


def missing(count: int) -> Finding:
    return NOT_ALL_SCORED(missing=count, samples=9, outcomes={"error": count})


def note(number: int) -> Finding:
    return REFUSED_SETTINGS(settings=[str(number)])


def test_every_kind_is_in_the_table_of_kinds() -> None:
    """Those that a module of the analysis makes, each with a name of its own."""
    folder = Path(eyechart.harness.analysis.__path__[0])
    made = [
        name
        for path in folder.rglob("*.py")
        for name in re.findall(r"^([A-Z_]+) = Kind\(", path.read_text(), re.MULTILINE)
    ]
    kinds: list[Kind] = [*OF_A_RUN, *OF_A_COMPARISON]
    assert len(made) == len(kinds) == len({one.name for one in kinds}) > 0


def test_three_lines_stand_below_a_table() -> None:
    """Results before warnings before notes; the kinds of warnings that are left out are named."""
    found = in_order([*map(note, range(1, 6)), *map(missing, range(1, 5))])
    assert [one.level for one in found] == ["warning"] * 4 + ["note"] * 5
    lines, more = below_a_table(found)
    assert lines == [*map(str, found[:MOST_SHOWN])]
    assert more == "6 more findings (warning: not scored)"
    lines, more = below_a_table(in_order([missing(1), *map(note, range(1, 4))]))
    assert (len(lines), more) == (MOST_SHOWN, "1 more finding")
    assert below_a_table(found[:MOST_SHOWN]) == ([*map(str, found[:MOST_SHOWN])], "")


def test_results_leave_room_for_a_warning() -> None:
    """However many there are, a reader sees that a number may be wrong."""
    results = [replace(note(number), level="result") for number in range(1, 5)]
    lines, more = below_a_table(in_order([missing(1), *results]))
    assert lines == [*map(str, results[: MOST_SHOWN - 1]), str(missing(1))]
    assert more == "2 more findings"


def test_a_warning_about_many_runs_is_one_line_with_their_names() -> None:
    """The command that shows all has each of them in full."""
    names = [f"model-{number}" for number in range(MOST_NAMES + 1)]
    found = of_several((name, [missing(place + 1)]) for place, name in enumerate(names))
    assert below_a_table(found) == (
        ["In 4 runs samples have no reply that counts: model-0, model-1, model-2, model-3."],
        "4 more findings (warning: not scored)",
    )
    few = of_several((name, [missing(place + 1)]) for place, name in enumerate(names[1:]))
    assert below_a_table(few) == ([*map(str, few)], "")


def test_equal_findings_of_several_runs_are_one() -> None:
    """With the names of its runs, unless the sentence has them."""
    (one,) = of_several([("a", [missing(1)]), ("b", [missing(1)])])
    assert one.names == ("a", "b")
    assert str(one) == "a and b: 1 of 9 samples is not scored: error 1."
    named = REFUSED_SETTINGS(settings=["a"])
    assert str(of_several([("a", [named])])[0]).startswith("a: The server does not take a")


def test_a_remedy_stands_behind_the_sentence() -> None:
    """In a sentence of its own."""
    found = NOT_ALL_SCORED("ask again", missing=1, samples=9, outcomes={"error": 1})
    assert str(found) == "1 of 9 samples is not scored: error 1. Remedy: ask again."
