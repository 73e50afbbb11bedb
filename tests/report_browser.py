"""What the tests of the report's page in a real Chromium share: two reports, and a look at one.

`CHROMIUM` names the browser; screenshots are kept in the folder that `TESTS_SCREENSHOTS` names.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import BadRequestError, Reply, Request, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.run_task import run_task

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = (
    "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">"
    "</script>{{ 7 * 7 }}\u202e\u0007 Final answer: 3"
)
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SAMPLES = 6
LENGTHS = [5, 10, 20, 50, 100, 200, 500]
WAIT_MS = 30_000


def answer(request: Request, *, tokens: bool) -> Reply:
    """Counts to twenty, talks, refuses, attacks and fails, by the sample's index; the model without
    tokens is wrong once more at short lengths.
    """
    index, length = (
        int(re.findall(rf"{name}=(\d+)", request.sample_id)[0]) for name in ("index", "length")
    )
    if index == 3:
        return Reply(HOSTILE, usage=Usage(1, 1) if tokens else None)
    if index == 4:
        raise BadRequestError("too hot")
    row = request.prompt.rstrip().splitlines()[-1].partition(": ")[2]
    count = row.count("1") if length <= (50 if "," in row else 20) else 100
    if index == 5 and length <= 10 and not tokens:
        count += 1
    usage = Usage(len(request.prompt) // 2, 12) if tokens else None
    return Reply(f"Let me see.\nFinal answer: {count}", usage=usage)


def make_run(out: Path, task: str, model: str, **options: Any) -> Path:
    opened = open_task(task, built_in_files()[task], trial=False)
    wanted = RunRequest(
        plan(opened, samples=SAMPLES, exact=True, **{"lengths": LENGTHS, **options}),
        resolve_model(model),
        Settings(),
        out,
    )
    script = partial(answer, tokens=model == "scripted/first")
    limits = RunLimits(initial_backoff_s=0, max_backoff_s=0)
    asyncio.run(run_task(wanted, ScriptedProvider(script), limits=limits, warn=print))
    return wanted.folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where it is, if it is here."""
    pytest.importorskip("playwright.sync_api")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium: 'apt-get install chromium', or name one in CHROMIUM")
    return path


@pytest.fixture(scope="session")
def report(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models on one task and one of them on another."""
    assert chromium
    out = tmp_path_factory.mktemp("report")
    folders = [
        make_run(out, "counting/bernoulli", "scripted/first"),
        make_run(out, "counting/bernoulli", "scripted/second"),
        make_run(out, "copying/first_last", "scripted/first", lengths=[5, 10, 50]),
    ]
    from eyechart.harness.report.page.page import write_report
    from eyechart.harness.report.page.section import sections

    (page,) = write_report(sections([*map(read_run, folders)]), out / "report.html", warn=print)
    return page


@pytest.fixture(scope="session")
def unanswered(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of errors alone."""
    assert chromium
    out = tmp_path_factory.mktemp("unanswered")
    opened = open_task("counting/ones", built_in_files()["counting/ones"], trial=False)
    wanted = RunRequest(
        plan(opened, samples=2, lengths=[5, 10]), resolve_model("scripted/x"), Settings(), out
    )

    def fails(_request: Request) -> str:
        raise BadRequestError("no")

    limits = RunLimits(initial_backoff_s=0, max_backoff_s=0)
    asyncio.run(run_task(wanted, ScriptedProvider(fails), limits=limits, warn=print))
    from eyechart.harness.report.page.page import write_report
    from eyechart.harness.report.page.section import sections

    (page,) = write_report(sections([read_run(wanted.folder)]), out / "report.html", warn=print)
    return page


@pytest.fixture(scope="session")
def long_names(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models with names of 300 characters."""
    assert chromium
    out = tmp_path_factory.mktemp("long")
    names = [f"scripted/{'m' * 120}/{letter * 120}/{'o' * 60}" for letter in "ab"]
    folders = [make_run(out, "counting/bernoulli", name, lengths=[5, 10]) for name in names]
    from eyechart.harness.report.page.page import write_report
    from eyechart.harness.report.page.section import sections

    (page,) = write_report(sections([*map(read_run, folders)]), out / "report.html", warn=print)
    return page


@pytest.fixture(scope="session")
def browser(chromium: str, report: Path, unanswered: Path, long_names: Path) -> Iterator[Browser]:
    """Started after the runs were made, for it keeps an event loop."""
    from playwright.sync_api import sync_playwright

    assert report.exists()
    assert unanswered.exists()
    assert long_names.exists()
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Visit:
    """One look at the page."""

    page: Page
    said: list[str] = field(default_factory=list)
    """What the console said, and errors that nobody caught."""
    requests: list[str] = field(default_factory=list)

    def drawn(self) -> None:
        """Waits until every chart is."""
        self.page.wait_for_selector("html[data-drawn=all]", state="attached", timeout=WAIT_MS)

    def unfold(self) -> None:
        """Opens all that is folded, and waits until its charts are drawn."""
        self.page.evaluate(
            """() => {
                for (const node of document.querySelectorAll("details")) node.open = true;
                redraw([]);
            }"""
        )
        self.drawn()

    def samples(self) -> None:
        """Scrolls to the samples, and waits until they are there."""
        self.page.locator("#samples").scroll_into_view_if_needed()
        self.settled()

    def settled(self) -> None:
        """Waits until the filters have done their work."""
        self.page.wait_for_selector("#cards[aria-busy=false]", state="attached", timeout=WAIT_MS)

    def choose(self, name: str, label: str) -> str:
        """Sets a filter; what is said of the matches."""
        self.page.select_option(f"select[name={name}]", label=label)
        self.settled()
        said: str = self.page.inner_text("#found")
        return said

    def keep(self, name: str, *, whole: bool = False) -> None:
        """Saves a screenshot where they are wanted."""
        folder = os.environ.get("TESTS_SCREENSHOTS")
        if folder:
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)


@pytest.fixture
def visit(browser: Browser, report: Path, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """The page, opened without a network; what the test did must not have upset the console."""
    options = getattr(request, "param", {"viewport": DESK})
    context = browser.new_context(offline=True, accept_downloads=True, **options)
    made = Visit(context.new_page())
    made.page.on("console", lambda message: made.said.append(f"{message.type}: {message.text}"))
    made.page.on("pageerror", lambda error: made.said.append(f"error: {error}"))
    made.page.on("request", lambda sent: made.requests.append(sent.url))
    made.page.goto(report.as_uri())
    yield made
    assert made.said == []
    assert [url for url in made.requests if not url.startswith(("data:", "blob:"))] == [
        report.as_uri()
    ]
    context.close()


def shown_samples(visit: Visit) -> tuple[str, list[str]]:
    """What is said of the samples, and the samples that are shown."""
    visit.settled()
    return visit.page.inner_text("#found"), visit.page.locator(".card code").all_inner_texts()


def on_screen(visit: Visit, selector: str) -> bool:
    """Whether the top of an element is on the screen."""
    visit.drawn()
    box = visit.page.locator(selector).bounding_box()
    return box is not None and 0 <= box["y"] < DESK["height"]
