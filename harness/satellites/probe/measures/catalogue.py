"""The quantities of each measure of a probe, with unit, definition and source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eyechart.harness.errors import UsageError
from eyechart.providers.close_match import did_you_mean

BARBERO = "[Barbero et al. 2024](https://arxiv.org/abs/2406.04267)"
GU = "[Gu et al. 2024](https://arxiv.org/abs/2410.10781)"
DONG = "[Dong et al. 2021](https://arxiv.org/abs/2103.03404)"
VELICKOVIC = "[Veličković et al. 2024](https://arxiv.org/abs/2410.01104)"


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity of a measure, or several whose names differ in a part."""

    measure: str
    name: str
    """As in `probe.csv`; `{at}` and other names in braces stand for their variants."""
    unit: str
    definition: str
    formula: str
    source: str
    per: str = ""
    """`layer`, `layer and head`, `layer and pair`; empty if the model has one value."""


VARIANTS = {
    "at": ("symbol", "end"),
    "precision": ("", "_bfloat16"),
    "limit": ("0.3", "0.8"),
    "tenth": tuple(f"{number:02}" for number in range(1, 11)),
}
"""The meaning of the names in braces."""
QUANTITIES = (
    Quantity(
        "answer",
        "probability",
        "1",
        "probability of the right answer's tokens, one after the other, after the phrase",
        "∏ p(tᵢ)",
        "ours",
    ),
    Quantity(
        "answer",
        "greedy",
        "1",
        "1 where each token of the right answer is the likeliest one, else 0",
        "tᵢ = argmax p for all i",
        "ours",
    ),
    Quantity(
        "collapse",
        "heads_l1_{at}{precision}",
        "1",
        "distance of a head's output for n and n + 1 symbols",
        "Σ |x − y|",
        BARBERO,
        "layer and head",
    ),
    Quantity(
        "collapse",
        "heads_linf_{at}{precision}",
        "1",
        "the same, the largest difference of a number",
        "max |x − y|",
        BARBERO,
        "layer and head",
    ),
    Quantity(
        "collapse",
        "weights_l1_end{precision}",
        "1",
        "difference of a head's attention weights at the end, for n and n + 1 symbols; 2 at most",
        "Σ |aₙ − aₙ₊₁|",
        BARBERO + ", Prop. B.4",
        "layer and head",
    ),
    Quantity(
        "collapse",
        "stream_l1_{at}{precision}",
        "1",
        "distance of the residual stream for n and n + 1 symbols, before the final norm",
        "Σ |x − y|",
        BARBERO,
        "layer",
    ),
    Quantity(
        "collapse",
        "stream_linf_{at}{precision}",
        "1",
        "the same, the largest difference of a number",
        "max |x − y|",
        BARBERO,
        "layer",
    ),
    Quantity(
        "collapse",
        "stream_relative_{at}{precision}",
        "1",
        "the largest difference as a share of the largest number; the line for bfloat16 is at 2⁻⁷",
        "max |x − y| / max(|x|, |y|)",
        "ours",
        "layer",
    ),
    Quantity(
        "collapse",
        "final_l1_{at}{precision}",
        "1",
        "distance of the states after the final norm",
        "Σ |x − y|",
        BARBERO,
    ),
    Quantity(
        "collapse",
        "final_linf_{at}{precision}",
        "1",
        "the same, the largest difference of a number",
        "max |x − y|",
        BARBERO,
    ),
    Quantity(
        "collapse",
        "final_relative_{at}{precision}",
        "1",
        "the largest difference as a share of the largest number",
        "max |x − y| / max(|x|, |y|)",
        "ours",
    ),
    Quantity(
        "collapse",
        "stream_equal_{at}_bfloat16",
        "1",
        "share of the stream's numbers that are equal for n and n + 1 symbols in bfloat16",
        "mean(x = y)",
        "ours",
        "layer",
    ),
    Quantity(
        "collapse",
        "final_equal_{at}_bfloat16",
        "1",
        "the same after the final norm",
        "mean(x = y)",
        "ours",
    ),
    Quantity(
        "squashing",
        "slope",
        "1",
        "norm of the derivative of the logit of the answer's first token by all embeddings",
        "‖∂z/∂e‖",
        BARBERO,
    ),
    Quantity(
        "squashing",
        "row_slope",
        "1",
        "the same by the embeddings of the tokens that end a symbol",
        "‖∂z/∂e‖",
        BARBERO,
    ),
    Quantity(
        "squashing",
        "tenth_{tenth}",
        "1",
        "mean norm of the derivative in a tenth of the row, as a multiple of the row's mean",
        "mean‖∂z/∂eᵢ‖ / mean‖∂z/∂e‖",
        BARBERO,
    ),
    Quantity(
        "squashing",
        "first_tenth",
        "1",
        "share of the row's norms that belongs to its first tenth; 0.1 where all are equal",
        "Σ‖∂z/∂eᵢ‖ / Σ‖∂z/∂e‖",
        BARBERO,
    ),
    Quantity(
        "squashing",
        "last_tenth",
        "1",
        "the same of its last tenth",
        "Σ‖∂z/∂eᵢ‖ / Σ‖∂z/∂e‖",
        BARBERO,
    ),
    Quantity(
        "squashing",
        "first_to_last",
        "1",
        "the first tenth's share divided by the last one's",
        "first_tenth / last_tenth",
        BARBERO,
    ),
    Quantity(
        "attention",
        "sinks_{limit}",
        "1",
        "share of heads whose mean weight on the first token exceeds the limit",
        "mean(first_token > ε)",
        GU,
    ),
    Quantity(
        "attention",
        "first_token",
        "1",
        "mean weight on the first token, over all positions but the first",
        "mean a(t, 0)",
        GU,
        "layer and head",
    ),
    Quantity(
        "attention",
        "previous",
        "1",
        "mean weight on the token before, over the row",
        "mean a(t, t − 1)",
        "ours",
        "layer and head",
    ),
    Quantity(
        "attention",
        "diagonal",
        "1",
        "mean weight of a token on itself, over the row",
        "mean a(t, t)",
        "ours",
        "layer and head",
    ),
    Quantity(
        "attention",
        "entropy",
        "nats",
        "mean entropy of the weights, over the row",
        "−Σ a ln a",
        VELICKOVIC,
        "layer and head",
    ),
    Quantity(
        "attention",
        "entropy_share",
        "1",
        "the same as a share of the largest possible one",
        "−Σ a ln a / ln(t + 1)",
        VELICKOVIC,
        "layer and head",
    ),
    Quantity(
        "attention",
        "largest",
        "1",
        "mean of the largest weight, over the row",
        "max a(t, ·)",
        VELICKOVIC,
        "layer and head",
    ),
    Quantity(
        "attention",
        "largest_end",
        "1",
        "the largest weight at the end",
        "max a(T, ·)",
        VELICKOVIC,
        "layer and head",
    ),
    Quantity(
        "attention",
        "entropy_end",
        "nats",
        "entropy of the weights at the end",
        "−Σ a ln a",
        VELICKOVIC,
        "layer and head",
    ),
    Quantity(
        "attention",
        "attended_end",
        "tokens",
        "tokens that the end attends to, in effect",
        "exp(entropy_end)",
        "ours",
        "layer and head",
    ),
    Quantity(
        "attention",
        "row_weight_end",
        "1",
        "weight of the end on the tokens of the row",
        "Σ a(T, row)",
        "ours",
        "layer and head",
    ),
    Quantity("residual", "norm", "1", "mean norm of the row's states", "mean ‖x‖", DONG, "layer"),
    Quantity(
        "residual",
        "effective_rank",
        "1",
        "exp of the entropy of the shares of the singular values of the row's states",
        "exp(−Σ p ln p), p = σ / Σσ",
        "Roy & Vetterli 2007",
        "layer",
    ),
    Quantity(
        "residual",
        "rank_one_distance",
        "1",
        "distance of the row's states to their mean, as a share of their size; 0 where all are "
        "equal",
        "‖X − 1x̄ᵀ‖ / ‖X‖",
        DONG,
        "layer",
    ),
    Quantity(
        "lipschitz",
        "largest_slope",
        "1",
        "largest singular value of the derivative of all logits by all embeddings, at the prompt, "
        "by power iteration; a lower bound of the Lipschitz constant",
        "σ₁(∂z/∂e)",
        "[Kim et al. 2021](https://arxiv.org/abs/2006.04710)",
    ),
    Quantity(
        "rotary",
        "query_norm",
        "1",
        "mean norm of a turned pair in queries, over heads and the row",
        "mean ‖q pair‖",
        "[Barbero et al. 2025](https://arxiv.org/abs/2410.06205)",
        "layer and pair",
    ),
    Quantity(
        "rotary",
        "key_norm",
        "1",
        "the same in keys",
        "mean ‖k pair‖",
        "[Barbero et al. 2025](https://arxiv.org/abs/2410.06205)",
        "layer and pair",
    ),
    Quantity(
        "rotary",
        "query_norm_fast",
        "1",
        "share of the pairs' norms in queries that belongs to the faster half of the pairs; 0.5 "
        "where all are equal",
        "Σ fast ‖q pair‖ / Σ ‖q pair‖",
        "[Barbero et al. 2025](https://arxiv.org/abs/2410.06205)",
        "layer",
    ),
    Quantity(
        "rotary",
        "key_norm_fast",
        "1",
        "the same in keys",
        "Σ fast ‖k pair‖ / Σ ‖k pair‖",
        "[Barbero et al. 2025](https://arxiv.org/abs/2410.06205)",
        "layer",
    ),
    Quantity(
        "counter",
        "error",
        "symbols",
        "mean error of the count that a linear map reads off the states at the symbols, in rows of "
        "at most this length, on blocks of lengths that the map was not fitted to",
        "mean |ĉ − c|",
        "[Dai & Fan 2026](https://arxiv.org/abs/2605.02028)",
        "layer",
    ),
    Quantity(
        "counter",
        "within_half",
        "1",
        "share of these counts that are off by a half at most",
        "mean(|ĉ − c| ≤ ½)",
        "ours",
        "layer",
    ),
    Quantity(
        "counter",
        "r2",
        "1",
        "share of the variance of the counts that is read",
        "1 − Σ(ĉ − c)² / Σ(c − c̄)²",
        "ours",
        "layer",
    ),
    Quantity(
        "counter",
        "position_error",
        "symbols",
        "as `error`, from the position alone; the same holds for `position_within_half` and "
        "`position_r2`",
        "mean |ĉ − c|",
        "ours",
    ),
    Quantity(
        "counter",
        "position_within_half",
        "1",
        "see `position_error`",
        "mean(|ĉ − c| ≤ ½)",
        "ours",
    ),
    Quantity(
        "counter",
        "position_r2",
        "1",
        "see `position_error`",
        "1 − Σ(ĉ − c)² / Σ(c − c̄)²",
        "ours",
    ),
    Quantity(
        "maps",
        "spectral_norm_{map}",
        "1",
        "largest singular value of a linear map",
        "σ₁(W)",
        DONG,
        "layer",
    ),
)
MEASURES = tuple(dict.fromkeys(quantity.measure for quantity in QUANTITIES))
SLOW = ("lipschitz",)
"""Measures that take longer than all others together; taken only if they are named."""


def check_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The named measures, in their own order: all but the slow ones where none is named, and all of
    them for the name `all`.

    Raises:
        UsageError: there is no such measure.
    """
    for name in names:
        if name not in (*MEASURES, "all"):
            of = {quantity.measure for quantity in QUANTITIES if quantity.name == name}
            known = f"it is a quantity of {' and '.join(sorted(of))}" if of else ""
            raise UsageError(f"no measure {name!r}; {known or did_you_mean(name, MEASURES)}")
    if not names:
        return tuple(name for name in MEASURES if name not in SLOW)
    return tuple(name for name in MEASURES if name in names or "all" in names)


def _pattern(quantity: Quantity) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)\}", quantity.name)
    pattern = "".join(
        (f"(?:{'|'.join(map(re.escape, VARIANTS[piece]))})" if piece in VARIANTS else r"\w+")
        if number % 2
        else re.escape(piece)
        for number, piece in enumerate(pieces)
    )
    return re.compile(pattern)


_PATTERNS = [(quantity, _pattern(quantity)) for quantity in QUANTITIES]


def quantity_of(measure: str, name: str) -> Quantity | None:
    """The quantity of a row of `probe.csv`; `None` if there is none with that name."""
    return next(
        (one for one, names in _PATTERNS if one.measure == measure and names.fullmatch(name)), None
    )


def unit_of(measure: str, name: str) -> str:
    """The unit of a quantity; empty for a quantity of another version."""
    quantity = quantity_of(measure, name)
    return "" if quantity is None else quantity.unit
