"""The same runs give the same numbers and findings through every door."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eyechart.harness.analysis.comparison.comparison import compare_runs
from eyechart.harness.analysis.findings.finding import Finding
from eyechart.harness.analysis.findings.moved import MOVED, NOT_MOVED
from eyechart.harness.analysis.findings.of_run import findings
from eyechart.harness.analysis.findings.pair import of_pair
from eyechart.harness.analysis.findings.ranks import of_standing
from eyechart.harness.analysis.length.effective_length import (
    NO_SINGLE_THRESHOLD,
    NOT_KNOWN,
    limited_by,
)
from eyechart.harness.analysis.length.limit import RANKED
from eyechart.harness.analysis.ranking.leaderboard import merge, run_rows
from eyechart.harness.analysis.ranking.leaderboard_file import write_leaderboard
from eyechart.harness.analysis.ranking.standing import standing
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.face.python.compare import compare
from eyechart.harness.face.python.result import load_run
from eyechart.harness.report.charts.effects import effects_of, gaps
from eyechart.harness.report.page.page_section import page_section_of
from eyechart.harness.report.page.page_tables import cells_table, estimates_table, pairs_table
from eyechart.harness.report.page.section import Section, sections
from eyechart.harness.report.paper.tables import paper_table
from eyechart.harness.settings.spelling import as_option
from eyechart.harness.spec.columns import COMPARISON, ESTIMATE_TEXTS
from eyechart.providers.base import BadRequestError, RefusedError, Reply, Request
from eyechart.providers.naming import spelled
from tests.conftest import Lab, right

KINDS = ("right", "wrong", "empty", "refused", "error")
LENGTHS = tuple(
    f"{name}{end}"
    for name in ("effective_length", "tested_length")
    for end in ("", "_ci_low", "_ci_high")
)


def scripted(seed: int, share: int) -> Callable[[Request], Any]:
    """Replies of every kind, drawn from the sample's id; `share` of twenty are right."""

    def reply(request: Request) -> Reply | str:
        rng = random.Random(f"{seed}|{request.sample_id}")
        kind = "right" if rng.randrange(20) < share else rng.choice(KINDS)
        if kind == "refused":
            raise RefusedError("no")
        if kind == "error":
            raise BadRequestError("400")
        if kind == "empty":
            return ""
        return "Final answer: 9" if kind == "wrong" else right(request)

    return reply


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float | None:
    return float(text) if text else None


def near(value: float | None) -> Any:
    """As a table of the page has it."""
    return None if value is None else pytest.approx(value, abs=6e-4)


def listed(table: Any) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


@settings(
    max_examples=1,
    phases=[Phase.generate],
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 2**32),
    shares=st.tuples(*[st.integers(0, 20)] * 2),
    samples=st.integers(2, 7),
)
def test_every_door_has_the_same_numbers(
    lab: Lab, seed: int, shares: tuple[int, int], samples: int
) -> None:
    """Of two runs with replies of every kind, some of them answered twice."""
    out = lab.out / f"{seed}-{samples}-{shares[0]}-{shares[1]}"
    lab.folder.mkdir(exist_ok=True)
    folders = []
    for name, share in zip("ab", shares, strict=True):
        for again in range(2):  # what failed is asked again, so that two records stand for a sample
            model = lab.fake(scripted(seed + again, share)).replace("model", name)
            done = lab.bench_run(
                *("--model", model, "--lengths", "2,4,9", "--samples", str(samples), "--out", out),
                *("--axis", "separator=all"),
            )
        folders.append(out / "runs" / model / next((out / "runs" / model / "lab").iterdir()))
        check_run(lab, folders[-1], done.out)
    check_comparison(lab, folders)


def check_run(lab: Lab, folder: Path, printed: str) -> None:
    """One run: its CSV files, the terminal, the leaderboard, the page, the exports."""
    table, estimates = rows(folder / "table.csv"), rows(folder / "effective_length.csv")
    (section,) = sections([read_run(folder)])
    for of_page, of_file in zip(listed(cells_table(section)), table, strict=True):
        for name in ("n", "correct", "error", "accuracy", "ci_low", "ci_high", "mean_abs_error"):
            assert of_page[name] == near(number(of_file[name])), name
    for cell in scored(table):
        low, high = (100 * float(cell[end]) for end in ("ci_low", "ci_high"))
        assert f"{100 * float(cell['accuracy']):.0f} ({low:.0f}–{high:.0f})" in printed
    for of_page, of_file in zip(listed(estimates_table(section)), estimates, strict=True):
        assert of_page["area"] == near(number(of_file["area"]))
        if of_file["area"]:
            said = length_text(of_file, "effective_length")
            assert (NOT_KNOWN if of_page["right to"] is None else of_page["right to"][0]) == said
            assert said in printed
            assert of_page["limited by"] == of_file["limited_by"]
            assert limited_by(of_file["limited_by"]) in printed
            assert of_page["tested length"][0] == length_text(of_file, "tested_length")
            assert of_page["single threshold"] == of_file["one_threshold"]
            assert (NO_SINGLE_THRESHOLD in printed) >= (of_file["one_threshold"] == "no")
            assert of_page["lapse rate"] == near(number(of_file["lapse"]))
    check_findings(lab, folder, section)
    place = folder.parents[4] / folder.parents[1].name
    check_leaderboard(folder, place.with_suffix(".csv"), table, estimates)
    if any(row["area"] for row in estimates):
        check_exports(lab, folder, place, table, estimates)


def check_findings(lab: Lab, folder: Path, section: Section) -> None:
    """One run: the terminal, JSON, Python, the page and a paper."""
    found = findings(read_run(folder))
    kinds = [one.kind for one in found]
    assert "not known" in kinds or "effective length" in kinds
    printed = " ".join(lab.bench("score", folder, "--all-findings").out.split())
    assert [text for text in texts_of(found) if " ".join(text.split()) not in printed] == []
    (document,) = json.loads(lab.bench("score", folder, "--json").out)["runs"]
    assert [one["kind"] for one in document["findings"]] == kinds
    assert [one["sentence"] for one in document["findings"]] == [one.sentence for one in found]
    assert [one.kind for one in load_run(folder).findings] == kinds
    on_page = page_section_of(section, [])
    moved = [one for one in found if one.kind in (MOVED.name, NOT_MOVED.name)]
    assert moved
    assert [*on_page.moved.values()] == [" ".join(texts_of(moved))]
    others = texts_of([one for one in found if one not in moved])
    assert [on_page.summary, *on_page.notes] == others
    table = paper_table(section)
    warnings = [one for one in found if one.level == "warning"]
    assert [text for text in texts_of(warnings) if text not in table.notes] == []


def texts_of(found: Sequence[Finding]) -> list[str]:
    return [spelled(str(one), as_option) for one in found]


def check_findings_of_two(lab: Lab, folders: list[Path], section: Section) -> None:
    """`bench compare`, the leaderboard, JSON, Python and the page."""
    first, second = map(read_run, folders)
    found = of_pair(compare_runs(first, second))
    assert found[0].kind == "verdict"
    printed = " ".join(lab.bench("compare", *folders, "--all-findings").out.split())
    assert [text for text in texts_of(found) if " ".join(text.split()) not in printed] == []
    (pair,) = json.loads(lab.bench("compare", *folders, "--json").out)["pairs"]
    assert [one["sentence"] for one in pair["findings"]] == [one.sentence for one in found]
    assert [one.kind for one in compare(*folders).findings] == [one.kind for one in found]
    of_all = of_standing(section.standing)
    assert {one.sentence for one in of_all} >= {one.sentence for one in found if one.names}
    file = folders[0].parents[4] / "both.csv"
    board: list[str | Path] = ["leaderboard", *folders, "-o", file]
    printed = " ".join(lab.bench(*board, "--all-findings").out.split())
    assert [text for text in texts_of(of_all) if " ".join(text.split()) not in printed] == []
    (ranks,) = json.loads(lab.bench(*board, "--json").out)["ranks"]
    assert [one["kind"] for one in ranks["findings"]] == [one.kind for one in of_all]
    on_page = page_section_of(section, [])
    assert [text for text in (on_page.summary, *on_page.notes) if text] == texts_of(of_all)


def scored(table: list[dict[str, str]]) -> list[dict[str, str]]:
    return [cell for cell in table if cell["n"] != "0"]


def length_text(row: dict[str, str], name: str) -> str:
    """A length as people see it, from its columns in a file."""
    if not row[name]:
        return NOT_KNOWN
    return f"{row[f'{name}_bound']} {float(row[name]):g}".strip()


def check_leaderboard(
    folder: Path,
    board: Path,
    table: list[dict[str, str]],
    estimates: list[dict[str, str]],
) -> None:
    """A row a condition that is complete."""
    new, _ = run_rows(read_run(folder))
    write_leaderboard(board, merge(new))
    by_condition = {row["separator"]: row for row in estimates}
    for row in rows(board):
        of_file = by_condition[row["condition"].partition("=")[2]]
        for name in (*LENGTHS, "lapse", "area", "n", "not_scored"):
            assert number(row[name]) == near(number(of_file[name])), name
        for name in ESTIMATE_TEXTS:
            assert row[name] == of_file[name], name
        for cell in table:
            if cell["separator"] == of_file["separator"]:
                accuracy = number(row[f"accuracy_at_{cell['length']}"])
                assert accuracy == near(number(cell["accuracy"]))


def check_exports(
    lab: Lab,
    folder: Path,
    place: Path,
    table: list[dict[str, str]],
    estimates: list[dict[str, str]],
) -> None:
    """Every Eval Ever and the hub."""
    lab.bench("export", "every-eval-ever", folder, "-o", place, "--incomplete", "--no-samples")
    (record,) = place.rglob("*.json")
    scores = {
        (
            result["score_details"]["details"]["condition"],
            result["metric_config"]["metric_kind"],
            result["metric_config"]["metric_parameters"].get("length"),
        ): result["score_details"]["score"]
        for result in json.loads(record.read_text())["evaluation_results"]
    }
    for cell in scored(table):
        key = f"separator={cell['separator']}", "accuracy", int(cell["length"])
        assert scores[key] == near(number(cell["accuracy"]))
    for row in (row for row in estimates if row["area"]):
        below = row["effective_length_bound"] == "<"
        length = scores.get((f"separator={row['separator']}", "effective_length", None))
        if row["effective_length"] and row["limited_by"] in RANKED:
            assert length == (0 if below else float(row["effective_length"]))
        else:
            assert length is None


def check_comparison(lab: Lab, folders: list[Path]) -> None:
    """Two runs, and two conditions of one: `bench compare` and the page."""
    (section,) = sections([read_run(folder) for folder in folders])
    folder_of = {shown.name: shown.run.folder for shown in section.runs}
    check_findings_of_two(lab, folders, section)
    ranks = standing([(shown.name, shown.run) for shown in section.runs])
    of_models = [effect for gap in gaps(section, ranks) for effect in gap.effects]
    asked: dict[tuple[str | Path, ...], list[dict[str, Any]]] = {}
    for row in listed(pairs_table(section, [*effects_of(section), *of_models])):
        if row["axis"] == "model":
            command: tuple[str | Path, ...] = folder_of[row["first"]], folder_of[row["second"]]
        else:
            values = f"separator={row['first']},{row['second']}"
            command = folder_of[row["model"]], "--axis", values
        asked.setdefault(command, []).append(row)
    for command, mine in asked.items():
        same_numbers(lab, mine, *command)


def same_numbers(lab: Lab, of_page: list[dict[str, Any]], *command: str | Path) -> None:
    """What `bench compare` writes is what stands on the page, p-values included."""
    path = lab.folder / "compared.csv"
    assert lab.bench("compare", *command, "-o", path).code == 0
    of_file = [row for row in rows(path) if row["condition"] != "all"]

    # the file has condition after condition
    of_file.sort(key=lambda row: str(row["condition"]))
    of_page = sorted(of_page, key=lambda row: row.get("with") or "")
    assert len(of_page) == len(of_file)
    for page_row, row in zip(of_page, of_file, strict=True):
        assert page_row["measure"] == row["measure"]
        for name in {*page_row} & {*COMPARISON} - {"first", "second", "measure", "unit"}:
            shown, written = page_row[name], row[name]
            if isinstance(shown, str) or shown is None:
                assert (shown or "") == written, name
            else:
                assert shown == pytest.approx(float(written), rel=6e-3, abs=6e-5), name
