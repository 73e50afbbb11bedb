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
Formulas and sources stand where a mechanism is computed: `lab/mechanisms/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from eyechart.providers.close_match import did_you_mean

_PAIR = 2
"""Numbers that rotary and sinusoidal positions take together."""


class Mechanism(BaseModel):
    """One choice of a field of a variant, written as its name or as `{name: …}` with what it takes:
    one number or word (`short` names the field), or a mapping of fields.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: ClassVar[str]
    short: ClassVar[str | None] = None
    """The field that is meant where one number or word is given instead of a mapping."""
    flat: ClassVar[bool] = False
    """Whether the name is the first field, and the others stand beside it."""
    example: ClassVar[int | None] = None
    """The number of a remedy, for a choice that is nothing without one."""

    @model_validator(mode="before")
    @classmethod
    def _from_written(cls, given: Any) -> Any:
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            return {}
        if cls.flat or cls.name not in given:  # its fields
            return given
        if others := [str(key) for key in given if key != cls.name]:
            raise _wrong(f"{cls.name!r} and {others[0]!r} stand together; choose one of them")
        inside = given[cls.name]
        if inside is None or isinstance(inside, dict):
            return inside or {}
        if cls.short is None:
            known = ", ".join(f"{field}: …" for field in cls.model_fields)
            remedy = f"{{{cls.name}: {{{known}}}}}" if known else cls.name
            raise _wrong(f"{cls.name!r} takes no {inside!r}; write {remedy}")
        return {cls.short: inside}

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> Any:
        fields = handler(self)
        if not fields or self.flat:
            return fields or self.name
        return {self.name: fields[self.short] if list(fields) == [self.short] else fields}


class Nothing(Mechanism):
    """No mechanism. Without positions (NoPE) only the causal mask tells places apart."""

    name = "none"


class Sinusoidal(Mechanism):
    """Sines and cosines added to the embeddings."""

    name = "sinusoidal"


Base: TypeAlias = Annotated[float, Field(ge=1, le=1e12)]


class Rope(Mechanism):
    """Rotary positions."""

    name = "rope"
    base: Base = 10_000.0


class PRope(Mechanism):
    """Rotary positions that turn only the fastest pairs."""

    name, short = "p_rope", "share"
    share: Annotated[float, Field(ge=0, le=1)] = 0.75
    """The share of the pairs that turn; the slowest ones, which are left, do not."""
    base: Base = 10_000.0


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
    """Sinusoidal positions, drawn in the training from a longer range than its texts have."""

    name = "randomised"
    of: Annotated[int, Field(ge=2, le=1_000_000)] = 2048
    """Number of positions from which they are drawn; the most tokens of a text."""

    def check(self, tokens: int) -> None:
        """Raises `ValueError` if a text has more tokens than there are positions."""
        if tokens > self.of:
            raise ValueError(
                f"a text of the training has {tokens} tokens, and positions are drawn from "
                f"{self.of}; write positions: {{randomised: {{of: {tokens}}}}}, or more"
            )


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

    name, flat, example = "window", True, 64
    window: Annotated[int, Field(ge=1, le=1_000_000)]
    """Number of the last positions, the own one among them."""
    sinks: Annotated[int, Field(ge=0, le=1_000_000)] = 4
    """Number of the first positions."""


class LogN(Mechanism):
    """Products of queries and keys times log n by log n of the training."""

    name = "log_n"


class Adaptive(Mechanism):
    """A temperature from the entropy of the weights. Applies only when the model is asked."""

    name = "adaptive"


class Stretch(Mechanism):
    """Frequencies changed by a factor, to ask a trained model for longer rows."""

    short, example = "factor", 2
    factor: Annotated[float, Field(gt=1, le=1e6)]
    """How many times as long as in the training a row is to be."""


class Linear(Stretch):
    """Position interpolation: positions divided by the factor."""

    name = "linear"


class Ntk(Stretch):
    """A larger base."""

    name = "ntk"


class Yarn(Stretch):
    """Slow pairs divided, fast ones as they are, and a temperature."""

    name = "yarn"


class DualChunk(Mechanism):
    """Positions are counted within chunks, so no distance is longer than in the training. The
    length of a chunk is that of the training, so there is no factor to choose.
    """

    name = "dual_chunk"


class SeqVcr(Mechanism):
    """Variance and covariance of a layer's states in the loss, against collapse.

    The weights are those of Arefin et al. 2024, arXiv 2411.02344, for multiplication; for their
    other tasks they are 0.1 and 0.5.
    """

    name = "seq_vcr"
    variance: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    """Weight of the variance term; the loss of the reply has weight 1."""
    covariance: Annotated[float, Field(ge=0, le=1e6)] = 0.004
    """Weight of the covariance term."""
    layer: Annotated[int, Field(ge=1, le=128)] | None = None
    """Number of layers before the states; all but the last one if not given."""


def _named(given: object) -> str | None:
    """The name of a choice as it is written."""
    if isinstance(given, Mechanism):
        return given.name
    if isinstance(given, dict) and given:
        given = Window.name if Window.name in given else next(iter(given))
    return given if isinstance(given, str) else None


def _known(*kinds: type[Mechanism]) -> BeforeValidator:
    """Refuses what has none of these names."""
    names = [kind.name for kind in kinds]
    known = f"known: {', '.join(names)}"

    def check(given: Any) -> Any:
        name = _named(given)
        if name is None:
            problem = "is empty" if given in (None, {}) else f"{given!r} names no mechanism"
            raise _wrong(f"{problem}; {known}")
        if name not in names:
            raise _wrong(f"no {name!r}; {did_you_mean(name, names, known)}")
        example = next(kind.example for kind in kinds if kind.name == name)
        is_bare = isinstance(given, str) or (isinstance(given, dict) and given[name] in (None, {}))
        if example is not None and is_bare:
            raise _wrong(f"{name!r} needs a number; write {{{name}: {example}}}")
        return given

    return BeforeValidator(check)


Positions: TypeAlias = Annotated[
    Annotated[Nothing, Tag(Nothing.name)]
    | Annotated[Sinusoidal, Tag(Sinusoidal.name)]
    | Annotated[Rope, Tag(Rope.name)]
    | Annotated[PRope, Tag(PRope.name)]
    | Annotated[Alibi, Tag(Alibi.name)]
    | Annotated[Kerple, Tag(Kerple.name)]
    | Annotated[Sandwich, Tag(Sandwich.name)]
    | Annotated[Randomised, Tag(Randomised.name)],
    Discriminator(_named),
    _known(Nothing, Sinusoidal, Rope, PRope, Alibi, Kerple, Sandwich, Randomised),
]
Attention: TypeAlias = Annotated[
    Annotated[Softmax, Tag(Softmax.name)]
    | Annotated[OffByOne, Tag(OffByOne.name)]
    | Annotated[Relu, Tag(Relu.name)]
    | Annotated[Differential, Tag(Differential.name)]
    | Annotated[Window, Tag(Window.name)],
    Discriminator(_named),
    _known(Softmax, OffByOne, Relu, Differential, Window),
]
Temperature: TypeAlias = Annotated[
    Annotated[Nothing, Tag(Nothing.name)]
    | Annotated[LogN, Tag(LogN.name)]
    | Annotated[Adaptive, Tag(Adaptive.name)],
    Discriminator(_named),
    _known(Nothing, LogN, Adaptive),
]
Stretching: TypeAlias = Annotated[
    Annotated[Nothing, Tag(Nothing.name)]
    | Annotated[Linear, Tag(Linear.name)]
    | Annotated[Ntk, Tag(Ntk.name)]
    | Annotated[Yarn, Tag(Yarn.name)]
    | Annotated[DualChunk, Tag(DualChunk.name)],
    Discriminator(_named),
    _known(Nothing, Linear, Ntk, Yarn, DualChunk),
]
Loss: TypeAlias = Annotated[
    Annotated[Nothing, Tag(Nothing.name)] | Annotated[SeqVcr, Tag(SeqVcr.name)],
    Discriminator(_named),
    _known(Nothing, SeqVcr),
]


class Variant(BaseModel):
    """A model before it is trained: its size and its mechanisms.

    What does not go together is refused at the field that comes later in this order.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
    layers: Annotated[int, Field(ge=1, le=128)] = 2
    width: Annotated[int, Field(ge=2, le=16_384)] = 64
    heads: Annotated[int, Field(ge=1, le=256)] = 4
    inner: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Width between the two maps of the feed-forward block; 8/3 of `width` if not given."""
    attention: Attention = Softmax()
    positions: Positions = Rope()
    temperature: Temperature = Nothing()
    stretch: Stretching = Nothing()
    """Applies only when the model is asked."""
    loss: Loss = Nothing()
    """Applies only in the training."""

    @property
    def trained_as(self) -> Variant:
        """This variant without what applies only when it is asked: equal ones are trained once."""
        changes: dict[str, Mechanism] = {"stretch": Nothing()}
        if isinstance(self.temperature, Adaptive):
            changes["temperature"] = Nothing()
        return self.model_copy(update=changes)

    @property
    def turned_width(self) -> int:
        """Numbers that rotary positions turn together: those of a head, or of half a head where
        attention is the difference of two softmaxes.
        """
        return self.width // self.heads // (2 if isinstance(self.attention, Differential) else 1)

    @field_validator("heads")
    @classmethod
    def _heads_fit(cls, heads: int, info: ValidationInfo) -> int:
        width = info.data.get("width")
        if width is not None and width % heads:
            raise _wrong(f"{heads} heads do not divide the width {width}; change one of them")
        return heads

    @field_validator("attention")
    @classmethod
    def _attention_fits(cls, attention: Mechanism, info: ValidationInfo) -> Mechanism:
        width = _head_width(info)
        if isinstance(attention, Differential) and width is not None and width % _PAIR:
            raise _wrong(
                f"'differential' halves each head, and a head has {width} numbers; make width / "
                "heads even"
            )
        return attention

    @field_validator("positions")
    @classmethod
    def _positions_fit(cls, positions: Mechanism, info: ValidationInfo) -> Mechanism:
        width = info.data.get("width")
        if isinstance(positions, Sinusoidal | Randomised) and (width or 0) % _PAIR:
            raise _wrong(f"{positions.name!r} needs an even width, not {width}")
        turned = _turned_width(info)
        if isinstance(positions, Rope | PRope) and turned is not None and turned % _PAIR:
            raise _wrong(
                f"{positions.name!r} turns pairs of numbers, and a head has {turned} to turn; make "
                f"width / heads a multiple of {_head_width(info) // turned * _PAIR}"  # type: ignore[operator]
            )
        return positions

    @field_validator("temperature")
    @classmethod
    def _temperature_fits(cls, temperature: Mechanism, info: ValidationInfo) -> Mechanism:
        attention = info.data.get("attention")
        fits: tuple[type[Mechanism], ...] = (Mechanism,)
        if isinstance(temperature, LogN):
            fits = (Softmax, Window, OffByOne, Differential)
        elif isinstance(temperature, Adaptive):
            fits = (Softmax, Window)
        if attention is not None and not isinstance(attention, fits):
            raise _wrong(
                f"{temperature.name!r} needs attention {_listed(fits)}, not {attention.name}; "
                "change attention, or write temperature: none"
            )
        return temperature

    @field_validator("stretch")
    @classmethod
    def _stretch_fits(cls, stretch: Mechanism, info: ValidationInfo) -> Mechanism:
        positions, attention = info.data.get("positions"), info.data.get("attention")
        if isinstance(stretch, Nothing) or positions is None or attention is None:
            return stretch
        if not isinstance(positions, Rope):
            raise _wrong(
                f"{stretch.name!r} stretches rotary positions, and positions is "
                f"{positions.name}; write positions: rope, or stretch: none"
            )
        if isinstance(stretch, DualChunk) and isinstance(attention, Window):
            raise _wrong(
                "'dual_chunk' and a window both change which distances are seen; write "
                "attention: softmax, or stretch: none"
            )
        if isinstance(stretch, Ntk) and _turned_width(info) == _PAIR:
            raise _wrong(
                "'ntk' needs heads of more than one pair of numbers; write stretch: {linear: "
                f"{stretch.factor:g}}}, or use fewer heads"
            )
        return stretch

    @field_validator("loss")
    @classmethod
    def _loss_fits(cls, loss: Mechanism, info: ValidationInfo) -> Mechanism:
        layers = info.data.get("layers")
        if not isinstance(loss, SeqVcr) or layers is None:
            return loss
        if layers == 1:
            raise _wrong(
                "'seq_vcr' needs states between two layers, and layers is 1; write layers: 2, "
                "or loss: none"
            )
        if loss.layer is not None and loss.layer > layers:
            raise _wrong(f"layer is {loss.layer}, and the model has {layers}; name one of them")
        return loss


def read_variant(given: object) -> Variant:
    """The variant in a `config.json`.

    Raises:
        ValueError: it is none; the message names the first field that is wrong.
    """
    try:
        return Variant.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(["variant", *map(str, first["loc"])])
        raise ValueError(f"{place}: {first['msg']}") from None


def _head_width(info: ValidationInfo) -> int | None:
    width, heads = info.data.get("width"), info.data.get("heads")
    return None if width is None or heads is None else width // heads


def _turned_width(info: ValidationInfo) -> int | None:
    width = _head_width(info)
    halves = isinstance(info.data.get("attention"), Differential)
    return width // _PAIR if width is not None and halves else width


def _listed(kinds: Sequence[type[Mechanism]]) -> str:
    names = [kind.name for kind in kinds]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("setting", "{problem}", {"problem": message})
