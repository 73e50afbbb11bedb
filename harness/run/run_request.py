"""One run that a command asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from eyechart.harness.journal.manifest import run_folder, shard_folder
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.spec import Settings
from eyechart.providers.plugins import Plugin

SERVER_LOG = "server.log"
"""In a run's folder: the output of the server that the provider started."""


@dataclass(frozen=True)
class RunRequest:
    """One model on one task, with the settings and the folder of all runs."""

    plan: Plan
    model: ResolvedModel
    settings: Settings
    out: Path
    known_facts: Mapping[str, object] = field(default_factory=dict)
    """Facts of the provider that are known before it is opened."""
    plugin: Plugin | None = None
    """The plugin that adds the model's provider; `None` if it is built in."""
    accept_server: bool = False
    """Whether the user accepts a server that does not say whether it has the run's model."""
    command: str = ""
    """The call that asked for the run; "" for the command line of this process."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """How it is asked, besides `settings`: see `RunSettings.kept`."""

    @cached_property
    def run(self) -> Path:
        """The run's folder; for a shard, that of the run whose rows it asks."""
        task = self.plan.task
        return run_folder(self.out, self.model.label, task.spec, task.name, self.settings)

    @cached_property
    def folder(self) -> Path:
        """Where the run is or will be."""
        run, shard = self.run, self.plan.shard
        return run if shard.is_whole else shard_folder(run, shard)

    @property
    def server_log(self) -> Path:
        return self.folder / SERVER_LOG

    @property
    def name(self) -> str:
        return self.plan.task.name
