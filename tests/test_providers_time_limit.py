"""Many requests with one limit of time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from unittest.mock import patch

import pytest

from eyechart.providers.http.time_limit import TimeLimit


async def within(limit: TimeLimit, request: Awaitable[object]) -> object:
    """The result of a request with a limit."""
    with limit.started():
        return await request


def test_what_takes_too_long_is_ended() -> None:
    """Each of them, with a `TimeoutError`; another one may follow."""

    async def main() -> None:
        limit, never = TimeLimit(0.0), asyncio.Event()
        late = [within(limit, never.wait()) for _ in range(3)]
        ended = await asyncio.gather(*late, return_exceptions=True)
        assert [type(error) for error in ended] == [TimeoutError] * 3
        with pytest.raises(TimeoutError):
            await within(limit, never.wait())

    asyncio.run(main())


def test_all_requests_share_one_timer() -> None:
    """It waits for the end of the earliest one that is still under way."""

    async def main() -> None:
        loop, limit = asyncio.get_running_loop(), TimeLimit(600.0)
        now_s, timers = 0.0, list[tuple[float, Callable[[], object]]]()
        asked = [asyncio.Event() for _ in range(3)]

        def call_at(at_s: float, call: Callable[[], object]) -> object:
            timers.append((at_s, call))
            return call

        with patch.object(loop, "time", lambda: now_s), patch.object(loop, "call_at", call_at):
            requests = []
            for event in asked:
                requests.append(asyncio.create_task(within(limit, event.wait())))
                await asyncio.sleep(0)
                now_s += 100.0
            asked[0].set()
            assert await requests[0]
            assert [at_s for at_s, _ in timers] == [600.0]
            now_s = 600.0
            timers[0][1]()
            assert [at_s for at_s, _ in timers] == [600.0, 700.0]
            now_s = 700.0
            timers[1][1]()
            with pytest.raises(TimeoutError):
                await requests[1]
            asked[2].set()
            assert await requests[2]
        assert [at_s for at_s, _ in timers] == [600.0, 700.0, 800.0]

    asyncio.run(main())


def test_an_error_and_a_cancellation_stay_what_they_are() -> None:
    """They are no timeouts."""

    async def main() -> None:
        limit = TimeLimit(600.0)

        async def failing() -> None:
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await within(limit, failing())
        task = asyncio.create_task(within(limit, asyncio.Event().wait()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_who_cancels_a_late_request_is_heard() -> None:
    """A task that is cancelled by others as well ends as cancelled, and not by a timeout."""

    async def main() -> None:
        limit = TimeLimit(0.0)
        task = asyncio.create_task(within(limit, asyncio.Event().wait()))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(task.cancel)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelling() == 1

    asyncio.run(main())


def test_a_late_request_that_fails_by_itself_leaves_no_cancellation() -> None:
    """Its own error is raised, and its task goes on."""

    async def failing() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError from None

    async def main() -> None:
        with pytest.raises(ConnectionError):
            await within(TimeLimit(0.0), failing())
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    asyncio.run(main())
