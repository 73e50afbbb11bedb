"""How long a report of 20,000 samples takes, how big it is, and how soon its first chart shows.

    python tests/benchmarks/report_page.py [SAMPLES]

The run is scripted; its prompts, journal and verdicts are those of `counting/bernoulli`. The last
figures need playwright and a Chromium (`CHROMIUM`, else /usr/bin/chromium).
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from harness.analysis.judged_run import read_run
from harness.plan.plan import plan
from harness.plan.resolved_model import resolve_model
from harness.report.page import write_report
from harness.run.limits import RunLimits
from harness.run.run_request import RunRequest
from harness.run.task_run import run_task
from harness.spec import Settings
from harness.task.catalogue import built_in_files, open_task
from providers.base import Reply, Request, Usage
from providers.scripted import ScriptedProvider

TASK = "counting/bernoulli"
MEGA = 1e6
GOOD_TO = 50
"""Symbols of a row that the scripted model still counts right."""


def answer(request: Request) -> Reply:
    """Right to `GOOD_TO` symbols, then sixty per cent of it, with some talk before."""
    row = request.prompt.rstrip().splitlines()[-1]
    count = row.partition(": ")[2].count("1")
    said = count if count <= GOOD_TO else round(0.6 * count)
    text = f"I go through the row and keep the total: {count // 2}, {said}.\nFinal answer: {said}"
    return Reply(text, usage=Usage(len(request.prompt) // 2, 20))


def make_run(out: Path, samples: int) -> Path:
    """A finished run of at least so many samples."""
    task = open_task(TASK, built_in_files()[TASK], trial=False)
    cells = plan(task, samples=1).size
    planned = plan(task, samples=-(-samples // cells))
    wanted = RunRequest(planned, resolve_model("scripted/benchmark"), Settings(), out)
    asyncio.run(run_task(wanted, ScriptedProvider(answer), limits=RunLimits(), warn=print))
    print(f"{planned.size:,} samples in {cells} cells")
    return wanted.folder


def show(page: Path) -> None:
    """Seconds in Chromium, from the address to the first chart, to all, to the samples."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("playwright is missing: the page was not opened")
        return
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        view = browser.new_context(offline=True).new_page()
        started = time.perf_counter()
        view.goto(page.as_uri(), wait_until="commit")
        view.wait_for_selector(".chart svg")
        print(f"first chart visible after {time.perf_counter() - started:.2f} s")
        view.wait_for_selector("html[data-drawn=all]", state="attached", timeout=60_000)
        print(f"all charts after {time.perf_counter() - started:.2f} s")
        view.locator("#samples").scroll_into_view_if_needed()
        started = time.perf_counter()
        view.wait_for_selector("#cards .card", timeout=60_000)
        print(f"samples after {time.perf_counter() - started:.2f} s")
        for name, value in (("length", "500"), ("outcome", "1"), ("length", "5")):
            started = time.perf_counter()
            view.select_option(f"select[name={name}]", value)
            view.wait_for_selector("#cards[aria-busy=false]", state="attached")
            print(f"filter {name}={value} after {time.perf_counter() - started:.2f} s")
        browser.close()


def main() -> None:
    """Prints the figures."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        run = make_run(out, samples)
        started = time.perf_counter()
        (page,) = write_report([read_run(run)], out / "report.html", warn=print)
        print(f"report in {time.perf_counter() - started:.1f} s")
        print(f"page of {page.stat().st_size / MEGA:.1f} MB")
        show(page)


if __name__ == "__main__":
    main()
