"""What `bench run` and its dry run have in common: what is wrong with the models of a command, what
chooses the samples of adaptive runs, and the exit code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, INTERRUPTED, USAGE
from eyechart.harness.face.options.run_options import RunOptions
from eyechart.harness.face.options.study import RunMatrix
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.providers.catalog.model_facts import known_not_to_reason
from eyechart.providers.catalog.spelling import near

if TYPE_CHECKING:
    from eyechart.harness.face.asking.adaptive import AdaptiveChooser


@dataclass(frozen=True, slots=True)
class ModelResult:
    model: str
    """The model's label."""
    exit_code: int
    """The exit code that the model would have set alone."""
    why: str
    """Why the model is not complete; empty if it is."""


def warn_of_unknown(models: Sequence[RunOptions]) -> None:
    """Warns of unknown models and names those that were probably meant. They are asked all the
    same, since a vendor may have a model that no list has yet.
    """
    for name in dict.fromkeys(options.name for options in models if not options.given.base_url):
        if (likely := near(name.provider, name.model)) is not None:
            warn(f"{name.label} is in no list of models; did you mean {likely!r}?")
    asked = [options.name.label for options in models if options.settings.effort is not None]
    for label in filter(known_not_to_reason, dict.fromkeys(asked)):
        warn(f"{label} does not reason, so its vendor will refuse a reasoning effort")


def chooser_of(runs: RunMatrix, judging: JudgeSettings) -> AdaptiveChooser | None:
    """What chooses the samples of adaptive runs; `None` where the runs are full."""
    given = runs.models[0].given
    if not given.adaptive:
        return None
    from eyechart.harness.face.asking.adaptive import adaptive_chooser

    return adaptive_chooser(given, judging, further=runs.finds_longer)


def exit_code(failed: Sequence[ModelResult], models: int) -> int:
    """The exit code; that of a usage error only if no model could be asked."""
    codes = {result.exit_code for result in failed}
    if not codes or INTERRUPTED in codes:
        return max(codes, default=COMPLETE)
    return USAGE if codes == {USAGE} and len(failed) == models else INCOMPLETE
