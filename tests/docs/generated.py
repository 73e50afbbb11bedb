"""Chapters and tables that code writes; what a chapter prints is renewed as in every other one.

A table stands between `<!-- NAME -->` and `<!-- end -->`, each on a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from eyechart.harness.analysis.findings.finding import LEVELS
from eyechart.harness.analysis.findings.kinds import OF_A_COMPARISON, OF_A_RUN
from eyechart.harness.score.answers import TYPES
from eyechart.harness.score.outcomes import Outcome
from tests.docs.commands import commands_page
from tests.docs.prompts import prompts_page
from tests.docs.python_reference import python_page
from tests.docs.settings_table import settings_page
from tests.docs.task_file import task_file_page

GENERATED: Mapping[str, Callable[[], str]] = {
    "api.md": python_page,
    "commands.md": commands_page,
    "prompts.md": prompts_page,
    "settings.md": settings_page,
    "task-file.md": task_file_page,
}
"""Name of a file in docs/ -> its text, without what commands print."""


def _outcomes() -> Iterator[str]:
    yield from ("| outcome | what happened | in `n` |", "| --- | --- | --- |")
    for outcome in Outcome:
        scored = "yes" if outcome.about.scored else "no"
        yield f"| `{outcome}` | {outcome.about.meaning} | {scored} |"


def _answers() -> Iterator[str]:
    yield from ("| type | target | right if |", "| --- | --- | --- |")
    for kind in TYPES.values():
        yield f"| `{kind.name}` | {kind.target} | it {kind.right} |"


def _findings() -> Iterator[str]:
    for level, meaning in LEVELS.items():
        yield from (f"Findings of the level `{level}` say {meaning}:", "")
        for kind in (*OF_A_RUN, *OF_A_COMPARISON):
            if kind.level == level:
                yield f"- `{kind.name}`: {kind.meaning}"
        yield ""


_TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "outcomes": _outcomes,
    "answers": _answers,
    "findings": _findings,
}
_PLACE = re.compile(
    rf"^<!-- ({'|'.join(_TABLES)}) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL
)


def with_tables(text: str) -> str:
    """A chapter with the tables that code writes."""
    return _PLACE.sub(
        lambda place: "\n".join(
            [
                f"<!-- {place[1]} -->",
                "",
                "\n".join(_TABLES[place[1]]()).rstrip(),
                "",
                "<!-- end -->",
            ]
        ),
        text,
    )
