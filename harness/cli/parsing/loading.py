"""The verbs: a module of `harness.cli.verbs` each, or what a package adds by an entry point.

A verb is imported when it is used; the program's help imports none.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from importlib import import_module
from itertools import accumulate
from typing import Any

import typer
from typer.main import get_command

from eyechart.harness.cli.terminal import warn
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.plugins import VERBS

OWN = (
    *("run", "samples", "runs", "score", "compare", "report", "figure", "leaderboard", "models"),
    *("help", "tasks", "study"),
)
"""Modules of `harness.cli.verbs`, in the order of the program's help."""
FOLDER = "eyechart.harness.cli.verbs"
_DOCSTRING = re.compile(r'(?:\s|#.*\n)*r?"""(.+?)(?:"""|\n)')
_OF_PROGRAMS = ("install_completion", "show_completion")


def verb(name: str, *, for_shell: bool = False) -> Any | None:
    """The command, of typer's own click, with this name, `None` if there is none.

    Raises:
        PluginError: its package cannot be imported, or the object is no `typer.Typer`; a shell that
            completes a command gets `None` instead.
    """
    if name in OWN:
        return _command(name, import_module(f"{FOLDER}.{name}").app)
    plugin = plugins.find(VERBS, name)
    if plugin is None:
        return None
    from eyechart.providers.plugins.contract import PluginError, a_kind

    with suppress(*[PluginError] if for_shell else []):
        app = plugin.load()
        if not isinstance(app, typer.Typer):
            raise plugin.error(f"it is {a_kind(app)}, and should be a typer.Typer")
        return _command(name, app)
    return None


def _command(name: str, app: typer.Typer) -> Any:
    command: Any = get_command(app)
    command.name = name
    # typer adds these to every program; `bench` itself has them
    command.params = [one for one in command.params if one.name not in _OF_PROGRAMS]
    return command


def lines() -> dict[str, str]:
    """Verb -> its line in the program's help: the first line of its module, or else the summary of
    its package. Warns of packages that cannot be used.
    """
    found = plugins.installed(VERBS, OWN)
    for error in found.refused.values():
        warn(str(error))
    own = {name: _first_line(f"{FOLDER}.{name}") for name in OWN}
    return own | {
        name: _first_line(plugin.module) or plugin.summary for name, plugin in found.usable.items()
    }


def _first_line(module: str) -> str:
    """The first line of a module's docstring, "" if it has none that can be read. Neither the
    module nor a package above it is imported.
    """
    spec: Any = None
    path = None
    with suppress(Exception):  # finders and files of others
        for name in accumulate(module.split("."), "{}.{}".format):
            found: Any = (finder.find_spec(name, path) for finder in sys.meta_path)
            spec = next(filter(None, found))
            path = spec.submodule_search_locations
        if match := _DOCSTRING.match(spec.loader.get_source(module)):
            return match[1].strip()
    return ""
