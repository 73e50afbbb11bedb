"""The file of a leaderboard: its rows, what they may hold, and the lock of its writer."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, get_args

from filelock import FileLock, Timeout

from eyechart.harness import errors
from eyechart.harness.analysis.length.at_length import pieces_of
from eyechart.harness.analysis.length.limit import LIMITS
from eyechart.harness.analysis.length.tokens_of_row import Source
from eyechart.harness.analysis.tables.cells import csv_text, from_csv
from eyechart.harness.errors import LeaderboardError
from eyechart.harness.journal.files import MAX_LINE, replace_file
from eyechart.harness.journal.record import Warn
from eyechart.harness.settings.judging import OF_RUNS
from eyechart.harness.spec import columns

Row = dict[str, str]
"""Column -> text in the file; empty where unknown."""

_COUNTS = ("task_version", "n", "not_scored")
_MAYBE_COUNTS = ("rows", *columns.BY_TEST)
_COUNT = re.compile(r"[0-9]{1,15}")
_NUMBERS = (
    *(*OF_RUNS, "parameters_billion", "capacity", "cost_usd"),
    columns.COST_A_REPLY,
    *columns.NUMBERS,
)
_NEVER_EMPTY = (*OF_RUNS, "lapse", "tested_length")
_BOUND, _SIGNS = "_bound", ("", "<", ">")
_WORDS = {
    "default": ("", "yes"),
    "control": ("", "yes"),
    "adaptive": ("", "yes"),
    "kind": columns.KINDS,
    "open_weights": ("", "no", "yes"),
    "effective_length_bound": _SIGNS,
    "tested_length_bound": _SIGNS,
    "near_length_bound": _SIGNS,
    "apart_length_bound": _SIGNS,
    "limited_by": LIMITS,
    "one_threshold": ("no", "yes"),
    "tokens_a_symbol_source": ("", *get_args(Source)),
}
"""Column -> the texts that it may have."""
_RIGHT_AT = re.compile(
    r"(right|reaches|cost)_at_([1-9][0-9]{0,8})(_ci_low|_ci_high|_bound|_in_[1-9][0-9]?)?"
)
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,30})?(?:e[+-]?[0-9]{1,2})?")


class LeftOut(NamedTuple):
    """A row, or a condition of a run, that a leaderboard leaves out."""

    name: str
    reason: str
    kind: str
    """The kind of the reason, in words that fit several rows: `with other lengths`."""

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


_MOST_LINES = 3


def left_out_lines(left_out: Iterable[LeftOut]) -> list[str]:
    """One line for each row if they are few, else one line for each kind of reason."""
    by_kind: dict[str, list[LeftOut]] = {}
    for one in left_out:
        by_kind.setdefault(one.kind, []).append(one)
    lines: list[str] = []
    for kind, group in by_kind.items():
        if len(group) <= _MOST_LINES:
            lines += map(str, group)
        else:
            more = f"and {len(group) - 1:,} more"
            lines.append(f"{len(group):,} rows {kind}: {group[0]}; {more}")
    return lines


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The rows of a leaderboard, and messages about rows that were left out."""

    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    """Each row that cannot be compared with the others."""
    ahead: tuple[str, ...] = ()
    """A line for each row of the file whose date is in the future or not a date."""
    replaced: tuple[tuple[Row, Row], ...] = ()
    """Each new row that a later one replaces, and this one."""


@contextlib.contextmanager
def only_writer(
    path: Path, say: Warn, *, quiet_s: float = 1.0, patience_s: float = 600.0
) -> Iterator[None]:
    """Holds the lock of the leaderboard at `path`, so that no other process writes it meanwhile.

    If another process holds it, waits up to `patience_s` seconds, and calls `say` after `quiet_s`.

    Raises:
        errors.JournalError: the lock is still held then, or cannot be made.
    """
    target = path.resolve()
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=quiet_s)
        except Timeout:
            say(f"waiting for another command that writes {path}")
            lock.acquire(timeout=patience_s)
    except Timeout:
        raise errors.JournalError(
            f"another command has been writing {path} for {patience_s:,.0f} s; end it, "
            "or use another -o"
        ) from None
    except (OSError, NotImplementedError) as error:
        raise errors.JournalError(
            f"cannot lock {path} ({getattr(error, 'strerror', None) or error}); use another -o"
        ) from error
    try:
        yield
    finally:
        lock.release()


def read_rows(path: Path) -> list[Row]:
    """The rows of the leaderboard in file `path`; no rows if there is no file.

    Raises:
        LeaderboardError: the file cannot be read or is not a leaderboard.
    """
    csv.field_size_limit(MAX_LINE)  # a system prompt may be longer than the 131,072 characters
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LeaderboardError(f"{path} cannot be read ({error}); use another -o") from None
    for number, row in enumerate(rows, start=2):
        if problem := _row_problem(row):
            raise LeaderboardError(f"{path}:{number}: {problem}")
    return [
        {name: value if is_number(name) else from_csv(value) for name, value in row.items()}
        for row in rows
    ]


@lru_cache(maxsize=4096)
def right_at_length(name: str) -> str:
    """The length in the name of a column of `RIGHT_AT`, as text; empty for other columns."""
    found = _RIGHT_AT.fullmatch(name)
    return found[2] if found else ""


@lru_cache(maxsize=4096)
def is_number(name: str) -> bool:
    """Whether column `name` has numbers. The others have texts, escaped by `cells.csv_text`."""
    is_bound = name.endswith(_BOUND)
    named = (*_COUNTS, *_MAYBE_COUNTS, *_NUMBERS)
    return not is_bound and (
        name in named or name.startswith(columns.ACCURACY_AT) or right_at_length(name) != ""
    )


def _row_problem(row: Row) -> str | None:
    """What is wrong with a row of a file; `None` if nothing is."""
    absent = [name for name in columns.LEADERBOARD if row.get(name) is None]
    if absent or None in row:
        problem = f"it has no {absent[0]!r}" if absent else "it has more fields than columns"
        return f"no row of a leaderboard of this version: {problem}; make it again from its runs"
    problems = (_value_problem(name, value, row["kind"]) for name, value in row.items())
    if found := next(filter(None, problems), None):
        return found
    has_accuracy = bool(lengths_of([row]))
    if row["kind"] == columns.REPORTED:
        is_figure = has_accuracy or row["capacity"]
        return None if is_figure else "it has no accuracy at any length, and no capacity"
    if bool(row["area"]) == bool(row["adaptive"]):
        return "area is empty" if row["adaptive"] == "" else "an adaptive condition has an area"
    return None if has_accuracy else "it has no accuracy at any length"


def _value_problem(name: str, value: str, kind: str) -> str | None:
    """What is wrong with a value; `None` if nothing is. Reported figures may be unknown."""
    prefix = columns.ACCURACY_AT
    if name.startswith(prefix) and not _COUNT.fullmatch(name.removeprefix(prefix)):
        return f"no column of a leaderboard: {name!r}"
    if kind == columns.REPORTED and not value:
        return None
    is_count = name in _COUNTS or (name in _MAYBE_COUNTS and value)
    if is_count and not _COUNT.fullmatch(value):
        return f"{name} is no whole number: {value!r}"
    if is_number(name) and value and not _NUMBER.fullmatch(value):
        return f"{name} is no number: {value!r}"
    if name in _NEVER_EMPTY and not value:
        return f"{name} is empty"
    words = _SIGNS if right_at_length(name) and name.endswith(_BOUND) else _WORDS.get(name)
    if words is not None and value not in words:
        return f"{name} is not {' or '.join(word or 'empty' for word in words)}: {value!r}"
    return None


def lengths_of(rows: Iterable[Row]) -> list[int]:
    """The lengths at which at least one row has an accuracy, ascending."""
    lengths = {
        int(name.removeprefix(columns.ACCURACY_AT))
        for row in rows
        for name, value in row.items()
        if name.startswith(columns.ACCURACY_AT) and value
    }
    return sorted(lengths)


def right_at_lengths(rows: Iterable[Row]) -> list[int]:
    """The lengths in `at` that at least one row has, ascending."""
    names = {name for row in rows for name, value in row.items() if value}
    return sorted({int(length) for length in map(right_at_length, names) if length})


def write_leaderboard(path: Path, leaderboard: Leaderboard) -> None:
    """Writes `leaderboard` to `path`, or to the target of a link there. The accuracies are the last
    columns: those of the fitted curve at the lengths in `at`, and those of each line.

    Raises:
        errors.JournalError: the file cannot be written.
    """
    accuracies = [f"{columns.ACCURACY_AT}{length}" for length in lengths_of(leaderboard.rows)]
    lengths = right_at_lengths(leaderboard.rows)
    right_at = [
        name.format(length) for length in lengths for name in (*columns.RIGHT_AT, *columns.COST_AT)
    ]
    right_at += [columns.REACHES_IN.format(*one) for one in pieces_of(lengths)]
    names = [*columns.LEADERBOARD, *right_at, *accuracies]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: value if is_number(name) else csv_text(value) for name, value in row.items()}
        for row in leaderboard.rows
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path.resolve(), text.getvalue().encode())
