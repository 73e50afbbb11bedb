"""What a variant of a model is: a few lines of a study's file.

    positions: {rope: {base: 10000}}
    attention: softmax
    temperature: none
    stretch: none
    loss: none
    layers: 2
    width: 64
    heads: 4

One definition serves training, asking and probing: it is in the `config.json` of a trained folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticCustomError

from eyechart.providers.close_match import did_you_mean

Positive: TypeAlias = Annotated[float, Field(gt=0, le=1e12)]


class Mechanism(BaseModel):
    """One choice of a field of a variant, written as its name or as `{name: …}` with what it takes:
    one number or word (`short` names the field), or a mapping of fields.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: ClassVar[str]
    short: ClassVar[str | None] = None
    """The field that is meant where one number or word is given instead of a mapping."""
    flat: ClassVar[bool] = False
    """Whether the other fields stand beside the name."""

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> Any:
        fields = handler(self)
        if not fields or self.flat:
            return fields or self.name
        return {self.name: fields[self.short] if list(fields) == [self.short] else fields}


class NoPositions(Mechanism):
    """No positions (NoPE): only the causal mask tells places apart."""

    name = "none"


class Sinusoidal(Mechanism):
    """Sines and cosines added to the embeddings."""

    name = "sinusoidal"


class Rope(Mechanism):
    """Rotary positions."""

    name = "rope"
    base: Annotated[float, Field(ge=1, le=1e12)] = 10_000.0


class PRope(Mechanism):
    """Rotary positions that turn only the fastest pairs."""

    name, short = "p_rope", "share"
    share: Annotated[float, Field(ge=0, le=1)] = 0.75
    """The share of the pairs that turn; the slowest ones of the rest do not."""
    base: Annotated[float, Field(ge=1, le=1e12)] = 10_000.0


class Alibi(Mechanism):
    """A penalty of the score that grows with the distance."""

    name = "alibi"


class Kerple(Mechanism):
    """A learned kernel of the distance, added to the score."""

    name, short = "kerple", "kernel"
    kernel: Literal["log", "power"] = "log"


class Sandwich(Mechanism):
    """The inner product of sinusoidal positions, added to the score."""

    name = "sandwich"
    dimension: Annotated[int, Field(ge=2, le=4096, multiple_of=2)] = 128
    """The width of the sinusoidal positions."""


class Randomised(Mechanism):
    """Sinusoidal positions drawn from a longer range than that of the training."""

    name = "randomised"
    of: Annotated[int, Field(ge=2, le=1_000_000)] = 2048
    """Number of positions from which they are drawn."""


class Softmax(Mechanism):
    """Softmax of the scores."""

    name = "softmax"


class OffByOne(Mechanism):
    """Softmax with 1 added to the sum of exponentials."""

    name = "off_by_one"


class Relu(Mechanism):
    """ReLU of the scores."""

    name = "relu"


class Differential(Mechanism):
    """The difference of two softmaxes."""

    name = "differential"


class Window(Mechanism):
    """Softmax over the last positions and the first ones."""

    name, short = "window", "window"
    flat = True
    window: Annotated[int, Field(ge=1, le=1_000_000)]
    sinks: Annotated[int, Field(ge=0, le=1_000_000)] = 4


class NoTemperature(Mechanism):
    """Scores as they are."""

    name = "none"


class LogN(Mechanism):
    """Scores times log n / log n of the training."""

    name = "log_n"


class Adaptive(Mechanism):
    """A temperature from the entropy of the weights."""

    name = "adaptive"


class NoStretch(Mechanism):
    """Positions as in the training."""

    name = "none"


class _Stretch(Mechanism):
    short = "factor"
    factor: Annotated[float, Field(gt=1, le=1e6)]
    """How many times as long as in the training a row is to be."""


class Linear(_Stretch):
    """Positions divided by the factor."""

    name = "linear"


class Ntk(_Stretch):
    """A larger base."""

    name = "ntk"


class Yarn(_Stretch):
    """Slow pairs divided, fast ones as they are, and a temperature."""

    name = "yarn"


class DualChunk(_Stretch):
    """Positions in chunks, none of which is farther than in the training."""

    name = "dual_chunk"


class NoLoss(Mechanism):
    """Nothing but the loss of the reply."""

    name = "none"


class SeqVcr(Mechanism):
    """Variance and covariance of the states in the loss, against collapse."""

    name = "seq_vcr"
    variance: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    covariance: Annotated[float, Field(ge=0, le=1e6)] = 0.004


CHOICES: Mapping[str, tuple[type[Mechanism], ...]] = {
    "positions": (*(NoPositions, Sinusoidal, Rope, PRope, Alibi, Kerple, Sandwich, Randomised),),
    "attention": (Softmax, OffByOne, Relu, Differential, Window),
    "temperature": (NoTemperature, LogN, Adaptive),
    "stretch": (NoStretch, Linear, Ntk, Yarn, DualChunk),
    "loss": (NoLoss, SeqVcr),
}
"""Field of a variant -> what it may be."""


class Variant(BaseModel):
    """A model before it is trained: its mechanisms and its size."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    positions: Any = Rope()
    attention: Any = Softmax()
    temperature: Any = NoTemperature()
    stretch: Any = NoStretch()
    """Applies only when the model is asked."""
    loss: Any = NoLoss()
    """Applies only in the training."""
    layers: Annotated[int, Field(ge=1, le=128)] = 2
    width: Annotated[int, Field(ge=2, le=16_384)] = 64
    heads: Annotated[int, Field(ge=1, le=256)] = 4
    inner: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Width between the two maps of the feed-forward block; 8/3 of `width` if not given."""

    @field_validator(*CHOICES, mode="plain")
    @classmethod
    def _chosen(cls, given: Any, info: ValidationInfo) -> Mechanism:
        known = {one.name: one for one in CHOICES[str(info.field_name)]}
        if isinstance(given, Mechanism) and type(given) in known.values():
            return given
        if isinstance(given, str):
            given = {given: {}}
        if not isinstance(given, dict) or not given:
            raise _wrong(f"{given!r} is no name and no mapping of one name; {_known(known)}")
        name, *others = given
        kind = known.get(name)
        if kind is None:
            raise _wrong(f"{name!r} is not known; {did_you_mean(str(name), known, _known(known))}")
        if kind.flat and given[name] != {}:
            return kind.model_validate(given)
        if others:
            raise _wrong(f"{name!r} and {others[0]!r} are here, and one is chosen; remove one")
        fields = given[name]
        if not isinstance(fields, dict):
            if kind.short is None:
                raise _wrong(f"{name} takes fields and no {fields!r}")
            fields = {kind.short: fields}
        return kind.model_validate(fields)

    @property
    def trained_as(self) -> Variant:
        """This variant without what applies only when it is asked: equal ones are trained once."""
        return self.model_copy(update={"stretch": NoStretch()})


def _known(known: Mapping[str, type[Mechanism]]) -> str:
    return f"known: {', '.join(known)}"


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("variant", "{problem}", {"problem": message})
