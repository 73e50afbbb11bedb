"""The runs of a study: its models, their plans and their options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from eyechart.harness.errors import EyechartError, StudyFileError, UsageError
from eyechart.harness.face.run_options import RunOptions, read_settings
from eyechart.harness.face.trust import TRUST, WHY_NOT, why_model, why_tasks
from eyechart.harness.journal.record import Warn
from eyechart.harness.plan import selection
from eyechart.harness.plan.plan import Plan
from eyechart.harness.spec import Cell, Settings
from eyechart.harness.study.reading import Study
from eyechart.harness.study.spec import StudyModel, StudyTask
from eyechart.providers.base import ProviderError
from eyechart.providers.registry import checked, parse_model


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
    study: Study,
    *,
    out: Path,
    notify: Warn,
    models: Sequence[str] = (),
    budget: float | None = None,
    fresh: bool = False,
    trusts: bool = False,
    accept_server: bool = False,
) -> StudyRuns:
    """The runs of a study; `models` replace those of its file, and `budget` its budget. With
    `trusts` it may name addresses, code and files elsewhere.

    Raises:
        StudyFileError: a task or model of the file cannot be asked.
        UsageError: there are no models, or one of `models` cannot be asked.
    """
    spec = study.spec
    if not trusts:
        _refuse_doubtful(study, () if models else spec.models)
    plans = _plans(study, notify)
    wanted = [StudyModel.model_construct(name=name) for name in models] or spec.models
    if not wanted:
        raise UsageError(f"the study {spec.name!r} names no models: give them with --model")
    settings = partial(_settings, study, selection.system_prompt(plans, spec.system))
    common = {
        "out": out,
        "notify": notify,
        "fresh": fresh,
        "accept_server": accept_server,
        "budget": spec.budget if budget is None else budget,
    }
    options: dict[str, RunOptions] = {}
    mistakes: list[str] = []
    for number, model in enumerate(wanted):
        try:
            if "," in model.name:
                raise UsageError(f"{model.name!r} names several models; give each an item")
            for one in _options(study, model, settings, common):
                checked(one.name, one.model_settings())
                if one.model.label in options:
                    raise UsageError(
                        f"{one.model.label} is here twice; tell them apart with 'label'"
                    )
                options[one.model.label] = one
        except (EyechartError, ProviderError) as error:
            if models:
                raise
            mistakes += study.error_at(["models", number], _in_file(str(error))).lines
    if mistakes:
        raise StudyFileError(*mistakes)
    finds_longer = all(task.lengths is None and task.preset is None for task in spec.tasks)
    return StudyRuns(
        study, plans, list(options.values()), finds_longer=finds_longer and spec.lengths is None
    )


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
        raise StudyFileError(*lines, f"this study may be another's: add {TRUST} if you trust it")


def _why_model(folder: Path, model: StudyModel) -> Iterator[str]:
    """Why a model of a study needs a confirmation; `None` if it does not."""
    if why := why_model(folder, model.name):
        yield why
    for key, arguments in (("vllm-arg", model.vllm_arg), ("model-arg", model.model_arg)):
        if arguments:
            yield f"{_in_file(f'--{key}')} {WHY_NOT[key]}"
    if not model.base_url:
        return
    with suppress(ProviderError):  # the model is refused later, with the reason
        name = parse_model(model.name, base_urls=model.base_url)
        own, given = name.destination(), name.destination(model.base_url)
        known = () if own is None else {url.rstrip("/") for url in own.addresses}
        if given is not None and any(url.rstrip("/") not in known for url in model.base_url):
            yield f"{name.label} would be asked at {given}"


def _in_file(message: str) -> str:
    """A message about options in the words of a study's file."""
    for option, key in (("--vllm-arg", "vllm_arg"), ("--model-arg", "model_arg")):
        message = message.replace(option, key)
    return message.replace("--name", "called").replace("--base-url", "base_url")


def _plans(study: Study, notify: Warn) -> list[Plan]:
    plans: dict[str, Plan] = {}
    mistakes: list[str] = []
    for number, task in enumerate(study.spec.tasks):
        try:
            for plan in _plans_of(study, task, notify):
                if plan.task.name in plans:
                    raise UsageError(
                        f"{plan.task.name} is here twice; put its axes and lengths together"
                    )
                plans[plan.task.name] = plan
        except EyechartError as error:
            first, *more = error.lines
            mistakes += [*study.error_at(["tasks", number], first).lines, *more]
    if mistakes:
        raise StudyFileError(*mistakes)
    return list(plans.values())


def _plans_of(study: Study, task: StudyTask, notify: Warn) -> list[Plan]:
    spec = study.spec
    lengths = task.lengths or (None if task.preset else spec.lengths)
    return selection.plans(
        study.task_text(task),
        lengths=",".join(map(str, lengths)) if lengths else None,
        spread=task.spread or spec.spread,
        samples=task.samples or spec.samples,
        axes=[f"{axis}={','.join(values)}" for axis, values in task.axes.items()],
        seed=spec.seed,
        adaptive=spec.adaptive,
        preset=task.preset,
        notify=notify,
    )


def _options(
    study: Study,
    model: StudyModel,
    settings: Callable[[str | None], Settings],
    common: Mapping[str, Any],
) -> list[RunOptions]:
    """The options of a model; several if it has several efforts or interventions."""
    spec = study.spec
    return [
        RunOptions.from_command(
            model=model.name,
            settings=settings(effort),
            logprobs=model.logprobs,
            base_urls=model.base_url or (),
            server_args=model.vllm_arg or (),
            model_args=model.model_arg or (),
            max_connections=model.max_connections,
            rpm=model.rpm,
            tpm=model.tpm,
            batch=model.batch,
            tier=model.tier,
            adaptive=spec.adaptive,
            precision=spec.precision,
            max_requests=spec.max_requests,
            called=model.called,
            label=model.label,
            intervention=intervention,
            **common,
        )
        for effort in _each(model.effort)
        for intervention in _each(model.intervene)
    ]


def _each(values: Sequence[str] | None) -> Sequence[str | None]:
    return values or (None,)


def _settings(study: Study, system: str | None, effort: str | None) -> Settings:
    spec = study.spec
    return read_settings(
        seed=spec.seed,
        temperature=spec.temperature,
        max_tokens=str(spec.max_tokens),
        api=spec.api,
        system=system,
        effort=effort,
    )
