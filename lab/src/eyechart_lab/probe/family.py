"""Passes over prompts that begin alike, such as the lengths of one row: what several begin with is
computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eyechart_lab.probe.inside import (
    Array,
    Inside,
    Precision,
    PromptCache,
    Watcher,
    shared,
)
from eyechart_lab.probe.measures.attention import Attention
from eyechart_lab.probe.measures.states import PrefixWatcher, WatcherGroup


@dataclass(eq=False, slots=True)
class Prompt:
    """A prompt of a family, and what watches its pass."""

    ids: Sequence[int]
    last: int = 1
    """Positions at the end whose logits are wanted."""
    watchers: list[Watcher] = field(default_factory=list)
    attention: Attention | None = None
    logits: Array | None = None
    """(last, V), after the pass."""

    @property
    def all_watchers(self) -> list[Watcher]:
        return [*self.watchers, *([] if self.attention is None else [self.attention])]


def run(inside: Inside, prompts: Sequence[Prompt], precision: Precision) -> Iterator[Prompt]:
    """Makes the pass of each prompt; gives each prompt when its watchers have seen all.

    The longest prompt comes first. Its pass shows the watchers of the others what they want of the
    common beginning, and their own passes go on from there.
    """

    def forward(prompt: Prompt, watchers: Sequence[Watcher], trunk: PromptCache | None) -> None:
        watcher = WatcherGroup(watchers) if watchers else None
        prompt.logits = inside.forward(
            prompt.ids, watcher, precision=precision, last=prompt.last, trunk=trunk
        )

    if len(prompts) <= 1 or not inside.anatomy.shares:
        for prompt in prompts:
            forward(prompt, prompt.all_watchers, None)
            yield prompt
        return
    longest = max(prompts, key=lambda prompt: len(prompt.ids))
    others = [prompt for prompt in prompts if prompt is not longest]
    if longest.attention is None and any(prompt.attention for prompt in others):
        longest.attention = Attention((), len(longest.ids))
    early: list[Watcher] = []
    starts = []
    for prompt in others:
        start = min(shared(longest.ids, prompt.ids), len(prompt.ids) - prompt.last)
        early += [PrefixWatcher(watcher, start) for watcher in prompt.watchers]
        starts.append(start)
    trunk = PromptCache()
    forward(longest, [*longest.all_watchers, *early], trunk)
    yield longest
    for prompt, start in zip(others, starts, strict=True):
        if prompt.attention is not None and longest.attention is not None:
            prompt.attention.resume(longest.attention, start)
        forward(prompt, prompt.all_watchers, trunk)
        yield prompt
