"""The mechanisms that a variant can have, each with its source and with what differs from it.

Formulas stand where a mechanism is computed: `lab/mechanisms/`. docs/variants.md has the list of
them, which `python -m lab.pages` makes from here.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from eyechart_lab.variants.mechanism import Mechanism, MechanismField, wrong

Base: TypeAlias = Annotated[float, Field(ge=1, le=1e12)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=1_000_000)]
Size: TypeAlias = Annotated[int, Field(ge=2, le=1_000_000)]


class NoPositions(Mechanism):
    """Nothing. Without positions (NoPE) only the causal mask tells places apart."""

    name = "none"


class Sinusoidal(Mechanism):
    """Sines and cosines added to the embeddings."""

    name = "sinusoidal"
    source = "Vaswani et al. 2017, 1706.03762"


class Learned(Mechanism):
    """A learned vector for each position, added to the embeddings.

    With `random_padding` a text of the training begins at a position that is drawn, as if part of
    the padding stood before it: otherwise later positions are trained less.
    """

    name = "learned"
    source = "Radford et al. 2018 (GPT); random padding: Tao et al. 2023, 2305.04859"
    differs = (
        "a decoder is trained from the beginning; theirs are pretrained models, tuned to find "
        "answers in a text"
    )
    of: Size = 512
    """Number of positions. A text has at most so many tokens."""
    random_padding: bool = False


class Scalar(Mechanism):
    """The position as one number, i / C, times a learned vector, added to the embeddings."""

    name, short = "scalar", "of"
    source = "Yao et al. 2021, 2105.11115"
    differs = (
        "C is given, as in the authors' code, where it is 6,000; in the paper's proofs it is the "
        "length of the text. Theirs has the number in a place of its own, not added"
    )
    of: Size = 512
    """C."""


class Rope(Mechanism):
    """Rotary positions."""

    name = "rope"
    source = "Su et al. 2021, 2104.09864"
    differs = "pairs stand half a head apart, as in Llama; theirs are neighbours"
    base: Base = 10_000.0


class PRope(Mechanism):
    """Rotary positions that turn only the fastest pairs."""

    name, short = "p_rope", "share"
    source = "Barbero et al. 2024, 2410.06205"
    share: Annotated[float, Field(ge=0, le=1)] = 0.75
    """The share of the pairs that turn; the slowest ones, which are left, do not."""
    base: Base = 10_000.0


class Alibi(Mechanism):
    """A penalty of the score that grows with the distance."""

    name = "alibi"
    source = "Press et al. 2021, 2108.12409"


class Kerple(Mechanism):
    """A learned kernel of the distance, `log` or `power`, added to the score."""

    name, short = "kerple", "kernel"
    source = "Chi et al. 2022, 2205.09921"
    differs = (
        "parameters are at least 0.01, as in the authors' code; the paper only has them above 0"
    )
    kernel: Literal["log", "power"] = "log"


class Sandwich(Mechanism):
    """The inner product of sinusoidal positions, added to the score."""

    name, short = "sandwich", "dimension"
    source = "Chi et al. 2022, 2212.10356"
    differs = "half the dimension is taken off the product, which no softmax sees"
    dimension: Annotated[int, Field(ge=2, le=4096, multiple_of=2)] = 128
    """The width of the sinusoidal positions."""


class T5(Mechanism):
    """A learned number for each bucket of distances, added to the score."""

    name = "t5"
    source = "Raffel et al. 2019, 1910.10683"
    differs = "scores are divided by the root of a head's width, as everywhere here; T5 does not"
    buckets: Annotated[int, Field(ge=4, le=4096, multiple_of=2)] = 32
    """Number of buckets; half of them have one distance each."""
    longest: Size = 128
    """Distances from here on share the last bucket."""

    @model_validator(mode="after")
    def _more_than_exact(self) -> Self:
        if self.longest <= self.buckets // 2:
            raise wrong(
                f"longest is {self.longest}, and {self.buckets // 2} of {self.buckets} buckets "
                f"have one distance each; write longest: {self.buckets}, or more"
            )
        return self


class Relative(Mechanism):
    """Sines and cosines of the distance, mapped to a key by a learned matrix of each layer."""

    name = "relative"
    source = "Dai et al. 2019, 1901.02860"
    differs = "no states of an earlier text are kept"


class Randomised(Mechanism):
    """Positions drawn in the training from a longer range than its texts have.

    `encoding` is `sinusoidal`, `learned`, `rope`, `alibi` or `relative`; for the last two distances
    are drawn, as in the authors' code. A model that is asked gets the mean of the draws, or with
    `asked: drawn` a draw that follows from the number of tokens.
    """

    name = "randomised"
    source = "Ruoss et al. 2023, 2305.16843"
    differs = (
        "asked with the mean of the draws, unless `asked: drawn`; draws are of a row, theirs of a "
        "batch; 16 positions are left for the reply; theirs is an encoder"
    )
    of: Size = 2048
    """Number of positions from which they are drawn. A text has at most so many tokens."""
    encoding: Literal["sinusoidal", "learned", "rope", "alibi", "relative"] = "sinusoidal"
    asked: Literal["mean", "drawn"] = "mean"

    @property
    def are_distances(self) -> bool:
        """Whether distances are drawn and not positions."""
        return self.encoding in ("alibi", "relative")


def check_size(positions: Learned | Randomised, tokens: int) -> None:
    """Raises `ValueError` if a text has more tokens than there are positions."""
    if tokens > positions.of:
        what = "positions are drawn from" if isinstance(positions, Randomised) else "positions are"
        raise ValueError(
            f"a text of the training has {tokens} tokens, and {what} "
            f"{positions.of}; write positions: {{{positions.name}: {{of: {tokens}}}}}, or more"
        )


class Softmax(Mechanism):
    """Softmax of the scores."""

    name = "softmax"
    source = "Vaswani et al. 2017, 1706.03762"


class OffByOne(Mechanism):
    """Softmax with 1 added to the sum of exponentials."""

    name = "off_by_one"
    source = "Miller 2023"


class Relu(Mechanism):
    """ReLU of the scores, divided by γ √(n / 2), or with `by: length` by the number n of tokens."""

    name = "relu"
    source = "Shen et al. 2023, 2302.06461; `by: length`: Wortsman et al. 2023, 2309.08586"
    differs = (
        "n is the tokens that a query sees, theirs those of the text; Shen et al.'s two losses are "
        "left out"
    )
    by: Literal["root", "length"] = "root"
    gamma: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """γ; of `root` only."""


class Differential(Mechanism):
    """The difference of two softmaxes, in half as many heads of twice the width."""

    name = "differential"
    source = "Ye et al. 2024, 2410.05258"


class Window(Mechanism):
    """Softmax over the last positions and the first ones."""

    name, flat, example = "window", True, 64
    source = "Xiao et al. 2023, 2309.17453"
    differs = "trained with it, too; theirs is for finished models"
    window: Count
    """Number of the last positions, the own one among them."""
    sinks: Annotated[int, Field(ge=0, le=1_000_000)] = 4
    """Number of the first positions."""


class Strided(Mechanism):
    """Softmax over the last n positions, and over every n-th before them."""

    name, short, example = "strided", "every", 8
    source = "Child et al. 2019, 1904.10509"
    differs = "each head has both patterns, one of the three ways of the paper"
    every: Annotated[int, Field(ge=2, le=1_000_000)]
    """n."""


class Delta(Mechanism):
    """No attention, but a recurrent layer (DeltaNet): each head has a matrix, into which each token
    writes what is to be given back for its key. Needs positions that are added, or none.
    """

    name = "delta_rule"
    source = "Yang et al. 2024, 2406.06484"
    differs = "no short convolutions, and values are not passed through SiLU"


class LogN(Mechanism):
    """Products of queries and keys times log n by log n of the training."""

    name = "log_n"
    source = "Chiang & Cholak 2022, 2202.12172"
    differs = "divided by log n of the longest text of the training, so that it is 1 there"


class Adaptive(Mechanism):
    """A temperature from the entropy of the weights, with its authors' coefficients.

    Applies only when the model is asked.
    """

    name = "adaptive"
    source = "Veličković et al. 2024, 2410.01104"
    differs = (
        "the coefficients are those that the authors fitted to their own task and model; they are "
        "not fitted again"
    )


class Stretch(Mechanism):
    """Frequencies changed by a factor, to ask a trained model for longer rows."""

    short, example = "factor", 2
    factor: Annotated[float, Field(gt=1, le=1e6)]
    """How many times as long as in the training a row is to be."""


class Linear(Stretch):
    """Position interpolation: positions divided by the factor."""

    name = "linear"
    source = "Chen et al. 2023, 2306.15595"
    differs = "no training follows"


class Ntk(Stretch):
    """A larger base."""

    name = "ntk"
    source = "bloc97 2023"


class DynamicNtk(Stretch):
    """A larger base that grows with the number of tokens so far, beyond those of the training."""

    name = "dynamic_ntk"
    source = "emozilla 2023"
    differs = "kept keys are turned again as the base grows; in transformers they stay as they were"


class Yarn(Stretch):
    """Slow pairs divided, fast ones as they are, and a temperature."""

    name = "yarn"
    source = "Peng et al. 2023, 2309.00071"
    differs = "no training follows"


class DualChunk(Mechanism):
    """Positions are counted within chunks, so no distance is longer than in the training; with
    `yarn` frequencies are those of YaRN with this factor, as in Qwen2.
    """

    name, short = "dual_chunk", "yarn"
    source = "An et al. 2024, 2402.17463; with YaRN: Yang et al. 2024, 2407.10671"
    differs = (
        "as the paper: chunks of 3/4 of the training, distances up to its end; the authors' code "
        "has chunks of 5/8, distances up to 3/4, and a temperature beyond the training"
    )
    yarn: Annotated[float, Field(ge=1, le=1e6)] = 1.0
    """Factor of YaRN; 1 for frequencies as they were trained."""


_OF_REROPE = (
    "the author's code also multiplies query number n by log n / log c, beyond the c tokens of the "
    "training"
)


class ReRope(Mechanism):
    """Distances from a window on count as the window."""

    name, short, example = "rerope", "window", 16
    source = "Su 2023, kexue.fm/archives/9708"
    differs = _OF_REROPE
    window: Count
    """The distance from which on all count alike."""


class LeakyReRope(Mechanism):
    """Distances grow more slowly from a window on."""

    name, example = "leaky_rerope", 16
    source = "Su 2023, kexue.fm/archives/9708"
    differs = _OF_REROPE
    window: Count = 16
    """The distance from which on they grow more slowly."""
    slower: Annotated[float, Field(gt=1, le=1e6)] = 16.0
    """How many times as slowly."""


class SeqVcr(Mechanism):
    """Variance and covariance of a layer's states in the loss, against collapse.

    The weights are the authors' for multiplication; for their other tasks they are 0.1 and 0.5.
    `layer` is the number of layers before the states, all but the last one unless given.
    """

    name = "seq_vcr"
    source = "Arefin et al. 2024, 2411.02344"
    differs = (
        "states are not widened to 2048 numbers by a linear map; pause tokens only with `tokens: "
        "{pause: …}`"
    )
    variance: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    """Weight of the variance term; the loss of the reply has weight 1."""
    covariance: Annotated[float, Field(ge=0, le=1e6)] = 0.004
    """Weight of the covariance term."""
    layer: Annotated[int, Field(ge=1, le=128)] | None = None
    """Number of layers before the states; all but the last one if not given."""


class GatedHeads(Mechanism):
    """What heads give, times the sigmoid of a linear map of the layer's states: one number for each
    number of a head (`numbers`), or one for each head (`heads`).
    """

    name, short = "sigmoid", "of"
    source = "Qiu et al. 2025, 2505.06708"
    of: Literal["numbers", "heads"] = "numbers"


class ExtraTokens(Mechanism):
    """Tokens that a text has besides its own."""

    short, example = "count", 4
    count: Annotated[int, Field(ge=1, le=1000)]
    """How many."""

    @property
    def names(self) -> list[str]:
        """The tokens in their order."""
        raise NotImplementedError


class Pause(ExtraTokens):
    """A learned token, repeated between the prompt and the reply."""

    name = "pause"
    source = "Goyal et al. 2023, 2310.02226; Arefin et al. 2024, 2411.02344"

    @property
    def names(self) -> list[str]:
        return ["<pause>"] * self.count


class Memory(ExtraTokens):
    """Learned tokens of their own before the text."""

    name = "memory"
    source = "Burtsev et al. 2020, 2006.11527"
    differs = (
        "attention is causal, so memory tokens see each other only; in their encoder they see the "
        "text"
    )

    @property
    def names(self) -> list[str]:
        return [f"<memory_{number}>" for number in range(1, self.count + 1)]


CHOICES: dict[str, MechanismField] = {
    "positions": MechanismField(
        *(NoPositions, Sinusoidal, Learned, Scalar, Rope, PRope, Alibi, Kerple, Sandwich, T5),
        *(Relative, Randomised),
    ),
    "attention": MechanismField(Softmax, OffByOne, Relu, Differential, Window, Strided, Delta),
    "gate": MechanismField(NoPositions, GatedHeads),
    "temperature": MechanismField(NoPositions, LogN, Adaptive),
    "stretch": MechanismField(
        NoPositions, Linear, Ntk, DynamicNtk, Yarn, DualChunk, ReRope, LeakyReRope
    ),
    "loss": MechanismField(NoPositions, SeqVcr),
    "tokens": MechanismField(NoPositions, Pause, Memory),
}
"""Field of a variant -> what it can be."""
