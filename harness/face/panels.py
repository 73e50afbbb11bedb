"""Runs together with the folders of satellites beside them, such as those of probes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from eyechart.harness.errors import UsageError
from eyechart.harness.journal.record import Warn
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.contract import PluginError
from eyechart.providers.plugins.plugins import PANELS

if TYPE_CHECKING:  # Altair, which it loads, is slow
    from eyechart.harness.report.charts.panels import PanelSource

Beside: TypeAlias = "Sequence[tuple[PanelSource, list[Path]]]"
"""Each satellite with those of the named folders that are its own."""


def panel_sources(warn: Warn) -> list[PanelSource]:
    """What satellites and other packages draw of runs; warns of packages that cannot be used."""
    found = plugins.installed(PANELS, ())
    sources = []
    for plugin in found.usable.values():
        try:
            source = plugin.load()
            if lacks := [
                part for part in ("what", "kinds", "has", "read") if not hasattr(source, part)
            ]:
                raise plugin.error(f"it has no {', '.join(lacks)}")
        except PluginError as error:
            warn(str(error))
            continue
        sources.append(cast("PanelSource", source))
    for refused in found.refused.values():
        warn(str(refused))
    return sources


def added_kinds() -> dict[str, str]:
    """The kinds of figures for papers that packages add, see `PanelSource.kinds`."""
    sources = panel_sources(lambda _: None)  # whoever reads folders warns
    return {kind: said for source in sources for kind, said in source.kinds.items()}


def sorted_out(folders: Sequence[Path], warn: Warn) -> tuple[list[Path], Beside]:
    """The folders of runs, each once, and those of satellites. Warns of a folder that is named
    more than once: two runs that are the same would look like two that agree.

    Raises:
        UsageError: there is no run.
    """
    times: dict[Path, list[Path]] = {}
    for folder in folders:
        times.setdefault(folder.resolve(), []).append(folder)
    named = [same[0] for same in times.values()]
    for same in times.values():
        if len(same) > 1:
            warn(f"{same[0]} is named {len(same)} times, and shown once")
    beside = [
        (source, mine)
        for source in panel_sources(warn)
        if (mine := [folder for folder in named if source.has(folder)])
    ]
    runs = [folder for folder in named if not any(folder in mine for _, mine in beside)]
    if not runs:
        raise UsageError(
            f"{folders[0]} is {beside[0][0].what}: name its run too, which stands under 'runs'"
        )
    return runs, beside
