"""Runs other people's code, and finds out whether an exception comes from this code or from
outside.

A coroutine can raise any exception and cancel the task that awaits it. To that task, both look like
Ctrl-C, a timeout or the end of the program. So the coroutine is run step by step here: an exception
that is thrown into it comes from outside, and one that is raised within a step is its own.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

from eyechart.providers.base import ProviderError
from eyechart.providers.contract import described


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
        ForeignError: it raises something else, cancels the task that awaits it, or is no coroutine.
    """
    task = asyncio.current_task()
    assert task is not None
    own = _Cancellations(task)
    try:
        result = await _steps(_awaited(method, given), own)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException:
        if not own.number:
            raise
    else:
        if not own.number:
            return result
    for _ in range(own.number):
        task.uncancel()
    with suppress(asyncio.CancelledError):  # its own, if it is still to come
        await asyncio.sleep(0)
    raise ForeignError("cancelled the task that asks")


async def _awaited(method: Callable[..., Any], given: tuple[object, ...]) -> Any:
    awaited = method(*given)
    if not isinstance(awaited, Awaitable):
        raise ForeignError(f"is not 'async def': it returned a {type(awaited).__name__}")
    return await awaited


class _Cancellations:
    """Number of times that code cancelled the task that runs it."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.number = 0


@types.coroutine
def _steps(call: Coroutine[Any, Any, Any], own: _Cancellations) -> Generator[Any, Any, Any]:
    """Runs `call` step by step, with the errors of `result_of`; counts its `own` cancellations."""
    thrown: BaseException | None = None
    is_cancelled = False
    while True:
        before = own.task.cancelling()
        try:
            waited = call.send(None) if thrown is None else call.throw(thrown)
        except StopIteration as end:
            return end.value
        except (ProviderError, ForeignError):
            raise
        except asyncio.CancelledError as error:
            if is_cancelled:
                raise
            raise ForeignError(f"raised {described(error)}", error) from error
        except BaseException as error:
            if error is thrown or type(error) is KeyboardInterrupt:
                raise
            raise ForeignError(f"raised {described(error)}", error) from error
        finally:
            own.number += own.task.cancelling() - before
        try:
            yield waited
            thrown = None
        except BaseException as error:  # noqa: BLE001  thrown into the call
            thrown = error
            is_cancelled |= isinstance(error, asyncio.CancelledError)
