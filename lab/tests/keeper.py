"""A watcher for tests."""

from __future__ import annotations

from eyechart_lab.probe.inside import Array, Positions, Wants, Watcher


class Keeper(Watcher):
    """Keeps everything that happens in a pass."""

    wants: Wants = dict.fromkeys(("residual", "final", "projections", "attention", "heads"))

    def __init__(self) -> None:
        self.streams: dict[int, Array] = {}
        self.ended: list[Array] = []
        self.keys: dict[int, tuple[Array, ...]] = {}
        self.weights: dict[int, list[Array]] = {}
        self.outputs: dict[int, Array] = {}

    def residual(self, layer: int, at: Positions, states: Array) -> None:
        assert len(at) == len(states)
        self.streams[layer] = states.copy()

    def final(self, at: Positions, states: Array) -> None:
        assert len(at) == len(states)
        self.ended.append(states.copy())

    def projections(
        self, layer: int, at: Positions, queries: Array, keys: Array, values: Array
    ) -> None:
        assert len(at) == len(queries)
        self.keys[layer] = (queries.copy(), keys.copy(), values.copy())

    def attention(self, layer: int, at: Positions, weights: Array) -> None:
        blocks = self.weights.setdefault(layer, [])
        blocks.append(weights.copy())
        assert at[-1] + 1 - at[0] == len(at) == weights.shape[1]

    def heads(self, layer: int, at: Positions, outputs: Array) -> None:
        assert len(at) == len(outputs)
        self.outputs[layer] = outputs.copy()
