"""Any model that lm-eval can load, as a provider: `lm-eval/TYPE` with `--model-arg KEY=VALUE`.

Models of this process get batches, on one thread (`lm_eval_local`); those behind a server are asked
one request a call, as many at once as the runner likes (`lm_eval_api`). Nothing of lm-eval is
imported before the model is loaded.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from providers.base import (
    BadRequestError,
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    SampleError,
    SetupError,
    StopRunError,
)
from providers.lm_eval.args import facts_of, read_args
from providers.lm_eval.loading import AT_ONCE, Quiet, is_installed, load, missing, one_line
from providers.one_thread import Job, OneThread

if TYPE_CHECKING:
    from providers.lm_eval.api import ApiModel
    from providers.lm_eval.local import LocalModel

_FAREWELL_S = 5.0
"""How long a batch may take once the run is to stop; models of PyTorch's stop at the next token."""


class LmEvalProvider:
    """One model of lm-eval's. Safe to call from many asyncio tasks."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._kind = settings.model
        self._args = read_args(settings.model_args)
        self._quiet: Quiet | None = None
        self._model: LocalModel | ApiModel | None = None
        self._loading = threading.Lock()
        self._using = threading.Lock()
        self._thread = OneThread("lm-eval", self._answer, self._error, enough=self._enough)

    async def complete(self, request: Request) -> Reply:
        """The model's reply; raises a `ProviderError` and nothing else."""
        from providers.lm_eval.api import ApiModel  # noqa: PLC0415  imports aiohttp

        if request.max_tokens < 1:
            raise BadRequestError(f"max_tokens is {request.max_tokens!r}; ask for one at least")
        model = self._model or await asyncio.to_thread(self._load)
        if isinstance(model, ApiModel):
            return await model.complete(request)
        return await self._thread.reply(request)

    async def facts(self) -> Mapping[str, object]:
        """What answers, and with which arguments; loads the model."""
        model = await asyncio.to_thread(self._load)
        return {
            "engine": "lm-eval",
            "lm_eval": importlib.metadata.version("lm_eval"),
            "type": self._kind,
            **facts_of(self._args),
            **model.facts(),
        }

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """By the model's own tokenizer, where lm-eval has it."""
        model = await asyncio.to_thread(self._load)

        def count() -> list[int] | None:
            with self._using:
                return model.count_tokens(list(prompts))

        return await asyncio.to_thread(count)

    async def aclose(self) -> None:
        """Stops after the batch, or sooner, and gives standard output back."""
        from providers.lm_eval.api import ApiModel  # noqa: PLC0415  imports aiohttp

        try:
            await self._thread.aclose(_FAREWELL_S)
            if isinstance(self._model, ApiModel):
                await self._model.aclose()
            self._model = None
            gc.collect()  # engines end their processes when nobody holds them any more
        finally:
            if self._quiet is not None:
                self._quiet.close()

    def _load(self) -> LocalModel | ApiModel:
        """The model, loaded once; raises `SetupError`."""
        from providers.lm_eval.api import ApiModel, LlamaServer  # noqa: PLC0415  imports aiohttp
        from providers.lm_eval.local import LocalModel  # noqa: PLC0415

        with self._loading:
            if self._model is None:
                self._quiet = self._quiet or Quiet(self._settings.server_log)
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
        return getattr(self._model, "at_once", AT_ONCE)

    def _answer(self, jobs: list[Job]) -> None:
        from providers.lm_eval.local import LocalModel  # noqa: PLC0415

        model = self._load()
        assert isinstance(model, LocalModel)
        with self._using:
            model.answer(jobs)

    def _error(self, cause: BaseException | None) -> ProviderError:
        if cause is None:
            return StopRunError("lm-eval's model was closed before it answered; open it again")
        if isinstance(cause, SetupError):
            return SetupError(str(cause))
        return SampleError(f"lm-eval's {self._kind} failed with {one_line(cause)}")


def open_provider(settings: ModelSettings) -> LmEvalProvider:
    """The model of type `settings.model` with the settings' model arguments; loads nothing yet.

    Raises:
        SetupError: the package is missing, or something is asked that is not had here.
    """
    if settings.logprobs:
        raise SetupError("lm-eval keeps no probabilities of replies; leave --logprobs out")
    if not is_installed():
        raise missing()
    return LmEvalProvider(settings)
