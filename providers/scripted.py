"""A provider that says what it is told to: for tests and for trying things out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from providers.base import ModelSettings, ProviderError, Reply, Request, SetupError

Script: TypeAlias = (
    Callable[[Request], str | Reply | ProviderError] | Sequence[str | Reply | ProviderError]
)


class ScriptedProvider:
    """Answers from a list, in turn and over again, or from a function of the request.

    An entry that is a `ProviderError` is raised. `.requests` keeps what was asked.
    """

    def __init__(self, script: Script, script_sha256: str | None = None) -> None:
        self._script = script
        self._sha256 = script_sha256
        self.requests: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        turn = len(self.requests)
        self.requests.append(request)
        said = (
            self._script(request)
            if callable(self._script)
            else self._script[turn % len(self._script)]
        )
        if isinstance(said, ProviderError):
            raise said
        return Reply(said) if isinstance(said, str) else said

    async def facts(self) -> Mapping[str, object]:
        return {"engine": "scripted", "script_sha256": self._sha256}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:  # noqa: ARG002
        return None

    async def aclose(self) -> None:
        """Nothing to give back."""


def open_provider(settings: ModelSettings) -> ScriptedProvider:
    r"""Replies from the text file `settings.model`, one a line; `\n` in a line is a line break.

    Raises:
        SetupError: no such file, or an empty one.
    """
    path = Path(settings.model)
    try:
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"scripted replies: cannot read {str(path)!r}: {error}") from error
    if lines == [""]:
        raise SetupError(f"scripted replies: {str(path)!r} is empty; write one reply a line")
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    return ScriptedProvider([line.replace("\\n", "\n") for line in lines], digest)
