"""Counts the tokens of some prompts of each condition, before any of them is asked.

Tokens a symbol follow from them, see `analysis.tokens_of_row`, whether replies come with usage or
not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from eyechart.harness.spec import Condition, Line, Sample
from eyechart.harness.spec.token_counts import CountedPrompt
from eyechart.providers.base import ProviderError

if TYPE_CHECKING:
    from eyechart.harness.plan.plan import Plan
    from eyechart.providers.base import Facts

_PROMPTS = 24
"""Prompts of a condition, where there are this many."""
_LINES = 3
"""Lines that they come from, if these have enough rows: the shortest, the longest and one between.
More rows say more than more lines where the tokens of rows of one length differ."""
_MOST = 4800
"""Most prompts in all."""


async def counted_prompts(
    plan: Plan, counter: Facts, known: Collection[Condition]
) -> dict[Condition, list[CountedPrompt]]:
    """Condition -> some of its prompts with their tokens, without conditions in `known`; empty
    where nothing counts tokens. Worked examples are left out: they do not grow with the row.
    """
    conditions = [condition for condition in plan.conditions if condition not in known]
    samples = [
        sample
        for condition in conditions[: _MOST // _PROMPTS]
        for sample in _chosen(plan, condition)
    ]
    try:
        counts = await counter.count_tokens([sample.question for sample in samples])
    except ProviderError:  # asking says what is wrong
        return {}
    found: dict[Condition, list[CountedPrompt]] = {}
    for sample, tokens in zip(samples, counts or (), strict=False):
        prompt = CountedPrompt(sample.index, sample.length, tokens)
        found.setdefault(sample.condition, []).append(prompt)
    return found


def _chosen(plan: Plan, condition: Condition) -> list[Sample]:
    """The first rows of a few lines, from the shortest to the longest."""
    sizes = {line: size for (one, line), size in plan.sizes.items() if one == condition}
    lines = sorted(sizes)
    rows = max((len(plan.shard.rows(size)) for size in sizes.values()), default=0)
    if not rows:
        return []
    count = max(_LINES, -(-_PROMPTS // rows))
    return [
        plan.sample(condition, line, index)
        for line in _spread(lines, count)
        for index in plan.shard.rows(sizes[line])[: -(-_PROMPTS // count)]
    ]


def _spread(lines: list[Line], count: int) -> list[Line]:
    """As many lines, evenly from the first to the last one."""
    if len(lines) <= count:
        return lines
    last = len(lines) - 1
    return [lines[round(place * last / (count - 1))] for place in range(count)]
