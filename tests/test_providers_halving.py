"""Batches that fail are tried again in halves; short memory is known by the words of errors."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eyechart.providers.in_process.halving import Halving, StoppedError, is_out_of_memory


class OutOfMemoryError(Exception):
    """Has the name of PyTorch's."""


@pytest.mark.parametrize(
    ("error", "is_memory"),
    [
        (MemoryError(), True),
        (OutOfMemoryError("x"), True),
        (RuntimeError("CUDA Out of Memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("not enough memory: you tried to allocate 9 bytes"), True),
        (RuntimeError("memory format is not supported"), False),
    ],
)
def test_errors_about_memory(error: Exception, is_memory: bool) -> None:
    """Of PyTorch on a GPU, on a CPU, and of Python."""
    assert is_out_of_memory(error) is is_memory


@pytest.mark.parametrize(("words", "is_short"), [("out of memory", True), ("wrong", False)])
def test_only_what_fails_alone_fails(words: str, is_short: bool) -> None:
    """And batches stay small where memory was short."""
    done: list[int] = []
    failed: list[int] = []
    said: list[str] = []

    def work(batch: Sequence[int]) -> None:
        if 3 in batch:
            raise RuntimeError(words)
        done.extend(batch)

    halving = Halving(said.append, 8)
    halving.settle(range(5), work, lambda one, _error: failed.append(one))
    assert (done, failed) == ([0, 1, 2, 4], [3])
    assert halving.at_once == (1 if is_short else 8)
    assert len(said) == (2 if is_short else 0)


def test_a_stop_is_no_failure() -> None:
    """It ends all batches."""

    def work(_batch: Sequence[int]) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        Halving(print).settle([1, 2], work, lambda *_: pytest.fail("it is no failure"))
