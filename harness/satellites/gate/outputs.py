"""What pipelines show about a gate: JUnit XML, a summary in Markdown, one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from xml.etree import ElementTree as ET

from eyechart.harness.analysis.comparison.gate import GateResult
from eyechart.harness.analysis.findings.finding import Finding
from eyechart.harness.analysis.findings.gate import lengths_text, shares_text, shown_of
from eyechart.harness.analysis.tables.cells import markdown_text
from eyechart.harness.analysis.tables.tables import finding_columns
from eyechart.harness.cli.outputs import check_output
from eyechart.harness.cli.work.compare import pair_documents
from eyechart.harness.errors import UsageError
from eyechart.harness.journal.files import make_folder_of, replace_file
from eyechart.harness.journal.record import MANIFEST, journal_size
from eyechart.harness.settings.judging import FAILING, JudgeSettings

_ENDED = "no verdict"
"""In place of a verdict, where the gate ended before it."""
_SUITE = "bench gate"
_JUNIT_MARK = f'<testsuite name="{_SUITE}"'.encode()
"""What every file of `junit` has at its beginning, and no file of another program."""
_MARKDOWN = ("", ".md", ".markdown", ".txt")
"""Endings of files to which a summary is appended."""


Found: TypeAlias = tuple[GateResult, Sequence[Finding]]
"""The verdict on the run of one task, and what is said of it."""


class GateRow(NamedTuple):
    """What files show of one task."""

    task: str
    verdict: str
    sentences: Sequence[str]
    run: str = ""
    lengths: str = ""
    shares: str = ""


@dataclass(frozen=True, slots=True)
class Files:
    """The files that pipelines read."""

    junit: Path | None
    summary: Path | None

    def check(self, baseline: Path) -> None:
        """Raises an `EyechartError` for a file that cannot be written, or would be lost."""
        check_output("--junit", self.junit, _JUNIT_MARK)
        check_output("--summary", self.summary)
        files = [path for path in (self.junit, self.summary) if path is not None]
        if baseline.resolve() in [path.resolve() for path in files]:
            raise UsageError(
                f"{str(baseline)!r} is the baseline, and would be lost; name another file for "
                "--junit and --summary"
            )
        if self.summary is not None and not _takes_text(self.summary):
            raise UsageError(
                f"--summary {str(self.summary)!r} is Markdown, which is appended: its name must "
                "end in .md or .txt, or have no ending, and it must be no link and no data"
            )
        for path in files:
            if any(map(_is_run, path.resolve().parents)):
                raise UsageError(f"{str(path)!r} is in the folder of a run; name a file elsewhere")
            make_folder_of(path)

    def write(self, tasks: Sequence[GateRow], fail_if: str) -> None:
        if self.junit is not None:
            replace_file(self.junit, _junit(tasks, fail_if))
        if self.summary is not None:
            with self.summary.open("a", encoding="utf-8") as file:
                # a table that follows text without a blank line is no table
                file.write("\n" * (file.tell() > 0) + summary(tasks))


def _is_run(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and journal_size(folder) > 0


def _takes_text(path: Path) -> bool:
    """Whether Markdown can be appended to a file: it has no second name, and is no JSON."""
    if path.suffix.lower() not in _MARKDOWN or path.is_symlink():
        return False
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return path.stat().st_nlink == 1 and file.read(64).lstrip()[:1] not in (b"{", b"[")


def shown(found: Sequence[Found]) -> list[GateRow]:
    """The verdicts."""
    return [
        GateRow(
            one.comparison.task,
            one.verdict,
            [*map(str, findings)],
            one.comparison.second,
            lengths_text(shown_of(one)),
            shares_text(shown_of(one)),
        )
        for one, findings in found
    ]


def ended(tasks: Sequence[str], why: str) -> list[GateRow]:
    """A gate that ended before its verdicts."""
    text = f"The gate ended before its verdict ({why}); whether a run is worse is not known."
    return [GateRow(task, _ENDED, [text]) for task in tasks]


def _junit(tasks: Sequence[GateRow], fail_if: str) -> bytes:
    """A test for each task, as GitHub, GitLab and Jenkins read it."""
    problems = {_ENDED: "error", "undecided": "skipped"}
    problems |= dict.fromkeys(FAILING[fail_if], "failure")
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


def summary(tasks: Sequence[GateRow]) -> str:
    """A table and a paragraph for each task, in Markdown; texts from outside are escaped."""
    titles = ("task", "compared with the baseline", "model", "right to", "rows right")
    rows = [titles, ("---",) * len(titles)] + [
        (
            markdown_text(one.task),
            f"**{one.verdict}**",
            *(markdown_text(text) or "–" for text in (one.run, one.lengths, one.shares)),
        )
        for one in tasks
    ]
    said = [
        f"**{markdown_text(one.task)}**: {markdown_text(' '.join(one.sentences))}" for one in tasks
    ]
    table = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*table, "", "\n\n".join(said), ""])


def document(found: Sequence[Found], judging: JudgeSettings, code: int) -> dict[str, Any]:
    """The verdicts, and each comparison as `bench compare --json` has it."""
    pairs = [pair for one, _ in found for pair in pair_documents([one.comparison], one.margin)]
    return {
        "exit_code": code,
        "threshold": judging.threshold,
        "margin": judging.margin,
        "runs": [
            {
                "task": one.comparison.task,
                "run": one.comparison.second,
                "verdict": one.verdict,
                "without_partner": one.without,
                "samples": one.samples,
                "comparison": pair | {"findings": [*map(finding_columns, findings)]},
            }
            for (one, findings), pair in zip(found, pairs, strict=True)
        ],
    }
