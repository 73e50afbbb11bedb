"""The passes through a model that its measures need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eyechart_lab.probe.family import Prompt, run
from eyechart_lab.probe.inside import Array, Event, Inside
from eyechart_lab.probe.measures.attention import Attention
from eyechart_lab.probe.measures.collapse import ROUNDED, distances, weights_apart
from eyechart_lab.probe.measures.counter import counter_readings, position_readings
from eyechart_lab.probe.measures.residual import Residual, spectral_norm
from eyechart_lab.probe.measures.rotary import RotaryWatcher
from eyechart_lab.probe.measures.squashing import along_the_row, largest_slope
from eyechart_lab.probe.measures.states import States
from eyechart_lab.probe.places import Places
from eyechart_lab.probe.reading import ROUNDING, SampleReading

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


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a family."""

    scene: Scene
    twin: Scene | None
    """The same row with one symbol more, where a measure needs it and the task has it."""
    names: Sequence[str]
    """The measures to take."""


@dataclass(slots=True)
class RowValues:
    """The values that were measured on one row."""

    readings: dict[str, list[SampleReading]] = field(default_factory=dict)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Measure, and the reason why it could not be taken."""


def measure(inside: Inside, rows: Sequence[Row]) -> Iterator[RowValues]:
    """Takes the measures of rows that begin alike; gives one result for each, in order.

    What they begin with is computed once in float32, and once in bfloat16, whose difference is how
    far rounding alone moves a value. Memory: keys and values of the longest prompt in both
    precisions, the stream of one layer, one block of attention, and what a measure keeps.
    """
    results = []
    wanted: list[list[str]] = []
    for row in rows:
        reasons = {name: _why_not(inside, name, row.twin) for name in row.names}
        results.append(
            RowValues(left_out=Counter((one, why) for one, why in reasons.items() if why))
        )
        wanted.append([name for name, why in reasons.items() if not why])
    exact, rounded = (
        [_Watched(inside, row, names) for row, names in zip(rows, wanted, strict=True)]
        for _ in range(2)
    )
    for _ in run(inside, [prompt for one in exact for prompt in one.prompts], "float32"):
        pass
    passes = run(inside, [prompt for one in rounded for prompt in one.prompts], "bfloat16")
    made: set[int] = set()
    for row, names, found, *both in zip(rows, wanted, results, exact, rounded, strict=True):
        while not all(id(prompt) in made for prompt in both[1].prompts):
            made.add(id(next(passes)))
        found.readings = _of_passes(row, *both)
        if "squashing" in names:
            first = np.eye(1, inside.anatomy.vocabulary, row.scene.answer[0], np.float32)[0]
            slopes = inside.gradients(row.scene.ids, first)
            found.readings["squashing"] = list(along_the_row(slopes, row.scene.places.ends))
        if "lipschitz" in names:
            ids = row.scene.ids
            slope = largest_slope(
                inside.embedded(ids), inside.logits_of, partial(inside.gradients, ids)
            )
            found.readings["lipschitz"] = [SampleReading("largest_slope", slope)]
        yield found


class _Watched:
    """What is watched in the passes of one row in one precision."""

    def __init__(self, inside: Inside, row: Row, names: Sequence[str]) -> None:
        scene, twin = row.scene, row.twin
        self.watchers: dict[str, Residual | RotaryWatcher | Attention] = {}
        if "attention" in names:
            self.watchers["attention"] = Attention(scene.places.row, len(scene.ids))
        if "residual" in names:
            self.watchers["residual"] = Residual(scene.places.row)
        if "rotary" in names:
            self.watchers["rotary"] = RotaryWatcher(scene.places.row, inside.anatomy.rotary_width)
        self.states = [
            States(one.at, _STATES - inside.anatomy.unavailable)
            for one in (scene, twin)
            if one is not None and "collapse" in names
        ]
        self.answers = "answer" in names
        self.prompts: list[Prompt] = []
        attention = self.watchers.get("attention")
        own = [one for name, one in self.watchers.items() if name != "attention"]
        if self.watchers or self.states or self.answers:
            said = scene.answer if self.answers else ()
            self.prompts = [
                Prompt(
                    (*scene.ids, *said[:-1]),
                    max(1, len(said)),
                    [*own, *self.states[:1]],
                    attention if isinstance(attention, Attention) else None,
                )
            ]
        if twin is not None and self.states:
            self.prompts.append(Prompt(twin.ids, watchers=[self.states[1]]))

    def readings(self, scene: Scene) -> dict[str, list[SampleReading]]:
        """The values of all measures but collapse."""
        found = {name: list(watcher.readings()) for name, watcher in self.watchers.items()}
        if self.answers:
            logits = self.prompts[0].logits
            found["answer"] = [] if logits is None else _answer(scene, logits)
        return found


def _of_passes(row: Row, exact: _Watched, rounded: _Watched) -> dict[str, list[SampleReading]]:
    """The values in float32, and how far rounding to bfloat16 moves each."""
    found = exact.readings(row.scene)
    for name, readings in rounded.readings(row.scene).items():
        others = {(one.quantity, one.layer, one.head): one.value for one in readings}
        found[name] += [
            SampleReading(one.quantity + ROUNDING, abs(one.value - other), one.layer, one.head)
            for one in found[name]
            if (other := others.get((one.quantity, one.layer, one.head))) is not None
        ]
    if exact.states:
        compared: list[tuple[States, States, str]] = [
            (exact.states[0], exact.states[1], ""),
            (rounded.states[0], rounded.states[1], ROUNDED),
            (exact.states[0], rounded.states[0], ROUNDING),
        ]
        found["collapse"] = []
        for this, that, suffix in compared:
            found["collapse"] += distances(this, that, suffix)
            found["collapse"] += weights_apart(this, that, row.scene.at[0] + 1, suffix)
    return found


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


def _answer(scene: Scene, logits: Array) -> list[SampleReading]:
    """Whether the model gives the right answer, if it answers at once, from (answer, V) logits."""
    answer, logits = np.array(scene.answer), logits.astype(float)
    of_answer = logits[np.arange(len(answer)), answer]
    largest = logits.max(axis=1)
    sums = largest + np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return [
        SampleReading("probability", float(np.exp((of_answer - sums).sum()))),
        SampleReading("greedy", float((logits.argmax(axis=1) == answer).all())),
    ]


def told_by_position(counts: Sequence[Sequence[int | None]], limits: Sequence[int]) -> set[int]:
    """The lengths, of `limits`, in rows of which the position alone gives every count, as in a row
    of equal symbols: there the states cannot show that the model counts.
    """
    numbers = [place for running in counts for place, one in enumerate(running) if one is not None]
    known = [one for running in counts for one in running if one is not None]
    places: NDArray[np.float64] = np.array(numbers, float)
    target: NDArray[np.float64] = np.array(known, float)
    return {
        limit
        for limit in limits
        for one in position_readings(target[places < limit], places[places < limit])
        if one.quantity == "position_within_half" and one.value == 1
    }


def measure_counts(
    inside: Inside,
    scenes: Sequence[Scene],
    counts: Sequence[Sequence[int | None]],
    limits: Sequence[int],
) -> dict[int, list[SampleReading]]:
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
        states = States([scene.places.ends[place] for place in chosen], frozenset(["residual"]))
        inside.forward(scene.ids, states)
        for layer, stream in states.streams.items():
            kept.setdefault(layer, []).append(stream)
    places: NDArray[np.float64] = np.array(numbers, float)
    target: NDArray[np.float64] = np.array(known, float)
    layers = {layer: np.concatenate(streams) for layer, streams in kept.items()}
    found = {}
    for limit in limits:
        near = places < limit
        readings = list(position_readings(target[near], places[near]))
        for layer, stream in layers.items():
            readings += counter_readings(
                stream[near].astype(float), target[near], places[near], layer
            )
        found[limit] = readings
    return found


def measure_maps(inside: Inside) -> list[SampleReading]:
    """The spectral norm of each linear map of the model."""
    return [
        SampleReading(f"spectral_norm_{name}", spectral_norm(matrix), layer)
        for layer, name, matrix in inside.matrices()
    ]
