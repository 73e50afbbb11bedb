"""Defaults of options: from `bench.toml` or `pyproject.toml` in the current folder, and from
variables of the environment. The command line comes before both, the environment before the file.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from eyechart.harness.cli.parsing.defaults import DEFAULTS, Default, doubt, read_defaults, variable
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import UnknownTaskError, UsageError
from eyechart.harness.settings.checks import param_text
from eyechart.harness.settings.judging import FAILING, JUDGING
from eyechart.harness.settings.spelling import ALL, as_option
from eyechart.providers.base import SetupError
from eyechart.providers.naming import settings_in, spelled

_HELP = ("-h", "--help")
_MANY = 36
"""A verb with this many arguments and options or more shows them in groups."""
_MOST_USED = (
    *("--task", "--model", "--lengths", "--samples", "--axis", "--adaptive", "--base-url"),
    *("--budget", "--out", "--dry-run"),
)
"""The options that stand first in such a verb's help."""
_NOT_ASKED = ("out", *(one.option for one in JUDGING.values() if not one.once))
"""The options of verbs that ask no model which have defaults."""
_BLANKS = "; blanks separate the values of a variable, so write JSON without any"


class Verb(TyperCommand):
    """A verb whose options of judging, and `--out`, have defaults."""

    asks = False
    """Whether defaults apply to all options that the verb shares with `bench run`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._file: Mapping[str, Default] = {}
        for option, parameter in self._settable().items():
            parameter.envvar = variable(option)
            parameter.show_envvar = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the file first; an error about a value names the place of the value."""
        settable = self._settable()
        if settable and not ctx.resilient_parsing and not any(one in args for one in _HELP):
            self._file = read_defaults(Path(), None if self.asks else settable, warn)
            ctx.default_map = {
                parameter.name: self._file[option].value
                for option, parameter in settable.items()
                if option in self._file
            }
        try:
            rest = super().parse_args(ctx, args)
        except Exception as error:
            # errors of the parser, from whichever click typer uses
            parameter = getattr(error, "param", None)
            option = next((name for name, one in settable.items() if one is parameter), None)
            place = option and self.place(ctx, option)
            if not place or not hasattr(error, "format_message"):
                raise
            if getattr(parameter, "is_flag", False):  # a file has true and false only
                given = os.environ.get(place, "")
                raise UsageError(f"{place} must be 1 or 0, not {given!r}") from error
            raise UsageError(f"{place}: {error.format_message()}") from error
        if not ctx.resilient_parsing and not ctx.params.get("trust"):
            self._refuse_doubtful(ctx)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Prints which options come from the file; an error about a value names its place."""
        settable = self._settable().items()
        used = self._used(ctx)
        from_file = [
            argument
            for option, parameter in settable
            if option in used and _source(ctx, parameter) == "DEFAULT_MAP"
            for argument in as_arguments(option, ctx.params[parameter.name])
        ]
        if from_file:
            (file,) = {one.place.rpartition(":")[0] for one in self._file.values()}
            warn(f"{file}: {shlex.join(from_file)}")
        try:
            return super().invoke(ctx)
        except (UsageError, SetupError) as error:
            places = {
                option: place
                for option in _options_in(error)
                if option in self._settable() and (place := self.place(ctx, option))
            }
            if not places:
                raise

            def spell(name: str, value: str) -> str:
                option = as_option(name).removeprefix("--")
                return option if option in places else as_option(name, value)

            first, *more = (spelled(line, spell) for line in error.lines)
            if variable("param") in places.values():
                first += _BLANKS
            raise UsageError(f"{', '.join(places.values())}: {first}", *more) from error

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the options, in groups if there are many, and the exit codes of `--fail-if`."""
        if len(self.params) < _MANY:
            super().format_options(ctx, formatter)
            if any(one.name == "fail_if" for one in self.params):
                with formatter.section("Exit codes of --fail-if, each with its verdicts"):
                    formatter.write_dl(_codes())
            return
        for heading, parameters in self.groups(ctx).items():
            with formatter.section(heading):
                formatter.write_dl([one.get_help_record(ctx) for one in parameters])

    def groups(self, ctx: Any) -> dict[str, list[Any]]:
        """Heading -> its arguments or options, as help shows them."""
        begins = {f"--{one.option}": one.begins for one in ALL.values() if one.begins}
        group, groups = "Options", dict[str, list[Any]](Arguments=[])
        if len(self.params) >= _MANY:
            groups["Most used"] = []
        for parameter in self.get_params(ctx):
            group = next((begins[name] for name in parameter.opts if name in begins), group)
            heading = "Arguments" if parameter.param_type_name == "argument" else group
            if "Most used" in groups and not {*_MOST_USED}.isdisjoint(parameter.opts):
                heading = "Most used"
            if parameter.get_help_record(ctx):
                groups.setdefault(heading, []).append(parameter)
        return groups

    def settings(self, ctx: Any) -> list[str]:
        """The options whose values come from the file or the environment, as arguments."""
        return [
            argument
            for option, parameter in self._settable().items()
            if _source(ctx, parameter) in ("DEFAULT_MAP", "ENVIRONMENT")
            for argument in as_arguments(option, ctx.params[parameter.name])
        ]

    def place(self, ctx: Any, option: str) -> str:
        """Where the value of an option comes from; "" for the command line."""
        source = _source(ctx, self._settable()[option])
        if source == "ENVIRONMENT":
            return variable(option)
        return self._file[option].place if source == "DEFAULT_MAP" else ""

    def _used(self, ctx: Any) -> Collection[str]:
        """The options whose defaults the command uses; a study has its own settings of runs."""
        return _NOT_ASKED if ctx.params.get("study") else self._settable()

    def _refuse_doubtful(self, ctx: Any) -> None:
        """Raises `UsageError` if a value that is used needs a confirmation and has none."""
        used = self._used(ctx)
        for option, default in self._file.items():
            if option in used and self.place(ctx, option) == default.place:
                why = doubt(Path(), option, default.value, can_confirm=self.asks)
                if why is not None:
                    raise UsageError(f"{default.place}: {why}")

    def _settable(self) -> dict[str, Any]:
        """Option -> its parameter."""
        known = DEFAULTS if self.asks else _NOT_ASKED
        parameters = {
            name.removeprefix("--"): parameter
            for parameter in self.params
            for name in parameter.opts
        }
        return {option: parameters[option] for option in known if option in parameters}


def _codes() -> list[tuple[str, str]]:
    """Each value of `--fail-if` with the exit codes that it gives."""
    return [
        (
            value,
            "; ".join(
                f"{code} {', '.join(one for one in verdicts if verdicts[one] == code)}"
                for code in sorted(set(verdicts.values()))
            ),
        )
        for value, verdicts in FAILING.items()
    ]


class AskingVerb(Verb):
    """A verb that has defaults for what `bench run` has."""

    asks = True


def as_arguments(option: str, value: object) -> list[str]:
    """An option with its value as on a command line; empty for a switch that is off."""
    if value is None:
        return []
    if option == "thinking":  # a file may have true, false and numbers
        value = DEFAULTS[option].check(value)
    if isinstance(value, bool):
        return [f"--{option}"] * value
    repeats = option in DEFAULTS and DEFAULTS[option].repeats
    if option == "param":
        value = [param_text(*pair) for pair in DEFAULTS[option].check(value).items()]
    values = value if repeats and isinstance(value, list | tuple) else [value]
    return [word for one in values for text in _texts(one) for word in (f"--{option}", text)]


def _texts(value: object) -> Iterator[str]:
    """A value of a file as texts of the command line: several of a table of axes."""
    if isinstance(value, Mapping):
        for axis, names in value.items():
            yield f"{axis}={','.join(_texts(names))}"
    else:
        yield ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _options_in(error: UsageError | SetupError) -> list[str]:
    """The long options that an error is about: those that it names, else its own."""
    usual = "model" if isinstance(error, SetupError) else error.setting
    if isinstance(error, UnknownTaskError):
        usual = "task"
    names = settings_in(error.lines[0]) or [usual]
    return list(
        dict.fromkeys(ALL[name].option for name in names if name in ALL and not ALL[name].once)
    )


def _source(ctx: Any, parameter: Any) -> str:
    source = ctx.get_parameter_source(parameter.name)
    return "" if source is None else str(source.name)
