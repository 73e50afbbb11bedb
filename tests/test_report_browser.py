"""The report's page in a real Chromium: it draws, filters, sorts and folds, and runs nothing of
what a model said.

`CHROMIUM` names the browser; screenshots are kept in the folder that `EYECHART_SCREENSHOTS` names.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.analysis.cells import csv_text, from_csv
from harness.analysis.judged_run import read_run
from harness.plan.plan import plan
from harness.plan.resolved_model import resolve_model
from harness.report.page import write_report
from harness.run.limits import RunLimits
from harness.run.run_request import RunRequest
from harness.run.task_run import run_task
from harness.spec import Settings
from harness.task.catalogue import built_in_files, open_task
from providers.base import BadRequestError, Reply, Request, Usage
from providers.scripted import ScriptedProvider

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

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
        plan(opened, samples=SAMPLES, **{"lengths": LENGTHS, **options}),
        resolve_model(model),
        Settings(),
        out,
    )
    script = partial(answer, tokens=model == "scripted/first")
    limits = RunLimits(initial_backoff_s=0, max_backoff_s=0)
    asyncio.run(run_task(wanted, ScriptedProvider(script), limits=limits, warn=print))
    return wanted.folder


@pytest.fixture(scope="module")
def chromium() -> str:
    """Where it is, if it is here."""
    pytest.importorskip("playwright.sync_api")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium: 'apt-get install chromium', or name one in CHROMIUM")
    return path


@pytest.fixture(scope="module")
def report(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models on one task and one of them on another."""
    assert chromium
    out = tmp_path_factory.mktemp("report")
    folders = [
        make_run(out, "counting/bernoulli", "scripted/first"),
        make_run(out, "counting/bernoulli", "scripted/second"),
        make_run(out, "copying/first_last", "scripted/first", lengths=[5, 10, 50]),
    ]
    (page,) = write_report([*map(read_run, folders)], out / "report.html", warn=print)
    return page


@pytest.fixture(scope="module")
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
    (page,) = write_report([read_run(wanted.folder)], out / "report.html", warn=print)
    return page


@pytest.fixture(scope="module")
def browser(chromium: str, report: Path, unanswered: Path) -> Iterator[Browser]:
    """Started after the runs were made, for it keeps an event loop."""
    from playwright.sync_api import sync_playwright

    assert report.exists()
    assert unanswered.exists()
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
        folder = os.environ.get("EYECHART_SCREENSHOTS")
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


def test_every_chart_is_drawn(visit: Visit) -> None:
    """Without a word on the console and without a request, which the fixture holds."""
    visit.drawn()
    charts = visit.page.locator(".chart")
    assert charts.count() > 15
    assert visit.page.locator(".chart svg").count() == charts.count()
    assert visit.page.locator(".chart:has(svg path[d*=NaN])").count() == 0
    visit.keep("light")
    visit.keep("light-whole", whole=True)


def test_a_chart_takes_the_room_that_was_kept(visit: Visit) -> None:
    """So nothing jumps as the charts come."""
    visit.drawn()
    for chart in visit.page.locator("#tasks .chart").all():
        kept = float(re.findall(r"[\d.]+", chart.get_attribute("style") or "")[0])
        box = chart.bounding_box()
        assert box is not None
        assert box["height"] <= kept + 1


@pytest.mark.parametrize("unit", ["characters", "tokens"])
def test_the_length_axis_changes_its_unit(visit: Visit, unit: str) -> None:
    """All charts of lengths, at a click; what is not known stays in symbols and says so."""
    visit.drawn()
    visit.page.locator(f"input[value={unit}]").check()
    visit.drawn()
    for model in ("scripted/first", "scripted/second"):
        panel = visit.page.locator(f"#counting-bernoulli .panel[data-model='{model}']")
        known = unit == "characters" or model == "scripted/first"
        title = f"length ({unit})" if known else "length (symbols; tokens not known)"
        assert title in panel.locator("svg text").all_text_contents()


def test_a_model_is_put_away(visit: Visit) -> None:
    """Its panels go and come back."""
    visit.drawn()
    panels = visit.page.locator(".panel:visible")
    before = panels.count()
    visit.page.locator("label", has_text="scripted/second").click()
    assert visit.page.locator(".panel[data-model='scripted/second']:visible").count() == 0
    assert 0 < panels.count() < before
    visit.page.locator("label", has_text="scripted/second").click()
    assert panels.count() == before


def test_a_condition_is_switched_off(visit: Visit) -> None:
    """In all charts of its group, and the key says so."""
    visit.drawn()
    group = visit.page.locator("#counting-bernoulli")
    lines = group.locator("svg .mark-line path")
    before = lines.count()
    key = group.get_by_role("button", name="comma")
    key.click()
    visit.drawn()
    assert key.get_attribute("aria-pressed") == "false"
    assert lines.count() < before
    key.click()
    visit.drawn()
    assert lines.count() == before


def test_a_table_is_sorted(visit: Visit) -> None:
    """Up, then down, by number and not by text; empty fields last."""
    table = visit.page.locator("details", has_text="Cells: counting/bernoulli").first
    table.locator("summary").click()
    head = table.locator("th", has_text="length").first
    at = table.locator("th").all_inner_texts().index("length")

    def column() -> list[str]:
        return [row.locator("td").nth(at).inner_text() for row in table.locator("tbody tr").all()]

    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column() == sorted(column(), key=int)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column() == sorted(column(), key=int, reverse=True)


def test_a_table_is_downloaded(visit: Visit, tmp_path: Path) -> None:
    """As a CSV with every row."""
    table = visit.page.locator("details", has_text="Cells: counting/bernoulli").first
    table.locator("summary").click()
    with visit.page.expect_download() as download:
        table.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "counting-bernoulli-cells.csv"
    path = tmp_path / "cells.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(rows) == table.locator("tbody tr").count() == 28
    assert {row["model"] for row in rows} == {"scripted/first", "scripted/second"}


def test_samples_are_filtered(visit: Visit) -> None:
    """By run, condition, length, outcome and text; the counts are those of the run."""
    visit.samples()
    whole = 2 * 2 * 7 * SAMPLES + 4 * 3 * SAMPLES
    assert visit.page.inner_text("#found") == f"{whole} of {whole} samples"
    assert visit.choose("run", "counting/bernoulli, scripted/second") == f"84 of {whole} samples"
    assert visit.choose("length", "500") == f"12 of {whole} samples"
    said = visit.choose("condition", "separator=comma, strategy=direct")
    assert said == f"6 of {whole} samples"
    assert visit.choose("outcome", "error") == f"1 of {whole} samples"
    assert "too hot" in visit.page.inner_text("#cards .card")
    for name in ("run", "length", "condition", "outcome"):
        visit.choose(name, "all")
    visit.page.fill("input[name=text]", "LET ME SEE")
    visit.settled()
    assert visit.page.inner_text("#found") == f"{whole * 4 // SAMPLES} of {whole} samples"


def test_only_samples_where_two_models_differ(visit: Visit) -> None:
    """Both replies stand side by side, each with its answer marked; pairs without a score on both
    sides are left out.
    """
    visit.samples()
    other = visit.page.locator("select[name=other]")
    assert other.is_disabled()
    visit.choose("run", "counting/bernoulli, scripted/first")
    assert "copying" not in other.inner_text()
    said = visit.choose("other", "that of scripted/second")
    assert said == f"4 of {2 * 7 * 5} pairs with a score on both sides have different outcomes"
    for card in visit.page.locator(".card").all():
        first, second = (side.inner_text() for side in card.locator(".side").all())
        assert first.startswith("scripted/first\n\ncorrect")
        assert second.startswith("scripted/second\n\nincorrect")
        marks = [int(mark) for mark in card.locator("mark").all_inner_texts()]
        assert marks == [marks[0], marks[0] + 1]
        assert card.locator("pre").count() == 3, "the prompt is shown once"
    visit.page.locator("#samples").scroll_into_view_if_needed()
    visit.keep("differ")
    assert visit.choose("outcome", "incorrect").startswith("0 of 70 pairs")


def test_only_samples_where_two_conditions_differ(visit: Visit) -> None:
    """The same sequences under two conditions of a model, each with its own prompt."""
    visit.samples()
    visit.choose("run", "counting/bernoulli, scripted/first")
    visit.choose("condition", "separator=none, strategy=direct")
    said = visit.choose("other", "that under separator=comma, strategy=direct")
    shown, whole = re.findall(r"^(\d+) of (\d+) pairs", said)[0]
    cards = visit.page.locator(".card.pair")
    assert (cards.count(), int(whole)) == (int(shown), 7 * 5)
    assert int(shown) >= 4
    for card in cards.all():
        assert card.locator(".badge").all_inner_texts() == ["incorrect", "correct"]
        assert card.locator("h4").all_inner_texts().count("Prompt") == 2


def shown_samples(visit: Visit) -> tuple[str, list[str]]:
    """What is said of the samples, and the samples that are shown."""
    visit.settled()
    return visit.page.inner_text("#found"), visit.page.locator(".card code").all_inner_texts()


def on_screen(visit: Visit, selector: str) -> bool:
    """Whether the top of an element is on the screen."""
    visit.drawn()
    box = visit.page.locator(selector).bounding_box()
    return box is not None and 0 <= box["y"] < DESK["height"]


def test_the_address_keeps_the_filters(visit: Visit, report: Path) -> None:
    """Opened again, it shows the same samples; back and forward change what is shown."""
    visit.samples()
    whole = shown_samples(visit)
    visit.choose("run", "counting/bernoulli, scripted/first")
    run = shown_samples(visit)
    visit.choose("other", "that of scripted/second")
    pairs = shown_samples(visit)
    visit.choose("other", "(all samples are shown)")
    visit.page.locator("#next").click()
    visit.page.wait_for_selector("#place:has-text('26')")
    second = shown_samples(visit)
    for move, expected in (
        ("back", run),
        ("back", pairs),
        ("back", run),
        ("back", whole),
        ("forward", run),
        ("forward", pairs),
        ("forward", run),
        ("forward", second),
    ):
        visit.page.evaluate(f"history.{move}()")
        visit.page.wait_for_function(
            "([said, ids]) => document.querySelector('#found').textContent === said &&"
            " [...document.querySelectorAll('.card code')].map((one) => one.textContent)"
            ".join() === ids.join()",
            arg=list(expected),
        )
    address = visit.page.url
    assert "#samples?" in address
    visit.page.goto("about:blank")
    visit.page.goto(address)
    assert shown_samples(visit) == second
    assert on_screen(visit, "#samples")
    assert visit.page.input_value("select[name=run]") == "0"
    visit.requests[:] = [report.as_uri()]


def test_the_address_keeps_the_open_sample(visit: Visit, report: Path) -> None:
    """On whichever page it stands, with its filters."""
    visit.samples()
    visit.choose("run", "counting/bernoulli, scripted/second")
    visit.page.fill("input[name=text]", "let me")
    visit.settled()
    visit.page.locator("#next").click()
    visit.page.wait_for_selector("#place:has-text('26')")
    link = visit.page.locator(".card code a").nth(7)
    name = link.inner_text()
    link.click()
    is_open = visit.page.locator(".card[aria-current=true]")
    assert name in is_open.inner_text()
    before, address = shown_samples(visit), visit.page.url
    visit.page.goto("about:blank")
    visit.page.goto(address)
    assert shown_samples(visit) == before
    assert name in is_open.inner_text()
    assert on_screen(visit, ".card[aria-current=true]")
    visit.page.locator("select[name=outcome]").select_option("0")
    visit.settled()
    assert is_open.count() == 0
    visit.page.evaluate("history.back()")
    is_open.wait_for()
    assert visit.page.url == address
    visit.requests[:] = [report.as_uri()]


def test_an_address_of_another_page_says_what_is_missing(visit: Visit, report: Path) -> None:
    """As text, whatever it is; the other filters apply."""
    visit.page.goto("about:blank")
    visit.page.goto(f"{report.as_uri()}#samples?run=<img src=x onerror=alert()>&outcome=refused")
    said, shown = shown_samples(visit)
    assert said.endswith(
        "the address names what this page does not have:"
        " run <img src=x onerror=alert()>, outcome refused"
    )
    assert len(shown) == 25
    visit.requests[:] = [report.as_uri()]


def test_filtered_samples_are_downloaded(visit: Visit, tmp_path: Path) -> None:
    """As CSV, whose cells `from_csv` reads and no spreadsheet runs, and as JSONL."""
    visit.samples()
    visit.choose("run", "counting/bernoulli, scripted/first")
    visit.choose("length", "10")
    rows = {}
    for kind in ("csv", "jsonl"):
        with visit.page.expect_download() as download:
            visit.page.get_by_role("button", name=f"Download {kind.upper()}").locator(
                "visible=true"
            ).last.click()
        assert download.value.suggested_filename == f"samples.{kind}"
        path = tmp_path / f"samples.{kind}"
        download.value.save_as(path)
        rows[kind] = path.read_text("utf-8")
    objects = [json.loads(line) for line in rows["jsonl"].split("\n")[:-1]]
    assert len(objects) == 2 * SAMPLES
    assert {one["model"] for one in objects} == {"scripted/first"}
    assert [one["reply"] for one in objects if one["index"] == 3] == [HOSTILE] * 2
    cells = list(csv.DictReader(io.StringIO(rows["csv"])))
    assert [{name: from_csv(cell) for name, cell in row.items()} for row in cells] == [
        {name: "" if value is None else str(value) for name, value in one.items()}
        for one in objects
    ]


def test_a_cell_is_guarded_as_in_python(visit: Visit) -> None:
    """The script writes the same cell as `csv_text`."""
    texts = [
        "=1+1",
        "'=1",
        "-",
        "-5",
        "a;=b",
        "a;=",
        "@x",
        "＝1",
        "\tx",
        "a\\n\n",
        HOSTILE,
        "\U0001f600\U000e0041\u2028",
        "",
        "+",
        "'",
        "a\r\n=b",
        "=\n",
    ]
    assert visit.page.evaluate("(texts) => texts.map(csvText)", texts) == [
        csv_text(text) for text in texts
    ]


def test_samples_are_turned_page_by_page(visit: Visit) -> None:
    """Twenty-five at a time."""
    visit.samples()
    first = visit.page.locator(".card code").all_inner_texts()
    assert len(first) == 25
    assert visit.page.locator("#previous").is_disabled()
    visit.page.locator("#next").click()
    visit.page.wait_for_selector("#place:has-text('26')")
    second = visit.page.locator(".card code").all_inner_texts()
    assert not set(first) & set(second)
    visit.page.locator("#previous").click()
    visit.page.wait_for_selector("#place:text-matches('^1–')")
    assert visit.page.locator(".card code").all_inner_texts() == first


def test_a_long_row_is_folded_and_not_cut(visit: Visit) -> None:
    """A button brings its middle back."""
    visit.samples()
    visit.choose("run", "counting/bernoulli, scripted/first")
    visit.choose("length", "500")
    visit.choose("condition", "separator=none, strategy=direct")
    prompt = visit.page.locator(".card pre").first
    short = prompt.inner_text()
    prompt.get_by_role("button").click()
    full = prompt.inner_text()
    assert "characters …" in short
    assert "characters …" not in full
    assert re.search(r"[01]{500}$", full.strip())


def test_folding_halves_no_character(visit: Visit) -> None:
    """Neither at the fold's beginning nor at its end; signs are made of what cannot be seen."""
    visit.drawn()
    said = visit.page.evaluate(
        "[0, 1].map((odd) => {"
        " const text = 'x'.repeat(odd) + '\\u{1F600}'.repeat(300);"
        " const parts = folded(text).map((node) => node.textContent);"
        " return [parts.length, parts.join('').isWellFormed()"
        "   && parts.every((part) => part.isWellFormed())]; })"
    )
    assert said == [[3, True], [3, True]]
    signs = visit.page.evaluate(
        "plainly('a\\u{AD}b\\u{61C}c\\u{E0041}').map((node) => node.textContent)"
    )
    assert signs == ["a", "U+00AD", "b", "U+061C", "c", "U+E0041"]


def test_a_run_without_an_answer_upsets_no_chart(unanswered: Path, visit: Visit) -> None:
    """What is drawn has rows, which the fixture holds; lengths in symbols are always known."""
    visit.page.goto(unanswered.as_uri())
    visit.drawn()
    assert visit.page.locator("input[value=symbols]").is_enabled()
    visit.requests.remove(unanswered.as_uri())


def test_the_answer_is_marked(visit: Visit) -> None:
    """In the reply, where it was read."""
    visit.samples()
    visit.choose("outcome", "correct")
    for card in visit.page.locator(".card").all():
        target = re.findall(r"target (\d+)", card.inner_text())[0]
        assert card.locator("mark").inner_text() == target
    visit.page.locator("#samples").scroll_into_view_if_needed()
    visit.keep("samples")


def test_a_hostile_reply_is_shown_and_not_run(visit: Visit) -> None:
    """Markup as text, characters that cannot be seen as their codes."""
    visit.samples()
    visit.page.fill("input[name=text]", "document.title")
    visit.settled()
    reply = visit.page.locator(".card pre", has_text="document.title").first
    said = reply.inner_text()
    assert "<script>document.title = 'run'</script><img src=x onerror=" in said
    assert "</script>{{ 7 * 7 }}" in said
    assert [sign.inner_text() for sign in reply.locator(".sign").all()] == ["U+202E", "U+0007"]
    assert reply.locator("script, img").count() == 0
    assert visit.page.title() == "How far do 2 models see? · Eyechart"


@pytest.mark.parametrize("visit", [{"viewport": PHONE, "has_touch": True}], indirect=True)
def test_a_phone_is_wide_enough(visit: Visit) -> None:
    """Nothing makes the page scroll sideways, from the title to the samples."""
    visit.drawn()
    visit.samples()
    for summary in visit.page.locator("summary").all():
        if not summary.locator("..").get_attribute("open"):
            summary.click()
    wide = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
    visit.page.evaluate("scrollTo(0, 0)")
    visit.keep("phone")


def background(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_dark_and_print_need_no_new_drawing(visit: Visit) -> None:
    """The colours change in place, those of the charts too."""
    visit.drawn()
    point = "getComputedStyle(document.querySelector('.chart .mark-line path')).stroke"
    light = background(visit.page), visit.page.evaluate(point)
    visit.page.emulate_media(color_scheme="dark")
    dark = background(visit.page), visit.page.evaluate(point)
    visit.keep("dark")
    assert dark[0] == "rgb(20, 23, 26)"
    assert dark[1] != light[1]
    visit.page.emulate_media(color_scheme="dark", media="print")
    assert (background(visit.page), visit.page.evaluate(point)) == light
    assert not visit.page.locator(".bar").is_visible()
    visit.keep("print", whole=True)


def test_everything_is_reached_by_keyboard(visit: Visit) -> None:
    """The first stop skips to the charts; then units, models, keys; each is seen to have focus."""
    visit.drawn()
    names = []
    for _ in range(24):
        visit.page.keyboard.press("Tab")
        names.append(
            visit.page.evaluate(
                "document.activeElement.name || document.activeElement.textContent.trim()"
            )
        )
        outline = visit.page.evaluate(
            "(() => { const at = document.activeElement;"
            " const shown = at.matches('.bar input') ? at.nextElementSibling : at;"
            " return getComputedStyle(shown).outlineStyle; })()"
        )
        assert outline == "solid", names[-1]
    assert names[0] == "Skip to the charts"
    assert names.index("unit") < names.index("model") < names.index("Accuracy")
    assert "none" in names
    visit.page.keyboard.press("Shift+Tab")
    visit.page.locator("input[name=unit]").first.focus()
    visit.page.keyboard.press("ArrowRight")
    visit.drawn()
    assert visit.page.locator("input[value=characters]").is_checked()


def test_of_many_charts_those_on_the_screen_are_drawn(
    chromium: str, browser: Browser, report: Path, tmp_path: Path
) -> None:
    """The others when they come near it; the first ones are drawn off the screen too."""
    assert chromium
    text = report.read_text("utf-8")
    # the policy has the hash of the script, which changes with it
    changed = re.sub(r"script-src [^;]+;", "script-src 'unsafe-inline';", text)
    many = tmp_path / "many.html"
    many.write_text(changed.replace("const FEW = 100;", "const FEW = 3;"), "utf-8")
    page = browser.new_context(offline=True, viewport={"width": 1280, "height": 900}).new_page()
    visit = Visit(page)
    page.goto(many.as_uri())
    visit.drawn()
    drawn = page.locator(".chart:has(svg)")
    assert 0 < drawn.count() < page.locator(".chart").count()
    last = page.locator(".chart").last
    assert last.locator("svg").count() == 0
    last.scroll_into_view_if_needed()
    last.locator("svg").first.wait_for(timeout=WAIT_MS)
    page.context.close()


def test_positions_have_a_heat_map(visit: Visit) -> None:
    """Its cells say their accuracy as numbers, and its legend says what the colour means."""
    visit.drawn()
    kind = visit.page.locator(".kind", has_text="Accuracy by position and length").first
    texts = kind.locator("svg").first.locator("text").all_text_contents()
    assert {"first", "last", "accuracy", "25%", "length (symbols)"} <= set(texts)
    assert len([text for text in texts if re.fullmatch(r"\d+", text)]) >= 2 * 3
    kind.scroll_into_view_if_needed()
    visit.keep("heat-map")


def test_controls_have_names(visit: Visit) -> None:
    """Every button, field and chart says what it is."""
    visit.drawn()
    visit.samples()
    nameless = visit.page.evaluate(
        "[...document.querySelectorAll('button, select, input, [role=img], [role=region]')]"
        ".filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length))"
        ".map((one) => one.outerHTML.slice(0, 200))"
    )
    assert nameless == []
