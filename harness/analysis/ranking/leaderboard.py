"""Many runs in one table: one row for each model, task and condition.

The file keeps the rows of runs that are not in this command; a newer run of the same model replaces
its row. Rows that cannot be compared with the others are left out, each with a reason.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eyechart.harness.analysis.comparison.family import is_default
from eyechart.harness.analysis.length.capacity import STATISTIC, capacity
from eyechart.harness.analysis.length.in_tokens import token_columns
from eyechart.harness.analysis.length.limit import RANKED
from eyechart.harness.analysis.ranking.cost_at import costs_at
from eyechart.harness.analysis.ranking.leaderboard_file import Leaderboard, LeftOut, Row, lengths_of
from eyechart.harness.analysis.ranking.standing import Standing
from eyechart.harness.analysis.samples.judged_run import JudgedCondition, JudgedRun
from eyechart.harness.analysis.tables.tables import (
    cost_at_columns,
    cost_columns,
    estimate_columns,
    near_apart_columns,
    right_at_columns,
)
from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.score.outcomes import NOT_SCORED
from eyechart.harness.settings.judging import OF_RUNS
from eyechart.harness.spec import columns
from eyechart.providers.naming import turned_on

KEY = ("task", "condition", "model", "settings")
"""The columns that identify a row; a newer run with the same values replaces it."""
_FILLED_LATER = (*columns.OF_MODEL, *columns.BY_TEST, "capacity")


def run_rows(run: JudgedRun, at: Sequence[int] = ()) -> tuple[list[Row], list[LeftOut]]:
    """A row for each complete condition, with the accuracies `at`; a message for each other one."""
    manifest = run.manifest
    rows: list[Row] = []
    left_out: list[LeftOut] = []
    for judged in run.conditions.values():
        estimate = judged.effective_length()
        counts = {name: int(judged.cells[name].sum()) for name in ("n", *NOT_SCORED)}
        missing = counts["not_run"]
        fingerprint = run.fingerprint(judged.places)
        if missing or fingerprint is None or estimate is None:
            reason = _incomplete(run, missing, is_scored=estimate is not None)
            kind = "of runs that are not complete"
            left_out.append(LeftOut(f"{run.folder}, {judged.label}", reason, kind))
            continue
        rows.append(
            {
                "task": manifest.task,
                "task_version": str(manifest.task_version),
                "condition": judged.label,
                "model": manifest.model,
                **dict.fromkeys(_FILLED_LATER, ""),
                "kind": columns.ASKED if manifest.recorded is None else columns.RECORDED,
                "default": "yes" if is_default(judged) else "",
                "control": "yes" if judged.control else "",
                "adaptive": "yes" if judged.adaptive else "",
                "n": str(counts["n"]),
                "not_scored": str(sum(counts[name] for name in NOT_SCORED)),
                **{name: f"{value:g}" for name, value in run.settings.of_runs.items()},
                **{
                    name: value if isinstance(value, str) else _number(value)
                    for name, value in {
                        **estimate_columns(estimate, adaptive=judged.adaptive),
                        **near_apart_columns(judged),
                        **token_columns(judged),
                        **_capacity(judged),
                        **cost_columns(judged),
                        columns.COST_A_REPLY: judged.cost and judged.cost.a_reply,
                        **cost_at_columns(costs_at(judged, at)),
                        **right_at_columns(estimate, at),
                    }.items()
                },
                "source": _source(manifest),
                "collected": _collected(manifest),
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
                **_accuracies(judged),
            }
        )
    return rows, left_out


def _capacity(judged: JudgedCondition) -> dict[str, float | None]:
    """The capacity, of a task that asks for it: 0 where no line passes."""
    if STATISTIC not in judged.run.spec.statistics or (found := capacity(judged)) is None:
        return {}
    return {"capacity": 0 if found.length.sign == "<" else found.length.length}


def _source(manifest: Manifest) -> str:
    """Who collected recorded replies; empty where they are replies to us, or nobody is named."""
    files = [] if manifest.recorded is None else manifest.recorded.latest
    return "; ".join(dict.fromkeys(filter(None, (file.by for file in files))))


def _collected(manifest: Manifest) -> str:
    """When the replies were given: the day of the last one, or what is said of recorded ones."""
    if manifest.recorded is not None:
        return manifest.recorded.at
    return manifest.updated.partition("T")[0]


def _incomplete(run: JudgedRun, missing: int, *, is_scored: bool) -> str:
    """Why a condition has no row, and what helps."""
    if run.manifest.recorded is not None:
        count = f"{missing:,} sample{'s have' if missing > 1 else ' has'} no recorded reply"
        return count if missing else "no sample was scored"
    problem = (
        f"{missing:,} sample{'s were' if missing > 1 else ' was'} never asked"
        if missing
        else "it was never completed"
        if is_scored
        else "no sample was scored"
    )
    again = f"with {turned_on('keep_going')}" if run.has_nothing_readable else "again"
    return f"{problem}; the same command {again} asks them"


def _accuracies(judged: JudgedCondition) -> Row:
    """The columns of accuracies. Lines with the same nominal length are taken together."""
    counts: dict[int, list[int]] = {}
    cells = (judged.cells[name].tolist() for name in ("length", "correct", "n"))
    for length, correct, n in zip(*cells, strict=True):
        before = counts.get(length, [0, 0])
        counts[length] = [before[0] + correct, before[1] + n]
    return {
        f"{columns.ACCURACY_AT}{length}": _number(round(correct / n, columns.DIGITS) if n else None)
        for length, (correct, n) in sorted(counts.items())
    }


def _settings(manifest: Manifest) -> str:
    if manifest.recorded is not None:
        return str(manifest.recorded)
    return " ".join(
        shlex.quote(f"{name}={'auto' if value is None else value}")
        for name, value in manifest.settings.given().items()
        if not (name in ("system", "effort") and value is None)
    )


def _server(manifest: Manifest) -> str:
    values = [manifest.server.get(name) for name in ("server", "version")]
    return " ".join(
        [*(str(value) for value in values if value), *filter(None, manifest.answered_by)]
    )


def _number(value: Any) -> str:
    if value is None or value != value:  # noqa: PLR0124  NaN
        return ""
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.{columns.DIGITS}g}"


def merge(
    rows: Iterable[Row], before: Sequence[Row] = (), *, now: datetime | None = None
) -> Leaderboard:
    """Merges new `rows` with those `before` into rows that can be compared with each other.

    Of rows with equal `KEY`, version and samples the latest is kept. Two rows have equal samples if
    their fingerprints are equal; adaptive rows, whose samples depend on the replies, if their seeds
    are. Somebody else chose the samples of recorded rows, so all of these are compared, by
    effective length and not by area, since their lines differ. Reported rows are figures of others,
    each source in a group of its own. An invalid date, or one more than a
    day after `now`, counts as the earliest, so such a row never replaces one with a valid date.
    Only the newest version of each task is kept. Each condition keeps one combination of data and
    settings of judging for its full rows, one for the adaptive and one for the recorded rows.
    A combination of the rows `before` comes first, so new rows never remove old ones, unless they
    renew each of them, see `_renewed`; then the most frequent one, then the one with most samples,
    then the latest.
    """
    limit = (now or datetime.now(UTC)) + _CLOCKS_DIFFER
    new = list(rows)
    latest: dict[tuple[str, ...], Row] = {}
    of_models: defaultdict[tuple[str, str], Row] = defaultdict(dict)
    for row in sorted([*before, *new], key=lambda row: _when(row, limit)):
        key = _same(row)
        known = of_models[row["model"], row["task"]]
        known |= {name: row[name] for name in columns.OF_MODEL if row[name]}
        row.update(known)
        latest[key] = row
    kept = list(latest.values())
    replaced = [(row, later) for row in new if (later := latest[_same(row)]) is not row]
    left_out: list[LeftOut] = []
    ahead = [
        f"{_named(row)}: dated {row['date']!r}, which is no date or lies in the "
        "future; a newer run of this model replaces the row"
        for row in before
        if row["date"] and _when(row, limit) == _EARLIEST
    ]
    of_tasks = [row for row in kept if row["kind"] != columns.REPORTED]
    newest = {
        task: max(int(row["task_version"]) for row in of_tasks if row["task"] == task)
        for task in {row["task"] for row in of_tasks}
    }
    current = []
    for row in kept:
        if row["kind"] == columns.REPORTED or int(row["task_version"]) == newest[row["task"]]:
            current.append(row)
        else:
            reason = (
                f"of version {row['task_version']} of the task, and there are rows of "
                f"{newest[row['task']]}"
            )
            left_out.append(LeftOut(_named(row), reason, "of older versions of a task"))
    earlier_samples: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in before:
        earlier_samples[_group(row)].add(_samples(row))
    chosen: list[Row] = []
    for key in sorted(set(map(_group, current))):
        group = [row for row in current if _group(row) == key]
        earlier = [row for row in group if _samples(row) in earlier_samples[key]]
        reference = _reference(_renewed(group, earlier, limit) or earlier or group, limit)
        for row in group:
            if _data(row) == _data(reference):
                chosen.append(row)
            else:
                left_out.append(LeftOut(_named(row), *_difference(row, reference)))
    chosen.sort(key=_rank, reverse=True)
    chosen.sort(key=_group)
    return Leaderboard(tuple(chosen), tuple(left_out), tuple(ahead), tuple(replaced))


def enter_standings(
    rows: Iterable[Row], by_folder: Mapping[Path, Sequence[Row]], standings: Iterable[Standing]
) -> None:
    """Writes into `rows` how many models each is shown to see further than, and how many see
    further, in the standings of the runs that are here; other rows have no such numbers, since they
    would be those of an earlier comparison.
    """
    for row in rows:
        row.update(dict.fromkeys(columns.BY_TEST, ""))
    for standing in standings:
        for place in standing.places:
            for row in by_folder[place.run.folder]:
                if row["condition"] == place.condition.label and place.by_test:
                    row.update(zip(columns.BY_TEST, map(str, place.by_test), strict=True))


_EARLIEST = datetime.min.replace(tzinfo=UTC)
_CLOCKS_DIFFER = timedelta(days=1)


def _when(row: Row, limit: datetime) -> datetime:
    """The date of a row; `_EARLIEST` where it is not a date or is after `limit`."""
    try:
        date = datetime.fromisoformat(row["date"])
    except ValueError:
        return _EARLIEST
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return _EARLIEST if date > limit else date


def _same(row: Row) -> tuple[str, ...]:
    """What two rows share of which the later one replaces the other."""
    return (*(row[name] for name in KEY), row["task_version"], _samples(row))


def _group(row: Row) -> tuple[str, ...]:
    """The properties that rows must share to be compared with each other."""
    by = row["source"] if row["kind"] == columns.REPORTED else ""
    return row["task"], row["condition"], row["adaptive"], row["kind"], by


def _rank(row: Row) -> tuple[int, float, int]:
    """The value by which the rows of a group are sorted: the area, or for adaptive and recorded
    rows the effective length, where `> 26` is more than 26. Lengths below the shortest line and
    lengths that the replies leave open follow, by area. Rows whose length is limited by something
    else than sight come last.
    """
    area, bound = float(row["area"] or 0), row["effective_length_bound"]
    if row["limited_by"] not in RANKED:
        return 0, 0.0, 0
    if not row["adaptive"] and row["kind"] == columns.ASKED:
        return 2, area, 0
    if not row["effective_length"] or bound == "<":
        return 1, area, 0
    return 2, float(row["effective_length"]), int(bound == ">")


def _samples(row: Row) -> str:
    """The properties that two rows share if their runs drew the same samples."""
    if row["kind"] != columns.ASKED:
        return row["kind"]
    return f"adaptive {_seed(row)}" if row["adaptive"] else row["fingerprint"]


def _seed(row: Row) -> str:
    return next((part for part in row["settings"].split() if part.startswith("seed=")), "")


def _data(row: Row) -> str:
    return "|".join([_samples(row), *(row[name] for name in OF_RUNS)])


def _asked(row: Row) -> int:
    """How many samples were asked."""
    return int(row["n"]) + int(row["not_scored"])


def _renewed(group: Sequence[Row], earlier: Sequence[Row], limit: datetime) -> list[Row]:
    """The latest rows of other samples that have each model of the `earlier` ones, with its
    settings and lengths, at least as many samples, and a later date; empty if there are none. So
    they are where prompts or data of a task changed and its version did not.
    """
    of_samples: dict[str, dict[tuple[str, str], Row]] = {}
    for row in group:
        of_samples.setdefault(_samples(row), {})[row["model"], row["settings"]] = row

    def renews(row: Row, of: Mapping[tuple[str, str], Row]) -> bool:
        new = of.get((row["model"], row["settings"]))
        return (
            new is not None
            and lengths_of([new]) == lengths_of([row])
            and _asked(new) >= _asked(row)
            and _when(new, limit) > _when(row, limit)
        )

    found = [
        list(of.values())
        for of in of_samples.values()
        if earlier and all(row["kind"] == columns.ASKED and renews(row, of) for row in earlier)
    ]
    return max(found, key=lambda rows: max(_when(row, limit) for row in rows), default=[])


def _reference(group: Sequence[Row], limit: datetime) -> Row:
    counts = Counter(_data(row) for row in group)
    return max(group, key=lambda row: (counts[_data(row)], int(row["n"] or 0), _when(row, limit)))


def _named(row: Row) -> str:
    return f"{row['model']} on {row['task']}, {row['condition']}"


def _difference(row: Row, reference: Row) -> tuple[str, str]:
    """Why a row cannot be compared with the `reference`, and the kind of this reason."""
    lengths, reference_lengths = (
        [str(length) for length in lengths_of([entry])] for entry in (row, reference)
    )
    if _samples(row) == _samples(reference):
        name = next(name for name in OF_RUNS if row[name] != reference[name])
        return f"{name} is {row[name]}, and {reference[name]} elsewhere", f"with another {name}"
    if _seed(row) != _seed(reference):
        return f"{_seed(row)}, and {_seed(reference)} elsewhere", "with another seed"
    if lengths != reference_lengths:
        elsewhere = ", ".join(reference_lengths)
        return f"lengths {', '.join(lengths)}, and {elsewhere} elsewhere", "with other lengths"
    samples, reference_samples = map(_asked, (row, reference))
    if samples != reference_samples:
        return (
            f"{samples} sample{'s' * (samples != 1)}, and {reference_samples} elsewhere",
            "with another number of samples",
        )
    why = f"the task file has changed, or only some were asked with {turned_on('exact')}"
    return (
        f"its prompts are not those of the others at equal seed, lengths and samples: {why}; ask "
        "all of them again in one way"
    ), "with other prompts"
