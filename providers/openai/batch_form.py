"""OpenAI's Batch form: makes lines of requests, and reads lines of replies.

OpenAI's Batch API, vendors with the same API and `vllm run-batch` take the same files. The replies
of `vllm run-batch` have errors in other fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from msgspec.structs import replace

from eyechart.providers.base import BatchExpiredError, ModelSettings, Reply, Request
from eyechart.providers.catalog.endpoints import endpoint_of
from eyechart.providers.catalog.model_facts import model_facts
from eyechart.providers.http.error_body import as_text
from eyechart.providers.http.errors import error_of
from eyechart.providers.openai.form import OpenAIForm, path_of, reply_of, vllm_form, writes_cost
from eyechart.providers.secrets import redact

_SHOWN = 300
"""Most characters of a vendor's text in our messages."""


class OpenAIBatchForm:
    """The Batch form of one model."""

    def __init__(
        self, settings: ModelSettings, form: OpenAIForm, caution: str | None = None
    ) -> None:
        self.url = f"/v1{path_of(settings)}"
        self.caution = caution
        self._model, self._form = settings.model, form

    def body(self, request: Request) -> Mapping[str, object]:
        """The body of a request, with the model."""
        return {"model": self._model, **self._form.body(request)}

    def reply(self, line: Mapping[str, Any]) -> Reply:
        """The reply on a line of replies or errors.

        Raises:
            BatchExpiredError: the batch expired or was cancelled before this request was processed.
            ProviderError: the server answered with an error.
        """
        response, error = line.get("response"), line.get("error")
        if not isinstance(response, dict):
            raise BatchExpiredError(_reason(error))
        status, body = response.get("status_code"), response.get("body")
        if status == HTTPStatus.OK and not error:
            reply = reply_of(body)
            usage = reply.usage and replace(reply.usage, tier="batch")
            return replace(reply, usage=usage)
        code = status if isinstance(status, int) else HTTPStatus.OK
        raise error_of(code, as_text(body or error), {})


def _reason(error: object) -> str:
    """Code and message of an error that OpenAI gives for a request that was not processed."""
    if not error:
        return "no response and no reason given"
    if not isinstance(error, dict):
        return f"no response; the error is: {redact(as_text(error))[:_SHOWN]}"
    parts = (as_text(error[name]) for name in ("code", "message") if error.get(name))
    return redact(": ".join(parts))[:_SHOWN] or "no response and no reason given"


def open_compatible(settings: ModelSettings) -> OpenAIBatchForm:
    """The form of an OpenAI-compatible model: the same bodies as `providers.openai.api` sends."""
    endpoint = endpoint_of(settings.provider, settings.base_urls)
    facts = model_facts(f"{settings.provider}/{settings.model}").asked_for(settings.effort)
    form = OpenAIForm(settings, endpoint, facts, uncached=writes_cost(settings, endpoint))
    return OpenAIBatchForm(settings, form)


def open_vllm(settings: ModelSettings) -> OpenAIBatchForm:
    """The form of a model that vLLM serves: the same bodies as `providers.vllm.client` sends."""
    caution = None
    if settings.api == "completions":
        caution = "vllm run-batch takes chat requests only (as of 0.32) and rejects this file"
    return OpenAIBatchForm(settings, vllm_form(settings), caution)
