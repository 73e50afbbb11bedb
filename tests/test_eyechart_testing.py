"""`check_provider` passes sound providers, and finds each rule that a broken one breaks."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eyechart.providers.base import (
    AuthError,
    ModelSettings,
    OracleAnswer,
    PromptOverflowError,
    ProviderError,
    RateLimitError,
    Reply,
    Request,
    SetupError,
    Usage,
)
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from eyechart.testing import ProviderCheckError, check_provider
from tests.plugged import EXAMPLES


class Sound:
    """A provider that repeats the prompt after an instant; those below break one rule each."""

    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(0.002)
        return Reply(request.prompt, usage=Usage(len(request.prompt), 1))

    async def facts(self) -> Mapping[str, object]:
        return {"engine": "sound", "max_model_len": 100}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        return [len(prompt) for prompt in prompts]

    async def aclose(self) -> None:
        """Nothing is open."""


class Foreign(Sound):
    async def complete(self, request: Request) -> Reply:
        if not request.prompt:
            raise KeyError("choices")
        return await super().complete(request)


class Encodes(Sound):
    async def complete(self, request: Request) -> Reply:
        request.prompt.encode()
        return await super().complete(request)


class StopsTheRun(Sound):
    async def complete(self, request: Request) -> Reply:
        if len(request.prompt) > 100:
            raise SetupError("the prompt is too long")
        return await super().complete(request)


class BreaksDown(Sound):
    """Answers nothing after a prompt that is too long."""

    broken = False

    async def complete(self, request: Request) -> Reply:
        if self.broken:
            raise AuthError("the session is over")
        if len(request.prompt) > 100:
            self.broken = True
            raise PromptOverflowError("the prompt is too long")
        return await super().complete(request)


class Blocks(Sound):
    async def complete(self, request: Request) -> Reply:
        time.sleep(0.01)  # noqa: ASYNC251
        return Reply(request.prompt)


class Mixes(Sound):
    async def complete(self, request: Request) -> Reply:
        self.request = request
        await asyncio.sleep(0.002)
        return Reply(self.request.prompt)


class Sync(Sound):
    def complete(self, request: Request) -> Reply:  # type: ignore[override]
        return Reply(request.prompt)


class Gives(Sound):
    """Gives what it is made with."""

    def __init__(self, reply: object) -> None:
        self.reply: Any = reply

    async def complete(self, request: Request) -> Reply:  # noqa: ARG002
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply  # type: ignore[no-any-return]


class Swallows(Sound):
    async def complete(self, request: Request) -> Reply:
        try:
            return await super().complete(request)
        except asyncio.CancelledError:
            return Reply("")


class Maps(Sound):
    async def complete(self, request: Request) -> Reply:
        try:
            return await super().complete(request)
        except BaseException as error:
            raise RateLimitError("slow down") from error


class Hangs(Sound):
    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(3600)
        return Reply(request.prompt)


class Facts(Sound):
    """Has the facts that it is made with."""

    def __init__(self, facts: Callable[[], Any]) -> None:
        self._facts = facts

    async def facts(self) -> Mapping[str, object]:
        return self._facts()  # type: ignore[no-any-return]


class CancelsItself(Sound):
    async def complete(self, request: Request) -> Reply:
        if (task := asyncio.current_task()) is not None:
            task.cancel()
        return await super().complete(request)


class Own(BaseException):
    """An exception that is no `Exception`."""


class ClosesBadly(Sound):
    async def aclose(self) -> None:
        raise Own("not now")


class Counts(Sound):
    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        return [1] if prompts else None


class LeavesATask(Sound):
    async def facts(self) -> Mapping[str, object]:
        self.task = asyncio.create_task(asyncio.sleep(3600))
        return {}


class LeavesAThread(Sound):
    ends = threading.Event()

    async def aclose(self) -> None:
        threading.Thread(target=self.ends.wait, name="left behind").start()


def nested() -> list[Any]:
    """A list that no writer of JSON can hold."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


BROKEN: dict[str, tuple[Callable[[], object], str]] = {
    "foreign": (Foreign, "complete() of an empty prompt raised KeyError: 'choices'"),
    "encodes": (Encodes, "complete() of a prompt with a lone surrogate, which is not UTF-8 raised"),
    "stops": (StopsTheRun, "a prompt longer than the window raised SetupError: the prompt is too"),
    "down": (BreaksDown, "after them a plain request has no reply: AuthError: the session is over"),
    "blocks": (Blocks, "complete() blocks the event loop"),
    "mixes": (Mixes, "and should be 'How many ones are in this row? 1'"),
    "sync": (Sync, "complete() is not 'async def': it returned a Reply"),
    "none": (lambda: Gives(None), "complete() returned a NoneType, not a Reply"),
    "string": (lambda: Gives("me"), "complete() returned a str, not a Reply"),
    "text": (lambda: Gives(Reply(None)), "complete() returned the text None"),  # type: ignore[arg-type]
    "reason": (
        lambda: Gives(Reply("", "length_limit")),  # type: ignore[arg-type]
        "the finish reason 'length_limit'; there are stop, length, content_filter, other",
    ),
    "usage": (
        lambda: Gives(Reply("", usage=Usage(-1, 0))),
        "usage with prompt_tokens -1; it is a number of tokens",
    ),
    "thought": (
        lambda: Gives(Reply("", usage=Usage(5, 1, thought_tokens=2))),
        "usage with thought_tokens 2, more than the output_tokens 1 it is a part of",
    ),
    "error": (lambda: Gives(AuthError("no key")), "a plain request has no reply: AuthError: no k"),
    "lines": (
        lambda: Gives(RateLimitError("two\nlines", retry_after_s=0.001)),
        "raised a RateLimitError whose message is not one line: 'two\\nlines'",
    ),
    "wait": (
        lambda: Gives(RateLimitError("wait", retry_after_s=-1)),
        "raised a RateLimitError with retry_after_s -1",
    ),
    "swallows": (Swallows, "a cancelled request returned a reply; do not catch CancelledError"),
    "maps": (Maps, "a cancelled request raised RateLimitError: slow down, not CancelledError"),
    "hangs": (Hangs, "complete() took longer than 0.2 s"),
    "counts": (Counts, "count_tokens() of 3 prompts returned [1]"),
    "number": (lambda: Facts(lambda: 7), "facts() returned 7, not a mapping from names"),
    "json": (lambda: Facts(lambda: {"at": {1}}), "facts() cannot be written as JSON: Object of"),
    "nan": (lambda: Facts(lambda: {"at": float("nan")}), "facts() cannot be written as JSON"),
    "clock": (
        lambda: Facts(lambda: {"at": time.perf_counter()}),
        "facts() after the requests differ in at; then a run cannot be continued",
    ),
    "window": (
        lambda: Facts(lambda: {"max_model_len": "4096"}),
        "facts() says max_model_len '4096'; it is a number of tokens, or left out",
    ),
    "key": (
        lambda: Facts(lambda: {"headers": {"auth": os.environ["ACME_API_KEY"]}}),
        "facts() shows a key, under headers",
    ),
    "task": (LeavesATask, "these tasks go on after aclose(): "),
    "thread": (LeavesAThread, "these threads go on after aclose(): left behind"),
    "exit": (
        lambda: Gives(SystemExit("bye")),
        "complete() raised SystemExit: bye; it raises errors of the tree",
    ),
    "generator": (lambda: Gives(GeneratorExit()), "complete() raised GeneratorExit; it raises"),
    "uncalled": (
        lambda: Gives(asyncio.CancelledError("me")),
        "complete() raised CancelledError: me; it raises",
    ),
    "itself": (CancelsItself, "complete() raised CancelledError"),
    "bytes": (lambda: Gives(Reply(b"me")), "complete() returned the text b'me'"),  # type: ignore[arg-type]
    "model": (lambda: Gives(Reply("", model=5)), "returned model 5, which is no text"),  # type: ignore[arg-type]
    "deep": (lambda: Facts(lambda: {"at": nested()}), "facts() cannot be written as JSON: it is"),
    "badly": (ClosesBadly, "aclose() raised Own: not now; it raises errors of the tree"),
    "closed": (object, "a object has no method complete, facts, count_tokens, aclose"),
    "leaves": (lambda: sys.exit("no"), "opening it raised SystemExit: no"),
    "fails": (lambda: 1 // 0, "opening it raised ZeroDivisionError"),
}
"""A broken provider, and what is said of it."""


def refusing(make: Callable[[], object]) -> Callable[[ModelSettings], object]:
    """Opens what `make` makes, without log probabilities."""

    def open_provider(settings: ModelSettings) -> object:
        settings.refuse_all_but()
        return make()

    return open_provider


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_provider(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told which rule it breaks, and no other one."""
    monkeypatch.setattr("eyechart.testing._ENDS_S", 0.05)
    if name == "blocks":
        monkeypatch.setattr("eyechart.testing._SLOW_S", 0.05)
    monkeypatch.setenv("ACME_API_KEY", "sk-acme-1234567890abcdef")
    make, said = BROKEN[name]
    LeavesAThread.ends.clear()
    try:
        with pytest.raises(ProviderCheckError) as caught:
            check_provider(
                refusing(make),
                ModelSettings("m"),
                expected=lambda request: request.prompt,
                timeout_s=0.2 if name == "hangs" else 30,
            )
    finally:
        LeavesAThread.ends.set()
    faults = [fault for fault in caught.value.faults if said in fault]
    assert faults, caught.value
    allowed = {"down": 2, "lines": 2, "wait": 2, "clock": 2, "mixes": 7, "hangs": 1}.get(name, 1)
    assert len(caught.value.faults) == allowed, caught.value


def test_logprobs_that_do_not_come() -> None:
    """Are refused, or come."""
    with pytest.raises(ProviderCheckError, match="asked for logprobs, a reply has none"):
        check_provider(lambda _: Sound(), ModelSettings("m"))

    class WithLogprobs(Sound):
        async def complete(self, request: Request) -> Reply:
            return Reply(request.prompt, logprobs=(("a", -0.5),))

    with pytest.raises(ProviderCheckError, match="asked for top_logprobs, a reply has none"):
        check_provider(lambda _: WithLogprobs(), ModelSettings("m"))

    def plain(settings: ModelSettings) -> Sound:
        settings.refuse_all_but("logprobs")
        return WithLogprobs()

    assert check_provider(plain, ModelSettings("m"))


def named(model: str) -> Callable[[ModelSettings], object]:
    """Opens a built-in provider as commands do, which refuse what its descriptor does not have."""
    return lambda settings: open_model(parse_model(model), settings)


def test_an_error_in_passing() -> None:
    """A rate limit is waited for, and is no fault."""
    errors: list[ProviderError] = [RateLimitError("wait", retry_after_s=0.001) for _ in range(3)]

    class Limited(Sound):
        async def complete(self, request: Request) -> Reply:
            if errors:
                raise errors.pop()
            return await super().complete(request)

    assert check_provider(refusing(Limited), ModelSettings("m"))
    assert errors == []


@pytest.mark.parametrize(
    ("open_provider", "settings", "right"),
    [
        (refusing(Sound), ModelSettings("m"), lambda request: request.prompt),
        (named("tiny"), ModelSettings("tiny"), None),
        (named("scripted/replies.txt"), ModelSettings("replies.txt"), lambda _: "yes"),
        (
            named("oracle:9"),
            ModelSettings("9", known=lambda _: OracleAnswer(5, "right", "wrong")),
            lambda _: "right",
        ),
    ],
    ids=["sound", "tiny", "scripted", "oracle"],
)
def test_sound_providers(
    open_provider: Callable[[ModelSettings], object],
    settings: ModelSettings,
    right: Callable[[Request], str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keep all rules; the list has each once."""
    monkeypatch.chdir(tmp_path)
    Path("replies.txt").write_text("yes\n")
    rules = check_provider(open_provider, settings, expected=right)
    assert len(rules) == len(set(rules)) == 11


def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the test that it has itself, where an event loop runs already."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(EXAMPLES / "eyechart-command")])
    from test_command import test_it_is_a_provider

    async def within() -> None:
        test_it_is_a_provider()

    asyncio.run(within())
