"""The fields of `manifest.json`: their types and limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    model_validator,
)

from eyechart.harness.errors import UsageError
from eyechart.harness.journal.recorded import Recorded, RecordedFile
from eyechart.harness.settings.checks import MAX_DRAWS, MAX_LENGTH, MAX_SAMPLES
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.spec import Cell, Condition, Line, ReadBy
from eyechart.harness.spec.counted import PATTERN

_MOST_NAME = 4096
"""Characters of a name that folders are named after; no path is longer."""


def _is_moment(text: str) -> str:
    if text:
        datetime.fromisoformat(text)
    return text


def _is_given(values: dict[str, Any]) -> dict[str, Any]:
    for name in values:
        if name not in SETTINGS or not SETTINGS[name].is_kept:
            raise ValueError(f"{name!r} is no setting that a manifest keeps")
    try:
        return RunSettings.read(**values).kept
    except UsageError as error:
        raise ValueError(error.lines[0]) from None


class _InFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _CellInFile(_InFile):
    condition: dict[str, str]
    length: Annotated[int, Field(ge=0, le=MAX_LENGTH)]
    low: Annotated[int, Field(ge=0, le=MAX_LENGTH)]
    high: Annotated[int, Field(ge=0, le=MAX_LENGTH)]
    samples: Annotated[int, Field(ge=0, le=MAX_SAMPLES)]
    draws: Annotated[int, Field(ge=1, le=MAX_DRAWS)] = 1

    def cell(self) -> Cell:
        line = Line(self.length, self.low, self.high)
        return Cell(Condition(self.condition), line, self.samples, self.draws)

    @model_validator(mode="after")
    def _is_band(self) -> Self:
        if not self.low <= self.length <= self.high:
            msg = "'length' is not between 'low' and 'high'"
            raise ValueError(msg)
        return self


class _SettingsInFile(_InFile):
    seed: Annotated[int, Field(gt=-(2**63), lt=2**63)]
    """Version 0.1 took negative ones too."""
    temperature: Annotated[float, Field(allow_inf_nan=False)] | None
    """Version 0.1 took negative ones too, from Python."""
    max_tokens: PositiveInt | None
    api: Literal["chat", "completions"] | None
    system: str | None
    effort: str | None = None
    thinking: str | None = None
    params: dict[str, JsonValue] = {}
    read: ReadBy = "reply"


class _RecordedFileInFile(_InFile):
    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]
    source: Annotated[int, Field(ge=0)]
    by: str
    at: str


class _RecordedInFile(_InFile):
    files: list[_RecordedFileInFile]

    def recorded(self) -> Recorded:
        return Recorded([RecordedFile(**dict(file)) for file in self.files])


class ManifestFields(_InFile):
    """The fields of `manifest.json`."""

    model: Annotated[str, Field(min_length=1, max_length=_MOST_NAME)]
    task: Annotated[str, Field(min_length=1, max_length=_MOST_NAME)]
    task_version: PositiveInt
    task_digest: str
    spec: dict[str, JsonValue]
    settings: _SettingsInFile
    given: Annotated[dict[str, JsonValue], AfterValidator(_is_given)] = {}
    variant: str = ""
    served_as: str = ""
    run: Annotated[str, Field(pattern=r"^([0-9a-f]{8})?$")] = ""
    file: str = ""
    kept: Annotated[str, Field(pattern=r"^([0-9a-f]{16}-[^/\\\x00]+)?$")] = ""
    recorded: _RecordedInFile | None = None
    server: dict[str, JsonValue] = {}
    accepted: list[str] = []
    answered_by: list[str] = []
    sent: dict[str, JsonValue] = {}
    refused: list[str] = []
    software: dict[str, str] = {}
    counted: dict[str, Annotated[str, Field(pattern=PATTERN)]] = {}
    cells: list[_CellInFile]
    adaptive: list[dict[str, str]] = []
    commands: list[str] = []
    created: Annotated[str, AfterValidator(_is_moment)] = ""
    updated: Annotated[str, AfterValidator(_is_moment)] = ""
