"""The passes through a model that its measures need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eyechart.harness.satellites.probe.inside import Array, Event, Inside, Precision
from eyechart.harness.satellites.probe.measures.attention import Attention
from eyechart.harness.satellites.probe.measures.collapse import distances, weights_apart
from eyechart.harness.satellites.probe.measures.counter import counter_readings, position_readings
from eyechart.harness.satellites.probe.measures.residual import Residual, spectral_norm
from eyechart.harness.satellites.probe.measures.rotary import Rotary
from eyechart.harness.satellites.probe.measures.squashing import along_the_row, largest_slope
from eyechart.harness.satellites.probe.measures.states import Several, States, Watch
from eyechart.harness.satellites.probe.places import Places
from eyechart.harness.satellites.probe.reading import Reading

COUNTER, MAPS = "counter", "maps"
"""Measures of a whole condition, and of the model."""
_STATES: frozenset[Event] = frozenset(["residual", "final", "heads", "attention"])
_Needs = dict[str, tuple[Event | Literal["gradients"], ...]]
NEEDS: _Needs = {
    "attention": ("attention",),
    "residual": ("residual",),
    "rotary": ("projections",),
    "squashing": ("gradients",),
    "lipschitz": ("gradients",),
    COUNTER: ("residual",),
}
"""Measure -> what a model must make readable for it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A prompt up to its answer."""

    ids: tuple[int, ...]
    """Tokens of the prompt and of the phrase before the answer."""
    answer: tuple[int, ...]
    """Tokens of the right answer; may be empty."""
    places: Places

    @property
    def at(self) -> tuple[int, int]:
        """The places of the last symbol and of the end."""
        return self.places.ends[-1], len(self.ids) - 1


@dataclass(slots=True)
class Found:
    """The values that were measured on one sample."""

    readings: dict[str, list[Reading]] = field(default_factory=dict)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Measure, and the reason why it could not be taken."""


def measure(inside: Inside, scene: Scene, twin: Scene | None, names: Sequence[str]) -> Found:
    """Takes the measures of one sample; `twin` is the same row with one symbol more.

    Memory: the stream of one layer, one block of attention, and what a measure keeps.
    """
    found = Found()
    wanted = []
    for name in names:
        if why := _why_not(inside, name, twin):
            found.left_out[name, why] += 1
        else:
            wanted.append(name)
    watchers = _watchers(inside, scene, wanted)
    collapses = twin is not None and "collapse" in wanted
    states = _states(inside, scene)
    if watchers or collapses:
        own: list[Watch] = [*watchers.values()]
        inside.forward(scene.ids, Several([*own, *([states] if collapses else [])]))
    for name, watcher in watchers.items():
        found.readings[name] = list(watcher.readings())
    if twin is not None and collapses:
        found.readings["collapse"] = _collapse(inside, scene, twin, states)
    if "answer" in wanted:
        found.readings["answer"] = _answer(inside, scene)
    if "squashing" in wanted:
        slopes = inside.gradients(scene.ids, _one_hot(inside, scene.answer[0]))
        found.readings["squashing"] = list(along_the_row(slopes, scene.places.ends))
    if "lipschitz" in wanted:
        found.readings["lipschitz"] = [Reading("largest_slope", _largest_slope(inside, scene))]
    return found


def _watchers(
    inside: Inside, scene: Scene, wanted: Sequence[str]
) -> dict[str, Attention | Residual | Rotary]:
    """The measures that one float32 pass over the sample gives."""
    row, width = scene.places.row, inside.anatomy.rotary_width
    watchers: dict[str, Attention | Residual | Rotary] = {
        "attention": Attention(row, len(scene.ids)),
        "residual": Residual(row),
        "rotary": Rotary(row, width),
    }
    return {name: watcher for name, watcher in watchers.items() if name in wanted}


def _why_not(inside: Inside, name: str, twin: Scene | None) -> str:
    """Why a measure cannot be taken; empty if it can."""
    anatomy = inside.anatomy
    if any(need in anatomy.unavailable for need in NEEDS.get(name, ())):
        return f"{anatomy.architecture} does not show it"
    if name == "rotary" and anatomy.rotary_base is None:
        return "the model has no rotary positions"
    if name == "collapse" and twin is None:
        return "the task has no row with one symbol more"
    return ""


def _states(inside: Inside, scene: Scene) -> States:
    return States(scene.at, _STATES - inside.anatomy.unavailable)


def _collapse(inside: Inside, scene: Scene, twin: Scene, states: States) -> list[Reading]:
    """The distances of both rows, in float32 and in bfloat16; `states` are float32."""
    readings: list[Reading] = []
    precisions: tuple[tuple[Precision, str], ...] = (("float32", ""), ("bfloat16", "_bfloat16"))
    for precision, suffix in precisions:
        one, other = states, _states(inside, twin)
        if suffix:
            one = _states(inside, scene)
            inside.forward(scene.ids, one, precision=precision)
        inside.forward(twin.ids, other, precision=precision)
        readings += distances(one, other, suffix)
        readings += weights_apart(one, other, scene.at[0] + 1, suffix)
    return readings


def _answer(inside: Inside, scene: Scene) -> list[Reading]:
    """Whether the model gives the right answer, if it answers at once."""
    answer = np.array(scene.answer)
    logits = inside.forward([*scene.ids, *scene.answer[:-1]], last=len(answer)).astype(float)
    of_answer = logits[np.arange(len(answer)), answer]
    largest = logits.max(axis=1)
    sums = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return [
        Reading("probability", float(np.exp((of_answer - sums).sum()))),
        Reading("greedy", float((logits.argmax(axis=1) == answer).all())),
    ]


def _one_hot(inside: Inside, token: int) -> Array:
    weights: Array = np.zeros(inside.anatomy.vocabulary, np.float32)
    weights[token] = 1
    return weights


def _largest_slope(inside: Inside, scene: Scene) -> float:
    def gradients(weights: Array) -> Array:
        return inside.gradients(scene.ids, weights)

    return largest_slope(inside.embedded(scene.ids), inside.logits_of, gradients)


class _RowStates(Watch):
    """The stream at some positions, passed on layer by layer."""

    wants: frozenset[Event] = frozenset(["residual"])

    def __init__(self, positions: Sequence[int], keep: Callable[[int, Array], None]) -> None:
        self._positions, self._keep = list(positions), keep

    def residual(self, layer: int, states: Array) -> None:
        self._keep(layer, states[self._positions])


def measure_counts(
    inside: Inside,
    scenes: Sequence[Scene],
    counts: Sequence[Sequence[int | None]],
    limits: Sequence[int],
) -> dict[int, list[Reading]]:
    """How well the running counts of some rows can be read off their states, layer by layer, from
    rows that are cut off at each of `limits` symbols.

    Memory: the states at each counted symbol, of all rows and layers.
    """
    kept: dict[int, list[Array]] = {}
    known: list[int] = []
    numbers: list[int] = []
    for scene, running in zip(scenes, counts, strict=True):
        chosen = [place for place, count in enumerate(running) if count is not None]
        numbers += chosen
        known += [count for count in running if count is not None]
        positions = [scene.places.ends[place] for place in chosen]

        def keep(layer: int, states: Array) -> None:
            kept.setdefault(layer, []).append(states)

        inside.forward(scene.ids, _RowStates(positions, keep))
    places: NDArray[np.float64] = np.array(numbers, float)
    target: NDArray[np.float64] = np.array(known, float)
    layers = {layer: np.concatenate(states) for layer, states in kept.items()}
    found = {}
    for limit in limits:
        near = places < limit
        readings = list(position_readings(target[near], places[near]))
        for layer, states in layers.items():
            readings += counter_readings(
                states[near].astype(float), target[near], places[near], layer
            )
        found[limit] = readings
    return found


def measure_maps(inside: Inside) -> list[Reading]:
    """The spectral norm of each linear map of the model."""
    return [
        Reading(f"spectral_norm_{name}", spectral_norm(matrix), layer)
        for layer, name, matrix in inside.matrices()
    ]
