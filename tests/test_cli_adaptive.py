"""`bench run --adaptive`: few requests, the same ones whatever happens, and limits that hold."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import math
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.adaptive.adaptive import END_SAMPLES
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import EFFECTIVE_LENGTHS, TABLE
from eyechart.harness.cli.progress import state
from eyechart.harness.face.asking.adaptive import AllWaves
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.plan.context_fit import CellFit, ContextFit
from eyechart.harness.plan.selection import plans
from eyechart.harness.run import task_run
from eyechart.harness.run.progress import Progress
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec import Line
from eyechart.providers.base import BadRequestError, Reply, Request, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import has_lines, records, wait_for
from tests.test_plan_cost import priced

if TYPE_CHECKING:
    from tests.conftest import Done, Lab

SEES = 25
LENGTHS = ("--lengths", "5,10,20,40,80,160")
ONE_CONDITION = (*LENGTHS, "--axis", "separator=none")
LIMITED = (*ONE_CONDITION, "--samples", "40")


def row_of(request: Request) -> str:
    """The symbols of a prompt of the lab's tasks."""
    return request.prompt.splitlines()[-1].replace(",", "").replace(" ", "")


def sees(most: int) -> Callable[[Request], str]:
    """A model that counts rows of at most `most` symbols, and miscounts longer ones by one."""

    def reply(request: Request) -> str:
        row = row_of(request)
        return f"Final answer: {row.count('1') + (len(row) > most)}"

    return reply


def is_near_the_threshold(request: Request) -> str:
    """A model that counts about 85 % of the rows of any length."""
    row = row_of(request)
    wrong = hashlib.sha256(request.sample_id.encode()).digest()[0] < 0.15 * 256
    return f"Final answer: {row.count('1') + wrong}"


class Window(ScriptedProvider):
    """A right model with a window of `tokens`, where each character is a token."""

    def __init__(self, tokens: int) -> None:
        super().__init__(sees(10**6))
        self._tokens = tokens

    async def facts(self) -> Mapping[str, object]:
        return {"engine": "window", "max_model_len": self._tokens}

    async def count_tokens(self, prompts: Any) -> list[int]:
        return list(map(len, prompts))


class Uneven(ScriptedProvider):
    """Replies after a time that differs from sample to sample, and with `salt`."""

    def __init__(self, salt: str) -> None:
        super().__init__(sees(SEES))
        self._salt = salt

    async def complete(self, request: Request) -> Reply:
        reply = await super().complete(request)
        digest = hashlib.sha256(f"{self._salt}{request.sample_id}".encode()).digest()
        await asyncio.sleep(digest[0] / 25_000)
        return reply


@pytest.fixture(autouse=True)
def bands(lab: Lab) -> None:
    """The lines of the tasks are bands."""
    lab.with_bands()


def adaptive(lab: Lab, model: str, *arguments: str | Path, **more: Any) -> Done:
    """`bench run --adaptive`, until the effective length is known to the usual precision; without
    `--precision` the small tasks of the lab would end as soon as their small full runs. It only
    asks.
    """
    return lab.bench_ask(*until_known(model, *arguments), **more)


def shown(lab: Lab, model: str, *arguments: str | Path, **more: Any) -> Done:
    """The same with its tables."""
    return lab.bench_run(*until_known(model, *arguments), **more)


def until_known(model: str, *arguments: str | Path) -> tuple[str | Path, ...]:
    aim = () if "--precision" in arguments else ("--precision", "0.75")
    return ("--adaptive", *aim, "--model", model, *arguments)


def ids(folder: Path) -> list[str]:
    return [str(record["id"]) for record in records(folder)]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class TestFinding:
    """What an adaptive run finds, and from how many samples."""

    def test_it_never_asks_more_than_a_full_run(self, lab: Lab) -> None:
        """Unless a precision is wanted; then the same run goes on."""
        name = lab.fake(is_near_the_threshold)
        done = lab.bench_run("--adaptive", "--model", name, *LENGTHS)
        assert done.code == 0
        full = 4 * len(LENGTHS[1].split(","))
        said = f"; {full} samples were asked, as many as a full run has; --precision asks for more"
        assert done.err.count(said) == 2
        assert len(ids(lab.the_run())) == 2 * full
        dry = lab.bench_run("--adaptive", "--model", name, *LENGTHS, "--fresh", "--dry-run")
        assert f"at most {2 * full} samples of this task" in " ".join(dry.out.split())
        more = adaptive(lab, name, *LENGTHS, "--max-requests", "20")
        assert "as many as a full run has" not in more.err
        assert len(ids(lab.the_run())) == 2 * full + 20

    def test_few_samples_find_the_breaking_point(self, lab: Lab) -> None:
        """The intervals contain it and are narrow enough; each condition says why it ended."""
        done = shown(lab, lab.fake(sees(SEES)), *LENGTHS)
        assert done.code == 0
        folder = lab.the_run()
        for row in rows(folder / EFFECTIVE_LENGTHS):
            low, high = (float(row[f"effective_length_ci_{end}"]) for end in ("low", "high"))
            assert low <= SEES <= high <= 2**0.75 * low
        assert 30 < len(ids(folder)) == len(set(ids(folder))) < 240
        said = [line.partition(" octaves (") for line in done.err.splitlines()]
        for (before, _, after), row in zip(said, rows(folder / EFFECTIVE_LENGTHS), strict=True):
            ends = [row[f"effective_length_ci_{end}"].removesuffix(".0") for end in ("low", "high")]
            width = math.log2(float(ends[1]) / float(ends[0]))
            assert before == (
                f"lab/ones separator={row['separator']}: its effective length is known to "
                f"{width:.2f}"
            )
            assert after == f"{' to '.join(ends)})"
        assert read_manifest(folder).adaptive

    def test_more_precision_takes_more_samples(self, lab: Lab) -> None:
        """The same folder grows, and no sample is asked twice."""
        model = lab.fake(sees(SEES))
        adaptive(lab, model, *ONE_CONDITION, "--precision", "1")
        coarse = ids(lab.the_run())
        adaptive(lab, model, *ONE_CONDITION, "--precision", "0.6")
        fine = ids(lab.the_run())
        assert fine[: len(coarse)] == coarse
        assert len(coarse) < len(fine) == len(set(fine))

    def test_the_same_command_again_asks_nothing(self, lab: Lab) -> None:
        """And says the same."""
        first = shown(lab, lab.fake(sees(SEES)), *LENGTHS)
        before = ids(lab.the_run())
        again = shown(lab, lab.fake(sees(SEES)), *LENGTHS)
        assert (again.code, again.out, again.err) == (first.code, first.out, first.err)
        assert ids(lab.the_run()) == before

    def test_two_tasks_with_two_conditions(self, lab: Lab) -> None:
        """Each has a table file and a row."""
        tasks = f"{lab.ones},{lab.plain}"
        done = shown(lab, lab.fake(sees(SEES)), *LENGTHS, task=tasks)
        assert done.code == 0
        assert [
            line.split("|")[1].split()[0] for line in done.out.splitlines() if "| lab/" in line
        ] == ["lab/ones", "lab/plain"]
        assert len(list(lab.out.rglob(TABLE))) == 2

    def test_exact_lengths_stay_exact(self, lab: Lab) -> None:
        """With --exact each line has one length, and the crossing is known to lie between two
        of them; without it lines are bands.
        """
        model = lab.fake(sees(SEES))
        adaptive(lab, model, *ONE_CONDITION, "--exact")
        exact = read_manifest(lab.the_run())
        assert all(cell.line.is_exact for cell in exact.cells)
        assert sum(cell.samples for cell in exact.cells) < 150
        adaptive(lab, model, *ONE_CONDITION, "--fresh")
        bands = read_manifest(lab.the_run())
        assert any(not cell.line.is_exact for cell in bands.cells)

    def test_samples_limit_a_line(self, lab: Lab) -> None:
        """A condition that is not known where its lines are full is incomplete; more samples end
        it.
        """
        done = adaptive(lab, lab.fake(sees(SEES)), *LENGTHS, "--samples", "3")
        assert done.code == 1
        assert max(cell.samples for cell in read_manifest(lab.the_run()).cells) == 3
        assert done.err.count("; every line near the crossing has 3 samples\n") == 2
        *_, first, last = done.err.splitlines()
        assert "separator=comma: its effective length is " in first
        assert last == (
            "bench: fake/model: 2 conditions are not known to 0.75 octaves; raise --samples"
        )
        one = (*LENGTHS, "--axis", "separator=none", "--samples", "1")
        done = adaptive(lab, lab.fake(sees(SEES)), *one, "--fresh")
        assert done.code == 1
        assert "; every line near the crossing has 1 sample\n" in done.err
        finer = (*one[:-1], "20", "--precision", "0.4")
        done = adaptive(lab, lab.fake(sees(SEES)), *finer, "--fresh")
        assert done.err.endswith(
            "1 condition is not known to 0.4 octaves; raise --samples or raise --precision\n"
        )
        done = adaptive(lab, lab.fake(sees(SEES)), *one, "--precision", "1", "--fresh")
        assert done.err.endswith("1 condition is not known to 1 octave; raise --samples\n")
        more = (*one[:-1], "20", "--precision", "1")
        assert adaptive(lab, lab.fake(sees(SEES)), *more).code == 0

    def test_ready_items_end_where_there_are_no_more(self, lab: Lab) -> None:
        """Their lengths are their own, and a line has no more samples than items."""
        path = lab.folder / "ready.yaml"
        path.write_text(
            "version: 1\ntitle: x\nitems: rows.jsonl\nanswer: integer\n"
            "prompt: |\n  {{ phrase }}\n  {{ row }}\n"
        )
        (lab.folder / "rows.jsonl").write_text(
            "".join(
                f'{{"variables": {{"row": "{"1" * length}"}}, "target": {length}, '
                f'"length": {length}}}\n'
                for length in (10, 20, 30)
                for _ in range(4)
            )
        )
        done = adaptive(lab, lab.fake(sees(SEES)), "--precision", "0.4", task=path)
        assert done.code == 1
        assert done.err.endswith("not known to 0.4 octaves; add items\n")
        assert "every item of the lines near the crossing was asked" in done.err
        assert {cell.line.length for cell in read_manifest(lab.the_run()).cells} == {10, 20, 30}
        assert max(cell.samples for cell in read_manifest(lab.the_run()).cells) == 4


class TestWindow:
    """Lines beyond the task's, up to the window."""

    def test_the_climb_ends_at_the_window(self, lab: Lab) -> None:
        """What does not fit is recorded, never sent, and counts as failing."""
        provider = Window(400)
        done = shown(lab, lab.fake(provider), "--axis", "separator=none", "--exact")
        assert done.code == 0
        assert "it is limited by window: all 6 failing samples were too long" in done.err
        assert max(len(request.prompt) for request in provider.requests) < 400
        overflows = [record for record in records(lab.the_run()) if "failure" in record]
        assert overflows
        assert {record["failure"]["kind"] for record in overflows} == {"overflow"}
        (row,) = rows(lab.the_run() / EFFECTIVE_LENGTHS)
        longest = max(len(row_of(request)) for request in provider.requests)
        assert float(row["effective_length_ci_low"]) <= longest

    def test_without_a_precision_no_line_is_added(self, lab: Lab) -> None:
        """Its rows are those of the full run, although the window has room for longer ones."""
        provider = Window(400)
        name = lab.fake(provider)
        assert lab.bench_ask("--adaptive", "--model", name, "--axis", "separator=none").code == 0
        asked = {row_of(request) for request in provider.requests}
        provider.requests.clear()
        lab.bench_ask("--model", name, "--axis", "separator=none", "--fresh")
        full = {row_of(request) for request in provider.requests}
        assert max(map(len, asked)) <= max(map(len, full))

    def test_given_lengths_are_all_there_is(self, lab: Lab) -> None:
        """No line is added to them, nor where no window is known."""
        for model, lengths in (
            (lab.fake(Window(400)), ("--lengths", "3,5")),
            (lab.fake(sees(10**6)), ()),
        ):
            done = adaptive(lab, model, *lengths, "--axis", "separator=none", "--fresh")
            assert done.code == 0
            assert re.search(
                r"reaches 85 % at 5$|is 4 to > 5; no longer length was asked$",
                done.err,
                re.MULTILINE,
            )
            assert read_manifest(lab.the_run()).cells[-1].samples >= END_SAMPLES
            assert {cell.length for cell in read_manifest(lab.the_run()).cells} == {3, 5}


class TestUndisturbed:
    """What happens on the way changes neither the samples nor the table."""

    def test_the_order_of_replies_changes_nothing(self, lab: Lab) -> None:
        """Slow replies first or last, one worker or sixteen."""
        seen = set()
        for salt, workers in (("a", 16), ("b", 16), ("c", 3), ("d", 1)):
            out = lab.folder / salt
            place = ("--max-connections", str(workers), "--out", out)
            assert shown(lab, lab.fake(Uneven(salt)), *LENGTHS, *place).code == 0
            folder = next(out.rglob(SAMPLES)).parent
            seen.add((tuple(sorted(ids(folder))), (folder / TABLE).read_bytes()))
        assert len(seen) == 1

    def test_killed_and_continued_is_as_if_never_killed(self, lab: Lab) -> None:
        """Two kills in different waves; no answered sample is asked twice."""
        lab.monkeypatch.setenv("SLOW_SEES", str(SEES))
        command: tuple[str, ...]
        command = (
            "run",
            "--task",
            str(lab.ones),
            "--out",
            str(lab.out),
            "--adaptive",
            *LENGTHS,
            "--precision",
            "0.75",
        )
        command += ("--model", "slow/x", "--max-connections", "3")
        folder = lab.wanted(model="slow/x").folder
        for least in (2, 40):
            process = lab.forked(*command, delay_s=0.02)
            wait_for(partial(has_lines, folder / SAMPLES, least), process)
            process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
        assert lab.slow_here(*command).code == 0
        killed = ids(folder)
        assert len(killed) == len(set(killed))
        table = (folder / TABLE).read_bytes()
        shutil.rmtree(folder)
        lab.slow_here(*command)
        assert sorted(ids(folder)) == sorted(killed)
        assert (folder / TABLE).read_bytes() == table


class TestFullRuns:
    """An adaptive run and a full run share their folder and their answers."""

    def test_an_adaptive_run_grows_into_a_full_one(self, lab: Lab) -> None:
        """All its answers are used and count, so it stays adaptive."""
        model = lab.fake(sees(SEES))
        adaptive(lab, model, *LENGTHS)
        before = ids(lab.the_run())
        assert lab.bench_ask("--model", model, *LENGTHS, "--samples", "30").code == 0
        assert ids(lab.the_run())[: len(before)] == before
        assert len(set(ids(lab.the_run()))) == len(ids(lab.the_run()))
        run = read_run(lab.the_run())
        assert [one.adaptive for one in run.shown()] == [True, True]
        assert len(run.samples) == len(ids(lab.the_run())) >= 30 * len(run.manifest.cells)
        assert run.missing == 0

    def test_no_answer_is_asked_again(self, lab: Lab) -> None:
        """A full run and the next adaptive one count all that there is."""
        provider = ScriptedProvider(is_near_the_threshold)
        model = lab.fake(provider)
        one = ("--axis", "separator=none")
        adaptive(lab, model, *LENGTHS, *one, "--max-requests", "100")
        full = ("--model", model, *LENGTHS, *one)
        done = lab.bench_run(*full)
        folder = lab.the_run()
        answers, counted = len(ids(folder)), 4 * 6
        assert counted < 100 <= answers
        assert done.code == lab.bench_run(*full).code == 0
        run = read_run(folder)
        assert (len(run.samples), run.missing) == (answers, 0)
        assert "adaptive" in lab.bench("score", folder).out.splitlines()[0]
        shown = lab.bench_run("--adaptive", *full, "--dry-run").out
        assert f"{answers} are answered, so 0 will be asked" in shown
        done = lab.bench_run("--adaptive", *full)
        assert f"; {answers} samples were asked, more than the {counted} that a full" in done.err
        asked = [request.sample_id for request in provider.requests]
        assert len(asked) == len(set(asked)) == answers
        assert sum(cell.samples for cell in read_manifest(folder).cells) == answers

    def test_answers_on_other_lines_are_taken_up(self, lab: Lab) -> None:
        """Answers count, also on lines that neither the full run nor the next adaptive one asks."""
        model = lab.fake(sees(SEES))
        adaptive(lab, model, *LENGTHS)
        folder = lab.the_run()
        before = {cell.key: cell.samples for cell in read_manifest(folder).cells}
        assert lab.bench_ask("--model", model, "--lengths", "2,3", "--samples", "2").code == 0
        assert len(read_run(folder).samples) >= sum(before.values())
        adaptive(lab, model, "--lengths", "6,12,24,48,96")
        after = {cell.key: cell.samples for cell in read_manifest(folder).cells}
        assert before.items() <= after.items()

    def test_conditions_are_of_one_kind_each(self, lab: Lab) -> None:
        """Whichever was asked first, and last, the full one has an area, the adaptive one none."""
        model = lab.fake(sees(SEES))
        full = (*LENGTHS, "--samples", "5", "--axis", "separator=comma")
        chosen = (*LENGTHS, "--axis", "separator=none")
        lab.bench_run("--model", model, *full)
        area = rows(lab.the_run() / EFFECTIVE_LENGTHS)[0]["area"]
        for again in range(2):
            done = shown(lab, model, *chosen)
            assert "adaptive" in done.out.splitlines()[0]
            if again:
                done = lab.bench_run("--model", model, *full)
                assert "adaptive" not in done.out
            assert [
                (row["separator"], row["adaptive"], row["area"])
                for row in rows(lab.the_run() / EFFECTIVE_LENGTHS)
            ] == [("none", "yes", ""), ("comma", "", area)]
        done = lab.bench("score", lab.the_run())
        title, _, *printed = done.out.splitlines()
        assert "adaptive" not in title
        assert printed[0].split() == ["|", "separator", "|", "none", "|", "comma", "|"]
        assert ["|", "adaptive", "|", "yes", "|", "|"] in [line.split() for line in printed]

    def test_a_full_run_needs_nothing_more(self, lab: Lab) -> None:
        """It stays a full run."""
        model = lab.fake(sees(SEES))
        bands = (*LENGTHS, "--samples", "40")
        lab.bench_run("--model", model, *bands)
        before = (lab.the_run() / SAMPLES).read_bytes()
        table = (lab.the_run() / TABLE).read_bytes()
        done = shown(lab, model, *LENGTHS)
        assert (done.code, done.err.count("its effective length is known to 0.")) == (0, 2)
        assert (lab.the_run() / SAMPLES).read_bytes() == before
        assert (lab.the_run() / TABLE).read_bytes() == table
        assert not any(one.adaptive for one in read_run(lab.the_run()).shown())

    def test_the_rest_of_an_unfinished_full_run_is_not_asked(self, lab: Lab) -> None:
        """What it has is used; what it had planned, or failed, is no part of a wave."""
        asked = iter(range(10**6))

        def stops(request: Request) -> Any:
            return sees(SEES)(request) if next(asked) < 30 else BadRequestError("no")

        bands = (*ONE_CONDITION, "--samples", "300", "--max-connections", "1")
        assert lab.bench_ask("--model", lab.fake(stops), *bands).code == 1
        before = [record["id"] for record in records(lab.the_run()) if "reply" in record]
        done = adaptive(lab, lab.fake(sees(SEES)), *ONE_CONDITION)
        assert done.code == 0
        assert adaptive(lab, lab.fake(sees(SEES)), *ONE_CONDITION).code == 0
        after = [record["id"] for record in records(lab.the_run()) if "reply" in record]
        assert after[: len(before)] == before
        assert len(after) < 120


class TestLimits:
    """What ends a run before its effective lengths are known."""

    def test_max_requests_hold_over_all_runs(self, lab: Lab) -> None:
        """The command ends incomplete, says so, and the same command goes on."""
        provider = ScriptedProvider(sees(SEES))
        model = lab.fake(provider)
        command = (*LENGTHS, "--max-requests", "50")
        task = f"{lab.ones},{lab.plain}"
        counts = []
        for _ in range(20):
            before = len(provider.requests)
            done = adaptive(lab, model, *command, task=task)
            counts.append(len(provider.requests) - before)
            if not done.code:
                break
            assert done.code == 1
            assert done.err.splitlines()[-1].endswith(
                "(--max-requests is reached); the same command goes on"
            )
        assert set(counts[:-1]) == {50}
        assert counts[-1] <= 50
        assert len(counts) > 2
        asked = [request.sample_id for request in provider.requests]
        assert len(asked) == len(set(asked))

    def test_max_requests_cut_a_wave_that_was_begun(self, lab: Lab) -> None:
        """The rest of a wave is asked before anything new, and not more of it than allowed."""
        asked = iter(range(10**6))

        def stops(request: Request) -> Any:
            return sees(SEES)(request) if next(asked) < 2 else BadRequestError("no")

        adaptive(lab, lab.fake(stops), *LENGTHS, "--max-connections", "1")
        provider = ScriptedProvider(sees(SEES))
        done = adaptive(lab, lab.fake(provider), *LENGTHS, "--max-requests", "3")
        assert done.code == 1
        assert "samples have no reply (--max-requests is reached)" in done.err
        assert len(provider.requests) == 3

    def test_answers_that_are_there_do_not_stop_it(self, lab: Lab) -> None:
        """After a full plan of a part of it, one command uses them all and asks on."""
        provider = ScriptedProvider(sees(SEES))
        model = lab.fake(provider)
        assert adaptive(lab, model, *LENGTHS).code == 0
        full = ("--model", model, "--lengths", LENGTHS[1].split(",")[0], "--samples", "4")
        assert lab.bench_ask(*full).code == 0
        assert adaptive(lab, model, *LENGTHS).code == 0

    def test_the_budget_holds(self, lab: Lab) -> None:
        """A request costs ten dollars; the tasks that were not begun are incomplete as well."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        reply = partial(Reply, usage=Usage(1, 10), sure_stop=True)
        provider = ScriptedProvider(lambda request: reply(sees(SEES)(request)))
        command = (*LENGTHS, "--max-tokens", "10", "--max-connections", "1")
        task = f"{lab.ones},{lab.plain}"
        done = adaptive(lab, lab.fake(provider), *command, "--budget", "100", task=task)
        assert done.code == 1
        assert "(the budget of $100 is spent); a new budget goes on" in done.err
        assert len(provider.requests) == 10
        done = adaptive(lab, lab.fake(provider), *command, "--budget", "100000", task=task)
        assert done.code == 0
        asked = [request.sample_id for request in provider.requests]
        assert len(asked) == len(set(asked))

    def test_errors_end_it(self, lab: Lab) -> None:
        """A wave without an answer is the last one; the same command goes on from there."""
        asked = iter(range(10**6))

        def stops(request: Request) -> Any:
            return sees(SEES)(request) if next(asked) < 6 else BadRequestError("no")

        one = (*LENGTHS, "--axis", "separator=none", "--max-connections", "1")
        done = adaptive(lab, lab.fake(stops), *one)
        assert done.code == 1
        assert "samples have no reply (the last: no); the same command asks them again" in done.err
        assert next(asked) == 12
        assert adaptive(lab, lab.fake(sees(SEES)), *one).code == 0

    def test_a_sample_that_always_fails_is_not_the_end(self, lab: Lab) -> None:
        """The effective length is found from the others, and the sample is missing."""

        def stops(request: Request) -> Any:
            bad = request.sample_id.endswith("index=1")
            return BadRequestError("no") if bad else sees(SEES)(request)

        done = adaptive(lab, lab.fake(stops), *LENGTHS)
        assert done.code == 1
        assert done.err.count("its effective length is known to 0.") == 2
        assert "samples have no reply" in done.err


class TestDryRun:
    """The first wave, and what can follow."""

    def test_the_first_wave_is_shown_and_nothing_done(self, lab: Lab) -> None:
        """With the most that can be asked."""
        done = adaptive(lab, lab.fake(sees(SEES)), *LENGTHS, "--dry-run")
        assert done.code == 0
        assert "requests    12 (the first wave)" in done.out
        assert "at most 4,800 samples of this task" in done.out
        assert "0.75 octaves" in done.out
        assert not lab.out.exists()
        done = adaptive(lab, lab.fake(sees(SEES)), *LENGTHS, "--dry-run", "--max-requests", "7")
        assert "requests    7 (the first wave)" in done.out
        assert "at most 7 of the command" in done.out

    def test_what_the_window_may_add_is_said(self, lab: Lab) -> None:
        """Where no length is given, longer lines may follow; of ready items never."""
        done = adaptive(lab, lab.fake(sees(SEES)), "--dry-run")
        assert "and more on longer lines, if the server says that its window has room" in done.out
        assert "without an upper bound, as longer lines may follow; --lengths limits" in done.out
        done = adaptive(lab, lab.fake(sees(SEES)), *LENGTHS, "--dry-run")
        assert "longer lines" not in done.out

    @pytest.mark.parametrize("limit", [(), ("--max-requests", "30")], ids=["all", "some"])
    def test_all_waves_have_a_price(self, lab: Lab, limit: tuple[str, ...]) -> None:
        """An upper bound that holds, although it is above that of the full run: all samples may
        lie on the longest lines; and an expected one, as long as nothing was asked.
        """
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        provider = ScriptedProvider(is_near_the_threshold)
        model = lab.fake(provider)

        def planned(*command: str) -> dict[str, Any]:
            done = lab.bench_run("--model", model, *LENGTHS, *command, "--dry-run", "--json")
            (found,) = orjson.loads(done.out)["runs"]
            return dict(found)

        command = ("--adaptive", *limit)
        waves, full = planned(*command)["adaptive"], planned()
        most, expected = waves["most"], waves["expected"]
        if not limit:
            assert most["requests"] == full["requests"] == 48
            assert most["prompt_tokens"] > 1.5 * full["prompt_tokens"]
            assert most["dollars"] == most["output_tokens"] > full["most_output_tokens"]
        assert 0 < expected["requests"] <= most["requests"]
        assert 0 < expected["dollars"] == expected["output_tokens"] < most["dollars"]
        assert lab.bench_ask("--model", model, *LENGTHS, *command).code == bool(limit)
        assert len(provider.requests) <= most["requests"]
        assert sum(len(one.prompt) for one in provider.requests) <= most["prompt_tokens"]
        if not limit:
            again = planned(*command)["adaptive"]
            assert set(again["most"].values()) == {0} == set(again["expected"].values())

    def test_the_tasks_of_a_model_share_the_limit_of_a_command(self, lab: Lab) -> None:
        """The first task is expected to use it up, so that no other is asked; with more, the second
        one has the rest.
        """
        lab.fake(sees(SEES))
        two = ("--model", "oracle:25,oracle:24", *LENGTHS, "--axis", "separator=none")

        def expected(limit: int) -> list[tuple[int, int]]:
            command = (*two, "--adaptive", "--max-requests", str(limit), "--dry-run", "--json")
            done = lab.bench_run(*command, task=lab.folder / "lab")
            runs = orjson.loads(done.out)["runs"]
            assert all(run["adaptive"]["most"]["requests"] <= limit for run in runs)
            return [(run["requests"], run["adaptive"]["expected"]["requests"]) for run in runs]

        one = expected(10**6)[0][1]
        assert expected(9) == [(6, 9), (3, 0), (0, 0)] * 2
        assert [run[1] for run in expected(one + 5)[:3]] == [one, 5, 0]

    def test_the_table_of_several_runs_has_all_waves(self, lab: Lab) -> None:
        """The first requests, and how many are expected in all, and at most."""
        lab.monkeypatch.setenv("COLUMNS", "200")
        lab.fake(sees(SEES))
        two = ("--model", "oracle:25", *LENGTHS, "--axis", "separator=none", "--adaptive")

        def numbers(*more: str) -> list[str]:
            done = lab.bench_run(*two, "--dry-run", *more, task=lab.folder / "lab")
            (row,) = [line for line in done.out.splitlines() if line.startswith("| oracle/25 ")]
            return re.findall(r"(?<= )[\d,-]+(?= )", row.partition("|")[2].partition("|")[2])

        dry = lab.bench_run(*two, "--dry-run", "--json", task=lab.folder / "lab")
        runs = orjson.loads(dry.out)["runs"]
        expected = [run["adaptive"]["expected"] for run in runs]
        assert numbers()[:6] == [
            f"{sum(run['requests'] for run in runs):,}",
            f"{sum(one['requests'] for one in expected):,}",
            f"{sum(run['adaptive']['most_samples'] for run in runs):,}",
            "0",
            f"{sum(one['prompt_tokens'] for one in expected):,}",
            f"{sum(one['output_tokens'] for one in expected):,}",
        ]
        assert numbers("--max-requests", "20")[:3] == ["18", "20", "20"]

    def test_the_window_of_the_embedded_model_is_known(self, lab: Lab) -> None:
        """So the number of requests has an upper bound."""
        command = ("--model", "tiny", "--adaptive", "--precision", "1", "--dry-run")
        done = lab.bench_run(*command, task=Path("counting/words"))
        assert "samples of this task\n" in done.out

    def test_what_a_run_leaves_is_not_known_once_it_has_begun(self, lab: Lab) -> None:
        """Unless the limit is enough for all; a run that is complete takes nothing."""
        model = lab.fake(is_near_the_threshold)
        command = ("--model", model, *LENGTHS, "--axis", "separator=none", "--adaptive")
        folder = lab.folder / "lab"

        def second(limit: int) -> Any:
            dry = (*command, "--max-requests", str(limit), "--dry-run", "--json")
            return orjson.loads(lab.bench_run(*dry, task=folder).out)["runs"][1]["adaptive"]

        asked = second(10**6)["expected"]
        assert lab.bench_ask(*command, "--max-requests", "6", task=folder).code == 1
        assert second(20)["expected"] is None
        assert second(10**6)["expected"] == asked
        given = [one for one in command if one not in ("--axis", "separator=none")]
        assert lab.bench_ask(*given, task=folder / "echo.yaml").code == 0
        assert second(10**6)["expected"] == asked
        assert second(20)["expected"]["requests"] == 20 < asked["requests"]

    def test_a_known_length_leaves_nothing_to_ask(self, lab: Lab) -> None:
        """Although the run has fewer samples than it may have."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        model = lab.fake(sees(SEES))
        assert adaptive(lab, model, *LENGTHS).code == 0
        done = adaptive(lab, model, *LENGTHS, "--dry-run")
        assert "  still to ask nothing\n" in done.out
        assert "cost of what is still to ask: about $0.00, at most $0.00\n" in done.out
        done = lab.bench_run("--adaptive", "--model", model, *LENGTHS, "--dry-run", "--json")
        (run,) = orjson.loads(done.out)["runs"]
        assert run["adaptive"]["most"] == run["adaptive"]["expected"]
        assert set(run["adaptive"]["most"].values()) == {0}

    def test_the_dearest_condition_is_asked_most(self, lab: Lab) -> None:
        """Whatever its place: with a limit all samples may be those of the model that reasons."""
        model = lab.fake(sees(SEES))
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        found = []
        for price in (True, False):
            if not price:
                lab.monkeypatch.delenv("EYECHART_MODELS")
            for strategies in ("direct,cot_zero_shot", "cot_zero_shot,direct"):
                command = ("--axis", f"strategy={strategies}", "--max-requests", "12")
                done = lab.bench_run(
                    *("--adaptive", "--model", model, *LENGTHS, "--axis", "separator=none"),
                    *(*command, "--dry-run", "--json"),
                    task=Path("counting/ones"),
                )
                (run,) = orjson.loads(done.out)["runs"]
                assert run["most_output_tokens"] < run["adaptive"]["most"]["output_tokens"]
                found.append(run["adaptive"]["most"]["output_tokens"])
        assert len(set(found)) == 1

    def test_answers_on_other_lines_are_no_part_of_what_is_left(self, lab: Lab) -> None:
        """The bound counts only the lines that the command names, and the run stays below it."""
        provider = ScriptedProvider(is_near_the_threshold)
        one = ("--model", lab.fake(provider), "--axis", "separator=none")
        assert lab.bench_ask(*one, "--lengths", "5,7,15,30", "--samples", "9").code == 0
        asked = len(provider.requests)
        command = (*one, "--adaptive", "--lengths", "10,20,40", "--samples", "8")
        done = lab.bench_run(*command, "--dry-run", "--json")
        most = orjson.loads(done.out)["runs"][0]["adaptive"]["most"]
        assert lab.bench_ask(*command).code == 0
        assert 0 < len(provider.requests) - asked <= most["requests"] == 24

    def test_a_line_that_is_not_named_is_in_no_doubt(self, lab: Lab) -> None:
        """Also where its answers are far from the curve."""
        model = ("--model", "oracle:20/0.9")
        words = Path("counting/words")
        assert lab.bench_ask(*model, "--samples", "5", task=words).code == 0
        done = lab.bench_run(*model, "--adaptive", "--lengths", "10,20,40", task=words)
        assert done.code == 0
        assert "its effective length is known to" in done.err

    def test_the_longest_lines_that_fit_cost_most(self, lab: Lab) -> None:
        """Samples without room are not sent, and those that are planned stay."""
        (plan,) = plans(RunSettings.read(task=str(lab.plain), lengths=[5, 10, 20], samples=9))
        (condition,) = plan.conditions
        short, middle, long = ((condition, line) for line in plan.lines)
        waves = AllWaves(plan, [], {short: 2}, [], [condition], 12, may_grow=False)
        cells = waves.cells
        assert cells == [long, middle, short]
        assert waves.dearest(None, {}, cells) == plan.with_counts({short: 2, middle: 1, long: 9})
        assert waves.dearest(4, {}, cells) == plan.with_counts({short: 2, long: 4})
        too_long = ContextFit(9, 1, 5, exact=True)
        fits = {long: CellFit(long[1], too_long, too_long)}
        assert waves.dearest(None, fits, cells) == plan.with_counts({short: 3, middle: 9, long: 9})
        assert replace(waves, longer=[Line.exact(40)]).dearest(None, {}, cells) is None
        assert replace(waves, may_grow=True).dearest(None, {}, cells) is None
        done = replace(waves, unfinished=[], may_grow=True)
        assert done.dearest(None, {}, []) == plan.with_counts({short: 2})
        assert done.expected(None) == plan.with_counts({})

    def test_the_next_wave_of_a_run_is_shown(self, lab: Lab) -> None:
        """Where a finer precision needs more; and that nothing is asked where none does."""
        model = lab.fake(sees(SEES))
        one = (*LENGTHS, "--axis", "separator=none")
        assert adaptive(lab, model, *one, "--precision", "1").code == 0
        asked = len(ids(lab.the_run()))
        done = adaptive(lab, model, *one, "--precision", "1", "--dry-run")
        assert f"{asked} (all waves); {asked} are answered, so 0 will be" in done.out
        done = adaptive(lab, model, *one, "--precision", "0.4", "--dry-run")
        assert f"{asked + 8} (with the next wave); {asked} are answered, so 8 will" in done.out
        assert len(ids(lab.the_run())) == asked

    def test_samples_that_do_not_fit_end_a_wave(self, lab: Lab) -> None:
        """A dry run does not wait for them and shows the next wave."""
        provider = Window(400)
        exact = ("--axis", "separator=none", "--lengths", "50,100,200,300,400,500")
        assert adaptive(lab, lab.fake(provider), *exact, "--precision", "1").code == 0
        finer = (*exact, "--precision", "0.4")
        planned = sum(cell.samples for cell in read_manifest(lab.the_run()).cells)
        done = adaptive(lab, lab.fake(provider), *finer, "--dry-run")
        shown = re.search(r"(\d+) \(with the next wave\); (\d+) are answered", done.out)
        assert shown is not None, done.out
        assert int(shown[1]) > planned
        assert int(shown[2]) == len(provider.requests) < planned

    def test_a_run_that_begins_anew_has_nothing(self, lab: Lab) -> None:
        """With --fresh the old run does not count; nothing is moved."""
        model = lab.fake(sees(SEES))
        before = adaptive(lab, model, *LIMITED, "--dry-run").out
        adaptive(lab, model, *LIMITED)
        assert adaptive(lab, model, *LIMITED, "--dry-run").out != before
        assert adaptive(lab, model, *LIMITED, "--dry-run", "--fresh").out == before
        assert not (lab.out / "replaced").exists()

    def test_the_cost_is_that_of_the_requests(self, lab: Lab) -> None:
        """And says so."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        done = adaptive(lab, lab.fake(sees(SEES)), *LIMITED, "--dry-run")
        assert "cost of the first waves: about $" in done.out
        (line,) = [one for one in done.out.splitlines() if one.startswith("cost of all waves: ")]
        assert re.fullmatch(r"cost of all waves: about \$[\d,]+, at most \$[\d,]+", line)
        budget = (*LIMITED, "--dry-run", "--budget")
        for dollars, words in (("100", "is spent before all"), ("9000000", "pays for all of it")):
            assert words in adaptive(lab, lab.fake(sees(SEES)), *budget, dollars).out
        adaptive(lab, lab.fake(sees(SEES)), *LIMITED, "--max-requests", "9")
        done = adaptive(lab, lab.fake(sees(SEES)), *budget, "100")
        assert "the budget of $100 may be spent before all of it is asked" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--precision", "1"), ("--precision", "--adaptive")),
        (("--max-requests", "5"), ("--max-requests", "--adaptive")),
        (("--adaptive", "--precision", "0.39"), ("from 0.4 to 1 octaves, not 0.39",)),
        (("--adaptive", "--precision", "nan"), ("--precision", "a number")),
        (("--adaptive", "--max-requests", "0"), ("--max-requests",)),
    ],
    ids=str,
)
def test_options_that_make_no_sense(
    lab: Lab, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """One line, and nothing is asked."""
    lab.bench_run(*arguments).one_line(2, *words)
    assert not list(lab.out.rglob(MANIFEST))


def test_the_display_has_what_is_known(lab: Lab) -> None:
    """Before each wave: how many conditions are done, and the widest interval of the others."""
    known: list[str] = []

    class Kept(Progress):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "known" and value:
                known.append(state(self))

    lab.monkeypatch.setattr(task_run, "Progress", Kept)
    done = adaptive(lab, lab.fake(sees(SEES)), *LENGTHS)
    assert done.code == 0
    shown = [re.search(r"(\d) of 2 known(?:, widest (\d+\.\d\d) octaves)?", text) for text in known]
    found = [(int(match[1]), match[2]) for match in shown if match is not None]
    assert found[-1] == (2, None)
    assert [count for count, _ in found] == sorted(count for count, _ in found)
    widths = [float(width) for _, width in found if width]
    assert widths[0] > 1.5 > widths[-1]
