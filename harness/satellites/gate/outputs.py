"""What pipelines show about a gate: JUnit XML, a summary in Markdown, one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from eyechart.harness.cli.comparing import pair_document
from eyechart.harness.satellites.gate.gate import INCOMPLETE, NOT_COMPARABLE, Gated

_PROBLEMS = dict.fromkeys(("worse", INCOMPLETE, NOT_COMPARABLE), "failure") | {
    "undecided": "skipped"
}
"""Verdict -> how JUnit calls it; the others have passed."""


def junit(gated: Sequence[Gated], *, fails_undecided: bool) -> bytes:
    """A test for each task, as GitHub, GitLab and Jenkins read it."""
    problems = _PROBLEMS | ({"undecided": "failure"} if fails_undecided else {})
    kinds = [problems.get(one.verdict, "") for one in gated]
    counts = {"tests": len(gated), "failures": kinds.count("failure"), "errors": 0}
    counts["skipped"] = kinds.count("skipped")
    texts = {name: str(count) for name, count in counts.items()}
    suites = ET.Element("testsuites", texts)
    suite = ET.SubElement(suites, "testsuite", {"name": "bench gate", **texts})
    for one, kind in zip(gated, kinds, strict=True):
        names = {"classname": one.comparison.second, "name": one.comparison.task}
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


def summary(gated: Sequence[Gated]) -> str:
    """A table and a paragraph for each task, in Markdown."""
    rows = [
        f"| {one.comparison.task} | **{one.verdict}** | {one.comparison.second} |" for one in gated
    ]
    said = [f"**{one.comparison.task}**: {' '.join(one.sentences)}" for one in gated]
    table = ["| task | compared with the baseline | model |", "| --- | --- | --- |", *rows]
    return "\n".join([*table, "", "\n\n".join(said), ""])


def document(gated: Sequence[Gated], code: int) -> dict[str, Any]:
    """The verdicts, and each comparison as `bench compare --json` has it."""
    return {
        "exit_code": code,
        "runs": [
            {
                "task": one.comparison.task,
                "run": one.comparison.second,
                "verdict": one.verdict,
                "without_partner": one.without,
                "samples": one.samples,
                "comparison": pair_document(one.comparison, one.margin),
            }
            for one in gated
        ],
    }
