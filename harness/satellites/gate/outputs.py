"""What pipelines show about a gate: JUnit XML, a summary in Markdown, one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from eyechart.harness.analysis.cells import markdown_text
from eyechart.harness.analysis.tables import finding_columns
from eyechart.harness.cli.comparing import pair_documents
from eyechart.harness.satellites.gate.gate import INCOMPLETE, NOT_COMPARABLE, Gated

ENDED = "no verdict"
"""In place of a verdict, where the gate ended before it."""
_PROBLEMS = dict.fromkeys(("worse", INCOMPLETE, NOT_COMPARABLE), "failure") | {
    "undecided": "skipped",
    ENDED: "error",
}
"""Verdict -> how JUnit calls it; the others have passed."""
_SUITE = "bench gate"
JUNIT_MARK = f'<testsuite name="{_SUITE}"'.encode()
"""What every file of `junit` has at its beginning, and no file of another program."""


class Shown(NamedTuple):
    """What pipelines show of one task."""

    task: str
    run: str
    verdict: str
    sentences: Sequence[str]


def shown(gated: Sequence[Gated]) -> list[Shown]:
    """The verdicts."""
    return [
        Shown(one.comparison.task, one.comparison.second, one.verdict, one.sentences)
        for one in gated
    ]


def ended(tasks: Sequence[str], why: str) -> list[Shown]:
    """A gate that ended before its verdicts."""
    text = f"The gate ended before its verdict ({why}); whether a run is worse is not known."
    return [Shown(task, "", ENDED, [text]) for task in tasks]


def junit(tasks: Sequence[Shown], *, fails_undecided: bool) -> bytes:
    """A test for each task, as GitHub, GitLab and Jenkins read it."""
    problems = _PROBLEMS | ({"undecided": "failure"} if fails_undecided else {})
    kinds = [problems.get(one.verdict, "") for one in tasks]
    counts = {"tests": len(tasks), "failures": kinds.count("failure")}
    counts |= {"errors": kinds.count("error"), "skipped": kinds.count("skipped")}
    texts = {name: str(count) for name, count in counts.items()}
    suites = ET.Element("testsuites", texts)
    suite = ET.SubElement(suites, "testsuite", {"name": _SUITE, **texts})
    for one, kind in zip(tasks, kinds, strict=True):
        names = {"classname": one.run or suite.attrib["name"], "name": one.task}
        case = ET.SubElement(suite, "testcase", names)
        text = "\n".join(one.sentences)
        if kind:
            problem = ET.SubElement(case, kind, {"message": one.verdict})
            problem.text = text
        else:
            ET.SubElement(case, "system-out").text = f"{one.verdict}\n{text}"
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode", xml_declaration=True)
    return f"{text}\n".encode()


def summary(tasks: Sequence[Shown]) -> str:
    """A table and a paragraph for each task, in Markdown; texts from outside are escaped."""
    rows = [
        f"| {markdown_text(one.task)} | **{one.verdict}** | {markdown_text(one.run) or '–'} |"
        for one in tasks
    ]
    said = [
        f"**{markdown_text(one.task)}**: {markdown_text(' '.join(one.sentences))}" for one in tasks
    ]
    table = ["| task | compared with the baseline | model |", "| --- | --- | --- |", *rows]
    return "\n".join([*table, "", "\n\n".join(said), ""])


def document(gated: Sequence[Gated], code: int) -> dict[str, Any]:
    """The verdicts, and each comparison as `bench compare --json` has it."""
    pairs = [pair for one in gated for pair in pair_documents([one.comparison], one.margin)]
    return {
        "exit_code": code,
        "runs": [
            {
                "task": one.comparison.task,
                "run": one.comparison.second,
                "verdict": one.verdict,
                "without_partner": one.without,
                "samples": one.samples,
                "comparison": pair | {"findings": [*map(finding_columns, one.findings)]},
            }
            for one, pair in zip(gated, pairs, strict=True)
        ],
    }
