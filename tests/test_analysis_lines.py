"""Runs whose lines are bands, from the first request to every table and export."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.comparison.comparison_table import comparison_table
from eyechart.harness.analysis.ranking.leaderboard import run_rows
from eyechart.harness.analysis.samples.details import RunDetails, prompts_of, read_details
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import change_lines, write_results
from eyechart.harness.analysis.tables.tables import diagnosis_table
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import Condition, Line
from eyechart.providers.catalog.model_facts import ModelFacts
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records, right

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eyechart.harness.run.run_request import RunRequest
    from eyechart.providers.base import Request
    from tests.conftest import Lab

LENGTHS = [10, 50]
BANDS = [Line(10, 10, 22), Line(50, 23, 50)]
EXACT = [Line.exact(10), Line.exact(50)]


def wanted(lab: Lab, samples: int = 30, *, exact: bool = False, model: str = "") -> RunRequest:
    """Two bands under one condition, or exact lines of the same nominal lengths."""
    lab.with_bands()
    return lab.wanted(
        lab.plain,
        lengths=LENGTHS,
        exact=exact,
        samples=samples,
        model=model or "scripted/test",
    )


def long_is_wrong(request: Request) -> str:
    """Right up to 30 symbols."""
    row = request.prompt.splitlines()[-1]
    return right(request) if len(row) <= 30 else "Final answer: 999"


def test_a_run_continues_and_grows(lab: Lab) -> None:
    """What was answered is not asked again, whichever lines asked it."""
    first = lab.asked(wanted(lab, 7))
    assert lab.asked(wanted(lab, 7)) == []
    more = lab.asked(wanted(lab, 30))
    assert len(more) == 2 * 30 - len(first)
    assert not set(first) & set(more)
    asked = {record["id"] for record in records(wanted(lab).folder)}
    assert asked == {*first, *more}
    exact = lab.asked(wanted(lab, 30, exact=True))
    lengths = [int(identifier.split("length=")[1].split("|")[0]) for identifier in asked]
    assert 0 < sum(length in LENGTHS for length in lengths) == 2 * 30 - len(exact)
    assert not asked & set(exact)
    manifest = read_manifest(wanted(lab).folder)
    assert sorted(cell.line for cell in manifest.cells) == sorted([*BANDS, *EXACT])
    assert read_run(wanted(lab).folder).fingerprint() is not None


def test_an_exact_line_and_a_band_are_two_rows(lab: Lab) -> None:
    """Each with all its samples, those that both have in both."""
    lab.run(wanted(lab), ScriptedProvider(long_is_wrong))
    lab.run(wanted(lab, exact=True), ScriptedProvider(long_is_wrong))
    run = read_run(wanted(lab).folder)
    rows = list(csv.DictReader(io.StringIO(write_results(run).read_text())))
    lines = [(row["length"], row["length_low"], row["length_high"], row["n"]) for row in rows]
    assert lines == [
        *(("10", "10", "10", "30"), ("10", "10", "22", "30")),
        *(("50", "23", "50", "30"), ("50", "50", "50", "30")),
    ]
    assert [row["accuracy"] for row in rows[:2]] == ["1.0", "1.0"]
    assert 0 < float(rows[2]["accuracy"]) < 1
    assert rows[3]["accuracy"] == "0.0"
    diagnosis = diagnosis_table(run)[["length", "length_low", "length_high"]]
    assert diagnosis.to_numpy().tolist()[1] == [10, 10, 22]
    assert change_lines(read_run(wanted(lab).folder)) == []
    judged = run.conditions[Condition()]
    assert judged.lengths == [10, 50]
    assert judged.curve is not None
    assert judged.curve.lines == tuple(sorted([*BANDS, *EXACT]))
    band = judged.curve.lines.index(BANDS[1])
    symbols = judged.curve.true_lengths[:, band]
    assert len(set(symbols)) > 20
    np.testing.assert_array_equal(judged.curve.correct[:, band] == 1, symbols <= 30)
    run = replace(run, settings=JudgeSettings(tasks=str(lab.plain)))
    details = RunDetails(run, read_details(run), "test")
    assert all(prompts_of(run).of(details))
    assert len(details.details) == 120


def test_a_leaderboard_takes_lines_of_one_nominal_length_together(lab: Lab) -> None:
    """Its columns are by nominal length; the fingerprint tells the lines apart."""
    lab.run(wanted(lab), ScriptedProvider(long_is_wrong))
    ((row,), _) = run_rows(read_run(wanted(lab).folder))
    lab.run(wanted(lab, exact=True), ScriptedProvider(long_is_wrong))
    run = read_run(wanted(lab).folder)
    ((both,), _) = run_rows(run)
    assert (row["accuracy_at_10"], both["accuracy_at_10"]) == ("1", "1")
    assert float(both["accuracy_at_50"]) == pytest.approx(
        float(row["accuracy_at_50"]) / 2, abs=1e-5
    )
    assert row["fingerprint"] != both["fingerprint"]


def test_models_are_compared_line_by_line(lab: Lab) -> None:
    """Bands of one model against the same bands of the other; other lines have no pairs."""
    lab.run(wanted(lab), ScriptedProvider(right))
    lab.run(wanted(lab, model="scripted/b"), ScriptedProvider(long_is_wrong))
    lab.run(wanted(lab, exact=True, model="scripted/b"), ScriptedProvider(long_is_wrong))
    first, second = (read_run(wanted(lab, model=name).folder) for name in ("", "scripted/b"))
    table = comparison_table([compare_runs(first, second)], 0.05)
    shown = table[["length", "length_low", "length_high", "n"]].to_numpy().tolist()
    assert shown[:2] == [[10, 10, 22, 30], [50, 23, 50, 30]]
    assert table["difference"].iloc[0] == 0
    assert table["difference"].iloc[1] > 0


class Counting(ScriptedProvider):
    """Counts a token for each symbol of the row."""

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        return [len(prompt.splitlines()[-1]) for prompt in prompts]


def test_only_the_samples_of_a_band_that_are_too_long_are_not_sent(lab: Lab) -> None:
    """The shorter ones of the same cell are asked."""
    small = replace(wanted(lab), model=ResolvedModel("scripted/test", ModelFacts(window=40), None))
    lab.run(small, Counting(right))
    overflows = {record["length"]: "failure" in record for record in records(small.folder)}
    limit = min(length for length, is_overflow in overflows.items() if is_overflow)
    assert 28 < limit < 36
    assert overflows == {length: length >= limit for length in overflows}
    assert any("the longer samples are not sent" in said for said in lab.said)


def test_exports_tell_lines_of_one_nominal_length_apart(lab: Lab) -> None:
    """Names of results are unique; each sample has its true length."""
    fake = lab.fake(right)
    lab.with_bands()
    for exact in ((), ("--exact",)):
        done = lab.bench_run(
            *("--lengths", "10,50", *exact, "--samples", "20", "--model", fake),
            task=lab.plain,
        )
        assert done.code == 0, done
    assert "50 (23–50)" in lab.bench("score", lab.the_run()).out
    folder = lab.folder / "out"
    done = lab.bench("export", "every-eval-ever", lab.the_run(), "--task", lab.plain, "-o", folder)
    assert done.code == 0, done
    (aggregate,) = (path for path in folder.rglob("*.json"))
    results = json.loads(aggregate.read_text())["evaluation_results"]
    names = [result["evaluation_result_id"] for result in results]
    assert len(names) == len(set(names))
    assert "-|length=50:23-50|accuracy" in names
    (samples,) = folder.rglob("*.jsonl")
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    assert {row["evaluation_result_id"] for row in rows} <= set(names)
    for row in rows:
        assert f"|length={row['metadata']['length']}|" in row["sample_id"]
    report = lab.bench("report", lab.the_run(), "-o", lab.folder / "r.html", "--task", lab.plain)
    assert report.code == 0, report


def test_an_export_for_lm_eval_has_a_task_for_each_line(lab: Lab) -> None:
    """Named by the nominal length; its samples have their own."""
    lab.with_bands()
    folder = lab.folder / "tasks"
    done = lab.bench(
        *("export", "lm-eval", "--task", lab.plain, "--lengths", "10,50"),
        *("--samples", "20", "-o", folder),
    )
    assert done.code == 0, done
    (file,) = folder.rglob("*0000050.jsonl")
    lengths = {json.loads(line)["length"] for line in file.read_text().splitlines()}
    assert len(lengths) > 10
    assert min(lengths) >= 23
    assert max(lengths) <= 50


def test_a_batch_of_bands_is_imported_into_its_cells(lab: Lab) -> None:
    """A reply belongs to the sample that its true length and index name."""
    lab.with_bands()
    command = ("--task", lab.plain, "--model", "openai/gpt-4o", "--lengths", "10,50")
    more = ("--samples", "5", "--out", lab.out)
    requests = lab.folder / "requests.jsonl"
    assert lab.bench("export", "batch", *command, *more, "-o", requests).code == 0
    replies = lab.folder / "replies.jsonl"
    lines = [json.loads(line) for line in requests.read_text().splitlines()]
    assert len(lines) == 10
    body = {"choices": [{"message": {"content": "Final answer: 2"}, "finish_reason": "stop"}]}
    replies.write_text(
        "".join(
            json.dumps(
                {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": body}}
            )
            + "\n"
            for line in lines
        )
    )
    done = lab.bench("import", replies, "--out", lab.out, "--task", lab.plain)
    assert (done.code, "10 new answers" in done.err) == (0, True), done
    again = lab.bench("import", replies, "--out", lab.out, "--task", lab.plain)
    assert "10 known before" in again.err, again
    run = read_run(lab.the_run())
    assert run.cells["n"].tolist() == [5, 5]
    assert lab.bench("export", "batch", *command, *more, "-o", lab.folder / "b.jsonl").code == 0
