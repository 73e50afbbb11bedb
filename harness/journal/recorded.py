"""The files of a recorded run, as its manifest lists them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from eyechart.harness.spec import IN_FILE


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file of replies that somebody else collected."""

    __pydantic_config__: ClassVar[ConfigDict] = IN_FILE

    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]
    """Its bytes."""
    source: Annotated[int, Field(ge=0)]
    """Number of the file among those of the run, from 0. A file that has grown keeps its number."""
    by: str = ""
    """Who collected the replies; "" if that is not known."""
    at: str = ""
    """When the replies were collected: a year, a month or a date; "" if that is not known."""


@dataclass(slots=True)
class RecordedFiles:
    """The files of a recorded run, in the order in which they were imported."""

    __pydantic_config__: ClassVar[ConfigDict] = IN_FILE

    files: list[RecordedFile] = field(default_factory=list)

    @property
    def latest(self) -> list[RecordedFile]:
        """Each file as it was last imported."""
        return list({file.source: file for file in self.files}.values())

    @property
    def at(self) -> str:
        """When all replies were collected; "" if that is not known or differs between files."""
        moments = {file.at for file in self.latest}
        return moments.pop() if len(moments) == 1 else ""

    def __str__(self) -> str:
        groups: dict[str, list[str]] = {}
        for file in self.latest:
            by, at = f"by {file.by} " if file.by else "", f"in {file.at} " if file.at else ""
            groups.setdefault(by + at, []).append(file.name)
        return "recorded " + ", ".join(
            f"{origin}({', '.join(names)})"
            for origin, names in sorted(groups.items(), key=lambda group: group[0] != "")
        )
