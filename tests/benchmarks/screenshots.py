"""Makes the pictures of a report in docs/: at 1400 and 390 pixels, light and dark.

    python tests/benchmarks/screenshots.py [FOLDER]

Four scripted models count under two conditions and copy from two positions. Needs playwright and a
Chromium (`CHROMIUM`, else /usr/bin/chromium). The exit code is 1 if a picture has 300 kB or more.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import tempfile
from functools import partial
from pathlib import Path

from playwright.sync_api import sync_playwright

from eyechart.harness.analysis.judged_run import read_run
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.page import write_report
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.run.task_run import run_task
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Reply, Request, Usage
from eyechart.providers.scripted import ScriptedProvider

REACHES = {"scripted/small": 18, "scripted/medium": 45, "scripted/large": 60, "scripted/wide": 140}
"""Model -> symbols at which it is right every second time."""
TASKS = {
    "counting/bernoulli": {"separator": ["none", "comma"]},
    "copying/first_last": {"odd": ["zero"]},
}
SIZES = {1400: 1000, 390: 844}
"""Width -> height of the screen."""
LARGEST_BYTES = 300_000


def answer(request: Request, *, reach: float) -> Reply:
    """Sees further with commas and at the first position."""
    row = request.prompt.rstrip().splitlines()[-1].partition(": ")[2]
    symbols = row.replace(",", "")
    far = reach * (1.5 if "," in row or "position=first" in request.sample_id else 1)
    draw = random.Random(f"{reach} {request.sample_id}")
    right = draw.random() < 1 / (1 + (len(symbols) / far) ** 3)
    if "position=" in request.sample_id:
        ends = re.findall(r"^.|.$", symbols)
        said = ends["position=last" in request.sample_id] if right else "1"
    else:
        count = symbols.count("1")
        said = str(count if right else max(0, count + draw.choice([-3, -2, -1, 1, 2])))
    text = f"I look at the row once more.\nFinal answer: {said}"
    return Reply(text, usage=Usage(len(request.prompt) // 2, 15 + round(reach / 5)))


def make_runs(out: Path) -> list[Path]:
    """The finished runs of all models on all tasks."""
    folders = []
    for name, axes in TASKS.items():
        planned = plan(open_task(name, built_in_files()[name], trial=False), axes=axes)
        for model, reach in REACHES.items():
            wanted = RunRequest(planned, resolve_model(model), Settings(), out)
            provider = ScriptedProvider(partial(answer, reach=reach))
            asyncio.run(run_task(wanted, provider, limits=RunLimits(), warn=print))
            folders.append(wanted.folder)
    return folders


def take(page: Path, folder: Path) -> list[Path]:
    """The pictures of the page's first screen."""
    taken = []
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for width, height in SIZES.items():
            view = browser.new_context(
                offline=True, viewport={"width": width, "height": height}
            ).new_page()
            view.goto(page.as_uri())
            view.wait_for_selector("html[data-drawn=all]", state="attached", timeout=120_000)
            for scheme in ("light", "dark"):
                view.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                taken.append(folder / f"page-{width}-{scheme}.png")
                view.screenshot(path=taken[-1])
        browser.close()
    return taken


def main() -> int:
    """Writes the pictures and prints their sizes."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    with tempfile.TemporaryDirectory() as made:
        out = Path(made)
        runs = [read_run(run) for run in make_runs(out)]
        (page,) = write_report(runs, out / "report.html", warn=print)
        sizes = {path: path.stat().st_size for path in take(page, folder)}
    for path, size in sizes.items():
        print(f"{path} {size / 1000:.0f} kB")
    return int(max(sizes.values()) >= LARGEST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
