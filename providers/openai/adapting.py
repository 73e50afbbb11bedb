"""Requests for replies that adapt to what a server refuses."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from eyechart.providers.base import (
    BadRequestError,
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    SetupError,
    sent_of,
)
from eyechart.providers.http.client import refused
from eyechart.providers.http.errors import refused_parameters
from eyechart.providers.naming import named
from eyechart.providers.openai.form import OpenAIForm
from eyechart.providers.openai.remedies import Remedies

Send: TypeAlias = Callable[[dict[str, Any], Mapping[str, object]], Awaitable[Reply]]
"""Sends a body, which it may change; the mapping is `Reply.sent`."""

_PROMPTS = {"messages", "prompt"}
"""Fields that every server takes."""
_NOT_BOTH = re.compile(
    r"\b(?:both|together|simultaneous\w*|same time|only one of|either)\b", re.IGNORECASE
)
"""What a server says of two parameters of which it takes one."""


class AdaptingClient:
    """Asks one model; a parameter that its server refuses is left out of all later requests."""

    def __init__(self, form: OpenAIForm, settings: ModelSettings, remedies: Remedies) -> None:
        self._form = form
        self._settings = settings
        self._remedies = remedies
        self._taken: set[str] = set()
        """Parameters of requests that were answered."""

    async def complete(self, request: Request, send: Send) -> Reply:
        """The reply to the request, whose body `send` sends. Where a refusal does not say which
        parameter it is about, the request is tried once without the neutral ones.

        Raises:
            ProviderError: as `Provider.complete` says.
        """
        refusal: ProviderError | None = None
        while True:
            body = self._form.body(request, bare=refusal is not None)
            sent = sent_of(body)
            try:
                reply = await send(dict(body), sent)
            except ProviderError as error:
                text = refused(error)
                if isinstance(error, BadRequestError) and error.__cause__ is None:
                    text = str(error)  # a router's, with status 200
                fields = {name: body[name] for name in body.keys() - _PROMPTS}
                is_bare = refusal is not None
                if text is not None and body != self._form.body(request, bare=is_bare):
                    continue  # the refusal of another request has changed it meanwhile
                if text is not None and self._adapted(error, text, fields):
                    continue
                if refusal is not None:
                    self._form.neutral.is_cleared = True
                    raise refusal from error
                if text is None or not self._form.neutral.may_be_refused(error, text, fields):
                    raise self._remedies.of(error) from error.__cause__
                refusal = error
            else:
                self._note_taken(body, is_bare=refusal is not None)
                dropped = tuple(sorted(self._form.dropped - body.keys()))
                return replace(reply, dropped_params=dropped) if dropped else reply

    def _adapted(self, error: ProviderError, text: str, body: Mapping[str, Any]) -> bool:
        """Whether the next body is another one, after the server refused this one with `text`;
        raises `SetupError` where the model does not have the tier.
        """
        if "service_tier" in body and "service_tier" in text:
            raise SetupError(
                f"{self._settings.model} has no tier {self._settings.tier!r}; leave out "
                f"{named('tier')} ({error})"
            ) from error
        names, is_unknown = refused_parameters(text, body, self._taken)
        if not is_unknown and not isinstance(error, BadRequestError):
            return False
        if not names:
            return False
        if is_choice := len(names) > 1 and bool(_NOT_BOTH.search(text)):
            neutral = self._form.neutral.fields
            names.sort(key=lambda name: (name not in neutral, name != "temperature"))
        whole = is_unknown or (is_choice and not self._settings.temperature)
        tried = names if is_unknown else names[:1]
        if any(self._form.adapt(name, text, whole=whole) for name in tried):
            return True
        raise self._remedies.of_parameter(error, names[0]) from error.__cause__

    def _note_taken(self, body: Mapping[str, Any], *, is_bare: bool) -> None:
        """Notes that a request was answered; a bare one shows which fields the server refuses."""
        neutral = self._form.neutral
        if is_bare and not neutral.is_taken:
            self._form.refuse_neutral()
        neutral.is_taken = True
        self._taken |= body.keys()
        for note in self._form.new_notes():
            self._settings.notify(note)
