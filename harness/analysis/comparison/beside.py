"""The near and the apart length of both sides of a comparison; their difference is not tested."""

from __future__ import annotations

from collections.abc import Iterator

from eyechart.harness.analysis.comparison.comparison import ConditionComparison
from eyechart.harness.analysis.length.effective_length import length_text
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.order.words import answers_of, words_of

_UNTESTED = "not tested"


def beside(
    compared: ConditionComparison,
) -> Iterator[tuple[str, Bound | None, Bound | None]]:
    """`near_length` and `apart_length` of both sides, `None` where they are not known; left out
    where the answers of a side have none. A saved baseline has no answers.
    """
    if len(_answers(compared)) != 1:
        return
    near = [side.near_length for side in compared.sides]
    orders = [side.order for side in compared.sides]
    if None not in near:
        first, second = (one.length for one in near if one)
        yield "near_length", first, second
    if None not in orders:
        first, second = (one.apart.length for one in orders if one)
        yield "apart_length", first, second


def _answers(compared: ConditionComparison) -> set[str]:
    return {answers_of(side.scored) for side in compared.sides if side.scored}


def beside_rows(compared: ConditionComparison) -> list[tuple[str, str, str, str]]:
    """`near (5 %)`, both lengths, and that they are not tested."""
    near = compared.sides[0].run.settings.near
    words = words_of(_answers(compared))
    heads = {"near_length": f"near ({100 * near:g} %)", "apart_length": words.apart_head}
    return [
        (heads[name], length_text(first), length_text(second), _UNTESTED)
        for name, first, second in beside(compared)
    ]
