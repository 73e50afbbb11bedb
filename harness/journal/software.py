"""Versions of the software that makes a run or an export."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from eyechart.providers.plugins import Plugin


def software(*plugins: Plugin | None) -> dict[str, str]:
    """The versions of Eyechart, Python, the platform, and the distributions of used plugins."""
    try:
        own = version("eyechart")
    except PackageNotFoundError:
        own = "not installed"
    return {
        **{plugin.distribution: plugin.version for plugin in plugins if plugin is not None},
        "eyechart": own,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
