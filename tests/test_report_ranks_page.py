"""The page of a leaderboard's file alone, and the published one of all models."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.analysis.length.at_length import pieces_of
from eyechart.harness.analysis.ranking.cost_at import CostAt, cost_at
from eyechart.harness.analysis.ranking.leaderboard import merge, run_rows
from eyechart.harness.analysis.ranking.leaderboard_file import (
    Row,
    read_rows,
    right_at_lengths,
    write_leaderboard,
)
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.plan.cost import Spent
from eyechart.harness.report.charts.scale import Scale
from eyechart.harness.report.page.assets import linked
from eyechart.harness.report.page.section import sections
from eyechart.harness.report.ranking.board import by_test_of, groups_of, right_at, table_of
from eyechart.harness.report.ranking.chooser import (
    Way,
    chances,
    data_of,
    listed,
    unanswered,
    ways_of,
)
from eyechart.harness.report.ranking.rank_table import RankTable, rank_tables
from eyechart.harness.report.ranking.ranks_page import Words, ranks_markdown, ranks_page, reading
from eyechart.harness.spec.columns import COST, COST_A_REPLY, COST_AT, KINDS
from results.publish import AT, FOLDER, UNITS, made_from, usage_of
from results.words import words
from tests.conftest import Lab, right
from tests.test_results_recorded import RECORDED

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MODELS = FOLDER / "models.csv"
DEAR = "claude-sonnet-4-5-20250929"
"""Its replies have 138 tokens in the mean at 32 items, and 5 at 256."""


def published() -> list[Row]:
    """The rows of the published file."""
    return read_rows(MODELS)


class TestPublished:
    """`results/models.*`."""

    def test_page_and_table_are_those_of_the_file(self) -> None:
        """Byte for byte, so that no number differs between them."""
        rows = published()
        assert ranks_page(rows, UNITS, words(rows)) == (FOLDER / "models.html").read_text("utf-8")
        assert ranks_markdown(rows, UNITS, 200, words(rows)) in (FOLDER / "models.md").read_text(
            "utf-8"
        )

    def test_a_capacity_that_is_not_the_published_one_is_named(self) -> None:
        """With both numbers, and the reason."""
        told = "352 published, 320 here", "56 published, 32 here", "32 published, 0 here"
        text = (FOLDER / "models.md").read_text("utf-8")
        assert "Our capacity differs from the published one for 3 models: " in text
        assert all(f"({one})" in text for one in told)

    def test_factors_of_lengths_are_those_of_the_tables(self) -> None:
        """Of models asked again, and of a list written otherwise."""
        first = {row["model"]: row for row in published() if row["kind"] == "recorded"}
        of_models: dict[str, dict[str, float]] = {}
        with (FOLDER / "recorded" / "writings.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                writing = f"{row['item']}, {row['delimiter']}"
                of_models.setdefault(row["model"], {})[writing] = float(row["effective_length"])
        again = [
            (float(first[model]["effective_length"]), of["a, comma"])
            for model, of in of_models.items()
        ]
        factors = [max(*pair) / min(*pair) for pair in again]
        otherwise = [max(of.values()) / min(of.values()) for of in of_models.values()]
        (lede,) = words(published()).lede
        assert f"({len(again)} models)." in lede
        assert f"a factor of up to {max(factors):.1f}; " in lede
        assert f"of up to {max(otherwise):.1f} (" in lede

    @pytest.mark.parametrize("name", ["models.html", "models.md"])
    def test_names_and_prices_are_dated(self, name: str) -> None:
        """And nothing is said of whether a model is still sold."""
        text = (FOLDER / name).read_text("utf-8")
        note = words(published()).beside
        assert "(2026-04)" in note
        assert all(row["prices_of"][:10] in note for row in published())
        assert text.count(note) == 1

    @pytest.mark.parametrize("name", ["models.html", "models.md"])
    def test_links_lead_to_files_and_headings(self, name: str) -> None:
        """From the section on what counting predicts."""
        text = (FOLDER / name).read_text("utf-8")
        links = re.findall(r"\]\((\w+/[^)#]+)#([^)]+)\)|href=\"(\w+/[^#\"]+)#([^\"]+)", text)
        assert len(links) == 2
        for found in links:
            path, heading = filter(None, found)
            titles = re.findall(r"(?m)^#+ (.+)$", (FOLDER / path).read_text("utf-8"))
            assert heading in [
                re.sub(r"[^\w-]", "", one.lower().replace(" ", "-")) for one in titles
            ]

    def test_every_model_is_there(self) -> None:
        """125 recorded ones, the published capacities of 126, and what was asked here."""
        rows = published()
        assert {row["kind"] for row in rows} == set(KINDS)
        recorded = [row for row in rows if row["kind"] == "recorded"]
        assert len(recorded) == 125
        reported = {row["model"] for row in rows if row["kind"] == "reported" and row["capacity"]}
        assert len(reported) == 126
        assert {row["model"] for row in recorded} < reported
        assert right_at_lengths(rows) == [*AT]
        assert all(row["vendor"] for row in recorded)

    def test_no_row_contradicts_itself(self) -> None:
        """A model that sees to 515 reaches the threshold at 500 with one half or more."""
        checked = 0
        for row in published():
            if not row["effective_length"] or row["effective_length_bound"]:
                continue
            for length in AT:
                reaches = row[f"reaches_at_{length}"]
                if reaches and not row[f"reaches_at_{length}_bound"]:
                    is_seen = float(row["effective_length"]) >= length
                    assert (float(reaches) >= 0.5) == is_seen, (row["model"], length)
                    checked += 1
        assert checked > 100

    def test_kinds_are_never_in_one_table(self) -> None:
        """Nor are sources of reported figures."""
        for group in groups_of(published()):
            assert {row["kind"] for row in group.rows} == {group.kind}
            if group.kind == "reported":
                assert {row["source"] for row in group.rows} == {group.source}

    def test_it_is_small(self) -> None:
        """A phone loads it in a moment; the page of runs has 2 MB."""
        assert len((FOLDER / "models.html").read_bytes()) < 250_000

    @pytest.mark.published
    @pytest.mark.skipif(not RECORDED.is_file(), reason="the recorded replies are not committed")
    def test_it_is_what_the_replies_give(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All columns but those of prices, which are those of the day."""
        monkeypatch.setattr(os, "fsync", lambda _: None)  # runs that nobody keeps
        made_from(RECORDED, tmp_path)

        prices = {*COST, COST_A_REPLY, "software"}
        prices |= {name.format(at) for name in COST_AT for at in AT}
        made = read_rows(tmp_path / "models.csv")
        assert len(made) == len(published())
        differing = [
            (row["model"], name, row[name], other[name])
            for row, other in zip(made, published(), strict=True)
            for name in row.keys() | other.keys()
            if name not in prices and not same(row[name], other[name])
        ]
        assert differing == []


def same(one: str, other: str) -> bool:
    """Whether two cells are equal, but for the last digits of a number: processors differ."""
    try:
        return float(one) == pytest.approx(float(other), rel=1e-4, abs=2e-6)
    except ValueError:
        return one == other


def board(lab: Lab, far: int = 5, near: int = 3, **more: Any) -> list[Path]:
    """Two models that see differently far."""
    folders = []
    for name, most in (("far", far), ("near", near)):
        wanted = lab.wanted(model=f"scripted/{name}", **({"samples": 8} | more))

        def answers(request: object, most: int = most) -> str:
            text = right(request)  # type: ignore[arg-type]
            number = int(re.findall(r"\d+", text)[-1])
            return text if number <= most else text.replace(str(number), "999")

        lab.asked(wanted, answers)
        folders.append(wanted.folder)
    return folders


def test_rows_say_what_runs_say(lab: Lab) -> None:
    """A line made from the file has the texts, places and probabilities of one made from a run."""
    folders = board(lab, 60, 15, lengths=[10, 20, 40, 80], samples=12)
    path = lab.folder / "board.csv"
    lab.bench("leaderboard", *folders, "-o", path, "--at", "20,30,900")
    rows = read_rows(path)
    (section,) = sections([*map(read_run, folders)])
    at = (20, 30, 900)
    (of_runs,) = rank_tables([section], at)
    label = section.standing.condition.label
    (group,) = groups_of([row for row in rows if row["condition"] == label])
    of_file = table_of(group, at, section.unit)
    assert of_file.judging == of_runs.judging
    heads_of_runs = [column.head for column in of_runs.columns]
    assert heads_of_runs[2:5] == ["right to (85 %)", "near (5 %)", "apart (20 %)"]
    own = [row[1:] for row in of_runs.rows]  # the file has no ranks, but what the tests say
    cells = {(column.name, column.at): column.cells for column in of_file.columns}
    assert [
        *zip(*(cells[column.name, column.at] for column in of_runs.columns[1:]), strict=True)
    ] == own
    heads = {column.head: column.cells for column in of_file.columns}
    assert "apart" in heads  # the file does not say what the answers of a task are
    assert heads["ahead / open / behind"] == ["1 / 0 / 0", "0 / 0 / 1"]
    assert of_file.suited == of_runs.suited
    for line, other in zip(of_file.lines, of_runs.lines, strict=True):
        assert line.length == other.length
        for one in at:
            found, expected = line.right_at[one], other.right_at[one]
            assert (found.verdict, found.bound) == (expected.verdict, expected.bound)


def test_the_page_of_ranks_has_all_rows(lab: Lab) -> None:
    """Also those whose runs are elsewhere, which have no standing; and no samples."""
    folders = board(lab)
    path = lab.folder / "board.csv"
    lab.bench("leaderboard", folders[0], "-o", path, "--at", "4")
    done = lab.bench("leaderboard", folders[1], "-o", path, "--at", "4", "--ranks-only")
    assert "have no rank: their runs are not here" in done.err
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    for name in ("scripted/far", "scripted/near"):
        assert name in page
    assert "vegaEmbed" not in page
    assert "Final answer" not in page
    standing = {row["model"]: by_test_of(row) for row in read_rows(path) if row["default"]}
    assert standing == {"scripted/far": None, "scripted/near": (0, 0, 0)}


def test_what_is_known_of_a_model_stays(lab: Lab) -> None:
    """Where a newer run replaces the row."""
    (folder, _) = board(lab)
    rows, _ = run_rows(read_run(folder))
    known = [row | {"vendor": "us", "parameters_billion": "7"} for row in rows]
    newer, _ = run_rows(read_run(folder), (4,))
    for row in newer:
        row["date"] = row["date"].replace("20", "20", 1)
    merged = merge(newer, known).rows
    assert {(row["vendor"], row["parameters_billion"]) for row in merged} == {("us", "7")}
    assert all(right_at(row, 4) is not None for row in merged)


def line_of(*lengths: int) -> list[Spent]:
    """Replies whose prompts cost 2 dollars a symbol, and 1 dollar each."""
    return [Spent(length, 2.0 * length, 1.0) for length in lengths]


class TestCostAt:
    """What a reply costs at a length."""

    def test_between_rows_it_lies_on_the_line_of_those_near(self) -> None:
        """Rows further than a factor of two do not count."""
        dear = [Spent(101, 9e9, 0), Spent(24, 9e9, 0)]
        found = cost_at([*line_of(25, 40, 60, 100), *dear], 50)
        assert found is not None
        assert (round(found.dollars, 6), found.sign) == (101, "=")

    def test_between_lines_far_apart_it_lies_on_their_line(self) -> None:
        """None of them is near."""
        found = cost_at(line_of(10, 12, 100, 120), 40)
        assert found is not None
        assert (round(found.dollars, 6), found.sign) == (81, "=")

    @pytest.mark.parametrize("length", [10, 900])
    def test_where_replies_shrink_with_the_row_there_is_no_bound(self, length: int) -> None:
        """The nearest rows have replies as different as those of a model that thinks."""
        replies = {20: 90.0, 24: 20.0, 60: 10.0, 100: 9.0, 180: 1.0, 200: 0.1}
        assert cost_at([Spent(row, 1.0, reply) for row, reply in replies.items()], length) is None

    @pytest.mark.parametrize(("length", "sign"), [(400, ">"), (10, "<")])
    def test_outside_it_is_a_bound_where_replies_differ(self, length: int, sign: str) -> None:
        """The prompt grows on; replies are those to the nearest rows, and grow with the row."""
        same = line_of(40, 50, 80, 100)
        alike = cost_at(same, length)
        assert alike is not None
        assert (round(alike.dollars, 6), alike.sign) == (2 * length + 1, "=")
        thinks = [one._replace(reply=one.length**2) for one in same]
        near = thinks[1:] if sign == ">" else thinks[:3]
        mean = sum(one.reply for one in near) / 3
        found = cost_at(thinks, length)
        assert found is not None
        assert (round(found.dollars, 6), found.sign) == (2 * length + mean, sign)

    def test_of_one_length_nothing_is_known(self) -> None:
        """Nor of none."""
        assert cost_at(line_of(50, 50), 50) is None
        assert cost_at([], 50) is None

    def test_texts(self) -> None:
        """A bound has its sign."""
        assert CostAt(0.0023).text() == "$2.30"
        assert CostAt(0.0023, ">").text(100) == "> $0.23"


def test_published_prices_are_those_of_each_length() -> None:
    """They grow with the row, but of one model that writes longer replies to shorter rows."""
    rows = [row for row in published() if row["kind"] == "recorded"]
    for row in rows:
        known = [float(row[name]) for at in AT if row[name := COST_AT[0].format(at)]]
        is_dear = row["model"] == DEAR
        assert len(known) in ((4,) if is_dear else (0, len(AT)))
        if not any(row[COST_AT[1].format(at)] for at in AT):
            assert (known == sorted(known)) != is_dear, row["model"]
    assert sum(bool(row[COST_AT[0].format(200)]) for row in rows) > 80


def test_thinking_is_paid_for() -> None:
    """Google counts it beside the tokens of the reply, others among them."""
    row = {"input_tokens": 84, "output_tokens": 2, "reasoning_tokens": 293, "api": "google_genai"}
    used = usage_of(row)
    assert used is not None
    assert (used.output_tokens, used.thought_tokens) == (295, 293)
    assert usage_of(row | {"output_tokens": 295, "api": "responses"}) == used
    assert usage_of(row | {"output_tokens": None}) is None


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("kind", "guessed", "kind is not asked or recorded or reported: 'guessed'"),
        ("parameters_billion", "many", "parameters_billion is no number: 'many'"),
        ("right_at_4", "often", "right_at_4 is no number: 'often'"),
        ("reaches_at_4_bound", "=", "reaches_at_4_bound is not empty or < or >: '='"),
        ("tested_against", "1.5", "tested_against is no whole number: '1.5'"),
    ],
)
def test_a_wrong_value_is_one_line(lab: Lab, column: str, value: str, said: str) -> None:
    """With its line and its column."""
    (folder, _) = board(lab)
    path = lab.folder / "board.csv"
    rows, _ = run_rows(read_run(folder), (4,))
    rows[0][column] = value
    write_leaderboard(path, merge(rows))
    lab.bench("leaderboard", folder, "-o", path).one_line(2, said)


def test_hostile_names_are_text(lab: Lab) -> None:
    """In the page and in Markdown."""
    (folder, _) = board(lab)
    rows, _ = run_rows(read_run(folder))
    name = "<img src=x>|\u202e"
    for row in rows:
        row |= {"model": name, "vendor": name, "source": name}
    page = ranks_page(rows, {}, Words(title=name))
    assert "<img src=x>" not in page
    assert "\u202e" not in page
    table = ranks_markdown(rows, {}, 0)
    assert "<img" not in table
    assert "\u202e" not in table


@pytest.mark.parametrize("lengths", [[100.0], [20.0, 4096.0], [1.0, 1e6]])
def test_a_scale_has_ticks(lengths: list[float]) -> None:
    """At least two, whatever the range, all of them on it."""
    scale = Scale.over(lengths)
    assert len(scale.ticks) >= 2
    assert all(0 <= percent <= 100 for _, percent in scale.ticks)
    assert all(0 < scale.percent(length) < 100 for length in lengths)


class TestChooser:
    """The first screen of the published page."""

    @staticmethod
    @cache
    def table() -> RankTable:
        """That of the recorded models."""
        (group, *_) = groups_of(published())
        return table_of(group, AT, "items")

    def test_what_passes_is_sorted_by_price(self) -> None:
        """Only what is sure, with a price that is known."""
        for way in ways_of(self.table()):
            found = listed(chances(self.table(), way))
            assert {one.verdict for one in found} <= {"yes"}
            prices = [one.cost.dollars if one.cost else math.inf for one in found]
            assert prices == sorted(prices)

    def test_all_pieces_are_paid_for(self) -> None:
        """Four rows of 50 cost four times what one costs, and none of them is asked surer."""
        at_once = {one.line.model: one for one in chances(self.table(), Way(50, 1))}
        for one in chances(self.table(), Way(200, 4)):
            single = at_once[one.line.model]
            assert (one.cost is None) == (single.cost is None)
            if one.cost and single.cost:
                assert one.cost.dollars == pytest.approx(4 * single.cost.dollars)
            if one.found and single.found and single.found.reaches is not None:
                assert (one.found.reaches or 0) <= single.found.reaches

    def test_longer_replies_to_shorter_rows_are_said_beside_the_price(self) -> None:
        """On the page and in Markdown, of the one model whose price falls with the length."""
        data = json.loads(data_of([("t", self.table())], ["", ""], "lists"))
        (dear,) = filter(None, (one["dear"] for one in data["groups"][0]["models"]))
        assert dear == f"{DEAR} writes longer replies to shorter lists, so these can cost more."
        assert str(self.table().dear[-1]) == dear.replace("lists", "rows")

    def test_what_passes_at_the_shortest_row_asked_passes_below_and_not_in_pieces(self) -> None:
        """At 20 it is the verdict at 25; pieces of 20 are unknown, and the page says why."""
        below = [one.found for one in chances(self.table(), Way(20, 1)) if one.found]
        assert {found.bound for found in below} == {">"}
        assert any(found.verdict == "yes" for found in below)
        assert not any(way.piece == 20 for way in ways_of(self.table()) if way.pieces > 1)
        said = dict(reading(published()))["in pieces"]
        assert "Below the rows that were asked, one row at once is judged by the shortest" in said

    def test_the_data_cannot_end_its_element(self) -> None:
        """Whatever a model is called."""
        line = replace(self.table().lines[0], model="</script><b>")
        table = replace(self.table(), lines=[line, *self.table().lines[1:]])
        assert "<" not in data_of([("t", table)], ["", ""], "rows")

    def test_pieces_that_nothing_is_known_of_have_a_reason(self) -> None:
        """No row as short as 20 was asked: the shortest had 25 items."""
        why = "no row as short as 20 was asked, and each piece needs "
        table = self.table()
        ways = Way(100, 5), Way(200, 10)
        assert unanswered(table) == [(ways[0], f"{why}97 %"), (ways[1], f"{why}98.5 %")]
        assert f"10 × 20 is not known: {why}98.5 %." in ranks_markdown(published(), UNITS, 200)
        shorter = replace(table.lines[0].right_at[20], bound="=")
        line = replace(table.lines[0], right_at={20: shorter})
        others = {reason for _, reason in unanswered(replace(table, lines=[line]))}
        assert not any(reason.startswith(why) for reason in others)

    def test_a_limit_is_compared_with_the_price_that_is_shown(self) -> None:
        """$0.01 is at most 0.01, though more digits would say 0.0104."""
        data = json.loads(data_of([("t", self.table())], ["", ""], "rows"))
        shown = [
            (dollars, float(text.strip("<> $").replace(",", "")))
            for way in data["groups"][0]["ways"]
            for _, _, _, dollars, text in way["models"]
            if dollars is not None
        ]
        assert len(shown) > 500
        assert all(one == other for one, other in shown)


def test_links_of_a_paragraph() -> None:
    """All else is text."""
    assert linked("a <b> [c & d](e.md#f), [g]") == (
        'a &lt;b&gt; <a href="e.md#f">c &amp; d</a>, [g]'
    )
    assert linked('[a](b"onclick=x)') == '<a href="b&#34;onclick=x">a</a>'


def test_pieces() -> None:
    """Each length that is 2 to 10 times another one."""
    assert pieces_of((20, 50, 200)) == [(200, 4), (200, 10)]
    assert pieces_of((20, 30, 900)) == []


@pytest.mark.browser
def test_the_published_page_answers_on_the_first_screen(browser: Browser) -> None:
    """At 1400 and at 390 pixels: the answer as a list, at the chosen length; nothing is cut off."""
    for width, height in ((1400, 900), (390, 844)):
        page = browser.new_context(
            viewport={"width": width, "height": height}, offline=True
        ).new_page()
        page.goto((FOLDER / "models.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator(".chosen ol").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < height
        first = page.locator(".chosen li").first.inner_text()
        page.select_option("select[name=at]", "50")
        assert "list of 50 items" in page.title()
        assert page.locator(".chosen li").first.inner_text() != first
        page.fill("[name=most]", "0.2")
        prices = page.locator(".chosen .price").all_inner_texts()
        assert prices
        assert all(float(text.strip("<> $")) <= 0.2 for text in prices)
        page.select_option("select[name=vendor]", "Anthropic")
        names = page.locator(".chosen li .name").all_inner_texts()
        assert names
        assert all(name.startswith("claude") for name in names)
        page.reload()
        assert "list of 50 items" in page.title()
        assert page.locator(".chosen li .name").all_inner_texts() == names
        page.locator(".all summary").click()
        page.locator(".all tbody tr").nth(len(names) - 1).wait_for()
        page.locator(".chosen li .name").first.click()
        assert page.locator(".with").inner_text().startswith(names[0])


@pytest.mark.browser
def test_the_published_page_says_what_pieces_come_to(browser: Browser) -> None:
    """The address keeps the way that was chosen."""
    page = browser.new_context(offline=True).new_page()
    page.goto((FOLDER / "models.html").as_uri() + "#show?at=200&way=4")
    assert page.locator("[name=way]:checked").get_attribute("value") == "4"
    assert "all 4 must be right" in page.locator(".chosen").inner_text()
    page.locator(".ways label").first.click()
    assert "way=" not in page.evaluate("location.hash")
    page.select_option("select[name=at]", "20")
    assert page.locator(".ways").is_hidden()
    page.goto((FOLDER / "models.html").as_uri() + "#show?at=200&way=4")
    page.locator(".all summary").click()
    page.locator(".all th", has_text="a piece right").wait_for()
    assert "200 items in 4 pieces of 50 items, with the price of all" in page.inner_text(".all")


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 390])
def test_the_picture_is_drawn_for_the_models_that_it_shows(browser: Browser, width: int) -> None:
    """No number of the list lies over another, no text is cut off, and few models fill it."""
    page = browser.new_context(viewport={"width": width, "height": 844}).new_page()
    for length in (20, 50, 100, 200, 500):
        page.goto((FOLDER / "models.html").as_uri() + f"#show?at={length}")
        centres = page.eval_on_selector_all(
            ".picture circle.badge",
            "all => all.map((one) => [+one.getAttribute('cx'), +one.getAttribute('cy')])",
        )
        assert len(centres) == page.locator(".chosen li").count()
        assert all(math.dist(*pair) > 16 for pair in combinations(centres, 2))
        frame = page.locator(".picture svg").bounding_box()
        assert frame is not None
        for text in page.locator(".picture text").all():
            box = text.bounding_box()
            assert box is not None
            assert frame["x"] <= box["x"]
            assert box["x"] + box["width"] <= frame["x"] + frame["width"]

    def share() -> float:
        """Of the height of the picture, how much the dots take."""
        dots = page.eval_on_selector_all(
            ".mark circle", "all => all.map((one) => +one.getAttribute('cy'))"
        )
        height = float(page.get_attribute(".picture svg", "height") or 0)
        return float(max(dots) - min(dots)) / height

    page.goto((FOLDER / "models.html").as_uri() + "#show?at=200&passes=on&most=3")
    assert page.locator(".mark").count() < 6
    assert share() > 0.2


@pytest.mark.browser
@pytest.mark.parametrize(
    ("asked", "length", "said"),
    [
        (
            "at=150",
            "200",
            "“150” is not one of the lengths 20, 50, 100, 200, 500; shown is 200, the",
        ),
        ("at=1000", "500", "shown is 500, the nearest."),
        ("at=abc", "200", "shown is 200."),
        ("at=200&way=10", "200", "and each piece needs 98.5 %. Shown is all at once."),
        ("at=200&way=7", "200", "pieces are as long as a length here, and at most 10"),
        ("at=100&way=2", "100", ""),
    ],
)
def test_an_address_that_asks_for_what_is_not_there(
    browser: Browser, asked: str, length: str, said: str
) -> None:
    """Says so, until its reader chooses."""
    page = browser.new_context(offline=True).new_page()
    page.goto((FOLDER / "models.html").as_uri() + f"#show?{asked}")
    notice = page.locator(".choose .notice")
    assert page.input_value("[name=at]") == length
    assert said in notice.inner_text()
    assert notice.is_visible() == bool(said)
    assert page.locator("[name=way]:checked").get_attribute("value") == ("1" if said else "2")
    page.select_option("[name=at]", "200")
    assert notice.is_hidden()
    closed = page.locator(".ways label", has=page.locator("input:disabled"))
    assert closed.inner_text().split("\n") == [
        "in pieces, 10 × 20",
        "no row as short as 20 was asked, and each piece needs 98.5 %",
    ]


@pytest.mark.browser
def test_a_filter_has_an_answer(browser: Browser) -> None:
    """It names the filter; without a model that passes there is no picture, and no hint on it."""
    page = browser.new_context(offline=True).new_page()
    address = (FOLDER / "models.html").as_uri() + "#show?at=200"
    page.goto(address + "&most=1")
    said = page.locator(".chosen .said b")
    none = r"None of the \d+ models that cost at most \$1 per 1,000 lists surely passes"
    assert re.fullmatch(none, said.inner_text())
    assert page.locator(".picture").is_visible()
    page.check("[name=passes]")
    assert page.locator(".picture").is_hidden()
    assert page.locator(".all").is_hidden()
    page.fill("[name=most]", "")
    assert page.locator(".with").is_visible()
    page.uncheck("[name=passes]")
    page.select_option("[name=vendor]", "Anthropic")
    page.fill("[name=most]", "0.2")
    assert said.inner_text() == (
        "The one model of Anthropic that costs at most $0.2 per 1,000 lists does not surely pass"
    )
    page.check("[name=open]")
    assert said.inner_text() == (
        "There are no models of Anthropic with open weights that cost at most $0.2 per 1,000 lists"
    )


@pytest.mark.browser
def test_a_negative_price_is_no_limit(browser: Browser) -> None:
    """Whether it is typed or in the address, which does not keep it."""
    page = browser.new_context(offline=True).new_page()
    page.goto((FOLDER / "models.html").as_uri() + "#show?at=200&most=-3")
    assert page.input_value("[name=most]") == ""
    assert "of 125 models surely pass" in page.inner_text(".chosen")
    page.fill("[name=most]", "-2")
    assert "of 125 models surely pass" in page.inner_text(".chosen")
    assert "most" not in page.evaluate("location.hash")


@pytest.mark.browser
def test_names_are_whole_on_a_phone(browser: Browser) -> None:
    """With the vendor that OpenRouter puts before them."""
    page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.goto((FOLDER / "models.html").as_uri() + "#show?at=50")
    assert "google/gemini-2.0-flash-lite-001" in page.inner_text(".chosen")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.browser
def test_long_lists_are_cut_and_tables_are_not(browser: Browser) -> None:
    """Five names of open models, five neighbours of a picked one, and all columns of a phone."""
    page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.goto((FOLDER / "models.html").as_uri() + "#show?at=200&way=4&with=gpt-5.4")
    names = page.locator(".chosen .rest button:visible")
    assert names.count() == 5
    page.locator(".chosen summary", has_text="and 21 more").click()
    assert names.count() == 26
    assert re.search(
        r"69 overlap and are not told apart, the nearest (\S+ [^,]+, ){4}\S+ [^,]+\.$",
        page.inner_text(".with"),
    )
    page.locator(".all summary").click()
    for length in ("20", "50", "100", "200", "500"):
        page.select_option("[name=at]", length)
        scrolled = page.locator(".all .scroll")
        assert scrolled.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    assert page.locator(".all th.length").is_visible()


@pytest.mark.browser
@pytest.mark.parametrize(("most", "is_there"), [("3.16", False), ("3.17", False), ("3.18", True)])
def test_more_than_a_price_is_not_at_most_that_price(
    browser: Browser, most: str, is_there: bool
) -> None:
    """The replies of kimi-k2.5 cost > $3.17 at 200 items."""
    page = browser.new_context(offline=True).new_page()
    page.goto((FOLDER / "models.html").as_uri() + "#show?at=200")
    (price,) = (
        text.split("; ")[1]
        for text in page.locator(".mark title").all_text_contents()
        if text.startswith("moonshotai/kimi-k2.5:")
    )
    assert price.startswith("> $3.17 ")
    page.fill("[name=most]", most)
    assert page.locator(".chosen button", has_text="kimi-k2.5").count() == is_there
