"""One run that a command asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from eyechart.harness.journal.manifest import run_folder
from eyechart.harness.journal.record import journal_name
from eyechart.harness.plan.plan import Plan
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.spec import Settings
from eyechart.providers.plugins.plugins import Plugin


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
    def folder(self) -> Path:
        """Where the run is or will be."""
        task = self.plan.task
        return run_folder(self.out, self.model.label, task.spec, task.name, self.settings)

    @property
    def journal(self) -> str:
        """The name of the journal that the command writes in this folder."""
        return journal_name(self.plan.shard)

    @property
    def server_log(self) -> Path:
        """The output of the server that the provider started."""
        return self.folder / self.journal.replace("samples", "server").replace(".jsonl", ".log")

    @property
    def name(self) -> str:
        return self.plan.task.name
