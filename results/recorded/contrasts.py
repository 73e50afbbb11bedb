"""Tests of two variants against each other, and what they are about."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from eyechart.harness.analysis.comparison.paired_curves import holm, mcnemar
from results.recorded.variants import USUAL, Variant

Strata: TypeAlias = Sequence[tuple[int, int, int, int]]
"""For each line: right replies and replies of the first variant, and of the second."""
_DRAWS = 10_000
"""Permutations of a rank correlation."""


@dataclass(frozen=True)
class Contrast:
    """Two variants on the lines that both have, and whether they differ."""

    question: str
    first: str
    second: str
    lines: tuple[int, ...]
    n: tuple[int, int]
    right: tuple[int, int]
    only: tuple[int, int] | None
    """Of pairs: those in which the first alone, and the second alone, is right."""
    p: float
    strata: Strata = ()
    """Of an unpaired test: its counts on each line."""

    @property
    def is_paired(self) -> bool:
        """Whether both were asked the same rows."""
        return self.only is not None

    @property
    def shares(self) -> tuple[float, float]:
        """The accuracies, in percent."""
        return 100 * self.right[0] / self.n[0], 100 * self.right[1] / self.n[1]


def contrast(question: str, first: Variant, second: Variant) -> Contrast:
    """First against second: by McNemar's exact test on the lines where both were asked the same
    rows; where there is none, by Fisher's exact test stratified by line on all common lines.
    """
    common = sorted(set(first.rows) & set(second.rows))
    same = [centre for centre in common if _same_rows(first, second, centre)]
    scored = [
        {
            centre: {
                trial: outcome == "correct"
                for trial, (outcome, _) in one.outcomes.get(centre, {}).items()
                if outcome != "error"
            }
            for centre in common
        }
        for one in (first, second)
    ]
    left, right = scored
    if same:
        pairs = [
            (left[centre][trial], right[centre][trial])
            for centre in same
            for trial in left[centre].keys() & right[centre].keys()
        ]
        counts = Counter(pairs)
        only = counts[True, False], counts[False, True]
        sums = sum(one for one, _ in pairs), sum(other for _, other in pairs)
        both = len(pairs), len(pairs)
        names = question, first.name, second.name
        p = mcnemar(*only)
        return Contrast(*names, tuple(same), both, sums, only, p)
    strata = [
        (
            sum(left[centre].values()),
            len(left[centre]),
            sum(right[centre].values()),
            len(right[centre]),
        )
        for centre in common
    ]
    return Contrast(
        *(question, first.name, second.name, tuple(common)),
        (sum(one[1] for one in strata), sum(one[3] for one in strata)),
        (sum(one[0] for one in strata), sum(one[2] for one in strata)),
        None,
        stratified_fisher(strata),
        strata,
    )


def _same_rows(first: Variant, second: Variant, centre: int) -> bool:
    """Whether both were asked the same rows in the same order: item, delimiter and counts."""
    rows = [
        {trial: row["expected"] for trial, row in one.rows[centre].items()}
        for one in (first, second)
    ]
    return first.writing == second.writing and rows[0] == rows[1]


def stratified_fisher(strata: Strata) -> float:
    """Two-sided p-value of the exact conditional test of no difference in any stratum.

    A stratum is (right of first, n of first, right of second, n of second). Given the sums of a
    stratum the number right of the first is hypergeometric; their sum over the strata is compared
    with its distribution. With one stratum it is Fisher's exact test.
    """
    distribution, observed, least = np.ones(1), 0, 0
    for right, n, other_right, other_n in strata:
        total = right + other_right
        low, high = max(0, total - other_n), min(n, total)
        ways = [math.comb(n, k) * math.comb(other_n, total - k) for k in range(low, high + 1)]
        distribution = np.convolve(distribution, np.array(ways, float) / sum(ways))
        observed, least = observed + right, least + low
    chance = distribution[observed - least]
    return float(min(1.0, distribution[distribution <= chance * (1 + 1e-9)].sum()))


SIZES = (
    ("gpt-5.4", "gpt-5.4-mini"),
    ("gpt-5.4-mini", "gpt-5.4-nano"),
    ("gpt-5", "gpt-5-mini"),
    ("gpt-5-mini", "gpt-5-nano"),
    ("gpt-4.1", "gpt-4.1-mini"),
    ("gpt-4.1-mini", "gpt-4.1-nano"),
    ("gpt-4o", "gpt-4o-mini"),
    ("gemini-2.5-pro", "gemini-2.5-flash"),
    ("gemini-2.5-flash", "gemini-2.5-flash-lite"),
    ("claude-opus-4-20250514", "claude-sonnet-4-20250514"),
    ("claude-opus-4-6", "claude-sonnet-4-6"),
    ("claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"),
    ("meta-llama/llama-3.1-70b-instruct", "meta-llama/llama-3.1-8b-instruct"),
    ("google/gemma-3-27b-it", "google/gemma-3-4b-it"),
    ("qwen/qwen3-32b", "qwen/qwen3-8b"),
    ("qwen/qwen3.5-397b-a17b", "qwen/qwen3.5-35b-a3b"),
    ("qwen/qwen3-coder", "qwen/qwen3-coder-30b-a3b-instruct"),
    ("mistralai/mixtral-8x22b-instruct", "mistralai/mixtral-8x7b-instruct"),
    ("z-ai/glm-4.5", "z-ai/glm-4.5-air"),
)
"""A model and a smaller one of the same generation."""
REASONING = (
    ("anthropic/claude-3.7-sonnet:thinking", "anthropic/claude-3.7-sonnet"),
    ("deepseek/deepseek-r1", "deepseek/deepseek-chat"),
    ("deepseek/deepseek-r1-0528", "deepseek/deepseek-chat-v3-0324"),
    ("moonshotai/kimi-k2-thinking", "moonshotai/kimi-k2-0905"),
    ("qwen/qwen3-235b-a22b-thinking-2507", "qwen/qwen3-235b-a22b-2507"),
    ("qwen/qwen3-30b-a3b-thinking-2507", "qwen/qwen3-30b-a3b-instruct-2507"),
    ("qwen/qwen3-next-80b-a3b-thinking", "qwen/qwen3-next-80b-a3b-instruct"),
)
"""A variant that thinks and its twin that does not."""
GENERATIONS = (
    ("claude-haiku-4-5-20251001", "anthropic/claude-3.5-haiku"),
    ("claude-opus-4-1-20250805", "claude-opus-4-20250514"),
    ("claude-opus-4-6", "claude-opus-4-1-20250805"),
    ("claude-sonnet-4-6", "claude-sonnet-4-5-20250929"),
    ("gemini-3-flash-preview", "gemini-2.5-flash"),
    ("gemini-3.1-pro-preview", "gemini-3-pro-preview"),
    ("gpt-4.1", "gpt-4o"),
    ("gpt-4o", "gpt-4-turbo"),
    ("gpt-5", "gpt-4.1"),
    ("gpt-5.2", "gpt-5.1"),
    ("gpt-5.4", "gpt-5.2"),
)
"""A model and the one before it."""


def contrasts(found: Sequence[Variant]) -> list[tuple[Contrast, float]]:
    """Every contrast with its p-value, corrected by Holm's method for all of them."""
    models = {one.model: one for one in found if one.set != "stimulus"}
    writings: dict[str, dict[str, Variant]] = defaultdict(dict)
    for one in found:
        if one.set == "stimulus":
            writings[one.model][one.writing] = one
    made = [contrast("size", models[first], models[second]) for first, second in SIZES]
    made += [contrast("generation", models[first], models[other]) for first, other in GENERATIONS]
    made += [contrast("reasoning", models[first], models[second]) for first, second in REASONING]
    for of_model in writings.values():
        made += [
            contrast("delimiter" if writing.startswith("a, ") else "item", of_model[USUAL], other)
            for writing, other in of_model.items()
            if writing != USUAL
        ]
    made += [contrast("retest", models[model], of[USUAL]) for model, of in writings.items()]
    return list(zip(made, holm([one.p for one in made]), strict=True))


def contrast_rows(made: Sequence[tuple[Contrast, float]]) -> list[dict[str, Any]]:
    """The contrasts as a table."""
    return [
        {
            "question": one.question,
            "first": one.first,
            "second": one.second,
            "rows": "the same" if one.is_paired else "others",
            "test": "McNemar" if one.is_paired else "stratified Fisher",
            "lines": " ".join(map(str, one.lines)),
            "n_first": one.n[0],
            "n_second": one.n[1],
            "right_first": one.right[0],
            "right_second": one.right[1],
            "only_first": "" if one.only is None else one.only[0],
            "only_second": "" if one.only is None else one.only[1],
            "p": f"{one.p:.3g}",
            "p_holm": f"{corrected:.3g}",
        }
        for one, corrected in made
    ]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Spearman's coefficient and its two-sided p-value by permutation."""
    ranks = [_ranks(np.array(values, float)) for values in (first, second)]
    observed = float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    rng = np.random.default_rng(0)
    drawn = [np.corrcoef(ranks[0], rng.permutation(ranks[1]))[0, 1] for _ in range(_DRAWS)]
    larger = int((np.abs(drawn) >= abs(observed) - 1e-12).sum())
    return observed, (larger + 1) / (_DRAWS + 1)


def _ranks(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, Any]:
    return np.array([(values < one).sum() + ((values == one).sum() - 1) / 2 for one in values])
