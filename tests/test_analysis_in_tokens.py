"""Effective lengths in tokens of the row are the same through every door."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.analysis.comparison import compare_conditions, compare_runs
from eyechart.harness.analysis.comparison_text import finding
from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.family import rank_runs
from eyechart.harness.analysis.further import Sides, sides_difference
from eyechart.harness.analysis.in_tokens import seen, token_columns, unit_problem
from eyechart.harness.analysis.interval import span_text
from eyechart.harness.analysis.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.results import write_results
from eyechart.harness.analysis.run_text import ranking_finding
from eyechart.harness.analysis.standing import MOST_IN_PAIRS, standing
from eyechart.harness.analysis.tokens_of_row import TokensASymbol
from eyechart.harness.analysis.tokens_text import notes_of_runs, table_notes, unit_note
from eyechart.harness.errors import CompareError, EyechartError
from eyechart.harness.report.accuracy import accuracy_figure
from eyechart.harness.report.listed import estimates_table
from eyechart.harness.report.section import sections
from eyechart.harness.report.standings import standing_notes
from tests.conftest import Lab
from tests.tokens import asked

TOKENS = {"none": 1.0, "comma": 2.0}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def shown(run: JudgedRun) -> list[dict[str, Any]]:
    """The rows of the page's table of effective lengths."""
    (section,) = sections([run], Threshold())
    table = estimates_table(section)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


class TestColumns:
    """`table.csv`, `effective_length.csv`, the leaderboard, the page and Python."""

    def test_each_door_has_the_length_times_tokens_a_symbol(self, lab: Lab) -> None:
        """The ends too, and where they come from."""
        run = asked(lab, "a", TOKENS)
        write_results(run)
        python = eyechart.load_run(run.folder)
        for row, of_page in zip(rows(run.folder / "effective_length.csv"), shown(run), strict=True):
            tokens = TOKENS[row["separator"]]
            assert float(row["tokens_a_symbol"]) == tokens
            assert row["tokens_a_symbol_source"] == of_page["from"] == "usage"
            assert of_page["tokens a symbol"] == tokens
            for end in ("", "_ci_low", "_ci_high"):
                length = float(row[f"effective_length{end}"])
                assert float(row[f"effective_length_tokens{end}"]) == pytest.approx(tokens * length)
            assert of_page["sees to, tokens"][1] == float(row["effective_length_tokens"])
        assert [float(row["row_tokens"]) for row in rows(run.folder / "table.csv")] == [
            *(2, 4, 8, 16, 32),
            *(4, 8, 16, 32, 64),
        ]
        found = python.tokens_a_symbol["separator=comma"]
        assert found is not None
        assert found.value == pytest.approx(2)

    def test_every_door_rounds_a_length_in_tokens_alike(self, lab: Lab) -> None:
        """The chart as the terminal; the ends of the tested range are those of the length."""
        run = asked(lab, "a", {"none": 1.3, "comma": 1.3}, sees={"none": 4, "comma": 99})
        (section,) = sections([run], Threshold())
        for panel in accuracy_figure(section).panels:
            for row, judged in zip(panel.data["estimate"], run.conditions.values(), strict=True):
                estimate = seen(judged, Threshold(), in_tokens=True)
                assert estimate is not None
                assert row["label@tokens"] == estimate.length_text
                assert row["span@tokens"].startswith(span_text(estimate.length_ci))
        assert "." in accuracy_figure(section).panels[0].data["estimate"][0]["label@tokens"]
        _, comma = run.conditions.values()
        beyond = seen(comma, Threshold(), in_tokens=True)
        assert beyond is not None
        assert beyond.length == beyond.length_ci[1]
        assert str(beyond.length).startswith("> ")

    def test_a_leaderboard_has_them_and_an_older_file_reads(self, lab: Lab) -> None:
        """Rows without columns of tokens have empty ones."""
        run = asked(lab, "a", TOKENS)
        assert lab.bench("leaderboard", "--out", lab.out, "--task", lab.ones).code == 0
        path = lab.out / "leaderboard.csv"
        new = rows(path)
        assert {float(row["tokens_a_symbol"]) for row in new} == {1, 2}
        names = [name for name in new[0] if "token" not in name]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(new)
        asked(lab, "b", TOKENS)
        folder = run.folder.parents[2] / "b" / "lab"
        (other,) = folder.iterdir()
        args = ("leaderboard", other, "-o", path, "--task", lab.ones)
        assert lab.bench(*args).code == 0
        assert {row["model"]: row["tokens_a_symbol"] != "" for row in rows(path)} == {
            "scripted/a": False,
            "scripted/b": True,
        }

    def test_without_usage_they_are_empty(self, lab: Lab) -> None:
        """And the page has no such columns."""
        run = asked(lab, "a", None)
        write_results(run)
        for row in rows(run.folder / "effective_length.csv"):
            assert {value for name, value in row.items() if "token" in name} == {""}
        assert "sees to, tokens" not in shown(run)[0]
        (first, _) = run.conditions.values()
        assert seen(first, Threshold(), in_tokens=True) is None
        assert set(token_columns(first, Threshold()).values()) == {None, ""}


class TestCompare:
    """`--unit tokens`, from the terminal and from Python."""

    def test_in_tokens_the_order_may_be_another_one(self, lab: Lab) -> None:
        """Twice as far in symbols of half the tokens is equally far."""
        run = asked(lab, "a", {"none": 2, "comma": 1}, sees={"none": 8, "comma": 16})
        values = ["none", "comma"]
        own = compare_conditions(run, "separator", values)
        told = compare_conditions(run, "separator", values, in_tokens=True)
        assert (own.length.further, told.length.further) == (-1, 0)
        assert told.length.octaves == pytest.approx(own.length.octaves + 1)
        assert told.length.low == pytest.approx(own.length.low + 1)
        assert told.swapped.length.octaves == pytest.approx(-told.length.octaves)
        assert (own.length_unit, told.length_unit) == ("symbols", "tokens")
        assert [line.difference for line, _ in told.lines] == [
            line.difference for line, _ in own.lines
        ]

    def test_the_error_of_the_slope_makes_a_difference_more_uncertain(self, lab: Lab) -> None:
        """Both errors add up."""
        run = asked(lab, "a", TOKENS)
        curve = run.conditions[next(iter(run.conditions))].curve
        assert curve is not None
        sides = Sides(Threshold())
        exact, rough = TokensASymbol(2, 2, 2, "usage"), TokensASymbol(2, 1.8, 2.2, "usage")
        plain, narrow, wide = (
            sides_difference(sides.of(curve, tokens), sides.of(curve))
            for tokens in (None, exact, rough)
        )
        assert narrow.high - narrow.low == pytest.approx(plain.high - plain.low)
        assert narrow.octaves == pytest.approx(1, abs=1e-6)
        assert wide.octaves == pytest.approx(1, abs=0.02)
        assert wide.high - wide.low > narrow.high - narrow.low
        assert sides.of(curve, exact) is sides.of(curve, exact)

    def test_the_command_and_python_say_the_same(self, lab: Lab) -> None:
        """The sentence names tokens, and that they are an estimate."""
        run = asked(lab, "a", TOKENS)
        args = ("compare", run.folder, "--axis", "separator=none,comma", "--task", lab.ones)
        done = lab.bench(*args, "--unit", "tokens", "-o", lab.out / "c.csv")
        python = eyechart.load_run(run.folder, tasks=lab.ones)
        said = python.compare("separator", "none", "comma", unit="tokens")
        assert said.finding in " ".join(done.out.split())
        assert (
            "effective lengths are in tokens (a symbol is 2.00 tokens with separator=comma and "
            "1.00 with separator=none, estimated from usage), so the effect of separator is "
            "confounded with that of the tokenizer."
        ) in said.finding
        assert "sees to (85 %), tokens" in done.out
        of_file = [row for row in rows(lab.out / "c.csv") if row["measure"] == "effective_length"]
        assert {row["unit"] for row in of_file} == {"tokens"}
        assert (of_file[0]["tokens_a_symbol_first"], of_file[0]["tokens_a_symbol_second"]) == (
            "1.0",
            "2.0",
        )
        document = json.loads(lab.bench(*args, "--unit", "tokens", "--json").out)
        assert document["pairs"][0]["unit"] == "tokens"

    def test_an_axis_that_moves_tokens_is_confounded(self, lab: Lab) -> None:
        """In the task's unit the sentence says so, and in tokens; not where they are equal."""
        run = asked(lab, "a", TOKENS, sees={"none": 8, "comma": 16})
        said = finding(compare_conditions(run, "separator", ["none", "comma"]))
        assert said.endswith(
            "; a symbol is 2.00 tokens with separator=comma and 1.00 with separator=none, "
            "estimated from usage, so the effect of separator is confounded with that of the "
            "tokenizer."
        )
        equal, other = (asked(lab, name, {"none": 1, "comma": 1}) for name in "bc")
        for found in (
            compare_conditions(equal, "separator", ["none", "comma"]),
            compare_runs(equal, other),
        ):
            assert "token" not in finding(found)

    @pytest.mark.parametrize("in_tokens", [False, True])
    def test_models_with_other_tokenizers_are_confounded_with_them(
        self, lab: Lab, in_tokens: bool
    ) -> None:
        """In both units, with the tokens of a symbol of each."""
        first, second = asked(lab, "a", {"none": 1}), asked(lab, "b", {"none": 0.5})
        said = finding(compare_runs(first, second, in_tokens=in_tokens))
        assert "a symbol is 1.00 tokens for scripted/a and 0.50 for scripted/b, estimated" in said
        assert said.endswith(
            ", so the effect of the model is confounded with that of its tokenizer."
        )

    def test_separators_without_known_tokens_are_confounded(self, lab: Lab) -> None:
        """Nobody can say whether they are."""
        run = asked(lab, "a", None)
        said = finding(compare_conditions(run, "separator", ["none", "comma"]))
        assert said.endswith(
            "; tokens a symbol are not known, so the effect of separator is confounded with that "
            "of the tokenizer."
        )

    def test_without_usage_there_is_one_line(self, lab: Lab) -> None:
        """For two runs, for conditions, and for three runs."""
        first, second, third = (asked(lab, name, None) for name in "abc")
        for given in (
            (first.folder, second.folder),
            (first.folder, second.folder, third.folder),
            (first.folder, "--axis", "separator=none,comma"),
        ):
            done = lab.bench("compare", *given, "--task", lab.ones, "--unit", "tokens")
            done.one_line(2, str(first.folder), "no lengths in tokens under", "five replies")
        with pytest.raises(CompareError, match="no lengths in tokens"):
            eyechart.compare(first.folder, second.folder, unit="tokens")

    @pytest.mark.parametrize("a_symbol", [0, -0.5])
    def test_usage_that_does_not_grow_is_the_reason(self, lab: Lab, a_symbol: float) -> None:
        """All replies have usage: in the line of a comparison, and under a leaderboard."""
        first, second = (asked(lab, name, {"none": a_symbol}) for name in "ab")
        board = lab.folder / "board.csv"
        said = "it is not shown that the prompt tokens of replies grow with the row"
        arguments = (first.folder, second.folder, "--task", lab.ones, "--unit", "tokens")
        assert "five" not in lab.bench("compare", *arguments).one_line(2, said)
        printed = " ".join(lab.bench("leaderboard", *arguments, "-o", board).out.split())
        assert f"tokens a symbol are not known: {said}." in printed

    def test_another_unit_is_refused(self, lab: Lab) -> None:
        """Both doors name the two that there are."""
        run = asked(lab, "a", TOKENS)
        for verb in ("compare", "leaderboard"):
            done = lab.bench(verb, run.folder, run.folder, "--unit", "bytes")
            done.one_line(2, "--unit is task or tokens, not 'bytes'")
        with pytest.raises(EyechartError, match="unit is task or tokens, not 'bytes'"):
            eyechart.load_run(run.folder).compare("separator", "none", "comma", unit="bytes")
        assert unit_problem("task") == unit_problem("tokens") == ""

    def test_an_older_comparison_is_written_over(self, lab: Lab) -> None:
        """Its columns are the first ones of today; any other file stays."""
        run = asked(lab, "a", TOKENS)
        path = lab.out / "c.csv"
        args = ("compare", run.folder, "--axis", "separator=none,comma", "-o", path)
        assert lab.bench(*args).code == 0
        header = path.read_text().splitlines()[0]
        path.write_text(header.partition(",unit,")[0] + "\n")
        assert lab.bench(*args).code == 0
        assert path.read_text().splitlines()[0] == header
        path.write_text("task,model\n")
        lab.bench(*args).one_line(2, "was not written by this option")


class TestRanks:
    """Rankings and leaderboards by tokens of the row."""

    def test_who_sees_farthest_in_tokens(self, lab: Lab) -> None:
        """Half as far in symbols of four tokens is twice as far."""
        runs = [
            asked(lab, "far", {"none": 1}, sees=16),
            asked(lab, "near", {"none": 4}, sees=8),
            asked(lab, "nearest", {"none": 1}, sees=2),
        ]
        names = [
            [ranked.name for ranked in rank_runs(runs, in_tokens=in_tokens).runs]
            for in_tokens in (False, True)
        ]
        assert names == [
            ["scripted/far", "scripted/near", "scripted/nearest"],
            ["scripted/near", "scripted/far", "scripted/nearest"],
        ]
        assert " tokens (95 % interval" in ranking_finding(rank_runs(runs, in_tokens=True))
        folders = [run.folder for run in runs]
        done = lab.bench("compare", *folders, "--task", lab.ones, "--unit", "tokens")
        assert "tokens a symbol are estimated from usage." in " ".join(done.out.split())

    @pytest.mark.parametrize("copies", [1, MOST_IN_PAIRS])
    def test_a_standing_in_tokens(self, lab: Lab, copies: int) -> None:
        """Few models are compared in full, and of many the lengths alone; a model without usage has
        no rank.
        """
        named = [
            ("far", asked(lab, "far", {"none": 1}, sees=16)),
            ("near", asked(lab, "near", {"none": 4}, sees=8)),
            ("dark", asked(lab, "dark", None)),
        ]
        named += [(f"far {copy}", named[0][1]) for copy in range(copies - 1)]
        found = standing(named, in_tokens=True)
        assert found.places[0].name == "near"
        assert found.places[0].ranks == (1, 1)
        assert found.places[-1].name == "dark"
        assert found.places[-1].ranks is None
        assert any("not known for 1 of" in note for note in standing_notes(found))
        own = standing(named)
        assert own.places[0].name.startswith("far")
        assert not any("token" in note for note in standing_notes(own))

    def test_the_command(self, lab: Lab) -> None:
        """A column has the tokens of a symbol; the page keeps the task's unit."""
        asked(lab, "far", {"none": 1}, sees=16)
        asked(lab, "near", {"none": 4}, sees=8)
        args = ("leaderboard", "--out", lab.out, "--task", lab.ones, "--unit", "tokens")
        out = lab.bench(*args).out
        assert "sees to (85 %), tokens" in out
        assert "Effective lengths are in tokens of the row" in " ".join(out.split())
        first = next(line for line in out.splitlines() if "scripted/" in line)
        assert "scripted/near" in first
        ranks = json.loads(lab.bench(*args, "--json").out)["ranks"][0]
        assert ranks["unit"] == "tokens"
        assert ranks["models"][0]["effective_length"] == pytest.approx(
            ranks["models"][0]["effective_length_tokens"]
        )


class TestNotes:
    """What tables say about tokens."""

    def test_symbols_that_share_tokens(self, lab: Lab) -> None:
        """Only the conditions where they do are counted."""
        run = asked(lab, "a", {"none": 0.34, "comma": 2}, lengths=[3, 30, 60, 90, 120])
        merged, differing = table_notes(list(run.conditions.values()))
        assert merged == (
            "Neighbouring symbols share tokens under 1 of 2 conditions: 0.34 tokens a symbol, "
            "estimated from usage. The model gets lumps of symbols there."
        )
        assert differing == (
            "Tokens a symbol differ by separator (0.34 to 2.00, estimated from usage), so the "
            "effect of separator is confounded with that of the tokenizer."
        )
        printed = " ".join(lab.bench("score", run.folder, "--task", lab.ones).out.split())
        assert merged in printed
        assert differing in printed
        assert "| tokens a symbol | 0.34 | 2.00 |" in printed

    def test_equal_tokens_need_no_note(self, lab: Lab) -> None:
        """Nor does the table have a row for them."""
        run = asked(lab, "a", {"none": 1, "comma": 1})
        assert table_notes(list(run.conditions.values())) == []
        assert "tokens a symbol" not in lab.bench("score", run.folder, "--task", lab.ones).out
        assert table_notes([]) == []

    def test_one_separator_is_not_compared(self, lab: Lab) -> None:
        """So nothing is confounded."""
        run = read_run(asked(lab, "a", None).folder)
        assert len(table_notes(list(run.conditions.values()))) == 1
        assert table_notes(list(run.conditions.values())[:1]) == []

    def test_equal_notes_of_several_runs_are_one(self, lab: Lab) -> None:
        """With their names, or their number."""
        runs = [(name, asked(lab, name, None)) for name in "abcd"]
        assert [note.partition(":")[0] for note in notes_of_runs(runs)] == ["4 runs"]
        assert [note.partition(":")[0] for note in notes_of_runs(runs[:2])] == ["a, b"]
        assert notes_of_runs(runs[:1])[0].startswith("Tokens a symbol")

    def test_the_note_of_a_ranking(self) -> None:
        """It names both sources, or says that nothing is known."""
        usage, counted = (TokensASymbol(1, 1, 1, source) for source in ("usage", "tokenizer"))
        assert unit_note([usage, counted], "words") == (
            "Effective lengths are in tokens of the row; tokens a word are estimated from usage or "
            "counted by the tokenizer."
        )
        assert unit_note(["it is a test"], "symbols").endswith(
            "; tokens a symbol are not known: it is a test."
        )
        assert unit_note([usage, "it is a test"], "symbols").endswith(
            " estimated from usage, and not known for 1 of 2 runs: it is a test."
        )
