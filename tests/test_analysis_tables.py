"""Journals to tables: what is counted, what is empty, and how it looks."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import orjson
import pytest

from eyechart.harness import errors
from eyechart.harness.analysis.length.interval import wilson
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import TABLE, write_results
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.run.run_request import RunRequest
from eyechart.providers.base import (
    AuthError,
    BadRequestError,
    PromptOverflowError,
    ProviderError,
    RefusedError,
    Reply,
    Request,
    Usage,
)
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import right

if TYPE_CHECKING:
    from tests.conftest import Lab

OUTCOMES = (
    *("correct", "incorrect", "unparsed", "refused"),
    *("truncated", "overflow", "error", "not_run"),
)
MEANS = (
    *("accuracy", "ci_low", "ci_high", "accuracy_of_answered", "mean_abs_error"),
    *("mean_signed_error", "off_by_one", "prompt_tokens", "output_tokens", "thinking_tokens"),
)
DRAWS = (
    *("draws", "pass_at_draws", "pass_at_draws_rows", "majority", "majority_ties"),
    *("row_variance", "draw_variance"),
)
Said = str | Reply | ProviderError


def table(wanted: RunRequest) -> list[dict[str, str]]:
    """The rows of `table.csv`, written anew."""
    return list(csv.DictReader(io.StringIO(write_results(read_run(wanted.folder)).read_text())))


def nth(*said: Said | Callable[[Request], Said]) -> Callable[[Request], Said]:
    """A script that answers sample 0 of each cell with the first of `said`, and so on."""

    def script(request: Request) -> Said:
        answer = said[int(request.sample_id.rpartition("=")[2])]
        return answer(request) if callable(answer) else answer

    return script


def off(error: int) -> Callable[[Request], str]:
    """The right answer and `error` more."""
    return lambda request: f"Final answer: {int(right(request).split()[-1]) + error}"


def one_cell(lab: Lab, *said: Said | Callable[[Request], Said]) -> dict[str, str]:
    """The only row of a run in which each sample is answered with one of `said`."""
    wanted = lab.wanted(lab.plain, samples=len(said))
    lab.run(wanted, ScriptedProvider(nth(*said)))
    (row,) = table(wanted)
    return row


class TestColumns:
    """`table.csv` is exactly as the design has it."""

    def test_columns_stand_in_the_order_of_the_design(self, lab: Lab) -> None:
        """An axis is a column before the length."""
        lab.asked(lab.wanted())
        assert tuple(table(lab.wanted())[0]) == (
            *("model", "task", "task_version", "separator"),
            *("length", "length_low", "length_high", "n"),
            *OUTCOMES,
            *MEANS,
            *DRAWS,
            "row_tokens",
            "reaches",
        )

    def test_a_task_without_axes_has_no_column_for_them(self, lab: Lab) -> None:
        """The rest stays."""
        lab.asked(lab.wanted(lab.plain))
        (row,) = table(lab.wanted(lab.plain))
        lengths = ("length", "length_low", "length_high")
        run = ("model", "task", "task_version")
        last = *DRAWS, "row_tokens", "reaches"
        assert tuple(row) == (*run, *lengths, "n", *OUTCOMES, *MEANS, *last)
        assert list(row.values())[:7] == ["scripted/test", "lab/plain", "3", *("4",) * 3, "3"]

    def test_two_axes_are_two_columns_in_the_tasks_order(self, lab: Lab) -> None:
        """And every pair of their values has a row."""
        hint = "axes:\n  hint:\n    default: ['yes', 'no']\n    values: {'yes': Look., 'no': ''}\n"
        text = lab.ones.read_text().replace("axes:\n", hint)
        lab.ones.write_text(text.replace("  {{ seq", "  {{ hint }}\n  {{ seq"))
        wanted = lab.wanted(lengths=[3])
        lab.asked(wanted)
        rows = table(wanted)
        assert list(rows[0])[3:6] == ["hint", "separator", "length"]
        assert [(row["hint"], row["separator"]) for row in rows] == [
            *(("yes", "none"), ("yes", "comma"), ("no", "none"), ("no", "comma")),
        ]

    def test_rows_stand_by_condition_and_then_length(self, lab: Lab) -> None:
        """Conditions in the task's order and lengths as numbers, however the run grew."""
        for lengths, separator in (([20], "comma"), ([3, 100], "comma"), ([3], "none")):
            lab.asked(lab.wanted(lengths=lengths, axes={"separator": [separator]}))
        lab.asked(lab.wanted(lengths=[5], axes={"separator": ["space"]}))
        rows = [(row["separator"], row["length"]) for row in table(lab.wanted())]
        assert rows == [
            *(("none", "3"), ("space", "5"), ("comma", "3"), ("comma", "20"), ("comma", "100")),
        ]

    def test_names_with_commas_and_quotes_survive(self, lab: Lab) -> None:
        """A model may be called anything; what ends a line is written as an escape."""
        name = 'scripted/a,"b" é\nc'
        wanted = lab.wanted(lab.plain, model=name)
        lab.asked(wanted)
        assert table(wanted)[0]["model"] == 'scripted/a,"b" é\\nc'

    def test_no_name_is_a_formula_and_numbers_stay_numbers(self, lab: Lab) -> None:
        """In none of a run's tables, nor in a comparison; a negative number has no apostrophe."""
        runs = [lab.wanted(lab.plain, model=f"{sign}cmd|' /C calc'!A0") for sign in "=@"]
        for one in runs:
            lab.asked(one, lambda _: "Final answer: 0")
            write_results(read_run(one.folder))
        for name in ("table.csv", "effective_length.csv", "diagnosis.csv"):
            with (runs[0].folder / name).open(newline="") as file:
                assert next(csv.DictReader(file))["model"] == "'=cmd|' /C calc'!A0"
        assert float(table(runs[0])[0]["mean_signed_error"]) < 0
        path = lab.folder / "c.csv"
        lab.bench("compare", *(one.folder for one in runs), "-o", path)
        with path.open(newline="") as file:
            row = next(csv.DictReader(file))
        assert (row["condition"], row["first"]) == ("-", "'=cmd|' /C calc'!A0")
        assert row["second"] == "'@cmd|' /C calc'!A0"

    def test_counts_are_whole_numbers(self, lab: Lab) -> None:
        """No count has a decimal point, in whole and in broken runs."""
        wanted = lab.wanted()
        with pytest.raises(AuthError):
            lab.run(wanted, ScriptedProvider([right_reply(), BadRequestError("x"), AuthError("x")]))
        for row in table(wanted):
            for name in ("task_version", "length", "n", *OUTCOMES):
                assert re.fullmatch(r"\d+", row[name]), (name, row[name])

    def test_the_file_ends_its_lines_alike(self, lab: Lab) -> None:
        """One line feed after each row, none besides."""
        lab.asked(lab.wanted())
        text = write_results(read_run(lab.wanted().folder)).read_bytes()
        assert text.count(b"\n") == 5
        assert text.endswith(b"\n")
        assert b"\r" not in text


def right_reply() -> Reply:
    return Reply("Final answer: 2")


class TestCounts:
    """Every sample has one outcome, and only the model's own are scored."""

    def test_every_outcome_has_its_column(self, lab: Lab) -> None:
        """Errors are not scored; overflow, refusals and the rest count as not correct."""
        row = one_cell(
            lab,
            right,
            right,
            off(1),
            "no idea",
            Reply("", refusal="I won't"),
            RefusedError("content filter"),
            Reply("Let me count: 1, 2", "length"),
            PromptOverflowError("too long"),
            BadRequestError("400"),
        )
        counts = {name: int(row[name]) for name in ("n", *OUTCOMES)}
        assert counts == {
            "n": 8,
            "correct": 2,
            "incorrect": 1,
            "unparsed": 1,
            "refused": 2,
            "truncated": 1,
            "overflow": 1,
            "error": 1,
            "not_run": 0,
        }
        interval = wilson(2, 8)
        assert interval is not None
        assert float(row["accuracy"]) == 0.25
        assert float(row["ci_low"]) == pytest.approx(interval[0], abs=1e-6)
        assert float(row["ci_high"]) == pytest.approx(interval[1], abs=1e-6)
        assert float(row["accuracy_of_answered"]) == pytest.approx(2 / 3, abs=1e-6)

    def test_errors_are_of_the_answers_alone(self, lab: Lab) -> None:
        """Distances are means over what was read as a number; tokens over what has a count."""
        row = one_cell(
            lab,
            lambda request: Reply(right(request), usage=Usage(10, 4)),
            lambda request: Reply(off(1)(request), usage=Usage(20, 7)),
            off(-1),
            off(-6),
            "no idea",
        )
        assert float(row["mean_abs_error"]) == 2.0
        assert float(row["mean_signed_error"]) == -1.5
        assert float(row["off_by_one"]) == 0.5
        assert float(row["prompt_tokens"]) == 15.0
        assert float(row["output_tokens"]) == 5.5
        assert float(row["accuracy_of_answered"]) == 0.25

    def test_a_run_of_errors_has_empty_means(self, lab: Lab) -> None:
        """No accuracy of 0 and no error of -1 where nothing was scored."""
        row = one_cell(lab, BadRequestError("a"), BadRequestError("b"))
        assert {name: row[name] for name in MEANS} == dict.fromkeys(MEANS, "")
        assert (row["n"], row["error"], row["correct"], row["incorrect"]) == ("0", "2", "0", "0")

    def test_a_cell_nobody_answered_well_has_an_accuracy_and_no_error(self, lab: Lab) -> None:
        """All unparsed is an accuracy of 0 with its interval; the means of answers are empty."""
        row = one_cell(lab, "no idea", "none", "well")
        assert [row[name] for name in MEANS[:3]] == ["0.0", "0.0", "0.561497"]
        assert [row[name] for name in MEANS[3:]] == [""] * 7

    def test_a_planned_run_without_an_answer_is_all_not_run(self, lab: Lab) -> None:
        """It has its rows, all empty."""
        with pytest.raises(AuthError):
            lab.run(lab.wanted(), ScriptedProvider([AuthError("401")]))
        for row in table(lab.wanted()):
            assert (row["n"], row["not_run"]) == ("0", "4")
            assert {row[name] for name in MEANS} == {""}
        assert read_run(lab.wanted().folder).missing == 16

    def test_what_is_left_is_counted_a_cell(self, lab: Lab) -> None:
        """A run cut short after six of sixteen lacks two or three in each cell."""
        script: list[Said] = [*["Final answer: 2"] * 6, AuthError("401")]
        with pytest.raises(AuthError):
            lab.run(lab.wanted(), ScriptedProvider(script), max_connections=1)
        assert [row["not_run"] for row in table(lab.wanted())] == ["2", "2", "3", "3"]
        assert [row["n"] for row in table(lab.wanted())] == ["2", "2", "1", "1"]

    def test_errors_and_gaps_are_incomplete_and_refusals_are_not(self, lab: Lab) -> None:
        """What a further run would ask is what is missing."""
        one_cell(lab, right, BadRequestError("400"), RefusedError("no"), PromptOverflowError("x"))
        assert read_run(lab.wanted(lab.plain).folder).missing == 1

    def test_a_text_task_has_no_distances(self, lab: Lab) -> None:
        """Texts are right or wrong."""
        wanted = lab.wanted(lab.echo)

        def echo(request: Request) -> str:
            words = request.prompt.splitlines()[-1].strip()
            wrong = request.sample_id.endswith("index=0")
            return f"Final answer: {words}{' more' if wrong else ''}"

        lab.run(wanted, ScriptedProvider(echo))
        rows = table(wanted)
        assert [(row["length"], row["correct"], row["incorrect"]) for row in rows] == [
            *(("2", "1", "1"), ("3", "1", "1"))
        ]
        assert {row[name] for row in rows for name in MEANS[4:]} == {""}

    def test_numbers_of_many_digits_do_not_upset_the_means(self, lab: Lab) -> None:
        """An absurd answer is an error of its size."""
        row = one_cell(lab, f"Final answer: {10**17}", right)
        assert float(row["mean_abs_error"]) == pytest.approx(5e16)

    @pytest.mark.parametrize("figure", [b"18446744073709551615", b"1e300", b"-4", b"true"])
    def test_tokens_that_nobody_can_have_used_are_unknown(self, lab: Lab, figure: bytes) -> None:
        """Journals of earlier versions hold whatever a server said; other samples have a mean."""
        wanted = lab.wanted(lab.plain)
        lab.asked(wanted, nth(*(Reply("2", usage=Usage(tokens, 3)) for tokens in (10, 20, 999))))
        path = wanted.folder / SAMPLES
        path.write_bytes(
            path.read_bytes().replace(b'"prompt_tokens":999', b'"prompt_tokens":' + figure)
        )
        (row,) = table(wanted)
        assert (float(row["prompt_tokens"]), float(row["output_tokens"])) == (15.0, 3.0)

    def test_each_line_has_the_probability_to_reach_the_threshold(self, lab: Lab) -> None:
        """By the fitted curve, so it never rises; empty where nothing was scored."""
        wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20)

        def script(request: Request) -> Said:
            if "separator=comma" in request.sample_id:
                return BadRequestError("400")
            seen = "length=2|" in request.sample_id or "length=4|" in request.sample_id
            return right(request) if seen else "Final answer: 100"

        lab.run(wanted, ScriptedProvider(script))
        reaches = [row["reaches"] for row in table(wanted)]
        assert reaches[4:] == [""] * 4
        found = [float(text) for text in reaches[:4]]
        assert found == sorted(found, reverse=True)
        assert found[1] > 0.9
        assert found[2] < 0.1
        assert "-0.0" not in reaches

    def test_beyond_a_dip_it_is_empty_as_at_a_named_length(self, lab: Lab) -> None:
        """The fitted curve falls, so it passes over the dip."""
        wanted = lab.wanted(lengths=[2, 4, 8, 16, 32], samples=20)

        def script(request: Request) -> Said:
            return "Final answer: 100" if "length=8|" in request.sample_id else right(request)

        lab.run(wanted, ScriptedProvider(script))
        for row in table(wanted):
            assert (row["reaches"] == "") == (int(row["length"]) > 4)


class TestSeveralRecords:
    """A sample may have been asked more than once."""

    def rewritten(self, lab: Lab, *said: Said) -> dict[str, str]:
        """The only cell of a run whose one sample has a record for each of `said`, in order."""
        wanted = lab.wanted(lab.plain, samples=1)
        lines = []
        for one in said:
            lab.run(wanted, ScriptedProvider([one]))
            lines.append((wanted.folder / SAMPLES).read_bytes())
            (wanted.folder / SAMPLES).unlink()
        (wanted.folder / SAMPLES).write_bytes(b"".join(lines))
        (row,) = table(wanted)
        return row

    @pytest.mark.parametrize(
        ("said", "outcome"),
        [
            ([BadRequestError("x"), "Final answer: 99"], "incorrect"),
            (["Final answer: 99", BadRequestError("x")], "incorrect"),
            ([BadRequestError("x"), BadRequestError("y")], "error"),
            ([BadRequestError("x"), "none", BadRequestError("y")], "unparsed"),
            ([PromptOverflowError("x"), BadRequestError("y")], "overflow"),
            (["Final answer: 99", "no idea"], "incorrect"),
        ],
    )
    def test_an_answer_beats_an_error_and_the_first_one_a_later_one(
        self, lab: Lab, said: Sequence[Said], outcome: str
    ) -> None:
        """And the sample counts once."""
        row = self.rewritten(lab, *said)
        assert row[outcome] == "1"
        assert sum(int(row[name]) for name in OUTCOMES) == 1

    def test_interleaved_errors_leave_no_trace_in_the_means(self, lab: Lab) -> None:
        """All numbers of the row are those of the answer that counts."""
        wanted = lab.wanted(lab.plain, samples=3)
        lab.run(wanted, ScriptedProvider(nth(off(5), BadRequestError("x"), off(-1))))
        lab.run(wanted, ScriptedProvider(nth(right, off(2), right)))
        (row,) = table(wanted)
        assert (row["n"], row["error"], row["incorrect"]) == ("3", "0", "3")
        assert float(row["mean_signed_error"]) == 2.0

    def test_records_outside_the_plan_count(self, lab: Lab) -> None:
        """Those of another cell, and those beyond a cell's samples: what lies before them was not
        run. Conditions that the task lacks do not.
        """
        wanted = lab.wanted(lab.plain, samples=3)
        lab.asked(wanted)
        path = wanted.folder / SAMPLES
        lines = path.read_bytes().splitlines(keepends=True)
        last = orjson.loads(lines[-1])
        strays = [last | {"index": 7}, last | {"length": 5}, last | {"condition": {"hint": "no"}}]
        path.write_bytes(b"".join([*lines[:2], *(orjson.dumps(one) + b"\n" for one in strays)]))
        counts = [(row["length"], row["n"], row["not_run"]) for row in table(wanted)]
        assert counts == [("4", "3", "5"), ("5", "1", str(last["index"]))]


class TestPureFunction:
    """Everything right of the journal can be made again."""

    def test_scoring_again_gives_the_same_bytes(self, lab: Lab) -> None:
        """Also from a copy elsewhere, and the journal stays as it is."""
        wanted = lab.wanted()
        lab.run(wanted, ScriptedProvider([right_reply(), "no idea", BadRequestError("x")]))
        before = (wanted.folder / SAMPLES).read_bytes()
        first = write_results(read_run(wanted.folder)).read_bytes()
        copy = lab.folder / "copy"
        shutil.copytree(wanted.folder, copy)
        (copy / TABLE).unlink()
        assert write_results(read_run(copy)).read_bytes() == first
        assert write_results(read_run(wanted.folder)).read_bytes() == first
        assert (wanted.folder / SAMPLES).read_bytes() == before

    def test_the_order_of_answers_changes_nothing(self, lab: Lab) -> None:
        """One worker or many, the table is the same."""
        wanted = lab.wanted()
        lab.asked(wanted)
        first = write_results(read_run(wanted.folder)).read_bytes()
        path = wanted.folder / SAMPLES
        path.write_bytes(b"".join(reversed(path.read_bytes().splitlines(keepends=True))))
        assert write_results(read_run(wanted.folder)).read_bytes() == first

    @pytest.mark.parametrize("spec", ["null", "{}", '{"axes": {}}', "[]", '"lab/ones"'])
    def test_a_manifest_whose_spec_is_none_is_one_line(self, lab: Lab, spec: str) -> None:
        """It is said, not raised as whatever comes first."""
        wanted = lab.wanted()
        lab.asked(wanted)
        path = wanted.folder / MANIFEST
        path.write_bytes(
            orjson.dumps(orjson.loads(path.read_bytes()) | {"spec": orjson.loads(spec)})
        )
        with pytest.raises(errors.JournalError, match=r"manifest\.json") as refused:
            read_run(wanted.folder)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize(
        "change",
        [
            {"condition": {"separator": "dash"}},
            {"condition": {}},
            {"condition": None},
            {"length": "3"},
            {"length": None},
            {"samples": None},
            {"samples": "4"},
            {"sum": "zz"},
            {"sum": 5},
        ],
        ids=str,
    )
    def test_a_manifest_with_a_wrong_cell_is_one_line(
        self, lab: Lab, change: dict[str, object]
    ) -> None:
        """Likewise."""
        wanted = lab.wanted()
        lab.asked(wanted)
        path = wanted.folder / MANIFEST
        read = orjson.loads(path.read_bytes())
        read["cells"][1] |= change
        path.write_bytes(orjson.dumps(read))
        with pytest.raises(errors.JournalError, match=r"manifest\.json") as refused:
            read_run(wanted.folder)
        assert "\n" not in str(refused.value)


class TestTerminal:
    """One table a task, as a person sees it."""

    def shown(self, lab: Lab, wanted: RunRequest) -> list[list[str]]:
        """The printed table's rows, cell by cell."""
        out = lab.bench("score", wanted.folder).out
        rows = [line for line in out.splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]

    def test_lengths_are_rows_and_conditions_columns(self, lab: Lab) -> None:
        """A cell is an accuracy with its interval; the last row is what was not scored."""
        lab.run(lab.wanted(), ScriptedProvider(nth(right, right, off(1), BadRequestError("x"))))
        assert self.shown(lab, lab.wanted()) == [
            ["separator", "none", "comma"],
            ["length", "accuracy, %", "accuracy, %"],
            ["3", "67 (21–94)", "67 (21–94)"],
            ["5", "67 (21–94)", "67 (21–94)"],
            ["right to (85 %)", "not known†", "not known†"],
            ["not scored", "2", "2"],
        ]
        low, high = wilson(2, 3) or (0.0, 0.0)
        assert f"{100 * low:.0f}–{100 * high:.0f}" == "21–94"

    def test_a_cell_without_a_score_is_a_dash(self, lab: Lab) -> None:
        """And what is missing is counted below."""
        script: list[Said] = [*["Final answer: 9"] * 2, AuthError("401")]
        with pytest.raises(AuthError):
            lab.run(lab.wanted(samples=1), ScriptedProvider(script), max_connections=1)
        assert self.shown(lab, lab.wanted())[2:] == [
            *(["3", "0 (0–79)  1", "–  0"], ["5", "0 (0–79)  1", "–  0"]),
            ["right to (85 %)", "not known (< 3 to 5)†", "–†"],
            ["not scored", "0", "2"],
        ]

    def test_a_task_without_axes_has_one_column(self, lab: Lab) -> None:
        """It is called accuracy."""
        lab.asked(lab.wanted(lab.plain))
        assert self.shown(lab, lab.wanted(lab.plain)) == [
            *(["length", "accuracy, %"], ["4", "100 (44–100)"]),
            ["right to (85 %)", "not known†"],
        ]

    def test_no_single_threshold_has_a_row(self, lab: Lab) -> None:
        """Where a condition has none: the length is then the tested length."""
        wanted = lab.wanted(lengths=[2, 4, 8], samples=20)

        def dips(request: Request) -> str:
            dip = "separator=comma|length=4|" in request.sample_id
            return "Final answer: 100" if dip else right(request)

        lab.asked(wanted, dips)
        assert self.shown(lab, wanted)[5:] == [
            *(["right to (85 %)", "> 8", "2†"], ["near (5 %)", "> 8", "2"]),
        ]

    def test_a_condition_that_does_not_vary_stands_in_the_title(self, lab: Lab) -> None:
        """Beside task and model."""
        wanted = lab.wanted(axes={"separator": ["space"]})
        lab.asked(wanted)
        title = lab.bench("score", wanted.folder).out.splitlines()[0]
        assert title.split() == ["lab/ones", "scripted/test", "separator=space"]

    def test_a_ragged_run_has_gaps(self, lab: Lab) -> None:
        """Where a condition was never run at a length, the cell is blank."""
        lab.asked(lab.wanted(lengths=[3], axes={"separator": ["none"]}))
        lab.asked(lab.wanted(lengths=[100], axes={"separator": ["comma"]}))
        assert self.shown(lab, lab.wanted())[2:4] == [
            ["3", "100 (51–100)", ""],
            ["100", "", "100 (51–100)"],
        ]

    @pytest.mark.parametrize("name", ["scripted/[bold]x", "scripted/a[/b]", "scripted/:smile:"])
    def test_names_are_shown_as_they_are(self, lab: Lab, name: str) -> None:
        """Brackets and colons of a model's name are no markup."""
        wanted = lab.wanted(lab.plain, model=name)
        lab.asked(wanted)
        assert lab.bench("score", wanted.folder).out.splitlines()[0] == f"lab/plain  {name}"

    def test_what_is_no_terminal_gets_plain_text(self, lab: Lab) -> None:
        """No escape sequences, no wrapping, no box characters beyond ASCII."""
        model = "scripted/" + "long" * 60
        wanted = lab.wanted(lengths=list(range(2, 9)), axes={"separator": ["all"]}, model=model)
        lab.asked(wanted)
        out = lab.bench("score", wanted.folder).out
        assert "\x1b" not in out
        assert out.splitlines()[:2] == ["lab/ones", f"  {model}"]
        assert set(out) - set("–†") <= set(map(chr, range(127)))
