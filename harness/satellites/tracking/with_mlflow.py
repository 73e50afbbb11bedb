"""Logs runs to MLflow: to the server or the file that `MLFLOW_TRACKING_URI` names, and without it
to `mlflow.db` in the current folder.
"""

from __future__ import annotations

import logging
import math
import os
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eyechart.harness.face.tracking import PROJECT, LoggedRun
from eyechart.harness.satellites.tracking.missing import check_installed

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_KEY = "eyechart.key"
_NOTES = "eyechart/"
"""Before the names of tags that are notes of a run."""
_MOST = 1000
"""Metrics that a request may have."""
_MOST_VALUE = 6000
"""Characters of a value that MLflow takes."""


def open_tracker() -> MlflowTracker:
    """The tracker of the server or file that MLflow's own variables name.

    Raises:
        SetupError: the package is missing.
    """
    check_installed("mlflow")
    for name, value in _USUAL.items():
        os.environ.setdefault(name, value)
    return MlflowTracker()


_USUAL = {
    # a server that is away must not hold up the end of a command for minutes
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
"""MLflow's own variables, where the user has not set them."""


class MlflowTracker:
    """A tracker, see `harness.face.tracking`."""

    @cached_property
    def client(self) -> MlflowClient:
        """The client of the server or file."""
        from mlflow import MlflowClient  # noqa: PLC0415  an extra

        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        return MlflowClient()

    def log(self, run: LoggedRun) -> str:
        """Logs the run, or a run that has grown once more under the same id."""
        from mlflow.entities import Metric, Param, RunTag  # noqa: PLC0415

        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self._experiment(name)
        earlier = self._earlier(experiment, run)
        run_id = str(earlier.info.run_id)
        now = int(time.time() * 1000)
        metrics = [Metric(key, value, now, 0) for key, value in run.metrics.items()]
        metrics += [
            Metric(f"by_length/{key}", value, now, length)
            for length, values in run.accuracies.items()
            for key, value in values.items()
        ]
        # what is not known any more must not stay as it was
        gone = earlier.data.metrics.keys() - {metric.key for metric in metrics}
        metrics += [Metric(key, math.nan, now, 0) for key in gone]
        params = [Param(key, str(value)[:_MOST_VALUE]) for key, value in run.config.items()]
        notes = {f"{_NOTES}{key}": value for key, value in run.notes.items()}
        for key in earlier.data.tags.keys() - notes.keys():
            if key.startswith(_NOTES):
                self.client.delete_tag(run_id, key)
        tags = [RunTag(key, value) for key, value in notes.items()]
        self.client.log_batch(run_id, params=params, tags=tags)
        for part in _parts(metrics, _MOST):
            self.client.log_batch(run_id, metrics=part)
        self.client.set_terminated(run_id)
        return f"MLflow, experiment {name!r} at {self.client.tracking_uri}, run {run_id}"

    def _experiment(self, name: str) -> str:
        found = self.client.get_experiment_by_name(name)
        return str(self.client.create_experiment(name) if found is None else found.experiment_id)

    def _earlier(self, experiment: str, run: LoggedRun) -> Run:
        """The run of MLflow that has this key; a new one if there is none."""
        found: list[Run] = self.client.search_runs([experiment], f"tags.`{_KEY}` = '{run.key}'")
        if found:
            return found[0]
        return self.client.create_run(experiment, run_name=run.name, tags={_KEY: run.key})


def _parts(metrics: list[Any], most: int) -> list[list[Any]]:
    return [metrics[start : start + most] for start in range(0, len(metrics), most)]
