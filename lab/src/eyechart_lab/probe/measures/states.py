"""Keeps the states of a pass at some positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eyechart_lab.probe.inside import Array, Event, Positions, Wants, Watcher


def shown_of(wants: Wants, start: int, count: int) -> dict[Event, Positions]:
    """The positions (P,) that a pass over those from `start` to `count` shows at each event."""
    found = {}
    for event, wanted in wants.items():
        at = np.arange(start, count) if wanted is None else np.asarray(wanted, dtype=np.intp)
        at = at[(start <= at) & (at < count)]
        if len(at):
            found[event] = at
    return found


class WatcherGroup(Watcher):
    """Passes events on to several watchers, to each the positions that it wants."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers
        self.wants = _joined([watcher.wants for watcher in watchers])

    def _chosen(self, event: Event, at: Positions) -> Iterator[tuple[Watcher, Positions | slice]]:
        """The watchers that want any of these positions, and which of them."""
        for watcher in self._watchers:
            if event not in watcher.wants:
                continue
            wanted = watcher.wants[event]
            if wanted is None or len(wanted) == 0:
                places: Positions | slice = slice(None if wanted is None else 0)
            else:
                places = np.flatnonzero(np.isin(at, wanted, assume_unique=True))
                if len(places) == len(at):
                    places = slice(None)
            if len(at[places]):
                yield watcher, places

    def residual(self, layer: int, at: Positions, states: Array) -> None:
        for watcher, places in self._chosen("residual", at):
            watcher.residual(layer, at[places], states[places])

    def final(self, at: Positions, states: Array) -> None:
        for watcher, places in self._chosen("final", at):
            watcher.final(at[places], states[places])

    def projections(
        self, layer: int, at: Positions, queries: Array, keys: Array, values: Array
    ) -> None:
        for watcher, places in self._chosen("projections", at):
            watcher.projections(layer, at[places], queries[places], keys[places], values[places])

    def attention(self, layer: int, at: Positions, weights: Array) -> None:
        for watcher, places in self._chosen("attention", at):
            watcher.attention(layer, at[places], weights[:, places])

    def heads(self, layer: int, at: Positions, outputs: Array) -> None:
        for watcher, places in self._chosen("heads", at):
            watcher.heads(layer, at[places], outputs[places])


def _joined(all_wants: Sequence[Wants]) -> dict[Event, Sequence[int] | None]:
    """What any of them wants."""
    joined: dict[Event, Sequence[int] | None] = {}
    for event in dict.fromkeys(event for wants in all_wants for event in wants):
        wanted = [wants[event] for wants in all_wants if event in wants]
        places = [one for one in wanted if one is not None]
        joined[event] = (
            None if len(places) < len(wanted) else sorted(set().union(*map(set, places)))
        )
    return joined


class PrefixWatcher(WatcherGroup):
    """What a watcher of one prompt wants of the beginning that a longer prompt has too."""

    def __init__(self, watcher: Watcher, upto: int) -> None:
        super().__init__([watcher])
        self.wants = {
            event: [place for place in (range(upto) if wanted is None else wanted) if place < upto]
            for event, wanted in watcher.wants.items()
        }


class States(Watcher):
    """The states at some positions: (P, C) of each stream, (P, H, D) of each layer's heads."""

    def __init__(self, positions: Sequence[int], wants: frozenset[Event]) -> None:
        """`positions`, ascending: the last one is the end, whose attention weights are kept."""
        self.wants: Mapping[Event, Sequence[int] | None] = {
            event: sorted(set(positions[-1:] if event == "attention" else positions))
            for event in sorted(wants)
        }
        self._positions = np.array(positions)
        self.streams: dict[int, Array] = {}
        self.outputs: dict[int, Array] = {}
        self.ended: Array | None = None
        """The states after the final norm."""
        self.weights: dict[int, Array] = {}
        """(H, T): each layer's attention weights at the last position, over the places up to it."""

    def _put(self, kept: Array | None, at: Positions, shown: Array) -> Array:
        """Adds what is shown of some positions; a position may be wanted twice."""
        if kept is None:
            kept = np.zeros((len(self._positions), *shown.shape[1:]), np.float32)
        for place, values in zip(at, shown, strict=True):
            kept[self._positions == place] = values
        return kept

    def residual(self, layer: int, at: Positions, states: Array) -> None:
        self.streams[layer] = self._put(self.streams.get(layer), at, states)

    def final(self, at: Positions, states: Array) -> None:
        self.ended = self._put(self.ended, at, states)

    def heads(self, layer: int, at: Positions, outputs: Array) -> None:
        self.outputs[layer] = self._put(self.outputs.get(layer), at, outputs)

    def attention(self, layer: int, at: Positions, weights: Array) -> None:
        end = int(at[-1]) + 1  # an answer may stand behind it
        self.weights[layer] = weights[:, -1, :end].copy()
