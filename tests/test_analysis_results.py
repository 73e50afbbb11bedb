"""What judging leaves in a run's folder, and what judging again says."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from statistics import median

import orjson
import pytest

from eyechart.harness.analysis.tables.diagnosis import error_growth
from eyechart.harness.analysis.tables.results import DIAGNOSES, EFFECTIVE_LENGTHS, TABLE
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.judged_before import VERDICTS
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.verdict import Verdict
from eyechart.providers.base import BadRequestError, Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Lab, records, right


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file's rows."""
    return list(csv.DictReader(io.StringIO(path.read_text())))


def scored(lab: Lab) -> Path:
    """The folder of a run in which all is right but every fourth sample."""

    def script(request: Request) -> str:
        return "I see 7 or 8." if request.sample_id.endswith("index=3") else right(request)

    lab.asked(lab.wanted(), script)
    folder = lab.wanted().folder
    assert lab.bench("score", folder).err == ""
    return folder


def judge_by(judge: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on `judge` decides, on short replies too, whose verdicts are kept in mind."""
    monkeypatch.setattr("eyechart.harness.analysis.samples.verdicts.judge", judge)
    monkeypatch.setattr("eyechart.harness.analysis.samples.verdicts._judge_cached", judge)


class TestChanges:
    """`bench score` says which samples are judged otherwise than before, and why."""

    def test_nothing_changed_nothing_said(self, lab: Lab) -> None:
        """Twice the same rules."""
        folder = scored(lab)
        assert lab.bench("score", folder).err == ""

    def test_another_reader_of_answers(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        """Counts by kind, then each sample with what is read now."""
        folder = scored(lab)
        kinder = lambda **_: Verdict(Outcome.INCORRECT, 7, signed_error=4)  # noqa: E731
        judge_by(kinder, monkeypatch)
        said = lab.bench("score", folder).err.splitlines()
        assert said[0].startswith("16 samples are judged differently than by eyechart 0.1.0: ")
        assert "12 correct now incorrect, 4 unparsed now incorrect" in said[0]
        assert len(said) == 12
        assert said[1] == (
            "  lab/ones@1|separator=none|length=3|seed=0|index=0: correct is now incorrect "
            "(reads 7, target 1)"
        )
        assert said[-1] == "  … and 6 more"
        assert lab.bench("score", folder).err == ""

    def test_the_reason_of_what_is_no_answer(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An outcome without an answer has its own words."""
        folder = scored(lab)
        stricter = lambda **_: Verdict(Outcome.TRUNCATED, why="cut off")  # noqa: E731
        judge_by(stricter, monkeypatch)
        assert "correct is now truncated (cut off)" in lab.bench("score", folder).err

    def test_an_answer_after_an_error_is_no_change(self, lab: Lab) -> None:
        """It was not judged before."""

        def script(request: Request) -> str | BadRequestError:
            failed = request.sample_id.endswith("index=0")
            return BadRequestError("once") if failed else right(request)

        lab.run(lab.wanted(), ScriptedProvider(script))
        done = lab.bench("score", lab.wanted().folder)
        assert done.code == 1
        assert done.err.splitlines()[-1].startswith("bench: some samples have no reply; ")
        lab.asked(lab.wanted())
        done = lab.bench("score", lab.wanted().folder)
        assert (done.code, done.err) == (0, "")

    @pytest.mark.parametrize(
        "content", [b"", b"[]", b'{"eyechart": "0", "cells": [{"x": 1}]}', b"\xff"]
    )
    def test_verdicts_that_cannot_be_read_are_written_anew(self, lab: Lab, content: bytes) -> None:
        """Nothing can be said of changes then."""
        folder = scored(lab)
        good = (folder / VERDICTS).read_bytes()
        (folder / VERDICTS).write_bytes(content)
        assert lab.bench("score", folder).err == ""
        assert (folder / VERDICTS).read_bytes() == good

    def test_a_target_of_another_type_is_passed_over(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As reading the run does."""
        folder = scored(lab)
        path = folder / SAMPLES
        lines = path.read_bytes().splitlines(keepends=True)
        spoilt = orjson.dumps(orjson.loads(lines[0]) | {"target": "abc"}) + b"\n"
        path.write_bytes(spoilt + b"".join(lines))
        stricter = lambda **_: Verdict(Outcome.TRUNCATED, why="cut off")  # noqa: E731
        judge_by(stricter, monkeypatch)
        assert "16 samples are judged differently" in lab.bench("score", folder).err

    def test_a_journal_that_lost_replies_is_neither_judged_nor_gone_on_with(self, lab: Lab) -> None:
        """The tables stay, and nothing is paid for twice, until the user decides."""
        folder = scored(lab)
        table = (folder / TABLE).read_bytes()
        whole = (folder / SAMPLES).read_bytes()
        for kept in (whole.splitlines(keepends=True)[:5], []):
            (folder / SAMPLES).write_bytes(b"".join(kept))
            done = lab.bench("score", folder)
            assert f"its journals have {len(kept)} lines, and had 16 when verdicts.j" in done.err
            assert done.code == 1
            assert (folder / TABLE).read_bytes() == table
            with pytest.raises(JournalError, match=r"restore them, or delete verdicts\.json"):
                lab.asked(lab.wanted())
        (folder / VERDICTS).unlink()
        assert len(lab.asked(lab.wanted())) == 16

    def test_a_dry_run_refuses_it_as_the_run_does(self, lab: Lab) -> None:
        """Before anything is asked and paid for."""
        asked = ("--model", lab.fake(right))
        assert lab.bench_run(*asked).code == 0
        (lab.the_run() / SAMPLES).unlink()
        runs = [lab.bench_run(*asked, *more) for more in ((), ("--dry-run",))]
        assert [done.code for done in runs] == [1, 1]
        assert all("its journals have 0 lines, and had" in done.err for done in runs)

    def test_a_letter_a_sample(self, lab: Lab) -> None:
        """In the order of the index; a dot where nothing was asked."""
        folder = scored(lab)
        lab.asked(lab.wanted(samples=5, lengths=[3]))
        lab.bench("score", folder)
        cells = orjson.loads((folder / VERDICTS).read_bytes())["cells"]
        assert [cell["outcomes"] for cell in cells] == ["cccuc", "cccu"] * 2


class TestReach:
    """`effective_length.csv`: a row a condition."""

    def test_effective_length_as_bounds(self, lab: Lab) -> None:
        """A sign says that it is outside the tested range; the threshold is beside it."""
        folder = scored(lab)
        (none, comma) = rows(folder / EFFECTIVE_LENGTHS)
        assert (none["separator"], comma["separator"]) == ("none", "comma")
        assert (none["n"], none["not_scored"], none["threshold"]) == ("8", "0", "0.85")
        assert (none["effective_length_ci_low"], none["effective_length_ci_high"]) == ("", "")
        assert (none["tested_length"], none["tested_length_bound"]) == ("3.0", "<")
        lab.bench("score", "--threshold", "0.99", folder)
        (none, _) = rows(folder / EFFECTIVE_LENGTHS)
        assert (none["effective_length"], none["effective_length_bound"]) == ("", "")
        lab.bench("score", "--threshold", "0.5", folder)
        (none, _) = rows(folder / EFFECTIVE_LENGTHS)
        assert (none["effective_length"], none["effective_length_bound"]) == ("5.0", ">")
        assert (none["effective_length_ci_high"], none["one_threshold"]) == ("", "yes")
        assert float(none["area"]) == pytest.approx(0.75)
        assert float(none["area_ci_low"]) < 0.75 < float(none["area_ci_high"])

    @pytest.mark.parametrize("share", ["0", "0.01", "0.996", "1.1", "-1"])
    def test_a_threshold_is_one_that_can_be_shown(self, lab: Lab, share: str) -> None:
        """An accuracy of 1, or of 0, is shown by no number of samples."""
        folder = scored(lab)
        said = "--threshold must be a number from 0.02 to 0.995", share
        lab.bench("score", f"--threshold={share}", folder).one_line(2, *said)
        lab.bench("score", "--threshold=0.995", folder)
        lab.bench("score", "--threshold=nan", folder).one_line(
            2, "must be a number from 0.02 to 0.995, not nan"
        )
        done = lab.bench("score", "--threshold=1", folder)
        done.one_line(2, "not 1: no number of samples can show that an accuracy is 1", "0.95")

    def test_nothing_scored_is_empty(self, lab: Lab) -> None:
        """Not 0."""
        lab.run(lab.wanted(), ScriptedProvider(lambda _: BadRequestError("x")))
        folder = lab.wanted().folder
        assert lab.bench("score", folder).code == 1
        (none, _) = rows(folder / EFFECTIVE_LENGTHS)
        assert (none["area"], none["effective_length"], none["not_scored"]) == ("", "", "8")
        assert (none["one_threshold"], none["lapse"], none["tested_length"]) == ("", "", "")


class TestDiagnosis:
    """`diagnosis.csv`: what is answered instead."""

    def test_counts(self, lab: Lab) -> None:
        """A model that says 100: round answers, one mode, an error that shrinks with length."""
        lab.asked(lab.wanted(lengths=[20, 80]), lambda _: "Final answer: 100")
        folder = lab.wanted().folder
        lab.bench("score", folder)
        short, long = rows(folder / DIAGNOSES)[:2]
        medians = [
            median(100 - record["target"] for record in records(folder) if record["length"] == n)
            for n in (20, 80)
        ]
        assert [float(row["median_abs_error"]) for row in (short, long)] == medians
        assert (short["round_answers"], short["modal_answer"], short["modal_share"]) == (
            *("1.0", "100"),
            "1.0",
        )
        assert short["collapsed"] == ""
        (none, _) = rows(folder / EFFECTIVE_LENGTHS)
        slope = math.log(medians[1] / medians[0]) / math.log(80 / 20)
        assert float(none["error_growth"]) == pytest.approx(slope, abs=1e-6)

    def test_a_tie_goes_to_the_smaller_answer(self, lab: Lab) -> None:
        """So that it does not depend on the order of replies."""
        said = ["7", "3", "3", "7"]
        lab.asked(
            lab.wanted(lengths=[5]),
            lambda request: f"Final answer: {said[int(request.sample_id[-1])]}",
        )
        lab.bench("score", lab.wanted().folder)
        (first, _) = rows(lab.wanted().folder / DIAGNOSES)
        assert (first["modal_answer"], first["modal_share"]) == ("3", "0.5")

    def test_shares_have_six_digits(self, lab: Lab) -> None:
        """Two thirds is no short number."""
        numbers = ["7", "3", "7"]
        lab.asked(
            lab.wanted(lengths=[5], samples=3),
            lambda request: f"Final answer: {numbers[int(request.sample_id[-1])]}",
        )
        lab.bench("score", lab.wanted().folder)
        assert rows(lab.wanted().folder / DIAGNOSES)[0]["modal_share"] == "0.666667"

    def test_copies_that_collapse(self, lab: Lab) -> None:
        """The repeated symbol instead of the odd one; a row without an odd one shows nothing."""
        task = ("--task", "copying/first_last", "--lengths", "10", "--samples", "2")
        done = lab.bench(
            "run",
            *task,
            *("--model", lab.fake(lambda _: "Final answer: 1"), "--out", lab.out),
        )
        assert done.code == 0
        found = {
            (row["position"], row["odd"]): row["collapsed"]
            for row in rows(lab.the_run() / DIAGNOSES)
        }
        assert found == {
            ("first", "zero"): "1.0",
            ("first", "absent"): "",
            ("last", "zero"): "1.0",
            ("last", "absent"): "",
        }

    def test_texts_that_collapse_and_diverge(self, lab: Lab) -> None:
        """A row of the repeated word alone, and where the first other word is."""

        def script(request: Request) -> str:
            words = request.prompt.splitlines()[-1].split(": ", 1)[1].split()
            common = max(set(words), key=words.count)
            return f"Final answer: {' '.join(common for _ in words)}"

        command = ("run", "--task", "copying/repeated_words", "--lengths", "20", "--samples", "2")
        axis = ("--axis", "position=middle")
        lab.bench(*command, *axis, "--model", lab.fake(script), "--out", lab.out)
        (row,) = rows(lab.the_run() / DIAGNOSES)
        assert row["collapsed"] == "1.0"
        assert 0 < float(row["mean_first_divergence"]) < 20


def test_an_error_that_does_not_grow_has_no_sign() -> None:
    """A slope of -9e-17 is 0, and not -0."""
    lengths = [5 * 2**place for place in range(6)]
    growth = error_growth(lengths, [3.0] * 6)
    assert growth is not None
    assert str(growth) == "0.0"
