"""The samples of a log of Inspect, read by inspect_ai itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.errors import JournalError, UsageError
from harness.recorded.row import FileRow
from providers.base import install

_NO_STOP = "unknown"
"""What Inspect writes where no reason is known."""


def read_log(path: Path) -> Iterator[FileRow]:
    """The samples of a log; those of a later epoch are no rows, since a sample takes one reply.

    Raises:
        UsageError: inspect_ai is not installed.
        JournalError: the log cannot be read.
    """
    try:
        from inspect_ai import log as inspect  # noqa: PLC0415  an optional package
    except ImportError:
        raise UsageError(
            f"{path} is a log of Inspect, which inspect_ai reads: {install('inspect')}"
        ) from None
    number = 0
    try:
        for sample in _samples(inspect, str(path)):
            number += 1
            if sample.epoch > 1:
                yield FileRow(number, None, f"epoch {sample.epoch} of a sample, which takes one")
            else:
                yield FileRow(number, _row(sample))
    except Exception as error:  # a file from outside; the reader has no error class of its own
        if isinstance(error, JournalError):
            raise
        raise JournalError(f"cannot read {path}: {error}") from error


def _samples(inspect: Any, path: str) -> Iterable[Any]:
    """One by one; at once where the log does not say which it has."""
    if inspect.read_eval_log(path, header_only=True).eval.dataset.sample_ids is None:
        return inspect.read_eval_log(path).samples or ()
    samples: Iterable[Any] = inspect.read_eval_log_samples(path, all_samples_required=False)
    return samples


def _row(sample: Any) -> dict[str, Any]:
    """Field -> value of a sample; `metadata` as Inspect has it."""
    output, error = sample.output, sample.error
    failed = error is not None or not output.choices
    stop = output.choices[0].stop_reason if output.choices else _NO_STOP
    usage = output.usage
    target = sample.target
    return {
        "id": str(sample.id),
        "item": str(sample.id),
        "prompt": _prompt(sample.input),
        "target": target[0] if isinstance(target, list) and len(target) == 1 else target,
        "reply": None if failed else output.completion,
        "error": (error.message if error is not None else "no output") if failed else None,
        "finish_reason": None if stop == _NO_STOP else stop,
        "model": output.model or None,
        "prompt_tokens": None if usage is None else usage.input_tokens,
        "output_tokens": None if usage is None else usage.output_tokens,
        "metadata": sample.metadata,
    }


def _prompt(given: Any) -> str | None:
    """What the user said last."""
    if isinstance(given, str):
        return given
    texts = [message.text for message in given if message.role == "user"]
    return texts[-1] if texts else None
