"""Takes the measures of a probe, sample by sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from eyechart.harness.errors import TaskError
from eyechart.harness.plan import Plan, make_sample
from eyechart.harness.spec import CellKey, Condition, Line, Sample
from eyechart.providers.base import PromptOverflowError
from eyechart_lab.probe.folder import (
    MeasuredKey,
    Measurement,
    ProbeFolder,
    read_measured,
)
from eyechart_lab.probe.inside import Inside, shared
from eyechart_lab.probe.passes import (
    COUNTER,
    MAPS,
    Row,
    Scene,
    measure,
    measure_counts,
    measure_maps,
    told_by_position,
)
from eyechart_lab.probe.places import places_of, running_counts, symbol_spans
from eyechart_lab.probe.reading import SampleReading
from eyechart_lab.probe.readout import READOUT, ReadRow, measure_readout

Progress = Callable[[int, int], None]
"""Gets the number of finished samples, and of all."""
_DIGITS = 6
"""Significant digits of a value in the folder."""
BY_POSITION = "the position of a symbol alone says its count, so states show nothing of counting"
NO_ROW = "its prompt does not show the row symbol by symbol"


@dataclass(slots=True)
class ProbeResult:
    """The result of a probe."""

    samples: int = 0
    """Samples that were measured by this command."""
    too_long: dict[Condition, int] = field(default_factory=dict)
    """Condition -> the least length whose prompt does not fit the window."""
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Measure, and why it could not be taken -> on how many samples."""


class Probe:
    """One model on one task."""

    def __init__(
        self, planned: Plan, inside: Inside, folder: ProbeFolder, measures: Sequence[str]
    ) -> None:
        self._plan = planned
        self._inside = inside
        self._folder = folder
        self._measures = measures
        self._done = {measured.key for measured in read_measured(folder.folder)}
        self.result = ProbeResult()
        """Grows while the probe goes on."""

    def run(self, progress: Progress) -> None:
        """Measures what the folder does not have yet."""
        total, done = self._plan.size, 0
        for samples in self._families():
            for _ in self._measure_family(samples):
                progress(done, total)
            done += len(samples)
        if COUNTER in self._measures:
            for condition in self._plan.conditions:
                self._measure_counts(condition)
        if READOUT in self._measures:
            for cell in self._plan.sizes:
                self._measure_readout(*cell)
        if MAPS in self._measures:
            self._measure_maps()
        progress(total, total)

    def _families(self) -> Iterator[list[Sample]]:
        """The samples of each row: its lengths, ascending, begin alike."""
        of_row: dict[tuple[Condition, int], list[Sample]] = {}
        for sample in self._plan:
            of_row.setdefault((sample.condition, sample.index), []).append(sample)
        for samples in of_row.values():
            yield sorted(samples, key=lambda sample: sample.length)

    def _measure_family(self, samples: Sequence[Sample]) -> Iterator[None]:
        """Takes the measures that some samples of one row do not have yet; stops at each."""
        started = perf_counter()
        rows = [(sample, self._row_of(sample)) for sample in samples]
        chosen = [(sample, row) for sample, row in rows if row is not None]
        results = measure(self._inside, [row for _, row in chosen])
        for (sample, row), found in zip(chosen, results, strict=True):
            seconds, started = perf_counter() - started, perf_counter()
            for name, readings in found.readings.items():
                self._append((name, *_place(sample)), row.scene, readings, seconds / len(row.names))
            self.result.left_out.update(found.left_out)
            self.result.samples += 1
            yield

    def _row_of(self, sample: Sample) -> Row | None:
        """What is left to measure of a sample; `None` if that is nothing, or impossible."""
        names = [
            name
            for name in self._measures
            if name not in (COUNTER, READOUT, MAPS) and (name, *_place(sample)) not in self._done
        ]
        limit = self.result.too_long.get(sample.condition)
        if not names or (limit is not None and sample.length >= limit):
            return None
        try:
            scene = self._scene(sample)
            twin = self._twin(sample) if "collapse" in names else None
        except PromptOverflowError:
            self._note_overflow(sample)
            return None
        if scene is None:
            self.result.left_out.update((name, NO_ROW) for name in names)
            return None
        return Row(scene, twin, names)

    def _scene(self, sample: Sample) -> Scene | None:
        """The sample's prompt and its places; `None` if the prompt does not show the row.

        Raises:
            PromptOverflowError: prompt, phrase and answer do not fit the window.
        """
        tokens = self._inside.tokens(sample.prompt)
        places = places_of(tokens, symbol_spans(self._plan, sample))
        if places is None or not places.row:
            return None
        phrase = self._plan.task.spec.answer.first_phrase
        said = self._inside.answer_ids(sample.prompt, phrase)
        answer = self._inside.answer_ids(sample.prompt, f"{phrase} {sample.target}")
        common = shared(said, answer)
        ids = (*tokens.ids, *answer[:common])
        if len(ids) + len(answer) - common > self._inside.anatomy.window:
            raise PromptOverflowError("the prompt with its answer does not fit the window")
        return Scene(ids=ids, answer=answer[common:], places=places)

    def _twin(self, sample: Sample) -> Scene | None:
        """The same sample with one symbol more; `None` if the task has no such sample."""
        try:
            line = Line.exact(sample.length + 1)
            twin = make_sample(
                self._plan.task, sample.condition, line, sample.index, self._plan.seed
            )
        except TaskError:
            return None
        return self._scene(twin)

    def _note_overflow(self, sample: Sample) -> None:
        known = self.result.too_long.get(sample.condition, sample.length)
        self.result.too_long[sample.condition] = min(known, sample.length)

    def _measure_counts(self, condition: Condition) -> None:
        """Measures how well the count can be read from the states in rows of this condition, line
        by line. Shorter rows are the beginnings of the longest ones.
        """
        limit = self.result.too_long.get(condition)
        lines = [line for line in self._plan.lines if limit is None or line.high < limit]
        keys = [
            (COUNTER, (condition, line), line.high, self._plan.cell_size(condition, line))
            for line in lines
        ]
        if all(key in self._done for key in keys):
            return
        keys = [key for key in keys if key not in self._done]
        started = perf_counter()
        scenes: list[Scene] = []
        counts: list[list[int | None]] = []
        for index in range(keys[-1][3]):
            line = Line.exact(lines[-1].high)
            sample = make_sample(self._plan.task, condition, line, index, self._plan.seed)
            running = running_counts(self._plan, sample)
            scene = self._scene(sample)
            if running is None or scene is None:
                why = NO_ROW if scene is None else "its answer is no count that grows with the row"
                self.result.left_out[COUNTER, why] += 1
                return
            scenes.append(scene)
            counts.append(running)
        if told := {key[2] for key in keys} & told_by_position(counts, [key[2] for key in keys]):
            keys = [key for key in keys if key[2] not in told]
            rows = " and ".join(f"{limit:,}" for limit in sorted(told))
            self.result.left_out[COUNTER, f"{BY_POSITION} (rows of {rows} symbols)"] += 1
        if not keys:
            return
        found = measure_counts(self._inside, scenes, counts, [key[2] for key in keys])
        seconds = (perf_counter() - started) / len(keys)
        for key in keys:
            if not found[key[2]]:
                self.result.left_out[COUNTER, f"too few states in rows of {key[2]} symbols"] += 1
                continue
            self._append(key, scenes[0], found[key[2]], seconds)

    def _measure_readout(self, condition: Condition, line: Line) -> None:
        """Measures what the ends of the rows of a line hold of their answers, of all rows again
        where there is a new one.
        """
        samples = [
            self._plan.sample(condition, line, index)
            for index in range(self._plan.cell_size(condition, line))
        ]
        limit = self.result.too_long.get(condition)
        if all((READOUT, *_place(sample)) in self._done for sample in samples) or (
            limit is not None and line.high >= limit
        ):
            return
        started = perf_counter()
        if missing := sorted({"residual", "final"} & self._inside.anatomy.unavailable):
            why = f"{self._inside.anatomy.architecture} does not show its {' and '.join(missing)}"
            self.result.left_out[READOUT, why] += len(samples)
            return
        try:
            scenes = [self._scene(sample) for sample in samples]
        except PromptOverflowError:
            self._note_overflow(min(samples, key=lambda sample: sample.length))
            return
        known = [scene for scene in scenes if scene is not None and scene.answer]
        if len(known) < len(samples):
            self.result.left_out[READOUT, NO_ROW] += len(samples) - len(known)
            return
        numbers = [sample.target if type(sample.target) is int else None for sample in samples]
        digits = self._digits(samples[0].prompt) if None not in numbers else []
        of_answers = digits or [scene.answer for scene in known]
        begin = _shared_by_all(of_answers)
        rows = [
            ReadRow(
                ids=(*scene.ids, *scene.answer[:begin]),
                answer=scene.answer[begin:],
                index=sample.index,
                length=sample.length,
                count=number,
            )
            for sample, scene, number in zip(samples, known, numbers, strict=True)
        ]
        found = measure_readout(self._inside, rows, [digit[begin] for digit in digits])
        if found.why:
            self.result.left_out[READOUT, f"{found.why} (line {line.length:,})"] += 1
            return
        seconds = (perf_counter() - started) / len(rows)
        for sample, scene, readings in zip(samples, known, found.rows, strict=True):
            self._append((READOUT, *_place(sample)), scene, readings, seconds)

    def _digits(self, prompt: str) -> list[tuple[int, ...]]:
        """The tokens of the answers 1 to 9, after those of the phrase before the answer."""
        phrase = self._plan.task.spec.answer.first_phrase
        said = self._inside.answer_ids(prompt, phrase)
        of_digits = [self._inside.answer_ids(prompt, f"{phrase} {digit}") for digit in range(1, 10)]
        return [ids[shared(said, ids) :] for ids in of_digits]

    def _measure_maps(self) -> None:
        """Takes the measures that follow from the weights alone."""
        key = (MAPS, (Condition(), Line.exact(1)), 1, 0)
        if key in self._done:
            return
        started = perf_counter()
        if "matrices" in self._inside.anatomy.unavailable:
            self.result.left_out[MAPS, "its weights cannot be read"] += 1
            return
        readings = measure_maps(self._inside)
        self._append(key, None, readings, perf_counter() - started)

    def _append(
        self,
        key: MeasuredKey,
        scene: Scene | None,
        readings: Sequence[SampleReading],
        seconds: float,
    ) -> None:
        name, (condition, line), length, index = key
        self._folder.append(
            Measurement(
                measure=name,
                condition=dict(condition),
                line=(line.length, line.low, line.high),
                length=length,
                index=index,
                tokens=0 if scene is None else len(scene.ids),
                found=[
                    (one.quantity, one.layer, one.head, float(f"{one.value:.{_DIGITS}g}"))
                    for one in readings
                ],
                seconds=round(seconds, 4),
            )
        )


def _place(sample: Sample) -> tuple[CellKey, int, int]:
    """Cell, true length and index of a sample."""
    return sample.key, sample.length, sample.index


def _shared_by_all(answers: Sequence[Sequence[int]]) -> int:
    """The number of tokens with which all answers begin; all answers have one more at least."""
    most = min(len(answer) for answer in answers) - 1
    return min([most, *(shared(answers[0], answer) for answer in answers)])
