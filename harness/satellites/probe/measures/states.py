"""Keeps the states of a pass at some positions."""

from __future__ import annotations

from collections.abc import Sequence

from eyechart.harness.satellites.probe.inside import Array, Event


class Watch:
    """A watcher that asks for nothing; measures override the methods that they need."""

    wants: frozenset[Event] = frozenset()

    def residual(self, layer: int, states: Array) -> None: ...

    def final(self, states: Array) -> None: ...

    def projections(self, layer: int, queries: Array, keys: Array, values: Array) -> None: ...

    def attention(self, layer: int, first: int, weights: Array) -> None: ...

    def heads(self, layer: int, outputs: Array) -> None: ...


class Several:
    """Passes events on to several watchers."""

    def __init__(self, watchers: Sequence[Watch]) -> None:
        self._watchers = watchers
        self.wants = frozenset[Event]().union(*(watcher.wants for watcher in watchers))

    def _that_want(self, event: Event) -> list[Watch]:
        return [watcher for watcher in self._watchers if event in watcher.wants]

    def residual(self, layer: int, states: Array) -> None:
        for watcher in self._that_want("residual"):
            watcher.residual(layer, states)

    def final(self, states: Array) -> None:
        for watcher in self._that_want("final"):
            watcher.final(states)

    def projections(self, layer: int, queries: Array, keys: Array, values: Array) -> None:
        for watcher in self._that_want("projections"):
            watcher.projections(layer, queries, keys, values)

    def attention(self, layer: int, first: int, weights: Array) -> None:
        for watcher in self._that_want("attention"):
            watcher.attention(layer, first, weights)

    def heads(self, layer: int, outputs: Array) -> None:
        for watcher in self._that_want("heads"):
            watcher.heads(layer, outputs)


class States(Watch):
    """The states at some positions: (P, C) of each stream, (P, H, D) of each layer's heads."""

    def __init__(self, positions: Sequence[int], wants: frozenset[Event]) -> None:
        self._positions = list(positions)
        self.wants = wants
        self.streams: dict[int, Array] = {}
        self.outputs: dict[int, Array] = {}
        self.ended: Array | None = None
        """The states after the final norm."""
        self.weights: dict[int, Array] = {}
        """(H, T): each layer's attention weights at the last position of the prompt."""

    def residual(self, layer: int, states: Array) -> None:
        self.streams[layer] = states[self._positions]

    def final(self, states: Array) -> None:
        self.ended = states[self._positions]

    def heads(self, layer: int, outputs: Array) -> None:
        self.outputs[layer] = outputs[self._positions]

    def attention(self, layer: int, first: int, weights: Array) -> None:
        del first  # blocks ascend, so the last one stays
        self.weights[layer] = weights[:, -1].copy()
