"""The interface between a probe and a model whose inner states can be read.

Letters in shape comments: T tokens of one prompt, P positions that are shown, L layers, C hidden
width, H query heads, K key heads, D width of a head, V vocabulary. All arrays are float32, whatever
the model computes in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from eyechart.providers.base import ModelSettings, PromptOverflowError, SetupError, Tokens
from eyechart.providers.in_process.model_files import check_ids
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.plugins import INSIDES
from eyechart.providers.registry.model_name import ModelName

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[np.float32]"
Positions: TypeAlias = "NDArray[np.intp]"

Precision: TypeAlias = Literal["float32", "bfloat16"]
"""`bfloat16`: weights, and the result of every operation, are rounded to bfloat16."""
Event: TypeAlias = Literal["residual", "final", "projections", "attention", "heads"]
"""What a watcher may ask for: the names of its methods."""
Wants: TypeAlias = Mapping[Event, "Sequence[int] | None"]
"""The methods to call -> the positions of the prompt to show, ascending; `None` for all."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The shape of a model."""

    architecture: str
    """As in its `config.json`: `LlamaForCausalLM`."""
    layers: int
    hidden: int
    heads: int
    key_heads: int
    head_width: int
    vocabulary: int
    window: int
    """Most tokens of a prompt."""
    rotary_base: float | None
    """Base of the rotary positions; `None` if the model has no such positions."""
    rotary_width: int = 0
    """Numbers of each head that are turned, the first ones; at most `head_width`."""
    sliding_window: int | None = None
    """Most tokens that a position attends to in the layers that have such a limit."""
    missing: tuple[str, ...] = ()
    """Sentences about what cannot be read from this architecture."""
    unavailable: frozenset[Event | Literal["gradients", "matrices"]] = frozenset()
    """The events and methods that therefore never occur."""
    shares: bool = True
    """Whether a pass can go on from the keys and values of another one."""


class Watcher:
    """Is called during one forward pass, layer by layer; measures override the methods that they
    need.

    It is shown what the pass computes at the positions that it wants. `at`, (P,), are their places
    in the prompt, ascending. A watcher must copy an array that it keeps, and must not change it.
    """

    wants: Wants
    """Which of the methods below the pass calls, and for which layers. It calls no other one."""

    def residual(self, layer: int, at: Positions, states: Array) -> None:
        """(P, C): the residual stream before `layer`, counted from 0; with `layer` = L the stream
        after the last one, before the final norm.
        """

    def final(self, at: Positions, states: Array) -> None:
        """(P, C): the stream after the final norm, its weights multiplied in."""

    def projections(
        self, layer: int, at: Positions, queries: Array, keys: Array, values: Array
    ) -> None:
        """(P, H, D), (P, K, D) and (P, K, D), with their positions turned in, which leaves the norm
        of each pair. Pair i is at places i and i + rotary_width / 2.
        """

    def attention(self, layer: int, at: Positions, weights: Array) -> None:
        """(H, P, T): weights in blocks of ascending positions; 0 where a position does not attend.
        A block holds at most 2^24 numbers if it has more than one position. Weights that are no
        shares, as those of ReLU, are shown as their sizes by the sum of their sizes.
        """

    def heads(self, layer: int, at: Positions, outputs: Array) -> None:
        """(P, H, D): each head's weighted values, before the output matrix."""


@dataclass(slots=True)
class PromptCache:
    """The keys and values of one prompt. A pass over another prompt that begins alike goes on from
    them, so that the beginning is computed once. Of one model, in one precision.
    """

    ids: tuple[int, ...] = ()
    """The tokens of the prompt; empty before its pass."""
    kept: Any = field(default=None, repr=False)
    """What the model keeps."""

    def start(self, ids: Sequence[int], last: int = 1) -> int:
        """The first position that a pass over `ids` computes; at least the `last` ones are."""
        return min(shared(self.ids, ids), len(ids) - last)


@dataclass(frozen=True, slots=True, eq=False)
class ReplacedState:
    """A state that is put into the residual stream of a pass, in the place of the one there."""

    layer: int
    """The stream before this layer; with L the stream after the last one, before the final norm."""
    place: int
    """The place in the prompt."""
    state: Array
    """(C,)"""


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """The number of tokens with which both begin."""
    for place, (mine, its) in enumerate(zip(one, other, strict=False)):
        if mine != its:
            return place
    return min(len(one), len(other))


class Inside(Protocol):
    """A model whose inner states can be read, one prompt at a time."""

    anatomy: Anatomy

    def facts(self) -> dict[str, object]:
        """What identifies the model: weights' hash, dtype, versions; never a key or a path."""

    def tokens(self, prompt: str) -> Tokens:
        """The prompt in the model's chat template, if it has one, ready for the reply's first
        token. Raises `PromptOverflowError` if it fills the window.
        """

    def answer_ids(self, prompt: str, answer: str) -> tuple[int, ...]:
        """The tokens of `answer` where it follows the prompt as the reply, without an end token."""

    def forward(
        self,
        ids: Sequence[int],
        watcher: Watcher | None = None,
        *,
        precision: Precision = "float32",
        last: int = 1,
        trunk: PromptCache | None = None,
        replaced: ReplacedState | None = None,
    ) -> Array:
        """(last, V): one forward pass over a prompt; the logits of its last positions.

        With an empty `trunk` the pass fills it. With a filled one the pass begins at
        `trunk.start(ids, last)`, and shows no position before. A model whose anatomy says that it
        shares nothing leaves the trunk empty.

        With `replaced` all that follows is computed from the state that is put in, and a watcher is
        shown it. Its place must be one that the pass computes.

        Memory does not grow with T² unless `watcher` asks for more: attention is computed in
        blocks of positions.
        """

    def unembedded(self, states: Array) -> Array:
        """(N, V): the logits of states (N, C) of the stream, through the final norm and the output
        matrix, in float32, as if each stood after the last layer.
        """

    def output_rows(self, tokens: Sequence[int]) -> Array:
        """(K, C): the rows of the output matrix of K tokens as they meet the stream: multiplied by
        the weights of the final norm, and with the mean taken away where that norm takes it away.
        The logit of a token is the product of its row and the stream, divided by the size that the
        norm divides by, and a number that does not depend on the stream.
        """

    def embedded(self, ids: Sequence[int]) -> Array:
        """(T, C): the embeddings of a prompt's tokens, as the first layer gets them."""

    def logits_of(self, embedded: Array) -> Array:
        """(V,): the logits after the last position of (T, C) embeddings, in float32."""

    def gradients(self, ids: Sequence[int], weights: Array) -> Array:
        """(T, C): derivative of the sum of `weights`, (V,), times the logits after the last
        position, by the embedding of each position; in float32.
        """

    def matrices(self) -> Iterator[tuple[int, str, Array]]:
        """Layer, name in the model and (in, out) matrix of each linear map."""

    def close(self) -> None:
        """Frees the model."""


def fitting(tokens: Tokens, anatomy: Anatomy) -> Tokens:
    """The tokens of a prompt.

    Raises:
        PromptOverflowError: they fill the window.
        SetupError: the model has no embedding for one.
    """
    if len(tokens.ids) >= anatomy.window:
        raise PromptOverflowError(
            f"the prompt has {len(tokens.ids)} tokens, and the window {anatomy.window}"
        )
    check_ids(tokens.ids, anatomy.vocabulary)
    return tokens


def insides() -> dict[str, plugins.Plugin]:
    """Provider -> what opens a model of it, whose inner states can be read."""
    return plugins.installed(INSIDES, ()).usable


def open_inside(name: ModelName, settings: ModelSettings) -> Inside:
    """Loads a model whose inner states can be read.

    Raises:
        SetupError: the model is behind a server, or a package or file that it needs is missing.
    """
    plugin = insides().get(name.provider)
    if plugin is None:
        raise SetupError(
            f"{name.label} has no inside that can be read: bench probe is for tiny, tiny/FOLDER, "
            "hf/FOLDER, a model of Hugging Face in a local folder, gguf/FILE, and "
            "changed/CHANGE/MODEL, one of these with its attention changed"
        )
    open_it = cast("Callable[[ModelSettings], Inside]", plugin.load())
    return open_it(replace(settings, model=name.model, provider=name.provider))
