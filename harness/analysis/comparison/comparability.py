"""Whether two runs may be compared, and their names in a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.analysis.samples.sample_set import in_both
from eyechart.harness.analysis.samples.shortening import shortened
from eyechart.harness.errors import CompareError
from eyechart.harness.spec import VARIANT
from eyechart.providers.naming import named

_MOST_OF_A_SETTING = 60
"""Characters of a setting's value in a sentence."""


def check_same_prompts(first: JudgedCondition, second: JudgedCondition) -> None:
    """Raises `CompareError` where a sample of both was asked with another prompt."""
    left, right = first.asked, second.asked
    places, others = in_both(left, right)
    differ = np.flatnonzero(left.prompts[places] != right.prompts[others])
    if len(differ):
        place = places[differ[0]]
        index = int(left.keys[place, -1])
        where = (
            f"the prompts of {len(differ):,} sample{'s' * (len(differ) > 1)} differ, the first at "
            f"length {int(left.true_lengths[place])}, index {index}"
        )
        if first.run.manifest.recorded is not None or second.run.manifest.recorded is not None:
            raise CompareError(
                f"{where}: recorded replies are compared only if both models were asked the same "
                "prompts"
            )
        raise CompareError(
            f"{where}: the task's generator or items changed and its version did not; run both "
            "with the same generator and items"
        )


def have_other_rows(first: JudgedCondition, second: JudgedCondition) -> bool:
    """Whether the samples of two runs are no pairs, because recorded replies of at least one run
    answer other rows: the runs share no sample, or a shared one has another prompt or, under two
    conditions, another length.

    Two asked runs always have the same rows, or can be asked the same ones.
    """
    runs = first.run, second.run
    if all(run.manifest.recorded is None for run in runs):
        return False
    if first.condition == second.condition:
        left, right = first.asked.prompt_of, second.asked.prompt_of
        shared = left.keys() & right.keys()
        return not shared or any(left[key] != right[key] for key in shared)
    places, others = in_both(first.asked, second.asked)
    lengths = first.asked.true_lengths[places], second.asked.true_lengths[others]
    return not len(places) or bool((lengths[0] != lengths[1]).any())


def same_targets(first: JudgedCondition, second: JudgedCondition) -> bool:
    """Whether each shared sample has the same target in both runs."""
    places, others = in_both(first.asked, second.asked)
    return bool((first.asked.targets[places] == second.asked.targets[others]).all())


def check_same_task(first: JudgedRun, second: JudgedRun) -> None:
    left, right = first.manifest, second.manifest
    problem = f"{first.folder} and {second.folder} cannot be compared"
    if first.real_folder == second.real_folder:
        raise CompareError(
            f"{first.folder} is named twice; {named('axes', 'AXIS=VALUE,VALUE')} compares two "
            "conditions of one run"
        )
    if left.task != right.task:
        raise CompareError(f"{problem}: one is a run of {left.task}, the other of {right.task}")
    if left.task_version != right.task_version:
        raise CompareError(
            f"{problem}: one used version {left.task_version} of {left.task}, the other of "
            f"{right.task_version}; run both with the same version"
        )
    if left.task_digest != right.task_digest:
        raise CompareError(
            f"{problem}: the file of {left.task} changed between them and its version did not; "
            "run both with the same file"
        )
    seeds = left.settings.seed, right.settings.seed
    asked = left.recorded is None and right.recorded is None
    if asked and seeds[0] != seeds[1]:
        raise CompareError(f"{problem}: their rows differ (seed {seeds[0]} and seed {seeds[1]})")


def names_of(runs: Sequence[JudgedRun]) -> list[str]:
    """A name for each run, see `names_by_settings`; of equal names the folder."""
    names = names_by_settings(runs)
    return [
        str(run.folder) if names.count(name) > 1 else name
        for name, run in zip(names, runs, strict=True)
    ]


def names_by_settings(runs: Sequence[JudgedRun]) -> list[str]:
    """The model of each run, with the settings that differ between runs of the model."""
    manifests = [run.manifest for run in runs]
    names = []
    for manifest in manifests:
        own = manifest.settings.given()
        same = [one.settings.given() for one in manifests if one.model == manifest.model]
        differ = [
            setting_text(key, own.get(key))
            for key in dict.fromkeys(key for settings in same for key in settings)
            if any(settings.get(key) != own.get(key) for settings in same)
        ]
        names.append(f"{manifest.model} ({', '.join(differ)})" if differ else manifest.model)
    return names


def other_settings(
    runs: Sequence[JudgedRun], names: Sequence[str]
) -> dict[str, tuple[object, ...]]:
    """The settings that some of the runs were asked with otherwise than others: their values, in
    the order of the runs; the models too, unless `names` have them. How recorded replies were asked
    is not known.
    """
    manifests = [run.manifest for run in runs]
    is_known = all(one.recorded is None for one in manifests)
    given = [
        {"model": one.model_name, **(one.settings.given() if is_known else {})} for one in manifests
    ]
    found = {name: tuple(one.get(name) for one in given) for one in given for name in one}
    if are_named({"model": found["model"]}, names):
        del found["model"]
    return {
        name: values for name, values in found.items() if any(one != values[0] for one in values)
    }


def are_named(settings: Mapping[str, Sequence[object]], names: Sequence[str]) -> bool:
    """Whether each run's name has its value of all these settings, by itself or as a variant
    (`m@low`); where none is given, a name says nothing.
    """
    return all(
        _is_named(setting, value, name)
        for setting, values in settings.items()
        for value, name in zip(values, names, strict=True)
    )


def _is_named(setting: str, value: object, name: str) -> bool:
    if setting == "model":
        return str(value) in name
    return value is None or f"{VARIANT}{value}" in name or setting_text(setting, value) in name


def setting_text(name: str, value: object) -> str:
    """A setting as the command line has it, long texts shortened: `max_tokens=auto`."""
    unset = {"max_tokens": "auto", "read": "reply"}.get(name, "none")
    return f"{name}={unset if value is None else shortened(str(value), _MOST_OF_A_SETTING)}"
