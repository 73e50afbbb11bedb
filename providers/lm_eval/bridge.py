"""The provider of lm-eval's models: `lm-eval/TYPE` with `model_args`.

Models in this process get batches of requests, on one thread (`providers.lm_eval.local`). Models
behind a server get single requests, and the runner decides how many at once
(`providers.lm_eval.api`). lm-eval is imported when the model is loaded, not before.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import threading
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from eyechart.providers.base import (
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    SampleError,
    SetupError,
    install,
)
from eyechart.providers.in_process.one_thread import OneThread, QueuedRequest, check_limit
from eyechart.providers.lm_eval.args import facts_of, read_args
from eyechart.providers.lm_eval.loading import AT_ONCE, QuietOutput, load, one_line
from eyechart.providers.naming import named, turned_on

if TYPE_CHECKING:
    from eyechart.providers.lm_eval.api import ApiModel
    from eyechart.providers.lm_eval.local import LocalModel

_FAREWELL_S = 5.0
"""Seconds that a running batch may take after `aclose`; PyTorch models stop at the next token."""


class LmEvalProvider:
    """One of lm-eval's models. Safe to call from many asyncio tasks."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._kind = settings.model
        self._args = read_args(settings.model_args)
        self._quiet: QuietOutput | None = None
        self._model: LocalModel | ApiModel | None = None
        self._loading = threading.Lock()
        self._using = threading.Lock()
        self._thread = OneThread("lm-eval's model", self._answer, self._failed, enough=self._enough)

    async def complete(self, request: Request) -> Reply:
        from eyechart.providers.lm_eval.api import ApiModel  # noqa: PLC0415  imports aiohttp

        check_limit(request)
        model = self._model or await asyncio.to_thread(self._load)
        if isinstance(model, ApiModel):
            return await model.complete(request)
        return await self._thread.reply(request)

    async def score(self, request: Request) -> Reply:
        from eyechart.providers.lm_eval.api import ApiModel  # noqa: PLC0415  imports aiohttp

        model = self._model or await asyncio.to_thread(self._load)
        if isinstance(model, ApiModel):
            raise SetupError(
                f"lm-eval's {self._kind} asks a server; {named('reading', 'likelihood')} is for "
                f"its models in this process, or for the server at {named('base_url')}"
            )
        return await self._thread.reply(request)

    async def facts(self) -> Mapping[str, object]:
        """lm-eval's version, the model's type and arguments, and its own facts; loads the model."""
        model = await asyncio.to_thread(self._load)
        return {
            "engine": "lm-eval",
            "lm_eval": importlib.metadata.version("lm_eval"),
            "type": self._kind,
            **facts_of(self._args),
            **model.facts(),
        }

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Counts with the model's own tokenizer; `None` if lm-eval does not have it."""
        model = await asyncio.to_thread(self._load)

        def count() -> list[int] | None:
            with self._using:
                return model.count_tokens(list(prompts))

        return await asyncio.to_thread(count)

    async def aclose(self) -> None:
        """Stops the thread, after the running batch or sooner, and restores standard output."""
        from eyechart.providers.lm_eval.api import ApiModel  # noqa: PLC0415  imports aiohttp

        try:
            await self._thread.aclose(_FAREWELL_S)
            if isinstance(self._model, ApiModel):
                await self._model.aclose()
            self._model = None
            gc.collect()  # engines end their processes when they are deleted
        finally:
            if self._quiet is not None:
                self._quiet.close()

    def _load(self) -> LocalModel | ApiModel:
        """The model, loaded on the first call; raises `SetupError` if it cannot be loaded."""
        from eyechart.providers.lm_eval.api import ApiModel, LlamaServer  # noqa: PLC0415  imports aiohttp
        from eyechart.providers.lm_eval.local import LocalModel  # noqa: PLC0415

        with self._loading:
            if self._model is None:
                self._quiet = self._quiet or QuietOutput(self._settings.server_log)
                lm, over_http = load(self._kind, self._args, self._quiet)
                if hasattr(lm, "gguf_completion"):
                    lm, over_http = LlamaServer(lm), LlamaServer
                if isinstance(lm, over_http):
                    self._model = ApiModel(lm, self._kind, self._settings, over_http)
                else:
                    self._model = LocalModel(
                        lm, self._kind, self._settings, closed=lambda: self._thread.closed
                    )
            return self._model

    def _enough(self) -> int:
        """Requests that fill a batch."""
        return getattr(self._model, "at_once", AT_ONCE)

    def _answer(self, jobs: list[QueuedRequest]) -> None:
        """Settles all jobs, on the thread; loads the model if needed."""
        from eyechart.providers.lm_eval.local import LocalModel  # noqa: PLC0415

        model = self._load()
        assert isinstance(model, LocalModel)
        with self._using:
            model.answer(jobs)

    def _failed(self, cause: BaseException) -> ProviderError:
        return SampleError(f"lm-eval's {self._kind} failed with {one_line(cause)}")


def open_provider(settings: ModelSettings) -> LmEvalProvider:
    """Opens the model of type `settings.model` with the settings' arguments; loads nothing yet.

    Raises:
        SetupError: lm-eval is not installed, or the settings ask for log probabilities.
    """
    if settings.logprobs:
        raise SetupError(
            f"lm-eval keeps no probabilities of replies; leave out {turned_on('logprobs')}"
        )
    if find_spec("lm_eval") is None:
        raise SetupError(f"lm-eval/… needs the package lm-eval: {install('lm-eval')}")
    return LmEvalProvider(settings)
