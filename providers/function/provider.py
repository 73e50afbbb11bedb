"""Asks a function or an object of the user's: a text in, and a text or a `Reply` out.

A function that is not `async def` is called in a thread of its own, so that one does not wait for
another. The thread is left behind where a run ends before it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from eyechart.providers.base import (
    ModelSettings,
    Provider,
    Reply,
    Request,
    SampleError,
    SetupError,
    StopRunError,
    TransientError,
)
from eyechart.providers.function.descriptor import label, parts_of
from eyechart.providers.function.fingerprint import facts_of, facts_of_file
from eyechart.providers.function.loading import asked_by, load
from eyechart.providers.naming import named
from eyechart.providers.plugins.contract import described
from eyechart.providers.plugins.foreign import ForeignError, result_of
from eyechart.providers.plugins.plugin_provider import PluginProvider

_REMEDY = "correct it, and the same command goes on"


class FunctionProvider:
    """Asks `model`; `facts` say which code it is."""

    def __init__(self, model: object, place: str, facts: Mapping[str, object]) -> None:
        """`place` names it in messages.

        Raises:
            SetupError: it cannot be asked.
        """
        self._place, self._facts = place, facts
        self._model, self._called = asked_by(model, place)
        self._takes_text = self._called is self._model

    async def complete(self, request: Request) -> Reply:
        """The reply. An exception costs this sample alone, and the same command asks it again; a
        lost connection and a timeout are tried again at once. Anything but a text or a `Reply`
        stops the run.
        """
        if self._takes_text and request.history:
            raise StopRunError(
                f"{self._place} takes one prompt, and this task asks over several turns; ask an "
                "object with complete(request), whose request has the history"
            )
        given = request.prompt if self._takes_text else request
        try:
            returned = await result_of(_called, self._called, given)
        except ForeignError as error:
            cause = error.error or error
            said = f"{self._place} raised {described(cause, self._file)}"
            kind = TransientError if isinstance(cause, _AGAIN) else SampleError
            raise kind(said) from error
        if isinstance(returned, Reply):
            return returned
        if isinstance(returned, str):
            return Reply(returned)
        what = "None" if returned is None else f"a value of the type {type(returned).__name__}"
        raise StopRunError(
            f"{self._place} returned {what}; let it return a text, which may be empty, or a Reply"
        )

    @property
    def _file(self) -> str:
        """The file of its code, whose lines are named in messages."""
        code = getattr(inspect.unwrap(self._called), "__code__", None)
        return getattr(code, "co_filename", "")

    async def facts(self) -> Mapping[str, object]:
        """Which code it is, and what an object says of itself."""
        own = await self._own("facts")
        if own is not None and not isinstance(own, Mapping):
            return cast("Mapping[str, object]", own)  # its wrapper says what is wrong
        return {**(own or {}), **self._facts}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """The object's own counts."""
        return cast("list[int] | None", await self._own("count_tokens", prompts))

    async def aclose(self) -> None:
        """Closes the object, at the end of each run."""
        await self._own("aclose")

    async def _own(self, name: str, *given: object) -> Any:
        """The result of a method of the object; `None` where it has no such method."""
        method = None if self._takes_text else getattr(self._model, name, None)
        return None if method is None else await _called(method, *given)


_AGAIN = (ConnectionError, TimeoutError)
"""What another try may mend."""


async def _called(function: Callable[..., Any], *given: object) -> Any:
    """The result of a function, which may be `async def`; any other runs in a thread."""
    code = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    if inspect.iscoroutinefunction(code):
        return await function(*given)
    returned = await _in_thread(function, *given)
    return await returned if isinstance(returned, Awaitable) else returned


async def _in_thread(function: Callable[..., Any], *given: object) -> Any:
    """The result of a function that runs in a new thread, which no end of the program waits for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def work() -> None:
        found: tuple[Any, BaseException | None]
        try:
            found = function(*given), None
        except BaseException as error:  # noqa: BLE001  raised where it is awaited
            found = None, error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_settle, done, found)

    threading.Thread(target=work, name="eyechart function", daemon=True).start()
    result, error = await done
    if error is not None:
        raise error
    return result


def _settle(done: asyncio.Future[Any], found: object) -> None:
    if not done.done():
        done.set_result(found)


def open_function(model: object, settings: ModelSettings) -> Provider:
    """A function or an object of this program; raises `SetupError` if it cannot be asked."""
    return _opened(model, settings, facts_of(model))


def open_file(settings: ModelSettings) -> Provider:
    """What a Python file has under a name: `settings.model` is `agent.py:answer`.

    Raises:
        SetupError: the file cannot be loaded, or has nothing under this name that can be asked.
    """
    file, name = parts_of(settings.model)
    if not file:
        raise SetupError(
            f"{settings.model!r} is a function of a Python program, which alone can ask it; a "
            "function in a file is FILE.py:FUNCTION"
        )
    model, content = load(Path(file).expanduser(), name)
    return _opened(model, settings, facts_of_file(content))


def _opened(model: object, settings: ModelSettings, facts: Mapping[str, object]) -> Provider:
    place = label(settings.model)
    if settings.system is not None:
        raise SetupError(
            f"{place} is given the prompt alone, without {named('system')}: leave it out, or give "
            "an empty one where it is the task's"
        )
    provider = FunctionProvider(model, place, facts)
    return PluginProvider(provider, place, settings.notify, remedy=_REMEDY)
