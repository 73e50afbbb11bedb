"""The report's page in a real Chromium: it draws, filters and sorts, on a desk and on a phone."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report_browser import DESK, PHONE, WAIT_MS, Visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def test_every_chart_is_drawn(visit: Visit) -> None:
    """Without a word on the console and without a request, which the fixture holds."""
    visit.drawn()
    visit.unfold()
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
        style = chart.evaluate("node => getComputedStyle(node).minHeight")
        kept = visit.page.evaluate(
            """([text, node]) => {
                const probe = document.createElement("div");
                probe.style.height = text;
                node.append(probe);
                const { height } = probe.getBoundingClientRect();
                probe.remove();
                return height;
            }""",
            [style, chart.element_handle()],
        )
        box = chart.bounding_box()
        assert box is not None
        assert box["height"] <= kept + 1


_TITLES = {
    "characters": "characters of the prompt",
    "tokens": "tokens of the row, estimated from usage",
}


@pytest.mark.parametrize("unit", _TITLES)
def test_the_length_axis_changes_its_unit(visit: Visit, unit: str) -> None:
    """All charts of lengths, at a click; what is not known stays in symbols and says so."""
    visit.drawn()
    visit.page.locator(f"input[value={unit}]").check()
    visit.drawn()
    for model in ("scripted/first", "scripted/second"):
        panel = visit.page.locator(f"#counting-bernoulli .panel[data-model='{model}']")
        known = unit == "characters" or model == "scripted/first"
        title = f"length ({_TITLES[unit]})" if known else "length (symbols; tokens not known)"
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


def ranked(visit: Visit) -> list[tuple[str | None, str | None]]:
    """Task and model of each row of ranks that is shown."""
    rows = visit.page.locator(".standing tr[data-model]:visible").all()
    return [(row.get_attribute("data-task"), row.get_attribute("data-model")) for row in rows]


def test_ranks_are_filtered_and_the_address_keeps_it(visit: Visit, report: Path) -> None:
    """By task and by a part of the model's name; charts and details follow."""
    visit.drawn()
    page = visit.page
    whole = ranked(visit)
    assert len(whole) == 3
    page.fill("input[name=model]", "SECOND")
    assert ranked(visit) == [("counting/bernoulli", "scripted/second")]
    assert page.inner_text(".narrow output") == "1 of 3 rows"
    assert page.locator(".panel[data-model='scripted/first']:visible").count() == 0
    assert page.locator(".panel[data-model='scripted/second']:visible").count() > 0
    assert page.locator(".standing[data-task='copying/first_last']:visible").count() == 0
    page.fill("input[name=model]", "")
    page.select_option("select[name=task]", label="copying/first_last")
    assert ranked(visit) == [("copying/first_last", "scripted/first")]
    assert page.locator("article[data-task='counting/bernoulli']:visible").count() == 0
    page.fill("input[name=model]", "scripted")
    address = page.evaluate("location.href")
    assert address.endswith("#ranks?task=copying%2Ffirst_last&model=scripted")
    page.goto("about:blank")
    page.goto(address)
    assert ranked(visit) == [("copying/first_last", "scripted/first")]
    assert page.input_value("input[name=model]") == "scripted"
    page.evaluate("location.hash = '#ranks?task=<b>&adaptive=hide'")
    page.wait_for_function("document.querySelector('select[name=task]').value === ''")
    assert ranked(visit) == whole
    visit.requests[:] = [report.as_uri()]


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
    visit.drawn()
    visit.unfold()
    table = visit.page.locator("details.listed", has_text="Cells: counting/bernoulli").first
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
    visit.drawn()
    visit.unfold()
    table = visit.page.locator("details.listed", has_text="Cells: counting/bernoulli").first
    with visit.page.expect_download() as download:
        table.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "counting-bernoulli-cells.csv"
    path = tmp_path / "cells.csv"
    download.value.save_as(path)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(rows) == table.locator("tbody tr").count() == 28
    assert {row["model"] for row in rows} == {"scripted/first", "scripted/second"}


def test_a_run_without_an_answer_upsets_no_chart(unanswered: Path, visit: Visit) -> None:
    """What is drawn has rows, which the fixture holds; lengths in symbols are always known."""
    visit.page.goto(unanswered.as_uri())
    visit.drawn()
    assert visit.page.locator("input[value=length]").is_enabled()
    visit.requests.remove(unanswered.as_uri())


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


@pytest.mark.parametrize(
    "visit", [{"viewport": PHONE}, {"viewport": DESK}], indirect=True, ids=["phone", "desk"]
)
def test_long_texts_keep_the_page_readable(visit: Visit, long_names: Path) -> None:
    """Names of models wrap; a title, a legend and a chart that are too high are scrolled alone."""
    visit.page.goto(long_names.as_uri())
    visit.requests.remove(long_names.as_uri())
    visit.drawn()
    assert visit.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    visit.page.evaluate(
        """() => {
          document.querySelector(".task .title").textContent = "long title ".repeat(950);
          const legend = document.querySelector("#tasks .legend");
          for (let i = 0; i < 500; i++) legend.append(legend.lastElementChild.cloneNode(true));
          document.querySelector("#tasks .chart").append(Object.assign(
            document.createElement("p"), { style: "height: 9000px" }));
        }"""
    )
    for selector in (".task .title", "#tasks .legend", "#tasks .chart"):
        box = visit.page.locator(selector).first.bounding_box()
        assert box is not None
        assert box["height"] <= 1000, selector
    visit.keep("long")


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
    assert names.index("unit") < names.index("shown") < names.index("Accuracy")
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
    visit.unfold()
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
    visit.unfold()
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
