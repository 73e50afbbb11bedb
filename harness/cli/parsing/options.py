"""Options and arguments that several verbs of `bench` share."""

from __future__ import annotations

import inspect
import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from eyechart.harness.cli.parsing.completion import (
    complete_runs,
    complete_tasks,
    completion_of,
    one_of,
)
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.checks import NumberRange, number_of, path, shown
from eyechart.harness.settings.figure import TABLE_FORMS
from eyechart.harness.settings.judging import JUDGING, JudgeSettings
from eyechart.harness.settings.run_settings import SETTINGS, RunSettings
from eyechart.harness.settings.setting import Setting
from eyechart.harness.settings.spelling import ALL, as_option
from eyechart.providers.naming import spelled

if TYPE_CHECKING:
    from eyechart.harness.face.asking.ask_run import Limits

PLANNED = ("lengths", "exact", "samples", "axes", "seed")
"""Settings that choose samples of tasks."""
ASKING = ("base_url", "header", "budget", "max_connections")
"""Settings of a run that `--ask` has."""
_Verb = TypeVar("_Verb", bound=Callable[..., None])


def examples(*lines: str) -> str:
    """The end of a verb's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def listed(given: Sequence[str]) -> list[str]:
    """The names in an option that takes several, separated by commas or given again; each once."""
    return list(dict.fromkeys(name.strip() for option in given for name in option.split(",")))


def matching(given: list[Path] | None) -> list[Path]:
    """The folders that arguments name, with those that match in place of a pattern: the runs among
    them, if there are any. A pattern that matches none stays.

    A name of a model with a slash is several folders. Most shells have no sign for any number of
    folders; here `**` is one.
    """
    return [folder for path in given or () for folder in _folders(path) or [path]]


def _folders(pattern: Path) -> list[Path]:
    if pattern.exists():
        return []
    from eyechart.harness.journal.manifest import MANIFEST

    folders = sorted((folder for folder in _found(pattern) if folder.is_dir()), key=str)
    return [folder for folder in folders if (folder / MANIFEST).exists()] or folders


def _found(pattern: Path) -> set[Path]:
    """What matches a pattern, but for hidden names that it does not name. `**` follows no links,
    which may lead back to where they are.
    """
    above = Path(pattern.anchor)
    parts = pattern.parts[bool(pattern.anchor) :]
    # pathlib knows `**` only as a whole name
    asked = [part if part == "**" else re.sub(r"\*+", "*", part) for part in parts]
    hidden = [part for part in asked if part.startswith(".")]
    return {
        path
        for path in above.glob("/".join(asked))
        if all(any(fnmatch(part, one) for one in hidden) for part in path.parts if part[0] == ".")
    }


def command_of(context: typer.Context) -> str:
    """The command line with options from a file or the environment; "" if there are none."""
    verb: Any = context.command  # a `harness.cli.parsing.settings.Verb`
    settings = verb.settings(context)
    return shlex.join(["bench", *sys.argv[1:], *settings]) if settings else ""


def warner_for_default_axes(context: typer.Context) -> Callable[[str], None] | None:
    """A function that warns of an axis that tasks lack, if the axes come from a file or the
    environment: these are only for tasks that have them. `None` if the command line names the axes.
    """
    verb: Any = context.command  # a `harness.cli.parsing.settings.Verb`
    place = verb.place(context, "axis")
    return (lambda text: warn(f"{place}: {text}")) if place else None


def folder(given: str | Path) -> Path:
    """The folder that an option names."""
    try:
        return path(given)
    except ValueError as error:
        raise typer.BadParameter(f"it {error}") from None


def takes(*names: str, hidden: Sequence[str] = (), **defaults: object) -> Callable[[_Verb], _Verb]:
    """Gives a verb the options of these settings, which it gets as `**given`. An option
    has the setting's default, unless `defaults` has another; `...` makes it required. Those of
    judging are the last. Help does not show the `hidden` ones, which the verb has for the sake of
    `bench.toml`.
    """

    def with_options(verb: _Verb) -> _Verb:
        mine = inspect.signature(verb, eval_str=True)
        own = [one for one in mine.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
        before = [one for one in own if one.kind is not Parameter.KEYWORD_ONLY]
        usual = {name: ALL[name].default for name in (*names, *hidden)} | defaults
        options = {
            name: _parameter(ALL[name], default, hidden=name in hidden)
            for name, default in usual.items()
        }
        judging = [options.pop(name) for name in JUDGING if name in options]
        after = [one for one in own if one.kind is Parameter.KEYWORD_ONLY]
        verb.__signature__ = mine.replace(  # type: ignore[attr-defined]
            parameters=[*before, *options.values(), *after, *judging]
        )
        return verb

    return with_options


def _parameter(setting: Setting, default: object, *, hidden: bool) -> inspect.Parameter:
    """The option of a setting. The setting itself checks the value."""
    option = typer.Option(
        f"--{setting.option}",
        *([f"-{setting.short}"] if setting.short else []),
        metavar=setting.metavar or None,
        help=spelled(setting.help, as_option),
        hidden=hidden,
        autocompletion=completion_of(setting),
        parser=None if setting.is_switch else number_of if setting.is_number else _as_given,
    )
    kind: Any = bool if setting.is_switch else list[str] if setting.repeats else str
    if default is not ... and not setting.is_switch:
        kind = kind | None
        is_shown = setting.has_value or default is not setting.default
        default = default if is_shown else setting.says_default or None
    return inspect.Parameter(
        setting.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _as_given(given: Any) -> Any:
    """A value of the command line, or of a file that has types."""
    return given


def settings_of(given: Mapping[str, Any]) -> RunSettings:
    """The settings of the options that a verb got; raises `UsageError` for what no run can have."""
    values = {name: one for name, one in given.items() if one not in (None, [], ())}
    return RunSettings.read(**{name: one for name, one in values.items() if name in SETTINGS})


def judging_of(given: Mapping[str, Any]) -> JudgeSettings:
    """The settings of judging of the options that a verb got; raises what `JudgeSettings.read`
    does.
    """
    return JudgeSettings.read(**{name: one for name, one in given.items() if name in JUDGING})


def limits_of(
    given: Mapping[str, Any],
    *,
    ask: bool,
    requests: int | None,
    settle: str | None = None,
    dry_run: bool = False,
) -> Limits | None:
    """What asking may cost; `None` without `--ask`; raises `UsageError` if an option of asking
    stands without `--ask`, or a value is out of bounds.
    """
    from eyechart.harness.face.asking.ask_run import Limits

    options = {SETTINGS[name].option: given[name] for name in ASKING}
    options |= {"max-requests": requests, "settle": settle, "dry-run": dry_run}
    if not ask and (named := [option for option, value in options.items() if value]):
        raise UsageError(f"--{named[0]} is for --ask; add it")
    settings = settings_of(given)
    limits = Limits(
        requests=requests,
        budget=settings.budget,
        base_url=settings.base_url,
        header=settings.header,
        max_connections=None if given["max_connections"] is None else settings.max_connections,
    )
    return limits if ask else None


def whole(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """The parser of an option whose value is a whole number within these bounds."""
    bound = NumberRange(least, most)

    def parse(given: str | int) -> int:
        try:
            return int(bound(number_of(given)))
        except ValueError as error:
            raise typer.BadParameter(f"it {error}") from None

    return parse


def wholes(least: int) -> Callable[[str | int], tuple[int, ...]]:
    """The parser of an option whose value is one whole number or several, with commas between."""
    one = whole(least)

    def parse(given: str | int) -> tuple[int, ...]:
        return tuple(dict.fromkeys(one(part.strip()) for part in str(given).split(",")))

    return parse


def number(given: str | float) -> float:
    """The parser of an option whose value is a finite number."""
    value = math.nan
    with suppress(ValueError):
        value = float(given)
    if not math.isfinite(value):
        raise typer.BadParameter(f"it must be a number, not {shown(given)}")
    return value


TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="Task, group, task file or folder of them.",
        autocompletion=complete_tasks,
    ),
]
AtOption = Annotated[
    Any,
    typer.Option(
        "--at",
        metavar="N[,N]",
        parser=wholes(1),
        help="Also the accuracy at these lengths, from the fitted curve.",
    ),
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of a run.", autocompletion=complete_runs)
]
RunsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN…",
        help="Folders of runs, or patterns in quotes: 'results/runs/**/counting/ones@*' names "
        "the runs of all models.",
        autocompletion=complete_runs,
        callback=matching,
    ),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Use what a study or bench.toml names and may be another's: addresses, code, files "
        "elsewhere.",
    ),
]
TableFormOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(TABLE_FORMS),
        help="Print tables for a paper in place of those for the terminal.",
        autocompletion=one_of(*TABLE_FORMS),
    ),
]
MostAskedOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1),
        help="With --ask: samples to ask, at most, each of several draws counted.",
    ),
]
DryAskOption = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="With --ask: show what it would ask and what that costs; send nothing."
    ),
]
AllFindingsOption = Annotated[
    bool,
    typer.Option(
        "--all-findings",
        help="Print all findings below a table, and not only the first three.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, as docs/json.md says.")
]
