"""The columns of all tables, in order.

In tables with one column for each axis, those columns follow `RUN`. An axis cannot have the name of
a column. This module imports nothing heavy, so that task files are checked without pandas.
"""

from __future__ import annotations

from eyechart.harness.score.outcomes import OUTCOMES
from eyechart.harness.settings.judging import OF_RUNS


def _with_ci(name: str) -> tuple[str, str, str]:
    return name, f"{name}_ci_low", f"{name}_ci_high"


def _length(name: str) -> tuple[str, ...]:
    value, *ends = _with_ci(name)
    return value, f"{name}_bound", *ends


DIGITS = 6
"""Decimals in all files: of accuracies, areas, octaves and probabilities."""
RUN = ("model", "task", "task_version")
"""The run of a row; the columns of the axes follow."""
MEASURES = (
    *("accuracy", "ci_low", "ci_high", "accuracy_of_answered"),
    *("mean_abs_error", "mean_signed_error", "off_by_one"),
    *("prompt_tokens", "output_tokens", "thinking_tokens"),
)
LINE = ("length", "length_low", "length_high")
"""The line of a row: its nominal length, and the shortest and longest length of its band."""
DRAWS = (
    *("draws", "pass_at_draws", "pass_at_draws_rows", "majority", "majority_ties"),
    *("row_variance", "draw_variance"),
)
"""How often each sample is asked, and what its draws say; empty where that is once."""
REACHES = "reaches"
"""Last column of `table.csv`: the probability that the accuracy reaches the threshold."""
CELLS = (*LINE, "n", *OUTCOMES, *MEASURES, *DRAWS)
"""Columns of `table.csv` after the axes."""

SIGNS = (
    *("median_abs_error", "round_answers", "modal_answer", "modal_share"),
    *("collapsed", "mean_first_divergence"),
)
"""Patterns in the wrong answers of a cell."""
CONFIDENCE = (
    *("confidence", *_with_ci("overconfidence")),
    *(*_with_ci("brier"), *_with_ci("calibration_error")),
)
"""How sure a model is in the forced choices of a cell."""
ORDER = (*_with_ci("ordered"), "ordered_p", *_with_ci("resolution"), "pattern")
"""How the answers of a line order its rows, or tell them from others; empty where they are neither
counts nor copies nor choices with a control."""
D_PRIME = _with_ci("d_prime")
"""How well the rows of a line are told from those of the condition's control."""
DIAGNOSIS = (*LINE, "n", *SIGNS, *ORDER, *D_PRIME, *CONFIDENCE)
"""Columns of `diagnosis.csv` after the axes."""

ESTIMATE = (
    *_length("effective_length"),
    *("limited_by", "rows", "one_threshold", "lapse"),
    *_length("tested_length"),
    *_with_ci("area"),
)
"""Columns of an effective length."""
ESTIMATE_TEXTS = ("effective_length_bound", "limited_by", "one_threshold", "tested_length_bound")
"""The columns of an effective length that are texts."""
NEAR_APART = (*_length("near_length"), *_length("apart_length"))
"""Columns of the lengths of near answers, and of rows told apart; see `ORDER`."""
CAPACITY = ("capacity", "capacity_bound", "capacity_fails_at")
"""Last columns of `effective_length.csv` of a task that asks for the statistic `capacity`."""
TOKENS = (
    *(*_with_ci("tokens_a_symbol"), "tokens_a_symbol_source"),
    *_with_ci("effective_length_tokens"),
)
"""Columns of tokens a symbol, and of an effective length in tokens of the row."""
TOKEN_TEXTS = ("tokens_a_symbol_source",)
"""The columns of `TOKENS` that are texts."""
NUMBERS = tuple(
    name
    for name in (*ESTIMATE, *NEAR_APART, *TOKENS)
    if name not in (*ESTIMATE_TEXTS, *TOKEN_TEXTS) and not name.endswith("_bound")
)
"""The columns of `ESTIMATE`, `NEAR_APART` and `TOKENS` that are numbers."""
ROW_TOKENS = "row_tokens"
"""Column of `table.csv`: mean tokens of a row."""
COST = ("cost_usd", "prices_of")
"""Columns of what the replies behind an effective length cost: dollars, and the prices' date."""
OVERALL = ("overall_accuracy", "overall_ci_low", "overall_ci_high")
"""Columns of the accuracy over all lengths of a condition."""
READ = ("read", "chance", *_with_ci("calibration_error"))
"""Columns of how answers were got; of forced choices the share that guesses have right, and the
expected calibration error."""
EFFECTIVE_LENGTH = (
    *("adaptive", "n", "not_scored", *READ, *OVERALL, *OF_RUNS),
    *(*ESTIMATE, *NEAR_APART, "error_growth", *TOKENS, *COST),
)
"""Columns of `effective_length.csv` after the axes."""

GROUPS = ("metadata", "metadata_value", "n", *OUTCOMES, "accuracy", "ci_low", "ci_high")
"""Columns of `by_NAME.csv`, which `bench score --by NAME` writes, after the axes."""

COMPARISON = (
    *("task", "task_version", "condition", "first", "second", "measure", *LINE, "n", "n_second"),
    *("value_first", "value_first_bound", "value_second", "value_second_bound"),
    *("limited_by_first", "limited_by_second", "difference", "difference_bound"),
    *("ci_low", "ci_low_bound", "ci_high", "ci_high_bound", "ci90_low", "ci90_high"),
    *(*_with_ci("factor"), "only_first", "only_second", "p", "p_holm"),
    *("further", "second_is", "margin", "margin_factor", "unit"),
    *("tokens_a_symbol_first", "tokens_a_symbol_second", "tokens_a_symbol_source"),
)
KINDS = ASKED, RECORDED, REPORTED = ("asked", "recorded", "reported")
"""Where the numbers of a leaderboard's row come from: replies to us, replies that somebody else
collected, or figures that somebody else published."""
OF_MODEL = ("vendor", "parameters_billion", "open_weights")
"""Columns of what is known of a model. Nothing here fills them: whoever publishes does, and they
stay where a newer run of the model replaces its row."""
BY_TEST = ("further_than", "less_far_than", "tested_against")
"""Columns of the standing of a model: numbers of other models."""
COST_A_REPLY = "cost_a_reply_usd"
"""Column of dollars of a reply: the mean of a run's own rows, or, beside a length, those there."""
COST_BOUND = "cost_a_reply_bound"
"""Column after it, beside a length: `>` where they are at least so many dollars, `<` at most."""
MANY_REPLIES = 1000
"""A table shows what this many replies cost: one costs too little to be read."""
LEADERBOARD = (
    *("task", "task_version", "condition", "model", *OF_MODEL),
    *("kind", "default", "control", "adaptive", "n", "not_scored", *OF_RUNS),
    *(*ESTIMATE, *NEAR_APART, *BY_TEST, "capacity", *TOKENS, *COST),
    *(
        COST_A_REPLY,
        "source",
        "collected",
        "settings",
        "fingerprint",
        "date",
        "server",
        "software",
        "command",
    ),
)
ACCURACY_AT = "accuracy_at_"
"""Prefix of the leaderboard's last columns, one for each nominal length."""
RIGHT_AT = (*_with_ci("right_at_{}"), "reaches_at_{}", "reaches_at_{}_bound")
"""Columns of the leaderboard before them, for each length in `at`."""
REACHES_IN = "reaches_at_{}_in_{}"
"""Column of the probability that a row of so many symbols, given in so many pieces, is right at
least so often as the threshold says."""
COST_AT = ("cost_at_{}", "cost_at_{}_bound")
"""Columns of dollars of a reply there, for each of them."""

_WITH_AXES = {
    "table.csv": (*RUN, *CELLS, ROW_TOKENS, REACHES),
    "effective_length.csv": (*RUN, *EFFECTIVE_LENGTH, *CAPACITY),
    "diagnosis.csv": (*RUN, *DIAGNOSIS),
    "what 'bench score --by' writes": (*RUN, *GROUPS),
    "a report's tables": ("scored", "characters"),
}
"""Table with one column for each axis -> its columns. For a report: the names that are in no file.
"""
_WITHOUT_AXES = {
    "leaderboard.csv": LEADERBOARD,
    "what 'bench compare' writes": COMPARISON,
    "a report's differences": ("axis", "with"),
}


def table_of(name: str, *, with_axes: bool = False) -> str | None:
    """A table, `with_axes` one with columns for axes, that has the column `name`; or `None`."""
    if (
        name.startswith((ACCURACY_AT, *(one.partition("{")[0] for one in (*RIGHT_AT, *COST_AT))))
        and not with_axes
    ):
        return "leaderboard.csv"
    tables = _WITH_AXES if with_axes else _WITH_AXES | _WITHOUT_AXES
    return next((table for table, columns in tables.items() if name in columns), None)
