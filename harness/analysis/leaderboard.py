"""Many runs in one table: a row a model, task and condition.

The file is its own memory: rows whose runs are elsewhere stay, and a newer run of the same model
replaces its row. Rows that cannot be set side by side are left out, each with the reason.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from harness import errors
from harness.analysis.cells import csv_text, from_csv
from harness.analysis.judged_run import NOT_SCORED, JudgedRun
from harness.analysis.stats import Threshold
from harness.analysis.tables import estimate_columns, threshold_columns
from harness.columns import ACCURACY_AT, ESTIMATE, LEADERBOARD
from harness.errors import LeaderboardError
from harness.journal.files import replace_file
from harness.journal.manifest import MANIFEST, Manifest
from harness.journal.record import Warn
from harness.spec import Cell

Row = dict[str, str]
"""Column -> what stands in the file; nothing known is an empty text."""

KEY = ("task", "condition", "model", "settings")
"""What makes a row; a newer run of it replaces the older."""
_DIGITS = 6
_SHOWN_FINGERPRINT = 8
_COUNTS = ("task_version", "n", "not_scored")
_COUNT = re.compile(r"[0-9]{1,15}")
_NUMBERS = ("threshold", *ESTIMATE)
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,30})?(?:e[+-]?[0-9]{1,2})?")


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Rows that belong together, and why others do not."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    """A line each."""
    ahead: tuple[str, ...] = ()
    """A line for each row of the file whose date is after now, or none."""


@contextlib.contextmanager
def only_writer(
    path: Path, say: Warn, *, quiet_s: float = 1.0, patience_s: float = 600.0
) -> Iterator[None]:
    """While this lasts nobody else merges runs into the leaderboard at `path`.

    Waits for one who does, up to `patience_s`, and says so after `quiet_s`.

    Raises:
        errors.JournalError: the other one is not done by then, or no lock can be made.
    """
    target = path.resolve()
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=quiet_s)
        except Timeout:
            say(f"waiting for another 'bench leaderboard' that writes {path}")
            lock.acquire(timeout=patience_s)
    except Timeout:
        raise errors.JournalError(
            f"another 'bench leaderboard' has been writing {path} for {patience_s:,.0f} s; end it, "
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


def find_runs(out: Path) -> list[Path]:
    """The folders of all runs under `out`, in the order of their names."""
    return sorted(path.parent for path in (out / "runs").rglob(MANIFEST))


def run_rows(run: JudgedRun, threshold: Threshold) -> tuple[list[Row], list[str]]:
    """A row for each condition that is complete, and a line for each that is not."""
    manifest = run.manifest
    rows, left_out = [], []
    for judged in run.conditions.values():
        estimate = judged.effective_length(threshold)
        missing = int(judged.cells["not_run"].sum())
        fingerprint = _fingerprint(judged.planned)
        if missing or fingerprint is None or estimate is None:
            what = (
                f"{missing:,} samples were never asked"
                if missing
                else "no sample was scored"
                if estimate is None
                else "it was never completed"
            )
            left_out.append(
                f"{run.folder}, {judged.label}: {what}; the same command again asks them"
            )
            continue
        sums = judged.cells[["n", *NOT_SCORED]].sum()
        of_threshold = threshold_columns(threshold)
        rows.append(
            {
                "task": manifest.task,
                "task_version": str(manifest.task_version),
                "condition": judged.label,
                "model": manifest.model,
                "control": "yes" if judged.control else "",
                "n": str(int(sums["n"])),
                "not_scored": str(int(sums[list(NOT_SCORED)].sum())),
                "threshold": f"{of_threshold['threshold']:g}",
                "threshold_of": of_threshold["threshold_of"],
                **{name: _number(value) for name, value in estimate_columns(estimate).items()},
                "settings": _settings(manifest),
                "fingerprint": fingerprint,
                "date": manifest.updated,
                "server": _server(manifest),
                "software": " ".join(
                    f"{name}={manifest.software[name]}"
                    for name in ("eyechart", "python")
                    if name in manifest.software
                ),
                "command": manifest.commands[-1] if manifest.commands else "",
                **{
                    f"{ACCURACY_AT}{length}": _number(accuracy)
                    for length, accuracy in judged.cells[["length", "accuracy"]].itertuples(
                        index=False, name=None
                    )
                },
            }
        )
    return rows, left_out


def _fingerprint(cells: Sequence[Cell]) -> str | None:
    """Of one condition's samples: task, prompts, targets, lengths, seed."""
    if any(cell.fingerprint is None for cell in cells):
        return None
    said = sorted(f"{cell.length}|{cell.samples}|{cell.fingerprint:064x}" for cell in cells)
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def _settings(manifest: Manifest) -> str:
    return " ".join(
        shlex.quote(f"{name}={'auto' if value is None else value}")
        for name, value in manifest.settings.items()
        if not (name == "system" and value is None)
    )


def _server(manifest: Manifest) -> str:
    known = {name: manifest.server.get(name) for name in ("server", "version")}
    said = " ".join(str(value) for value in known.values() if value)
    return " ".join(filter(None, [said, *(name for name in manifest.answered_by)]))


def _number(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124  NaN
        return ""
    return f"{round(float(value), _DIGITS):g}" if float(value).is_integer() else f"{value:.6g}"


def read_rows(path: Path) -> list[Row]:
    """The rows of a leaderboard's file; none where there is no file.

    Raises:
        LeaderboardError: it is something else.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LeaderboardError(f"{path} cannot be read ({error}); use another -o") from None
    for number, row in enumerate(rows, start=2):
        if problem := _row_problem(row):
            raise LeaderboardError(f"{path}:{number}: {problem}")
    return [
        {name: value if _is_number(name) else from_csv(value) for name, value in row.items()}
        for row in rows
    ]


def _is_number(name: str) -> bool:
    """Whether a column has numbers; the others have texts, escaped by `cells.csv_text`."""
    return name in (*_COUNTS, *_NUMBERS) or name.startswith(ACCURACY_AT)


def _row_problem(row: Row) -> str | None:
    """What is wrong with a row of a file."""
    wrong = [name for name in LEADERBOARD if row.get(name) is None]
    if wrong or None in row:
        what = f"it has no {wrong[0]!r}" if wrong else "it has more fields than columns"
        return f"no row of a leaderboard: {what}"
    for name, value in row.items():
        if name.startswith(ACCURACY_AT) and not _COUNT.fullmatch(name.removeprefix(ACCURACY_AT)):
            return f"no column of a leaderboard: {name!r}"
        if name in _COUNTS and not _COUNT.fullmatch(value):
            return f"{name} is no whole number: {value!r}"
        if _is_number(name) and value and not _NUMBER.fullmatch(value):
            return f"{name} is no number: {value!r}"
    for names in (("threshold",), ("area",), ("effective_length_min", "effective_length_max")):
        if not any(row[name] for name in names):
            return f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} empty"
    return None if lengths_of([row]) else "it has no accuracy at any length"


def merge(
    rows: Iterable[Row], before: Sequence[Row] = (), *, now: datetime | None = None
) -> Leaderboard:
    """The rows that can be set side by side, new ones and those that were there before.

    Of a model's rows on the same data the latest; a date that is none, or more than a day after
    `now`, counts as the earliest, so that no such row keeps out a run that is here. Of a task the
    newest version. Of a condition the data and threshold that the rows before have, so that
    newcomers drive nobody out; else those that most rows have, then those with most samples, then
    the latest.
    """
    limit = (now or datetime.now(UTC)) + _CLOCKS_DIFFER
    latest: dict[tuple[str, ...], Row] = {}
    for row in sorted([*before, *rows], key=lambda row: _when(row, limit)):
        latest[(*(row[name] for name in KEY), row["task_version"], row["fingerprint"])] = row
    kept, left_out = list(latest.values()), []
    ahead = [
        f"{_named(row)}: dated {row['date']!r}, which is after today or no date; a run that is "
        "here replaces it"
        for row in before
        if row["date"] and _when(row, limit) == _EARLIEST
    ]
    newest = {
        task: max(int(row["task_version"]) for row in kept if row["task"] == task)
        for task in {row["task"] for row in kept}
    }
    current = []
    for row in kept:
        if int(row["task_version"]) == newest[row["task"]]:
            current.append(row)
        else:
            left_out.append(
                f"{_named(row)}: of version {row['task_version']} of the task, and there are rows "
                f"of {newest[row['task']]}"
            )
    known: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in before:
        known[row["task"], row["condition"]].add(row["fingerprint"])
    chosen: list[Row] = []
    for cell in sorted({(row["task"], row["condition"]) for row in current}):
        group = [row for row in current if (row["task"], row["condition"]) == cell]
        was_there = [row for row in group if row["fingerprint"] in known[cell]]
        usual = _usual(was_there or group, limit)
        for row in group:
            if _data(row) == _data(usual):
                chosen.append(row)
            else:
                left_out.append(f"{_named(row)}: {_difference(row, usual)}")
    chosen.sort(key=lambda row: (row["task"], row["condition"], -float(row["area"] or 0)))
    return Leaderboard(tuple(chosen), tuple(left_out), tuple(ahead))


_EARLIEST = datetime.min.replace(tzinfo=UTC)
_CLOCKS_DIFFER = timedelta(days=1)


def _when(row: Row, limit: datetime) -> datetime:
    """The date of a row; the earliest of all where that is none, or after `limit`."""
    try:
        date = datetime.fromisoformat(row["date"])
    except ValueError:
        return _EARLIEST
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return _EARLIEST if date > limit else date


def _data(row: Row) -> str:
    return "|".join(row[name] for name in ("fingerprint", "threshold", "threshold_of"))


def _usual(group: Sequence[Row], limit: datetime) -> Row:
    counts = Counter(_data(row) for row in group)
    return max(group, key=lambda row: (counts[_data(row)], int(row["n"]), _when(row, limit)))


def _named(row: Row) -> str:
    return f"{row['model']} on {row['task']}, {row['condition']}"


def _difference(row: Row, usual: Row) -> str:
    """Why a row is not set beside `usual`."""
    lengths, others = ([str(length) for length in lengths_of([one])] for one in (row, usual))
    if row["fingerprint"] == usual["fingerprint"]:
        name = "threshold" if row["threshold"] != usual["threshold"] else "threshold_of"
        return f"{name} is {row[name]}, and {usual[name]} elsewhere"
    if lengths != others:
        return f"lengths {', '.join(lengths)}, and {', '.join(others)} elsewhere"
    if row["n"] != usual["n"] or row["not_scored"] != usual["not_scored"]:
        asked, usually = (int(one["n"]) + int(one["not_scored"]) for one in (row, usual))
        if asked != usually:
            return f"{asked} samples, and {usually} elsewhere"
    return (
        f"other rows of symbols or prompts (fingerprint {row['fingerprint'][:_SHOWN_FINGERPRINT]}, "
        f"{usual['fingerprint'][:_SHOWN_FINGERPRINT]} elsewhere; settings {row['settings']})"
    )


def lengths_of(rows: Iterable[Row]) -> list[int]:
    """Every length that some of the rows have an accuracy at."""
    found = {
        int(name.removeprefix(ACCURACY_AT))
        for row in rows
        for name, value in row.items()
        if name.startswith(ACCURACY_AT) and value
    }
    return sorted(found)


def write_leaderboard(path: Path, leaderboard: Leaderboard) -> None:
    """Writes the file, or the one that a link at `path` leads to; accuracies come last, a column a
    length.

    Raises:
        errors.JournalError: it cannot be written.
    """
    accuracies = [f"{ACCURACY_AT}{length}" for length in lengths_of(leaderboard.rows)]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, [*LEADERBOARD, *accuracies], restval="", extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(
        {name: value if _is_number(name) else csv_text(value) for name, value in row.items()}
        for row in leaderboard.rows
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path.resolve(), text.getvalue().encode())
