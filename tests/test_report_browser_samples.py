"""The samples of a page in a real Chromium: found, compared, kept in the address, and never run."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest

from eyechart.harness.analysis.tables.cells import csv_text, from_csv
from tests.report_browser import HOSTILE, SAMPLES, Visit, on_screen, shown_samples

pytestmark = pytest.mark.browser


def test_samples_are_filtered(visit: Visit) -> None:
    """By run, condition, length, outcome and text; the counts are those of the run."""
    visit.samples()
    whole = 2 * 2 * 7 * SAMPLES + 4 * 3 * SAMPLES
    assert visit.page.inner_text("#found") == f"{whole} of {whole} samples"
    assert visit.choose("run", "counting/bernoulli, scripted/second") == f"84 of {whole} samples"
    assert visit.choose("length", "500") == f"12 of {whole} samples"
    said = visit.choose("condition", "separator=comma, strategy=direct, order=question_first")
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
    visit.choose("condition", "separator=none, strategy=direct, order=question_first")
    said = visit.choose(
        "other", "that under separator=comma, strategy=direct, order=question_first"
    )
    shown, whole = re.findall(r"^(\d+) of (\d+) pairs", said)[0]
    cards = visit.page.locator(".card.pair")
    assert (cards.count(), int(whole)) == (int(shown), 7 * 5)
    assert int(shown) >= 4
    for card in cards.all():
        assert card.locator(".badge").all_inner_texts() == ["incorrect", "correct"]
        assert card.locator("h4").all_inner_texts().count("Prompt") == 2


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
    visit.choose("condition", "separator=none, strategy=direct, order=question_first")
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
    assert visit.page.title() == "How far are 2 models right? · Eyechart"
