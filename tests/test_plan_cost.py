"""Tokens before they are sent, dollars as they are spent, and budgets that hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import date
from itertools import repeat
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyechart.harness.plan.cost import (
    Budget,
    MaxUsage,
    UsageMeter,
    cost,
    estimate_tokens,
    most_tokens,
    sound_usage,
)
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.pool import ask_all
from eyechart.harness.run.progress import Progress
from eyechart.harness.spec import Condition, Line, Sample
from eyechart.providers.base import (
    AuthError,
    BadReplyError,
    BadRequestError,
    OverloadedError,
    Reply,
    Request,
    StopRunError,
    Usage,
)
from eyechart.providers.catalog.model_facts import PriceList
from eyechart.providers.catalog.prices import Prices, Rates, Timetable
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records, right

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab

pytestmark = pytest.mark.usefixtures("own_time")

PRICES = PriceList(input=2.0, output=10.0, as_of=date(2025, 10, 1)).prices()
DOLLAR = PriceList(input=0.0, output=1e6, as_of=date(2025, 10, 1)).prices()
"""A dollar a token of replies."""
CHEAP, DEAR = (
    (
        (-1, Rates(factor, factor / 10, factor * 1.25, 5 * factor, 6 * factor, 7 * factor)),
        (12, Rates(2 * factor, factor / 5, factor * 2.5, 8 * factor, 9 * factor, 7 * factor)),
    )
    for factor in (1.0, 2.0)
)
CHANGING = Prices(
    {"default": Timetable((float("-inf"),), (0, 43_200), ((CHEAP, DEAR),))}, date(2025, 10, 1)
)
"""Dearer after noon, for prompts of more than 12 tokens, for what is written to a cache."""
HUGE = 10**400


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("11111", 5),
        ("1,1;1", 5),
        ("word", 1),
        ("sentence", 2),
        ("a b", 2),
        ("Row A:\n1 + 1", 7),
        ("ü_ß", 3),
    ],
)
def test_the_rule_where_no_tokenizer_is_at_hand(text: str, tokens: int) -> None:
    """One a digit, sign and line end, one for five letters."""
    assert estimate_tokens(text) == tokens
    assert estimate_tokens(text) <= most_tokens(text)


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("1 1", 3), ("ü1", 3), ("\ud800", 3)])
def test_a_token_has_a_byte_at_least(text: str, tokens: int) -> None:
    """Also where half a character stands alone."""
    assert most_tokens(text) == tokens


def test_a_million_tokens_cost_their_price() -> None:
    """Input and output each by their own."""
    assert cost(PRICES, Usage(1_000_000, 500_000)) == 7.0


def test_a_budget_is_spent_at_its_limit() -> None:
    """Not before; without prices there is nothing to add."""
    budget = Budget(PRICES, limit=0.01)
    budget.charge(Usage(1000, 700))
    assert (round(budget.spent, 9), budget.exhausted) == (0.009, False)
    budget.charge(Usage(1000, 0))
    assert (round(budget.spent, 9), budget.exhausted) == (0.011, True)
    unknown = Budget()
    unknown.charge(Usage(10**9, 10**9))
    assert (unknown.spent, unknown.exhausted) == (0.0, False)


class TestUsage:
    """What figures of a server are worth."""

    @pytest.mark.parametrize(
        ("usage", "said", "sound"),
        [
            (Usage(11, 3), True, True),
            (Usage(10**12, 3), True, True),
            (Usage(0, 3), True, True),
            (Usage(11, 0), False, True),
            (Usage(0, 0), False, True),
            (Usage(0, 0), True, False),
            (Usage(11, 0), True, False),
            (Usage(10**12 + 1, 3), True, False),
            (Usage(11, 2**64 - 1), True, False),
            (Usage(HUGE, HUGE), False, False),
            (Usage(-1, 3), True, False),
            (Usage(11.0, 3), True, False),  # type: ignore[arg-type]
            (Usage(True, 3), True, False),
            (Usage("11", 3), True, False),  # type: ignore[arg-type]
            (None, True, False),
        ],
    )
    def test_what_cannot_be_true_is_unknown(
        self, usage: Usage | None, *, said: bool, sound: bool
    ) -> None:
        """No whole numbers, negative ones, more than 10^12, and a text of no tokens."""
        assert sound_usage(usage, has_text=said) == (usage if sound else None)

    def test_it_is_said_once(self) -> None:
        """The first of them is named, in one line however long it is."""
        lines: list[str] = []
        meter = UsageMeter(Budget(PRICES), say=lines.append)
        for usage in (Usage(11, 3), Usage(11, HUGE), Usage(0, 0)):
            reply, _ = meter.settle(Reply("4 ones", usage=usage), "11", 10)
            assert reply.usage == (usage if usage == Usage(11, 3) else None)
        meter.settle_nothing(Usage(HUGE, 0))
        (line,) = lines
        assert line == (
            "the server's counts of tokens are ignored where they cannot be true; the first "
            "such count is prompt_tokens 11 and output_tokens of about 401 digits for a reply of "
            "6 characters"
        )

    @pytest.mark.parametrize("usage", [None, Usage(0, 0), Usage(3, HUGE), Usage(-5, 7)])
    def test_without_it_a_reply_is_estimated(self, usage: Usage | None) -> None:
        """System prompt, prompt, reasoning and text, by the rule."""
        budget = Budget(PRICES)
        meter = UsageMeter(budget, "Be brief.")
        reply = Reply("4 ones", usage=usage, reasoning="one, two")
        _, used = meter.settle(reply, "1111 a", 60)
        asked = estimate_tokens("Be brief.") + estimate_tokens("1111 a")
        assert used == Usage(asked, estimate_tokens("one, two 4 ones"))
        assert budget.spent == cost(PRICES, used)
        assert budget.estimated == 1
        meter.settle(Reply("4 ones", usage=Usage(7, 9)), "1111 a", 60)
        assert budget.estimated == 1

    def test_an_estimate_is_within_the_maximum(self) -> None:
        """A long row of digits may be few tokens; one that was cut off is as long as it may be."""
        meter = UsageMeter(Budget(PRICES))
        _, long = meter.settle(Reply("1" * 999), "1", 60)
        _, cut = meter.settle(Reply("", "length"), "1", 60)
        assert long.output_tokens == cut.output_tokens == 60

    def test_nothing_is_estimated_for_nobody(self) -> None:
        """Where neither prices nor a rate want to know."""
        reply = Reply("4 ones")
        assert UsageMeter().settle(reply, "1111", 10) == (reply, Usage(0, 0))
        assert UsageMeter(is_counting=True).settle(reply, "1111", 10)[1] == Usage(4, 2)


class TestAdmission:
    """Who may leave, and when."""

    @staticmethod
    async def waiting(budget: Budget, max_usage: MaxUsage, order: list[int], name: int) -> None:
        if await budget.admit(max_usage):
            order.append(name)

    def test_the_worst_of_the_others_counts(self) -> None:
        """Of requests of 4 dollars three may leave for 10: the third with 8 in flight."""

        async def main() -> None:
            budget, max_usage, order = Budget(DOLLAR, limit=10), MaxUsage(0, 4), list[int]()
            tasks = [
                asyncio.create_task(self.waiting(budget, max_usage, order, name))
                for name in range(6)
            ]
            await asyncio.sleep(0)
            assert order == [0, 1, 2]
            budget.charge(Usage(0, 1))
            budget.release(max_usage)  # 9 are spent or in flight
            await asyncio.sleep(0)
            assert order == [0, 1, 2, 3]
            budget.charge(Usage(0, 4))
            budget.release(max_usage)  # 13 still
            await asyncio.sleep(0)
            assert order == [0, 1, 2, 3]
            budget.release(max_usage)
            await asyncio.sleep(0)
            assert order == [0, 1, 2, 3, 4]
            budget.charge(Usage(0, 5))
            budget.release(max_usage)
            await asyncio.gather(*tasks)  # 10 are spent, so the last one may not leave
            assert order == [0, 1, 2, 3, 4]
            assert not await budget.admit(max_usage)

        asyncio.run(main())

    def test_who_is_cancelled_gives_the_place_on(self) -> None:
        """Before his turn came, and between his turn and his waking."""

        async def main() -> None:
            budget, max_usage, order = Budget(DOLLAR, limit=3), MaxUsage(0, 4), list[int]()
            assert await budget.admit(max_usage)
            tasks = [
                asyncio.create_task(self.waiting(budget, max_usage, order, name))
                for name in range(4)
            ]
            await asyncio.sleep(0)
            tasks[0].cancel()
            budget.release(max_usage)
            tasks[1].cancel()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert order == [2]
            budget.release(max_usage)
            await asyncio.sleep(0)
            assert order == [2, 3]
            budget.release(max_usage)
            assert (budget.worst(max_usage), budget.spent) == (4.0, 0.0)
            assert await budget.admit(max_usage)

        asyncio.run(main())

    def test_prompts_that_take_more_than_thought_count_more(self) -> None:
        """From the first reply that shows it, also those in flight."""

        async def main() -> None:
            budget, max_usage, order = Budget(PRICES, limit=0.001), MaxUsage(100, 0), list[int]()
            assert budget.worst(max_usage) == 0.0002
            assert [await budget.admit(max_usage) for _ in range(3)] == [True] * 3
            budget.learn(90, 100)
            assert budget.worst(max_usage) == 0.0002
            budget.learn(250, 100)
            assert budget.worst(max_usage) == 0.0005
            task = asyncio.create_task(self.waiting(budget, max_usage, order, 1))
            await asyncio.sleep(0)
            assert order == []
            budget.release(max_usage)
            await asyncio.sleep(0)
            assert order == []
            budget.release(max_usage)
            await task
            assert order == [1]

        asyncio.run(main())


def samples(count: int) -> Iterator[tuple[Sample, int]]:
    for index in range(count):
        yield (
            Sample(
                f"id{index}", Condition(), Line.exact(3), 3, index, f"prompt {'1' * (index % 7)}", 3
            ),
            20,
        )


class Vendor(ScriptedProvider):
    """Takes random times, charges at random, fails at random, and adds up what is owed."""

    def __init__(self, random: Random, budget: Budget, *, faulty: bool = True) -> None:
        super().__init__(["3"])
        self.random = random
        self.budget = budget
        self.faulty = faulty
        self.owed = 0.0
        self.worst: dict[str, float] = {}
        """Of requests in flight."""
        self.greatest = 0.0
        """The most that one of them may have cost."""
        self.least = float("inf")
        """The least of these costs."""
        self.at_stake = 0.0
        """The most that was owed, and might be for all others in flight, when a request came."""

    async def complete(self, request: Request) -> Reply:
        assert self.budget.prices is not None
        bytes_sent = len("Be brief.") + len(request.prompt)
        most = self.budget.worst(MaxUsage(bytes_sent, request.max_tokens))
        self.at_stake = max(self.at_stake, self.owed + sum(self.worst.values()))
        self.worst[request.sample_id] = most
        self.greatest, self.least = max(self.greatest, most), min(self.least, most)
        for _ in range(self.random.choice((0, 1, 2, 9))):
            await asyncio.sleep(0)
        del self.worst[request.sample_id]
        whole = self.random.choice((True, False))
        output = request.max_tokens if whole else self.random.randint(1, 5)
        prompt = self.random.randint(1, bytes_sent)
        written = self.random.choice((None, 0, self.random.randint(0, prompt)))
        usage = Usage(prompt, output, cache_write_tokens=written)
        kind = self.random.randrange(8) if self.faulty else 7
        if kind == 0:
            raise OverloadedError("503")
        if kind == 1:
            raise BadRequestError("400")
        self.owed += cost(self.budget.prices, usage, self.budget.clock()) or 0.0
        if kind == 2:
            raise BadReplyError("no choices", usage=usage)
        return Reply("3", usage=usage)


def asked(
    vendor: Vendor, count: int, limits: RunLimits, budget: Budget, **more: Any
) -> list[dict[str, Any]]:
    """Runs on a clock of its own; what was written."""
    written: list[dict[str, Any]] = []
    now_s = 0.0

    async def sleep(pause_s: float) -> None:
        nonlocal now_s
        now_s += pause_s
        await asyncio.sleep(0)

    async def main() -> None:
        work = ask_all(
            samples(count),
            vendor,
            more.pop("append", written.append),
            meter=UsageMeter(budget, "Be brief.", is_counting=limits.tpm is not None),
            limits=limits,
            progress=Progress(budget=budget),
            sleep=sleep,
            clock=lambda: now_s,
            **more,
        )
        await asyncio.wait_for(work, 5)

    asyncio.run(main())
    return written


class TestRuns:
    """Budgets of whole runs."""

    @settings(max_examples=80, deadline=None)
    @given(
        seed=st.integers(0, 2**32),
        connections=st.integers(1, 40),
        count=st.integers(1, 120),
        share=st.floats(0.0001, 1.2),
        rates=st.sampled_from(({}, {"rpm": 600.0}, {"tpm": 9000.0}, {"rpm": 60.0, "tpm": 900.0})),
        prices=st.sampled_from((PRICES, CHANGING)),
    )
    def test_a_budget_holds_and_is_spent(
        self,
        *,
        seed: int,
        connections: int,
        count: int,
        share: float,
        rates: dict[str, Any],
        prices: Prices,
    ) -> None:
        """Whatever replies cost, take and fail of: it is passed by less than one request may cost,
        and where samples are left all of it is spent. Two runs share it, and the second gets what
        the first left.
        """
        limit = share * count * 2 * 0.0002
        budget = Budget(prices, limit)
        vendor = Vendor(Random(seed), budget)
        limits = RunLimits(
            connections,
            max_consecutive_failures=10**9,
            stall_timeout_s=1e12,
            max_elapsed_s=1e12,
            **rates,
        )
        for hour in (1, 14):
            budget.clock = repeat(hour * 3600.0).__next__
            written = asked(vendor, count, limits, budget)
            assert vendor.worst == {}
            assert budget.spent == pytest.approx(vendor.owed)
            # requests may overtake each other between their admission and the vendor
            assert vendor.at_stake < limit + vendor.greatest - vendor.least + 1e-12
            assert budget.spent < limit + vendor.greatest
            assert len(written) == count or budget.spent >= limit
            assert not budget._in_flight
            assert not budget._waiting

    def test_short_replies_at_first_deceive_nobody(self) -> None:
        """All that follow take their whole maximum, as many at once as may."""
        budget = Budget(DOLLAR, limit=1000)

        class Turning(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                self.requests.append(request)
                number = len(self.requests)
                for _ in range(3):
                    await asyncio.sleep(0)
                return Reply("3", usage=Usage(1, 1 if number < 200 else request.max_tokens))

        limits = RunLimits(max_connections=512, first_connections=512)
        work = ask_all(
            samples(900), Turning(["3"]), print, limits=limits, progress=Progress(budget=budget)
        )
        asyncio.run(work)
        assert 1000 <= budget.spent < 1020

    def test_without_a_budget_nobody_waits_for_money(self) -> None:
        """Prices alone hold up nothing."""
        budget = Budget(DOLLAR)
        provider = ScriptedProvider(["3"])
        work = ask_all(
            samples(50),
            provider,
            lambda _: None,
            limits=RunLimits(4),
            progress=Progress(budget=budget),
        )
        asyncio.run(work)
        assert len(provider.requests) == 50
        assert not budget._in_flight

    def test_who_pauses_between_attempts_holds_no_money(self) -> None:
        """Another one leaves meanwhile."""
        budget = Budget(DOLLAR, limit=15)
        order: list[str] = []

        class Busy(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                order.append(request.sample_id)
                if order == ["id0"]:
                    raise OverloadedError("503")
                return Reply("3", usage=Usage(1, 2))

        limits = RunLimits(2, initial_backoff_s=0.02)
        progress = Progress(budget=budget)
        asyncio.run(
            ask_all(samples(3), Busy(["3"]), lambda _: None, limits=limits, progress=progress)
        )
        assert order == ["id0", "id1", "id2", "id0"]

    @pytest.mark.parametrize("how", ["interrupted", "stopped"])
    def test_who_waits_for_money_goes_home(self, how: str) -> None:
        """Where the user interrupts the run or the key is refused: nothing more leaves, and what
        was in flight is written.
        """
        budget = Budget(DOLLAR, limit=25)
        written: list[str] = []
        begun: list[str] = []

        class Slow(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                begun.append(request.sample_id)
                await asyncio.sleep(0.03 if request.sample_id == "id0" else 0.08)
                if how == "stopped" and request.sample_id == "id0":
                    raise AuthError("401")
                return Reply("3", usage=Usage(1, 1))

        async def main() -> None:
            progress = Progress(budget=budget)
            work = ask_all(
                samples(9),
                Slow(["3"]),
                lambda one: written.append(one.id),
                limits=RunLimits(9),
                progress=progress,
            )
            task = asyncio.create_task(work)
            await asyncio.sleep(0.01)
            assert begun == ["id0", "id1"]
            if how == "interrupted":
                task.cancel()
            with pytest.raises((asyncio.CancelledError, StopRunError)):
                await asyncio.wait_for(task, 5)

        asyncio.run(main())
        assert begun == ["id0", "id1"]
        assert written == (["id1"] if how == "stopped" else ["id0", "id1"])
        assert not budget._in_flight
        assert not budget._waiting

    def test_a_reply_that_cannot_be_written_gives_its_money_back(self) -> None:
        """Whoever is in flight then is settled, too."""
        budget = Budget(DOLLAR, limit=50)

        def full(_record: dict[str, Any]) -> None:
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            asked(Vendor(Random(1), budget, faulty=False), 9, RunLimits(3), budget, append=full)
        assert not budget._in_flight


def priced(folder: Path, model: str = "fake/model") -> str:
    """A file of models in which every output token costs a dollar."""
    path = folder / "models.yaml"
    path.write_text(f"{model}: {{prices: {{input: 0, output: 1000000, as_of: 2025-10-01}}}}\n")
    return str(path)


class TestCommand:
    """`bench run` with a budget, and with figures that cannot be true."""

    def test_the_tasks_of_a_command_share_a_budget(self, lab: Lab) -> None:
        """16 samples of one, then of the next: it is passed by less than one request may cost."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        full = Usage(1, 10)
        model = lab.fake(lambda request: Reply(right(request), usage=full, sure_stop=True))
        options = ("--max-tokens", "10", "--max-connections", "64", "--budget", "185")
        done = lab.bench_run("--model", model, *options, task=lab.folder / "lab")
        assert done.code == 1
        assert "cost about $190 at" in done.err
        assert "4 samples have no reply (the budget of $185 is spent)" in done.err

    def test_a_cost_that_is_estimated_is_said_so(self, lab: Lab) -> None:
        """The table has no cost where no tokens are counted."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        model = lab.fake(lambda request: Reply(right(request)))
        done = lab.bench_run("--model", model)
        said = done.err.partition("cost about $")[2].splitlines()[0].partition(" ")[2]
        assert said == (
            "at the prices of 2025-10-01; for 16 replies this is an estimate, which the table "
            "leaves out: the server gives no token counts that can be true"
        )
        assert "cost, prices of" not in done.out

    @pytest.mark.parametrize("budget", ["0.000001", "25"])
    def test_connections_are_no_excuse(self, lab: Lab, budget: str) -> None:
        """With sixteen at once no more is asked than the budget pays for."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))

        class Slow(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                self.requests.append(request)
                await asyncio.sleep(0.01)
                return Reply(right(request), usage=Usage(1, 10))

        slow = Slow(["3"])
        options = ("--max-tokens", "10", "--max-connections", "16", "--budget", budget)
        done = lab.bench_run("--model", lab.fake(slow), *options)
        assert done.code == 1
        assert len(slow.requests) == (1 if budget != "25" else 3)

    @pytest.mark.parametrize("figure", [HUGE, 2**64 - 1, -3], ids=int.bit_length)
    def test_a_figure_that_cannot_be_true_costs_nothing_but_itself(
        self, lab: Lab, figure: int
    ) -> None:
        """The run is complete, its journal says that the tokens are unknown, and the user is told
        once.
        """

        def script(request: Request) -> Reply:
            odd = request.sample_id.endswith("index=1")
            return Reply(right(request), usage=Usage(11, figure if odd else 3))

        done = lab.bench_run("--model", lab.fake(script))
        assert done.code == 0
        assert done.err.count("the server's counts of tokens are ignored") == 1
        said = [(one["prompt_tokens"], one["output_tokens"]) for one in records(lab.the_run())]
        assert sorted(said, key=str) == [(11, 3)] * 12 + [(None, None)] * 4
        assert lab.bench_run("--model", lab.fake(script)).err == ""

    def test_the_system_prompt_is_in_the_estimate(self, lab: Lab) -> None:
        """Of replies without usage."""
        models = lab.folder / "models.yaml"
        prices = "{input: 1000000, output: 0, as_of: 2025-10-01}"
        models.write_text(f"fake/model: {{prices: {prices}}}\n")
        lab.monkeypatch.setenv("EYECHART_MODELS", str(models))
        spent: list[float] = []
        script: Callable[[Request], str] = right
        for more in ((), ("--system", "Be brief.", "--fresh")):
            err = lab.bench_run("--model", lab.fake(script), *more).err
            spent.append(float(err.partition("cost about $")[2].split()[0]))
        assert spent[1] - spent[0] == 16 * estimate_tokens("Be brief.")
