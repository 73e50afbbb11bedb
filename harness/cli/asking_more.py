"""The options of the verbs that ask runs more, until a comparison is decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyechart.harness.cli.numbers import whole
from eyechart.harness.cli.options import settings_of
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.run_settings import SETTINGS

if TYPE_CHECKING:
    from eyechart.harness.face.asked_run import Limits

ASKING = ("base_url", "budget", "max_connections")
"""Settings of a run that `--ask` has."""
MostAskedOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1),
        help="With --ask: samples to ask, at most, each of several draws counted.",
    ),
]


def limits_of(
    given: Mapping[str, Any],
    *,
    ask: bool,
    requests: int | None,
    tasks: str,
    run_kept_code: bool,
    settle: str | None = None,
) -> Limits | None:
    """What asking may cost; `None` without `--ask`.

    Raises:
        UsageError: an option of asking stands without `--ask`, or a value is out of bounds.
    """
    from eyechart.harness.face.asked_run import Limits

    options = {SETTINGS[name].option: given[name] for name in ASKING}
    options |= {"max-requests": requests, "settle": settle}
    if not ask and (named := [option for option, value in options.items() if value]):
        raise UsageError(f"--{named[0]} is for --ask; add it")
    settings = settings_of(given)
    limits = Limits(
        requests=requests,
        budget=settings.budget,
        base_url=settings.base_url,
        max_connections=settings.max_connections,
        tasks=tasks,
        run_kept_code=run_kept_code,
    )
    return limits if ask else None
