"""The report: what its page says of runs, and that no run can break it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness import errors
from eyechart.harness.analysis.length.interval import Bound
from eyechart.harness.analysis.samples import details
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.plan.plan import make_sample, plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.report.charts.accuracy import accuracy_figure
from eyechart.harness.report.charts.figures import answer_figures
from eyechart.harness.report.page import packed_samples as paged
from eyechart.harness.report.page.assets import visible
from eyechart.harness.report.page.packed_samples import CHUNK, FIELDS, pack
from eyechart.harness.report.page.page import _notes, write_report
from eyechart.harness.report.page.section import Section, sections
from eyechart.harness.report.published import published_file
from eyechart.harness.report.published.published import published_figures
from eyechart.harness.report.published.published_file import read_reported
from eyechart.harness.report.ranking.rank_table import LengthEstimate, RankLine, RankTable
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.score.outcomes import OUTCOMES
from eyechart.harness.settings.judging import JUDGING, THRESHOLD, JudgeSettings
from eyechart.harness.settings.spelling import as_option
from eyechart.harness.spec import Settings
from eyechart.harness.spec.columns import ORDER
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import BadRequestError, Reply, Request, Usage
from eyechart.providers.naming import spelled
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import right
from tests.pages import data_of, unpack
from tests.sentences import headline

if TYPE_CHECKING:
    from tests.conftest import Lab

HOSTILE = "</script><script>alert(1)</script>{{ 7 * 7 }}\u202e\x00 <!-- \u2028"
Said = dict[str, Any]


def report(lab: Lab, *folders: Path, **options: Any) -> str:
    """The page of these runs."""
    out = lab.folder / "report.html"
    known = {name: options.pop(name) for name in [*options] if name in JUDGING}
    judging = JudgeSettings(**known)
    found = sections([read_run(folder, settings=judging) for folder in folders])
    assert write_report(found, out, warn=lab.said.append, **options) == [out]
    return out.read_text(encoding="utf-8")


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


def right_to(symbols: int, *, with_comma: int) -> Callable[[Request], str]:
    """Counts right up to a length, and says nothing beyond it."""

    def answer(request: Request) -> str:
        row = request.prompt.splitlines()[-1]
        reach = with_comma if "," in row else symbols
        seen = len(row.replace(",", "")) <= reach
        return right(request) if seen else "Final answer: 100"

    return answer


def section_of(*folders: Path, threshold: float = THRESHOLD) -> Section:
    judging = JudgeSettings(threshold=threshold)
    (section,) = sections([read_run(folder, settings=judging) for folder in folders])
    return section


def moved_run(lab: Lab, model: str = "scripted/test", reach: int = 4, samples: int = 40) -> Path:
    """Sees four symbols without separators and all with commas."""
    wanted = lab.wanted(lengths=[2, 4, 8, 16], samples=samples, model=model)
    lab.run(wanted, ScriptedProvider(right_to(reach, with_comma=99)))
    return wanted.folder


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


def test_each_prompt_is_made_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models were asked the same; where rows are long, only examples of each outcome are."""
    made: list[int] = []

    def counted(*given: Any, **named: Any) -> Any:
        made.append(1)
        return make_sample(*given, **named)

    monkeypatch.setattr(details, "make_sample", counted)
    folders = [
        moved_run(lab, name, reach, 20) for name, reach in (("scripted/a", 4), ("scripted/b", 8))
    ]
    page = report(lab, *folders, tasks=str(lab.plain))
    asked = {sample["id"]: sample["prompt"] for sample in samples_of(page)}
    assert None not in asked.values()
    assert len(made) == len(asked) == len(samples_of(page)) / 2
    made.clear()
    monkeypatch.setattr(paged, "MOST_SYMBOLS", 100)
    page = report(lab, *folders, tasks=str(lab.plain))
    shown = [sample for sample in samples_of(page) if sample["prompt"] is not None]
    assert {sample["outcome"] for sample in shown} == {"correct", "incorrect"}
    assert all(sample["prompt"] == asked[sample["id"]] for sample in shown)
    assert len(made) < len(asked) / 2
    assert "so only the first 5 samples" in data_of(page)["runs"][0]["why"]


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
    assert [spelled(line, as_option) for line in lab.said] == [said]
    page = report(lab, wanted.folder, tasks=str(lab.plain))
    assert all("How many ones?" in sample["prompt"] for sample in samples_of(page))
    page = report(lab, wanted.folder, run_kept_code=True)
    assert all("How many ones?" in sample["prompt"] for sample in samples_of(page))
    assert len(lab.said) == 1


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


def test_the_page_and_the_terminal_say_how_much_is_not_scored(lab: Lab) -> None:
    """Both show the same sentence, which gives the number of samples and the reasons. A page of
    several runs also names the run.
    """
    lines = ("--samples", "2", "--lengths", "2")
    lab.bench_ask("--model", lab.fake(right), "--name", "@whole", *lines)
    whole = lab.the_run()

    def script(request: Request) -> str:
        if "index=1" in request.sample_id:
            raise BadRequestError("too hot")
        return right(request)

    lab.bench_ask("--model", lab.fake(script), "--name", "@part", *lines)
    (part,) = {path.parent for path in lab.out.rglob(MANIFEST)} - {whole}
    said = "2 of 4 samples are not scored: error 2."
    assert said in " ".join(lab.bench("score", part, "-t", lab.ones).out.split())
    assert f"<b>lab/ones:</b> {said}<" in report(lab, part)
    assert f">fake/model@part: {said}<" in report(lab, whole, part)
    assert "are not scored" not in report(lab, whole)


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
    """The policy lists the hashes of three scripts, and allows no eval and no address."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    page = report(lab, wanted.folder)
    match = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert match is not None
    policy = match[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("sha256-") == 3
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_a_note_on_several_tasks_stands_once() -> None:
    """With the names of all of them."""
    sections = [SimpleNamespace(name=name) for name in ("a", "b", "c")]
    notes = {"a": ["same", "own"], "b": ["same"], "c": []}
    assert _notes(notes, sections) == [("a, b", "same"), ("a", "own")]  # type: ignore[arg-type]


def test_the_furthest_task_has_a_known_length() -> None:
    """A length below the shortest line of a task says nothing of how far it goes."""
    lengths = {"a": Bound("=", 30), "b": Bound("=", 90), "c": Bound("<", 314)}
    lines = [
        RankLine(
            model="m", task=task, unit="symbols", length=LengthEstimate(length, (length, length))
        )
        for task, length in lengths.items()
    ]
    (said,) = RankTable(lines=lines, judging=JudgeSettings()).of_tasks
    assert str(said) == (
        "m is right in 85 % of replies to 90 symbols in b, and to 30 symbols in a: the "
        "furthest and the least far of 2 tasks with a known length."
    )
    lines[0] = replace(lines[0], model="another")
    assert not RankTable(lines=lines, judging=JudgeSettings()).of_tasks


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
    written = write_report([section_of(wanted.folder)], out, formats=formats, warn=lab.said.append)
    assert written[0] == out
    said = finding_of(out.read_text())
    assert said == headline(read_run(wanted.folder))
    assert said.startswith("No sample of lab/ones is scored")


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
    assert row["x@length"] == 4
    assert row["x@characters"] > 50
    assert row["x@tokens"] is None


def test_the_threshold_is_drawn_and_said(lab: Lab) -> None:
    """One line for all."""
    folder = moved_run(lab)
    rows = accuracy_figure(section_of(folder, threshold=0.5)).panels[0].data["threshold"]
    assert [row["y"] for row in rows] == [0.5]
    assert "50 %" in report(lab, folder, threshold=0.5)


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
    monkeypatch.setattr(published_file, "reported_root", lambda: shelf)
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
    assert cells["columns"] == [*run.cells.columns, "row_tokens", "reaches"]
    at = cells["columns"].index("accuracy")
    assert [row[at] for row in cells["rows"]] == run.cells["accuracy"].tolist()
    sights = tables["lab-ones-effective-length"]
    at = sights["columns"].index("right to")
    none, comma = (row[at][0] for row in sights["rows"])
    assert 4 <= float(none) < 8
    assert comma == "> 16"
    at = sights["columns"].index("tested length")
    assert [row[at][0] for row in sights["rows"]] == ["4", "> 16"]
    at = sights["columns"].index("single threshold")
    assert [row[at] for row in sights["rows"]] == ["yes", "yes"]
    diagnosis = tables["lab-ones-diagnosis"]
    at = diagnosis["columns"].index("median_abs_error")
    assert diagnosis["columns"][at:] == [
        *("median_abs_error", "round_answers", "modal_answer", "modal_share"),
        *ORDER,
    ]
    assert len(diagnosis["rows"]) == len(cells["rows"])
    assert sights["columns"][-1] == "error growth"
    pairs = tables["lab-ones-differences"]
    rows = [dict(zip(pairs["columns"], row, strict=True)) for row in pairs["rows"]]
    lines = [row["difference"] for row in rows if row["measure"] == "accuracy"]
    assert lines == [0, 0, 1, 1]


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
    once, twice = lab.folder / "once.html", lab.folder / "twice.html"
    lab.bench("report", folder, "-o", once)
    lab.bench("report", folder, folder, "-o", twice)
    assert once.read_bytes() == twice.read_bytes()


def test_areas_over_other_lines_are_named(lab: Lab) -> None:
    """Where the lines are the same, nothing is said."""
    said = "areas over other lines cannot be compared"
    folder, same = (moved_run(lab, f"scripted/{name}", samples=4) for name in ("one", "same"))
    assert said not in report(lab, folder, same)
    wanted = lab.wanted(lengths=[2, 4, 8], samples=4, model="scripted/other")
    lab.run(wanted)
    assert said in report(lab, folder, wanted.folder)


def test_what_made_it_is_said(lab: Lab) -> None:
    """Model, settings, fingerprint, counts, and the price where it is known."""
    wanted = lab.wanted(lab.plain, model="openai/gpt-4o")
    lab.run(wanted, ScriptedProvider(lambda r: Reply(right(r), usage=Usage(1_000_000, 10_000))))
    page = report(lab, wanted.folder)
    fingerprint = read_run(wanted.folder).fingerprint()
    assert fingerprint is not None
    for said in (fingerprint, "max_tokens auto", "3 scored", "at the prices of 2026"):
        assert said in page, said


def test_a_run_that_is_not_there(lab: Lab) -> None:
    """Is said as everywhere, and nothing is written."""
    out = lab.folder / "report.html"
    with pytest.raises(errors.JournalError, match="no run in"):
        write_report([section_of(lab.folder / "nowhere")], out, warn=print)
    assert not out.exists()


def test_a_page_that_cannot_be_written(lab: Lab) -> None:
    """Is one line for the user."""
    wanted = lab.wanted(lab.plain)
    lab.run(wanted)
    with pytest.raises(errors.JournalError, match="cannot write"):
        write_report([section_of(wanted.folder)], lab.plain / "report.html", warn=print)
