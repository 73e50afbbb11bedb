"""A plugin for vLLM that makes the embedded model think, see `THINKS` in `test_real_vllm.py`.

The model would answer at once. It must go on for hundreds of tokens, whose number depends on the
prompt, and the server says that these came first, as thoughts. So a reply that is cut off has
thoughts and no text. Window, limits, counts of tokens and reasons to finish are the server's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from vllm.reasoning import ReasoningParser, ReasoningParserManager
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

_END, _NEWLINE, _WHOLE = 2, 6, 100
"""Tokens of the embedded model: the end of a reply, a line's end, and `~`, which ends thoughts."""
_LEAST, _STEP, _STEPS = 400, 37, 50


def thought_of(prompt: Sequence[int]) -> int:
    """Tokens of a reply's thoughts: 400 to 2,213."""
    return _LEAST + _STEP * (sum(prompt) % _STEPS)


class Thinks(AdapterLogitsProcessor):  # type: ignore[misc]  # vLLM is not at hand for mypy
    """Lets no reply end before its thoughts do."""

    def is_argmax_invariant(self) -> bool:
        return False

    def new_req_logits_processor(
        self,
        _params: object,
    ) -> Callable[[list[int], list[int], torch.Tensor], torch.Tensor]:
        return _next


def _next(prompt: list[int], output: list[int], logits: torch.Tensor) -> torch.Tensor:
    """The logits of the next token, of which some are impossible."""
    left = thought_of(prompt) - len(output)
    if left <= 0:
        return _only(_WHOLE if not left else _END, logits)
    if int(logits.argmax()) == _END:
        return _only(_NEWLINE, logits)
    logits[[_END, _WHOLE]] = -torch.inf
    return logits


def _only(token: int, logits: torch.Tensor) -> torch.Tensor:
    logits.fill_(-torch.inf)
    logits[token] = 0.0
    return logits


@ReasoningParserManager.register_module("late")
class Late(ReasoningParser):  # type: ignore[misc]
    """Takes the first line of a whole reply as its text, and the rest as thoughts."""

    def extract_reasoning(
        self, model_output: str, _request: object
    ) -> tuple[str | None, str | None]:
        answer, _, thoughts = model_output.partition("\n")
        return (thoughts, answer) if model_output.endswith("~") else (model_output, None)

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return _WHOLE in input_ids

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        return input_ids

    def extract_reasoning_streaming(self, *_arguments: Any) -> None:
        """Nothing is streamed."""
