"""The provider of the embedded model: requests that wait at the same time form one batch.

One thread takes all waiting requests, renders and tokenizes their prompts, and generates the
replies. Each reply goes to the event loop as soon as it ends. NumPy and the model are loaded on the
first request.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from eyechart.providers.base import (
    Api,
    BadReplyError,
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    Usage,
)
from eyechart.providers.documents import until_stop
from eyechart.providers.in_process.model_files import check_ids
from eyechart.providers.in_process.one_thread import OneThread, QueuedRequest, check_limit
from eyechart.providers.likelihood import scored_reply
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import model_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from eyechart.providers.tiny.runtime import GeneratedReply, TinyModel

_MOST_WORKERS = 8
"""Most batches that are generated in parallel."""
_SHOWN_WORDS = 3
_PATIENCE_S = 10.0
"""Seconds to wait for the end of the thread."""


def open_provider(settings: ModelSettings) -> TinyProvider:
    """Opens the embedded model `tiny`, or the model in a folder; loads nothing yet.

    Raises:
        SetupError: the folder or a file in it is missing.
    """
    folder = model_folder(settings.model)
    name = "tiny" if settings.model == "tiny" else folder.resolve().name
    notify = settings.notify if settings.model == "tiny" else None
    return TinyProvider(
        folder,
        name,
        api=settings.api or "chat",
        system=settings.system,
        notify=notify,
    )


class _Loaded:
    """The loaded model with its tokenizer and template."""

    def __init__(self, folder: Path) -> None:
        self.workers = _take_cores()
        from eyechart.providers.tiny.runtime import TinyModel  # noqa: PLC0415  imports numpy

        self.model: TinyModel = TinyModel.load(folder)
        self.chat = Chat(folder)


def _take_cores() -> int:
    """The number of batches to generate in parallel, each on one core; imports NumPy.

    This is twice as fast as one batch on OpenBLAS's own threads: while they are idle they keep the
    cores busy, which slows down all work between two matrix products. OpenBLAS reads the number of
    its threads once, when NumPy is imported. If NumPy was imported before with more than one
    thread, the result is 1.
    """
    single = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    if not single and "numpy" not in sys.modules:
        before = os.environ.get("OPENBLAS_NUM_THREADS")
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        import numpy as np  # noqa: F401, PLC0415  the import reads the setting

        if before is None:
            del os.environ["OPENBLAS_NUM_THREADS"]
        else:
            os.environ["OPENBLAS_NUM_THREADS"] = before
        single = True
    if not single:
        return 1
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, _MOST_WORKERS)


class TinyProvider:
    """One model in NumPy. Safe to call from many asyncio tasks."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        api: Api = "chat",
        system: str | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """`notify` is called once with the words that the model cannot know. Only for the shipped
        model it is known that such words make its replies worthless.
        """
        self._folder = folder
        self._api: Api = api
        self._system = system
        self._name = name
        self._thread = OneThread("the embedded model", self._answer, _failed)
        self._loaded: _Loaded | None = None
        self._loading = threading.Lock()
        self._notify = notify
        self._read_tasks: set[str] = set()
        """The tasks whose words were checked."""

    async def complete(self, request: Request) -> Reply:
        """The reply; raises a `ProviderError` and nothing else. At temperature 0 it is the greedy
        one, above it follows from the request's seed.
        """
        check_limit(request)
        return await self._thread.reply(request)

    async def score(self, request: Request) -> Reply:
        return await self._thread.reply(request)

    async def facts(self) -> Mapping[str, object]:
        """The model's hashes, window and number of parameters; loads the model."""
        loaded = await asyncio.to_thread(self._load)
        model = loaded.model
        return {
            "engine": "numpy",
            "weights_sha256": model.weights_sha256[:16],
            "tokenizer_sha256": loaded.chat.sha256[:16],
            "max_model_len": model.config.window,
            "parameters": model.parameters,
        }

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """Counts with the model's own tokenizer and template."""
        loaded = await asyncio.to_thread(self._load)
        return list(map(len, await asyncio.to_thread(self._ids, loaded, prompts)))

    def _ids(self, loaded: _Loaded, prompts: Sequence[str]) -> list[list[int]]:
        return loaded.chat.ids(prompts, self._api, self._system)

    async def aclose(self) -> None:
        """Stops the thread before the next token; requests without a reply get `StopRunError`. A
        thread that goes on, as in a chat template without an end, ends with the process.
        """
        await self._thread.aclose(_PATIENCE_S)

    def _load(self) -> _Loaded:
        """The model, loaded on the first call; raises `SetupError` if it cannot be loaded."""
        with self._loading:
            if self._loaded is None:
                self._loaded = _Loaded(self._folder)
            return self._loaded

    def _answer(self, jobs: list[QueuedRequest]) -> None:
        """Settles all jobs, on the thread."""
        loaded = self._load()
        window = loaded.model.config.window
        waiting = [job for job in jobs if not job.cancelled]
        self._look_for_words(loaded, [job.request for job in waiting])
        self._score_all(loaded, [job for job in waiting if job.request.options])
        waiting = [job for job in waiting if not job.request.options]
        prompts: list[list[int]] = []
        fitting: list[QueuedRequest] = []
        for job, ids in zip(
            waiting, self._ids(loaded, [job.request.prompt for job in waiting]), strict=True
        ):
            check_ids(ids, loaded.model.config.vocabulary)
            if len(ids) < window:
                prompts.append(ids)
                fitting.append(job)
            else:
                job.settle(self._overflow(len(ids), window))

        def settle(index: int, generated: GeneratedReply) -> None:
            text, finish_reason = loaded.chat.text(generated.ids), generated.finish_reason
            if self._api == "completions":
                cut = until_stop(text, fitting[index].request.prompt)
                if cut is not None:
                    text, finish_reason = cut, "stop"
            fitting[index].settle(
                Reply(
                    text=text,
                    finish_reason=finish_reason,
                    usage=Usage(len(prompts[index]), len(generated.ids)),
                    model=self._name,
                    sure_stop=True,
                )
            )

        from eyechart.providers.tiny.runtime import Sampling  # noqa: PLC0415  imports numpy

        loaded.model.generate(
            prompts,
            [job.request.max_tokens for job in fitting],
            workers=loaded.workers,
            on_finished=settle,
            should_stop=lambda: self._thread.closed,
            sampling=[
                Sampling(job.request.temperature or 0, job.request.seed or 0) for job in fitting
            ],
        )

    def _overflow(self, tokens: int, window: int) -> PromptOverflowError:
        return PromptOverflowError(
            f"the prompt has {tokens} tokens, but the window of {self._name} takes"
            f" {window - 1} and one token of reply; ask for shorter lengths"
        )

    def _score_all(self, loaded: _Loaded, jobs: Sequence[QueuedRequest]) -> None:
        """Settles jobs with options, each on one core."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  loaded with the model

        with ThreadPoolExecutor(loaded.workers) as pool:
            for _ in pool.map(lambda job: job.settle(self._scored(loaded, job.request)), jobs):
                pass

    def _scored(self, loaded: _Loaded, request: Request) -> Reply | ProviderError:
        """The outcome of a request with options."""
        model = loaded.model
        if self._thread.closed:
            return self._thread.closed_error()
        try:
            before, tails = loaded.chat.option_ids(request, self._api, self._system)
        except BadReplyError as error:
            return error
        check_ids([*before, *(one for tail in tails for one in tail)], model.config.vocabulary)
        longest = len(before) + max(map(len, tails))
        if longest > model.config.window:
            return self._overflow(longest - 1, model.config.window)
        usage = Usage(len(before), sum(map(len, tails)))
        logprobs = model.logprobs(before, tails)
        return scored_reply(request, logprobs, usage=usage, model=self._name)

    def _look_for_words(self, loaded: _Loaded, requests: Sequence[Request]) -> None:
        """Tells the user once which words of a task's first prompt the model does not know."""
        for request in requests if self._notify is not None else ():
            task = request.sample_id.partition("@")[0]
            if task in self._read_tasks:
                continue
            self._read_tasks.add(task)
            unknown = loaded.chat.unknown_words(f"{self._system or ''}\n{request.prompt}")
            if unknown and self._notify is not None:
                more = len(unknown) - _SHOWN_WORDS
                shown = ", ".join(map(repr, unknown[:_SHOWN_WORDS]))
                self._notify(
                    f"tiny knows only the words of the tasks it was trained on, and not {shown}"
                    f"{f' and {more} more' if more > 0 else ''}: its accuracy says nothing about "
                    "this task; oracle:50 answers any task"
                )
                self._notify = None


def _failed(cause: BaseException) -> ProviderError:
    return BadReplyError(f"the embedded model failed with {cause!r}; please report this")
