"""A provider with prepared replies, for tests and for trying the program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from eyechart.providers.base import ModelSettings, ProviderError, Reply, Request, SetupError
from eyechart.providers.descriptor import Descriptor, Service
from eyechart.providers.likelihood import choosing_reply

Script: TypeAlias = (
    Callable[[Request], str | Reply | ProviderError] | Sequence[str | Reply | ProviderError]
)


class ScriptedProvider:
    """Replies from a list, in turn and repeatedly, or from a function of the request.

    An entry that is a `ProviderError` is raised. `requests` has all requests so far.
    """

    def __init__(self, script: Script, script_sha256: str | None = None) -> None:
        self._script = script
        self._sha256 = script_sha256
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        turn = len(self.requests)
        self.requests.append(request)
        entry = (
            self._script(request)
            if callable(self._script)
            else self._script[turn % len(self._script)]
        )
        if isinstance(entry, ProviderError):
            raise entry
        return Reply(entry) if isinstance(entry, str) else entry

    async def score(self, request: Request) -> Reply:
        """Prefers the option that the script says, or none; a reply with options is that reply."""
        reply = await self.complete(request)
        return reply if reply.options is not None else choosing_reply(request, reply.text)

    async def facts(self) -> Mapping[str, object]:
        return {"engine": "scripted", "script_sha256": self._sha256}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:  # noqa: ARG002
        return None

    async def aclose(self) -> None:
        """Does nothing."""


def open_provider(settings: ModelSettings) -> ScriptedProvider:
    r"""Replies from the text file `settings.model`, one a line; `\n` in a line is a line break.

    Raises:
        SetupError: the file cannot be read or is empty.
    """
    path = Path(settings.model)
    try:
        lines = path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"scripted replies: cannot read {str(path)!r}: {error}") from error
    if lines == [""]:
        raise SetupError(f"scripted replies: {str(path)!r} is empty; write one reply a line")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    return ScriptedProvider([line.replace("\\n", "\n") for line in lines], digest)


DESCRIPTOR = Descriptor(
    name="scripted",
    title="replies from a text file, one on each line, in turn",
    needs=lambda _environ: "the file",
    opens="eyechart.providers.scripted:open_provider",
    takes_address=False,
    gives_logprobs=False,
    efforts="none",
    likelihood=lambda _addresses: ("chat", "completions"),
    takes_turns=True,
    runs_here=True,
    is_free=True,
    has_tokenizer=False,
    in_cluster="",
    service=Service("ours", "eyechart"),
)
