"""A finding: what a run or a comparison shows, as facts, with the sentence that they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["result", "warning", "note"]
LEVELS: dict[Level, str] = {
    "result": "what was found",
    "warning": "why a number may be wrong or is missing",
    "note": "how the numbers came about",
}
"""The levels, the most important first, and what each says."""
MOST_NAMES = 3
"""Most names in a sentence; of more names only their number is given."""
MOST_SHOWN = 3
"""Most lines of findings below a table, the most important first."""


def listed(names: Sequence[str], what: str) -> str:
    """Names joined with "and"; if they are many, only their number: `5 runs`."""
    if len(names) > MOST_NAMES:
        return f"{len(names)} {what}"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


@dataclass(frozen=True)
class Finding:
    kind: str
    """The name of its `Kind`."""
    level: Level
    facts: Mapping[str, Any] = field(repr=False)
    """What the sentence is made of: an entry for each parameter of `Kind.words`. Values may be
    whole runs, so `repr` leaves them out.
    """
    sentence: str
    """One sentence or more, which say the facts."""
    remedy: str = ""
    """What the user can do; mostly empty."""
    meaning: str = ""
    """That of its `Kind`."""
    names: tuple[str, ...] = ()
    """The runs that it is about, where findings of several runs stand together."""

    def __str__(self) -> str:
        """`tiny: 3 of 20 samples are not scored: error 3.`; no name is said twice."""
        is_named = {"model", "task"} <= self.facts.keys() or all(
            name in self.facts.values() for name in self.names
        )
        of = "" if is_named else f"{listed(self.names, 'runs')}: "
        return f"{of}{self.sentence}{f' Remedy: {self.remedy}.' if self.remedy else ''}"

    def shortened(self) -> Finding:
        """With its first sentence alone."""
        return replace(self, sentence=re.split(r"(?<=\.) (?=[A-Z])", self.sentence)[0], remedy="")


@dataclass(frozen=True)
class Kind:
    """A kind of findings: called with the facts, it makes one."""

    name: str
    level: Level
    meaning: str
    """What such a finding says of a run, or of a comparison, in a table of all kinds; of warnings
    a clause, which says it of many runs.
    """
    words: Callable[..., str]
    """The sentence; its parameters are the facts."""

    def __call__(self, remedy: str = "", /, **facts: Any) -> Finding:
        sentence = self.words(**facts)
        return Finding(self.name, self.level, facts, sentence, remedy, self.meaning)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The most important level first; findings of a level stay in their order."""
    return sorted(findings, key=lambda one: list(LEVELS).index(one.level))


def of_several(of_runs: Iterable[tuple[str, Sequence[Finding]]]) -> list[Finding]:
    """The findings of several named runs, equal ones as one."""
    names: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], Finding] = {}
    for name, findings in of_runs:
        for one in findings:
            said = one.sentence, one.remedy
            first.setdefault(said, one)
            names.setdefault(said, []).extend([name] if name else [])
    return in_order(
        replace(one, names=tuple(dict.fromkeys(names[said]))) for said, one in first.items()
    )


def lines_of(findings: Sequence[Finding]) -> list[tuple[str, Finding]]:
    """Each finding with its line below a table: its text; of warnings of one kind about many runs
    one line with the names of the runs.
    """
    runs: dict[str, list[str]] = {}
    for one in findings:
        if one.level == "warning":
            runs.setdefault(one.kind, []).extend(one.names)
    return [
        (f"In {len(many)} runs {one.meaning}: {', '.join(many)}.", one)
        if len(many := runs.get(one.kind, [])) > MOST_NAMES
        else (str(one), one)
        for one in findings
    ]


def below_a_table(findings: Sequence[Finding]) -> tuple[list[str], str]:
    """The lines that stand below a table, at most `MOST_SHOWN`, and what else there is, see
    `more_text`. The last of them is a warning where there is one, however many results there are.
    """
    lines = lines_of(findings)
    before_last = MOST_SHOWN - 1
    lines[before_last:] = sorted(lines[before_last:], key=lambda one: one[1].level != "warning")
    shown = list(dict.fromkeys(line for line, _ in lines))[:MOST_SHOWN]
    return shown, more_text([one for line, one in lines if line not in shown or line != str(one)])


def more_text(hidden: Sequence[Finding]) -> str:
    """`2 more findings (warnings: drift, not scored)`; empty where nothing is hidden."""
    warnings = list(dict.fromkeys(one.kind for one in hidden if one.level == "warning"))
    kinds = f" (warning{'s' * (len(warnings) > 1)}: {', '.join(warnings)})" if warnings else ""
    return f"{len(hidden)} more finding{'s' * (len(hidden) > 1)}{kinds}" if hidden else ""
