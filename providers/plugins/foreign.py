"""Runs other people's code in a task of its own, so that what it raises or cancels is known as its
own, and not as Ctrl-C, a timeout or the end of the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from eyechart.providers.base import ProviderError
from eyechart.providers.plugins.contract import a_kind, described


class ForeignError(Exception):
    """Forbidden behaviour of other people's code. The message describes it in words."""

    def __init__(self, what: str, error: BaseException | None = None) -> None:
        super().__init__(what)
        self.error = error
        """The exception that the code raised."""


async def result_of(method: Callable[..., Any], *given: object) -> Any:
    """The result of calling a method that should be `async def`.

    Raises:
        ProviderError: as the method raises it.
        ForeignError: it raises something else, cancels its task, or is no coroutine.
    """
    caller, task = asyncio.current_task(), asyncio.create_task(_awaited(method, given))
    assert caller is not None
    before = caller.cancelling()
    try:
        return await task
    except asyncio.CancelledError as error:
        if caller.cancelling() > before:
            raise
        raise ForeignError(f"raised {described(error)}", error) from error


async def _awaited(method: Callable[..., Any], given: tuple[object, ...]) -> Any:
    try:
        awaited = method(*given)
        if isinstance(awaited, Awaitable):
            return await awaited
    except (ProviderError, KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:
        raise ForeignError(f"raised {described(error)}", error) from error
    raise ForeignError(f"is not 'async def': it returned {a_kind(awaited)}")
