"""Makes pictures of pages at 1400 and 390 pixels, light and dark.

    python tests/benchmarks/screenshots.py [FOLDER] [--pages report,leaderboard,models]

`report` is the picture in docs/ (`page-*.png`): four scripted models count under two conditions and
copy from two positions. `leaderboard` is the page of `bench leaderboard` of the same runs, `models`
the published page of all models. Needs playwright and a Chromium (`CHROMIUM`, else
/usr/bin/chromium). The exit code is 1 if a picture has 300 kB or more.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from playwright.sync_api import sync_playwright

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.cli.work.leaderboard import write
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.page.page import write_report
from eyechart.harness.report.page.section import sections
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Reply, Request, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.run_task import run_task

REACHES = {"scripted/small": 18, "scripted/medium": 45, "scripted/large": 60, "scripted/wide": 140}
"""Model -> symbols at which it is right every second time."""
TASKS = {
    "counting/bernoulli": {"separator": ["none", "comma"]},
    "copying/first_last": {"odd": ["zero"]},
}
SIZES = {1400: 1000, 390: 844}
"""Width -> height of the screen."""
LARGEST_BYTES = 300_000
AT = (20, 50, 100)
"""The lengths of `--at`."""
PUBLISHED = Path(__file__).parents[2] / "results"


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


def take(page: Path, name: str, folder: Path) -> list[Path]:
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
            if name != "models":  # it has no charts
                view.wait_for_selector("html[data-drawn=all]", state="attached", timeout=120_000)
            for scheme in ("light", "dark"):
                view.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                taken.append(folder / f"{name}-{width}-{scheme}.png")
                view.screenshot(path=taken[-1])
        browser.close()
    return taken


def report(folders: Sequence[Path], out: Path) -> Path:
    """The report's page."""
    (page,) = write_report(sections([*map(read_run, folders)]), out / "report.html", warn=print)
    return page


def leaderboard(folders: Sequence[Path], out: Path) -> Path:
    """The leaderboard's page."""
    write(folders, out / "leaderboard.csv", None, JudgeSettings(), at=AT)
    return out / "leaderboard.html"


PAGES: dict[str, tuple[str, Callable[[Sequence[Path], Path], Path]]] = {
    "report": ("page", report),
    "leaderboard": ("leaderboard", leaderboard),
    "models": ("models", lambda _folders, _out: PUBLISHED / "models.html"),
}
"""Page -> how the names of its pictures begin, and what makes it of the folders of runs."""


def main() -> int:
    """Writes the pictures and prints their sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs"))
    parser.add_argument("--pages", default="report", help=", ".join(PAGES))
    given = parser.parse_args()
    wanted = given.pages.split(",")
    if unknown := [name for name in wanted if name not in PAGES]:
        parser.error(f"unknown page {unknown[0]!r}; known are {', '.join(PAGES)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    sizes: dict[Path, int] = {}
    with tempfile.TemporaryDirectory() as made:
        out = Path(made)
        folders = make_runs(out) if wanted != ["models"] else []
        for name, page in (PAGES[one] for one in wanted):
            taken = take(page(folders, out), name, given.folder)
            sizes |= {path: path.stat().st_size for path in taken}
    for path, size in sizes.items():
        print(f"{path} {size / 1000:.0f} kB")
    return int(max(sizes.values()) >= LARGEST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
