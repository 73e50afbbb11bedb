"""How many requests fly at once and when the next may leave, on a clock of the tests' own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from eyechart.harness.run.limiter import AdaptiveLimiter, Permit, RateLimiter
from tests.conftest import PATIENCE_S


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, pause_s: float) -> None:
        self.now_s += pause_s
        await asyncio.sleep(0)

    def limiter(
        self, most: int, *, rpm: float | None = None, tpm: float | None = None
    ) -> AdaptiveLimiter:
        rates = RateLimiter(rpm=rpm, tpm=tpm, clock=self.clock, sleep=self.sleep)
        return AdaptiveLimiter(most, rates, clock=self.clock)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, PATIENCE_S))


def test_the_limit_doubles_with_each_round_of_replies() -> None:
    """Sixteen at first, never more than allowed."""
    limiter = Time().limiter(100)
    limits = [limiter.limit]
    for _ in range(4):
        for _ in range(limiter.limit):
            limiter.grow(0.1)
        limits.append(limiter.limit)
    assert limits == [16, 32, 64, 100, 100]


def test_a_storm_halves_it_once_for_all_that_were_on_their_way() -> None:
    """Those sent before the cut say nothing new; afterwards it grows by one a round."""
    time = Time()
    limiter = time.limiter(64)
    for _ in range(48):
        limiter.grow(0.1)
    assert limiter.limit == 64
    time.now_s = 1.0
    limits = []
    for sent_s in (0.2, 0.3, 0.5, 0.9, 1.1):
        Permit(limiter, sent_s).on_overload()
        limits.append(limiter.limit)
    assert limits == [56, 49, 24, 24, 12]
    for _ in range(13):
        limiter.grow(0.1)
    assert limiter.limit == 13


def test_overloads_among_replies_lower_it_a_little_and_pause_nobody() -> None:
    """It grows back as before, since the server answers all the same."""

    async def main() -> None:
        time = Time()
        limiter = time.limiter(64)
        for _ in range(48):
            limiter.grow(0.1)
        for _ in range(5):
            Permit(limiter, time.now_s).on_overload(60)
            assert limiter.limit == 56
            for _ in range(8):
                limiter.grow(0.1)
            assert limiter.limit == 64
        assert (await limiter.acquire(0)).sent_s == 0

    run(main())


def test_it_never_falls_below_one() -> None:
    """A server in trouble is asked one by one, and the limit grows again."""
    time = Time()
    limiter = time.limiter(8)
    for _ in range(10):
        Permit(limiter, time.now_s).on_overload()
        time.now_s += 1
    assert limiter.limit == 1
    for _ in range(3):
        limiter.grow(0.1)
    assert limiter.limit == 2


@pytest.mark.parametrize(("per_request_s", "grows"), [(0.01, False), (0.0, True)])
def test_it_grows_while_latency_holds(per_request_s: float, *, grows: bool) -> None:
    """A server that only makes its callers wait longer is not given more of them."""
    limiter = Time().limiter(1024)
    for _ in range(5000):
        limiter.grow(0.1 + per_request_s * limiter.limit)
    assert (limiter.limit == 1024) is grows
    assert limiter.limit >= 32


def test_one_quick_reply_sets_no_standard() -> None:
    """Later replies are compared with an average of many, not with the quickest of all."""
    limiter = Time().limiter(1024)
    limiter.grow(0.001)
    for _ in range(2000):
        limiter.grow(0.1)
    assert limiter.limit == 1024


def test_the_standard_is_the_smallest_limit_with_the_best_latency() -> None:
    """Replies that take four times as long are worth it while ten times as many are in flight."""
    limiter = AdaptiveLimiter(1000, first=16)
    for _ in range(484):
        limiter.grow(1.0)
    assert limiter.limit == 500
    for _ in range(100):
        limiter.grow(4.0)
    assert limiter.limit == 600


def test_replies_faster_than_the_clock_are_no_trouble() -> None:
    """Some clocks tick slowly."""
    limiter = Time().limiter(200)
    for _ in range(500):
        limiter.grow(0.0)
    assert limiter.limit == 200


def test_it_may_begin_with_one() -> None:
    """Where the first reply has to tell something."""
    limiter = AdaptiveLimiter(64, first=1)
    assert limiter.limit == 1
    Permit(limiter, 0.0).on_success(0.1)
    assert limiter.limit == 2


def test_whoever_waits_is_let_in_in_turn() -> None:
    """First come, first served, and nobody slips in between."""

    async def main() -> None:
        limiter, order = Time().limiter(1), []

        async def work(name: int) -> None:
            await limiter.acquire(0)
            order.append(name)
            await asyncio.sleep(0)
            limiter.release()

        await asyncio.gather(*(work(name) for name in range(5)))
        assert order == [0, 1, 2, 3, 4]

    run(main())


def test_a_permit_is_not_lost_with_the_one_who_waited_for_it() -> None:
    """Cancelled while waiting, or just as a permit came free."""

    async def main() -> None:
        limiter = Time().limiter(1)
        await limiter.acquire(0)
        for wake_first in (False, True):
            waiter = asyncio.create_task(limiter.acquire(0))
            await asyncio.sleep(0)
            if wake_first:
                limiter.release()
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter
        await limiter.acquire(0)
        limiter.release()

    run(main())


def test_requests_leave_at_a_steady_rate() -> None:
    """Thirty a minute: one every two seconds, from the first on."""

    async def main() -> None:
        time = Time()
        limiter = time.limiter(64, rpm=30)
        assert [(await limiter.acquire(0)).sent_s for _ in range(4)] == [0, 2, 4, 6]

    run(main())


def test_tokens_that_were_not_used_are_given_back() -> None:
    """The next may leave when the true number of tokens has been made good."""

    async def main() -> None:
        time = Time()
        limiter = time.limiter(64, tpm=600)
        first = await limiter.acquire(100)
        assert first.sent_s == 0
        first.settle(40)
        assert (await limiter.acquire(25)).sent_s == 4
        assert (await limiter.acquire(25)).sent_s == 5  # 25 are expected to take 10 as well

    run(main())


@pytest.mark.parametrize("takes", [110, 4000, 9000])
def test_the_rate_is_that_of_what_replies_take(takes: int) -> None:
    """Much less than they might, as much, or more than anybody thought: near the rate, for many at
    once, after the first few.
    """

    async def main() -> None:
        time = Time()
        limiter = time.limiter(64, tpm=66_000)
        sent_s = []

        async def ask() -> None:
            permit = await limiter.acquire(4000)
            sent_s.append(permit.sent_s)
            await asyncio.sleep(0)
            permit.settle(takes)
            limiter.release()

        await asyncio.gather(*(ask() for _ in range(200)))
        spent = takes * sum(200 < at_s <= 260 for at_s in sent_s) if takes > 110 else None
        if spent is None:  # two hundred of these are over within half a minute
            assert 18 < max(sent_s) < 30
        else:
            assert 0.8 * 66_000 < spent < 1.1 * 66_000

    run(main())


def test_whoever_waits_leaves_when_others_took_less() -> None:
    """Within a second, and not when it would have been its turn at the worst."""

    async def main() -> None:
        time = Time()
        limiter = time.limiter(64, tpm=600)
        first = await limiter.acquire(1000)
        waiting = asyncio.create_task(limiter.acquire(10))
        for _ in range(4):
            await asyncio.sleep(0)
        first.settle(10)
        assert 1 <= (await waiting).sent_s < 10

    run(main())


def test_a_reply_that_took_nothing_teaches_nothing() -> None:
    """A rejected request says nothing of the next."""

    async def main() -> None:
        time = Time()
        limiter = time.limiter(64, tpm=600)
        (await limiter.acquire(100)).settle(0)
        assert (await limiter.acquire(100)).sent_s == 0
        assert (await limiter.acquire(100)).sent_s == 10

    run(main())


def test_a_pause_holds_for_everybody_and_may_be_made_longer() -> None:
    """Nobody leaves before the server said so, not even who was waiting already."""

    async def main() -> None:
        time = Time()
        limiter = time.limiter(64)
        for _ in range(3):
            Permit(limiter, 0.0).on_overload(5)

        async def lengthen() -> None:
            Permit(limiter, 0.0).on_overload(9)

        permit, _ = await asyncio.gather(limiter.acquire(0), lengthen())
        assert permit.sent_s >= 9

    run(main())
