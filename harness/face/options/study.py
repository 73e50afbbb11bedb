"""What a command asks: the plans and models of its options, or those of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from eyechart.harness.errors import EyechartError, StudyFileError, UsageError
from eyechart.harness.face.options.run_options import RunOptions, models_of
from eyechart.harness.face.options.trust import NOT_TRUSTED, why_model, why_tasks
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan import selection
from eyechart.harness.plan.plan import Plan
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.settings.spelling import as_key
from eyechart.harness.spec import Cell
from eyechart.harness.study.reading import Study, StudyFile
from eyechart.harness.study.spec import FIXED, StudyModel
from eyechart.providers.base import ProviderError
from eyechart.providers.naming import named, spelled
from eyechart.providers.registry.model_name import parse_model


@dataclass(frozen=True, kw_only=True)
class RunMatrix:
    """What a command asks: every plan of every model."""

    plans: Sequence[Plan]
    models: Sequence[RunOptions]
    finds_longer: bool
    """Whether adaptive runs may add lines that nobody named."""

    @property
    def has_several(self) -> bool:
        return len(self.plans) * len(self.models) > 1

    def where_to_set(self, setting: str) -> str:
        """The option that sets a setting of these runs, for a message."""
        return named(setting)


@dataclass(frozen=True, kw_only=True)
class StudyRuns(RunMatrix):
    """What a study asks."""

    study: Study

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

    def where_to_set(self, setting: str) -> str:
        """`'lengths' in the study's file`: the command takes no option for what a study asks."""
        if setting not in FIXED:
            return super().where_to_set(setting)
        return f"'{SETTINGS[setting].key}' in the study's file"

    def folder(self, out: Path) -> Path:
        """The folder of the study's page and leaderboard."""
        return out / "studies" / self.label


def command_runs(
    given: RunSettings, *, notify: Warn, leave_out: Warn | None = None, command: str = ""
) -> RunMatrix:
    """The runs of a command that names tasks and models; raises what `plans` and `models_of` do.
    `leave_out` is that of `plans`.
    """
    plans = selection.plans(given, leave_out=leave_out)
    models = models_of(given, plans, notify=notify, command=command)
    for plan in plans:
        for warning in selection.warnings_of(plan):
            notify(warning)
    return RunMatrix(plans=plans, models=models, finds_longer=given.lengths is None)


def study_runs(
    study: Study, command: Mapping[str, Any], *, notify: Warn, trusts: bool = False
) -> StudyRuns:
    """The runs of a study. Models and settings of the `command`, by name, stand in place of those
    of its file. With `trusts` the file may name addresses, code and files elsewhere.

    Raises:
        StudyFileError: a task or model of the file cannot be asked.
        UsageError: there are no models, or one of the command cannot be asked.
    """
    spec = study.spec
    named_here = SETTINGS["model"].read(command.get("model"))
    if not trusts:
        refuse_doubtful(study, () if named_here else spec.models)
    plans = plans_of(study, selection.plans, **spec.settings)
    wanted = [StudyModel.model_construct(name=name) for name in named_here] or spec.models
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
            if named_here:
                raise
            said = spelled(" ".join(error.lines), as_key)
            mistakes += study.error_at(["models", number], said).lines
    if mistakes:
        raise StudyFileError(*mistakes)
    finds_longer = not any("lengths" in task.settings for task in spec.tasks)
    return StudyRuns(
        study=study,
        plans=plans,
        models=list(options.values()),
        finds_longer=finds_longer and "lengths" not in spec.settings,
    )


def _of_model(study: Study, model: StudyModel, command: Mapping[str, Any]) -> RunSettings:
    if "," in model.name:
        raise UsageError(f"{model.name!r} names several models; list each of them on its own")
    return RunSettings.read(
        **study.spec.settings | model.settings | dict(command) | {"model": [model.name]}
    )


def refuse_doubtful(study: StudyFile[Any], models: Sequence[StudyModel] = ()) -> None:
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


def plans_of(
    study: StudyFile[Any], plan: Callable[[RunSettings], Iterable[Plan]], **shared: Any
) -> list[Plan]:
    """What `plan` makes of the settings of each task, beside those that all have.

    Raises:
        StudyFileError: a task cannot be asked, or is there twice; the error lists all of them.
    """
    plans: dict[str, Plan] = {}
    mistakes: list[str] = []
    for number, task in enumerate(study.spec.tasks):
        try:
            given = RunSettings.read(**shared | task.settings, task=[study.task_text(task)])
            for one in plan(given):
                if one.task.name in plans:
                    raise UsageError(
                        f"{one.task.name} is here twice; put its axes and lengths together"
                    )
                plans[one.task.name] = one
        except EyechartError as error:
            first, *more = (spelled(line, as_key) for line in error.lines)
            mistakes += [*study.error_at(["tasks", number], first).lines, *more]
    if mistakes:
        raise StudyFileError(*mistakes)
    return list(plans.values())
