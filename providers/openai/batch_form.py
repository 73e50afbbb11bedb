"""OpenAI's Batch form: a request a line, and how the lines of replies are read.

The same files go through OpenAI's Batch API, those of vendors who copied it, and vLLM's
`run-batch`, whose errors stand where OpenAI has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from providers.base import BatchExpiredError, ModelSettings, Reply, Request
from providers.catalog.endpoints import Endpoint, endpoints
from providers.catalog.model_facts import model_facts
from providers.http.errors import as_text, error_of
from providers.openai.form import OpenAIForm, path_of, plain_body, reply_of
from providers.secrets import redact

_SHOWN = 300


class OpenAIBatchForm:
    """What one model is sent, by whatever makes its bodies."""

    def __init__(
        self,
        settings: ModelSettings,
        body: Callable[[Request], Mapping[str, object]],
        caution: str | None = None,
    ) -> None:
        self.url = f"/v1{path_of(settings)}"
        self.body = body
        self.caution = caution

    def reply(self, line: Mapping[str, Any]) -> Reply:
        """The reply of a line that has one.

        Raises:
            BatchExpiredError: the batch expired or was cancelled before it came to this request.
            ProviderError: the server answered with an error.
        """
        response, error = line.get("response"), line.get("error")
        if not isinstance(response, dict):
            raise BatchExpiredError(_said(error))
        status, body = response.get("status_code"), response.get("body")
        if status == HTTPStatus.OK and not error:
            return reply_of(body)
        code = status if isinstance(status, int) else HTTPStatus.OK
        raise error_of(code, as_text(body or error), {})


def _said(error: object) -> str:
    """Code and message of what OpenAI says of a request that it never sent."""
    if not isinstance(error, dict):
        return f"no response, and no reason but {redact(as_text(error))[:_SHOWN]}"
    parts = (as_text(error[name]) for name in ("code", "message") if error.get(name))
    return redact(": ".join(parts))[:_SHOWN] or "no response and no reason given"


def open_compatible(settings: ModelSettings) -> OpenAIBatchForm:
    """A model of OpenAI's or of a vendor who speaks its form, asked as `openai_api` would."""
    endpoint = endpoints()[settings.provider]
    if settings.base_urls:
        endpoint = Endpoint(base_url=settings.base_urls[0])
    facts = model_facts(f"{settings.provider}/{settings.model}")
    form = OpenAIForm(settings, endpoint, facts)
    return OpenAIBatchForm(settings, lambda one: {"model": settings.model, **form.body(one)})


def open_vllm(settings: ModelSettings) -> OpenAIBatchForm:
    """A model that vLLM serves, asked as `vllm_client` would."""
    caution = None
    if settings.api == "completions":
        caution = "vllm run-batch takes chat requests only, as of 0.32, and rejects such a file"
    return OpenAIBatchForm(settings, lambda one: plain_body(one, settings), caution)
