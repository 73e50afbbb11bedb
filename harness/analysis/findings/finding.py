"""A finding: what a run or a comparison shows, as facts, with the sentence that they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["result", "warning", "note"]
LEVELS: dict[Level, str] = {
    "result": "what was found",
    "warning": "why a number may be wrong or is missing, and are always shown",
    "note": "how the numbers came about",
}
"""The levels, the most important first, and what each says."""
MOST_NAMES = 3
"""Most names in a sentence; of more names only their number is given."""
MOST_SHOWN = 3
"""Findings that stand below a table besides warnings, the most important first."""


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
    facts: Mapping[str, Any]
    """Numbers and names, by the parameters of `Kind.words`."""
    sentence: str
    """One sentence or more, which say the facts."""
    remedy: str = ""
    """What the user can do; mostly empty."""
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
    """What such a finding says of a run, or of a comparison, in a table of all kinds."""
    words: Callable[..., str]
    """The sentence; its parameters are the facts."""

    def __call__(self, remedy: str = "", /, **facts: Any) -> Finding:
        return Finding(self.name, self.level, facts, self.words(**facts), remedy)


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
    return in_order(replace(one, names=tuple(names[said])) for said, one in first.items())


def below_a_table(findings: Sequence[Finding]) -> tuple[list[str], int]:
    """The lines that stand below a table, and how many findings are not told in full: the first
    `MOST_SHOWN` and all warnings are, but of warnings of one kind about many runs the runs alone.
    """
    runs: dict[str, list[str]] = {}
    for one in findings:
        if one.level == "warning":
            runs.setdefault(one.kind, []).extend(one.names)
    lines, hidden = [], 0
    for at, one in enumerate(findings):
        many = runs.get(one.kind, [])
        if one.level == "warning" and len(many) > MOST_NAMES:
            lines.append(f"{one.kind.capitalize()} in {len(many)} runs: {', '.join(many)}.")
            hidden += 1
        elif one.level == "warning" or at < MOST_SHOWN:
            lines.append(str(one))
        else:
            hidden += 1
    return list(dict.fromkeys(lines)), hidden
