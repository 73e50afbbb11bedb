"""The fields of a study's file. Their names are those of the options of `bench run`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    model_validator,
)

from eyechart.harness.bounds import BOUNDS
from eyechart.harness.spec import Spread

_DIGITS = 8


def _as_list(given: object) -> object:
    """A list; a single value becomes a list of one."""
    return given if isinstance(given, list | dict) or given is None else [given]


Text = Annotated[str, Field(min_length=1)]
Texts = Annotated[list[Text], BeforeValidator(_as_list), Field(min_length=1)]
Length = Annotated[int, Field(**BOUNDS["lengths"].field)]
Samples = Annotated[int, Field(**BOUNDS["samples"].field)]
Rate = Annotated[float, Field(**BOUNDS["rpm"].field)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StudyModel(_Part):
    """A model, with the settings that hold only for it. It may be written as its name alone."""

    name: Text
    called: Text | None = None
    """The user's name for the model, as `--name`; `name` is the name by which it is asked."""
    label: Text | None = None
    effort: Texts | None = None
    """One or several reasoning efforts; each becomes a model of its own."""
    intervene: Texts | None = None
    base_url: Texts | None = None
    vllm_arg: Texts | None = None
    model_arg: Texts | None = None
    tier: Text | None = None
    batch: bool = False
    logprobs: bool = False
    max_connections: Annotated[int, Field(**BOUNDS["max_connections"].field)] = 64
    rpm: Rate | None = None
    tpm: Rate | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given


class StudyTask(_Part):
    """A task or a group with its own settings. It may be written as its name alone."""

    task: Text
    axes: Mapping[str, Texts] = {}
    """Axis -> its values, or `all`."""
    preset: Text | None = None
    lengths: Annotated[list[Length], Field(min_length=1)] | None = None
    samples: Samples | None = None
    spread: Spread | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        return {"task": given} if isinstance(given, str) else given


class StudySpec(_Part):
    """A study: every task is asked of every model."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]
    version: PositiveInt = 1
    title: Text
    description: str = ""
    models: list[StudyModel] = []
    """May be empty: then `--model` names them."""
    tasks: Annotated[list[StudyTask], Field(min_length=1)]
    samples: Samples | None = None
    """Samples of each task that has no number of its own; the same for `lengths` and `spread`."""
    lengths: Annotated[list[Length], Field(min_length=1)] | None = None
    spread: Spread | None = None
    adaptive: bool = False
    precision: Annotated[float, Field(**BOUNDS["precision"].field)] | None = None
    """Octaves to which an adaptive study shall know each effective length."""
    max_requests: Annotated[int, Field(**BOUNDS["max_requests"].field)] | None = None
    """Most samples of each model that one command of an adaptive study may ask."""
    seed: Annotated[int, Field(**BOUNDS["seed"].field)] = 0
    temperature: Annotated[float, Field(**BOUNDS["temperature"].field)] = 0.0
    max_tokens: Annotated[int, Field(**BOUNDS["max_tokens"].field)] | Literal["auto"] = "auto"
    api: Literal["chat", "completions"] = "chat"
    system: Text | None = None
    budget: Annotated[float, Field(**BOUNDS["budget"].field)] | None = None
    """Most dollars of all models together in one command."""

    def digest(self, tasks: Mapping[str, object]) -> str:
        """A hash of everything that is asked: of the settings, and of the digest, conditions, lines
        and samples of each of the `tasks`, by name.

        Two files that ask the same have the same hash.
        """
        names = {"name", "version", "adaptive", "precision"}
        settings = {"seed", "temperature", "max_tokens", "api", "system"}
        fields = self.model_dump(mode="json", include=names | settings)
        known = json.dumps({"study": fields, "tasks": dict(sorted(tasks.items()))}, sort_keys=True)
        return hashlib.sha256(known.encode()).hexdigest()

    def label(self, digest: str) -> str:
        """Its name, version and the beginning of its digest: `standard@1-0a1b2c3d`."""
        return f"{self.name}@{self.version}-{digest[:_DIGITS]}"
