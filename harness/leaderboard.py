"""Many runs in one table: a row a model, task and condition.

The file is its own memory: rows whose runs are elsewhere stay, and a newer run of the same model
replaces its row. Rows that cannot be set side by side are left out, each with the reason.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import journal
from harness.columns import ACCURACY_AT, LEADERBOARD, OUTCOMES, SIGHT
from harness.journal import Cell, Manifest
from harness.reach import sight_columns, sights
from harness.spec import condition_label
from harness.stats import Bound, Threshold, span_text
from harness.tables import NOT_SCORED, Run

Row = dict[str, str]
"""Column -> what stands in the file; nothing known is an empty text."""

KEY = ("task", "condition", "model", "settings")
"""What makes a row; a newer run of it replaces the older."""
_DIGITS = 6
_SHOWN_FINGERPRINT = 8
_NUMBERS = ("n", "not_scored", "threshold", *SIGHT)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
BEGIN, END = "<!-- bench leaderboard -->", "<!-- end -->"


class LeaderboardError(Exception):
    """A file that cannot be used as asked; one line for the user."""


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Rows that belong together, and why others do not."""

    rows: tuple[Row, ...]
    left_out: tuple[str, ...]
    """A line each."""


def find_runs(out: Path) -> list[Path]:
    """The folders of all runs under `out`, in the order of their names."""
    return sorted(path.parent for path in (out / "runs").rglob(journal.MANIFEST))


def run_rows(run: Run, threshold: Threshold) -> tuple[list[Row], list[str]]:
    """A row for each condition that is complete, and a line for each that is not."""
    manifest = run.manifest
    labels = [condition_label(cell.condition) for cell in manifest.cells]
    rows, left_out = [], []
    for label, found in sights(run, threshold):
        cells = run.cells[[one == label for one in labels]]
        planned = [cell for cell, one in zip(manifest.cells, labels, strict=True) if one == label]
        missing = int(cells["not_run"].sum())
        fingerprint = _fingerprint(planned)
        if missing or fingerprint is None or found is None:
            what = (
                f"{missing:,} samples were never asked"
                if missing
                else "no sample was scored"
                if found is None
                else "it was never completed"
            )
            left_out.append(f"{run.folder}, {label}: {what}; the same command again asks them")
            continue
        sums = cells[["n", *NOT_SCORED]].sum()
        rows.append(
            {
                "task": manifest.task,
                "task_version": str(manifest.task_version),
                "condition": label,
                "model": manifest.model,
                "control": "yes" if is_control(run, cells.index) else "",
                "n": str(int(sums["n"])),
                "not_scored": str(int(sums[list(NOT_SCORED)].sum())),
                "threshold": f"{threshold.share:g}",
                "threshold_of": "own accuracy" if threshold.relative else "accuracy",
                **{name: _number(value) for name, value in sight_columns(found).items()},
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
                    for length, accuracy in zip(cells["length"], cells["accuracy"], strict=True)
                },
            }
        )
    return rows, left_out


def is_control(run: Run, places: Iterable[int]) -> bool:
    """Whether the answer is the repeated symbol throughout: right for a model that sees nothing."""
    if not isinstance(run.manifest.task_spec().params.get("repeated"), str):
        return False
    samples = run.samples
    read = samples["outcome"].isin([OUTCOMES.index(name) for name in ("correct", "incorrect")])
    mine = samples[read & samples["cell"].isin(list(places))]
    return len(mine) > 0 and bool((mine["collapsed"] == -1).all())


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
        wrong = [name for name in LEADERBOARD if row.get(name) is None]
        if wrong or None in row:
            what = f"it has no {wrong[0]!r}" if wrong else "it has more fields than columns"
            raise LeaderboardError(f"{path}:{number}: no row of a leaderboard: {what}")
        for name in ("task_version", *_NUMBERS):
            if (value := row[name]) and not _NUMBER.fullmatch(value):
                raise LeaderboardError(f"{path}:{number}: {name} is no number: {value!r}")
        if not row["task_version"].isdecimal():
            raise LeaderboardError(f"{path}:{number}: task_version {row['task_version']!r}")
    return rows


def merge(rows: Iterable[Row], before: Sequence[Row] = ()) -> Leaderboard:
    """The rows that can be set side by side, new ones and those that were there before.

    Of a model's rows on the same data the latest. Of a task the newest version. Of a condition the
    data and threshold that the rows before have, so that newcomers drive nobody out; else those
    that most rows have, then those with most samples, then the latest.
    """
    latest: dict[tuple[str, ...], Row] = {}
    for row in sorted([*before, *rows], key=lambda row: row["date"]):
        latest[(*(row[name] for name in KEY), row["task_version"], row["fingerprint"])] = row
    kept, left_out = list(latest.values()), []
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
        usual = _usual(was_there or group)
        for row in group:
            if _data(row) == _data(usual):
                chosen.append(row)
            else:
                left_out.append(f"{_named(row)}: {_difference(row, usual)}")
    chosen.sort(key=lambda row: (row["task"], row["condition"], -float(row["area"] or 0)))
    return Leaderboard(tuple(chosen), tuple(left_out))


def _data(row: Row) -> str:
    return "|".join(row[name] for name in ("fingerprint", "threshold", "threshold_of"))


def _usual(group: Sequence[Row]) -> Row:
    counts = Counter(_data(row) for row in group)
    return max(group, key=lambda row: (counts[_data(row)], int(row["n"]), row["date"]))


def _named(row: Row) -> str:
    return f"{row['model']} on {row['task']}, {row['condition']}"


def _difference(row: Row, usual: Row) -> str:
    """Why a row is not set beside `usual`."""
    lengths, others = ([str(length) for length in _lengths([one])] for one in (row, usual))
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


def _lengths(rows: Iterable[Row]) -> list[int]:
    found = {
        int(name.removeprefix(ACCURACY_AT))
        for row in rows
        for name, value in row.items()
        if name.startswith(ACCURACY_AT) and value
    }
    return sorted(found)


def write_leaderboard(path: Path, leaderboard: Leaderboard) -> None:
    """Writes the file; accuracies come last, a column a length.

    Raises:
        journal.JournalError: it cannot be written.
    """
    accuracies = [f"{ACCURACY_AT}{length}" for length in _lengths(leaderboard.rows)]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, [*LEADERBOARD, *accuracies], restval="", extrasaction="ignore", lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(leaderboard.rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    journal.replace_file(path, text.getvalue().encode())


def markdown(leaderboard: Leaderboard) -> str:
    """A table for a README: a row a task and model, with the conditions it sees furthest and least
    under, and its mean area over the conditions that all models of the task have.

    Controls are left out. Areas over different lengths have no mean.
    """
    shown = [row for row in leaderboard.rows if not row["control"]]
    table = [
        "| task | model | sees furthest (95 %) | sees least (95 %) | mean area |",
        "| --- | --- | --- | --- | ---: |",
    ]
    for task in sorted({row["task"] for row in shown}):
        rows = [row for row in shown if row["task"] == task]
        entrants = dict.fromkeys((row["model"], row["settings"]) for row in rows)
        by_entrant = {
            one: [row for row in rows if (row["model"], row["settings"]) == one] for one in entrants
        }
        common = set.intersection(*({row["condition"] for row in of} for of in by_entrant.values()))
        varied = _varied([row["condition"] for row in rows])

        def mean(of: Sequence[Row], common: set[str] = common) -> float:
            mine = [row for row in of if row["condition"] in common]
            if not mine or len({tuple(_lengths([row])) for row in mine}) > 1:
                return -1.0
            return sum(float(row["area"]) for row in mine) / len(mine)

        for (model, _), of in sorted(by_entrant.items(), key=lambda item: -mean(item[1])):
            ordered = sorted(of, key=_furthest)
            best, worst = (_sees(row, varied) for row in (ordered[-1], ordered[0]))
            if ordered[0]["area"] == ordered[-1]["area"]:
                worst = "–"
            area = f"{mean(of):.2f}" if mean(of) >= 0 else "–"
            table.append(f"| {task} | {model} | {best} | {worst} | {area} |")
    return "\n".join(table)


def _furthest(row: Row) -> tuple[float, int, float]:
    """To sort by: effective length, then area."""
    bound = _bound(row["effective_length_min"], row["effective_length_max"])
    return bound.length, "<=>".index(bound.sign), float(row["area"])


def _varied(labels: Iterable[str]) -> set[str]:
    """The axes on which the labels differ."""
    values: dict[str, set[str]] = {}
    for label in labels:
        for pair in label.split(","):
            axis, _, value = pair.partition("=")
            values.setdefault(axis, set()).add(value)
    return {axis for axis, seen in values.items() if len(seen) > 1}


def _sees(row: Row, axes: set[str]) -> str:
    """`20 (10 to 20), separator=comma`; the values of `axes` alone."""
    length = _bound(row["effective_length_min"], row["effective_length_max"])
    tested = _lengths([row])
    low, high = row["effective_length_ci_low"], row["effective_length_ci_high"]
    ends = (
        _bound(low, low) if low else Bound("<", tested[0]),
        _bound(high, high) if high else Bound(">", tested[-1]),
    )
    pairs = [pair for pair in row["condition"].split(",") if pair.partition("=")[0] in axes]
    return ", ".join([f"{length} ({span_text(ends)})", *pairs])


def _bound(low: str, high: str) -> Bound:
    if not low:
        return Bound("<", float(high))
    return Bound("=" if high else ">", float(low))


def around(path: Path) -> tuple[str, str]:
    """What stands before and after the markers in a Markdown file.

    Raises:
        LeaderboardError: it has no markers, or cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LeaderboardError(f"{path} cannot be read ({error})") from None
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LeaderboardError(
            f"{path} has no place for the table: put {BEGIN!r} and {END!r} on lines of their own"
        )
    return before + begin, end + after


def put_into(path: Path, table: str) -> None:
    """Replaces what stands between the markers; raises as `around` does."""
    before, after = around(path)
    journal.replace_file(path, f"{before}\n{table}\n{after}".encode())
