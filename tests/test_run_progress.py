"""What is shown of a run while it goes on: nothing that is not known, and what matters first."""

from __future__ import annotations

import io
import re
import time

import pytest
from rich.console import Console
from rich.progress import Progress as Bar

from eyechart.harness.cli import progress as display
from eyechart.harness.run.progress import Pace, Progress
from tests.conftest import plain

LENGTHS = [5, 10, 20, 40, 80, 160, 320, 640]
EACH = 20


def paced(lengths: list[int], base_s: float, symbol_s: float) -> Pace:
    """A run of `EACH` rows of all `LENGTHS`, of which those of `lengths` were answered."""
    pace = Pace(symbols=EACH * sum(LENGTHS))
    for length in lengths:
        for _ in range(EACH):
            pace.note(length, base_s + symbol_s * length)
    return pace


@pytest.mark.parametrize("done", [2, 4, 7])
@pytest.mark.parametrize(("base_s", "symbol_s"), [(0.5, 0.01), (0.0, 0.01), (0.5, 0.0)])
def test_longer_rows_that_come_later_are_counted(done: int, base_s: float, symbol_s: float) -> None:
    """From the first two lengths on, the work that is left is what it will be."""
    answered, later = LENGTHS[:done], LENGTHS[done:]
    left = sum(base_s + symbol_s * length for length in later)
    before = sum(base_s + symbol_s * length for length in answered)
    pace = paced(answered, base_s, symbol_s)
    assert pace.work_left(EACH * len(later)) == pytest.approx(left / before)


def test_a_slow_beginning_makes_no_row_take_less_than_nothing() -> None:
    """The first replies of a server take longest, and the others are taken to be alike."""
    pace = Pace(symbols=300)
    for length, latency_s in ((5, 4.0), (10, 1.0), (20, 1.0)):
        pace.note(length, latency_s)
    assert pace.work_left(3) == pytest.approx(1.0)
    assert pace.work_left(0) == 0.0


def test_the_end_is_said_only_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few replies, and of an adaptive run never."""
    monkeypatch.setattr(time, "monotonic", lambda: 1100.0)
    progress = Progress(total=160, pace=paced([], 1.0, 0.0), started_s=1000.0)
    assert progress.left_s is None
    progress.pace, progress.answered = paced(LENGTHS[:4], 1.0, 0.0), 80
    assert progress.left_s == pytest.approx(100.0)
    progress.is_adaptive = True
    assert progress.left_s is None


def line_of(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> str:
    """The line of a run on a terminal of 80 columns."""
    screen = Console(file=io.StringIO(), width=80, force_terminal=True)
    monkeypatch.setattr(display, "live_console", lambda: screen)
    bar: Bar = display.new_bar()
    bar.disable = False
    bar.add_task("counting/bernoulli", **display.fields(progress))
    with screen.capture() as shown:
        screen.print(bar.get_renderable())
    (line,) = plain(shown.get()).splitlines()
    assert len(line) <= 80
    return line


def test_retries_are_seen_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else there is to say."""
    progress = Progress(total=2000, answered=1234, failed=5, retries=67, connections=64)
    progress.judged, progress.correct = 1234, 1000
    progress.pace = paced(LENGTHS[:6], 1.0, 0.0)
    line = line_of(progress, monkeypatch)
    assert "1,239/2,000" in line
    assert ", 67 retries" in line
    assert line.rstrip().endswith(" left")


def test_an_adaptive_run_shows_what_was_asked_and_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no share of an end that nobody knows: the bar of rich has no total."""
    progress = Progress(total=125, answered=120, is_adaptive=True, retries=1, judged=1)
    progress.known = "2 of 3 known"
    assert display.fields(progress)["total"] is None
    line = line_of(progress, monkeypatch)
    assert "120 asked" in line
    assert "1 retry, 2 of 3 known" in line
    assert not re.search(r"\b125\b", line)  # a rate may have these digits
