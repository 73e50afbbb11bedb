"""Entry points: providers and folders of tasks of other distributions; and verbs, engines, panels
of the page, insides of models, trackers and architectures of models, by which our own satellites
join as well as other distributions.

They are read if a name is not built in, and for lists. A package is imported when its name is used.
A package that fails, or returns something wrong, is named in one line.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import (
    Distribution,
    EntryPoint,
    PackageNotFoundError,
    distribution,
    distributions,
)
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyechart.providers.plugins.contract import PluginError

PROVIDERS = "eyechart.providers"
TASKS = "eyechart.tasks"
VERBS = "eyechart.verbs"
ENGINES = "eyechart.engines"
PANELS = "eyechart.panels"
INSIDES = "eyechart.insides"
TRACKERS = "eyechart.trackers"
ARCHITECTURES = "eyechart.architectures"
"""Groups of entry points."""
OURS = "eyechart"
"""The distribution whose entry points no other one can replace."""
BUILT_IN = "built in"
"""The origin of a provider or a task that no plugin adds."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of an installed distribution."""

    group: str
    name: str
    """The name that it adds: of a provider, or of a group of tasks."""
    value: str
    """The place of the code: `module:function`, or a package."""
    distribution: str
    version: str
    summary: str = ""
    """The summary line of the distribution."""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    @property
    def place(self) -> str:
        """The plugin's name in messages."""
        return f"{self}, entry point '{self.name} = {self.value}' of {self.group}"

    @property
    def module(self) -> str:
        """The module with the code."""
        return self.value.partition(":")[0].strip()

    def error(self, problem: str) -> PluginError:
        """A `PluginError` about this problem."""
        from eyechart.providers.plugins.contract import PluginError  # noqa: PLC0415  msgspec is slow

        return PluginError(f"{self.place}: {problem}")

    def load(self) -> object:
        """The object of the entry point. Output of the package meanwhile goes to stderr.

        Raises:
            PluginError: the import fails, or the module has no such object.
        """
        with self.imports():
            found: object = importlib.import_module(self.module)
        for attribute in filter(None, self.value.partition(":")[2].split(".")):
            try:
                found = getattr(found, attribute)
            except AttributeError:
                raise self.error(f"{self.module} has no {attribute!r}") from None
        return found

    @contextlib.contextmanager
    def imports(self) -> Iterator[None]:
        """Turns every exception of the package's import into a `PluginError`."""
        from eyechart.providers.plugins.contract import described  # noqa: PLC0415  msgspec is slow

        try:
            with contextlib.redirect_stdout(sys.stderr):
                yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # code of others, which may raise anything
            raise self.error(f"importing it raised {described(error)}") from error


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins of one group."""

    usable: dict[str, Plugin] = field(default_factory=dict)
    """Name -> plugin."""
    refused: dict[str, PluginError] = field(default_factory=dict)
    """Name -> why no plugin of this name is used."""


def installed(group: str, built_in: Collection[str], own: Collection[str] = ()) -> Plugins:
    """The installed plugins of a group. A name is refused if it is `built_in`, the user's `own`, or
    in two distributions. So the meaning of a name does not depend on the order of installation.
    """
    found = Plugins()
    for name, same in _read(group, tuple(sys.path)).items():
        first, *others = sorted(same, key=lambda plugin: plugin.distribution != OURS)
        if not _NAME.fullmatch(name):
            problem = "a name has lower-case letters, digits, '-' and '_'"
            found.refused[name] = first.error(problem)
        elif name in built_in:
            found.refused[name] = first.error(f"{name!r} is built in, and that one is used")
        elif name in own:
            found.refused[name] = first.error(f"{name!r} is your own, and that one is used")
        elif others and first.distribution == OURS:
            found.usable[name] = first
            for other in others:
                found.refused[str(other)] = other.error(
                    f"{name!r} is built in, and that one is used"
                )
        elif others:
            also = " and ".join(map(str, others))
            found.refused[name] = first.error(
                f"{also} has the same name, so neither is used; uninstall one"
            )
        else:
            found.usable[name] = first
    return found


def find(group: str, name: str) -> Plugin | None:
    """The plugin with this name; `None` if there is none. The name must not be a built-in one.

    Raises:
        PluginError: two distributions have it.
    """
    if not _NAME.fullmatch(name):
        return None
    if (own := _own(group).get(name)) is not None:
        return own
    found = installed(group, ())
    if name in found.refused:
        raise found.refused[name]
    return found.usable.get(name)


def named(group: str, name: str) -> Plugin:
    """The plugin of this name.

    Raises:
        PluginError: there is none, or there are two.
    """
    if (found := find(group, name)) is None:
        from eyechart.providers.plugins.contract import PluginError  # noqa: PLC0415  msgspec is slow

        raise PluginError(
            f"no entry point {name!r} of {group} is installed; install eyechart again"
        )
    return found


@lru_cache(maxsize=8)
def _own(group: str) -> dict[str, Plugin]:
    """Our own entry points of a group. The other distributions are not read: that takes 25 ms."""
    try:
        return {plugin.name: plugin for plugin in _plugins_of(distribution(OURS), group)}
    except PackageNotFoundError:  # a checkout on the path that is not installed
        return {}


@lru_cache(maxsize=8)
def _read(group: str, path: tuple[str, ...]) -> dict[str, list[Plugin]]:  # noqa: ARG001
    """Name -> the entry points of that name in distributions on `path`, which is `sys.path`."""
    by_name: dict[str, list[Plugin]] = defaultdict(list)
    for name in sorted(_distributions_with(group)):
        # the first on the path, which hides others of its name
        for plugin in _plugins_of(distribution(name), group):
            by_name[plugin.name].append(plugin)
    return dict(sorted(by_name.items()))


def _plugins_of(owner: Distribution, group: str) -> Iterator[Plugin]:
    for point in _entry_points(owner):
        if point.group == group:
            yield Plugin(
                group=group,
                name=point.name,
                value=point.value,
                distribution=owner.name,
                version=owner.version,
                summary=str(owner.metadata.json.get("summary", "")),
            )


def _distributions_with(group: str) -> set[str]:
    """The names of distributions whose file of entry points has the group. Only this file is read
    of the others, and one that cannot be read has no plugin.
    """
    names = set()
    for one in distributions():
        with contextlib.suppress(Exception):  # a broken package of others
            if f"[{group}]" in (one.read_text("entry_points.txt") or ""):
                names.add(one.name)
    return set(filter(None, names))


def _entry_points(owner: Distribution) -> Collection[EntryPoint]:
    try:
        return owner.entry_points
    except Exception:  # noqa: BLE001  a file that is not of the form
        return ()
