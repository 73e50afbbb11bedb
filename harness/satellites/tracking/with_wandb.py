"""Logs runs to Weights & Biases; without a key of the user to its files here (`wandb sync` sends
them), as with `WANDB_MODE=offline`.
"""

from __future__ import annotations

import os

from eyechart.harness.face.tracking import PROJECT, LoggedRun
from eyechart.harness.satellites.tracking.missing import check_installed


def open_tracker() -> WandbTracker:
    """The tracker; nothing is sent before a run is logged.

    Raises:
        SetupError: the package is missing.
    """
    check_installed("wandb")
    return WandbTracker()


class WandbTracker:
    """A tracker, see `harness.face.tracking`."""

    def log(self, run: LoggedRun) -> str:
        """Logs the run, or a run that has grown once more under the same id."""
        import wandb  # noqa: PLC0415  an extra

        is_set = bool(os.environ.get("WANDB_MODE"))
        has_key = is_set or wandb.login(prompt=False, verify=False)
        project = os.environ.get("WANDB_PROJECT", PROJECT)
        opened = wandb.init(
            project=project,
            id=run.key,
            name=run.name,
            config=dict(run.config),
            mode=None if has_key else "offline",
            resume="allow",
            reinit="create_new",
            settings=wandb.Settings(
                console="off",
                silent=True,
                init_timeout=30,
                disable_git=True,
                save_code=False,
                x_disable_stats=True,
                x_disable_machine_info=True,
            ),
        )
        try:
            opened.define_metric("by_length/*", step_metric="length")
            for length, values in run.accuracies.items():
                opened.log({"length": length} | {f"by_length/{k}": v for k, v in values.items()})
            opened.summary.update(dict(run.metrics) | dict(run.notes))
            where = opened.dir.removesuffix("/files") if opened.offline else opened.url
        finally:
            opened.finish()
        return f"Weights & Biases, project {project!r}, {where}"
