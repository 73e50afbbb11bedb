"""What the file of a laboratory study may have: variants, tasks, and how they are trained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from eyechart.harness.study import TASK, StudyTask, Text
from eyechart_lab.variants.variant import Variant

MOST_SEEDS = 50
"""Seeds of training, at most."""
MOST_EXAMPLES = 200_000
"""Examples that are drawn for a seed, at most; a longer training has them again."""
VariantName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$", max_length=30)]
"""The name of a variant: part of the names of folders and models."""
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Training(_Part):
    """How every variant is trained."""

    steps: Annotated[int, Field(gt=0, le=10_000_000)] = 3000
    """Updates of the weights."""
    rows: Annotated[int, Field(gt=0, le=65_536)] = 64
    """Examples in a step."""
    learning_rate: Annotated[FiniteFloat, Field(gt=0, le=1)] = 0.002
    """The highest learning rate of AdamW, which falls to zero along a cosine."""
    warm_up: Annotated[int, Field(ge=0, le=10_000_000)] = 100
    """Steps in which the learning rate rises; all of fewer steps, unless given."""
    weight_decay: Annotated[FiniteFloat, Field(ge=0, le=1)] = 0.01
    """The weight decay of AdamW."""
    growth: Share = 0.5
    """Share of the steps in which the longest row grows from the shortest trained length to the
    longest."""
    merged: Annotated[int, Field(gt=0, le=4)] = 1
    """Letters of a row that may be one token, as in tokenizers of large models. With 1 each letter
    is a token."""

    @model_validator(mode="before")
    @classmethod
    def _short_warm_up(cls, given: Any) -> Any:
        """Lets the usual rise end with the last step of a short training."""
        steps = given.get("steps") if isinstance(given, dict) else None
        usual = cls.model_fields["warm_up"].default
        if isinstance(steps, int) and 0 < steps < usual and "warm_up" not in given:
            return {**given, "warm_up": steps}
        return given

    @field_validator("warm_up")
    @classmethod
    def _warm_up_fits(cls, warm_up: int, info: ValidationInfo) -> int:
        steps = info.data.get("steps")
        if steps is not None and warm_up > steps:
            raise PydanticCustomError(
                "setting",
                "{warm_up} is longer than the training of {steps} steps; write at most {steps}",
                {"warm_up": warm_up, "steps": steps},
            )
        return warm_up

    @property
    def drawn_steps(self) -> int:
        """Steps whose examples are drawn; those after them take the last ones again."""
        return min(self.steps, max(1, MOST_EXAMPLES // self.rows))

    def grown(self, step: int) -> float:
        """How far the longest row has grown at a step, 0 to 1."""
        until = self.growth * self.drawn_steps
        return min(1.0, (step + 1) / until) if until else 1.0


class ProbePart(_Part):
    """What `bench probe` measures inside every trained model."""

    measures: Annotated[list[Text], Field(min_length=1)] = Field(
        default_factory=lambda: ["collapse", "attention"]
    )
    """Names of measures, as `--measure` takes them."""
    samples: Annotated[int, Field(gt=0, le=1000)] = 3
    """Rows of each length."""


class LabTask(StudyTask):
    """A task that the variants are trained on and asked: the keys of a study's task, and two."""

    share: Annotated[FiniteFloat, Field(gt=0)]
    """Weight of its share of the examples."""
    trained: tuple[int, int]
    """The lengths of the shortest and of the longest row in the training."""


def _two(given: Any) -> Any:
    if not isinstance(given, list) or len(given) != 2:  # noqa: PLR2004
        problem = "must be the shortest and the longest length, such as [1, 32]"
        raise PydanticCustomError("must", "{problem}", {"problem": problem})
    return given


_Trained = Annotated[list[Annotated[int, Field(gt=0, le=100_000)]], BeforeValidator(_two)]
TASK_OF_LAB: Any = create_model(
    "LabTask",
    __base__=TASK,
    share=(Annotated[FiniteFloat, Field(gt=0)], 1.0),
    trained=(_Trained, ...),
)
"""The type that a task is read as."""


def _mapping(given: Any) -> Any:
    if not isinstance(given, dict | ProbePart | None):
        problem = "must be a mapping, such as {measures: [collapse, attention]}"
        raise PydanticCustomError("must", "{problem}", {"problem": problem})
    return given


class LabSpec(_Part):
    """A laboratory study: every variant is trained with every seed, and asked every task."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=60)]
    """The name of its folder."""
    title: Text
    description: str = ""
    seeds: Annotated[int, Field(gt=0, le=MOST_SEEDS)] = 3
    """How many models of each variant are trained; their seeds are 0, 1, 2, …"""
    training: Training = Training()
    tasks: Annotated[list[TASK_OF_LAB], Field(min_length=1)]
    every: Variant = Variant()
    """What every variant has unless it says otherwise."""
    variants: Annotated[dict[VariantName, Variant], Field(min_length=1)]
    against: str | None = None
    """The variant that the others are compared with; default: the first."""
    read: Literal["reply", "likelihood"] = "reply"
    """`reply`: what the model writes. `likelihood`: the probabilities of given answers."""
    probe: Annotated[ProbePart | None, BeforeValidator(_mapping)] = None
    """What is measured inside; nothing, unless given."""

    @model_validator(mode="before")
    @classmethod
    def _with_every(cls, given: Any) -> Any:
        """Gives each variant what `every` has and it lacks."""
        if not isinstance(given, dict):
            return given
        every, variants = given.get("every", {}), given.get("variants")
        if not isinstance(every, dict) or not isinstance(variants, dict):
            return given
        with suppress(ValidationError):  # of `every` itself, which is found below
            Variant.model_validate(every, strict=True)
            given = {**given, "variants": _merged(every, variants)}
        return given

    @property
    def reference(self) -> str:
        """The variant that the others are compared with."""
        return self.against or next(iter(self.variants))


def _merged(every: dict[str, Any], variants: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {**every, **(own or {})} if isinstance(own, dict | None) else own
        for name, own in variants.items()
    }


def digest_of(content: Mapping[str, object]) -> str:
    """The first digits of a hash of what determines a result."""
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
