"""A check of the rules for providers, for authors of providers.

    from eyechart.testing import check_provider

    def test_it_is_a_provider() -> None:
        check_provider(open_provider, ModelSettings("some-model"))

The rules are those of `providers.base`. The check sends about thirty short requests, in the event
loop that `bench` uses. With a paid model they cost less than a cent.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eyechart.providers.base import (
    ModelSettings,
    Provider,
    ProviderError,
    Reply,
    Request,
    SetupError,
    StopRunError,
    TransientError,
)
from eyechart.providers.plugins.contract import (
    counts_problem,
    described,
    facts_problem,
    kind,
    reply_problems,
)
from eyechart.providers.plugins.foreign import ForeignError, result_of
from eyechart.providers.plugins.opening import METHODS
from eyechart.providers.secrets import masked, watch_environment

__all__ = ["ProviderCheckError", "check_provider"]
_AT_ONCE = 8
_SLOW_S = 0.4
"""If requests sent one after the other take longer than this in all, they block the event loop."""
_TRIES = 4
_LONGEST_WAIT_S = 5.0
_LARGEST_WINDOW = 20_000
"""Tokens; a prompt longer than a larger window is not sent, since it may cost much."""
_ENDS_S = 2.0
"""Seconds that threads and tasks of the provider have to end."""
_FAULT = object()
_ODD = {
    "an empty prompt": "",
    "a prompt with a lone surrogate, which is not UTF-8": "How many ones? \ud800",
    "a prompt with control characters": "How many ones? \x00\x1b[2J",
}


class ProviderCheckError(AssertionError):
    """A provider breaks rules; a line for each."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = faults
        super().__init__("\n".join(("the provider breaks these rules:", *faults)))


def check_provider(
    open_provider: Callable[[ModelSettings], object],
    settings: ModelSettings,
    *,
    expected: Callable[[Request], str] | None = None,
    timeout_s: float = 60.0,
) -> list[str]:
    """Checks the provider that `open_provider` opens with `settings`; returns the rules it keeps.

    `expected` gives the right text for a request, where that is known: the check then finds replies
    that went to the wrong request. No call may take longer than `timeout_s`.

    Raises:
        ProviderCheckError: the provider breaks a rule.
    """
    from eyechart.harness.face.python.ask import run_anywhere  # noqa: PLC0415  slow to import

    before = set(threading.enumerate())
    check = _Check(open_provider, settings, expected, timeout_s)
    run_anywhere(check.run())
    check.begin("aclose() ends its threads")
    end_s = time.monotonic() + _ENDS_S
    while names := [one.name for one in threading.enumerate() if _is_left(one, before)]:
        if time.monotonic() > end_s:
            check.fault(f"these threads go on after aclose(): {', '.join(names)}")
            break
        time.sleep(0.01)
    if check.faults:
        raise ProviderCheckError(list(dict.fromkeys(check.faults)))
    return list(dict.fromkeys(check.rules))


def _is_left(thread: threading.Thread, before: set[threading.Thread]) -> bool:
    """Whether a thread is new and keeps the program from ending."""
    ours = thread.name == "eyechart" or thread is threading.current_thread()
    return thread not in before and not thread.daemon and not ours


def _request(number: int, prompt: str | None = None) -> Request:
    text = f"How many ones are in this row? {'1' * (number + 1)}" if prompt is None else prompt
    return Request(text, max_tokens=64, sample_id=f"check|index={number}", prefix=text[:30])


@dataclass
class _Check:
    """One check with its findings."""

    open_provider: Callable[[ModelSettings], object]
    settings: ModelSettings
    expected: Callable[[Request], str] | None
    timeout_s: float
    rules: list[str] = field(default_factory=list)
    """What was checked."""
    faults: list[str] = field(default_factory=list)

    def begin(self, rule: str) -> None:
        self.rules.append(rule)

    def fault(self, text: str) -> None:
        self.faults.append(f"- {text}")

    async def run(self) -> None:
        """Checks all rules; ends early if the provider does not open."""
        others = asyncio.all_tasks()
        provider = self._opened(self.settings)
        if provider is None:
            return
        facts = await self._facts(provider)
        if await self._first_reply(provider):
            await self._at_once(provider)
            await self._odd_requests(provider, facts or {})
            await self._tokens(provider)
            await self._cancelled(provider)
            await self._logprobs()
            if facts is not None:
                await self._same_facts(provider, facts)
        await self._closed(provider, others)

    def _opened(self, settings: ModelSettings) -> Provider | None:
        self.begin("it opens, or raises a SetupError that says why not")
        try:
            provider: Any = self.open_provider(settings)
        except ProviderError as error:
            self.fault(f"it cannot be opened: {described(error)}")
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  code of others
            self.fault(f"opening it raised {described(error)}; what is missing is a SetupError")
            return None
        if lacks := [name for name in METHODS if not callable(getattr(provider, name, None))]:
            self.fault(f"a {type(provider).__name__} has no method {', '.join(lacks)}")
            return None
        opened: Provider = provider
        return opened

    async def _call(self, what: str, function: Callable[..., Any], *arguments: object) -> Any:
        """What a method returns, or the `ProviderError` that it raises. Any other outcome is noted
        as a finding and gives `_FAULT`.
        """
        try:
            async with asyncio.timeout(self.timeout_s) as limit:
                return await result_of(function, *arguments)
        except ProviderError as error:
            return self._sound_error(what, error)
        except TimeoutError:
            assert limit.expired()
            self.fault(f"{what} took longer than {self.timeout_s:g} s")
        except ForeignError as error:
            of_tree = "; it raises errors of the tree in eyechart.providers.base and nothing else"
            self.fault(f"{what} {error}{of_tree * (error.error is not None)}")
        return _FAULT

    def _sound_error(self, what: str, error: ProviderError) -> ProviderError:
        text = str(error)
        if not text.strip() or len(text.splitlines()) > 1:
            self.fault(f"{what} raised a {kind(error)} whose message is not one line: {text!r}")
        if isinstance(error, TransientError):
            wait_s = error.retry_after_s
            if wait_s is not None and not (math.isfinite(wait_s) and wait_s >= 0):
                self.fault(f"{what} raised a {kind(error)} with retry_after_s {wait_s!r}")
        return error

    async def _asked(self, what: str, complete: Callable[..., Any], request: Request) -> Any:
        """The valid reply to a request, or its error; `_FAULT` for a finding."""
        reply = await self._call(what, complete, request)
        if reply is _FAULT or isinstance(reply, ProviderError):
            return reply
        problems = reply_problems(reply)
        for problem in problems.values():
            self.fault(f"{what} returned {problem}")
        return _FAULT if problems else reply

    async def _first_reply(self, provider: Provider) -> bool:
        """Whether the provider answers a plain request, after some tries."""
        self.begin("complete() returns a Reply with a text, a finish reason and true usage")
        for _ in range(_TRIES):
            reply = await self._asked("complete()", provider.complete, _request(0))
            if not isinstance(reply, TransientError):
                break
            await asyncio.sleep(min(reply.retry_after_s or 0.5, _LONGEST_WAIT_S))
        if isinstance(reply, ProviderError):
            self.fault(f"a plain request has no reply: {described(reply)}")
        elif isinstance(reply, Reply):
            self._compare(_request(0), reply)
        return isinstance(reply, Reply)

    def _compare(self, request: Request, reply: Reply) -> None:
        if self.expected is not None and reply.text != (right := self.expected(request)):
            self.fault(
                f"the reply to {request.prompt!r} is {reply.text!r}, and should be {right!r}"
            )

    async def _at_once(self, provider: Provider) -> None:
        self.begin(
            f"{_AT_ONCE} requests at once do not wait for one another, and each gets its own reply"
        )
        events: list[tuple[str, int]] = []

        async def one(number: int) -> None:
            async def complete(request: Request) -> Reply:
                events.append(("begins", number))
                try:
                    return await provider.complete(request)
                finally:
                    events.append(("ends", number))

            reply = await self._asked("complete(), one of several,", complete, _request(number))
            if isinstance(reply, Reply):
                self._compare(_request(number), reply)
            elif isinstance(reply, ProviderError) and not isinstance(reply, TransientError):
                self.fault(f"one of several requests has no reply: {described(reply)}")

        began_s = time.monotonic()
        await asyncio.gather(*map(one, range(_AT_ONCE)))
        in_turn = [(what, number) for number in range(_AT_ONCE) for what in ("begins", "ends")]
        if events == in_turn and time.monotonic() - began_s > _SLOW_S:
            self.fault(
                "complete() blocks the event loop: of several requests none begins before the one "
                "before it has ended; await an async client, or asyncio.to_thread"
            )

    async def _odd_requests(self, provider: Provider, facts: Mapping[str, object]) -> None:
        self.begin("a request that cannot be answered fails alone and does not stop the run")
        prompts = dict(_ODD)
        window = facts.get("max_model_len")
        if isinstance(window, int) and 0 < window <= _LARGEST_WINDOW:
            prompts["a prompt longer than the window"] = "one " * 2 * window
        for what, prompt in prompts.items():
            reply = await self._asked(
                f"complete() of {what}", provider.complete, _request(0, prompt)
            )
            if isinstance(reply, StopRunError):
                self.fault(
                    f"{what} raised {described(reply)}, which would stop a run; raise a SampleError"
                )
        reply = await self._asked("complete() after them", provider.complete, _request(1))
        if isinstance(reply, ProviderError) and not isinstance(reply, TransientError):
            self.fault(f"after them a plain request has no reply: {described(reply)}")

    async def _tokens(self, provider: Provider) -> None:
        self.begin("count_tokens() has a number for each prompt, or None")
        prompts = [_request(number).prompt for number in range(3)]
        for given in (prompts, []):
            counts = await self._call("count_tokens()", provider.count_tokens, given)
            if counts is _FAULT or isinstance(counts, ProviderError):
                continue
            if problem := counts_problem(counts, given):
                self.fault(f"count_tokens() {problem}")

    async def _cancelled(self, provider: Provider) -> None:
        self.begin("a request that is cancelled ends at once, and the provider goes on")
        for wait_s in (0.0, 0.02):
            task = asyncio.create_task(_awaited(provider.complete(_request(2))))
            await asyncio.sleep(wait_s)
            if not task.cancel():
                _ = task.exception()  # it was quicker
                continue
            await asyncio.wait({task}, timeout=self.timeout_s)
            if not task.done():
                self.fault(f"a cancelled request goes on for {self.timeout_s:g} s")
            elif task.cancelled():
                continue
            elif error := task.exception():
                self.fault(f"a cancelled request raised {described(error)}, not CancelledError")
            else:
                self.fault("a cancelled request returned a reply; do not catch CancelledError")
        reply = await self._asked(
            "complete() after a cancelled one", provider.complete, _request(3)
        )
        if isinstance(reply, ProviderError) and not isinstance(reply, TransientError):
            self.fault(f"after a cancelled request there is no reply: {described(reply)}")

    async def _logprobs(self) -> None:
        self.begin("it gives log probabilities, or refuses them with a SetupError")
        for name, top in (("logprobs", 0), ("top_logprobs", 2)):
            settings = replace(self.settings, logprobs=True, top_logprobs=top)
            try:
                opened: Any = self.open_provider(settings)
            except SetupError:
                return
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  code of others
                self.fault(f"opening it with {name} raised {described(error)}, not a SetupError")
                return
            reply = await self._asked(f"complete() with {name}", opened.complete, _request(4))
            await self._call("aclose()", opened.aclose)
            if isinstance(reply, Reply) and getattr(reply, name) is None:
                self.fault(f"asked for {name}, a reply has none; refuse them with a SetupError")
                return

    async def _facts(self, provider: Provider) -> Mapping[str, object] | None:
        """The facts; `None` if they are not valid."""
        self.begin("facts() can be written as JSON, and has no key")
        facts = await self._call("facts()", provider.facts)
        if isinstance(facts, ProviderError):
            self.fault(f"facts() raised {described(facts)}")
        if facts is _FAULT or isinstance(facts, ProviderError):
            return None
        if problem := facts_problem(facts):
            self.fault(f"facts() {problem}")
            return None
        watch_environment()
        hidden = masked(json.loads(json.dumps(dict(facts))))
        if names := [name for name in facts if hidden.get(name) != _plain(facts[name])]:
            self.fault(f"facts() shows a key, under {', '.join(names)}")
        sound: Mapping[str, object] = facts
        return sound

    async def _same_facts(self, provider: Provider, facts: Mapping[str, object]) -> None:
        self.begin("facts() are the same later, and when the model is opened again")
        again = self._opened(self.settings)
        if again is None:
            return
        for what, one in (("after the requests", provider), ("of a second opening", again)):
            later = await self._call("facts()", one.facts)
            if isinstance(later, Mapping) and dict(later) != dict(facts):
                names = sorted(
                    name for name in {*facts, *later} if facts.get(name) != later.get(name)
                )
                self.fault(
                    f"facts() {what} differ in {', '.join(names)}; then a run cannot be continued"
                )
        await self._call("aclose()", again.aclose)

    async def _closed(self, provider: Provider, others: set[asyncio.Task[Any]]) -> None:
        self.begin("aclose() leaves no task behind")
        failed = await self._call("aclose()", provider.aclose)
        if isinstance(failed, ProviderError):
            self.fault(f"aclose() raised {described(failed)}")
        end_s = time.monotonic() + _ENDS_S
        while left := asyncio.all_tasks() - others - {asyncio.current_task()}:
            if time.monotonic() > end_s:
                names = ", ".join(sorted(str(task.get_coro()) for task in left))
                self.fault(f"these tasks go on after aclose(): {names}")
                return
            await asyncio.sleep(0.01)


async def _awaited(reply: Awaitable[Any]) -> Any:
    return await reply


def _plain(value: object) -> object:
    """A value as JSON stores it."""
    return json.loads(json.dumps(value))
