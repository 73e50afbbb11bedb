"""The results of a run for trackers of experiments, such as MLflow: one hook for all of them.

A tracker joins by an entry point of the group `eyechart.trackers`, which names a function that
opens it. A tracker that fails is one line of warning, and the run is as complete as without it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from eyechart.harness.errors import UsageError
from eyechart.providers.base import ProviderError
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.naming import named
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.contract import described
from eyechart.providers.plugins.plugins import TRACKERS

if TYPE_CHECKING:
    from eyechart.harness.analysis.samples.judged_run import JudgedRun
    from eyechart.harness.journal.record import Warn

PROJECT = "eyechart"
"""Where runs are logged unless the tracker's own variable names another place."""
_LIMIT_S = 300.0
"""How long a tracker may take to log a run, before the command goes on without it."""
_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """A judged run as trackers get it."""

    key: str
    """Names the run: the same for the same folder, so that a run that grows is logged again."""
    name: str
    """`tiny counting/ones`."""
    config: Mapping[str, str | int | float | bool]
    """What defines the run, which never changes: model, task, settings."""
    metrics: Mapping[str, float]
    """Effective lengths, areas and accuracies with their 95 % intervals, and dollars: the numbers
    of `effective_length.csv`, by the condition's name where there are several."""
    notes: Mapping[str, str]
    """Texts beside these numbers: what limits a length, or that it is a bound; and versions of
    software. They may change when a run grows, as the numbers do."""
    accuracies: Mapping[int, Mapping[str, float]]
    """Length -> accuracy, its 95 % interval and the number of scored samples."""


class Tracker(Protocol):
    """What the function of an entry point of `eyechart.trackers` returns."""

    def log(self, run: LoggedRun) -> str:
        """Logs a run, or logs it again; returns where. It may raise anything."""


@dataclass(frozen=True, slots=True)
class OpenTracker:
    """A tracker that a command named."""

    name: str
    tracker: Tracker


def open_trackers(names: Sequence[str]) -> list[OpenTracker]:
    """The trackers of these names; nothing is sent.

    Raises:
        UsageError: there is no such tracker.
        SetupError: its package is missing, or it cannot be used.
    """
    found = []
    for name in dict.fromkeys(names):
        plugin = plugins.find(TRACKERS, name)
        if plugin is None:
            known = plugins.installed(TRACKERS, ()).usable
            raise UsageError(
                f"{named('log_to')} has no tracker {name!r}; {did_you_mean(name, known)}",
                setting="log_to",
            )
        opens = plugin.load()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                tracker = cast("Callable[[], Tracker]", opens)()
        except (ProviderError, KeyboardInterrupt):
            raise
        except BaseException as error:  # code of others, which may raise anything
            raise plugin.error(f"opening it raised {described(error)}") from error
        found.append(OpenTracker(name, tracker))
    return found


def log_run(trackers: Sequence[OpenTracker], run: JudgedRun, warn: Warn, say: Warn) -> None:
    """Logs a run to each tracker and says where; a tracker that fails is a line of `warn`."""
    if not trackers:
        return
    logged = logged_run(run)
    for one in trackers:
        done: Future[str] = Future()
        work = threading.Thread(target=_log, args=(one.tracker, logged, done), daemon=True)
        with _no_output():
            work.start()
            try:
                error = done.exception(_LIMIT_S)
            except TimeoutError:
                error = TimeoutError(f"it did not end within {_LIMIT_S:g} s")
        if error is not None:
            warn(f"{logged.name} is not logged to {one.name}: {described(error)}; {_STAYS}")
        else:
            say(f"{logged.name} is logged to {done.result()}")


def _log(tracker: Tracker, run: LoggedRun, done: Future[str]) -> None:
    """Logs a run in a thread of its own, which is left behind where it does not end."""
    try:
        done.set_result(str(tracker.log(run)))
    except BaseException as error:  # noqa: BLE001  code of others, which may raise anything
        done.set_exception(error)


@contextlib.contextmanager
def _no_output() -> Iterator[None]:
    """Drops what a package prints, also from C and from processes that it starts: stdout has the
    results of the command alone.
    """
    with contextlib.redirect_stdout(io.StringIO()), contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a program without a stdout
            kept = os.dup(1)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 1)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.close(null)
        yield


_STAYS = "its folder has all that was answered, and the same command logs it again"


def logged_run(run: JudgedRun) -> LoggedRun:
    from eyechart.harness.analysis.tables.tables import cells_table, effective_length_table  # noqa: PLC0415

    manifest = run.manifest
    axes = list(manifest.spec["axes"])
    table, cells = effective_length_table(run), cells_table(run)
    prefix = _prefixes(table[axes].to_dict("records"), axes)
    cell_prefix = _prefixes(cells[axes].to_dict("records"), axes)
    metrics: dict[str, float] = {"missing": run.missing}
    notes = {f"software/{name}": version for name, version in manifest.software.items()}
    for condition, row in zip(prefix, table.to_dict("records"), strict=True):
        for name, value in row.items():
            if name in axes or name in _OF_RUN:
                continue
            (metrics if _is_number(value) else notes).update(_known(condition, str(name), value))
    accuracies: dict[int, dict[str, float]] = {}
    for condition, row in zip(cell_prefix, cells.to_dict("records"), strict=True):
        if row["n"]:
            at = accuracies.setdefault(int(row["length"]), {})
            for name in _OF_CELL:
                at |= _known(condition, name, row[name])
    config = {
        "model": manifest.model,
        "task": manifest.task,
        "task_version": manifest.task_version,
        **{
            name: _plain(value)
            for name, value in manifest.settings.given().items()
            if value is not None
        },
    }
    digest = hashlib.sha256(f"{manifest.model}/{run.folder.name}/{manifest.task}".encode())
    return LoggedRun(
        key=digest.hexdigest()[:16],
        name=f"{manifest.model} {manifest.task}",
        config=config,
        metrics=metrics,
        notes=notes,
        accuracies=dict(sorted(accuracies.items())),
    )


_OF_RUN = ("model", "task", "task_version", "read")
_OF_CELL = ("accuracy", "ci_low", "ci_high", "n")


def _prefixes(rows: Sequence[Mapping[Any, Any]], axes: Sequence[str]) -> list[str]:
    """`none/direct/` for each row: its values on the axes that vary; empty where none does."""
    varied = [axis for axis in axes if len({row[axis] for row in rows}) > 1]
    return ["".join(f"{_UNSAFE.sub('-', str(row[axis]))}/" for axis in varied) for row in rows]


def _known(prefix: str, name: str, value: Any) -> dict[str, Any]:
    """The value under its name; nothing where it is not known."""
    is_known = value is not None and value == value and value != ""  # noqa: PLR0124  NaN is not
    return {f"{prefix}{name}": float(value) if _is_number(value) else value} if is_known else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> str | int | float | bool:
    return value if isinstance(value, str | int | float | bool) else str(value)
