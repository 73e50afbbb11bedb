"""`bench run --repeat`: a complete run is asked again, and what changed is said."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.analysis.curve import Threshold
from eyechart.harness.analysis.judged_run import JudgedRun
from eyechart.harness.analysis.results import write_results
from eyechart.harness.cli.results import without_repeats
from eyechart.harness.journal.manifest import MANIFEST, find_runs, read_manifest
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.task import functions, generator
from eyechart.providers.base import AuthError, BadRequestError, Reply, Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records, right, wait_for

if TYPE_CHECKING:
    from tests.conftest import Lab


def complete(lab: Lab) -> Path:
    """The folder of a complete run of the model `fake`."""
    assert lab.bench_run("--model", lab.fake(right)).code == 0
    return lab.the_run()


def sometimes(other: str, *ids: str) -> Callable[[Request], str]:
    """A model that is right, and replies `other` to the samples with these endings."""
    return lambda request: other if request.sample_id.endswith(ids) else right(request)


def sees(request: Request) -> str:
    """Counts rows of at most 15 symbols, and miscounts longer ones by one."""
    row = request.prompt.splitlines()[-1].replace(",", "").replace(" ", "")
    return f"Final answer: {row.count('1') + (len(row) > 15)}"


class Small(ScriptedProvider):
    """A model whose window has no room for long rows."""

    async def facts(self) -> Mapping[str, object]:
        """The window."""
        return {"max_model_len": 300}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """A token a character."""
        return [len(prompt) for prompt in prompts]


class _KilledError(BaseException):
    """The process ends here."""


def _killed_after(shown: int) -> Callable[[JudgedRun], Path]:
    """Writes the tables of so many runs."""
    calls = count()

    def write(run: JudgedRun, *more: Threshold) -> Path:
        if next(calls) == shown:
            raise _KilledError
        return write_results(run, *more)

    return write


class TestRepeat:
    """A complete run, asked again."""

    def test_everything_is_asked_again_in_a_run_of_its_own(self, lab: Lab) -> None:
        """The first run stays as it is; the repeat has the same cells, and says which it is."""
        folder = complete(lab)
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        provider = ScriptedProvider(right)
        done = lab.bench_run("--model", lab.fake(provider), "--repeat")
        assert (done.code, done.err) == (0, "")
        assert len(provider.requests) == 16
        assert {
            path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()
        } == before
        repeat = folder / "repeats" / "1"
        first, second = read_manifest(folder), read_manifest(repeat)
        assert (first.repeat, second.repeat) == (0, 1)
        assert (first.cells, first.fingerprint) == (second.cells, second.fingerprint)
        assert first.settings == second.settings
        assert "lab/ones  fake/model (repeat 1)" in done.out
        assert str(repeat / "table.csv") in done.out.splitlines()
        said = "16 samples asked again; 16 replies are the same text, 16 verdicts the same"
        assert f"lab/ones: {said}" in done.out.splitlines()

    def test_changed_verdicts_are_counted_and_named(self, lab: Lab) -> None:
        """Other words with the same answer change the text alone."""
        first = sometimes("Final answer: 77", "length=3|seed=0|index=0")
        lab.bench_run("--model", lab.fake(first))
        folder = lab.the_run()
        again = sometimes("I cannot say.", "length=5|seed=0|index=1")
        done = lab.bench_run(
            "--model",
            lab.fake(lambda request: again(request) + " " * ("length=3" in request.sample_id)),
            "--repeat",
        )
        assert done.code == 0
        report = done.out[done.out.index("lab/ones: 16 samples") :].splitlines()
        numbers = "6 replies are the same text, 12 verdicts the same"
        changes = "4 changed: 2 incorrect now correct, 2 correct now unparsed"
        assert report == [
            f"lab/ones: 16 samples asked again; {numbers}; {changes}",
            "  lab/ones@1|separator=none|length=3|seed=0|index=0: incorrect, now correct",
            "  lab/ones@1|separator=comma|length=3|seed=0|index=0: incorrect, now correct",
            "  lab/ones@1|separator=none|length=5|seed=0|index=1: correct, now unparsed",
            "  lab/ones@1|separator=comma|length=5|seed=0|index=1: correct, now unparsed",
            "",
            f"next: bench compare {folder} {folder / 'repeats' / '1'}",
        ]

    def test_ten_changed_samples_are_named(self, lab: Lab) -> None:
        """Of more, their number."""
        complete(lab)
        done = lab.bench_run("--model", lab.fake(lambda _: "Final answer: 77"), "--repeat")
        assert "0 verdicts the same; 16 changed: 16 correct now incorrect" in done.out
        assert (
            len(re.findall(r"^  lab/ones@1\|.*: correct, now incorrect$", done.out, re.MULTILINE))
            == 10
        )
        assert "  … and 6 more" in done.out.splitlines()

    def test_the_next_one_has_the_next_number(self, lab: Lab) -> None:
        """A part of the run may be asked again, too."""
        folder = complete(lab)
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        lab.bench_run("--model", model, "--repeat")
        done = lab.bench_run("--model", model, "--repeat", "--samples", "1")
        assert len(provider.requests) == 16 + 4
        assert "lab/ones: 4 samples asked again" in done.out
        assert sorted(path.name for path in (folder / "repeats").iterdir()) == ["1", "2"]

    def test_a_failed_repeat_is_continued_first(self, lab: Lab) -> None:
        """What has no reply counts as neither the same nor changed, and only that is asked."""
        folder = complete(lab)
        fails = sometimes("", "length=5|seed=0|index=3")

        def script(request: Request) -> str | BadRequestError:
            return fails(request) or BadRequestError("not now")

        done = lab.bench_run("--model", lab.fake(ScriptedProvider(script)), "--repeat")
        assert done.code == 1
        assert "lab/ones: 14 samples asked again; 14 replies" in done.out
        assert "the same command asks them again" in done.err
        provider = ScriptedProvider(right)
        done = lab.bench_run("--model", lab.fake(provider), "--repeat")
        assert (done.code, len(provider.requests)) == (0, 2)
        assert "lab/ones: 16 samples asked again; 16 replies" in done.out
        assert [path.name for path in (folder / "repeats").iterdir()] == ["1"]

    def test_a_killed_repeat_is_continued(self, lab: Lab) -> None:
        """No sample of it is asked twice, and no second repeat is begun."""
        command = ("run", "--task", str(lab.ones), "--model", "slow/x", "--out", str(lab.out))
        lab.slow(*command, delay_s=0).communicate()
        folder = lab.the_run()
        repeat = folder / "repeats" / "1"
        one_by_one = (*command, "--max-connections", "1", "--repeat")
        process = lab.slow(*one_by_one, delay_s=0.1)
        wait_for(lambda: (repeat / SAMPLES).exists() and len(lab.slow_asked()) > 20, process)
        process.kill()
        process.communicate()
        answered = len((repeat / SAMPLES).read_bytes().splitlines())
        asked = len(lab.slow_asked())
        process = lab.slow(*one_by_one, delay_s=0)
        out, _ = process.communicate()
        assert process.returncode == 0
        assert b"16 samples asked again; 16 replies are the same text" in out
        assert len(lab.slow_asked()) - asked == 16 - answered
        assert len({record["id"] for record in records(repeat)}) == len(records(repeat)) == 16
        assert [path.name for path in (folder / "repeats").iterdir()] == ["1"]

    @pytest.mark.parametrize("shown", [0, 1, 2])
    def test_a_repeat_that_was_killed_before_its_end_is_finished_first(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch, shown: int
    ) -> None:
        """Two models on two tasks: whichever tables are written by then, nothing is asked twice,
        and the command after that begins the next repeat.
        """
        provider = ScriptedProvider(right)
        models = f"{lab.fake(provider)},fake/other"
        command = ("--task", f"{lab.ones},{lab.plain}", "--model", models)
        assert lab.bench_run(*command).code == 0
        size = len(provider.requests)
        with monkeypatch.context() as patched:
            patched.setattr("eyechart.harness.cli.results.write_results", _killed_after(shown))
            with pytest.raises(_KilledError):
                lab.bench_run(*command, "--repeat")
        done = lab.bench_run(*command, "--repeat")
        assert (done.code, len(provider.requests)) == (0, 2 * size)
        assert "lab/plain: repeat 1 had all its replies; nothing was asked" in done.err.splitlines()
        assert "(repeat 2)" not in done.out
        assert lab.bench_run(*command, "--repeat").code == 0
        assert len(provider.requests) == 3 * size
        repeats = sorted(path.name for path in lab.out.rglob("repeats/*"))
        assert repeats == [*"1111", *"2222"]

    def test_the_same_command_asks_only_the_model_that_failed(self, lab: Lab) -> None:
        """A complete repeat of another model is not asked again before the command is complete."""
        fails_at = 0

        def script(request: Request) -> str | BadRequestError:
            is_last = len(provider.requests) == fails_at
            return BadRequestError("not now") if is_last else right(request)

        provider = ScriptedProvider(script)
        models = ("--model", f"{lab.fake(provider)},fake/other")
        assert lab.bench_run(*models).code == 0
        size = len(provider.requests)
        fails_at = 2 * size
        assert lab.bench_run(*models, "--repeat").code == 1
        assert lab.bench_run(*models, "--repeat").code == 0
        assert len(provider.requests) == 2 * size + 1

    def test_another_model_behind_the_name_is_said(self, lab: Lab) -> None:
        """The verdicts may have changed for that reason."""

        def named(name: str) -> ScriptedProvider:
            return ScriptedProvider(lambda request: Reply(right(request), model=name))

        lab.bench_run("--model", lab.fake(named("old")))
        done = lab.bench_run("--model", lab.fake(named("new")), "--repeat")
        assert done.code == 0
        assert done.err.strip() == (
            "bench: lab/ones: the repeat was answered by 'new', and the run by 'old'"
        )

    def test_samples_that_were_not_sent_do_not_count(self, lab: Lab) -> None:
        """What no window holds is complete without an answer, and is not asked again."""
        provider = Small(right)
        command = ("--lengths", "3,200", "--max-tokens", "20", "--model", lab.fake(provider))
        assert lab.bench_run(*command).code == 0
        sent = len(provider.requests)
        assert 0 < sent < 16
        done = lab.bench_run(*command, "--repeat")
        assert done.code == 0
        assert f"lab/ones: {sent} samples asked again; {sent} replies are the same" in done.out
        done = lab.bench_run(*command, "--repeat", "--dry-run")
        assert "for repeat 2" in done.out


class TestAdaptive:
    """The samples that an adaptive run has are asked again, with and without `--adaptive`."""

    LENGTHS = ("--lengths", "5,10,20,40,80")

    @pytest.mark.parametrize("more", [(), ("--adaptive",)])
    def test_exactly_the_samples_that_were_asked(self, lab: Lab, more: tuple[str, ...]) -> None:
        """The repeat has the same cells, and each condition of it is of the same kind."""
        model = lab.fake(sees)
        full = (*self.LENGTHS, "--spread", "bands", "--axis", "separator=comma")
        assert lab.bench_run("--model", model, *full).code == 0
        chosen = (*self.LENGTHS, "--axis", "separator=none")
        assert lab.bench_run("--model", model, *chosen, "--adaptive").code == 0
        folder = lab.the_run()
        of_chosen = ScriptedProvider(sees)
        command = (*chosen, *more, "--repeat")
        dry = lab.bench_run("--model", lab.fake(of_chosen), *command, "--dry-run")
        assert "(the samples of the run); all are asked again, for repeat 1" in dry.out
        done = lab.bench_run("--model", lab.fake(of_chosen), *command)
        assert done.code == 0
        ids = [str(record["id"]) for record in records(folder)]
        none = {name for name in ids if "separator=none" in name}
        assert {request.sample_id for request in of_chosen.requests} == none
        both = ScriptedProvider(sees)
        done = lab.bench_run("--model", lab.fake(both), *full[:-2], *more, "--repeat")
        assert done.code == 0
        assert sorted(request.sample_id for request in both.requests) == sorted(ids)
        first, second = read_manifest(folder), read_manifest(folder / "repeats" / "2")
        assert second.adaptive == first.adaptive
        assert set(map(str, second.cells)) == set(map(str, first.cells))

    def test_nothing_was_chosen(self, lab: Lab) -> None:
        """One line names the condition."""
        lab.bench_run("--model", lab.fake(sees), "--adaptive", "--axis", "separator=none")
        done = lab.bench_run("--model", lab.fake(sees), "--adaptive", "--repeat")
        done.one_line(1, "has no sample to repeat under separator=comma")


class TestRefused:
    """What cannot be repeated is one line, and nothing is asked."""

    def test_no_run(self, lab: Lab) -> None:
        """Also in a dry run."""
        provider = ScriptedProvider(right)
        for more in ([], ["--dry-run"]):
            done = lab.bench_run("--model", lab.fake(provider), "--repeat", *more)
            done.one_line(1, "lab/ones: there is no run to repeat in", "without --repeat makes it")
        assert provider.requests == []
        assert not lab.out.exists()

    def test_a_run_that_is_not_complete(self, lab: Lab) -> None:
        """Whether it was never asked for as much, or failed."""
        complete(lab)
        done = lab.bench_run("--model", lab.fake(right), "--repeat", "--samples", "5")
        done.one_line(1, "lacks 4 of 20 samples", "without --repeat asks them")
        assert not (lab.the_run() / "repeats").exists()

    def test_a_run_without_its_errors(self, lab: Lab) -> None:
        """A sample whose request failed has no reply that could be compared."""
        lab.bench_run("--model", lab.fake(ScriptedProvider(lambda _: BadRequestError("no"))))
        done = lab.bench_run("--model", lab.fake(right), "--repeat")
        done.one_line(1, "lacks 16 of 16 samples")

    def test_a_task_that_has_changed(self, lab: Lab) -> None:
        """Other prompts are not the same samples."""
        folder = complete(lab)
        rows = lab.folder / "lab" / "rows.py"
        generator.load_generator.cache_clear()
        functions.load_module.cache_clear()
        rows.write_text(rows.read_text().replace('rng.choice("01")', 'rng.choice("011")'))
        done = lab.bench_run("--model", lab.fake(right), "--repeat")
        done.one_line(1, "the journal's answer was to another prompt")
        assert not (folder / "repeats").exists()

    @pytest.mark.parametrize("option", ["--fresh", "--batch"])
    def test_options_that_contradict(self, lab: Lab, option: str) -> None:
        """A repeat neither replaces a run nor goes in batches."""
        complete(lab)
        done = lab.bench_run("--model", lab.fake(right), "--repeat", option)
        done.one_line(2, f"--repeat does not go together with {option}")

    def test_a_copy_of_the_run_is_no_repeat(self, lab: Lab) -> None:
        """Otherwise all its verdicts would be the same."""
        folder = complete(lab)
        copy = lab.folder / "copy"
        shutil.copytree(folder, copy)
        (copy / SAMPLES).write_bytes((copy / SAMPLES).read_bytes().splitlines(keepends=True)[0])
        (folder / "repeats").mkdir()
        copy.rename(folder / "repeats" / "1")
        done = lab.bench_run("--model", lab.fake(right), "--repeat")
        assert done.code == 1
        assert "should hold repeat 1 of a run" in done.err

    def test_a_wrong_key_ends_it_as_any_run(self, lab: Lab) -> None:
        """The repeat that was begun is continued later."""
        folder = complete(lab)
        done = lab.bench_run(
            "--model", lab.fake(ScriptedProvider(lambda _: AuthError("no"))), "--repeat"
        )
        assert done.code != 0
        assert lab.bench_run("--model", lab.fake(right), "--repeat").code == 0
        assert [path.name for path in (folder / "repeats").iterdir()] == ["1"]


class TestDryRun:
    """What a repeat would ask."""

    def test_all_is_asked_again(self, lab: Lab) -> None:
        """Although the run has all answers; nothing is written."""
        folder = complete(lab)
        done = lab.bench_run("--model", lab.fake(right), "--repeat", "--dry-run")
        said = "16 (4 a cell); all are asked again, for repeat 1"
        assert f"  requests    {said}" in done.out.splitlines()
        assert f"  run folder  {folder / 'repeats' / '1'}" in done.out.splitlines()
        assert not (folder / "repeats").exists()


class TestOtherVerbs:
    """A repeat is compared and judged like a run, and published nowhere."""

    @pytest.fixture
    def folders(self, lab: Lab) -> tuple[Path, Path]:
        """A run and its repeat."""
        folder = complete(lab)
        assert lab.bench_run("--model", lab.fake(right), "--repeat").code == 0
        return folder, folder / "repeats" / "1"

    def test_compare_names_the_repeat(self, lab: Lab, folders: tuple[Path, Path]) -> None:
        """By the model and its number, on either side."""
        output = lab.folder / "compare.csv"
        done = lab.bench("compare", *folders, "-o", output)
        assert "lab/ones  fake/model against fake/model (repeat 1)" in done.out
        assert ",fake/model,fake/model (repeat 1)," in output.read_text()
        lab.bench_run("--model", lab.fake(right), "--repeat")
        done = lab.bench("compare", folders[1], folders[0] / "repeats" / "2", "-o", output)
        assert "fake/model (repeat 1) against fake/model (repeat 2)" in done.out

    def test_score_judges_a_repeat(self, lab: Lab, folders: tuple[Path, Path]) -> None:
        """By its own journal."""
        assert "(repeat 1)" in lab.bench("score", folders[1]).out

    def test_repeats_are_no_runs(self, lab: Lab, folders: tuple[Path, Path]) -> None:
        """A leaderboard finds the run alone, and refuses the repeat by name."""
        assert find_runs(lab.out) == [folders[0]]
        lab.bench("leaderboard", folders[1], "--out", lab.out).one_line(
            2, str(folders[1]), "is repeat 1 of a run"
        )
        assert not (lab.out / "leaderboard.csv").exists()

    def test_a_task_folder_may_be_called_repeats(self, lab: Lab) -> None:
        """Its runs are no repeats."""
        task = lab.folder / "repeats"
        (lab.folder / "lab").rename(task)
        done = lab.bench_run("--model", lab.fake(right), task=task)
        assert done.code == 0
        assert len(find_runs(lab.out)) == 3

    def test_pages_and_exports_leave_repeats_out(
        self, lab: Lab, folders: tuple[Path, Path]
    ) -> None:
        """With a line each, and with an error where nothing else is named."""
        assert without_repeats([folders[0], *folders]) == [folders[0]]
        said = lab.capture.readouterr().err.splitlines()
        assert said == [
            f"bench: left out: {folders[1]} is a repeat of a run; 'bench compare' takes it"
        ]
        for verb in (["report"], ["export", "every-eval-ever"]):
            done = lab.bench(*verb, folders[1], "-o", lab.folder / "published")
            done.one_line(2, str(folders[1]), "is a repeat of a run; name the run itself")


@pytest.mark.parametrize("value", ["-1", "true", '"1"', "1.5"])
def test_a_manifest_with_no_number_of_a_repeat(lab: Lab, value: str) -> None:
    """Is one line that names the field."""
    folder = complete(lab)
    manifest = folder / MANIFEST
    text = manifest.read_text()
    assert '"repeat": 0' in text
    manifest.write_text(text.replace('"repeat": 0', f'"repeat": {value}'))
    lab.bench("score", folder).one_line(1, "repeat: ")
