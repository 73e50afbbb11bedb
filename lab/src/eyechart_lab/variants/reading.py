"""Reads the file of a laboratory study, and finds its mistakes before anything is trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from eyechart.harness.errors import UsageError
from eyechart.harness.face.options import plans_of, refuse_doubtful
from eyechart.harness.plan import Plan, selection
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.study import Problem, StudyFile, YamlFile, read_as
from eyechart.providers.close_match import did_you_mean
from eyechart_lab.probe.measures.catalogue import check_measures
from eyechart_lab.variants.ceilings import Ceilings, ceilings
from eyechart_lab.variants.mechanism import Mechanism
from eyechart_lab.variants.study import (
    TASK_OF_LAB,
    LabSpec,
    ProbePart,
    Training,
    digest_of,
)
from eyechart_lab.variants.training.data import TrainingTask
from eyechart_lab.variants.variant import Variant

_PARTS: dict[str, Any] = {"tasks": TASK_OF_LAB, "training": Training, "probe": ProbePart}
_PLACES_OF_VARIANTS = {"every": 1, "variants": 2}
"""Keys below which there are variants, and how deep one lies."""
_BESIDES = 8
"""Tokens of a reply besides those of the right answer."""


@dataclass(frozen=True)
class Lab(StudyFile[LabSpec]):
    """A study that can be trained: its file and the plans of its tasks."""

    plans: Sequence[Plan]
    """What each task asks, in the order of the file."""
    trusts: bool

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process reads the file again, once: the code of tasks cannot be sent."""
        return _read_again, (self.path, self.trusts, self.text)

    @cached_property
    def learnt(self) -> list[TrainingTask]:
        """The tasks that examples are drawn of."""
        return [
            TrainingTask(plan, task.share, *task.trained)
            for task, plan in zip(self.spec.tasks, self.plans, strict=True)
        ]

    @cached_property
    def ceilings(self) -> Ceilings:
        """The share of the rows of each line whose answer the training had."""
        return ceilings(self.learnt)

    @cached_property
    def reply_tokens(self) -> list[int]:
        """The most tokens of a reply to each plan."""
        return [most_tokens(plan) for plan in self.plans]

    @cached_property
    def data_digest(self) -> str:
        """A hash of what determines the examples and their tokens, but for the seed."""
        training = self.spec.training
        content = {
            "examples": [training.rows, training.drawn_steps, training.growth],
            "merged": training.merged,
            "tasks": [
                [
                    one.plan.task.name,
                    one.plan.task.spec.digest(),
                    [condition.label for condition in one.plan.conditions],
                    one.share,
                    one.shortest,
                    one.longest,
                ]
                for one in self.learnt
            ],
        }
        return digest_of(content)

    def digest(self, variant: Variant) -> str:
        """A hash of what determines a model of a variant, but for the seed."""
        training = self.spec.training.model_dump(mode="json")
        content = {"variant": variant.model_dump(mode="json"), "training": training}
        return digest_of({**content, "data": self.data_digest})


def most_tokens(plan: Plan) -> int:
    """Tokens for a reply: no right one has more tokens than characters. A model that has not
    learned to end its replies would fill its window with each of them.
    """
    phrase = plan.task.spec.answer.first_phrase
    return _BESIDES + max(len(f"{phrase} {sample.target}") for sample in plan)


def read_lab(path: Path, *, trusts: bool = False) -> Lab:
    """Reads a study. With `trusts` its tasks may be a user's own files, whose code is executed.

    Raises:
        StudyFileError: the file has mistakes; the error lists all of them.
    """
    read = read_as(path, LabSpec.model_validate, _fields_at, _problems)
    if not trusts:
        refuse_doubtful(read)
    return Lab(read.spec, path, read.text, read.file, plans_of(read, _plan), trusts)


@cache
def _read_again(path: Path, trusts: bool, text: str) -> Lab:  # noqa: FBT001  as `__reduce__` has it
    lab = read_lab(path, trusts=trusts)
    if lab.text != text:
        raise UsageError(f"{path} was changed while it was worked on; give the command again")
    return lab


def _fields_at(path: Sequence[str | int]) -> list[str]:
    first = str(path[0]) if path else ""
    if depth := _PLACES_OF_VARIANTS.get(first):
        return variant_keys(path[depth:])
    fields: dict[str, Any] = _PARTS.get(first, LabSpec).model_fields
    return list(fields)


def variant_keys(path: Sequence[str | int]) -> list[str]:
    """The keys that a mapping at `path` inside a variant may have: those of a variant, or those of
    a mechanism, `("positions", "rope")`.
    """
    if not path:
        return list(Variant.model_fields)
    kinds = _with_names(Mechanism)
    return next((list(kind.model_fields) for kind in kinds if kind.name == path[-1]), [])


def _with_names(kind: type[Mechanism]) -> list[type[Mechanism]]:
    own = [kind] if "name" in vars(kind) else []
    return own + [one for below in kind.__subclasses__() for one in _with_names(below)]


def _problems(file: YamlFile, spec: LabSpec) -> Iterator[Problem]:
    """Problems that types do not show."""
    yield from _of_variants(file, spec)
    yield from _of_tasks(file, spec)
    for number, name in enumerate(spec.probe.measures if spec.probe else ()):
        try:
            check_measures([name])
        except UsageError as error:
            place = file.position(["probe", "measures", number])
            yield Problem(place, f"measures: {' '.join(error.lines)}")


def _of_variants(file: YamlFile, spec: LabSpec) -> Iterator[Problem]:
    names = list(spec.variants)
    if spec.against is not None and spec.against not in names:
        place = file.position(["against"])
        yield Problem(
            place, f"against: no variant {spec.against!r}; {did_you_mean(spec.against, names)}"
        )
    earlier: dict[str, str] = {}
    for name, variant in spec.variants.items():
        same = earlier.setdefault(variant.model_dump_json(), name)
        if same != name:
            place = file.position(["variants", name], of_key=True)
            yield Problem(place, f"{name!r} is the same as {same!r}")


def _of_tasks(file: YamlFile, spec: LabSpec) -> Iterator[Problem]:
    for number, task in enumerate(spec.tasks):
        shortest, longest = task.trained
        if shortest > longest:
            place = file.position(["tasks", number, "trained"])
            yield Problem(place, f"trained: the shortest row, {shortest}, is longer than {longest}")
        for length, count in Counter(task.settings.get("lengths", ())).items():
            if count > 1:
                place = file.position(["tasks", number, "lengths"])
                yield Problem(place, f"lengths: {length} is here twice; leave one of them out")


def _plan(given: RunSettings) -> list[Plan]:
    """The plan of a task that examples can be drawn of."""
    planned, *others = selection.plans(given)
    if others:
        names = ", ".join(plan.task.name for plan in (planned, *others))
        raise UsageError(
            f"{given.task[0]!r} is several tasks; list each of them on its own: {names}"
        )
    if planned.task.spec.generator is None:
        raise UsageError(
            f"{planned.task.name!r} has ready items and no generator, so no examples can be drawn "
            "of it; name a task with a generator"
        )
    return [planned]
