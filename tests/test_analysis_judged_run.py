"""One judged run: which record counts, which conditions are controls, how far, drawn once."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from eyechart.harness.analysis.length import limits
from eyechart.harness.analysis.length.curve import Curve
from eyechart.harness.analysis.length.effective_length import EffectiveLength, effective_length
from eyechart.harness.analysis.samples.details import read_details
from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.harness.analysis.samples.judged_samples import as_float
from eyechart.harness.journal.manifest import write_manifest
from eyechart.harness.journal.record import SAMPLES, encode
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.run.records import answered, failed
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.settings.judging import THRESHOLD, JudgeSettings
from eyechart.harness.spec import Condition, Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import BadRequestError, Reply, Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Lab, right


@pytest.mark.parametrize(
    ("order", "counts"),
    [
        ("error first", "first"),
        ("first error", "first"),
        ("first second", "first"),
        ("error first error second error", "first"),
        ("error error", None),
    ],
)
def test_an_answer_beats_an_error_and_the_first_one_a_later_one(
    lab: Lab, order: str, counts: str | None
) -> None:
    """In the numbers and in the texts alike."""
    wanted = lab.wanted(lab.plain, samples=1)
    lab.run(wanted)
    (sample,) = wanted.plan
    path = wanted.folder / SAMPLES
    path.write_bytes(
        b"".join(
            encode(
                failed(sample, BadRequestError("400"), attempts=1)
                if what == "error"
                else answered(sample, Reply(f"{what}\nFinal answer: 9"), attempts=1, latency_s=None)
            )
            + b"\n"
            for what in order.split()
        )
    )
    run = read_run(wanted.folder)
    (detail,) = read_details(run)
    cell = run.cells.iloc[0]
    if counts is None:
        assert (detail.record.reply, int(cell["error"])) == (None, 1)
    else:
        assert str(detail.record.reply).startswith(counts)
        assert (int(cell["n"]), float(cell["accuracy"])) == (1, 0.0)
        assert (int(cell["error"]), int(cell["incorrect"])) == (0, 1)


class TestControl:
    """Right for a model that sees nothing; a property of the task and of no reply."""

    def run(self, lab: Lab, reply: str, odd: str) -> JudgedRun:
        task = open_task("copying/first_last", built_in_files()["copying/first_last"], trial=False)
        axes = {"hint": ["off"], "odd": [odd], "position": ["first"]}
        planned = plan(task, lengths=[5, 10], samples=2, axes=axes)
        wanted = RunRequest(planned, resolve_model("scripted/x"), Settings(), lab.out)
        lab.run(wanted, ScriptedProvider(lambda _request: reply))
        return read_run(wanted.folder)

    @pytest.mark.parametrize("reply", ["Final answer: 1", "Final answer: 0", ""])
    @pytest.mark.parametrize(("odd", "is_control"), [("absent", True), ("zero", False)])
    def test_it_goes_by_targets(self, lab: Lab, reply: str, odd: str, *, is_control: bool) -> None:
        """Whatever was replied, nothing included."""
        (judged,) = self.run(lab, reply, odd).conditions.values()
        assert judged.control is is_control

    def test_nothing_asked_is_no_control(self, lab: Lab) -> None:
        """No sample says what the answers are."""
        run = self.run(lab, "Final answer: 1", "absent")
        (run.folder / SAMPLES).write_bytes(b"")
        (judged,) = read_run(run.folder).conditions.values()
        assert judged.control is False


def test_each_question_is_drawn_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal, the files, the leaderboard and the page ask the same ones."""
    wanted = lab.wanted()
    lab.run(wanted)
    drawn: list[float] = []

    def counted(samples: Curve, threshold: float) -> EffectiveLength:
        drawn.append(threshold)
        return effective_length(samples, threshold)

    monkeypatch.setattr(limits, "effective_length", counted)
    run = read_run(wanted.folder)
    judged = run.conditions[Condition({"separator": "none"})]
    first = judged.effective_length()
    assert judged.effective_length({0, 1}) is first  # all its cells
    assert judged.effective_length({0, 1, 2, 99}) is first
    assert len(drawn) == 1
    assert judged.effective_length({0}) is not first
    assert run.judged_by(run.settings) is run
    half = run.judged_by(JudgeSettings(threshold=0.5)).conditions[judged.condition]
    assert half.effective_length() is not first
    assert drawn == [THRESHOLD, THRESHOLD, 0.5]


def test_a_row_that_nobody_scored_changes_no_interval(lab: Lab) -> None:
    """The draws are of the rows with a scored sample."""

    def from_second_on(request: Request) -> str:
        if request.sample_id.endswith("index=0"):
            raise BadRequestError("400")
        return right(request) if request.sample_id.endswith("index=1") else "Final answer: 9"

    wanted = lab.wanted(samples=6)
    lab.run(wanted, ScriptedProvider(from_second_on))
    condition = Condition({"separator": "none"})
    curve = read_run(wanted.folder).conditions[condition].curve
    assert curve is not None
    shorter = Curve(curve.lines, curve.correct[1:], curve.scored[1:], curve.true_lengths[1:])
    assert not curve.scored[0].any()
    of_all, of_scored = effective_length(curve), effective_length(shorter)
    assert of_all.lapse == pytest.approx(of_scored.lapse)
    assert replace(of_all, lapse=0) == replace(of_scored, lapse=0)


def test_a_manifest_without_cells_has_those_of_its_records(lab: Lab) -> None:
    """A run is what was answered."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    run = read_run(wanted.folder)
    run.manifest.cells.clear()
    write_manifest(wanted.folder, run.manifest)
    found = read_run(wanted.folder)
    assert (list(found.conditions), found.missing) == ([Condition({})], 0)
    assert found.cells["n"].tolist() == [3]


def test_one_scored_sample_is_enough_for_a_row(lab: Lab) -> None:
    """A row of one sample has an accuracy; one whose only sample failed has none."""

    def failing_at_three(request: Request) -> str:
        if "length=3" in request.sample_id:
            raise BadRequestError("400")
        return right(request)

    wanted = lab.wanted(lengths=[2, 3, 5], samples=1)
    lab.run(wanted, ScriptedProvider(failing_at_three))
    judged = read_run(wanted.folder).conditions[Condition({"separator": "none"})]
    assert judged.lengths == [2, 5]
    assert list(judged.scored_cells["n"]) == [1, 1]


@pytest.mark.parametrize("samples", [1, 3])
def test_answers_beyond_the_plan_are_judged(lab: Lab, samples: int) -> None:
    """The journal may have those of a longer plan, as a copied one."""
    lab.run(lab.wanted(samples=4))
    run = read_run(lab.wanted(samples=4).folder)
    run.manifest.cells[:] = [replace(cell, samples=samples) for cell in run.manifest.cells]
    write_manifest(run.folder, run.manifest)
    assert set(read_run(run.folder).cells["n"]) == {4}


def test_numbers_that_no_float_holds_are_infinite() -> None:
    """With their sign; what is no number is NaN."""
    assert as_float(10**400) == math.inf
    assert as_float(-(10**400)) == -math.inf
    assert math.isnan(as_float("7"))


def test_the_times_of_a_run_are_those_of_its_first_and_its_last_record(lab: Lab) -> None:
    """Whatever the order of the lines; records without a time are left out."""
    wanted = lab.wanted(lab.plain, samples=1)
    lab.run(wanted)
    (sample,) = wanted.plan
    lines = []
    for at in (200.0, None, 100.0, 300.5, 250.0):
        record = answered(sample, Reply("Final answer: 9"), attempts=1, latency_s=None)
        record.at = at
        lines.append(encode(record) + b"\n")
    path = wanted.folder / SAMPLES
    path.write_bytes(b"".join(lines))
    assert read_run(wanted.folder).times == (100.0, 300.5)
    path.write_bytes(lines[1])
    assert read_run(wanted.folder).times is None
