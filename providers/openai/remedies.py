"""What helps where a server of OpenAI's form gives no access, or has no such model or path."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable
from dataclasses import dataclass

from eyechart.providers.base import (
    AuthError,
    BadRequestError,
    ModelSettings,
    ProviderError,
    Reply,
    UnknownModelError,
)
from eyechart.providers.naming import named
from eyechart.providers.secrets import redact_address

NO_TEMPERATURE = "with the temperature 'none' none is sent"


@dataclass(frozen=True, slots=True)
class Remedies:
    """The remedies for one model."""

    settings: ModelSettings
    key: str | None
    """The environment variable with the key; `None` where it has none."""

    def of(self, error: ProviderError, *, is_score: bool = False) -> ProviderError:
        """The error with what helps; itself where nothing is known. `is_score`: of a request for
        the probabilities of options, which goes to `/completions` for chats too.
        """
        if isinstance(error, AuthError) and self.key and not self._has_password:
            verb = "check the key in" if os.environ.get(self.key) else "set"
            return AuthError(f"{error}; {verb} {self.key}")
        if isinstance(error, UnknownModelError) and (meant := self._versioned):
            error = UnknownModelError(f"{error}; did you mean {named('base_url', meant)}?")
        if isinstance(error, UnknownModelError) and (instead := self._instead(is_score=is_score)):
            return UnknownModelError(f"{error}; a server without /completions needs {instead}")
        return error

    def of_parameter(self, error: ProviderError, name: str) -> ProviderError:
        """The error about a parameter that is not left out, with what the user gave it by. It is
        the error of a sample, which is kept and shown at every door, so it names no option.
        """
        given = self.settings
        if name in given.params:
            return BadRequestError(f"{error}; leave out the param {name!r}")
        if name == "temperature":
            return BadRequestError(f"{error}; {NO_TEMPERATURE}")
        if name == "reasoning_effort" and given.effort:
            return BadRequestError(f"{error}; leave out the effort {given.effort!r}")
        if given.thinking and not name.startswith("max_"):
            return BadRequestError(f"{error}; leave out thinking {given.thinking!r}")
        return error

    async def scored(self, scoring: Awaitable[Reply]) -> Reply:
        """The reply with the options, or its error with what helps."""
        try:
            return await scoring
        except (AuthError, UnknownModelError) as error:
            raise self.of(error, is_score=True) from error

    @property
    def _has_password(self) -> bool:
        return any("@" in url for url in self.settings.base_urls)

    @property
    def _versioned(self) -> str:
        """The address with the `/v1` that it lacks; empty where it has its like."""
        urls = (redact_address(url).rstrip("/") for url in self.settings.base_urls)
        return next((f"{url}/v1" for url in urls if not re.search(r"/v\d", url)), "")

    def _instead(self, *, is_score: bool) -> str:
        if self.settings.api == "completions":
            chat = named("api", "chat")
            return f"{named('reading', 'reply')} and {chat}" if is_score else chat
        return named("reading", "reply") if is_score else ""
