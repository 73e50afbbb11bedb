"""What the replies of a run cost, and at which prices."""

from __future__ import annotations

from dataclasses import dataclass

from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.journal.server import addresses
from eyechart.harness.plan.resolved_model import ResolvedModel, resolve_model


@dataclass(frozen=True, slots=True)
class RunCost:
    """What the replies of a run, or of a part of it, cost, without attempts that failed."""

    dollars: float
    unknown: int
    """Samples with a record whose tokens are not known; their cost is not included."""
    prices_of: str
    """The date of the prices, and the list that they come from."""

    @property
    def of_day(self) -> str:
        """The date of the prices without the list."""
        return self.prices_of.partition(" ")[0]

    def __str__(self) -> str:
        return dollars_text(self.dollars)


def dollars_text(dollars: float) -> str:
    """`$12.34`, `$0.0012`."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def model_of(manifest: Manifest) -> ResolvedModel:
    """The model of a run, at the addresses where it was asked."""
    return resolve_model(manifest.asked_as, addresses=addresses(manifest.server))
