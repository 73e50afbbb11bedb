"""Logs runs to Trackio, which keeps them in a database here unless its own variables name a server
or a Space.
"""

from __future__ import annotations

from typing import Any

from eyechart.harness.face.tracking import PROJECT, LoggedRun
from eyechart.harness.satellites.tracking.missing import check_installed


def open_tracker() -> TrackioTracker:
    """The tracker; nothing is sent before a run is logged.

    Raises:
        SetupError: the package is missing.
    """
    check_installed("trackio")
    return TrackioTracker()


class TrackioTracker:
    """A tracker, see `harness.face.tracking`."""

    def log(self, run: LoggedRun) -> str:
        """Logs the run, or a run that has grown once more under the same name."""
        import trackio  # noqa: PLC0415  an extra

        name = f"{run.name} {run.key[:8]}"
        opened: Any = trackio.init(
            project=PROJECT,
            name=name,
            config=dict(run.config) | dict(run.notes),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        try:
            for length, values in run.accuracies.items():
                opened.log({f"by_length/{key}": value for key, value in values.items()}, length)
            opened.log(dict(run.metrics))
        finally:
            opened.finish()
        return f"Trackio, project {PROJECT!r}, run {name!r}; 'trackio show' opens it"
