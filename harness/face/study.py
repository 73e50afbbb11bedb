"""The runs of a study: its models, their plans and their options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path

from eyechart.harness.errors import EyechartError, StudyFileError, UsageError
from eyechart.harness.face.run_options import RunOptions, models_of
from eyechart.harness.face.trust import NOT_TRUSTED, why_model, why_tasks
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan import selection
from eyechart.harness.plan.plan import Plan
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.settings.spelling import as_key
from eyechart.harness.spec import Cell
from eyechart.harness.study.reading import Study
from eyechart.harness.study.spec import StudyModel, StudyTask
from eyechart.providers.base import ProviderError
from eyechart.providers.naming import named, spelled
from eyechart.providers.registry import parse_model


@dataclass(frozen=True)
class StudyRuns:
    """What a study asks: every plan of every model."""

    study: Study
    plans: Sequence[Plan]
    models: Sequence[RunOptions]
    finds_longer: bool
    """Whether an adaptive study may add lines that its file does not name."""

    @property
    def digest(self) -> str:
        """The hash of everything that is asked."""
        return self.study.spec.digest(
            {
                plan.task.name: {
                    "digest": plan.task.spec.digest(),
                    "conditions": [condition.label for condition in plan.conditions],
                    "lines": [astuple(line) for line in plan.lines],
                    "samples": plan.samples,
                }
                for plan in self.plans
            }
        )

    @property
    def label(self) -> str:
        """The study's name, version and hash."""
        return self.study.spec.label(self.digest)

    def asks(self, task: str, cell: Cell) -> bool:
        """Whether the study asks this cell of a run; runs may have more, from other commands."""
        for plan in self.plans:
            if plan.task.name == task and cell.condition in plan.conditions:
                is_longer = self.finds_longer and cell.line.low > plan.lines[-1].high
                return is_longer or cell.line in plan.lines
        return False

    def folder(self, out: Path) -> Path:
        """The folder of the study's page and leaderboard."""
        return out / "studies" / self.label


def study_runs(
    study: Study, command: RunSettings, *, notify: Warn, trusts: bool = False
) -> StudyRuns:
    """The runs of a study. Models and a budget of the `command` stand in place of those of its
    file. With `trusts` it may name addresses, code and files elsewhere.

    Raises:
        StudyFileError: a task or model of the file cannot be asked.
        UsageError: there are no models, or one of the command cannot be asked.
    """
    spec = study.spec
    if not trusts:
        _refuse_doubtful(study, () if command.model else spec.models)
    plans = _plans(study)
    wanted = [StudyModel.model_construct(name=name) for name in command.model] or spec.models
    if not wanted:
        raise UsageError(
            f"the study {spec.name!r} names no models: give them with {named('model')}"
        )
    options: dict[str, RunOptions] = {}
    mistakes: list[str] = []
    for number, model in enumerate(wanted):
        try:
            for one in models_of(_of_model(study, model, command), plans, notify=notify):
                if one.model.label in options:
                    raise UsageError(
                        f"{one.model.label} is here twice; tell them apart with {named('label')}"
                    )
                options[one.model.label] = one
        except (EyechartError, ProviderError) as error:
            if command.model:
                raise
            said = spelled(" ".join(error.lines), as_key)
            mistakes += study.error_at(["models", number], said).lines
    if mistakes:
        raise StudyFileError(*mistakes)
    finds_longer = not any("lengths" in task.settings for task in spec.tasks)
    return StudyRuns(
        study,
        plans,
        list(options.values()),
        finds_longer=finds_longer and "lengths" not in spec.settings,
    )


def _of_model(study: Study, model: StudyModel, command: RunSettings) -> RunSettings:
    if "," in model.name:
        raise UsageError(f"{model.name!r} names several models; list each of them on its own")
    given = study.spec.settings | model.settings
    for name in ("out", "fresh", "keep_going", "trust", "budget", "log_to"):
        if value := getattr(command, name):
            given[name] = value
    return RunSettings.read(**given, model=[model.name])


def _refuse_doubtful(study: Study, models: Sequence[StudyModel]) -> None:
    """Raises `StudyFileError` if the file needs a confirmation, since it may come from somebody
    else. Executes no code that it names.
    """
    folder = study.path.parent
    doubts = [
        *(
            ("tasks", number, why)
            for number, task in enumerate(study.spec.tasks)
            for why in why_tasks(folder, study.task_text(task))
        ),
        *(
            ("models", number, why)
            for number, model in enumerate(models)
            for why in _why_model(folder, model)
        ),
    ]
    if doubts:
        lines = [
            line for key, number, why in doubts for line in study.error_at([key, number], why).lines
        ]
        raise StudyFileError(*lines, NOT_TRUSTED)


def _why_model(folder: Path, model: StudyModel) -> Iterator[str]:
    """Why a model of a study needs a confirmation; `None` if it does not."""
    if why := why_model(folder, model.name):
        yield why
    settings = model.settings
    for setting in map(SETTINGS.__getitem__, settings):
        if setting.doubt and setting.name != "base_url":
            yield f"{setting.key} {setting.doubt}"
    urls = settings.get("base_url", ())
    if not urls:
        return
    with suppress(ProviderError):  # the model is refused later, with the reason
        name = parse_model(model.name, base_urls=urls)
        own = name.destination()
        given = name.destination(urls)
        known = () if own is None else {url.rstrip("/") for url in own.addresses}
        if given is not None and any(url.rstrip("/") not in known for url in urls):
            yield f"{name.label} would be asked at {given}"


def _plans(study: Study) -> list[Plan]:
    plans: dict[str, Plan] = {}
    mistakes: list[str] = []
    for number, task in enumerate(study.spec.tasks):
        try:
            for plan in _plans_of(study, task):
                if plan.task.name in plans:
                    raise UsageError(
                        f"{plan.task.name} is here twice; put its axes and lengths together"
                    )
                plans[plan.task.name] = plan
        except EyechartError as error:
            first, *more = (spelled(line, as_key) for line in error.lines)
            mistakes += [*study.error_at(["tasks", number], first).lines, *more]
    if mistakes:
        raise StudyFileError(*mistakes)
    return list(plans.values())


def _plans_of(study: Study, task: StudyTask) -> list[Plan]:
    given = RunSettings.read(**study.spec.settings | task.settings, task=[study.task_text(task)])
    return selection.plans(given)
