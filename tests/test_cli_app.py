"""The command: exit codes, one clear line for what is wrong, and nothing lost at any moment."""

from __future__ import annotations

import asyncio
import os
import pty
import random
import resource
import shutil
import signal
import subprocess
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.cli import readable
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.journal.writer import Journal
from eyechart.harness.task import functions, generator
from eyechart.providers.base import (
    AuthError,
    BadRequestError,
    PromptOverflowError,
    ProviderError,
    Reply,
    Request,
    SetupError,
)
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import has_lines, plain, records, right, wait_for

if TYPE_CHECKING:
    from tests.conftest import Lab


def failing(error: Exception, *, after: int) -> Callable[[Request], Any]:
    """A right model that from its reply number `after` on only fails."""
    asked = iter(range(10**6))
    return lambda request: right(request) if next(asked) < after else error


class TestComplete:
    """A run that goes well."""

    def test_results_go_to_stdout_and_nothing_to_stderr(self, lab: Lab) -> None:
        """A table and its file's path; exit code 0."""
        done = lab.bench_run("--model", lab.fake(right))
        folder = lab.the_run()
        assert (done.code, done.err) == (0, "")
        assert done.out.splitlines()[0] == "lab/ones  fake/model"
        assert str(folder / TABLE) in done.out
        assert "100 (51–100)" in done.out
        assert (folder / TABLE).read_text().count("\n") == 5

    def test_the_same_command_again_sends_nothing(self, lab: Lab) -> None:
        """And prints the same table."""
        provider = ScriptedProvider(right)
        first = lab.bench_run("--model", lab.fake(provider))
        again = lab.bench_run("--model", lab.fake(provider))
        assert len(provider.requests) == 16
        assert again == first

    def test_a_scripted_model_is_a_file_of_replies(self, lab: Lab) -> None:
        """The real provider, by its name; wrong answers are no failure of the command."""
        done = lab.bench_run()
        assert done.code == 0
        assert "right to (85 %)" in done.out
        assert "not scored" not in done.out

    def test_options_shape_the_run(self, lab: Lab) -> None:
        """Lengths, samples and axes make the plan; seed, temperature and budget the settings."""
        provider = ScriptedProvider(right)
        done = lab.bench_run(
            *("--model", lab.fake(provider), "--lengths", "7, 2,7", "--samples", "3"),
            *("--axis", "separator=space", "--axis", "separator=none,space", "--seed", "4"),
            *("--temperature", "0.5", "--max-tokens", "31", "--max-connections", "2"),
        )
        assert done.code == 0
        assert len(provider.requests) == 2 * 2 * 3
        assert {request.max_tokens for request in provider.requests} == {31}
        assert {(request.temperature, request.seed) for request in provider.requests} == {(0.5, 4)}
        manifest = orjson.loads((lab.the_run() / MANIFEST).read_bytes())
        given = {"seed": 4, "temperature": 0.5, "max_tokens": 31}
        assert manifest["settings"] == given | {"api": "chat", "system": None, "effort": None}
        assert "--max-connections 2" in manifest["commands"][0]
        assert {cell["line"]["length"] for cell in manifest["cells"]} == {2, 7}

    def test_all_lines_that_count_are_shown(self, lab: Lab) -> None:
        """Those of earlier commands too, since the effective length goes by them."""
        lab.bench_run("--model", lab.fake(right))
        done = lab.bench_run("--model", lab.fake(right), "--lengths", "9")
        rows = [line.split("|")[1].strip() for line in done.out.splitlines() if "|" in line]
        assert rows[2:] == ["3", "5", "9", "right to (85 %)", "near (5 %)"]
        assert (lab.the_run() / TABLE).read_text().count("\n") == 7

    def test_a_run_that_has_more_than_the_command_asks_is_said_to(self, lab: Lab) -> None:
        """In one line; where lines have different numbers of samples, these are in the table."""
        lab.bench_run("--model", lab.fake(right))
        smaller = lab.bench_run("--model", lab.fake(right), "--lengths", "5", "--samples", "3")
        (said,) = smaller.err.splitlines()
        assert "the run has 2 lines of 4 samples, and this command asks 1 line of 3 samples" in said
        assert "accuracy, % |" in smaller.out
        grown = lab.bench_run("--model", lab.fake(right), "--lengths", "5", "--samples", "12")
        assert "has 2 lines of 4 to 12 samples, and this command asks 1 line of 12" in grown.err
        assert "|               3 | 100 (51–100)   4 | 100 (51–100)   4 |" in grown.out
        assert "|               5 | 100 (76–100)  12 | 100 (76–100)  12 |" in grown.out

    def test_conditions_that_were_not_asked_are_counted(self, lab: Lab) -> None:
        """And the command that shows them is named."""
        lab.bench_run("--model", lab.fake(right))
        done = lab.bench_run("--model", lab.fake(right), "--axis", "separator=none")
        assert done.out.splitlines()[0].split() == ["lab/ones", "fake/model", "separator=none"]
        command = f"bench score --all-findings {lab.the_run()}"
        hidden = f"1 other condition of this run not shown; see: {command}"
        assert hidden in done.out.splitlines()
        assert "not shown" not in lab.bench("score", lab.the_run()).out

    def test_score_makes_the_table_again(self, lab: Lab) -> None:
        """Without a model, and with the code of what is there."""
        lab.bench_run("--model", lab.fake(right))
        folder = lab.the_run()
        table = (folder / TABLE).read_bytes()
        (folder / TABLE).unlink()
        done = lab.bench("score", folder)
        assert (done.code, done.err) == (0, "")
        assert (folder / TABLE).read_bytes() == table


class TestDryRun:
    """The plan, without a request."""

    def test_the_plan_is_printed_and_nothing_done(self, lab: Lab) -> None:
        """Task, conditions, lengths, requests, characters and one prompt, all as they would be."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        done = lab.bench_run("--model", model, "--samples", "1000", "--dry-run")
        samples = list(lab.wanted(samples=1000, model=model).plan)
        assert (done.code, done.err) == (0, "")
        lines = {" ".join(line.split()) for line in done.out.splitlines()}
        assert lines >= {
            "lab/ones@1: Ones",
            "model fake/model",
            "conditions 2",
            "separator=none",
            "separator=comma",
            "lengths 3, 5",
            "requests 4,000 (1000 a cell)",
            f"characters {sum(len(sample.prompt) for sample in samples):,}",
            f"sample {samples[0].id}",
            *(f"| {line}" for line in samples[0].prompt.splitlines()),
        }
        assert provider.requests == []
        assert not lab.out.exists()

    def test_the_model_need_not_be_there(self, lab: Lab) -> None:
        """A plan can be seen before a key is bought."""
        assert lab.bench_run("--model", "scripted/nowhere.txt", "--dry-run").code == 0

    def test_fresh_moves_nothing_in_a_dry_run(self, lab: Lab) -> None:
        """The old run stays where it is."""
        lab.bench_run()
        folder = lab.the_run()
        assert lab.bench_run("--dry-run", "--fresh").code == 0
        assert lab.the_run() == folder

    @pytest.mark.parametrize(
        ("samples", "lengths", "at_length", "in_length"),
        [
            ("4", "3,5", "no fall from 90 %: these are too few samples", "no factor within"),
            ("50", "3,5", "a fall from 90 % to 59 % or lower", "no factor within"),
            ("5000", "3,6,12", "a fall from 90 % to 87.7 % or lower", "a factor of about 3."),
        ],
    )
    def test_what_so_many_samples_can_show(
        self, lab: Lab, samples: str, lengths: str, at_length: str, in_length: str
    ) -> None:
        """By the tests of two lengths and two conditions, between two models."""
        said = lab.bench_run("--dry-run", "--samples", samples, "--lengths", lengths).out
        assert (
            "  can show    with a power of 80 %, as 'bench compare' corrects for "
            f"{2 * (lengths.count(',') + 1)} tests:\n"
            f"              at one length {at_length}" in said
        )
        assert f"\n              in effective length {in_length}" in said
        assert ("or less where the accuracy falls steeply\n" in said) == ("about" in in_length)

    def test_what_is_answered_is_not_asked_again(self, lab: Lab) -> None:
        """The plan says how much of it this command would ask."""
        lab.bench_run("--model", lab.fake(right), "--lengths", "3")
        done = lab.bench_run("--model", lab.fake(right), "--dry-run")
        assert "requests    16 (4 a cell); 8 are answered, so 8 will be asked" in done.out


class TestFresh:
    """Starting over."""

    def test_the_old_run_is_moved_and_said_so(self, lab: Lab) -> None:
        """Its answers are where stderr says, and all are asked again."""
        provider = ScriptedProvider(right)
        lab.bench_run("--model", lab.fake(provider))
        before = (lab.the_run() / SAMPLES).read_bytes()
        done = lab.bench_run("--model", lab.fake(provider), "--fresh")
        assert done.code == 0
        assert len(provider.requests) == 32
        (old,) = (lab.out / "replaced").rglob(SAMPLES)
        assert str(old.parent) in done.err
        assert old.read_bytes() == before
        assert len(records(lab.the_run())) == 16

    def test_without_an_old_run_it_is_a_run(self, lab: Lab) -> None:
        """Nothing to move, nothing to say."""
        done = lab.bench_run("--fresh")
        assert (done.code, done.err) == (0, "")

    def test_a_model_that_does_not_open_moves_nothing(self, lab: Lab) -> None:
        """The old run is set aside only for a new one."""
        model = lab.model()
        lab.bench_run("--model", model)
        Path(model.partition("/")[2]).unlink()
        lab.bench_run("--model", model, "--fresh").one_line(2, "replies.txt")
        assert len(records(lab.the_run())) == 16

    def test_a_server_that_does_not_answer_moves_nothing(self, lab: Lab) -> None:
        """Who answers is known before anything is moved."""

        class Gone(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                assert lab.the_run() == folder
                raise SetupError("no server at 127.0.0.1:9")

        lab.bench_run("--model", lab.fake(right))
        folder = lab.the_run()
        lab.bench_run("--model", lab.fake(Gone(right)), "--fresh").one_line(2, "no server")
        assert not (lab.out / "replaced").exists()
        assert len(records(lab.the_run())) == 16

    @pytest.mark.parametrize("error", [AuthError("401"), BadRequestError("400")], ids=str)
    def test_a_run_without_an_answer_brings_the_old_one_back(
        self, lab: Lab, error: ProviderError
    ) -> None:
        """Where a vendor answers is known at the first reply only."""
        lab.bench_run("--model", lab.fake(right))
        folder = lab.the_run()
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        done = lab.bench_run("--model", lab.fake(ScriptedProvider([error])), "--fresh")
        assert done.code == 1
        assert done.out == ""
        assert f"no sample was answered, so the old run is back: {folder}" in done.err
        assert "the same command asks them again" in done.err or error.args[0] == "401"
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert after == before

    def test_one_answer_is_a_new_run(self, lab: Lab) -> None:
        """What is paid for stays in its place, and how to go on is said."""
        lab.bench_run("--model", lab.fake(right))
        script = failing(BadRequestError("400"), after=1)
        command = ("--model", lab.fake(script), "--fresh", "--max-connections", "1")
        done = lab.bench_run(*command)
        assert done.code == 1
        assert "the same command without --fresh asks them again" in done.err
        (old,) = (lab.out / "replaced").rglob(SAMPLES)
        assert old.read_bytes().count(b"\n") == 16
        assert len(records(lab.the_run())) == 16

    def test_the_log_of_a_server_of_our_own_is_in_the_new_run(self, lab: Lab) -> None:
        """It starts before the old run is moved."""

        class Logging(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                with (folder / "server.log").open("a") as log:
                    log.write("started\n")
                return {"engine": "scripted"}

        lab.bench_run("--model", lab.fake(right))
        folder = lab.the_run()
        assert lab.bench_run("--model", lab.fake(Logging(right)), "--fresh").code == 0
        assert "started" in (lab.the_run() / "server.log").read_text()

    def test_a_run_that_is_being_written_is_not_moved(self, lab: Lab) -> None:
        """Its writer is named instead."""
        model = lab.fake(right)
        lab.bench_run("--model", model)
        folder = lab.the_run()
        with Journal(folder, print):
            done = lab.bench_run("--model", model, "--fresh")
            assert done.code == 1
            assert f"process {os.getpid()}" in done.err
            assert folder.exists()
        assert not (lab.out / "replaced").exists()

    def test_a_place_that_cannot_be_moved_to_is_one_line(self, lab: Lab) -> None:
        """And the run stays."""
        lab.bench_run()
        (lab.out / "replaced").write_text("in the way")
        done = lab.bench_run("--fresh")
        done.one_line(1, str(lab.out / "replaced"))
        assert len(records(lab.the_run())) == 16


class TestIncomplete:
    """Exit code 1: what is missing is said, what is there is shown."""

    def test_samples_without_a_reply(self, lab: Lab) -> None:
        """They are counted, and the same command asks them again."""
        done = lab.bench_run("--model", lab.fake(failing(BadRequestError("400"), after=10)))
        assert done.code == 1
        assert done.err.splitlines() == [
            "bench: 6 samples have no reply (the last: 400); the same command asks them again"
        ]
        provider = ScriptedProvider(right)
        assert lab.bench_run("--model", lab.fake(provider)).code == 0
        assert len(provider.requests) == 6

    def test_a_run_that_is_pointless(self, lab: Lab) -> None:
        """One line of why, and the table of what was answered."""
        script = failing(AuthError("the key in X_KEY is refused"), after=10)
        done = lab.bench_run("--model", lab.fake(script), "--max-connections", "1")
        assert done.code == 1
        assert done.err.splitlines() == ["bench: the key in X_KEY is refused"]
        assert "not scored" in done.out
        assert len(records(lab.the_run())) == 10
        provider = ScriptedProvider(right)
        assert lab.bench_run("--model", lab.fake(provider)).code == 0
        assert len(provider.requests) == 6

    def test_a_corrupt_line_is_reported_and_asked_again(self, lab: Lab) -> None:
        """The command goes on, and says which line it was."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        lab.bench_run("--model", model)
        path = lab.the_run() / SAMPLES
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([b"garbage\n", *lines[1:]]))
        done = lab.bench_run("--model", model)
        assert done.code == 0
        assert len(done.err.splitlines()) == 1
        assert f"bench: {path}:1: " in done.err
        assert len(provider.requests) == 17

    def test_score_of_an_incomplete_run(self, lab: Lab) -> None:
        """Code 1, and its table."""
        lab.bench_run("--model", lab.fake(failing(BadRequestError("400"), after=10)))
        done = lab.bench("score", lab.the_run())
        assert done.code == 1
        assert "not scored" in done.out

    def test_a_reply_with_half_a_character_is_an_answer(self, lab: Lab) -> None:
        """As a server's JSON may bring it; the run ends well."""
        model = lab.fake(lambda request: f"\ud83d {right(request)}")
        assert lab.bench_run("--model", model).code == 0


class TestInterrupted:
    """Exit code 130: what was answered is saved and shown."""

    def test_an_interrupt_anywhere_in_a_reply(self, lab: Lab) -> None:
        """Ctrl-C arrives inside whatever runs."""

        def script(request: Request) -> str:
            if request.sample_id.endswith("index=2"):
                raise KeyboardInterrupt
            return right(request)

        done = lab.bench_run("--model", lab.fake(script), "--max-connections", "1")
        assert done.code == 130
        assert "interrupted; what was answered is saved" in done.err
        assert "not scored" in done.out
        assert len(records(lab.the_run())) == 2

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_lets_a_callback_finish(self, lab: Lab, number: signal.Signals) -> None:
        """What the event loop is doing goes on to its end, so nothing there is torn."""
        finished = []

        def script(request: Request) -> str:
            if request.sample_id.endswith("index=2"):
                signal.raise_signal(number)
                finished.append(request.sample_id)
            return right(request)

        done = lab.bench_run("--model", lab.fake(script), "--max-connections", "1")
        assert done.code == 130
        assert finished
        assert done.err.splitlines() == [
            "interrupted; what was answered is saved, and the same command continues"
        ]

    def test_interrupted_twice(self, lab: Lab) -> None:
        """What replies are waited for is said, and not waited for any longer."""
        command = ("run", "--task", str(lab.ones), "--out", str(lab.out), "--model", "slow/x")
        process = lab.forked(*command, delay_s=60)
        wait_for(lambda: len(lab.slow_asked()) >= 6, process)
        process.send_signal(signal.SIGINT)
        said = lab.folder / "forked.err"
        wait_for(partial(has_lines, said, 1), process)
        first = said.read_bytes()
        assert b"They may be paid for: waiting up to 10 s for their replies" in first
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=8)
        assert process.returncode == 130
        assert err.removeprefix(first).startswith(b"interrupted; what was answered is saved")
        assert out == b""

    def test_what_is_ignored_stays_so(self, lab: Lab) -> None:
        """Under nohup a run outlives its terminal."""

        def script(request: Request) -> str:
            signal.raise_signal(signal.SIGHUP)
            return right(request)

        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            assert lab.bench_run("--model", lab.fake(script)).code == 0
        finally:
            signal.signal(signal.SIGHUP, before)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_in_the_middle(self, lab: Lab, number: signal.Signals) -> None:
        """A table of what is there, 130, and the same command asks the rest and no more.

        Meanwhile a second writer is told who holds the run.
        """
        command: tuple[str, ...] = (
            "run",
            "--task",
            str(lab.ones),
            "--out",
            str(lab.out),
            "--samples",
            "100",
        )
        command += ("--model", "slow/x", "--max-connections", "4")
        process = lab.forked(*command, delay_s=0.02)
        folder = lab.wanted(model="slow/x").folder
        wait_for(partial(has_lines, folder / SAMPLES, 12), process)
        lab.add_provider("slow", "eyechart.providers.scripted:open_provider")
        (lab.folder / "x").write_text("Final answer: 1\n")
        lab.monkeypatch.chdir(lab.folder)
        second = lab.bench(*command)
        assert second.code == 1
        assert f"process {process.pid} on {os.uname().nodename}" in second.err
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert err.decode().splitlines() == [
            "interrupted; what was answered is saved, and the same command continues"
        ]
        assert b"not scored" in out
        saved = {record["id"] for record in records(folder)}
        assert 12 <= len(saved) < 400
        before = len(lab.slow_asked())
        assert before == len(saved)  # what was on its way as well
        assert lab.slow_here(*command).err == ""
        later = lab.slow_asked()[before:]
        assert len(later) == 400 - len(saved)
        assert saved.isdisjoint(later)


class TestKilled:
    """`kill -9` at any moment loses nothing that was written."""

    def test_killed_and_continued_is_as_if_never_killed(self, lab: Lab) -> None:
        """Three kills at random moments; no answered sample is asked twice; the same table."""
        moments = random.Random(7)
        command: tuple[str, ...] = (
            "run",
            "--task",
            str(lab.ones),
            "--out",
            str(lab.out),
            "--samples",
            "50",
        )
        command += ("--model", "slow/x", "--max-connections", "5")
        folder = lab.wanted(model="slow/x").folder
        journal_file = folder / SAMPLES
        answered: set[str] = set()
        for least in (3, 50, 110):
            seen = len(lab.slow_asked())
            process = lab.forked(*command, delay_s=0.01)
            wait_for(partial(has_lines, journal_file, least), process)
            try:
                process.wait(moments.uniform(0, 0.03))
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            assert answered.isdisjoint(lab.slow_asked()[seen:])
            answered = {record["id"] for record in whole_records(journal_file)}
            assert len(answered) >= least
        seen = len(lab.slow_asked())
        assert lab.slow_here(*command).code == 0
        asked = lab.slow_asked()[seen:]
        assert answered.isdisjoint(asked)
        assert len(answered) + len(asked) == 200
        table = (folder / TABLE).read_bytes()
        shutil.rmtree(folder)
        lab.slow_here(*command)
        assert (folder / TABLE).read_bytes() == table
        assert table.count(b",50,50,0,") == 4


def whole_records(path: Path) -> list[dict[str, Any]]:
    *lines, _ = path.read_bytes().split(b"\n")
    return [orjson.loads(line) for line in lines]


def _small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))


class TestFullDisk:
    """No room left."""

    def test_a_journal_that_cannot_grow_ends_the_run_in_a_line(self, lab: Lab) -> None:
        """What was written stays, and with room again the same command continues."""
        command = ("run", "--task", str(lab.ones), "--out", str(lab.out), "--model", "slow/x")
        process = lab.forked(*command, "--samples", "9", delay_s=0, first=_small_files)
        _, err = process.communicate()
        assert process.returncode == 1
        assert len(err.splitlines()) == 1, err
        folder = lab.wanted(model="slow/x").folder
        assert f"cannot write {folder / SAMPLES}: File too large" in err.decode()
        kept = whole_records(folder / SAMPLES)
        assert 5 < len(kept) < 36
        seen = len(lab.slow_asked())
        assert lab.slow_here(*command, "--samples", "9").code == 0
        assert len(lab.slow_asked()[seen:]) == 36 - len(kept)

    @pytest.mark.parametrize(
        "name", ["table.csv", "samples.jsonl", "samples.writer.json", "samples.lock"]
    )
    def test_a_folder_in_the_place_of_a_file_is_one_line(self, lab: Lab, name: str) -> None:
        """As is any other trouble with the run's files."""
        folder = lab.wanted(model="fake/model").folder
        (folder / name).mkdir(parents=True)
        done = lab.bench_run("--model", lab.fake(right))
        assert done.code == 1
        assert len(done.err.splitlines()) == 1
        assert str(folder) in done.err


class TestProgress:
    """Progress is for terminals."""

    def test_a_terminal_sees_progress_rate_and_time_left(self, lab: Lab) -> None:
        """On stderr; stdout, which is none, stays plain."""
        ours, theirs = pty.openpty()
        command = ("run", "--task", str(lab.ones), "--out", str(lab.out), "--model", "slow/x")
        options = ("--samples", "25", "--max-connections", "4")
        process = lab.forked(*command, *options, delay_s=0.02, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # so Linux says that nobody holds the other end
            pass
        os.close(ours)
        out, _ = process.communicate()
        assert process.returncode == 0
        said = plain(shown.decode())
        assert "lab/ones" in said
        assert "/100" in said
        assert "/s" in said
        assert "0:00:0" in said
        assert b"\x1b" not in out

    def test_a_file_sees_none(self, lab: Lab) -> None:
        """Nothing at all on stderr of a run that goes well; and where a dash cannot be written,
        as in ASCII, something else is.
        """
        lab.monkeypatch.setenv("PYTHONIOENCODING", "ascii")
        command = ("run", "--task", str(lab.plain), "--out", str(lab.out), "--model", "slow/x")
        process = lab.slow(*command, delay_s=0.3)
        out, err = process.communicate()
        assert (process.returncode, err) == (0, b"")
        assert b"\x1b" not in out
        assert b"100 (44\\u2013100)" in out


HUGE = "9" * 5000
MISUSE = [
    (["--lengths", ""], ["--lengths"]),
    (["--lengths", "5,,7"], ["--lengths", "''"]),
    (["--lengths", "0"], ["--lengths", "'0'"]),
    (["--lengths", "-5"], ["--lengths", "'-5'"]),
    (["--lengths", "5.5"], ["--lengths", "'5.5'"]),
    (["--lengths", "ten"], ["--lengths", "'ten'"]),
    (["--lengths", "5-9"], ["--lengths", "'5-9'"]),
    (["--lengths", "²"], ["--lengths"]),
    (["--lengths", "٣"], ["--lengths"]),
    (["--lengths", HUGE], ["--lengths"]),
    (["--axis", "separator"], ["--axis", "'separator'"]),
    (["--axis", "separator="], ["--axis", "'separator='"]),
    (["--axis", "=none"], ["''"]),
    (["--axis", "seperator=none"], ["'seperator'", "did you mean 'separator'?"]),
    (["--axis", "zzz=none"], ["'zzz'", "separator"]),
    (["--axis", "separator=dash"], ["'dash'", "none, space, comma"]),
    (["--max-tokens", "0"], ["--max-tokens", "not 0"]),
    (["--max-tokens", "-1"], ["--max-tokens", "not -1"]),
    (["--max-tokens", "many"], ["--max-tokens", "'many'"]),
    (["--max-tokens", "1.5"], ["--max-tokens", "not 1.5"]),
    (["--max-tokens", ""], ["--max-tokens"]),
    (["--max-tokens", HUGE], ["--max-tokens"]),
    (["--max-tokens", str(10**30)], ["--max-tokens"]),
    (["--seed", str(10**30)], ["--seed"]),
    (["--temperature", "nan"], ["--temperature"]),
    (["--temperature", "inf"], ["--temperature"]),
    (["--model", ""], ["''", "provider/model"]),
    (["--model", "/x"], ["'/x'", "provider/model"]),
    (["--model", "scripted/"], ["'scripted/'", "provider/model"]),
    (
        ["--task", "tiny", "--model", "counting/ones"],
        ["'tiny' is a model and 'counting/ones' a task", "--task counting/ones --model tiny"],
    ),
    (["--model", "scriptd/x"], ["'scriptd'", "did you mean 'scripted'?"]),
    (["--model", "nobody/x"], ["'nobody'", "bench models"]),
    (["--model", "openai/\udce9"], ["--model", r"'openai/\udce9'", "UTF-8"]),
    (["--system", "\udce9"], ["--system", r"'\udce9'", "UTF-8"]),
    (["--base-url", "http://\udce9"], ["--base-url", "UTF-8"]),
    (["--model-arg", "a=\udce9"], ["--model-arg", "UTF-8"]),
    (["--model-arg", "\udce9"], ["--model-arg", "UTF-8"]),
    (["--task", "\udce9.yaml"], [r"'\udce9.yaml'"]),
    (["--model", "scripted/no\nsuch"], ["cannot read"]),
    (["--model", "scripted/nowhere.txt"], ["nowhere.txt"]),
    (["--model", "scripted/empty.txt"], ["empty.txt", "empty"]),
    (["--model", "scripted/lab"], ["lab"]),
    (["--model", "scripted/binary.txt"], ["binary.txt"]),
]


class TestMisuse:
    """Bad input is one line on stderr that says what and where, and exit code 2."""

    @pytest.mark.parametrize(("arguments", "words"), MISUSE, ids=lambda value: str(value)[:40])
    def test_an_option_that_cannot_be(
        self, lab: Lab, arguments: list[str], words: list[str]
    ) -> None:
        """Its name or value is in the line, and no folder is made."""
        (lab.folder / "empty.txt").write_text("")
        (lab.folder / "binary.txt").write_bytes(b"\xff\xfe\x00")
        lab.monkeypatch.chdir(lab.folder)
        lab.bench_run(*arguments).one_line(2, *words)
        assert not lab.out.exists()

    @pytest.mark.parametrize(
        ("arguments", "word"),
        [
            (["--samples", "0"], "--samples"),
            (["--samples", "-3"], "--samples"),
            (["--samples", "x"], "--samples"),
            (["--seed", "x"], "--seed"),
            (["--temperature", "-1"], "--temperature"),
            (["--max-connections", "0"], "--max-connections"),
            (["--max-connections", "10001"], "--max-connections"),
            (["--max-connections", "99999999999"], "--max-connections"),
            (["--sample", "3"], "--sample"),
            (["extra"], "extra"),
        ],
        ids=str,
    )
    def test_an_option_that_the_parser_refuses(
        self, lab: Lab, arguments: list[str], word: str
    ) -> None:
        """It is in the line too."""
        lab.bench_run(*arguments).one_line(2, word)
        assert not lab.out.exists()

    @pytest.mark.parametrize("verb", ["run", "runn", "score"])
    def test_a_verb_without_what_it_needs(self, lab: Lab, verb: str) -> None:
        """Exit code 2, no traceback."""
        done = lab.bench(verb)
        assert done.code == 2
        assert "Traceback" not in done.err
        assert {"run": "--task", "runn": "runn", "score": "RUN"}[verb] in done.err

    @pytest.mark.parametrize("out", ["file", "file/below"])
    def test_results_cannot_go_into_a_file(self, lab: Lab, out: str) -> None:
        """The line names the place."""
        (lab.folder / "file").write_text("precious")
        done = lab.bench_run("--out", str(lab.folder / out))
        done.one_line(2, str(lab.folder / "file"))
        assert (lab.folder / "file").read_text() == "precious"

    def test_an_unknown_task_is_guessed(self, lab: Lab) -> None:
        """With the nearest name."""
        done = lab.bench("run", "--task", "countng", "--model", lab.model())
        done.one_line(2, "'countng'", "did you mean 'counting'?")

    def test_a_wrong_task_file_is_said_with_its_place(self, lab: Lab) -> None:
        """All mistakes at once, one a line, exit code 2."""
        lab.ones.write_text(lab.ones.read_text().replace("title", "titel").replace("4", "none", 1))
        done = lab.bench_run()
        assert done.code == 2
        assert f"{lab.ones}:2:1: " in done.err
        assert f"{lab.ones}:5:10: " in done.err
        assert "Traceback" not in done.err

    def test_a_generator_that_fails_late_keeps_what_was_answered(self, lab: Lab) -> None:
        """Code 2 with the task, length and sample; the table shows what is there."""
        rows = lab.ones.parent / "rows.py"
        rows.write_text(
            rows.read_text().replace(
                "    row =", "    if rng.random() < 0.1:\n        1 / 0\n    row ="
            )
        )
        done = lab.bench_run("--samples", "30", "--max-connections", "1")
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert "ZeroDivisionError" in done.err
        assert "task 'lab/ones' at length 3" in done.err
        assert "not scored" in done.out
        assert records(lab.the_run())

    @pytest.mark.parametrize("place", ["nowhere", "empty", "file", "file/below"])
    def test_a_run_that_is_none_cannot_be_scored(self, lab: Lab, place: str) -> None:
        """One line with its name."""
        (lab.folder / "empty").mkdir()
        (lab.folder / "file").write_text("")
        done = lab.bench("score", lab.folder / place)
        done.one_line(done.code or 99, "no run in", str(lab.folder / place))

    def test_a_length_beyond_memory_is_one_line(self, lab: Lab) -> None:
        """A generator that asks for more memory than there is fails like any other."""
        rows = lab.ones.parent / "rows.py"
        rows.write_text(rows.read_text().replace("[rng.choice", '["1"] * length or [rng.choice'))
        done = lab.bench_run("--lengths", str(10**14))
        assert done.code == 2
        assert len(done.err.splitlines()) == 1
        assert str(10**14) in done.err

    @pytest.mark.parametrize(
        "command",
        [
            ("compare", "--axis", "separator=none,comma", "-o"),
            ("report", "-o"),
            ("leaderboard", "-o"),
            ("leaderboard", "--readme"),
        ],
        ids=str,
    )
    def test_no_device_or_folder_is_replaced(self, lab: Lab, command: tuple[str, ...]) -> None:
        """`-o /dev/null` by a superuser would put a file in its place; a pipe has no end."""
        verb, *options = command
        lab.bench_run("--model", lab.fake(right))
        pipe, folder = lab.folder / "pipe.csv", lab.folder / "folder.csv"
        os.mkfifo(pipe)
        folder.mkdir()
        lab.bench(verb, lab.the_run(), *options, pipe).one_line(2, str(pipe), "no file")
        assert pipe.is_fifo()
        lab.bench(verb, lab.the_run(), *options, folder).one_line(2, str(folder), "is a folder")
        assert not list(folder.iterdir())

    def test_no_memory_is_one_line(self, lab: Lab) -> None:
        """Wherever it runs out."""

        def greedy(*_: object) -> None:
            raise MemoryError("Unable to allocate 7.28 TiB")

        lab.monkeypatch.setattr(readable, "read_run", greedy)
        lab.bench("score", lab.folder).one_line(1, "out of memory", "7.28 TiB")

    def test_names_that_are_no_unicode_are_borne(self, lab: Lab) -> None:
        """A folder named in an old encoding holds results like any other."""
        out = os.fsdecode(os.fsencode(str(lab.folder)) + b"/r\xe9sultats")
        done = lab.bench_run("--out", out)
        assert done.code == 0

    def test_a_model_with_a_long_foreign_name_is_one_line(self, lab: Lab) -> None:
        """Its folder's name would be longer than a file system takes."""
        model = lab.model(name="é" * 100)
        done = lab.bench_run("--model", model)
        assert done.code in (0, 1, 2)
        assert len(done.err.splitlines()) == (1 if done.code else 0)

    def test_help_of_every_verb_ends_with_examples(self, lab: Lab) -> None:
        """Examples are what people read."""
        verbs = (
            *(["run"], ["score"], ["samples"], ["runs"], ["models"]),
            *(["tasks", "show"], ["tasks", "check"], ["tasks", "sample"]),
        )
        for verb in verbs:
            done = lab.bench(*verb, "--help")
            assert done.code == 0
            assert "Examples:" in done.out, verb
            assert done.out.strip().splitlines()[-1].strip().startswith("bench ")

    def test_a_traceback_is_there_for_who_asks(self, lab: Lab) -> None:
        """With `--debug` an error is raised as it is."""
        with pytest.raises(SetupError, match="nobody"):
            lab.bench("--debug", "run", "--task", str(lab.ones), "--model", "nobody/x")


class TestBrokenRuns:
    """A run that cannot go on is one line, whatever the reason, and loses nothing."""

    def held(self, lab: Lab, *arguments: str) -> None:
        model = lab.fake(right)
        lab.bench_run("--model", model, "--lengths", "3")
        folder = lab.the_run()
        before = (folder / TABLE).read_bytes()
        with Journal(folder, print):
            done = lab.bench_run("--model", model, *arguments)
        assert done.code == 1
        assert len(done.err.splitlines()) == 1, done.err
        assert f"is being written by process {os.getpid()}" in done.err
        assert (folder / TABLE).read_bytes() == before

    def test_held_by_another_writer(self, lab: Lab) -> None:
        """Who holds it is said."""
        self.held(lab, "--lengths", "3")

    def test_held_by_another_writer_with_other_cells(self, lab: Lab) -> None:
        """Also where none of what is asked was planned yet."""
        self.held(lab, "--lengths", "9")

    def test_another_server_with_other_cells(self, lab: Lab) -> None:
        """Likewise where the run belongs to another server."""

        class Other(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                return {"engine": "other"}

        lab.bench_run("--model", lab.fake(right), "--lengths", "3")
        done = lab.bench_run("--model", lab.fake(Other(right)), "--lengths", "9")
        assert done.code == 1
        assert len(done.err.splitlines()) == 1, done.err
        assert "'scripted', is 'other'" in done.err

    @pytest.mark.parametrize("content", [b"", b'{"mod', b"null", b"[]", b"{}"])
    def test_a_broken_manifest(self, lab: Lab, content: bytes) -> None:
        """It is named once, for run and score, and `--fresh` starts over."""
        model = lab.fake(right)
        lab.bench_run("--model", model)
        folder = lab.the_run()
        manifest = folder / MANIFEST
        manifest.write_bytes(content)
        for done in (lab.bench("score", folder), lab.bench_run("--model", model)):
            done.one_line(1, f"{manifest} cannot be read")
        assert len(records(folder)) == 16
        assert lab.bench_run("--model", model, "--fresh").code == 0

    def test_the_manifest_of_another_task(self, lab: Lab) -> None:
        """The line says whose run it is; that run's table is not rewritten or shown as ours."""
        model = lab.fake(right)
        ones, other = lab.wanted(model=model), lab.wanted(lab.plain, model=model)
        lab.bench_run("--model", model, task=lab.plain)
        shutil.copytree(other.folder, ones.folder)
        done = lab.bench_run("--model", model)
        done.one_line(1, str(ones.folder), "lab/plain")

    def test_a_missing_manifest(self, lab: Lab) -> None:
        """Answers whose maker nobody knows are left alone."""
        model = lab.fake(right)
        lab.bench_run("--model", model)
        (lab.the_run() / MANIFEST).unlink()
        done = lab.bench_run("--model", model)
        done.one_line(1, "no manifest.json", "--fresh")

    def test_a_far_index_takes_no_memory(self, lab: Lab) -> None:
        """One wrong number in a journal is not an allocation of its size."""
        model = lab.fake(right)
        lab.bench_run("--model", model)
        path = lab.the_run() / SAMPLES
        last = orjson.loads(path.read_bytes().splitlines()[-1])
        with path.open("ab") as file:
            file.write(orjson.dumps(last | {"index": 10**7}) + b"\n")
        for command in (
            partial(lab.bench, "score", lab.the_run()),
            partial(lab.bench_run, "--model", model),
        ):
            tracemalloc.start()
            done = command()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert done.code == 0
            assert peak < 40e6


def test_a_provider_that_breaks_its_promise_keeps_what_was_answered(lab: Lab) -> None:
    """An error that is no `ProviderError` is a bug: it is tried again, then costs its sample, and
    many end the run.
    """

    class Broken(ScriptedProvider):
        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(0)
            if len(self.requests) == 9:
                raise ZeroDivisionError
            return await super().complete(request)

    model = lab.fake(Broken(right))
    done = lab.bench_run("--model", model, "--samples", "40", "--max-connections", "1")
    assert done.code == 1
    assert "ZeroDivisionError" in done.err
    assert "Traceback" not in done.err
    kinds = [record.get("failure", {}).get("kind") for record in records(lab.the_run())]
    assert kinds == [None] * 9 + ["error"] * 20


def test_version_is_said(lab: Lab) -> None:
    """`bench --version` names the distribution."""
    done = lab.bench("--version")
    assert done.code == 0
    assert done.out.startswith("eyechart ")


class TestWhatIsShownAndKept:
    """Tables and folders of runs that did not go as a run usually goes."""

    def test_replies_that_are_no_answer_have_rows_of_their_own(self, lab: Lab) -> None:
        """Cut off, refused and unread replies do not look like wrong ones."""
        said: list[str | Reply | ProviderError] = [
            Reply("", "length"),
            Reply("", refusal="no"),
            Reply("hm"),
            PromptOverflowError("too long"),
        ]
        one_try = ("--keep-going", "--max-tokens", "16")  # a cut-off reply gets no more room
        done = lab.bench_run(*one_try, "--model", lab.fake(ScriptedProvider(said)))
        for outcome in ("truncated", "refused", "unparsed", "overflow"):
            assert f" {outcome} |" in done.out
        plain = lab.bench_run("--fresh", "--model", lab.fake(right))
        assert "truncated" not in plain.out

    def test_asking_for_less_is_complete_when_that_is_answered(self, lab: Lab) -> None:
        """The exit code is about what the command asked for, not about what the run once wanted."""
        script = failing(AuthError("stop"), after=4)
        lab.bench_run("--samples", "30", "--model", lab.fake(script), "--max-connections", "1")
        less = lab.bench_run("--samples", "1", "--model", lab.fake(right))
        assert less.code == 0
        rows = read_run(lab.the_run()).cells
        answers = [one for one in records(lab.the_run()) if "reply" in one]
        assert (int(rows["n"].sum()), int(rows["not_run"].sum())) == (len(answers), 0)

    def test_a_generator_changed_between_runs_is_found(self, lab: Lab) -> None:
        """Even where the second command asks for other lengths."""
        assert lab.bench_run("--lengths", "3").code == 0
        rows = lab.ones.parent / "rows.py"
        rows.write_text(rows.read_text().replace('"01"', '"10"'))
        generator.load_generator.cache_clear()
        functions.load_module.cache_clear()
        done = lab.bench_run("--lengths", "5")
        done.one_line(1, "another prompt", "--fresh")

    def test_a_length_that_cannot_be_made_leaves_nothing(self, lab: Lab) -> None:
        """It is said before a run's folder is there."""
        done = lab.bench(
            "run", "--task", "counting/words", "--model", "tiny", "--lengths", "1", "--out", lab.out
        )
        done.one_line(2, "at least 2 words")
        assert not lab.out.exists()

    def test_an_address_with_a_password_is_not_kept(self, lab: Lab) -> None:
        """Nor is it in the folder, nor in what is said."""
        address = "http://someone:planted@127.0.0.1:9/v1"
        done = lab.bench_run("--model", "m", "--base-url", address, "--samples", "1")
        kept = "".join(p.read_text() for p in lab.out.rglob("*") if p.is_file())
        assert "127.0.0.1" in kept
        assert "planted" not in kept + done.out + done.err
