"""How long a report takes, how big it is, and how soon its first chart shows.

    python tests/benchmarks/report_page.py                    one model, 20,000 samples
    python tests/benchmarks/report_page.py --models 100       a hundred models, 520 samples each
    python tests/benchmarks/report_page.py --models 100 --keep FOLDER

The runs are scripted; their prompts, journals and verdicts are those of `counting/bernoulli`. With
several models each sees a little further than the one before. `--keep` leaves `results/` and
`report.html` in a folder. The last figures need playwright and a Chromium (`CHROMIUM`, else
/usr/bin/chromium). The exit code is 1 if the page has 15 MB or more, or if its first chart shows
after 2 s or later.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.page.page import write_report
from eyechart.harness.report.page.section import sections
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Reply, Request, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.run_task import run_task

TASK = "counting/bernoulli"
MEGA = 1e6
REACH = 8.0
"""Symbols at which the first of several models is right every second time."""
STEP = 1.04
"""Ratio of the reaches of two neighbours."""
LARGEST_MB, LATEST_S = 15.0, 2.0
"""Limits for the page and for its first chart."""


def answer(request: Request, *, reach: float) -> Reply:
    """Right with a probability that falls with the length, with some talk before."""
    row = request.prompt.rstrip().splitlines()[-1].partition(": ")[2].replace(",", "")
    count, draw = row.count("1"), random.Random(f"{reach} {request.sample_id}")
    right = draw.random() < 1 / (1 + (len(row) / reach) ** 3)
    said = count if right else max(0, count + draw.choice([-2, -1, 1, 2, 5]))
    text = f"I go through the row and keep the total: {count // 2}, {said}.\nFinal answer: {said}"
    return Reply(text, usage=Usage(len(request.prompt) // 2, 20 + round(reach)))


def make_runs(out: Path, samples: int, models: int) -> list[Path]:
    """A finished run of at least so many samples for each model."""
    task = open_task(TASK, built_in_files()[TASK], trial=False)
    cells = plan(task, samples=1).size
    planned = plan(task, samples=-(-samples // cells))
    folders = []
    for place in range(models):
        # one model sees as far as the middle of a hundred
        reach = REACH * STEP ** (place if models > 1 else 50)
        name = f"scripted/model-{place:03d}" if models > 1 else "scripted/benchmark"
        wanted = RunRequest(planned, resolve_model(name), Settings(), out)
        provider = ScriptedProvider(partial(answer, reach=reach))
        asyncio.run(run_task(wanted, provider, limits=RunLimits(), warn=print))
        folders.append(wanted.folder)
    tell("models", f"{models}")
    tell("samples", f"{planned.size * models:,}")
    return folders


def tell(name: str, value: str) -> None:
    """One row of the table of figures."""
    print(f"{name:<28} {value:>10}", flush=True)


def show(page: Path) -> float | None:
    """Seconds in Chromium, from the address to the first chart, to the samples and their filters;
    returns those to the first chart, `None` without playwright.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("playwright is missing: the page was not opened")
        return None
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        view = browser.new_context(offline=True).new_page()
        started = time.perf_counter()
        view.goto(page.as_uri(), wait_until="commit")
        view.wait_for_selector(".chart svg")
        first = time.perf_counter() - started
        tell("first chart after", f"{first:.2f} s")
        view.wait_for_selector("html[data-drawn=all]", state="attached", timeout=300_000)
        tell("no chart is waiting after", f"{time.perf_counter() - started:.2f} s")
        tell("charts", f"{view.locator('.chart').count()}")
        tell("charts drawn", f"{view.locator('.chart:has(svg)').count()}")
        started = time.perf_counter()
        view.locator("#samples").scroll_into_view_if_needed()
        view.wait_for_selector("#cards .card", timeout=60_000)
        tell("samples after", f"{time.perf_counter() - started:.2f} s")
        longest = view.locator("select[name=length] option").last.get_attribute("value")
        for name, value in (("length", longest), ("outcome", "1"), ("run", "0")):
            started = time.perf_counter()
            view.select_option(f"select[name={name}]", value)
            view.wait_for_selector("#cards[aria-busy=false]", state="attached")
            tell(f"filter by {name} after", f"{time.perf_counter() - started:.2f} s")
        browser.close()
    return first


def measured(out: Path, samples: int, models: int) -> bool:
    """Makes runs and their report in a folder, prints the figures; whether they hold."""
    runs = make_runs(out / "results", samples, models)
    started = time.perf_counter()
    (page,) = write_report(sections([*map(read_run, runs)]), out / "report.html", warn=print)
    tell("report in", f"{time.perf_counter() - started:.1f} s")
    size = page.stat().st_size / MEGA
    tell("page of", f"{size:.1f} MB")
    first = show(page)
    return size < LARGEST_MB and (first is None or first < LATEST_S)


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description="The size and the speed of a report's page.")
    parser.add_argument("samples", type=int, nargs="?", help="samples of each model")
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for results/ and report.html")
    asked = parser.parse_args()
    samples = asked.samples or (20_000 if asked.models == 1 else 520)
    if asked.keep:
        return int(not measured(asked.keep, samples, asked.models))
    with tempfile.TemporaryDirectory() as folder:
        return int(not measured(Path(folder), samples, asked.models))


if __name__ == "__main__":
    sys.exit(main())
