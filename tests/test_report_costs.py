"""Effective length against tokens and dollars: what is averaged, and what is left out."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import vl_convert

import eyechart
from eyechart.harness.analysis.ranking.leaderboard import merge, run_rows
from eyechart.harness.analysis.ranking.leaderboard_file import read_rows
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.tables import effective_length_table
from eyechart.harness.cli.tables.run_tables import print_table
from eyechart.harness.report.charts.files import complete_spec, write_charts
from eyechart.harness.report.page.costs import cost_figures
from eyechart.harness.report.page.origin import origin
from eyechart.harness.report.page.page_tables import estimates_table
from eyechart.harness.report.page.section import Section, sections
from eyechart.harness.report.ranking.readme import markdown
from eyechart.harness.spec.columns import COST_A_REPLY
from eyechart.harness.spec.dollars import dollars_text
from eyechart.providers.base import Reply, Request, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import right
from tests.vega_lite import check_valid

if TYPE_CHECKING:
    from tests.conftest import Lab

MODELS = ("openai/gpt-4o", "openai/gpt-4.1", "scripted/free")


def reply(request: Request, *, output: int) -> Reply:
    """Right to length 4; a hundred tokens for the prompt."""
    length = int(re.findall(r"length=(\d+)", request.sample_id)[0])
    text = right(request) if length <= 4 else "Final answer: 100"
    return Reply(text, usage=Usage(100, output) if output else None)


def run(lab: Lab, model: str, output: int, lengths: list[int]) -> Path:
    wanted = lab.wanted(model=model, lengths=lengths, samples=10, axes={"separator": ["none"]})
    lab.run(wanted, ScriptedProvider(partial(reply, output=output)))
    return wanted.folder


def section_of(folders: list[Path]) -> Section:
    (section,) = sections([read_run(folder) for folder in folders])
    return section


@pytest.fixture
def three(lab: Lab) -> Section:
    """Two models with prices and one without; they have two lengths in common."""
    lengths = ([2, 4, 8], [2, 4, 8, 16], [2, 4])
    outputs = (10, 30, 50)
    return section_of([run(lab, *each) for each in zip(MODELS, outputs, lengths, strict=True)])


def test_a_model_is_a_point(three: Section, tmp_path: Path) -> None:
    """Tokens where replies have usage, dollars only where prices are known."""
    tokens, dollars = cost_figures(three)
    assert (tokens.kind, dollars.kind) == ("tokens", "dollars")
    (panel,) = tokens.panels
    rows = panel.data["models"]
    assert [(row["model"], row["x"], row["lengths"]) for row in rows] == [
        (model, 100 + output, 2) for model, output in zip(MODELS, (10, 30, 50), strict=True)
    ]
    assert all(2 <= row["y_low"] <= row["y"] <= row["y_high"] for row in rows)
    (panel,) = dollars.panels
    rows = panel.data["models"]
    # dollars per million tokens: 2.5 and 10, 2 and 8
    expected = [1000 * (100 * 2.5 + 10 * 10) / 1e6, 1000 * (100 * 2 + 30 * 8) / 1e6]
    assert [row["model"] for row in rows] == list(MODELS[:2])
    assert [row["x"] for row in rows] == pytest.approx(expected)
    assert re.fullmatch(
        r"Dollars are at the prices of 20\d\d-\d\d-\d\d \(genai-prices.*\)\.", dollars.note
    )
    for figure in (tokens, dollars):
        spec = complete_spec("lab/ones", figure, figure.panels[0])
        check_valid(spec)
        drawn = vl_convert.vegalite_to_svg(spec)
        assert "openai/gpt-4o" in drawn
        assert "NaN" not in drawn
    written = write_charts([("lab/ones", [tokens])], tmp_path, ["svg"])
    assert written == [tmp_path / "lab-ones" / "tokens.svg"]


def test_the_interval_is_that_of_the_mean(lab: Lab) -> None:
    """From the samples' variances at each length."""

    def varied(request: Request) -> Reply:
        odd = int(re.findall(r"index=(\d+)", request.sample_id)[0]) % 2
        return Reply(right(request), usage=Usage(100, 10 + 20 * odd))

    folders = []
    for model in ("scripted/a", "scripted/b"):
        wanted = lab.wanted(model=model, lengths=[2, 4], samples=10, axes={"separator": ["none"]})
        lab.run(wanted, ScriptedProvider(varied))
        folders.append(wanted.folder)
    (tokens,) = cost_figures(section_of(folders))
    row = tokens.panels[0].data["models"][0]
    variance = 10 * 10**2 / 9
    half = 1.959964 * (2 * variance / 10) ** 0.5 / 2
    assert (row["x"], row["n"]) == (120, 20)
    assert row["x_high"] - row["x"] == pytest.approx(half)
    assert row["x"] - row["x_low"] == pytest.approx(half)


def test_without_usage_or_company_there_is_no_figure(lab: Lab) -> None:
    """Nor without a length in common."""
    silent = [run(lab, model, 0, [2, 4]) for model in ("scripted/c", "scripted/d")]
    assert cost_figures(section_of(silent)) == []
    alone = run(lab, "scripted/e", 10, [2, 4])
    assert cost_figures(section_of([alone, *silent])) == []
    elsewhere = run(lab, "scripted/f", 10, [8, 16])
    assert cost_figures(section_of([alone, elsewhere])) == []


def test_every_door_says_what_an_effective_length_cost(lab: Lab) -> None:
    """The same dollars, with the date of their prices: table, CSV files, leaderboard, page, JSON.

    By the record of each reply: half of it was served in the flex tier.
    """

    def served(request: Request) -> Reply:
        odd = int(re.findall(r"index=(\d+)", request.sample_id)[0]) % 2
        usage = Usage(1000, 524, 0, 0, 400, "flex" if odd else "default")
        return Reply(right(request), usage=usage)

    wanted = lab.wanted(model="openai/gpt-5-mini", lengths=[2, 4], samples=10)
    lab.run(wanted, ScriptedProvider(served))
    judged = read_run(wanted.folder)
    conditions = len(judged.conditions)
    # dollars per million tokens: 0.25 and 2, in the flex tier half of that
    dollars = 2 * 5 * 1.5 * (1000 * 0.25 + 524 * 2) / 1e6
    of = judged.prices_of
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \(genai-prices.*\)", of)
    assert judged.cost is not None
    assert judged.cost.dollars == pytest.approx(conditions * dollars)
    table = effective_length_table(judged)
    assert list(table["cost_usd"]) == pytest.approx([dollars] * conditions)
    assert set(table["prices_of"]) == {of}
    rows, _ = run_rows(judged)
    assert {row["prices_of"] for row in rows} == {of}
    assert [float(row["cost_usd"]) for row in rows] == pytest.approx([dollars] * conditions)
    assert f"| {dollars_text(dollars)} (prices of {of[:10]}) |" in markdown(merge(rows))
    print_table(judged)
    printed = lab.capture.readouterr().out
    assert f"cost, prices of {of[:10]}" in printed
    assert printed.count(dollars_text(dollars)) == conditions
    (section,) = sections([judged])
    listed = estimates_table(section)
    assert listed.columns[-2:] == ("cost, $", "prices of")
    assert [row[-1] for row in listed.rows] == [of] * conditions
    details = section.runs[0]
    (said,) = (text for name, text in origin("", details).facts if name == "cost")
    spent = dollars_text(conditions * dollars)
    assert said == f"{spent} at the prices of {of}, retries not counted"
    assert float(details.samples["cost"].sum()) == pytest.approx(conditions * dollars)


def longer(request: Request) -> Reply:
    """A right reply whose tokens are a straight line over the length."""
    length = int(re.findall(r"length=(\d+)", request.sample_id)[0])
    return Reply(right(request), usage=Usage(1000 * length, 10))


def test_every_door_says_what_a_reply_costs_at_a_length(lab: Lab) -> None:
    """By the straight line through the replies near it, so exactly where costs lie on one; beyond
    them the prompt grows on, and all replies are alike.
    """
    axes = {"separator": ["none"]}
    wanted = lab.wanted(model="openai/gpt-4o", lengths=[4, 8], samples=10, axes=axes)
    lab.run(wanted, ScriptedProvider(longer))
    dollars, far = ((length * 2500 + 10 * 10) / 1e6 for length in (6, 40))  # $2.5 and $10 a million
    table = eyechart.load_run(wanted.folder).right_at(6, 40)
    assert list(table[COST_A_REPLY]) == pytest.approx([dollars, far])
    shown = lab.bench("score", wanted.folder, "--at", "6,40").out
    assert re.search(r"price of 1,000 at 6 \| +\$15\.10 \|", shown), shown
    assert re.search(r"price of 1,000 at 40 \| +\$100\.10 \|", shown), shown
    found = json.loads(lab.bench("score", wanted.folder, "--at", "6", "--json").out)
    assert found["runs"][0]["right_at"][0][COST_A_REPLY] == pytest.approx(dollars)
    board = lab.folder / "board.csv"
    command = ("leaderboard", wanted.folder, "--at", "6", "-o", board)
    assert "price of 1,000 at 6" in lab.bench(*command).out
    (of_model,) = json.loads(lab.bench(*command, "--json").out)["ranks"][0]["models"]
    assert of_model["right_at"][0][COST_A_REPLY] == pytest.approx(dollars)
    (row,) = read_rows(board)
    assert float(row["cost_at_6"]) == pytest.approx(dollars)
    assert row["cost_at_6_bound"] == ""


def test_the_page_of_a_leaderboard_says_it_too(lab: Lab) -> None:
    """A price for each length; where there is one, not that of the mean reply."""
    folders = []
    for model in ("openai/gpt-4o", "openai/gpt-4o-mini"):
        wanted = lab.wanted(
            model=model, lengths=[4, 8, 16], samples=10, axes={"separator": ["none"]}
        )
        lab.run(wanted, ScriptedProvider(longer))
        folders.append(wanted.folder)
    board = lab.folder / "board.csv"
    prices = {
        6: {"openai/gpt-4o": "$15.10", "openai/gpt-4o-mini": "$0.91"},
        12: {"openai/gpt-4o": "$30.10", "openai/gpt-4o-mini": "$1.81"},
        90: {"openai/gpt-4o": "$225.10", "openai/gpt-4o-mini": "$13.51"},
    }
    for runs in (folders, folders[:1]):
        assert lab.bench("leaderboard", *runs, "--at", "6,12,90", "-o", board).code == 0
        page = board.with_suffix(".html").read_text(encoding="utf-8")
        found = re.findall(
            r'cost" data-at="(\d+)"[^>]*data-head="price of 1,000 at \d+">([^<]+)', page
        )
        assert sorted(found) == sorted(
            (str(length), price)
            for length, of_models in prices.items()
            for price in list(of_models.values())[: len(runs)]
        )
        assert "price of 1,000<" not in page
