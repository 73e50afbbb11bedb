"""Surviving mutants that no test has to kill, and why."""

from __future__ import annotations

REASONS = {
    ("score/extraction.py", "for lead in (bullets.end() if bullets else 0, *leads):", "-1"): (
        "a search from -1 begins at 0"
    ),
    (
        "score/extraction.py",
        "start, end = _line_around(bare, len(bare.rstrip()) - 1, 0, len(bare))",
        "0",
    ): "the place after the last character is on the same line",
    ("analysis/paired.py", "adjusted = [0.0] * count", "1.0"): "every item is replaced later",
    (
        "analysis/effective_length.py",
        "draws = drawn_accuracies([samples], resamples, seed)[0]",
        "-1",
    ): "the list has one item",
    ("journal/writer.py", "self._lock = FileLock(folder / _LOCK, timeout=0)", "1"): (
        "the same refusal, one second later"
    ),
    ("journal/writer.py", "self._file = -1", "2"): "every negative number means: no file is open",
    ("journal/answers.py", "return int.from_bytes(digest[:8]) or 1", "2"): (
        "only one text in 2**64 has the hash 0"
    ),
    ("run/pool.py", "seed: int = 0,", "-1"): "every run gives its seed",
}
"""File in `harness`, source line and changed code (`Mutant.key`) -> why no test has to kill it."""
