"""What a variant of a model is: a few lines of a study's file.

    positions: {rope: {base: 10000}}
    attention: softmax
    gate: none
    temperature: none
    stretch: none
    loss: none
    tokens: none
    layers: 2
    width: 64
    heads: 4

One definition serves training, asking and probing: it is in the `config.json` of a trained folder.
What each mechanism is stands in `eyechart_lab.variants.choices`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from eyechart_lab.variants.choices import (
    CHOICES,
    Adaptive,
    Delta,
    Differential,
    DualChunk,
    DynamicNtk,
    LeakyReRope,
    Learned,
    LogN,
    NoPositions,
    Ntk,
    OffByOne,
    PRope,
    Randomised,
    Relative,
    ReRope,
    Rope,
    Scalar,
    SeqVcr,
    Sinusoidal,
    Softmax,
    Strided,
    Window,
)
from eyechart_lab.variants.mechanism import Mechanism, wrong

_PAIR = 2
"""Numbers that rotary and sinusoidal positions take together; heads that differential attention
makes one.
"""
_OF_WAVES = (Sinusoidal.name, Relative.name)
"""Positions with pairs of sines and cosines as wide as the model."""
_BEFORE_LAYERS = (NoPositions.name, Sinusoidal.name, Learned.name, Scalar.name)
"""Positions that change nothing in the layers."""
_OF_DISTANCES = (DualChunk, DynamicNtk, ReRope, LeakyReRope)
"""Stretching that turns queries and keys again."""


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
    attention: Annotated[Mechanism, CHOICES["attention"]] = Softmax()
    gate: Annotated[Mechanism, CHOICES["gate"]] = NoPositions()
    positions: Annotated[Mechanism, CHOICES["positions"]] = Rope()
    temperature: Annotated[Mechanism, CHOICES["temperature"]] = NoPositions()
    stretch: Annotated[Mechanism, CHOICES["stretch"]] = NoPositions()
    """Applies only when the model is asked."""
    loss: Annotated[Mechanism, CHOICES["loss"]] = NoPositions()
    """Applies only in the training."""
    tokens: Annotated[Mechanism, CHOICES["tokens"]] = NoPositions()
    """What a text has besides its own tokens."""

    @property
    def trained_as(self) -> Variant:
        """This variant without what applies only when it is asked: equal ones are trained once."""
        changes: dict[str, Mechanism] = {"stretch": NoPositions()}
        if isinstance(self.temperature, Adaptive):
            changes["temperature"] = NoPositions()
        if isinstance(self.positions, Randomised):
            changes["positions"] = self.positions.model_copy(update={"asked": "mean"})
        return self.model_copy(update=changes)

    @property
    def attention_heads(self) -> int:
        """Heads of a layer: half of `heads` where each of them is the difference of two softmaxes,
        so that it has as many numbers as two heads of the others.
        """
        return self.heads // (_PAIR if isinstance(self.attention, Differential) else 1)

    @property
    def turned_width(self) -> int:
        """Numbers that rotary positions turn together: those of one of `heads`."""
        return self.width // self.heads

    @field_validator("heads")
    @classmethod
    def _heads_fit(cls, heads: int, info: ValidationInfo) -> int:
        width = info.data.get("width")
        if width is not None and width % heads:
            raise wrong(f"{heads} heads do not divide the width {width}; change one of them")
        return heads

    @field_validator("attention")
    @classmethod
    def _attention_fits(cls, attention: Mechanism, info: ValidationInfo) -> Mechanism:
        heads = info.data.get("heads")
        if isinstance(attention, Differential) and heads is not None and heads % _PAIR:
            raise wrong(
                f"'differential' makes one head of two, and heads is {heads}; write heads: "
                f"{heads + 1}, or another even number"
            )
        return attention

    @field_validator("positions")
    @classmethod
    def _positions_fit(cls, positions: Mechanism, info: ValidationInfo) -> Mechanism:
        width, heads = info.data.get("width"), info.data.get("heads")
        attention = info.data.get("attention")
        if encoding_of(positions) in _OF_WAVES and (width or 0) % _PAIR:
            raise wrong(f"{positions.name!r} needs an even width, not {width}")
        turned = None if width is None or heads is None else width // heads
        if encoding_of(positions) == Rope.name and turned is not None and turned % _PAIR:
            raise wrong(
                f"{positions.name!r} turns pairs of numbers, and a head has {turned} to turn; make "
                f"width / heads a multiple of {_PAIR}"
            )
        if isinstance(attention, Delta) and encoding_of(positions) not in _BEFORE_LAYERS:
            raise wrong(
                f"'delta_rule' has no scores that {positions.name} could change; write positions: "
                "none, or sinusoidal"
            )
        if encoding_of(positions) == Relative.name and isinstance(attention, Differential):
            raise wrong(
                "'relative' has one key of a distance, and differential attention two; write "
                "another attention, or positions: rope"
            )
        if _draws_distances(positions) and isinstance(attention, Window):
            raise wrong(
                f"a window counts positions among the tokens that it sees, and 'randomised' with "
                f"{encoding_of(positions)} draws them; write attention: softmax, or encoding: "
                "sinusoidal"
            )
        return positions

    @field_validator("temperature")
    @classmethod
    def _temperature_fits(cls, temperature: Mechanism, info: ValidationInfo) -> Mechanism:
        attention = info.data.get("attention")
        fits: tuple[type[Mechanism], ...] = (Mechanism,)
        if isinstance(temperature, LogN):
            fits = (Softmax, Window, Strided, OffByOne, Differential)
        elif isinstance(temperature, Adaptive):
            fits = (Softmax, Window, Strided)
        if attention is not None and not isinstance(attention, fits):
            raise wrong(
                f"{temperature.name!r} needs attention {_listed(fits)}, not {attention.name}; "
                "change attention, or write temperature: none"
            )
        return temperature

    @field_validator("stretch")
    @classmethod
    def _stretch_fits(cls, stretch: Mechanism, info: ValidationInfo) -> Mechanism:
        positions, attention = info.data.get("positions"), info.data.get("attention")
        if isinstance(stretch, NoPositions) or positions is None or attention is None:
            return stretch
        if not isinstance(positions, Rope):
            raise wrong(
                f"{stretch.name!r} stretches rotary positions, and positions is "
                f"{positions.name}; write positions: rope, or stretch: none"
            )
        if isinstance(stretch, _OF_DISTANCES) and isinstance(attention, Window):
            raise wrong(
                f"{stretch.name!r} and a window both change which distances are seen; write "
                "attention: softmax, or stretch: none"
            )
        width, heads = info.data.get("width"), info.data.get("heads")
        if isinstance(stretch, Ntk | DynamicNtk) and width and width // (heads or 1) == _PAIR:
            raise wrong(
                f"{stretch.name!r} needs heads of more than one pair of numbers; write stretch: "
                f"{{linear: {stretch.factor:g}}}, or use fewer heads"
            )
        return stretch

    @field_validator("loss")
    @classmethod
    def _loss_fits(cls, loss: Mechanism, info: ValidationInfo) -> Mechanism:
        layers = info.data.get("layers")
        if not isinstance(loss, SeqVcr) or layers is None:
            return loss
        if layers == 1:
            raise wrong(
                "'seq_vcr' needs states between two layers, and layers is 1; write layers: 2, "
                "or loss: none"
            )
        if loss.layer is not None and loss.layer > layers:
            raise wrong(f"layer is {loss.layer}, and the model has {layers}; name one of them")
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


def encoding_of(positions: Mechanism) -> str:
    """What positions are positions of: the name of an encoding, also where they are drawn, and of
    `rope` where only some pairs turn.
    """
    if isinstance(positions, Randomised):
        return positions.encoding
    return Rope.name if isinstance(positions, PRope) else positions.name


def _draws_distances(positions: Mechanism) -> bool:
    """Whether positions are drawn that decide how far apart tokens are."""
    return isinstance(positions, Randomised) and encoding_of(positions) not in _BEFORE_LAYERS


def _listed(kinds: Sequence[type[Mechanism]]) -> str:
    names = [kind.name for kind in kinds]
    return f"{', '.join(names[:-1])} or {names[-1]}"
