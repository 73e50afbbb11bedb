"""What a study's file may have. The keys of settings are those of `harness.settings`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    PositiveInt,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.settings.setting import Part, Setting

_DIGITS = 8
Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    """A part of the file; the models made by `_with_settings` add its settings as fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    part: ClassVar[Part]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the part has, by their names in `RunSettings`."""
        given = {one.name: getattr(self, one.key, None) for one in _settings_of(self.part)}
        return {name: value for name, value in given.items() if value is not None}


class StudyModel(_Part):
    """A model, with the settings that hold only for it. It may be written as its name alone."""

    part = "model"
    name: Text

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given


class StudyTask(_Part):
    """A task or a group with its own settings. It may be written as its name alone."""

    part = "task"
    task: Text

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        return {"task": given} if isinstance(given, str) else given


class StudySpec(_Part):
    """A study: every task is asked of every model."""

    part = "study"
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]
    version: PositiveInt = 1
    title: Text
    description: str = ""
    models: list[StudyModel] = []
    """May be empty: then the command names them."""
    tasks: Annotated[list[StudyTask], Field(min_length=1)]

    def digest(self, tasks: Mapping[str, object]) -> str:
        """A hash of everything that is asked: of the settings, and of the digest, conditions, lines
        and samples of each of the `tasks`, by name.

        Two files that ask the same have the same hash.
        """
        given = RunSettings.read(**self.settings)
        study = {"name": self.name, "version": self.version}
        study |= {name: getattr(given, name) for name in _HASHED}
        study["max_tokens"] = given.max_tokens or "auto"
        if given.draws > 1:
            study["draws"] = given.draws
        known = json.dumps({"study": study, "tasks": dict(sorted(tasks.items()))}, sort_keys=True)
        return hashlib.sha256(known.encode()).hexdigest()

    def label(self, digest: str) -> str:
        """Its name, version and the beginning of its digest: `standard@1-0a1b2c3d`."""
        return f"{self.name}@{self.version}-{digest[:_DIGITS]}"


_P = TypeVar("_P", bound=_Part)


def _settings_of(part: Part) -> list[Setting]:
    return [one for one in SETTINGS.values() if part in one.parts]


def _with_settings(base: type[_P], **own: Any) -> type[_P]:
    """The part with its settings as fields, whose checks are those of every door."""
    fields: dict[str, Any] = {
        one.key: (Annotated[Any, PlainValidator(_checked(one))], None)
        for one in _settings_of(base.part)
    }
    return create_model(base.__name__, __base__=base, **fields, **own)


def _checked(setting: Setting) -> Any:
    def check(given: Any) -> Any:
        try:
            read = None if given is None else setting.check(given)
        except ValueError as error:
            raise PydanticCustomError("setting", "{problem}", {"problem": str(error)}) from None
        return given if read is None else read  # a word that leaves it open is no missing key

    return check


MODEL = _with_settings(StudyModel)
TASK = _with_settings(StudyTask)
STUDY = _with_settings(
    StudySpec,
    models=(list[MODEL], []),  # type: ignore[valid-type]
    tasks=(Annotated[list[TASK], Field(min_length=1)], ...),  # type: ignore[valid-type]
)
"""The types that a file is read as."""
_SHAPING = [one.name for one in _settings_of("study") if one.identity == "settings"]
_HASHED = ("adaptive", "precision", *_SHAPING)
FIXED = {"draws", *_HASHED, *(one.name for one in _settings_of("task")), "task"}
"""Settings of what a study asks, which its file alone has."""
