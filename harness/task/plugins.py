"""Groups of tasks that other distributions add. Each group is the folder of a package.

The entry point has the group's name, so the task `brackets/nested` is the file `nested.yaml` in the
folder of the package that the entry point `brackets` names.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from eyechart.harness.task.files import named_files
from eyechart.providers.plugins.contract import PluginError
from eyechart.providers.plugins.plugins import TASKS, Plugin, find, installed


@dataclass(frozen=True, slots=True)
class PluginTasks:
    """The task files of all plugins."""

    files: dict[str, Path] = field(default_factory=dict)
    """Name -> file."""
    plugins: dict[str, Plugin] = field(default_factory=dict)
    """Group -> the plugin that adds it."""
    errors: list[PluginError] = field(default_factory=list)
    """Why other plugins add nothing."""


def tasks_of_plugins(built_in: Collection[str]) -> PluginTasks:
    """The tasks of all plugins; the groups that are `built_in` are refused."""
    named = installed(TASKS, built_in)
    found = PluginTasks(errors=[*named.refused.values()])
    for group, plugin in named.usable.items():
        try:
            found.files.update(_files(plugin))
        except PluginError as error:
            found.errors.append(error)
        else:
            found.plugins[group] = plugin
    return found


def files_of_group(group: str) -> dict[str, Path]:
    """Name -> file of the tasks that a plugin adds as this group; empty if no plugin does.

    Raises:
        PluginError: two plugins add the group, or the plugin cannot be used.
    """
    plugin = find(TASKS, group)
    return {} if plugin is None else _files(plugin)


def plugin_of(name: str, file: Path) -> Plugin | None:
    """The plugin that adds the task of this name as this file; `None` if there is none."""
    group = name.partition("/")[0]
    try:
        return find(TASKS, group) if files_of_group(group).get(name) == file else None
    except PluginError:
        return None


def folder_of(plugin: Plugin) -> Path:
    """The folder of the package that a plugin names. Imports at most the packages above it.

    Raises:
        PluginError: there is no such package, or it has no folder.
    """
    if ":" in plugin.value:
        raise plugin.error("it should name a package whose folder has task files, not an object")
    with plugin.imports():
        spec = importlib.util.find_spec(plugin.value)
    if spec is None:
        raise plugin.error(f"there is no package {plugin.value!r}")
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None:
        raise plugin.error(f"{plugin.value!r} is no package in a folder, so it has no task files")
    return folder


def _files(plugin: Plugin) -> dict[str, Path]:
    folder = folder_of(plugin)
    files = {f"{plugin.name}/{name}": file for name, file in named_files(folder, folder)}
    if not files:
        raise plugin.error(f"the folder of {plugin.value!r} has no task file (*.yaml)")
    return files
