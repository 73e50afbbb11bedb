"""A loaded model of transformers: it settles jobs in batches, on one thread."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from eyechart.providers.base import (
    ModelSettings,
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    SampleError,
    Usage,
)
from eyechart.providers.documents import until_stop
from eyechart.providers.hf.computing import LoadedModel
from eyechart.providers.hf.generating import GeneratedTokens, GenerationRequest, generate
from eyechart.providers.hf.prompts import ChatPrompts
from eyechart.providers.hf.scoring import TokenChoice, score
from eyechart.providers.in_process.halving import Halving, StoppedError, is_out_of_memory
from eyechart.providers.in_process.model_files import check_ids, one_line
from eyechart.providers.in_process.one_thread import QueuedRequest
from eyechart.providers.likelihood import scored_reply


@dataclass(slots=True)
class _PromptJob:
    """A job with the tokens of its prompt."""

    job: QueuedRequest
    ids: list[int]
    room: int


@dataclass(slots=True)
class _OptionsJob:
    """A job with the tokens of its options."""

    job: QueuedRequest
    choice: TokenChoice


class HfModel:
    """One model in this process. Only one thread may use it at a time."""

    def __init__(
        self,
        model: Any,
        prompts: ChatPrompts,
        name: str,
        settings: ModelSettings,
        *,
        ends: frozenset[int],
        closed: Callable[[], bool],
    ) -> None:
        self._computing = LoadedModel(model)
        self._prompts = prompts
        self._name = name
        self._settings = settings
        self._ends = ends
        self._closed = closed
        self._halving = Halving(settings.notify)

    def facts(self) -> dict[str, object]:
        """The window, size, number type and device of the model."""
        model = self._computing.model
        return {
            "architecture": type(model).__name__,
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": str(model.device),
            "max_model_len": self._computing.window,
            "parameters": sum(one.numel() for one in model.parameters()),
        }

    def answer(self, jobs: Sequence[QueuedRequest]) -> None:
        """Settles all jobs, in batches of prompts of similar length, the longest first."""
        asked: list[_PromptJob] = []
        chosen: list[_OptionsJob] = []
        for job in jobs:
            if job.cancelled:
                continue
            try:
                if job.request.options:
                    chosen.append(self._chosen(job))
                else:
                    asked.append(self._asked(job))
            except ProviderError as error:
                job.settle(error)
        asked.sort(key=lambda one: -len(one.ids))
        while asked:
            tokens = max(len(one.ids) + one.room for one in asked)
            rows = self._computing.rows_at_once(tokens, len(asked[0].ids))
            batch = asked[: min(rows, self._halving.at_once)]
            del asked[: len(batch)]
            self._halving.settle(batch, self._generate, self._failed)
        chosen.sort(key=lambda one: -one.choice.tokens)
        while chosen:
            batch_of_choices = self._fitting(chosen)
            del chosen[: len(batch_of_choices)]
            self._halving.settle(batch_of_choices, self._score, self._failed)

    def _asked(self, job: QueuedRequest) -> _PromptJob:
        """Raises `PromptOverflowError` if the prompt leaves no room for a token of reply."""
        request, window = job.request, self._computing.window
        (ids,) = self._prompts.ids([self._prompts.text(request.prompt)])
        check_ids(ids, self._computing.vocabulary)
        if not ids:
            raise SampleError("the prompt has no token")
        room = request.max_tokens if window is None else min(request.max_tokens, window - len(ids))
        if window is not None and room < 1:
            raise self._overflow(len(ids), window)
        return _PromptJob(job, ids, room)

    def _chosen(self, job: QueuedRequest) -> _OptionsJob:
        """Raises `PromptOverflowError` if the prompt with an option is longer than the window."""
        before, tails = self._prompts.option_ids(job.request)
        check_ids([*before, *(one for tail in tails for one in tail)], self._computing.vocabulary)
        choice, window = TokenChoice(before, tails), self._computing.window
        if window is not None and choice.tokens > window:
            raise self._overflow(choice.tokens - 1, window)
        return _OptionsJob(job, choice)

    def _overflow(self, tokens: int, window: int) -> PromptOverflowError:
        return PromptOverflowError(
            f"the prompt has {tokens:,} tokens, but the window of {self._name} takes"
            f" {window - 1:,} and one token of reply; ask for shorter lengths"
        )

    def _fitting(self, chosen: Sequence[_OptionsJob]) -> list[_OptionsJob]:
        """The first of the choices, as many as fit into memory together; at least one."""
        tokens = chosen[0].choice.tokens
        fitting: list[_OptionsJob] = []
        options = longest = 0
        for one in chosen:
            options += len(one.choice.tails)
            longest = max(longest, one.choice.longest)
            rows = self._rows_of_options(tokens, longest)
            prompts = self._computing.rows_at_once(tokens, tokens)
            if fitting and (options > rows or len(fitting) >= prompts):
                break
            fitting.append(one)
        return fitting

    def _rows_of_options(self, tokens: int, longest: int) -> int:
        """How many options of texts of this many tokens fit into one batch."""
        return min(self._computing.options_at_once(tokens, longest), self._halving.at_once)

    def _failed(self, one: _PromptJob | _OptionsJob, error: Exception) -> None:
        """Settles a prompt that failed alone."""
        if not isinstance(error, ProviderError):
            why = one_line(error)
            error = SampleError(
                f"not enough memory for one prompt and its reply ({why}); ask for shorter lengths"
                if is_out_of_memory(error)
                else f"{self._name} failed with {why}"
            )
        one.job.settle(error)

    def _generate(self, batch: Sequence[_PromptJob]) -> None:
        settings = self._settings
        wishes = [
            GenerationRequest(
                one.ids,
                one.room,
                one.job.request.temperature or 0.0,
                _draw(one.job.request),
                self._text_end(one.job.request),
            )
            for one in batch
        ]
        for place, generated in generate(
            self._computing,
            wishes,
            self._ends,
            logprobs=settings.logprobs,
            most_probable=settings.top_logprobs,
            should_stop=self._closed,
        ):
            one = batch[place]
            one.job.settle(self._reply(one, generated))

    def _text_end(self, request: Request) -> Callable[[Sequence[int]], bool]:
        """Whether a reply has a text at which it ends: only texts to continue have one."""
        if self._prompts.is_chat:
            return lambda _ids: False
        return lambda ids: until_stop(self._prompts.decoded(ids), request.prompt) is not None

    def _reply(self, one: _PromptJob, generated: GeneratedTokens) -> Reply:
        text = self._prompts.decoded(generated.ids)
        if not self._prompts.is_chat:
            cut = until_stop(text, one.job.request.prompt)
            text = text if cut is None else cut
        logprobs = top = None
        if self._settings.logprobs:
            pairs = zip(generated.ids, generated.logprobs, strict=True)
            logprobs = self._with_texts(pairs)
        if self._settings.top_logprobs:
            top = tuple(map(self._with_texts, generated.best))
        return Reply(
            text,
            generated.finish_reason,
            Usage(len(one.ids), len(generated.ids)),
            model=self._name,
            logprobs=logprobs,
            top_logprobs=top,
            sure_stop=True,
        )

    def _with_texts(self, pairs: Iterable[tuple[int, float]]) -> tuple[tuple[str, float], ...]:
        return tuple((self._prompts.token_text(token), value) for token, value in pairs)

    def _score(self, batch: Sequence[_OptionsJob]) -> None:
        if self._closed():
            raise StoppedError
        choices = [one.choice for one in batch]
        for one, logprobs in zip(batch, self._logprobs(choices), strict=True):
            usage = Usage(len(one.choice.before), sum(map(len, one.choice.tails)))
            one.job.settle(scored_reply(one.job.request, logprobs, usage=usage, model=self._name))

    def _logprobs(self, choices: Sequence[TokenChoice]) -> list[list[list[float]]]:
        """The log-probabilities of all options. A single choice with too many for one batch goes in
        parts, and its beginning is computed for each.
        """
        (first, *others) = choices
        rows = max(1, self._rows_of_options(first.tokens, first.longest))
        if others or len(first.tails) <= rows:
            return score(self._computing, choices)
        found: list[list[float]] = []
        for start in range(0, len(first.tails), rows):
            part = TokenChoice(first.before, first.tails[start : start + rows])
            found += score(self._computing, [part])[0]
        return [found]


def end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end a reply: of the generation config, of the config and of the tokenizer."""
    found: set[object] = set()
    for one in (getattr(model, "generation_config", None), model.config, tokenizer):
        ends = getattr(one, "eos_token_id", None)
        found.update(ends if isinstance(ends, list | tuple) else [ends])
    return frozenset(token for token in found if isinstance(token, int))


def _draw(request: Request) -> random.Random:
    """Draws the tokens of one reply: from the seed and the prompt, where there is a seed."""
    return random.Random(None if request.seed is None else f"{request.seed}|{request.prompt}")
