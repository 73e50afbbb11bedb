"""Effective lengths in tokens of the row are the same through every door."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.analysis.comparison.comparison import compare_conditions, compare_runs
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.length.in_tokens import length_in_tokens, token_columns
from eyechart.harness.analysis.length.interval import span_text
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.tables.results import write_results
from eyechart.harness.analysis.tables.tokens_text import of_conditions
from eyechart.harness.report.charts.accuracy import accuracy_figure
from eyechart.harness.report.page.page_tables import estimates_table
from eyechart.harness.report.page.section import sections
from tests.conftest import Lab
from tests.sentences import said
from tests.tokens import asked

KIND = "confounded with tokens"
TOKENS = {"none": 1.0, "comma": 2.0}


def sentences(run: JudgedRun) -> list[str]:
    return [one.sentence for one in of_conditions(list(run.conditions.values()))]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def shown(run: JudgedRun) -> list[dict[str, Any]]:
    """The rows of the page's table of effective lengths."""
    (section,) = sections([run])
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
            assert of_page["right to, tokens"][1] == float(row["effective_length_tokens"])
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
        (section,) = sections([run])
        for panel in accuracy_figure(section).panels:
            for row, judged in zip(panel.data["estimate"], run.conditions.values(), strict=True):
                length, interval = length_in_tokens(judged) or (None, None)
                assert interval is not None
                assert row["label@tokens"] == str(length)
                assert row["span@tokens"].startswith(span_text(interval))
        assert "." in accuracy_figure(section).panels[0].data["estimate"][0]["label@tokens"]
        _, comma = run.conditions.values()
        beyond = length_in_tokens(comma)
        assert beyond is not None
        assert beyond[0] == beyond[1][1]
        assert str(beyond[0]).startswith("> ")

    def test_a_leaderboard_has_them(self, lab: Lab) -> None:
        """A file without these columns is one of another version."""
        asked(lab, "a", TOKENS)
        assert lab.bench("leaderboard", "--out", lab.out, "--task", lab.ones).code == 0
        path = lab.out / "leaderboard.csv"
        new = rows(path)
        assert {float(row["tokens_a_symbol"]) for row in new} == {1, 2}
        names = [name for name in new[0] if "token" not in name]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, names, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(new)
        done = lab.bench("leaderboard", "--out", lab.out, "--task", lab.ones)
        assert done.code == 2
        assert "no row of a leaderboard of this version: it has no 'tokens_a_symbol'" in done.err

    def test_without_usage_they_are_empty(self, lab: Lab) -> None:
        """And the page has no such columns."""
        run = asked(lab, "a", None)
        write_results(run)
        for row in rows(run.folder / "effective_length.csv"):
            assert {value for name, value in row.items() if "token" in name} == {""}
        assert "right to, tokens" not in shown(run)[0]
        (first, _) = run.conditions.values()
        assert length_in_tokens(first) is None
        assert set(token_columns(first).values()) == {None, ""}


class TestCompare:
    """What a comparison says where tokens a symbol differ."""

    def test_an_axis_that_moves_tokens_is_confounded(self, lab: Lab) -> None:
        """The sentence says so; not where they are equal."""
        run = asked(lab, "a", TOKENS, sees={"none": 8, "comma": 16})
        compared = compare_conditions(run, "separator", ["none", "comma"])
        assert said(of_pair(compared), "other tokens") == ""
        assert said(of_pair(compared), KIND) == (
            "A symbol is 1.00 tokens with separator=none and 2.00 with separator=comma, estimated "
            "from usage, so the effect of separator is confounded with that of the tokenizer."
        )
        equal, other = (asked(lab, name, {"none": 1, "comma": 1}) for name in "bc")
        for found in (
            compare_conditions(equal, "separator", ["none", "comma"]),
            compare_runs(equal, other),
        ):
            assert said(of_pair(found), KIND) == ""

    def test_models_with_other_tokenizers_are_confounded_with_them(self, lab: Lab) -> None:
        """With the tokens of a symbol of each."""
        first, second = asked(lab, "a", {"none": 1}), asked(lab, "b", {"none": 0.5})
        assert said(of_pair(compare_runs(first, second)), KIND) == (
            "A symbol is 1.00 tokens for scripted/a and 0.50 for scripted/b, estimated from usage, "
            "so the effect of the model is confounded with that of its tokenizer."
        )

    def test_separators_without_known_tokens_are_confounded(self, lab: Lab) -> None:
        """Nobody can say whether they are."""
        run = asked(lab, "a", None, provider="openai")
        compared = compare_conditions(run, "separator", ["none", "comma"])
        assert said(of_pair(compared), KIND) == (
            "Tokens a symbol are not known, so the effect of separator is confounded with that of "
            "the tokenizer."
        )
        assert said([*of_conditions(list(run.conditions.values()))], "unknown tokens")

    @pytest.mark.parametrize("provider", ["scripted", "oracle", "function"])
    def test_a_model_without_a_tokenizer_is_not_confounded_with_it(
        self, lab: Lab, provider: str
    ) -> None:
        """Its tokens a symbol are not known, because it has none."""
        run = asked(lab, "8", None, provider=provider)
        compared = compare_conditions(run, "separator", ["none", "comma"])
        assert said(of_pair(compared), KIND) == ""
        assert sentences(run) == []

    def test_a_comparison_file_has_them(self, lab: Lab) -> None:
        """Beside the effective lengths of both sides."""
        run = asked(lab, "a", TOKENS)
        path = lab.out / "c.csv"
        lab.bench("compare", run.folder, "--axis", "separator=none,comma", "-o", path)
        (row, *_) = [row for row in rows(path) if row["measure"] == "effective_length"]
        assert (row["tokens_a_symbol_first"], row["tokens_a_symbol_second"]) == ("1.0", "2.0")

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


class TestNotes:
    """What tables say about tokens."""

    def test_symbols_that_share_tokens(self, lab: Lab) -> None:
        """Only the conditions where they do are counted."""
        run = asked(lab, "a", {"none": 0.34, "comma": 2}, lengths=[3, 30, 60, 90, 120])
        merged, differing = sentences(run)
        assert merged == (
            "Neighbouring symbols share tokens under 1 of 2 conditions: 0.34 tokens a symbol, "
            "estimated from usage. The model gets lumps of symbols there."
        )
        assert differing == (
            "Tokens a symbol differ by separator (0.34 to 2.00, estimated from usage), so the "
            "effect of separator is confounded with that of the tokenizer."
        )
        printed = " ".join(lab.bench("score", run.folder, "--all-findings").out.split())
        assert merged in printed
        assert differing in printed
        assert "| tokens a symbol | 0.34 | 2.00 |" in printed

    def test_equal_tokens_need_no_note(self, lab: Lab) -> None:
        """Nor does the table have a row for them."""
        run = asked(lab, "a", {"none": 1, "comma": 1})
        assert sentences(run) == []
        assert "tokens a symbol" not in lab.bench("score", run.folder, "--task", lab.ones).out

    def test_one_separator_is_not_compared(self, lab: Lab) -> None:
        """So nothing is confounded."""
        run = read_run(asked(lab, "a", None, provider="openai").folder)
        assert len(sentences(run)) == 1
        assert [*of_conditions(list(run.conditions.values())[:1])] == []
