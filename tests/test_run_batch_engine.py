"""`bench run --tier batch` against a stand-in: every state and way to be stopped, no double pay."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import TABLE, write_results
from eyechart.harness.cli import app
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.cost import Budget
from eyechart.harness.run.batch import batch_run, context, engine
from eyechart.harness.run.batch.context import BatchContext, Clocks
from eyechart.harness.run.batch.files import FileLimits, RequestFile
from eyechart.harness.run.batch.pending import PENDING_FILE, PendingBatches
from eyechart.harness.task import functions, generator
from eyechart.providers.base import ModelSettings, OverloadedError, ServerFaultError, StopRunError
from eyechart.providers.openai.batch import OpenAIBatches
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_batch_form, open_batches
from tests import batch_server
from tests.batch_server import BatchServer, Plot
from tests.conftest import asking_of, records, wait_for
from tests.fake_server import Response, fake_server
from tests.faulty_server import serving
from tests.forked import Forked

if TYPE_CHECKING:
    from eyechart.harness.run.run_request import RunRequest
    from tests.conftest import Done, Lab

MODEL = "openai/my-model"
NAME = parse_model(MODEL)
QUICK = ("FIRST_POLL_S", "LONGEST_POLL_S")
TOO_MUCH = {
    "code": "token_limit_exceeded",
    "message": "Enqueued token limit reached for my-model",
    "line": None,
}

MOMENTS: dict[str, tuple[Any, str, int]] = {
    "request file": (RequestFile, "keep", 1),
    "token": (PendingBatches, "add", 1),
    "second token": (PendingBatches, "add", 2),
    "upload": (OpenAIBatches, "upload", 1),
    "create": (OpenAIBatches, "create", 1),
    "look": (OpenAIBatches, "state", 2),
    "download": (OpenAIBatches, "fetch", 1),
    "journal": (Journal, "append", 2),
    "imported": (batch_run, "read_replies", 1),
    "close": (PendingBatches, "close", 1),
}
"""A moment at which a command is killed -> the owner and the name of a function, and after which
of its calls."""


def dies(moment: str) -> None:
    """Kills this process at a moment of its own."""
    owner, name, at = MOMENTS[moment]
    real, calls = getattr(owner, name), count(1)

    def end() -> None:
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    async def wrapped(*arguments: Any, **named: Any) -> Any:
        done = await real(*arguments, **named)
        end()
        return done

    def plain(*arguments: Any, **named: Any) -> Any:
        done = real(*arguments, **named)
        end()
        return done

    setattr(owner, name, wrapped if owner is OpenAIBatches else plain)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, context):
        for name in QUICK:
            monkeypatch.setattr(module, name, 0.001)
    monkeypatch.setattr(batch_run, "SETTLE_S", 0.0)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@contextmanager
def serve(*plots: Plot, **more: Any) -> Iterator[BatchServer]:
    """A stand-in whose batches have these plots."""
    with serving(BatchServer(plots=list(plots) or [Plot()], **more)) as server:
        yield server


def batched(lab: Lab, server: BatchServer, *arguments: str | Path, **more: Any) -> Done:
    """`bench run --tier batch` of the lab's task at the stand-in; it only asks."""
    return lab.bench_ask(*at(server), "--tier", "batch", *arguments, **more)


def direct(lab: Lab, server: BatchServer, *arguments: str | Path, **more: Any) -> Done:
    """The same without a batch."""
    return lab.bench_ask(*at(server), *arguments, **more)


def at(server: BatchServer) -> tuple[str, ...]:
    """Where the model is asked."""
    return ("--model", MODEL, "--base-url", server.base_url)


def tables(out: Path) -> dict[str, bytes]:
    """All that follows from the runs in `out`, file by file, but what they cost and the number of
    lines in their journals.
    """
    names = (TABLE, "effective_length.csv", "diagnosis.csv", "verdicts.json")
    for manifest in (out / "runs").rglob(MANIFEST):
        write_results(read_run(manifest.parent))
    found = [path for name in names for path in (out / "runs").rglob(name)]
    assert found
    left_out = {
        "effective_length.csv": re.compile(rb",[0-9.]*,[0-9-]*$", re.MULTILINE),  # two columns
        "verdicts.json": re.compile(rb'"journal_lines": \d+,'),
    }
    nothing = re.compile(rb"(?!)")
    return {
        str(path.relative_to(out)): left_out.get(path.name, nothing).sub(b"", path.read_bytes())
        for path in found
    }


def assert_as_direct(lab: Lab, server: BatchServer, *arguments: str | Path) -> None:
    """Each sample was paid for once, and the tables are those of a direct run."""
    assert set(server.paid.values()) == {1}
    answered = [
        record
        for path in (lab.out / "runs").rglob(SAMPLES)
        for record in records(path.parent)
        if "failure" not in record
    ]
    assert server.paid.total() + server.single == len(answered)
    assert direct(lab, server, *arguments, "--out", lab.folder / "direct").code == 0
    assert tables(lab.out) == tables(lab.folder / "direct")


SEES = 25
LENGTHS = ("--lengths", "5,10,20,40,80,160")


def sees(body: dict[str, Any]) -> str:
    """A model that miscounts rows of more than `SEES` symbols."""
    row = body["messages"][-1]["content"].splitlines()[-1].replace(",", "")
    return f"Final answer: {row.count('1') + (len(row) > SEES)}"


def leftovers(lab: Lab) -> list[str]:
    """What batches left in the runs' folders."""
    found = [path.name for path in (lab.out / "runs").rglob("*") if path.is_file()]
    return sorted(name for name in found if name.startswith(("batch", "replies")))


STRANGE = '[{"token": "/../../x", "address": "", "requests": 1, "most": 0.0, "since_s": 0.0}]'
"""A batch whose files would lie outside the run's folder."""


class TestWell:
    """Batches that end as they should."""

    def test_a_batch_that_is_new_is_not_looked_for(self, lab: Lab) -> None:
        """The list of an account's batches may be long; it is read only after a fault."""
        with serve() as server:
            assert batched(lab, server).code == 0
            assert server.asked.count("POST /v1/batches") == 1
            assert "GET /v1/batches" not in server.asked

    def test_a_first_batch_decides_about_the_rest(self, lab: Lab) -> None:
        """Of a large run: a small one whose replies cannot be read is the only one."""
        with serve(says=lambda _body: "I like rows.") as server:
            done = batched(lab, server, "--samples", "25")
            assert done.code == 1
            assert "none of the first 6 replies has an answer that can be read" in done.err
            assert server.asked.count("POST /v1/batches") == 1
        with serve() as server:
            assert batched(lab, server, "--samples", "25", "--fresh").code == 0
            assert server.asked.count("POST /v1/batches") == 2
        assert len(records(lab.the_run())) == 100

    def test_a_batch_under_way_is_fetched_whatever_the_first_replies_were(self, lab: Lab) -> None:
        """It is paid for: --keep-going submitted it, and a command without it fetches it."""

        async def stop(_seconds: float) -> None:
            raise KeyboardInterrupt

        with serve(says=lambda _body: "I like rows.") as server:
            assert batched(lab, server, "--samples", "25").code == 1
            wanted = lab.wanted(samples=25, model=NAME.label)
            with pytest.raises(KeyboardInterrupt):
                run_batches(lab, server, wanted, clocks=Clocks(sleep=stop))
            assert PENDING_FILE in leftovers(lab)
            batched(lab, server, "--samples", "25")
            assert len(records(lab.the_run())) == 100
            done = batched(lab, server, "--samples", "26")
            assert "an earlier command stopped the run: none of the first 100" in done.err
            assert set(server.paid.values()) == {1}

    def test_after_a_first_batch_that_failed_nothing_is_submitted(self, lab: Lab) -> None:
        """As after any other; the same command asks again."""
        with serve(Plot(end="failed"), Plot(), Plot()) as server:
            done = batched(lab, server, "--samples", "25")
            assert done.code == 1
            assert server.asked.count("POST /v1/batches") == 1
            assert batched(lab, server, "--samples", "25").code == 0
            assert server.asked.count("POST /v1/batches") == 3

    def test_the_same_as_a_direct_run(self, lab: Lab) -> None:
        """Tables and all; the records say which batch they are from."""
        with serve() as server:
            done = batched(lab, server)
            folder = lab.the_run()
            assert done.code == 0
            assert len(server.paid) == 16
            assert {record["batch"] for record in records(folder)} == {"batch_1"}
            assert leftovers(lab) == []
            assert_as_direct(lab, server)
        ours, theirs = (
            next((out / "runs").rglob(MANIFEST)) for out in (lab.out, lab.folder / "direct")
        )
        kept = ("server", "answered_by", "settings", "cells")
        first, second = (orjson.loads(path.read_bytes()) for path in (ours, theirs))
        assert {name: first[name] for name in kept} == {name: second[name] for name in kept}

    def test_each_draw_is_a_request_of_its_own(self, lab: Lab) -> None:
        """With a seed of its own; the run is the same as a direct one."""
        drawn = ("--draws", "3", "--temperature", "0.5")
        with serve() as server:
            assert batched(lab, server, *drawn).code == 0
            assert_as_direct(lab, server, *drawn)
        found = {
            (one.get("draw", 1), one["seed"])
            for path in (lab.out / "runs").rglob(SAMPLES)
            for one in records(path.parent)
        }
        assert found == {(1, 0), (2, 1), (3, 2)}

    def test_states_are_said_when_they_change(self, lab: Lab) -> None:
        """On stderr, once each, with counts; the tables alone on stdout."""
        with serve(Plot(way=("validating", *["in_progress"] * 4, "finalizing"))) as server:
            done = lab.bench_run(*at(server), "--tier", "batch")
        first, *others = done.err.splitlines()
        assert first == f"openai/my-model is asked at {server.base_url}, without a key"
        states = [line.partition(" is ")[2].partition(",")[0] for line in others]
        assert states == ["validating", "in progress", "finalizing", "completed"]
        assert "16 of 16 answered" in done.err
        assert done.out.startswith("lab/ones  openai/my-model")

    def test_all_are_submitted_before_any_is_waited_for(self, lab: Lab) -> None:
        """A batch a task, all under way at once."""
        with serve() as server:
            assert batched(lab, server, task=lab.folder / "lab").code == 0
        looks = [place for place, one in enumerate(server.asked) if "/batches/" in one]
        creates = [place for place, one in enumerate(server.asked) if one == "POST /v1/batches"]
        assert len(creates) == 3
        assert max(creates) < min(looks)

    def test_the_same_command_again_asks_nobody(self, lab: Lab) -> None:
        """Neither a batch nor a look at one."""
        with serve() as server:
            first = batched(lab, server)
            asked = len(server.asked)
            again = batched(lab, server)
        assert len(server.asked) == asked
        assert (again.code, again.out) == (0, first.out)

    def test_it_goes_on_where_a_direct_run_stopped(self, lab: Lab) -> None:
        """And the other way round."""
        with serve() as server:
            direct(lab, server, "--lengths", "3", "--samples", "2")
            assert batched(lab, server, "--samples", "3").code == 0
            assert direct(lab, server).code == 0
            assert_as_direct(lab, server)

    def test_large_runs_are_several_batches(self, lab: Lab) -> None:
        """None is beyond the limits, of requests or of bytes."""
        for limits, expected in ((FileLimits(requests=6), 3), (FileLimits(size=1), 16)):
            with serve() as server:
                wanted = lab.wanted(model=NAME.label)
                run_batches(lab, server, wanted, limits=limits)
                assert server.created == expected
                assert set(server.paid.values()) == {1}
                assert len(records(wanted.folder)) == 16
            (wanted.folder / SAMPLES).unlink()

    def test_completions_have_their_own_address(self, lab: Lab) -> None:
        """A batch of texts to be continued goes to that endpoint."""
        with serve() as server:
            assert batched(lab, server, "--api", "completions").code == 0
            (batch,) = server.batches.values()
            assert batch.said["endpoint"] == "/v1/completions"

    def test_what_does_not_fit_is_not_submitted(self, lab: Lab, tmp_path: Path) -> None:
        """Cells that no window holds are overflow, as in a direct run."""
        models = tmp_path / "models.yaml"
        models.write_text("openai/my-model: {window: 20}\n")
        lab.monkeypatch.setenv("EYECHART_MODELS", str(models))
        with serve() as server:
            done = batched(lab, server, "--lengths", "3,9999", "--samples", "1")
        assert done.code == 0
        assert "not sent" in done.err
        assert len(server.paid) == 2


def run_batches(
    lab: Lab,
    server: BatchServer,
    *wanted: RunRequest,
    clocks: Clocks | None = None,
    limits: FileLimits | None = None,
) -> None:
    """Runs in this process, without the command."""
    asked = ModelSettings(NAME.model, base_urls=(server.base_url,))

    async def main() -> None:
        asking = asking_of(wanted, said=lab.said.append)
        service, form = open_batches(NAME, asked), open_batch_form(NAME, asked)
        batches = engine.BatchEngine(
            asking, service, form, limits or FileLimits(), clocks or Clocks()
        )
        await batches.run()

    asyncio.run(main())


class TestBadly:
    """Batches that end otherwise."""

    def test_a_failed_batch_says_why_and_the_next_one_is_new(self, lab: Lab) -> None:
        """Nothing was asked, so the same command submits all of it again."""
        line = {"code": "invalid_url", "message": "The URL is wrong", "line": 3}
        failed = Plot(end="failed", problems=[line, line])
        with serve(failed, Plot()) as server:
            done = batched(lab, server)
            assert done.code == 1
            said = "batch_1 failed, and nothing was asked: line 3: The URL is wrong (invalid_url)"
            assert f"{said} and 1 more" in done.err
            assert leftovers(lab) == []
            assert batched(lab, server).code == 0
            assert_as_direct(lab, server)

    def test_after_a_failure_the_others_are_waited_for(self, lab: Lab) -> None:
        """One task's batch fails, the others' answers are kept."""
        with serve(Plot(end="failed"), Plot()) as server:
            done = batched(lab, server, task=lab.folder / "lab")
        assert done.code == 1
        assert "no reason given" in done.err
        assert len(server.paid) == 16 + 3

    def test_too_many_tokens_in_line_has_a_remedy(self, lab: Lab) -> None:
        """What OpenAI's limit on enqueued tokens asks of the user."""
        with serve(Plot(end="failed", problems=[TOO_MUCH])) as server:
            done = batched(lab, server)
        assert "when other batches have ended, or make the batch smaller with --lengths" in done.err

    @pytest.mark.parametrize("end", ["expired", "cancelled"])
    def test_half_a_batch_is_kept_and_the_rest_asked_again(self, lab: Lab, end: str) -> None:
        """What was answered before it expired or was cancelled is paid for."""
        way = ("in_progress", "cancelling") if end == "cancelled" else ("in_progress",)
        with serve(Plot(end=end, way=way, answered=7), Plot()) as server:
            done = batched(lab, server)
            assert done.code == 1
            assert f"batch_1 {end} with 7 of 16 answered" in done.err
            assert f"9 samples have no reply (the last: batch_{end}:" in done.err
            assert batched(lab, server).code == 0
            assert server.created == 2
            assert_as_direct(lab, server)

    def test_rejected_requests_are_errors_and_cost_their_samples(self, lab: Lab) -> None:
        """A batch may be completed and have an error file."""
        with serve(Plot(rejected=(2, 5)), Plot()) as server:
            done = batched(lab, server)
            assert done.code == 1
            assert "2 samples have no reply (the last: 400: no such thing)" in done.err
            failed = [one for one in records(lab.the_run()) if "failure" in one]
            assert [one["failure"]["kind"] for one in failed] == ["error", "error"]
            assert batched(lab, server).code == 0
            assert_as_direct(lab, server)

    def test_nothing_but_errors_has_no_output_file(self, lab: Lab) -> None:
        """The error file alone is read."""
        with serve(Plot(rejected=range(16))) as server:
            done = batched(lab, server)
        assert done.code == 1
        assert len(records(lab.the_run())) == 16
        assert leftovers(lab) == []

    def test_answers_without_a_file_are_not_asked_again(self, lab: Lab) -> None:
        """They are paid for and may turn up: the same command looks again."""
        with serve(Plot(output_named=False)) as server:
            done = batched(lab, server)
            assert done.code == 1
            assert "has 16 answered requests, but names no file of replies" in done.err
            assert PENDING_FILE in leftovers(lab)
            batch = server.batches["batch_1"]
            batch.said["output_file_id"] = "late"
            server.files["late"] = b""
            assert batched(lab, server).code == 1
            assert server.created == 1

    def test_a_deleted_output_file_is_said(self, lab: Lab) -> None:
        """It was paid for, so nothing is asked again until the user gives it up."""
        with serve(Plot(output_kept=False), Plot()) as server:
            for _ in range(2):
                done = batched(lab, server)
                assert done.code == 1
                assert "its output file is gone (no such model or address (404" in done.err
                assert re.search(r"to give them up, delete \S+batches\.json", done.err)
            assert set(server.paid.values()) == {1}
            (lab.the_run() / "batches.json").unlink()
            assert batched(lab, server).code == 0
        assert set(server.paid.values()) == {2}

    @pytest.mark.parametrize(
        "garble",
        [
            lambda lines: lines[:9],
            lambda lines: [lines[0][:50], *lines[1:]],  # in the order of a file the last one
            lambda lines: [*lines[:9], b"[]\n", b"\xff\xfe{\n", b"\n"],
        ],
        ids=["missing", "torn", "no JSON"],
    )
    def test_half_a_file_is_fetched_again(self, lab: Lab, garble: Any) -> None:
        """What the vendor counts as answered is paid for, so it is not asked again."""
        with serve(Plot(garble=garble)) as server:
            done = batched(lab, server)
            assert done.code == 1
            assert "batch_1 has 16 answered requests, and its files have" in done.err
            assert 9 <= len(records(lab.the_run())) < 16
            assert "--tier batch' waits for it" in direct(lab, server).err
            batch = server.batches["batch_1"]
            server.batches["batch_1"] = replace(batch, plot=Plot())
            server.batches["batch_1"].said["status"] = "finalizing"
            server.paid.clear()
            assert batched(lab, server).code == 0
            assert server.created == 1
            assert_as_direct(lab, server)

    def test_a_file_with_more_than_the_answers(self, lab: Lab) -> None:
        """Lines that come twice or that nobody asked for, of whatever type, cost nothing."""
        more = [
            *(b"3\n", b"[[]]\n", b'{"custom_id": 3}\n', b'{"custom_id": "x", "response": []}\n'),
            b'{"custom_id": "' + b"x" * 2**20 + b'"}\n',
            b'{"response": {"status_code": "200", "body": 5}, "error": 7}\n',
        ]
        with serve(Plot(garble=lambda lines: [*more, *lines, *lines])) as server:
            done = batched(lab, server)
            assert done.code == 0
            assert "the line has no custom_id of Eyechart (4 such)" in done.err
            assert server.created == 1
            assert len(records(lab.the_run())) == 16
            assert_as_direct(lab, server)

    def test_long_replies_are_kept(self, lab: Lab) -> None:
        """A line of a megabyte is a reply like any other."""
        with serve(says=lambda body: "x" * 2**20 + batch_server.right(body)) as server:
            assert batched(lab, server, task=lab.plain).code == 0
        assert all(len(record["reply"]) > 2**20 for record in records(lab.the_run()))

    def test_answers_of_a_batch_that_failed_are_kept(self, lab: Lab) -> None:
        """Where a vendor calls a batch failed that it began."""
        with serve(Plot(end="failed", answered=7), Plot()) as server:
            done = batched(lab, server)
            assert done.code == 1
            assert "batch_1 failed with 7 of 16 answered" in done.err
            assert batched(lab, server).code == 0
            assert server.created == 2
            assert_as_direct(lab, server)

    def test_another_model_is_not_mixed_in(self, lab: Lab) -> None:
        """As for direct runs: what made the first answers makes all of them."""
        with serve(Plot(), Plot(model="stand-in-2")) as server:
            assert batched(lab, server, "--samples", "2").code == 0
            done = batched(lab, server)
        assert done.code == 1
        assert "is now answered by 'stand-in-2', and was by 'stand-in-1'" in done.err
        (replies,) = lab.the_run().glob("replies-*")
        assert str(replies) in done.err
        other = ("--out", lab.folder / "other")
        asked = ("--task", lab.ones, "--model", MODEL, "-o", lab.folder / "requests.jsonl")
        assert lab.bench("export", "batch", *asked, *other).code == 0
        said = lab.bench("import", replies, *other, "--task", lab.ones).err
        assert "8 new answers, 0 without a reply" in said

    def test_replies_to_another_prompt_are_kept_apart(self, lab: Lab) -> None:
        """A generator that changed while the batch was under way makes other prompts."""
        with serve(Plot(way=["in_progress"] * 10**6)) as server:
            stopped_at_once(lab, server)
            rows = lab.folder / "lab" / "rows.py"
            rows.write_text(rows.read_text().replace('choice("01")', 'choice("10")'))
            generator.load_generator.cache_clear()
            functions.load_module.cache_clear()
            server.batches["batch_1"].looks = 10**6
            done = batched(lab, server)
        assert done.code == 1
        assert (
            "the reply is to another prompt: the task changed after the request (16 such)"
            in done.err
        )
        assert [name.partition("-")[0] for name in leftovers(lab)] == ["replies"]


def stopped_at_once(lab: Lab, server: BatchServer) -> None:
    """Submits a batch and stops at the first look at it."""

    async def stop(_seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_batches(lab, server, lab.wanted(model=NAME.label), clocks=Clocks(sleep=stop))
    assert PENDING_FILE in leftovers(lab)


class TestFaults:
    """Servers that do not answer, or not well."""

    def test_faults_that_pass_are_waited_out(self, lab: Lab) -> None:
        """5xx, 429 and broken connections, at every step."""
        faults = {
            "POST /v1/files": [500, 0],
            "POST /v1/batches": [503],
            "GET /v1/batches": [429, 500, 0, 502],
            "GET /v1/files": [500, 0],
        }
        with serve(faults=faults) as server:
            done = batched(lab, server)
            assert done.code == 0
            assert not any(server.faults.values())
            assert server.created == 1
            assert "is asked again in 0 s: 429: fault 429" in done.err
            assert_as_direct(lab, server)

    def test_waits_double_until_the_longest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where a service fails again and again; a longer pause that it asks for is kept."""
        monkeypatch.setattr(context, "FIRST_POLL_S", 1.0)
        monkeypatch.setattr(context, "LONGEST_POLL_S", 10.0)
        waits: list[float] = []
        said: list[str] = []
        answers: Iterator[ServerFaultError | OverloadedError | int] = iter(
            [
                *(ServerFaultError("500") for _ in range(6)),
                OverloadedError("503", retry_after_s=77.0),
                42,
            ]
        )

        async def sleep(pause_s: float) -> None:
            waits.append(pause_s)

        async def call() -> int:
            answer = next(answers)
            if isinstance(answer, int):
                return answer
            raise answer

        async def main() -> int:
            settings = ModelSettings(MODEL, base_urls=("http://127.0.0.1:9/v1",))
            service = open_batches(NAME, settings)
            shared = BatchContext(
                service=service,
                form=open_batch_form(NAME, settings),
                budget=Budget(),
                say=print,
                warn=said.append,
                clocks=Clocks(sleep=sleep),
            )
            try:
                return await shared.ask(call)
            finally:
                await service.aclose()

        assert asyncio.run(main()) == 42
        assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 77.0]
        assert said == ["http://127.0.0.1:9/v1 is asked again in 1 s: 500"]

    @pytest.mark.parametrize("page", [1, 100])
    def test_a_batch_whose_creation_was_not_heard_of_is_found(self, lab: Lab, page: int) -> None:
        """By its token, on whatever page of the list; none is created a second time."""
        with serve(page=page) as server:
            assert batched(lab, server, task=lab.plain).code == 0
            server.lost["POST /v1/batches"] = 1
            done = batched(lab, server, task=lab.folder / "lab")
            assert done.code == 0
            assert server.created == 3
            assert set(server.paid.values()) == {1}

    def test_a_list_that_lags_makes_no_second_batch(self, lab: Lab) -> None:
        """The service has time to list a batch of which it has not told us."""
        waits: list[float] = []
        lab.monkeypatch.setattr(batch_run, "SETTLE_S", 10.0)
        with serve(lists_late=10**6) as server:

            async def sleep(seconds: float) -> None:
                waits.append(seconds)
                if seconds == batch_run.SETTLE_S:
                    server.lists_late = 0

            server.lost["POST /v1/batches"] = 1
            run_batches(lab, server, lab.wanted(model=NAME.label), clocks=Clocks(sleep=sleep))
            assert waits[:2] == [context.FIRST_POLL_S, 10.0]
            assert server.created == 1
            assert set(server.paid.values()) == {1}

    @pytest.mark.parametrize("status", [400, 401])
    def test_a_refusal_after_a_lost_reply_forgets_nothing(self, lab: Lab, status: int) -> None:
        """The batch may be there: the same command finds it."""
        with serve(faults={"GET /v1/batches": [status]}) as server:
            server.lost["POST /v1/batches"] = 1
            assert batched(lab, server).code == 1
            assert PENDING_FILE in leftovers(lab)
            assert batched(lab, server).code == 0
            assert server.created == 1
            assert_as_direct(lab, server)

    def test_a_wrong_key_stops_at_once_and_loses_nothing(self, lab: Lab) -> None:
        """While it is waited for: with the right one the same command continues."""
        with serve(faults={"GET /v1/batches": [401]}) as server:
            done = batched(lab, server)
            assert done.code == 1
            assert "no access (401" in done.err
            assert batched(lab, server).code == 0
            assert server.created == 1
            assert_as_direct(lab, server)

    def test_a_batch_that_is_not_there(self, lab: Lab) -> None:
        """Another account's key for one: the line says how to give it up."""
        with serve(Plot(way=["in_progress"] * 10**6)) as server:
            stopped_at_once(lab, server)
            batch = server.batches.pop("batch_1")
            done = batched(lab, server)
            assert done.code == 1
            assert "is the key that of another account? to give the batch up, delete" in done.err
            server.batches["batch_1"] = batch
            batch.looks = 10**6
            assert batched(lab, server).code == 0
            assert_as_direct(lab, server)

    @pytest.mark.parametrize("kind", ["POST /v1/files", "POST /v1/batches"])
    def test_a_refused_batch_is_forgotten(self, lab: Lab, kind: str) -> None:
        """Nothing of it stays, and the same command submits it anew."""
        with serve(faults={kind: [400]}) as server:
            done = batched(lab, server)
            assert done.code == 1
            assert "400: fault 400" in done.err
            assert leftovers(lab) == []
            assert batched(lab, server).code == 0

    def test_a_service_that_wants_to_be_left_alone_is(self, lab: Lab) -> None:
        """For a year, for one: the command ends, and the batches go on."""
        slept: list[float] = []

        async def sleep(wait_s: float) -> None:
            slept.append(wait_s)

        told = Response(429, {}, {"Retry-After": "9" * 30})
        with fake_server(lambda *_: told, reads_json=False) as server:
            stand_in = BatchServer(base_url=server.base_url)
            clocks = Clocks(sleep=sleep)
            with pytest.raises(StopRunError, match="asks for a pause of 317 years; the same"):
                run_batches(lab, stand_in, lab.wanted(model=NAME.label), clocks=clocks)
        assert slept == []

    def test_a_pause_of_an_hour_is_waited_out(self, lab: Lab) -> None:
        """Only longer ones end the command."""
        slept: list[float] = []

        async def sleep(wait_s: float) -> None:
            slept.append(wait_s)
            raise StopRunError("waited")

        told = Response(429, {}, {"Retry-After": "3600"})
        with fake_server(lambda *_: told, reads_json=False) as server:
            stand_in = BatchServer(base_url=server.base_url)
            with pytest.raises(StopRunError, match="waited"):
                run_batches(lab, stand_in, lab.wanted(model=NAME.label), clocks=Clocks(sleep=sleep))
        assert slept == [3600.0]

    def test_an_hour_of_silence_ends_the_command(self, lab: Lab) -> None:
        """The batch goes on, and so does the same command."""
        at_s = [0.0]

        async def sleep(seconds: float) -> None:
            at_s[0] += 60 * 1000 * max(seconds, 0.001)

        with serve(faults={"GET /v1/batches": [500] * 10**4}) as server:
            clocks = Clocks(sleep=sleep, clock=lambda: at_s[0])
            with pytest.raises(Exception, match="500: fault 500"):
                run_batches(lab, server, lab.wanted(model=NAME.label), clocks=clocks)
            assert 60 < len(server.asked) < 100
            server.faults.clear()
            assert batched(lab, server).code == 0
            assert_as_direct(lab, server)

    def test_looks_become_rarer(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        """From a second up to a minute; a day is not spent asking."""
        monkeypatch.undo()
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        with serve(Plot(way=["in_progress"] * 40)) as server:
            run_batches(lab, server, lab.wanted(model=NAME.label), clocks=Clocks(sleep=sleep))
        assert waits == sorted(waits)
        assert (waits[0], waits[-1]) == (1.0, 60.0)
        assert sum(waits) > 1500


class TestStopping:
    """Commands that end before their batches."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_stops_waiting_and_the_same_command_continues(
        self, lab: Lab, number: signal.Signals
    ) -> None:
        """With exit code 130 and one line."""
        with serve(Plot(way=["in_progress"] * 10**6)) as server:
            stopped_by_signal(lab, server, number)
            server.batches["batch_1"].looks = 10**6
            assert batched(lab, server).code == 0
            assert server.created == 1
            assert_as_direct(lab, server)

    @pytest.mark.parametrize("moment", MOMENTS)
    def test_killed_at_any_moment_nothing_is_paid_twice(self, lab: Lab, moment: str) -> None:
        """`kill -9`, then the same command: one batch a task, each prompt paid for once."""
        with serve() as server:
            both = f"{lab.plain},{lab.echo}"
            process = start(lab, server, moment, "--task", both)
            _, err = process.communicate(timeout=60)
            assert process.returncode == -signal.SIGKILL, err
            arguments = ("--task", both, "--model", MODEL, "--base-url", server.base_url)
            done = lab.bench("run", "--tier", "batch", *arguments, "--out", lab.out)
            assert done.code == 0, done
            assert server.created == 2
            assert leftovers(lab) == []
            assert_as_direct(lab, server, "--task", both)

    def test_a_request_on_its_way_has_time_to_arrive(self, lab: Lab) -> None:
        """A batch whose id was not written down is looked for once it must be in the list."""
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        lab.monkeypatch.setattr(batch_run, "SETTLE_S", 10.0)
        with serve() as server:
            process = start(lab, server, "create", "--task", str(lab.plain))
            process.communicate(timeout=60)
            (state,) = (lab.out / "runs").rglob(PENDING_FILE)
            since_s = orjson.loads(state.read_bytes())[0]["since_s"]
            clocks = Clocks(sleep=sleep, now=lambda: since_s + 4.0)
            run_batches(lab, server, lab.wanted(lab.plain, model=NAME.label), clocks=clocks)
            assert waits[0] == pytest.approx(6.0)
            assert server.created == 1

    def test_days_later_it_is_imported_and_more_is_submitted(self, lab: Lab) -> None:
        """What a batch under way holds is not submitted again; what it lacks is."""
        with serve(Plot(way=["in_progress"] * 10**6), Plot()) as server:
            stopped_at_once(lab, server)
            server.batches["batch_1"].looks = 10**6
            assert batched(lab, server, "--samples", "6").code == 0
            assert server.created == 2
            assert_as_direct(lab, server, "--samples", "6")

    def test_single_requests_and_exports_keep_out_of_its_way(self, lab: Lab) -> None:
        """Their answers would be paid for twice; a run that has all its answers needs none."""
        with serve(Plot(way=["in_progress"] * 10**6)) as server:
            stopped_at_once(lab, server)
            said = "16 samples of", "are being asked in a batch (batch_1); 'bench run --tier batch'"
            done = direct(lab, server)
            assert done.code == 1
            assert all(word in done.err for word in said)
            output = lab.folder / "more.jsonl"
            place = ("--task", lab.ones, "--model", MODEL, "--out", lab.out)
            lab.bench("export", "batch", *place, "-o", output).one_line(1, *said)
            assert not output.exists()
            assert len(server.paid) == 0

    def test_starting_over_leaves_a_batch_behind(self, lab: Lab) -> None:
        """It is paid for; the command says so and goes on."""
        with serve(Plot(way=["in_progress"] * 10**6), Plot()) as server:
            stopped_at_once(lab, server)
            done = batched(lab, server, "--fresh")
        assert done.code == 0
        assert "is still under way, and its answers are paid for" in done.err
        assert server.created == 2

    @pytest.mark.parametrize("refused", ["GET /v1/batches", "POST /v1/files"])
    def test_starting_over_where_nobody_lets_us_in_leaves_the_old_run(
        self, lab: Lab, refused: str
    ) -> None:
        """It makes way once the service has answered, and comes back where nothing is submitted."""
        with serve(Plot()) as server:
            assert batched(lab, server).code == 0
            folder = lab.the_run()
            server.faults[refused] = [401]
            done = batched(lab, server, "--fresh")
            assert done.code == 1
            assert "401" in done.err
            assert len(records(folder)) == 16
            moved = "the old run is now" in done.err
            assert moved == ("the old run is back" in done.err) == (refused == "POST /v1/files")
            assert server.created == 1

    def test_starting_over_needs_no_list_of_batches(self, lab: Lab) -> None:
        """A service that has none is there all the same."""
        with serve(Plot()) as server:
            assert batched(lab, server).code == 0
            server.faults["GET /v1/batches"] = [404]
            assert batched(lab, server, "--fresh").code == 0
            assert server.created == 2

    def test_requests_that_are_gone_hold_new_ones_back(self, lab: Lab) -> None:
        """Nobody knows what the batch holds until it is imported."""
        with serve(Plot(way=["in_progress"] * 10**6)) as server:
            stopped_at_once(lab, server)
            (requests,) = lab.the_run().glob("batch-*.jsonl")
            requests.unlink()
            server.batches["batch_1"].looks = 10**6
            done = batched(lab, server, "--samples", "6")
            assert done.code == 1
            assert "the requests of a batch are gone" in done.err
            assert server.created == 1
            server.plots = [Plot()]
            assert batched(lab, server, "--samples", "6").code == 0
            assert_as_direct(lab, server, "--samples", "6")

    @pytest.mark.parametrize("content", ["[", "{}", '[{"token": 3}]', STRANGE])
    def test_a_broken_state_is_not_passed_over(self, lab: Lab, content: str) -> None:
        """It may name what is paid for."""
        with serve(Plot(way=["in_progress"] * 10**6)) as server:
            stopped_at_once(lab, server)
            (lab.the_run() / PENDING_FILE).write_text(content)
            done = batched(lab, server)
        assert done.code == 1
        assert "repair it, or delete it to submit their requests again" in done.one_line(1)
        assert "pydantic" not in done.err

    def test_a_batch_is_where_it_was_submitted(self, lab: Lab) -> None:
        """Another address does not have it."""
        with serve(Plot(way=["in_progress"] * 10**6)) as server, serve() as other:
            stopped_at_once(lab, server)
            done = batched(lab, other)
        assert done.code == 1
        assert "has a batch at" in done.err
        assert other.asked == []


def start(lab: Lab, server: BatchServer, moment: str, *arguments: str) -> Forked:
    """Starts the command in a process of its own that dies at `moment`; "" for none."""
    place = ("--model", MODEL, "--base-url", server.base_url, "--out", str(lab.out))

    def command() -> None:
        if moment:
            dies(moment)
        sys.argv = ["bench", "run", "--tier", "batch", *place, *arguments]
        app.main()

    return Forked(command, lab.folder)


def stopped_by_signal(
    lab: Lab, server: BatchServer, number: signal.Signals, *arguments: str
) -> None:
    """Submits a batch in a process of its own and stops it while it waits."""
    process = start(lab, server, "", "--task", str(lab.ones), *arguments)
    wait_for(lambda: any("/batches/" in one for one in server.asked), process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted; batches go on, and the same command continues" in err
    assert b"Traceback" not in err


def priced(folder: Path, batch: str = ", batch: 0.5") -> str:
    """A file with a model whose every output token costs a dollar, or half of one in a batch."""
    path = folder / "models.yaml"
    prices = f"{{input: 0, output: 1000000, as_of: 2025-10-01{batch}}}"
    path.write_text(f"openai/my-model: {{prices: {prices}}}\n")
    return str(path)


class TestMoney:
    """Batch prices, and budgets that hold."""

    def test_a_budget_goes_in_waves(self, lab: Lab) -> None:
        """The budget pays for all that is under way at its highest cost; usage frees the rest.

        A request costs 5 dollars at most and 2.50 in truth: 4, 2 and 1 of them fit into 20.
        """
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        with serve() as server:
            done = batched(lab, server, "--max-tokens", "10", "--budget", "20")
            assert done.code == 1
            assert (server.created, len(server.paid)) == (3, 7)
            assert "cost about $17.50 at the batch prices of 2025-10-01" in done.err
            assert "9 samples have no reply (the budget of $20 may not pay for more)" in done.err
            assert batched(lab, server, "--max-tokens", "10", "--budget", "1000").code == 0
            assert_as_direct(lab, server, "--max-tokens", "10")

    def test_the_last_wave_is_no_drop(self, lab: Lab) -> None:
        """52 dollars pay for 10, 5 and 2 requests at their highest cost; one alone is not sent."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        many = ("--max-tokens", "10", "--samples", "8")
        with serve() as server:
            done = batched(lab, server, *many, "--budget", "52")
            assert done.code == 1
            assert (server.created, len(server.paid)) == (3, 17)
            assert "15 samples have no reply (the budget of $52 may not pay for more)" in done.err
            assert batched(lab, server, *many, "--budget", "1000").code == 0
            assert set(server.paid.values()) == {1}

    def test_replies_without_usage_are_charged_by_estimate(self, lab: Lab) -> None:
        """As in a direct run: a reply of 5 dollars at most is 2.50 by the rule (three words, a
        number and a colon), so as much is submitted as where usage says so.
        """
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        many = ("--max-tokens", "10", "--samples", "8")
        for usage in (None, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}):
            with serve(usage=usage) as server:
                done = batched(lab, server, *many, "--budget", "52", "--fresh")
            assert done.code == 1
            assert (server.created, len(server.paid)) == (3, 17)
            assert "cost about $42.50" in done.err
            assert "(the budget of $52 may not pay for more)" in done.err
            assert done.err.count("counts of tokens are ignored") == (usage is not None)

    def test_the_estimate_of_a_batch_is_that_of_a_direct_run(self, lab: Lab) -> None:
        """System prompt, prompt and reply."""
        prices = "{input: 1000000, output: 1000000, as_of: 2025-10-01, batch: 1}"
        (lab.folder / "models.yaml").write_text(f"openai/my-model: {{prices: {prices}}}\n")
        lab.monkeypatch.setenv("EYECHART_MODELS", str(lab.folder / "models.yaml"))
        spent: list[str] = []
        with serve(usage=None) as server:
            for ask, more in ((direct, ()), (batched, ("--fresh",))):
                err = ask(lab, server, "--system", "Be brief.", *more).err
                spent.append(err.partition("cost about ")[2].partition(" at ")[0])
        assert spent[0] == spent[1] != ""

    @pytest.mark.parametrize("figure", [10**400, 2**64 - 1, 2**70, -1], ids=int.bit_length)
    def test_a_figure_that_cannot_be_true_is_unknown(self, lab: Lab, figure: int) -> None:
        """It is said once, the whole batch is imported, and a budget goes by the estimate."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        usage = {"prompt_tokens": 20, "completion_tokens": figure, "total_tokens": 25}
        with serve(usage=usage) as server:
            done = batched(lab, server, "--max-tokens", "10", "--budget", "1000")
        assert done.code == 0
        assert done.err.count("counts of tokens are ignored") == (figure > 0)
        assert "cost about $40" in done.err
        for one in records(lab.the_run()):
            assert (one["prompt_tokens"], one["output_tokens"]) == (None, None)

    def test_a_budget_too_small_for_anything_submits_nothing(self, lab: Lab) -> None:
        """And says so."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        with serve() as server:
            done = batched(lab, server, "--max-tokens", "10", "--budget", "4.99")
        assert done.code == 1
        assert "the budget of $4.99 may not pay for more" in done.err
        assert server.created == 0

    def test_batches_under_way_count_against_a_budget(self, lab: Lab) -> None:
        """They were submitted by another command, and are paid for by this one."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        few = ("--max-tokens", "10", "--lengths", "3", "--samples", "2")
        with serve(Plot(way=["in_progress"] * 10**6), Plot()) as server:
            stopped_by_signal(lab, server, signal.SIGTERM, *few)
            server.batches["batch_1"].looks = 10**6
            done = batched(lab, server, "--max-tokens", "10", "--budget", "30")
            sizes = [one.said["request_counts"]["total"] for one in server.batches.values()]
            assert sizes[:2] == [4, 2]
            assert server.paid.total() == sum(sizes) < 16
        assert done.code == 1
        assert "the budget of $30 may not pay for more" in done.err

    @pytest.mark.parametrize(
        ("batch", "cost", "said"),
        [
            (", batch: 0.5", "at most $80", "at the batch prices of 2025-10-01"),
            ("", "at most $160", "at the prices of 2025-10-01; no batch price is known"),
        ],
    )
    def test_a_dry_run_says_what_a_batch_costs(
        self, lab: Lab, batch: str, cost: str, said: str
    ) -> None:
        """At the batch price, or at the list price where none is known."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder, batch))
        arguments = ("--model", MODEL, "--tier", "batch", "--dry-run", "--max-tokens", "10")
        done = lab.bench_run(*arguments)
        assert done.code == 0
        assert cost in done.out
        assert said in done.out
        assert not lab.out.exists()

    def test_an_assumed_price_is_said(self, lab: Lab) -> None:
        """Before anything is submitted."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder, ""))
        with serve() as server:
            done = batched(lab, server, "--max-tokens", "10")
        assert "no batch price of openai/my-model is known; its list price is assumed" in done.err
        assert "cost about $80" in done.err


class TestRefused:
    """What cannot be asked in batches is said in one line."""

    @pytest.mark.parametrize(
        ("model", "word"),
        [
            ("tiny", "not for tiny"),
            ("anthropic/claude", "not for anthropic/claude"),
            ("vllm/x", "'vllm run-batch'"),
            ("azure/x", "not for azure/x"),
        ],
    )
    def test_providers_without_batches(self, lab: Lab, model: str, word: str) -> None:
        """Also in a dry run."""
        for more in ((), ("--dry-run",)):
            done = lab.bench_run("--model", model, "--tier", "batch", *more)
            done.one_line(2, "--tier batch is for openai/…", word)

    def test_a_server_without_a_batch_api(self, lab: Lab) -> None:
        """Nothing stays behind."""
        with serve(api=False) as server:
            done = batched(lab, server)
        done.one_line(2, "has no Batch API (no such model or address (404")
        assert leftovers(lab) == []

    def test_a_missing_key(self, lab: Lab) -> None:
        """As for direct runs."""
        lab.bench_run("--model", "gpt-4o", "--tier", "batch").one_line(2, "set OPENAI_API_KEY")

    @pytest.mark.parametrize("pace", ["--rpm", "--tpm"])
    def test_pace_is_for_single_requests(self, lab: Lab, pace: str) -> None:
        """A batch has none."""
        done = lab.bench_run("--model", "gpt-4o", "--tier", "batch", pace, "5")
        done.one_line(2, f"{pace} does not go together with --tier batch")

    def test_replicas(self, lab: Lab) -> None:
        """A batch is in one place."""
        urls = ("--base-url", "http://127.0.0.1:1/v1", "--base-url", "http://127.0.0.1:2/v1")
        lab.bench_run("--model", MODEL, "--tier", "batch", *urls).one_line(2, "give one --base-url")


class TestAdaptive:
    """Adaptive runs go through a few batches, each with what the answers before it leave open."""

    def test_three_batches_find_the_breaking_point(self, lab: Lab) -> None:
        """Two batches open the lines, and the third one is large."""
        lab.with_bands()
        precise = (*LENGTHS, "--precision", "0.75")
        with serve(says=sees) as server:
            done = batched(lab, server, "--adaptive", *precise)
            assert done.code == 0
            assert server.created <= engine.STAGES
            assert set(server.paid.values()) == {1}
            assert done.err.count("its effective length is known to 0.") == 2
            paid = server.paid.total()
            assert batched(lab, server, "--adaptive", *precise).code == 0
            assert server.paid.total() == paid
        assert read_manifest(lab.the_run()).adaptive
        assert leftovers(lab) == []

    def test_after_replies_that_nobody_can_read_it_ends(self, lab: Lab) -> None:
        """The run that its first batch stopped has no second one."""
        with serve(says=lambda _body: "I like rows.") as server:
            done = batched(lab, server, "--adaptive", *LENGTHS)
            assert (done.code, server.created) == (1, 1)
        assert done.err.count("has an answer that can be read") == 1

    def test_what_three_batches_leave_open_is_incomplete(self, lab: Lab) -> None:
        """The same command goes on with three more."""
        lengths = ("--lengths", ",".join(str(5 * 2**power) for power in range(12)))
        with serve(says=lambda body: sees({"messages": body["messages"]})) as server:
            lab.monkeypatch.setattr(engine, "STAGES", 1)
            done = batched(lab, server, "--adaptive", *lengths)
            assert (done.code, server.created) == (1, 1)
            assert (
                "2 conditions are not known to the precision of a full run; the same command "
                "goes on"
            ) in done.err
            lab.monkeypatch.setattr(engine, "STAGES", 3)
            assert batched(lab, server, "--adaptive", *lengths).code == 0
            assert set(server.paid.values()) == {1}

    @pytest.mark.parametrize("moment", ["token", "second token", "create", "journal", "close"])
    def test_killed_at_any_moment_it_asks_the_same_samples(self, lab: Lab, moment: str) -> None:
        """`kill -9`, then the same command: each sample of an undisturbed run, paid for once."""
        task = ("--task", str(lab.ones), "--adaptive", *LENGTHS)
        with serve(says=sees) as server:
            process = start(lab, server, moment, *task)
            _, err = process.communicate(timeout=60)
            assert process.returncode == -signal.SIGKILL, err
            assert batched(lab, server, "--adaptive", *LENGTHS).code == 0
            assert set(server.paid.values()) == {1}
            assert leftovers(lab) == []
            elsewhere = lab.folder / "undisturbed"
            assert batched(lab, server, "--adaptive", *LENGTHS, "--out", elsewhere).code == 0
        assert tables(lab.out) == tables(elsewhere)
        killed, whole = (next(out.rglob(SAMPLES)).parent for out in (lab.out, elsewhere))
        assert {record["id"] for record in records(killed)} == {
            record["id"] for record in records(whole)
        }

    def test_a_batch_that_failed_comes_before_anything_is_chosen(self, lab: Lab) -> None:
        """A wave whose batch failed is submitted again."""
        arguments = ("--adaptive", *LENGTHS, "--max-requests", "40")
        with serve(Plot(end="failed", problems=[TOO_MUCH]), Plot(), says=sees) as server:
            done = batched(lab, server, "--adaptive", *LENGTHS)
            assert (done.code, server.created) == (1, 1)
            assert "12 samples have no reply" in done.err
            done = batched(lab, server, *arguments)
            assert done.code == 1
            assert "--max-requests is reached" in done.err
            assert server.paid.total() == 40
            assert batched(lab, server, "--adaptive", *LENGTHS).code == 0
            assert set(server.paid.values()) == {1}
