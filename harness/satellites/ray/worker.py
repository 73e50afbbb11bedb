"""A worker of the cluster: opens the model, and asks one block after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from eyechart.harness.journal.record import Record
from eyechart.harness.plan.cost import UsageMeter
from eyechart.harness.run import pool
from eyechart.harness.run.event_loop import loop_factory
from eyechart.harness.run.limiter import RateLimiter
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.room import Room
from eyechart.harness.satellites.ray.rows import (
    ResultRow,
    SampleRow,
    WorkerBudget,
    back_table,
    read_asked,
    stop_text,
)
from eyechart.harness.spec import Sample, exact_json
from eyechart.providers.base import ModelSettings, Provider, ProviderError
from eyechart.providers.registry.model_name import ModelName
from eyechart.providers.registry.registry import open_model
from eyechart.providers.secrets import redact

if TYPE_CHECKING:
    import pyarrow as pa

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """The task of a worker: which model it opens, and how it asks."""

    name: ModelName
    settings: ModelSettings
    limits: RunLimits
    """The limits of one worker."""
    temperature: float | None = 0.0
    seed: int = 0
    room: Room = field(default_factory=Room)
    """How many tokens replies get at first."""

    @classmethod
    def of(
        cls,
        name: ModelName,
        settings: ModelSettings,
        limits: RunLimits,
        *,
        workers: int,
        seed: int,
        room: Room,
    ) -> WorkerSetup:
        """The order for one of `workers`, which divide the rates of the command."""
        share = replace(
            limits,
            rpm=None if limits.rpm is None else limits.rpm / workers,
            tpm=None if limits.tpm is None else limits.tpm / workers,
        )
        quiet = replace(settings, notify=_ignore, server_log=None)
        return cls(name, quiet, share, settings.temperature, seed, room)


def _ignore(_line: str) -> None:
    """Ignores a message of a provider, since nobody reads it on a worker."""


class OpenModel:
    """A model that is opened on first use, with its own event loop."""

    def __init__(self, order: WorkerSetup) -> None:
        self._order = order
        self._loop: asyncio.AbstractEventLoop | None = None
        self._provider: Provider | None = None

    def do(self, work: Callable[[Provider], Coroutine[Any, Any, _Result]]) -> _Result:
        """Runs `work`; raises a `ProviderError` if the model cannot be opened."""
        if self._loop is None:
            self._loop = (loop_factory() or asyncio.new_event_loop)()
        if self._provider is None:
            self._provider = open_model(self._order.name, self._order.settings)
        return self._loop.run_until_complete(work(self._provider))

    def close(self) -> None:
        if self._loop is not None and self._provider is not None:
            self._loop.run_until_complete(self._provider.aclose())


class FactsActor:
    """An actor that answers questions about the model, since only workers may have room for it.

    Its answers are JSON: `value`, or `stop` with the error. Ray would wrap an error that is raised.
    """

    def __init__(self, order: WorkerSetup) -> None:
        self._model = OpenModel(order)

    def facts(self) -> bytes:
        """The provider's facts."""
        return self._say(lambda: dict(self._model.do(lambda provider: provider.facts())))

    def count_tokens(self, prompts: Sequence[str]) -> bytes:
        """Number of tokens of each prompt; null where that is not known."""
        return self._say(lambda: self._model.do(lambda provider: provider.count_tokens(prompts)))

    @staticmethod
    def _say(value: Callable[[], object]) -> bytes:
        try:
            return exact_json.dumps({"value": value()})
        except ProviderError as error:
            return exact_json.dumps({"stop": stop_text(error)})


class Worker:
    """Asks blocks: Ray Data calls it with one after another."""

    def __init__(self, order: WorkerSetup) -> None:
        self._order = order
        self._model = OpenModel(order)
        self._room = replace(order.room, grows=False)  # the command has added its head
        self._rates = RateLimiter(rpm=order.limits.rpm, tpm=order.limits.tpm)

    def __call__(self, block: pa.Table) -> pa.Table:
        """The rows of results. If the run must end, the last row has the error."""
        return back_table(self.answers([read_asked(row) for row in block.to_pylist()]))

    def answers(self, asked: Sequence[SampleRow]) -> list[ResultRow]:
        """The results of a block."""
        runs = {one.sample.id: one.run for one in asked}
        found: list[ResultRow] = []
        pairs, bill = [(one.sample, one.max_tokens) for one in asked], WorkerBudget()

        def keep(record: Record) -> None:
            found.append(ResultRow(runs[record.id], record, None, bill.hand_over()))

        def end(error: ProviderError) -> None:
            found.append(ResultRow(asked[0].run, None, error, bill.hand_over()))

        try:
            self._model.do(lambda provider: self._ask(pairs, provider, keep, bill))
        except ProviderError as error:
            end(error)
        except Exception as error:  # noqa: BLE001  the run ends with one line, wherever it is
            end(ProviderError(redact(" ".join(f"{type(error).__name__}: {error}".split()))))
        return found

    async def _ask(
        self,
        pairs: Sequence[tuple[Sample, int]],
        provider: Provider,
        keep: Callable[[Record], None],
        bill: WorkerBudget,
    ) -> None:
        order = self._order
        await pool.ask_all(
            iter(pairs),
            provider,
            keep,
            temperature=order.temperature,
            seed=order.seed,
            meter=UsageMeter(bill, order.settings.system or "", is_counting=True),
            room=self._room,
            api=order.settings.api,
            limits=order.limits,
            rates=self._rates,
        )
