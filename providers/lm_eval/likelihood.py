"""Options of a forced choice through `loglikelihood` of lm-eval's models in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eyechart.providers.base import (
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    SampleError,
    ScoredOption,
    SetupError,
    Usage,
)
from eyechart.providers.in_process.one_thread import QueuedRequest
from eyechart.providers.likelihood import reply_with, texts_with
from eyechart.providers.lm_eval.loading import one_line


@dataclass(frozen=True, slots=True)
class _Choice:
    """The options of a job as lm-eval takes them."""

    job: QueuedRequest
    pairs: list[tuple[str, str]]
    """The text before the options, and each option with the blank before it."""
    before: int
    """Tokens of that text."""
    lengths: list[int]
    """Tokens of the text with each option."""

    def reply(self, logprobs: Sequence[float]) -> Reply:
        """The reply to the job."""
        pairs = zip(self.job.request.options, logprobs, self.lengths, strict=True)
        scored = [
            ScoredOption(option, logprob, length - self.before) for option, logprob, length in pairs
        ]
        return reply_with(scored, usage=Usage(self.before, sum(one.tokens for one in scored)))


class Scoring:
    """Scores options with one of lm-eval's models; `before` gives the text before the options."""

    def __init__(self, lm: Any, kind: str, before: Callable[[Request], str]) -> None:
        self._lm = lm
        self._kind = kind
        self._before = before

    def settle(self, jobs: Sequence[QueuedRequest], window: int | None) -> None:
        """Settles all jobs: together, or one by one where that fails."""
        ready: list[_Choice] = []
        for job in jobs:
            try:
                ready.append(self._choice(job, window))
            except ProviderError as error:
                job.settle(error)
            except Exception as error:  # noqa: BLE001  of a tokenizer
                job.settle(self._failure(error))
        self._answer(ready)

    def _answer(self, ready: Sequence[_Choice]) -> None:
        from lm_eval.api.instance import Instance  # noqa: PLC0415  loaded with the model

        pairs = [pair for choice in ready for pair in choice.pairs]
        asked = [Instance("loglikelihood", {}, pair, place) for place, pair in enumerate(pairs)]
        try:
            found = iter(self._lm.loglikelihood(asked, disable_tqdm=True) if asked else ())
            for choice in ready:
                choice.job.settle(choice.reply([float(next(found)[0]) for _ in choice.pairs]))
        except Exception as error:  # noqa: BLE001  of a model's library
            if len(ready) == 1:
                ready[0].job.settle(self._failure(error))
            else:
                for choice in ready:
                    self._answer([choice])

    def _choice(self, job: QueuedRequest, window: int | None) -> _Choice:
        """What lm-eval is asked for a job; raises whatever a tokenizer does.

        Raises:
            SetupError: lm-eval has no tokenizer for the model, which it needs for this.
            PromptOverflowError: an option does not fit; lm-eval would cut the prompt.
        """
        encode = getattr(self._lm, "tok_encode", None)
        if encode is None:
            raise SetupError(f"lm-eval's {self._kind} has no tokenizer, so no likelihood")
        text, wholes = texts_with(self._before(job.request), job.request)
        before, *lengths = (len(encode(one)) for one in (text, *wholes))
        if window is not None and max(lengths) > window:
            raise PromptOverflowError(
                f"prompt and option have {max(lengths)} tokens, but the window has {window}; ask "
                "for shorter lengths"
            )
        return _Choice(job, [(text, whole[len(text) :]) for whole in wholes], before, lengths)

    def _failure(self, error: Exception) -> ProviderError:
        return SampleError(f"lm-eval's {self._kind} failed with {one_line(error)}")
