"""A plugin whose provider breaks rules: one line that names it, and what was answered is kept."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.journal.manifest import find_runs
from eyechart.providers.base import (
    BadReplyError,
    RateLimitError,
    Reply,
    ReplyTimeoutError,
    Request,
    Usage,
)
from eyechart.providers.plugins import plugin_provider
from eyechart.providers.plugins.plugin_provider import PluginProvider
from eyechart.providers.plugins.plugins import PROVIDERS
from tests.conftest import records
from tests.plugged import plug

if TYPE_CHECKING:
    from tests.conftest import Lab

SITS = """\
import asyncio
import os

from eyechart.providers.base import Reply, Usage

SOUND = "Final answer: 2"


class Own(BaseException):
    pass


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


class Provider:
    asked = 0

    async def facts(self):
        return {}

    async def count_tokens(self, prompts):
        return None

    async def complete(self, request):
        Provider.asked += 1
        return Reply(SOUND) if Provider.asked <= 2 else await self.third()

    async def third(self):
        return Reply(SOUND)

    async def aclose(self):
        pass
"""
"""A sound provider; each case replaces a method of it. The third request is the first that is
special.
"""
OPENS = """


def open_provider(settings):
    return Provider()
"""
THIRD = "async def third(self):"
ENDS = {
    "none": (THIRD, "return None", "complete() returned a NoneType, not a Reply"),
    "text": (THIRD, "return 'Final answer: 2'", "complete() returned a str, not a Reply"),
    "generator": (THIRD, "raise GeneratorExit", "complete() raised GeneratorExit"),
    "exit": (THIRD, "raise SystemExit(0)", "complete() raised SystemExit: 0"),
    "own": (THIRD, "raise Own('mine')", "complete() raised Own: mine"),
    "uncalled": (THIRD, "raise asyncio.CancelledError", "complete() raised CancelledError"),
    "itself": (
        THIRD,
        "asyncio.current_task().cancel(); return Reply(SOUND)",
        "complete() raised CancelledError",
    ),
    "later": (
        THIRD,
        "asyncio.current_task().cancel(); await asyncio.sleep(1); return Reply(SOUND)",
        "complete() raised CancelledError",
    ),
    "set": ("async def facts(self):", "return {'at': {1}}", "facts() cannot be written as JSON"),
    "deep": ("async def facts(self):", "return {'at': deep()}", "it is nested too deep"),
    "facts": ("async def facts(self):", "return None", "facts() returned None, not a mapping"),
    "raises": ("async def facts(self):", "raise ValueError('oops')", "facts() raised ValueError"),
    "plain": ("def facts(self):", "return {}", "facts() is not 'async def': it returned a dict"),
}
"""Method, its new body, what is said: each ends the run."""
GOES_ON = {
    "close": (
        "async def aclose(self):",
        "raise ValueError('no')",
        "aclose() raised ValueError: no",
    ),
    "leave": ("async def aclose(self):", "raise SystemExit", "aclose() raised SystemExit"),
    "reason": (THIRD, "return Reply(SOUND, 'done')", "the finish reason 'done'; there are stop,"),
    "model": (THIRD, "return Reply(SOUND, model=5)", "model 5, which is no text"),
    "negative": (THIRD, "return Reply(SOUND, usage=Usage(-5, 1))", "usage with prompt_tokens -5"),
    "nan": (THIRD, "return Reply(SOUND, usage=Usage(float('nan'), 1))", "prompt_tokens nan"),
    "mapping": (THIRD, "return Reply(SOUND, usage={})", "usage of the type dict"),
    "sent": (THIRD, "return Reply(SOUND, sent=[1])", "no mapping that JSON can have"),
    "sent values": (THIRD, "return Reply(SOUND, sent={'a': {1}})", "no mapping that JSON"),
    "logprobs": (THIRD, "return Reply(SOUND, logprobs=5)", "a log probability that is above 0"),
}
"""The same where the run is complete all the same."""


def plug_case(site: Path, method: str, body: str) -> None:
    """Puts the provider with the method into `site`."""
    text = f"{SITS}\n    {method}\n        {body}\n{OPENS}"
    plug(site, "acme", {PROVIDERS: {"odd": "odd:open_provider"}}, files={"odd.py": text})


PLACE = "acme 1.0, entry point 'odd = odd:open_provider' of eyechart.providers: "


@pytest.mark.parametrize("name", ENDS)
def test_a_plugin_that_ends_the_run(lab: Lab, site: Path, name: str) -> None:
    """One line on stderr, exit code 1; the two replies before it are in the journal."""
    method, body, said = ENDS[name]
    plug_case(site, method, body)
    done = lab.bench_run("--model", "odd/x", "--max-connections", "1", task=lab.plain)
    (line,) = [line for line in done.err.splitlines() if PLACE in line]
    assert said in line
    assert line.endswith("; report it to the plugin's authors")
    assert "Traceback" not in done.err
    assert done.code == 1
    asked = method == THIRD
    assert [record["reply"] for record in lab_records(lab)] == ["Final answer: 2"] * 2 * asked
    plug_case(site, THIRD, "return Reply(SOUND)")
    sys.modules.pop("odd")
    assert lab.bench_ask("--model", "odd/x", task=lab.plain).code == 0
    assert len(lab_records(lab)) == 3


def lab_records(lab: Lab) -> list[Any]:
    return [record for folder in find_runs(lab.out) for record in records(folder)]


@pytest.mark.parametrize("name", GOES_ON)
def test_a_plugin_whose_fault_is_left_out(lab: Lab, site: Path, name: str) -> None:
    """The replies are kept, the run is complete, and one line names the plugin."""
    method, body, said = GOES_ON[name]
    plug_case(site, method, body)
    done = lab.bench_run("--model", "odd/x", task=lab.plain)
    assert done.code == 0
    (line,) = [line for line in done.err.splitlines() if PLACE in line]
    assert said in line
    assert [record["reply"] for record in lab_records(lab)] == ["Final answer: 2"] * 3


def test_a_plugin_that_ends_the_process(lab: Lab, site: Path) -> None:
    """What was answered is in the journal, and the same command continues."""
    plug_case(site, THIRD, "os._exit(7)")
    command = ("run", "--task", str(lab.plain), "--model", "odd/x", "--max-connections", "1")
    process = lab.forked(*command, "--out", str(lab.out), delay_s=0)
    assert process.wait() == 7, process.communicate()
    assert len(lab_records(lab)) == 2
    plug_case(site, THIRD, "return Reply(SOUND)")
    assert lab.bench_ask("--model", "odd/x", task=lab.plain).code == 0
    assert len(lab_records(lab)) == 3


class Odd:
    """A provider whose methods do what they are given."""

    def __init__(self, **does: Any) -> None:
        self._does = does

    async def _do(self, what: str) -> Any:
        value = self._does[what]
        if isinstance(value, BaseException):
            raise value
        return await value() if callable(value) else value

    async def complete(self, request: Request) -> Reply:  # noqa: ARG002
        return await self._do("complete")  # type: ignore[no-any-return]

    async def facts(self) -> Any:
        return await self._do("facts")

    async def count_tokens(self, prompts: Any) -> Any:  # noqa: ARG002
        return await self._do("count_tokens")

    async def aclose(self) -> None:
        await self._do("aclose")


REQUEST = Request("how many?", 5)


def odd(said: list[str], **does: Any) -> PluginProvider:
    return PluginProvider(Odd(**does), "acme", said.append)


@pytest.mark.parametrize("text", [None, b"2", 2])
def test_a_reply_without_a_text_is_an_invalid_reply(text: Any) -> None:
    """It may be asked again, and what it took is charged."""
    provider = odd([], complete=Reply(text, usage=Usage(3, 4, thought_tokens=9)))
    with pytest.raises(BadReplyError, match=r"acme: complete\(\) returned the text") as caught:
        asyncio.run(provider.complete(REQUEST))
    assert caught.value.usage == Usage(3, 4)


def test_an_error_with_wrong_details_keeps_its_kind() -> None:
    """A time that is none, and a usage that is none, are left out."""
    error = RateLimitError("wait", retry_after_s=float("nan"), usage="5")  # type: ignore[arg-type]
    with pytest.raises(RateLimitError, match="wait") as caught:
        asyncio.run(odd([], complete=error).complete(REQUEST))
    assert (caught.value.retry_after_s, caught.value.usage) == (None, None)


@pytest.mark.parametrize("counts", ["abc", [1], [-1, 2], [1.5, 2], 5, ValueError("count")])
def test_token_counts_that_cannot_be_true_are_unknown(counts: Any) -> None:
    """That is said once."""
    said: list[str] = []
    provider = odd(said, count_tokens=counts)
    for _ in range(2):
        assert asyncio.run(provider.count_tokens(["a", "b"])) is None
    (line,) = said
    assert line.startswith("acme: count_tokens() ")
    assert line.endswith("; tokens are estimated")


async def hang() -> Any:
    await asyncio.Event().wait()


def test_what_never_ends_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is one that got no reply in time; an `aclose` is given up."""
    for limit in ("TIMEOUT_S", "CLOSE_TIMEOUT_S"):
        monkeypatch.setattr(plugin_provider, limit, 0.01)
    said: list[str] = []
    provider = odd(said, complete=hang, aclose=hang)
    with pytest.raises(ReplyTimeoutError, match=r"acme: complete\(\) took longer than 0.01 s"):
        asyncio.run(provider.complete(REQUEST))
    asyncio.run(provider.aclose())
    assert len(said) == 1
    assert "aclose() took longer than 0.01 s" in said[0]


def test_a_cancellation_from_outside_passes() -> None:
    """As Ctrl-C cancels a request; the plugin is not to blame."""
    provider = odd([], complete=hang)

    async def cancel() -> None:
        task = asyncio.create_task(provider.complete(REQUEST))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())


def test_an_interrupt_passes() -> None:
    """Where it is raised in the plugin's code."""
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(odd([], complete=KeyboardInterrupt()).complete(REQUEST))
