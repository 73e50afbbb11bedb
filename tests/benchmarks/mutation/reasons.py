"""Surviving mutants that no test has to kill, and why."""

from __future__ import annotations

DEFAULT_SECONDS = {
    "max_elapsed_s": 900.0,
    "max_backoff_s": 60.0,
    "drain_timeout_s": 30.0,
    "interrupt_drain_s": 10.0,
    "stall_timeout_s": 1200.0,
}
REASONS = {
    ("score/extraction.py", "for lead in (bullets.end() if bullets else 0, *leads):", "-1"): (
        "a search from -1 begins at 0"
    ),
    (
        "score/extraction.py",
        "start, end = _line_around(bare, len(bare.rstrip()) - 1, 0, len(bare))",
        "0",
    ): "the place after the last character is on the same line",
    (
        "analysis/effective_length.py",
        "draws = drawn_accuracies([samples], resamples)[0]",
        "-1",
    ): "the list has one item",
    ("journal/writer.py", "self._lock = FileLock(folder / _LOCK, timeout=0)", "1"): (
        "the same refusal, one second later"
    ),
    ("journal/writer.py", "if not path.exists() or path.stat().st_size == 0:", "-1"): (
        "an empty file has no last line, which is looked at next"
    ),
    ("journal/writer.py", "if self._file >= 0:", "1"): "descriptor 0 is that of standard input",
    ("journal/writer.py", "self._file = -1", "2"): "every negative number means: no file is open",
    ("journal/answers.py", "return int.from_bytes(digest[:8]) or 1", "2"): (
        "only one text in 2**64 has the hash 0"
    ),
    ("run/pool.py", "seed: int = 0,", "-1"): "every run gives its seed",
    ("journal/writer.py", "self._unsynced = False", "True"): "one sync more, of an empty file",
    ("run/batch/batch_run.py", "least = _MIN_SHARE * (context.budget.limit or 0.0)", "-1.0"): (
        "without a budget no file is too small"
    ),
    ("journal/manifest.py", "first = error.errors(include_url=False)[0]", "True"): (
        "the URL is not read"
    ),
    **{
        ("run/event_loop.py", "gc.set_threshold(50_000, 50, 50)", threshold): "only the speed"
        for threshold in ("49", "51", "49999", "50001")
    },
    ("score/integers.py", 'if (equals := line.rfind("=")) >= 0:', "-1"): (
        "without `=` the searches that follow find nothing"
    ),
    ("score/integers.py", "left = _FIRST_NUMBER.search(line, 0, equals)", "-1"): (
        "a search from -1 begins at 0"
    ),
    **{
        (
            "score/extraction.py",
            'line_end = solid.find("\\n", opening, len(solid) - 3)',
            changed,
        ): "the last three characters are backticks"
        for changed in ("(len(solid) + 3)", "2")
    },
    ("run/limiter.py", "_LATENCY_WEIGHT = 1 / 32", "33"): "a constant found by measuring",
    ("run/event_loop.py", "gc.set_threshold(50_000, 50, 50)", "pass"): "only the speed",
    ("run/pool.py", "notice.cancel()", "pass"): (
        "the notice says nothing where no request is in flight"
    ),
    (
        "run/pool.py",
        "if chars >= _CHUNK_CHARS or time.monotonic() - began_s >= _CHUNK_S:",
        "(time.monotonic() - began_s > _CHUNK_S)",
    ): "no two readings of a clock are exactly so far apart",
    ("score/bare_text.py", "if TYPE_CHECKING:", "(not TYPE_CHECKING)"): (
        "the name is read by type checkers alone"
    ),
    ("score/verdict.py", "if len(left) > len(right):", "(not len(left) > len(right))"): (
        "only the speed: the distance is the same both ways"
    ),
    ("analysis/paired.py", "half = (resamples + 1) // 2", "0"): (
        "one draw less, where their number is odd"
    ),
    ("analysis/power.py", "found, missed = 0, round(FROM * _STEPS)", "1"): (
        "the bisection ends at most one step of a thousandth higher"
    ),
    ("run/limiter.py", "self._replies += 1", "2"): "the first latency counts after 16 replies",
    ("analysis/judging.py", "_MOST_TEXT = 60", "59"): "nobody sees one character more or less",
    ("score/markup.py", "stops = 1", "2"): "the first full stop sets it to 0",
    (
        "run/batch/batch_run.py",
        "await clocks.sleep(min(SETTLE_S, max(0.0, SETTLE_S - young_s)))",
        "-1.0",
    ): "a sleep of less than 0 s is as long as one of 0 s",
    **{
        (
            "score/extraction.py",
            'if solid.endswith("```") and (opening := solid.rfind("```", 0, -3)) >= 0:',
            digit,
        ): "differs only for five or more backticks in a row"
        for digit in "24"
    },
    ("score/integers.py", "MOST_DIGITS = 4_000", "3999"): (
        "far more digits than an answer has, and fewer than Python refuses"
    ),
    (
        "score/answers.py",
        'if not pattern or begin < 0 or (begin and reply[begin - 1] != "\\n"):',
        "(begin + 1)",
    ): "only the speed: the general way finds the same answer",
    ("score/verdict.py", "every_row = (1 << len(left)) - 1", "2"): (
        "the bit of the additional row is never read"
    ),
    (
        "run/limiter.py",
        "_SHARE_WEIGHT = 1 / 8",
        "7",
    ): "the weight of an average, without a best value",
    ("run/limiter.py", "expected_tokens: float = 0.0", "1.0"): (
        "read only under a token rate, and then it is given"
    ),
    ("run/batch/batch_run.py", "token = secrets.token_hex(8)", "7"): (
        "56 random bits are unique as well"
    ),
    **{
        ("run/limits.py", f"{name}: float = {seconds}", str(seconds + change)): (
            "nobody sees one second more or less"
        )
        for name, seconds in DEFAULT_SECONDS.items()
        for change in (1, -1)
    },
}
"""File in `harness`, source line and changed code (`Mutant.key`) -> why no test has to kill it."""
