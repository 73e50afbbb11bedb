"""Wraps a plugin's provider: whatever its code does becomes a valid reply, a `ProviderError` or a
message, each with the plugin's name.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from eyechart.providers.base import (
    TIMEOUT_S,
    BadReplyError,
    Provider,
    ProviderError,
    Reply,
    ReplyTimeoutError,
    Request,
    StopRunError,
    TransientError,
    Usage,
)
from eyechart.providers.plugins.contract import (
    REMEDY,
    counts_problem,
    described,
    facts_problem,
    reply_problems,
    without,
)
from eyechart.providers.plugins.foreign import ForeignError, result_of

CLOSE_TIMEOUT_S = 30.0
"""Seconds for `aclose`."""


class PluginProvider:
    """Asks `provider`; raises only a `ProviderError`, or an interrupt from outside."""

    def __init__(
        self,
        provider: Provider,
        place: str,
        notify: Callable[[str], None],
        *,
        remedy: str = REMEDY,
    ) -> None:
        """`place` names the plugin in messages, and `remedy` says what the user can do; `notify`
        gets messages that are no errors.
        """
        self.provider = provider
        self.place = place
        self._notify = notify
        self._remedy = remedy
        self._said: set[str] = set()

    async def complete(self, request: Request) -> Reply:
        """The plugin's reply, without fields that are wrong."""
        reply = await self._call("complete()", self.provider.complete, request)
        problems = self._checked("complete()", reply_problems, reply)
        if not problems:
            return cast("Reply", reply)
        said = f"complete() returned {'; '.join(problems.values())}"
        if "" in problems:
            raise self._stop(said)
        sound = without(reply, {name: said for name in problems if name != "text"})
        if "text" in problems:
            raise BadReplyError(self._said_of(said), usage=sound.usage)
        self._say_once(f"{self._said_of(said)}; it is left out", ",".join(problems))
        return sound

    async def facts(self) -> Mapping[str, object]:
        """The plugin's facts, if they can be stored with a run."""
        facts = await self._call("facts()", self.provider.facts)
        if problem := self._checked("facts()", facts_problem, facts):
            raise self._stop(f"facts() {problem}")
        return cast("Mapping[str, object]", facts)

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """The plugin's counts; `None`, with a message, if they cannot be true."""
        try:
            counts = await self._call("count_tokens()", self.provider.count_tokens, prompts)
        except TransientError as error:
            self._say_once(f"{error}; tokens are estimated", "count_tokens")
            return None
        if problem := self._checked("count_tokens()", counts_problem, counts, prompts):
            said = self._said_of(f"count_tokens() {problem}")
            self._say_once(f"{said}; tokens are estimated", "count_tokens")
            return None
        return cast("list[int] | None", counts)

    async def aclose(self) -> None:
        """Closes the provider. All answers are complete by now, so an error becomes a message."""
        try:
            await self._call("aclose()", self.provider.aclose, limit_s=CLOSE_TIMEOUT_S)
        except ProviderError as error:
            self._notify(str(error))

    async def _call(
        self, what: str, method: Callable[..., Any], *given: object, limit_s: float | None = None
    ) -> Any:
        """The result of the method; raises a `ProviderError` that names the plugin."""
        limit_s = TIMEOUT_S if limit_s is None else limit_s
        try:
            async with asyncio.timeout(limit_s) as limit:
                return await result_of(method, *given)
        except TimeoutError as error:
            assert limit.expired()
            raise ReplyTimeoutError(
                self._said_of(f"{what} took longer than {limit_s:g} s")
            ) from error
        except TransientError as error:
            _make_sound(error)
            raise
        except ForeignError as error:
            said = f"{what} {error}"
            if isinstance(error.error, Exception):  # perhaps of its server's making
                raise TransientError(self._said_of(said)) from error
            raise self._stop(said) from error

    def _checked(self, what: str, check: Callable[..., Any], *given: object) -> Any:
        """The result of a check of a plugin's value; the value may raise any exception."""
        try:
            return check(*given)
        except Exception as error:
            raise self._stop(f"{what} returned a value that raised {described(error)}") from error

    def _stop(self, problem: str) -> StopRunError:
        return StopRunError(self._said_of(problem))

    def _said_of(self, problem: str) -> str:
        return f"{self.place}: {problem}; {self._remedy}"

    def _say_once(self, text: str, about: str) -> None:
        if about not in self._said:
            self._said.add(about)
            self._notify(text)


def _make_sound(error: TransientError) -> None:
    """Removes a time or a usage of a wrong type from an error."""
    wait_s: object = error.retry_after_s
    if not (isinstance(wait_s, int | float) and math.isfinite(wait_s) and wait_s >= 0):
        error.retry_after_s = None
    if not isinstance(error.usage, Usage):
        error.usage = None
