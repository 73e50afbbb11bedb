"""What every door needs to know of one setting, and how each door spells its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from eyechart.harness.errors import UsageError
from eyechart.harness.settings.checks import Check, Lengths, NumberRange, OneOf, switch
from eyechart.providers.naming import named

Part: TypeAlias = Literal["study", "model", "task"]
"""A place in a study's file: at its top, at one of its models, or at one of its tasks."""
Judged: TypeAlias = Literal["", "samples", "runs", "pairs"]
"""What a setting of judging is about: how samples are read, the numbers of runs, or what two sides
of a comparison are. Empty for settings of a run.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a run, or of judging."""

    name: str
    """Its field in `RunSettings` or `JudgeSettings`, and the argument in Python."""
    default: object
    """`None` where the task or the model has a value of its own."""
    check: Check
    help: str
    """What the help of its verbs says."""
    metavar: str = ""
    says_default: str = ""
    """What help says of the default, where that is not its value."""
    form: str = ""
    """What docs/settings.md says of its values, where their check does not say it."""
    option: str = ""
    """The long option and the key of `bench.toml`, without `--`."""
    short: str = ""
    """The short option, without `-`."""
    key: str = ""
    """The key in a study's file."""
    parts: tuple[Part, ...] = ()
    """Where a study's file may have it."""
    identity: Literal["", "settings", "model"] = ""
    """The part of a run's identity that has it: the hash of settings, or the model's label."""
    once: bool = False
    """Whether it is meant for one command, so that no file and no variable has it."""
    doubt: str = ""
    """Why it needs a confirmation in a file that may be a stranger's."""
    usual: tuple[str, ...] = ()
    """Some of its values, where there are others."""
    repeats: bool = False
    """Whether the option may be given several times."""
    of: Judged = ""
    begins: str = ""
    """The heading of the options in `bench run --help` of which this one is the first."""

    @property
    def is_kept(self) -> bool:
        """Whether a run's manifest has it among what was given, so that the run can be asked again.
        The settings that shape replies stand there by themselves, and a folder may be a
        stranger's, so that nothing doubtful is taken from it.
        """
        return "model" in self.parts and not (self.identity == "settings" or self.doubt)

    @property
    def bound(self) -> NumberRange | None:
        """The numbers that it can have, if it has some."""
        bound = getattr(self.check, "bound", self.check)
        return bound if isinstance(bound, NumberRange) else None

    @property
    def has_value(self) -> bool:
        """Whether its default is a number, a text or a path, and not that there is none."""
        return isinstance(self.default, int | float | str | Path)

    @property
    def is_number(self) -> bool:
        """Whether it is one number, or a word in its place."""
        return self.bound is not None and not isinstance(self.check, Lengths)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it can be, or the usual ones."""
        return self.check.words if isinstance(self.check, OneOf) else self.usual

    @property
    def is_switch(self) -> bool:
        return self.check is switch

    def read(self, given: Any) -> Any:
        """The value in the type of the setting; raises `UsageError` if it cannot have it; the error
        has the name and the value.
        """
        if given is None and not self.has_value:
            return self.default
        try:
            return self.check(given)
        except ValueError as error:
            line = f"{named(self.name)} {error}"
            raise UsageError(line, setting=self.name, value=given) from None


def setting(check: Check, says: str, metavar: str = "", default: Any = None, **more: Any) -> Any:
    """Declares a setting; `says` is its help text, and `more` are further fields of `Setting`."""
    facts = {"check": check, "help": says, "metavar": metavar, "default": default, **more}
    return field(default_factory=lambda: default, metadata=facts)


def on_or_off(says: str, **more: Any) -> Any:
    """A field of a class of settings that is a switch."""
    return setting(switch, says, default=False, **more)


def declared(kind: type) -> dict[str, Setting]:
    """Name -> the setting, of the fields of a class of settings."""
    return {one.name: _read_field(one.name, one.metadata) for one in fields(kind)}


def _read_field(name: str, facts: Mapping[str, Any]) -> Setting:
    option = facts.get("option", name.replace("_", "-"))
    return Setting(**{"name": name, "option": option, "key": option.replace("-", "_"), **facts})


def read_each(known: Mapping[str, Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values in the types of their settings.

    Raises:
        UsageError: a setting cannot have its value. The error has a line for each setting that is
            wrong, and the name and the value of the first.
    """
    values, wrong = {}, []
    for name, value in given.items():
        try:
            values[name] = known[name].read(value)
        except UsageError as error:
            wrong.append(error)
    if wrong:
        first, *more = wrong
        lines = [line for error in wrong for line in error.lines]
        raise UsageError(*lines, setting=first.setting, value=first.value) if more else first
    return values
