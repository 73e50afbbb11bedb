"""The provider of models that transformers computes on this machine: `hf/FOLDER`, `gguf/FILE`.

Requests that wait at the same time form batches, on one thread. torch and transformers are imported
when the model or its tokenizer is loaded, not before; the network is never asked.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from eyechart.providers.base import (
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    SampleError,
    SetupError,
)
from eyechart.providers.hf.descriptor import file_name, folder_name
from eyechart.providers.hf.files import ModelFiles, file_at, files_in
from eyechart.providers.in_process.model_files import one_line
from eyechart.providers.in_process.one_thread import OneThread, QueuedRequest, check_limit
from eyechart.providers.naming import named

if TYPE_CHECKING:
    from eyechart.providers.hf.model import HfModel
    from eyechart.providers.hf.prompts import ChatPrompts

Load: TypeAlias = Callable[[ModelFiles, ModelSettings], Any]
_PATIENCE_S = 10.0
"""Seconds to wait for the end of the thread, which stops at the next token."""


def open_folder(settings: ModelSettings) -> HfProvider:
    """Opens the model in a folder; loads nothing yet.

    Raises:
        SetupError: the folder or a file in it is missing or damaged.
    """
    files = files_in(settings.model, trust_remote_code=settings.trust_remote_code or None)
    return HfProvider(files, folder_name(settings.model), settings)


def open_file(settings: ModelSettings) -> HfProvider:
    """Opens the model in a GGUF file; loads nothing yet. Raises `SetupError` if there is none."""
    return HfProvider(file_at(settings.model), file_name(settings.model), settings)


class HfProvider:
    """One model of transformers. Safe to call from many asyncio tasks."""

    def __init__(
        self, files: ModelFiles, name: str, settings: ModelSettings, load: Load | None = None
    ) -> None:
        """`load` gives the model of transformers that is asked; it is called once, on a thread. By
        default that is the model in the files.
        """
        if settings.temperature is not None and settings.temperature < 0:
            raise SetupError(
                f"{named('temperature')} must be at least 0, not {settings.temperature}"
            )
        self._files = files
        self._name = name
        self._settings = settings
        self._load_model = load
        self._thread = OneThread(name, self._answer, self._failed)
        self._loading = threading.Lock()
        self._tokenizer: Any = None
        self._prompts: ChatPrompts | None = None
        self._model: HfModel | None = None
        self._facts: dict[str, object] | None = None

    async def complete(self, request: Request) -> Reply:
        check_limit(request)
        return await self._thread.reply(request)

    async def score(self, request: Request) -> Reply:
        return await self._thread.reply(request)

    async def facts(self) -> Mapping[str, object]:
        """The libraries, and the model's hashes, window and size; loads the model."""
        return await asyncio.to_thread(self._read_facts)

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Counts with the model's own tokenizer and template; the weights are not loaded."""

        def count() -> list[int]:
            loaded = self._load_prompts()
            return list(map(len, loaded.ids([loaded.text(prompt) for prompt in prompts])))

        return await asyncio.to_thread(count)

    async def aclose(self) -> None:
        """Stops the thread before the next token; requests without a reply get `StopRunError`."""
        await self._thread.aclose(_PATIENCE_S)
        self._model = self._prompts = self._tokenizer = None
        gc.collect()

    def _read_facts(self) -> dict[str, object]:
        if self._facts is None:
            model, prompts = self._load(), self._load_prompts()
            import torch  # noqa: PLC0415  heavy
            import transformers  # noqa: PLC0415  heavy

            template, config = prompts.template_sha256, self._files.config_sha256()
            self._facts = {
                "engine": "transformers",
                "transformers": transformers.__version__,
                "torch": str(torch.__version__),
                "weights_sha256": self._files.weights_sha256()[:16],
                "config_sha256": None if config is None else config[:16],
                "chat_template_sha256": None if template is None else template[:16],
                **model.facts(),
            }
        return self._facts

    def _load_prompts(self) -> ChatPrompts:
        """The tokenizer, loaded on the first call; raises `SetupError` if it cannot be."""
        from eyechart.providers.hf.loading import load_tokenizer  # noqa: PLC0415  imports torch
        from eyechart.providers.hf.prompts import ChatPrompts  # noqa: PLC0415

        with self._loading:
            if self._prompts is None:
                self._tokenizer = load_tokenizer(self._files, self._settings)
                self._prompts = ChatPrompts(self._tokenizer, self._files.place, self._settings)
                if self._prompts.lacks_template:
                    self._settings.notify(
                        f"{self._name} has no chat template, so its prompts are texts to continue, "
                        f"as with {named('api', 'completions')}"
                    )
            return self._prompts

    def _load(self) -> HfModel:
        """The model, loaded on the first call; raises `SetupError` if it cannot be loaded."""
        prompts = self._load_prompts()
        from eyechart.providers.hf.loading import load_model  # noqa: PLC0415  imports torch
        from eyechart.providers.hf.model import HfModel, end_tokens  # noqa: PLC0415

        with self._loading:
            if self._model is None:
                model = (self._load_model or load_model)(self._files, self._settings)
                self._model = HfModel(
                    model,
                    prompts,
                    self._name,
                    self._settings,
                    ends=end_tokens(model, self._tokenizer),
                    closed=lambda: self._thread.closed,
                )
            return self._model

    def _answer(self, jobs: list[QueuedRequest]) -> None:
        """Settles all jobs, on the thread."""
        self._load().answer(jobs)

    def _failed(self, cause: BaseException) -> ProviderError:
        return SampleError(f"{self._name} failed with {one_line(cause)}")
