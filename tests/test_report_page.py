"""The report: what its page says of runs, and that no run can break it."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness import errors
from harness.analysis.comparison import compare_conditions
from harness.analysis.comparison_text import finding as finding_in_words
from harness.analysis.curve import Threshold
from harness.analysis.judged_run import read_run
from harness.analysis.paired import PairedArea, holm
from harness.analysis.standing import Standing, standing
from harness.columns import OUTCOMES
from harness.journal.manifest import read_manifest, write_manifest
from harness.journal.record import SAMPLES
from harness.plan.plan import plan
from harness.plan.resolved_model import resolve_model
from harness.report import reported
from harness.report.accuracy import accuracy_figure
from harness.report.effects import effects, finding, gaps, size_text
from harness.report.figures import answer_figures
from harness.report.page import visible, write_report
from harness.report.paged import CHUNK, FIELDS, pack
from harness.report.published import published_figures
from harness.report.reported import read_reported
from harness.report.section import Section, sections
from harness.run.run_request import RunRequest
from harness.spec import Condition, Settings
from harness.task.catalogue import built_in_files, open_task
from providers.base import BadRequestError, Reply, Request, Usage
from providers.scripted import ScriptedProvider
from tests.conftest import right

if TYPE_CHECKING:
    from tests.conftest import Lab

HOSTILE = "</script><script>alert(1)</script>{{ 7 * 7 }}\u202e\x00 <!-- \u2028"
Said = dict[str, Any]


def report(lab: Lab, *folders: Path, **options: Any) -> str:
    """The page of these runs."""
    out = lab.folder / "report.html"
    assert write_report([*map(read_run, folders)], out, warn=lab.said.append, **options) == [out]
    return out.read_text(encoding="utf-8")


def data_of(page: str) -> Said:
    """What the page's script reads."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match is not None
    read: Said = json.loads(match[1])
    return read


def unpack(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))


def samples_of(page: str) -> list[Said]:
    """Every sample in the browser, with its outcome."""
    index = re.search(r'<script type="text/plain" id="index">(.*?)</script>', page)
    chunks = re.findall(r'<script type="text/plain" class="chunk">(.*?)</script>', page)
    assert index is not None
    columns = unpack(index[1])
    rows = [row for chunk in chunks for row in unpack(chunk)]
    return [
        {**dict(zip(FIELDS, row, strict=True)), "outcome": OUTCOMES[outcome], "run": run}
        for row, outcome, run in zip(rows, columns["outcome"], columns["run"], strict=True)
    ]


def finding_of(page: str) -> str:
    """The sentence above the first chart."""
    match = re.search(r'<p class="finding">(.*?)</p>', page, re.DOTALL)
    assert match is not None
    return " ".join(re.sub(r"<[^>]+>", " ", match[1]).split())


def sees_to(symbols: int, *, with_comma: int) -> Callable[[Request], str]:
    """Counts right up to a length, and says nothing beyond it."""

    def answer(request: Request) -> str:
        row = request.prompt.splitlines()[-1]
        reach = with_comma if "," in row else symbols
        seen = len(row.replace(",", "")) <= reach
        return right(request) if seen else "Final answer: 100"

    return answer


def section_of(*folders: Path, threshold: Threshold = Threshold()) -> Section:
    (section,) = sections([read_run(folder) for folder in folders], threshold)
    return section


def standing_of(section: Section) -> Standing:
    return standing([(one.name, one.run) for one in section.runs], section.threshold)


def moved_run(lab: Lab, model: str = "scripted/test", reach: int = 4) -> Path:
    """Sees four symbols without separators and all with commas."""
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=40, model=model)
    lab.run(wanted, ScriptedProvider(sees_to(reach, with_comma=99)))
    return wanted.folder


def test_a_sentence_says_what_moved_the_breaking_point(lab: Lab) -> None:
    """From which value to which, and both effective lengths."""
    said = finding_of(report(lab, moved_run(lab)))
    assert re.fullmatch(
        r"With separator comma instead of none, scripted/test sees further: to &gt; 16 instead of "
        r"\d \(\d to \d\); at length 8 its accuracy rises by 100 points\.",
        said,
    )


def test_a_sentence_says_that_nothing_moved_it(lab: Lab) -> None:
    """With the differences of areas that are not ruled out, and what an area is."""
    wanted = lab.wanted(samples=20)
    lab.run(wanted)
    page = report(lab, wanted.folder)
    assert re.fullmatch(
        r"No change of separator shows a difference in how far scripted/test sees or in its area; "
        r"the 95 % interval of its difference of areas lies within −\d+ to \+\d+ points\.",
        finding_of(page),
    )
    assert page.count("The <dfn>area</dfn> is") == 1


def test_a_move_is_on_the_lengths_that_both_have(lab: Lab) -> None:
    """A condition that was tested less far has not seen less far."""
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20)
    script = ScriptedProvider(sees_to(99, with_comma=99))
    lab.run(wanted, script)
    path = wanted.folder / SAMPLES
    lines = [line for line in path.read_text().splitlines() if not _comma_beyond(line, 4)]
    path.write_text("\n".join(lines) + "\n")
    (effect,) = effects(section_of(wanted.folder))
    assert [str(one.length) for one in (effect.before, effect.after)] == ["> 4", "> 4"]
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
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20)
    lab.run(wanted, ScriptedProvider(sometimes(0.8)))
    page = report(lab, wanted.folder)
    assert re.fullmatch(
        r"With separator comma instead of none, no difference in effective length is shown for "
        r"scripted/test \(&gt; 16 and \d+ \(\d+ to &gt; 16\)\), but its area is larger: a "
        r"difference of areas of \d+ points \(\d+ to \d+\)\.",
        finding_of(page),
    )
    assert "What moved the breaking point most" not in page


def copied_run(lab: Lab, odd: list[str]) -> Path:
    """Always says the repeated symbol, but with the hint the odd one."""
    task = open_task("copying/first_last", built_in_files()["copying/first_last"], trial=False)
    axes = {"hint": ["off", "on"], "odd": odd, "position": ["first"]}
    wanted = RunRequest(
        plan(task, lengths=[5, 10, 20], samples=40, axes=axes),
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
    found = effects(section)
    assert [
        (one.axis, one.where, one.compared.same_targets, one.compared.control) for one in found
    ] == [
        ("hint", "odd zero", True, False),
        ("hint", "odd absent", True, True),
        ("odd", "hint off", False, True),
        ("odd", "hint on", False, True),
    ]
    said = finding(section, section.runs[0], found)
    assert said.startswith(
        "With hint on instead of off (odd zero), scripted/x sees further: to > 20 instead of < 5; "
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
    assert said == "scripted/test sees to &gt; 4."


def test_models_are_compared(lab: Lab) -> None:
    """On the same samples, with the interval; each model has a panel on the same axes."""
    near = moved_run(lab, "scripted/near", reach=2)
    far = moved_run(lab, "scripted/far", reach=8)
    section = section_of(near, far)
    ranks = standing_of(section)
    (gap,) = gaps(section, ranks)
    assert str(gap) == finding_in_words(gap.comparison).replace("-", "\u2212")
    assert str(gap).startswith("scripted/far has a larger area than scripted/near on lab/ones")
    assert [place.name for place in ranks.places] == ["scripted/far", "scripted/near"]
    figure = accuracy_figure(section)
    assert [panel.model for panel in figure.panels] == ["scripted/near", "scripted/far"]
    page = report(lab, near, far)
    assert "How far do 2 models see?" in page
    assert page.count('name="model"') == 2
    assert str(gap) in html.unescape(page)
    pairs = {table["name"]: table for table in data_of(page)["tables"]}["lab-ones-differences"]
    named = {tuple(row[:5]) for row in pairs["rows"] if row[1] == "model"}
    assert named == {
        ("scripted/far", "model", "scripted/near", "scripted/far", f"separator {value}")
        for value in ("none", "comma")
    }


def test_models_that_see_alike(lab: Lab) -> None:
    """Are not ranked; and those with other rows are not compared."""
    same = [moved_run(lab, f"scripted/{name}") for name in ("one", "two")]
    section = section_of(*same)
    (gap,) = gaps(section, standing_of(section))
    assert str(gap).startswith(
        "no difference found between scripted/one and scripted/two on lab/ones (mean of 2 "
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
        "scripted/test, temperature 0.0",
        "scripted/test, temperature 0.5",
    ]
    assert section_of(wanted[0].folder).runs[0].name == "scripted/test"


def test_a_changed_task_is_a_section_of_its_own(lab: Lab) -> None:
    """Two versions are never drawn as one."""
    first = lab.wanted()
    lab.run(first)
    lab.ones.write_text(lab.ones.read_text().replace("version: 1", "version: 2"))
    second = lab.wanted()
    lab.run(second)
    found = sections([read_run(one.folder) for one in (first, second)], Threshold())
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
    found = effects(section)
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
    assert finding(section, section.runs[0], found).startswith(
        "No change of separator or strategy "
    )


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
    found = effects(section)
    raw = [
        compare_conditions(section.runs[0].run, "separator", (one.value, "none")).length.p
        for one in found
    ]
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
    assert size_text(PairedArea(*area, (0.0, 0.0))) == size.replace("-", "−")


def test_prompts_are_made_again(lab: Lab) -> None:
    """Those of a built-in task, each as it was asked; the answer's place is marked."""
    task = open_task("counting/bernoulli", built_in_files()["counting/bernoulli"], trial=False)
    wanted = RunRequest(
        plan(task, lengths=[5, 20], samples=3), resolve_model("scripted/x"), Settings(), lab.out
    )
    provider = ScriptedProvider(lambda _request: "😀 so the Final answer: 12 it is")
    lab.run(wanted, provider)
    prompts = {request.sample_id: request.prompt for request in provider.requests}
    samples = samples_of(report(lab, wanted.folder))
    assert {sample["id"]: sample["prompt"] for sample in samples} == prompts
    for sample in samples:
        utf16 = sample["reply"].encode("utf-16-le")
        assert utf16[2 * sample["start"] : 2 * sample["end"]].decode("utf-16-le") == "12"
        assert sample["answer"] == "12"


def test_own_tasks_are_named_for_their_prompts(lab: Lab) -> None:
    """Without the file the page says why there is no prompt; with it there is one."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    page = report(lab, wanted.folder)
    assert [sample["prompt"] for sample in samples_of(page)] == [None] * 3
    assert data_of(page)["runs"][0]["why"] == "the task file of lab/plain is not at hand"
    said = (
        "prompts of lab/plain are not shown: name its file with --task, or execute the code that "
        "came with the run with --run-kept-code"
    )
    assert lab.said == [said]
    page = report(lab, wanted.folder, tasks=str(lab.plain))
    assert all("How many ones?" in sample["prompt"] for sample in samples_of(page))
    page = report(lab, wanted.folder, run_kept_code=True)
    assert all("How many ones?" in sample["prompt"] for sample in samples_of(page))
    assert lab.said == [said]


def test_a_prompt_that_changed_is_not_shown(lab: Lab) -> None:
    """Neither where the task file changed nor where its generator did."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    path = wanted.folder / SAMPLES
    path.write_text(re.sub(r'"prompt_hash":"\w+"', '"prompt_hash":"0"', path.read_text()))
    page = report(lab, wanted.folder, tasks=str(lab.plain))
    assert [sample["prompt"] for sample in samples_of(page)] == [None] * 3
    assert data_of(page)["runs"][0]["why"] == ""
    lab.plain.write_text(lab.plain.read_text().replace("How many", "Count the"))
    (wanted.folder / "kept" / read_manifest(wanted.folder).kept).unlink()
    page = report(lab, wanted.folder, tasks=str(lab.plain))
    assert data_of(page)["runs"][0]["why"] == "lab/plain has changed since this run"


def test_every_outcome_is_in_the_browser(lab: Lab) -> None:
    """Also what has no reply, with the reason."""
    replies: Sequence[object] = (
        "Final answer: 99",
        "no idea",
        BadRequestError("too hot"),
        Reply("Final ans", finish_reason="length", usage=Usage(5, 3)),
        Reply("", refusal="I will not"),
    )
    wanted = lab.wanted(lab.plain, samples=5)
    lab.run(wanted, ScriptedProvider(lambda request: _reply(replies, request)), max_connections=1)
    samples = samples_of(report(lab, wanted.folder))
    assert {sample["outcome"]: sample["failure"] for sample in samples} == {
        "incorrect": "",
        "unparsed": "",
        "error": "too hot",
        "truncated": "",
        "refused": "I will not",
    }


def _reply(replies: Sequence[object], request: Request) -> Any:
    reply = replies[int(request.sample_id.rpartition("=")[2])]
    if isinstance(reply, Exception):
        raise reply
    return reply


def test_hostile_text_ends_no_script(lab: Lab) -> None:
    """Whatever a model says or is called, the page's markup is the same."""
    tame, wild = (lab.wanted(lab.plain, model=name) for name in ("scripted/a", f"x/{HOSTILE}"))
    lab.run(tame, ScriptedProvider(lambda _request: "yes"))
    lab.run(wild, ScriptedProvider(lambda _request: HOSTILE))
    tags = [re.findall(r"</?script[^>]*>", report(lab, one.folder)) for one in (tame, wild)]
    assert tags[0] == tags[1]
    page = report(lab, wild.folder)
    assert "alert(1)</script>" not in page
    assert "[U+202E]" in page
    assert "\u202e" not in page
    assert {sample["reply"] for sample in samples_of(page)} == {HOSTILE}


def test_only_its_own_scripts_may_run(lab: Lab) -> None:
    """The policy lists the hashes of two scripts, and allows no eval and no address."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    page = report(lab, wanted.folder)
    match = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert match is not None
    policy = match[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("sha256-") == 2
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_lone_surrogates_are_shown() -> None:
    """Half a character has no place in UTF-8, but a code that can be read."""
    assert visible("a\udcffb\u202ec") == "a[U+DCFF]b[U+202E]c"
    assert visible("\xad\u061c\U000e0041") == "[U+00AD][U+061C][U+E0041]"
    assert unpack(pack(["\ud800"])) == ["\ud800"]


@pytest.mark.parametrize("formats", [("html",), ("html", "svg")], ids=["page", "files"])
def test_a_run_without_an_answer_has_a_page(lab: Lab, formats: tuple[str, ...]) -> None:
    """Nothing was scored: outcomes are shown, and no curve."""
    wanted = lab.wanted(samples=2)

    def fails(_request: Request) -> str:
        raise BadRequestError("no")

    lab.run(wanted, ScriptedProvider(fails))
    out = lab.folder / "empty.html"
    written = write_report([read_run(wanted.folder)], out, formats=formats, warn=lab.said.append)
    assert written[0] == out
    said = finding_of(out.read_text())
    assert said == "scripted/test has no scored sample here."


def test_a_run_that_was_only_planned_has_a_page(lab: Lab) -> None:
    """No journal at all."""
    wanted = lab.wanted(samples=2)
    lab.run(wanted)
    (wanted.folder / SAMPLES).unlink()
    page = report(lab, wanted.folder)
    assert samples_of(page) == []
    assert "not run 8" in page


def test_huge_answers_are_drawn(lab: Lab) -> None:
    """A number of many digits is wrong like any other."""
    wanted = lab.wanted(lab.plain, samples=4)
    lab.run(wanted, ScriptedProvider(lambda _request: f"Final answer: {'9' * 17}"))
    page = report(lab, wanted.folder)
    assert {sample["answer"] for sample in samples_of(page)} == {"9" * 17}
    drawn = answer_figures(section_of(wanted.folder))[0].panels[0].data["answers"]
    assert {row["given"] for row in drawn} == {10**12}


def test_many_answers_are_put_into_bins(lab: Lab) -> None:
    """So that the page stays small, and no sample is lost."""
    wanted = lab.wanted(lab.plain, lengths=[100], samples=1500)
    script = ScriptedProvider(
        lambda request: f"Final answer: {7 * int(request.sample_id.rpartition('=')[2])}"
    )
    lab.run(wanted, script)
    pairs = answer_figures(section_of(wanted.folder))[0].panels[0].data["answers"]
    assert len(pairs) < 600
    assert sum(row["n"] for row in pairs) == 1500


def test_the_commonest_answers_come_first(lab: Lab) -> None:
    """With how often each was true."""
    wanted = lab.wanted(lab.plain, samples=12)
    lab.run(
        wanted,
        ScriptedProvider(lambda r: "Final answer: 100" if r.sample_id[-1] in "02468" else right(r)),
    )
    said = answer_figures(section_of(wanted.folder))[1].panels[0].data["common"]
    assert said[0] == {"answer": "100", "given": 6, "true": 0}
    assert sum(row["given"] for row in said) == 12


def test_units_that_nobody_knows_are_off(lab: Lab) -> None:
    """Characters are in the journal; tokens only where the provider counts them."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    page = report(lab, wanted.folder)
    assert re.search(r'value="characters">', page)
    assert re.search(r'value="tokens" disabled>', page)
    row = accuracy_figure(section_of(wanted.folder)).panels[0].data["curve"][0]
    assert row["x@symbols"] == 4
    assert row["x@characters"] > 50
    assert row["x@tokens"] is None


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_the_threshold_is_drawn_and_said(lab: Lab, relative: bool) -> None:
    """A line for all, or one for each condition's own."""
    folder = moved_run(lab)
    threshold = Threshold(0.5, relative=relative)
    rows = accuracy_figure(section_of(folder, threshold=threshold)).panels[0].data["threshold"]
    # a share of the fitted accuracy at the shortest length, which is a little below 1
    assert [row["y"] for row in rows] == pytest.approx([0.5, 0.5] if relative else [0.5], abs=0.01)
    assert str(threshold) in report(lab, folder, threshold=threshold)


def test_published_figures_stand_apart(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in tables and rows of their own, by strategy, and never in ours."""
    shelf = lab.folder / "shelf"
    shelf.mkdir()
    (shelf / "barbero2024_counting_abs_error.csv").write_text(
        "model,task,strategy,length,abs_error,clipped_at_axis\n"
        "Gemini 1.5,ones in all-ones,direct,5,0,0\n"
        "Gemini 1.5,ones in all-ones,direct,95,70,1\n"
        "Gemini 1.5,ones in all-ones,cot_few_shot,5,1,0\n"
        "Gemini 1.5,sum of ones,direct,5,3,0\n"
    )
    monkeypatch.setattr(reported, "reported_root", lambda: shelf)
    task = open_task("counting/ones", built_in_files()["counting/ones"], trial=False)
    wanted = RunRequest(
        plan(task, lengths=[5], samples=2), resolve_model("scripted/x"), Settings(), lab.out
    )
    lab.run(wanted, ScriptedProvider(lambda _request: "Final answer: 6"))
    (figure,) = published_figures(section_of(wanted.folder), read_reported())
    (panel,) = figure.panels
    assert [(row["x"], row["y"], row["note"]) for row in panel.data["published"]] == [
        (5, 0.0, ""),
        (95, 70.0, "at least"),
    ]
    assert {(row["x"], row["y"]) for row in panel.data["error"]} == {(5, 1.0)}
    page = report(lab, wanted.folder)
    assert [table["name"] for table in data_of(page)["tables"]][-1].startswith("barbero2024")
    assert "None of this was measured here" in page


def test_tables_have_the_numbers_of_the_csv(lab: Lab) -> None:
    """The cells are those of `table.csv`."""
    folder = moved_run(lab)
    tables = {table["name"]: table for table in data_of(report(lab, folder))["tables"]}
    cells = tables["lab-ones-cells"]
    run = read_run(folder)
    assert cells["columns"] == [*run.cells.columns, "reaches"]
    at = cells["columns"].index("accuracy")
    assert [row[at] for row in cells["rows"]] == run.cells["accuracy"].tolist()
    sights = tables["lab-ones-effective-length"]
    at = sights["columns"].index("sees to")
    none, comma = (row[at][0] for row in sights["rows"])
    assert 4 <= float(none) < 8
    assert comma == "> 16"
    at = sights["columns"].index("tested length")
    assert [row[at][0] for row in sights["rows"]] == ["4", "> 16"]
    at = sights["columns"].index("single threshold")
    assert [row[at] for row in sights["rows"]] == ["yes", "yes"]
    diagnosis = tables["lab-ones-diagnosis"]
    assert diagnosis["columns"][-4:] == [
        "median_abs_error",
        "round_answers",
        "modal_answer",
        "modal_share",
    ]
    assert len(diagnosis["rows"]) == len(cells["rows"])
    assert sights["columns"][-1] == "error growth"
    pairs = tables["lab-ones-differences"]
    assert [row[pairs["columns"].index("difference")] for row in pairs["rows"][2:]] == [0, 0, 1, 1]


def test_samples_come_in_chunks(lab: Lab) -> None:
    """Every sample once, in pieces that are unpacked alone."""
    wanted = lab.wanted(lab.plain, samples=CHUNK + 7)
    lab.run(wanted)
    page = report(lab, wanted.folder)
    assert page.count('class="chunk"') == 2
    assert len({sample["id"] for sample in samples_of(page)}) == CHUNK + 7


def test_the_same_runs_give_the_same_page(lab: Lab) -> None:
    """To the byte; a run that is named twice is shown once."""
    folder = moved_run(lab)
    assert report(lab, folder) == report(lab, folder, folder)


def test_what_made_it_is_said(lab: Lab) -> None:
    """Model, settings, fingerprint, counts, and the price where it is known."""
    wanted = lab.wanted(lab.plain, model="openai/gpt-4o")
    lab.run(wanted, ScriptedProvider(lambda r: Reply(right(r), usage=Usage(1_000_000, 10_000))))
    page = report(lab, wanted.folder)
    fingerprint = read_manifest(wanted.folder).fingerprint
    assert fingerprint is not None
    for said in (fingerprint, "max_tokens auto", "3 scored", "at the prices of 2026"):
        assert said in page, said


def test_a_run_that_is_not_there(lab: Lab) -> None:
    """Is said as everywhere, and nothing is written."""
    out = lab.folder / "report.html"
    with pytest.raises(errors.JournalError, match="no run in"):
        write_report([read_run(lab.folder / "nowhere")], out, warn=print)
    assert not out.exists()


def test_a_page_that_cannot_be_written(lab: Lab) -> None:
    """Is one line for the user."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    with pytest.raises(errors.JournalError, match="cannot write"):
        write_report([read_run(wanted.folder)], lab.plain / "report.html", warn=print)


def test_an_adaptive_run_has_no_area(lab: Lab) -> None:
    """Neither in the tables nor in a sentence; its effective length is there, and what it is."""
    lab.bench_run("--model", lab.fake(right), "--adaptive")
    page = report(lab, lab.the_run())
    tables = {table["name"]: table for table in data_of(page)["tables"]}
    sights = tables["lab-ones-effective-length"]
    rows = [dict(zip(sights["columns"], row, strict=True)) for row in sights["rows"]]
    assert [(row["adaptive"], row["area"]) for row in rows] == [("yes", None), ("yes", None)]
    assert all(row["sees to"][0] == "> 5" for row in rows)
    pairs = tables["lab-ones-differences"]
    lengths = [row[pairs["columns"].index("length")][0] for row in pairs["rows"]]
    assert lengths[0] == "all (sees to, octaves)"
    assert "all (area)" not in lengths
    said = "No change of separator shows a difference in how far fake/model sees."
    assert finding_of(page) == said
    (panel,) = accuracy_figure(section_of(lab.the_run())).panels
    assert panel.title == "adaptive"
    assert panel.data["curve"][0]["where"] == "none, adaptive"


def test_adaptive_samples_have_no_sentence_about_areas(lab: Lab) -> None:
    """One condition that is adaptive is enough."""
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=20)
    lab.run(wanted, ScriptedProvider(sometimes(0.8)))
    manifest = read_manifest(wanted.folder)
    manifest.adaptive = [Condition({"separator": "none"})]
    write_manifest(wanted.folder, manifest)
    page = report(lab, wanted.folder)
    assert finding_of(page) == (
        "No change of separator shows a difference in how far scripted/test sees."
    )
    sights = data_of(page)["tables"][0]
    at = sights["columns"].index("adaptive")
    assert [row[at] for row in sights["rows"]] == ["yes", ""]
