"""Waves of adaptive runs: in order, each to its end, and as one command."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.chooser import Wave
from eyechart.harness.run.engine import RunEngine
from eyechart.harness.run.limits import RunLimits
from eyechart.providers.base import BadRequestError, Reply, Request, StopRunError
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import asking_of, records, right

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eyechart.harness.run.progress import Progress
    from eyechart.harness.run.run_request import RunRequest
    from tests.conftest import Lab

MOST = 6


@dataclass
class TwoMore:
    """Chooses two more samples of each cell until there are `MOST`."""

    asked_with: list[int | None] = field(default_factory=list)

    def __call__(self, request: RunRequest, most: int | None) -> Wave:
        self.asked_with.append(most)
        planned = {}
        if (request.folder / MANIFEST).exists():
            planned = {cell.key: cell.samples for cell in read_manifest(request.folder).cells}
        counts: dict[Any, int] = {}
        left = 10**6 if most is None else most
        for key in request.plan.sizes:
            more = min(2, left, MOST - planned.get(key, 0))
            counts[key] = planned.get(key, 0) + more
            left -= more
        return Wave(counts)


class Totals:
    """Keeps the totals of a run's progress."""

    def __init__(self) -> None:
        self.progress: list[Progress] = []

    def judge(self, _request: RunRequest) -> None:
        return None

    @contextmanager
    def show(self, _request: RunRequest, progress: Progress) -> Iterator[None]:
        self.progress.append(progress)
        with nullcontext():
            yield


class Windowed(ScriptedProvider):
    """Counts how often its tokenizer and its facts are asked for."""

    def __init__(self) -> None:
        super().__init__(right)
        self.facts_asked = 0
        self.counted: list[str] = []

    async def facts(self) -> Mapping[str, object]:
        self.facts_asked += 1
        return {"max_model_len": 150}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int]:
        self.counted += prompts
        return [1000 if prompt.splitlines()[-1].count(",") == 4 else 1 for prompt in prompts]


def ask(
    lab: Lab,
    provider: ScriptedProvider,
    *requests: RunRequest,
    choose: TwoMore | None = None,
    budget: Budget | None = None,
    limits: RunLimits = RunLimits(max_connections=4, initial_backoff_s=0),  # noqa: B008  frozen
) -> tuple[RunEngine, Totals]:
    display = Totals()
    asking = asking_of(
        requests or [lab.wanted()],
        limits=limits,
        budget=budget or Budget(),
        display=display,
        said=lab.said.append,
        choose=choose or TwoMore(),
    )
    engine = RunEngine(asking, provider)
    asyncio.run(engine.run())
    return engine, display


def asked(provider: ScriptedProvider) -> list[str]:
    return [request.sample_id for request in provider.requests]


def index_of(request: Request) -> int:
    return int(request.sample_id.rpartition("=")[2])


def test_a_wave_is_asked_to_its_end_before_the_next_one(lab: Lab) -> None:
    """With any number of workers; the samples are those of a full run."""
    provider = ScriptedProvider(right)
    engine, display = ask(lab, provider)
    assert [index_of(request) // 2 for request in provider.requests] == [0] * 8 + [1] * 8 + [2] * 8
    wanted = lab.wanted(samples=MOST)
    assert set(asked(provider)) == {sample.id for sample in wanted.plan}
    (outcome,) = engine.outcomes
    assert outcome.request.plan.size == display.progress[0].total == display.progress[0].done == 24
    assert read_manifest(wanted.folder).adaptive


@pytest.mark.parametrize("after", [1, 8, 11, 16, 23])
def test_a_wave_that_was_begun_is_asked_first(lab: Lab, after: int) -> None:
    """The chooser is asked when it is complete, and sees the same."""
    left = iter(range(10**6))
    stopping = ScriptedProvider(
        lambda request: right(request) if next(left) < after else StopRunError("no")
    )
    with pytest.raises(StopRunError):
        ask(lab, stopping, limits=RunLimits(max_connections=1))
    provider = ScriptedProvider(right)
    ask(lab, provider)
    answered = asked(stopping)[:after]
    assert len(answered) + len(provider.requests) == 24
    assert not set(answered) & set(asked(provider))
    rest = -after % 8
    assert {index_of(request) // 2 for request in provider.requests[:rest]} <= {after // 8}


def test_requests_are_limited_over_all_runs(lab: Lab) -> None:
    """The chooser is told what is left, and nothing is begun that cannot be asked."""
    provider, choose = ScriptedProvider(right), TwoMore()
    budget = Budget(requests=27)
    engine, _ = ask(
        lab, provider, lab.wanted(), lab.wanted(lab.plain), choose=choose, budget=budget
    )
    assert len(provider.requests) == 27
    assert budget.requests == 0
    assert choose.asked_with == [27, 19, 11, 3, 3, 1]
    assert len(engine.outcomes) == 2
    engine, _ = ask(lab, provider, lab.wanted(), lab.wanted(lab.plain), budget=Budget(requests=1))
    assert len(engine.outcomes) == 2
    assert len(provider.requests) == 28
    assert len(set(asked(provider))) == 28


def test_a_wave_without_an_answer_is_the_last(lab: Lab) -> None:
    """Its samples are pending; the next command asks them first."""
    left = iter(range(10**6))
    failing = ScriptedProvider(
        lambda request: right(request) if next(left) < 8 else BadRequestError("no")
    )
    ask(lab, failing)
    assert len(failing.requests) == 16
    provider = ScriptedProvider(right)
    ask(lab, provider)
    assert set(asked(provider)[:8]) == set(asked(failing)[8:])
    assert len(provider.requests) == 16


def test_server_and_window_are_looked_up_once(lab: Lab) -> None:
    """Cells of earlier waves are not measured again, nor is said again what does not fit. One
    prompt of each cell is counted for the window, and both of the first wave for tokens a symbol.
    """
    provider = Windowed()
    ask(lab, provider)
    assert provider.facts_asked == 1
    prompts = [text for text in provider.counted if text.startswith("How many")]
    assert len(prompts) == 4 * (1 + 2)
    assert len([line for line in lab.said if "not sent" in line]) == 1
    assert len(provider.requests) == 18
    failures = [record for record in records(lab.the_run()) if "failure" in record]
    assert len(failures) == 6


def test_names_of_models_are_those_of_one_command(lab: Lab) -> None:
    """A server with several names for its models is warned of, as in a full run, and goes on."""
    provider = ScriptedProvider(
        lambda request: Reply(right(request), model=f"m{index_of(request) // 2}")
    )
    ask(lab, provider)
    assert len(provider.requests) == 24
    assert read_manifest(lab.the_run()).answered_by == ["m0", "m1", "m2"]
    assert any("replies now come from 'm1'" in line for line in lab.said)


def test_rates_go_on_from_wave_to_wave(lab: Lab) -> None:
    """The first request of a wave waits for the last one of the wave before."""
    times: list[float] = []

    def reply(request: Request) -> str:
        times.append(asyncio.get_running_loop().time())
        return right(request)

    wanted = lab.wanted(lengths=[3], axes={"separator": ["none"]})
    ask(lab, ScriptedProvider(reply), wanted, limits=RunLimits(max_connections=4, rpm=1200))
    assert len(times) == MOST
    assert min(after - before for before, after in pairwise(times)) > 0.03
