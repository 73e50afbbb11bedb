"""Batches of a model in this process: a batch that fails is tried again in halves."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

_Some = TypeVar("_Some")
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
"""Parts of the messages of errors about memory."""


class StoppedError(Exception):
    """Generation was stopped before it was complete."""


@dataclass(slots=True)
class Halving:
    """The size of batches, which gets smaller when one does not fit into memory."""

    notify: Callable[[str], None]
    at_once: int = sys.maxsize
    """Most prompts in one batch."""

    def settle(
        self,
        batch: Sequence[_Some],
        work: Callable[[Sequence[_Some]], None],
        failed: Callable[[_Some, Exception], None],
    ) -> None:
        """Calls `work` with a batch. If it fails, each half is tried by itself, down to single
        prompts; only those that fail alone go to `failed`, with the error.

        Raises:
            StoppedError: `work` raised it.
        """
        half = (len(batch) + 1) // 2
        try:
            work(batch)
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001  of a model's library
            if len(batch) == 1:
                failed(batch[0], error)
                return
            if is_out_of_memory(error) and half < self.at_once:
                self.at_once = half
                self.notify(f"memory is short: batches of {half} prompts from now on")
        else:
            return
        _free_memory()
        self.settle(batch[:half], work, failed)
        self.settle(batch[half:], work, failed)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error`, of any library, says that memory was short."""
    text = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or any(part in text for part in _OUT_OF_MEMORY)
    )


def _free_memory() -> None:
    """Frees the memory of a failed batch."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
