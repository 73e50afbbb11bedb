"""The sentences and tables of a page about what moved an effective length."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.comparison.comparison import compare_conditions
from eyechart.harness.analysis.comparison.comparison_text import verdict_text
from eyechart.harness.analysis.comparison.paired_curves import holm
from eyechart.harness.analysis.findings.moved import size_text
from eyechart.harness.analysis.ranking.standing import Standing, standing
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.charts.accuracy import accuracy_figure
from eyechart.harness.report.charts.effects import effects_of, gaps
from eyechart.harness.report.page.page_section import page_section_of
from eyechart.harness.report.page.section import Section, sections
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import mark_chosen, right
from tests.pages import data_of
from tests.sentences import headline, moved_text
from tests.test_report_page import finding_of, moved_run, report, right_to, section_of

if TYPE_CHECKING:
    from tests.conftest import Lab


def standing_of(section: Section) -> Standing:
    return standing([(one.name, one.run) for one in section.runs])


def said_of(folder: Path) -> str:
    """What is said under the headline of a run alone."""
    section = section_of(folder)
    said = moved_text(section.runs[0].run)
    assert page_section_of(section, []).summary == headline(section.runs[0].run)
    return said


def test_a_sentence_says_what_moved_the_breaking_point(lab: Lab) -> None:
    """From which value to which, and both effective lengths."""
    folder = moved_run(lab)
    said = said_of(folder)
    assert re.fullmatch(
        r"With separator comma instead of none, scripted/test counts exactly "
        r"further: to > 16 instead of "
        r"\d \(\d to \d\); at length 8 its accuracy rises by 100 points\.",
        said,
    )
    shown = html.unescape(finding_of(report(lab, folder)))
    assert shown == f"{headline(read_run(folder))} {said}"


def test_a_sentence_says_that_nothing_moved_it(lab: Lab) -> None:
    """With the differences of areas that are not ruled out, and what an area is."""
    wanted = lab.wanted(samples=20)
    lab.run(wanted)
    page = report(lab, wanted.folder)
    assert re.fullmatch(
        r"No change of separator shows a difference in how far scripted/test "
        r"counts exactly or in its area; "
        r"the 95 % interval of its difference of areas lies within -\d+ to \+\d+ points\.",
        said_of(wanted.folder),
    )
    assert page.count("The <dfn>area</dfn> is") == 1


def test_a_condition_that_was_tested_less_far_has_not_seen_less_far(lab: Lab) -> None:
    """The lengths are those of the run's table."""
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20)
    script = ScriptedProvider(right_to(99, with_comma=99))
    lab.run(wanted, script)
    path = wanted.folder / SAMPLES
    lines = [line for line in path.read_text().splitlines() if not _comma_beyond(line, 4)]
    path.write_text("\n".join(lines) + "\n")
    (effect,) = effects_of(section_of(wanted.folder))
    assert [str(one.length) for one in (effect.before, effect.after)] == ["> 16", "> 4"]
    assert not effect.further
    assert effect.shift == 0


def _comma_beyond(line: str, length: int) -> bool:
    record = json.loads(line)
    return bool(record["condition"]["separator"] == "comma" and record["length"] > length)


def sometimes(share: float) -> Callable[[Request], str]:
    """Right with commas; without them for `share` of the rows longer than four."""

    def answer(request: Request) -> str:
        row = request.prompt.splitlines()[-1]
        index = int(request.sample_id.rpartition("=")[2])
        seen = "," in row or len(row) <= 4 or index % 10 < 10 * share
        return right(request) if seen else "Final answer: 100"

    return answer


def test_lengths_whose_intervals_overlap_are_no_move(lab: Lab) -> None:
    """The area is said, and both lengths without a direction."""
    wanted = lab.wanted(model="openai/test", lengths=[2, 4, 8, 16], samples=20)
    lab.run(wanted, ScriptedProvider(sometimes(0.7)))
    page = report(lab, wanted.folder)
    assert re.fullmatch(
        r"With separator comma instead of none, no difference in effective length is shown for "
        r"openai/test \(> 16 and \d+ \(\d+ to > 16\)\), but its area is larger: a "
        r"difference of areas of \d+ points \(\d+ to \d+\); tokens a symbol are not known, so the "
        r"effect of separator is confounded with that of the tokenizer\.",
        said_of(wanted.folder),
    )
    assert "What moved the breaking point most" not in page


def copied_run(lab: Lab, odd: list[str]) -> Path:
    """Always says the repeated symbol, but with the hint the odd one."""
    task = open_task("copying/first_last", built_in_files()["copying/first_last"], trial=False)
    axes = {"hint": ["off", "on"], "odd": odd, "position": ["first"]}
    wanted = RunRequest(
        plan(task, lengths=[5, 10, 20], exact=True, samples=40, axes=axes),
        resolve_model("scripted/x"),
        Settings(),
        lab.out,
    )
    script = ScriptedProvider(
        lambda r: f"Final answer: {'0' if 'check it carefully' in r.prompt else '1'}"
    )
    lab.run(wanted, script)
    return wanted.folder


def test_a_control_is_no_finding(lab: Lab) -> None:
    """Where the answer is another one, the samples are not the same."""
    folder = copied_run(lab, ["zero", "absent"])
    section = section_of(folder)
    found = effects_of(section)
    assert [
        (one.axis, one.where, one.compared.same_targets, one.compared.control) for one in found
    ] == [
        ("hint", "odd zero", True, False),
        ("hint", "odd absent", True, True),
        ("odd", "hint off", False, True),
        ("odd", "hint on", False, True),
    ]
    said = moved_text(section.runs[0].run)
    assert said.startswith(
        "With hint on instead of off (odd zero), scripted/x copies exactly "
        "further: to > 20 instead of < 5; "
        "at length 5 its accuracy rises by 100 points."
    )
    assert "from" not in said
    page = report(lab, folder)
    assert "on other rows of the same length" in page
    assert page.count("on the same samples") == 1
    highlights = page.partition('class="highlights"')[2].partition("</section>")[0]
    assert highlights.count("<li>") == 1
    assert "hint off \u2192 on, odd zero" in highlights


def test_one_condition_has_its_length_said(lab: Lab) -> None:
    """Where there is nothing to compare."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    said = finding_of(report(lab, wanted.folder))
    assert (
        html.unescape(said)
        == headline(read_run(wanted.folder))
        == (
            "It is not known how far scripted/test counts exactly on lab/plain: "
            "with so few replies the 95 % "
            "interval is < 4 to > 4."
        )
    )


def test_models_are_compared(lab: Lab) -> None:
    """On the same samples, with the interval; each model has a panel on the same axes."""
    near = moved_run(lab, "scripted/near", reach=2)
    far = moved_run(lab, "scripted/far", reach=8)
    section = section_of(near, far)
    ranks = standing_of(section)
    (gap,) = gaps(section, ranks)
    text = verdict_text(gap.comparison).replace("-", "\u2212")
    assert page_section_of(section, []).gap[0] == text
    assert text.startswith("scripted/far and scripted/near differ on lab/ones")
    assert [place.name for place in ranks.places] == ["scripted/far", "scripted/near"]
    figure = accuracy_figure(section)
    assert [panel.model for panel in figure.panels] == ["scripted/near", "scripted/far"]
    page = report(lab, near, far)
    assert "How far are 2 models right?" in page
    assert page.count('name="shown"') == 2
    assert text in html.unescape(page)
    pairs = {table["name"]: table for table in data_of(page)["tables"]}["lab-ones-differences"]
    named = {tuple(row[:5]) for row in pairs["rows"] if row[1] == "model"}
    assert named == {
        ("scripted/far", "model", "scripted/far", "scripted/near", f"separator {value}")
        for value in ("none", "comma")
    }


def test_models_that_see_alike(lab: Lab) -> None:
    """Are not ranked; and those with other rows are not compared."""
    same = [moved_run(lab, f"scripted/{name}") for name in ("one", "two")]
    section = section_of(*same)
    (gap,) = gaps(section, standing_of(section))
    assert verdict_text(gap.comparison).startswith(
        "scripted/one and scripted/two are equivalent on lab/ones (mean of 2 "
    )
    other = lab.wanted(model="scripted/three", settings=Settings(seed=1))
    lab.run(other)
    section = section_of(same[0], other.folder)
    assert gaps(section, standing_of(section)) == []


def test_runs_of_one_model_are_told_apart(lab: Lab) -> None:
    """By the settings in which they differ."""
    wanted = [lab.wanted(settings=Settings(temperature=at)) for at in (0.0, 0.5)]
    for one in wanted:
        lab.run(one)
    section = section_of(*(one.folder for one in wanted))
    assert [shown.name for shown in section.runs] == [
        "scripted/test (temperature=0.0)",
        "scripted/test (temperature=0.5)",
    ]
    assert section_of(wanted[0].folder).runs[0].name == "scripted/test"


def test_a_changed_task_is_a_section_of_its_own(lab: Lab) -> None:
    """Two versions are never drawn as one."""
    first = lab.wanted()
    lab.run(first)
    lab.ones.write_text(lab.ones.read_text().replace("version: 1", "version: 2"))
    second = lab.wanted()
    lab.run(second)
    found = sections([read_run(one.folder) for one in (first, second)])
    assert [section.name.partition(",")[0] for section in found] == [
        "lab/ones (version 1",
        "lab/ones (version 2",
    ]


def test_effects_hold_the_other_axes(lab: Lab) -> None:
    """Each value is against the first, at every setting of the others, on the same samples."""
    task = open_task("counting/ones", built_in_files()["counting/ones"], trial=False)
    axes = {"separator": ["none", "comma", "space"], "strategy": ["direct", "cot_zero_shot"]}
    planned = plan(task, lengths=[5, 10], samples=4, axes=axes)
    wanted = RunRequest(planned, resolve_model("scripted/test"), Settings(), lab.out)
    lab.run(wanted, ScriptedProvider(lambda _request: "Final answer: 5"))
    section = section_of(wanted.folder)
    found = effects_of(section)
    assert section.varied == ["separator", "strategy"]
    assert [(one.axis, one.baseline, one.value, one.where) for one in found] == [
        ("separator", "none", "space", "strategy direct"),
        ("separator", "none", "comma", "strategy direct"),
        ("separator", "none", "space", "strategy cot_zero_shot"),
        ("separator", "none", "comma", "strategy cot_zero_shot"),
        ("strategy", "direct", "cot_zero_shot", "separator none"),
        ("strategy", "direct", "cot_zero_shot", "separator space"),
        ("strategy", "direct", "cot_zero_shot", "separator comma"),
    ]
    assert all([row.n for row in one.compared.paired.lengths] == [4, 4] for one in found)
    assert moved_text(section.runs[0].run).startswith("No change of separator or strategy ")


def test_effects_of_a_model_are_corrected_together(lab: Lab) -> None:
    """Each change of an effective length has Holm's p-value over all changes of the model."""
    task = open_task("counting/ones", built_in_files()["counting/ones"], trial=False)
    axes = {"separator": ["none", "comma", "space"], "strategy": ["direct"]}
    planned = plan(task, lengths=[2, 4, 8, 16, 32], samples=12, axes=axes)
    wanted = RunRequest(planned, resolve_model("scripted/test"), Settings(), lab.out)

    def answer(request: Request) -> str:
        reach = 32 if "separator=comma" in request.sample_id else 4
        length = int(request.sample_id.partition("|length=")[2].partition("|")[0])
        return right(request) if length <= reach else "Final answer: 100"

    lab.run(wanted, ScriptedProvider(answer))
    section = section_of(wanted.folder)
    found = effects_of(section)
    lengths = [
        compare_conditions(section.runs[0].run, "separator", (one.value, "none")).length
        for one in found
    ]
    raw = [length.p for length in lengths if length.p is not None]
    corrected = [one.compared.length.p for one in found]
    assert corrected == pytest.approx(holm(raw))
    assert corrected != pytest.approx(raw)


@pytest.mark.parametrize(
    ("area", "size"),
    [
        ((0.5, 0.25, (0.2, 0.3)), "25 points (20 to 30)"),
        ((0.25, 0.5, (-0.3, -0.2)), "25 points (20 to 30)"),
        ((0.5, 0.5, (-0.004, 0.02)), "0.0 points (-0.4 to 2.0)"),
    ],
)
def test_differences_in_words(area: tuple[float, float, tuple[float, float]], size: str) -> None:
    """Without a sign, and with one digit where the whole number would hide it."""
    first, second, ends = area
    assert size_text(first - second, *ends) == size


def test_an_adaptive_run_has_no_area(lab: Lab) -> None:
    """Neither in the tables nor in a sentence; its effective length is there, and what it is."""
    lab.bench_ask("--model", lab.fake(right), "--adaptive")
    page = report(lab, lab.the_run())
    tables = {table["name"]: table for table in data_of(page)["tables"]}
    sights = tables["lab-ones-effective-length"]
    rows = [dict(zip(sights["columns"], row, strict=True)) for row in sights["rows"]]
    assert [(row["adaptive"], row["area"]) for row in rows] == [("yes", None), ("yes", None)]
    assert all(row["right to"][0] == "> 5" for row in rows)
    pairs = tables["lab-ones-differences"]
    measures = {row[pairs["columns"].index("measure")] for row in pairs["rows"]}
    assert measures == {"accuracy", "effective_length"}
    said = "No change of separator shows a difference in how far fake/model is right."
    assert said_of(lab.the_run()) == said
    (panel,) = accuracy_figure(section_of(lab.the_run())).panels
    assert panel.title == "adaptive"
    assert panel.data["curve"][0]["where"] == "none, adaptive"


def test_adaptive_samples_have_no_sentence_about_areas(lab: Lab) -> None:
    """One condition that is adaptive is enough."""
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20)
    lab.run(wanted, ScriptedProvider(sometimes(0.7)))
    mark_chosen(wanted.folder, "none")
    page = report(lab, wanted.folder)
    assert said_of(wanted.folder) == (
        "No change of separator shows a difference in how far scripted/test counts exactly."
    )
    sights = data_of(page)["tables"][0]
    at = sights["columns"].index("adaptive")
    assert [row[at] for row in sights["rows"]] == ["yes", ""]
