"""`bench run --engine ray` with a stand-in for the cluster; `test_real_ray.py` has a real one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import pickle
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.journal.record import record_of
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.records import failed
from eyechart.harness.run.room import Room
from eyechart.harness.satellites.ray import fleet, rows
from eyechart.harness.satellites.ray.cluster import Cluster, JobError, connect
from eyechart.harness.satellites.ray.rows import ResultRow, SampleRow
from eyechart.harness.satellites.ray.worker import Worker, WorkerSetup
from eyechart.harness.settings.ray_options import RayOptions
from eyechart.harness.spec import Condition, Line, Sample
from eyechart.providers.base import (
    AuthError,
    BadRequestError,
    FinishReason,
    ModelSettings,
    PromptOverflowError,
    Reply,
    Request,
    SetupError,
    StopRunError,
    Usage,
)
from eyechart.providers.catalog.endpoints import VLLM_NEUTRAL
from eyechart.providers.openai.form import template_fields
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.scripted import ScriptedProvider
from eyechart.providers.vllm import offline
from tests.conftest import records, right
from tests.test_plan_cost import priced

if TYPE_CHECKING:
    from tests.conftest import Lab

BLOCK = 3
RAY = ("--engine", "ray")


@dataclass
class StandIn:
    """Answers blocks of three in this process; `ends_after` blocks its first jobs end early."""

    ends_after: list[int] = field(default_factory=list)
    twice: bool = False
    """Whether each block comes back twice."""
    forge: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """What another machine makes of the rows of the second block."""
    says: bytes | None = None
    """What it says in place of facts and counts."""
    resources: dict[str, float] = field(default_factory=dict)
    nodes: int = 2
    address: str = "local"
    logs: Path = Path("/logs")
    jobs: list[list[str]] = field(default_factory=list)
    """The ids that each job was given."""
    closed: int = 0

    async def call(
        self, actor: type, order: WorkerSetup, method: str, *arguments: Any, **_: Any
    ) -> Any:
        said = await asyncio.to_thread(getattr(actor(order), method), *arguments)
        return said if self.says is None else self.says

    async def answers(
        self, asked: Iterable[SampleRow], pipeline: Callable[[Any], Any]
    ) -> AsyncIterator[list[ResultRow]]:
        given = list(asked)
        if not given:
            return
        self.jobs.append([one.sample.id for one in given])
        most = self.ends_after.pop(0) if self.ends_after else None
        order = getattr(pipeline, "__self__").order  # noqa: B009  a bound method
        for number, block in enumerate(batched_lists(given, BLOCK)):
            if number == most:
                raise JobError("an engine died")
            arrived = [rows.read_asked(rows.row_of_asked(one)) for one in block]
            back = await asyncio.to_thread(Worker(order).answers, arrived)
            sent = [rows.row_of(one) for one in back]
            again = [rows.read_back(self.forge(row) if number == 1 else row) for row in sent]
            yield again
            if self.twice:
                yield again

    def close(self) -> None:
        self.closed += 1


def batched_lists(given: list[SampleRow], size: int) -> Iterator[list[SampleRow]]:
    """Blocks of the samples."""
    samples = iter(given)
    while block := list(islice(samples, size)):
        yield block


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The stand-in, in place of a cluster."""
    stand_in = StandIn()
    monkeypatch.setattr(fleet, "Cluster", lambda *_: stand_in)
    return stand_in


class TestRun:
    """A run through a cluster."""

    def test_it_is_the_run_without_a_cluster(self, lab: Lab, cluster: StandIn) -> None:
        """Table, replies and manifest are the same, and either continues the other."""
        model = lab.fake(right)
        done = lab.bench_run("--model", model, *RAY, "--out", lab.folder / "ray")
        assert done.code == 0
        assert "16 samples go to 2 workers on Ray (local)" in done.err
        assert lab.bench_run("--model", model).code == 0
        one = lab.the_run()
        other = lab.folder / "ray" / one.relative_to(lab.out)
        assert (one / TABLE).read_bytes() == (other / TABLE).read_bytes()
        ours, theirs = read_manifest(one), read_manifest(other)
        assert ours.server == theirs.server
        said = {record["id"]: record["reply"] for record in records(one)}
        assert {record["id"]: record["reply"] for record in records(other)} == said
        assert cluster.closed == 1
        assert lab.bench_run("--model", model, *RAY).code == 0
        assert len(cluster.jobs) == 1
        assert lab.bench_run("--model", model, *RAY, "--samples", "5").code == 0
        assert len(cluster.jobs[1]) == 4

    def test_each_draw_is_asked_and_comes_back(self, lab: Lab, cluster: StandIn) -> None:
        """With a seed of its own."""
        model = lab.fake(ScriptedProvider(right))
        drawn = ("--draws", "2", "--temperature", "0.5")
        assert lab.bench_ask("--model", model, *RAY, *drawn).code == 0
        found = [(one.get("draw", 1), one["seed"]) for one in records(lab.the_run())]
        assert sorted(found) == [(1, 0)] * 16 + [(2, 1)] * 16
        assert cluster is not None

    def test_several_runs_are_one_job(self, lab: Lab, cluster: StandIn) -> None:
        """So engines start once; each run gets its own records."""
        model, tasks = lab.fake(right), f"{lab.ones},{lab.plain}"
        assert lab.bench("run", "--task", tasks, "--model", model, *RAY, "--out", lab.out).code == 0
        (job,) = cluster.jobs
        assert len(job) == 19
        found = {path.parent.name[:4]: len(records(path.parent)) for path in lab.out.rglob(TABLE)}
        assert found == {"ones": 16, "plai": 3}

    def test_a_first_job_decides_about_the_rest(self, lab: Lab, cluster: StandIn) -> None:
        """Of a large run; other replies than unread ones let it go on."""
        model = lab.fake(lambda _request: "I like rows.")
        done = lab.bench_run("--model", model, *RAY, "--samples", "25")
        assert done.code == 1
        assert "none of the first 6 replies has an answer that can be read" in done.err
        assert [len(job) for job in cluster.jobs] == [6]
        done = lab.bench_run("--model", lab.fake(right), *RAY, "--samples", "25", "--fresh")
        assert done.code == 0
        assert [len(job) for job in cluster.jobs] == [6, 6, 94]

    def test_a_job_that_ends_early_goes_on(self, lab: Lab, cluster: StandIn) -> None:
        """What came back is kept, and nothing is asked twice."""
        cluster.ends_after = [2]
        provider = ScriptedProvider(right)
        done = lab.bench_run("--model", lab.fake(provider), *RAY)
        assert done.code == 0
        assert "ended early and is begun again: an engine died; Ray's logs are in /logs" in done.err
        first, second = cluster.jobs
        assert set(second) == set(first) - {record["id"] for record in records(lab.the_run())[:6]}
        assert len(provider.requests) == len(records(lab.the_run())) == 16

    def test_engines_that_never_start_end_the_command(self, lab: Lab, cluster: StandIn) -> None:
        """With one line, after a second try."""
        cluster.ends_after = [0, 0]
        done = lab.bench_run("--model", lab.fake(right), *RAY)
        assert done.code == 1
        assert done.err.strip().splitlines()[-1] == (
            "bench: the job on Ray failed: an engine died; Ray's logs are in /logs"
        )
        assert len(cluster.jobs) == 2
        assert cluster.closed == 1

    def test_an_error_that_ends_the_run_comes_back(self, lab: Lab, cluster: StandIn) -> None:
        """With its own words; what was answered before is kept."""

        def expires(request: Request) -> Any:
            return right(request) if "index=0" in request.sample_id else AuthError("no such key")

        done = lab.bench_run("--model", lab.fake(expires), *RAY, "--max-connections", "1")
        assert done.code == 1
        assert done.err.strip().splitlines()[-1] == "bench: no such key"
        assert len(cluster.jobs) == 1
        assert {record["index"] for record in records(lab.the_run())} == {0}

    def test_samples_without_a_reply_are_said_and_asked_again(
        self, lab: Lab, cluster: StandIn
    ) -> None:
        """As without a cluster."""

        def half(request: Request) -> Any:
            return BadRequestError("no") if "length=5" in request.sample_id else right(request)

        done = lab.bench_run("--model", lab.fake(half), *RAY)
        assert done.code == 1
        assert "8 samples have no reply (the last: no)" in done.err
        assert lab.bench_ask("--model", lab.fake(right), *RAY).code == 0
        assert len(cluster.jobs[-1]) == 8

    @pytest.mark.parametrize("usage", [Usage(1, 10), None, Usage(3, 0)])
    def test_it_costs_what_a_run_without_a_cluster_does(
        self, lab: Lab, cluster: StandIn, usage: Usage | None
    ) -> None:
        """Also where the server counts no tokens, or none that can be true, and once where results
        come back twice.
        """
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder))
        model, cluster.twice = lab.fake(lambda one: Reply(right(one), usage=usage)), True
        system, said = ("--system", "Be brief."), []
        for options in ((), RAY):
            done = lab.bench_run("--model", model, *system, *options, "--fresh")
            assert done.code == 0
            said.append(done.err.partition("cost about ")[2])
        assert said[0].partition("\n")[0] == said[1].partition("\n")[0] != ""
        assert ("for 16 replies this is an estimate" in said[1]) == (usage != Usage(1, 10))

    def test_what_comes_back_twice_is_written_once(self, lab: Lab, cluster: StandIn) -> None:
        """As after a worker that was lost with its block."""
        cluster.twice = True
        assert lab.bench_ask("--model", lab.fake(right), *RAY).code == 0
        assert len(records(lab.the_run())) == 16

    def test_an_adaptive_run_has_a_job_for_each_wave(self, lab: Lab, cluster: StandIn) -> None:
        """And keeps to --max-requests, also where a job ends early."""
        cluster.ends_after = [1]
        model = lab.fake(right)
        asked = ("--task", "counting/ones", "--model", model, "--out", lab.out)
        done = lab.bench("run", *asked, *RAY, "--adaptive", "--max-requests", "100")
        assert len(cluster.jobs) >= 3
        assert 90 <= len(records(lab.the_run())) <= 100
        assert done.code == 1
        assert "--max-requests is reached" in done.err


class TestRefused:
    """Options that do not go together, each with one line."""

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--engine", "spark"), "--engine must be ray, ray:ADDRESS or"),
            (("--engine", "ray,workers=0"), "with N from 1 to 99999, not 'ray,workers=0'"),
            ((*RAY, "--tier", "batch"), "--tier batch"),
            ((*RAY, "--budget", "3"), "--budget"),
        ],
    )
    def test_other_options(self, lab: Lab, options: tuple[str, ...], words: str) -> None:
        """Before anything is asked."""
        lab.bench("run", "--task", "counting", "--model", "gpt-4o", *options).one_line(2, words)

    def test_models_of_this_process(self, lab: Lab) -> None:
        """The oracle and prepared replies are nowhere else."""
        for model in ("oracle:50", lab.model()):
            lab.bench_run("--model", model, *RAY).one_line(2, "leave out --engine ray")

    def test_without_ray(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        """How to get it."""
        monkeypatch.setitem(sys.modules, "ray", None)
        lab.bench_run("--model", lab.fake(right), *RAY).one_line(2, "needs Ray", "'.[ray]'")

    def test_nothing_at_the_address(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        """Found in a moment: Ray itself would try for minutes."""
        monkeypatch.setitem(sys.modules, "ray", sys)
        monkeypatch.setitem(sys.modules, "ray.data", sys)
        done = lab.bench_run("--model", lab.fake(right), "--engine", "ray:127.0.0.1:1")
        done.one_line(2, "no Ray cluster at 127.0.0.1:1")


def changed(**values: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A machine that writes other values into its records."""

    def forge(row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "record": json.dumps({**json.loads(row["record"]), **values}).encode()}

    return forge


def other(**values: object) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A machine that sends other values in its rows."""
    return lambda row: {**row, **values}


class Opened:
    """Unpickled, it creates a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


def charges(output: bytes) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A row with a usage of so many tokens of output."""
    return other(charged=b'{"usages": [{"prompt_tokens": 3, "output_tokens": %s}]}' % output)


class TestRows:
    """What goes to another machine and comes back is plain data, checked like any from outside."""

    @pytest.mark.parametrize("target", [7, 10**30, 2.5, "ä\u2028"])
    def test_a_sample_arrives_as_it_was(self, target: Any) -> None:
        """As JSON, which no code is needed to read."""
        condition = Condition({"separator": "none", "hint": "yes"})
        sample = Sample("x", condition, Line(10, 8, 12), 9, 3, "1 1\n", target, ("a", "b"))
        row = rows.row_of_asked(SampleRow(2, sample, 5))
        assert json.loads(row["sample"])["prompt"] == "1 1\n"
        assert rows.read_asked(row) == SampleRow(2, sample, 5)

    def test_no_pickle_is_opened(self, tmp_path: Path) -> None:
        """Neither as a sample nor as a record: it could run anything."""
        path = tmp_path / "opened"
        content = pickle.dumps(Opened(path))
        with pytest.raises(ValueError, match="UTF-8"):
            rows.read_asked({"run": 0, "sample": content, "max_tokens": 5})
        sample = Sample("x", Condition({"a": "b"}), Line(3, 3, 3), 3, 0, "1 1 1", 3)
        fine = rows.row_of(ResultRow(0, record_of(sample, reply="3")))
        for name in ("record", "charged"):
            with pytest.raises(StopRunError, match="a row that is no result"):
                rows.read_back({**fine, name: content})
        assert not path.exists()

    @pytest.mark.parametrize("name", ["redact", "Path", "Reply", "StopRunErro", ""])
    def test_only_errors_of_providers_come_back_as_errors(self, name: str) -> None:
        """Not whatever has that name in the module of the errors."""
        row = rows.row_of(ResultRow(0, None, StopRunError("x")))
        stop = rows.read_back({**row, "stop": f"{name} rm\n -rf"}).stop
        assert (type(stop), str(stop)) == (StopRunError, "rm -rf")

    @pytest.mark.parametrize(
        ("forge", "words"),
        [
            (changed(target=1000), "a sample that was not sent"),
            (changed(accept=["7", "8"]), "a sample that was not sent"),
            (changed(index=999), "a sample that was not sent"),
            (changed(condition={"separator": "none"}), "a sample that was not sent"),
            (changed(prompt_hash="0"), "a sample that was not sent"),
            (changed(id="other"), "a sample that was not sent"),
            (changed(origin="mine"), "a sample that was not sent"),
            (changed(length=-1), "a row that is no result"),
            (other(run=-1), "a sample that was not sent"),
            (other(run=1), "a sample that was not sent"),
            (other(run="x"), "a row that is no result"),
            (other(record=b"{"), "a row that is no result"),
            (other(record=None), "a row that is no result"),
            (other(charged=b"[]"), "a row that is no result"),
            (other(charged=b'{"estimated": 1}'), "1 of 0 usages as estimates"),
            (charges(b"-1"), "a number of tokens that cannot be true"),
            (charges(b'1, "cache_read_tokens": 1e99'), "a row that is no result"),
        ],
    )
    def test_a_false_row_ends_the_run(
        self, lab: Lab, cluster: StandIn, forge: Callable[..., Any], words: str
    ) -> None:
        """With one line; nothing of it is written, and the same command goes on."""
        cluster.forge = forge
        done = lab.bench_run("--model", lab.fake(right), *RAY)
        assert done.code == 1
        last = done.err.strip().splitlines()[-1]
        assert last.startswith("bench: a worker of Ray sent")
        assert words in last
        assert "the same version of Eyechart" in last
        assert len(records(lab.the_run())) == BLOCK
        assert len(cluster.jobs) == cluster.closed == 1
        cluster.forge = dict
        assert lab.bench_ask("--model", lab.fake(right), *RAY).code == 0
        assert len(records(lab.the_run())) == 16

    @pytest.mark.parametrize(
        "says", [b"", b"[]", b"{}", b'{"value": 3}', b'{"value": [1]}', pickle.dumps({})]
    )
    def test_facts_are_read_as_strictly(self, lab: Lab, cluster: StandIn, says: bytes) -> None:
        """Before anything is asked."""
        cluster.says = says
        done = lab.bench_run("--model", lab.fake(right), *RAY)
        assert done.code == 1
        assert done.err.strip().splitlines()[-1].startswith("bench: a worker of Ray sent no valid")
        assert not cluster.jobs

    def test_counts_are_of_all_prompts(self, cluster: StandIn) -> None:
        """One for each, and none below zero."""
        workers = fleet.Workers(cast("Cluster", cluster), order(), 1, 0.0)
        for says, words in ((b"[1]", "1 of 2"), (b"[1, -2]", "no valid"), (b'["1"]', "no valid")):
            cluster.says = b'{"value": %s}' % says
            with pytest.raises(StopRunError, match=words):
                asyncio.run(workers.count_tokens(["a", "b"]))
        cluster.says = b'{"value": [1, 2]}'
        assert asyncio.run(workers.count_tokens(["a", "b"])) == [1, 2]


def order(limits: RunLimits | None = None, room: Room | None = None) -> WorkerSetup:
    """An order for one of two workers."""
    settings = ModelSettings("model", provider="fake")
    return WorkerSetup.of(
        parse_model("tiny"), settings, limits or RunLimits(), workers=2, seed=0, room=room or Room()
    )


class TestWorkers:
    """What a worker is told, and how many there are."""

    def test_workers_share_the_rates(self) -> None:
        """A command's rates are those of all workers together."""
        both = order(RunLimits(rpm=60, tpm=1000)).limits
        assert (both.rpm, both.tpm) == (30, 500)
        assert order().limits.rpm is None

    def test_a_fault_of_a_worker_ends_the_run_in_one_line(self, lab: Lab) -> None:
        """Also one that is no error of a provider."""
        (sample,) = lab.wanted(lab.plain, samples=1).plan
        worker = Worker(order())

        def fails(_: object) -> None:
            raise RuntimeError("out of\nmemory")

        worker._model.do = fails  # type: ignore[method-assign, assignment]
        (back,) = worker.answers([SampleRow(0, sample, 5)])
        again = rows.read_back(rows.row_of(back))
        assert again.record is None
        assert str(again.stop) == "RuntimeError: out of memory"

    @pytest.mark.parametrize(
        ("room", "tokens"), [(Room(), 9000), (Room(head=8192), 9000), (Room(fixed=True), 9000)]
    )
    def test_a_reply_gets_the_tokens_that_the_command_gave(
        self, lab: Lab, room: Room, tokens: int
    ) -> None:
        """Those for thinking are among them, and are not added again."""
        (sample,) = lab.wanted(lab.plain, samples=1).plan
        worker, provider = Worker(order(room=room)), ScriptedProvider(right)
        worker._model._provider = provider
        (back,) = worker.answers([SampleRow(0, sample, tokens)])
        assert back.record is not None
        assert [request.max_tokens for request in provider.requests] == [tokens]

    @pytest.mark.parametrize("error", [AuthError("key"), SetupError("a b"), BadRequestError("x")])
    def test_errors_come_back_as_they_were(self, error: Any) -> None:
        """With their class, on which the exit code depends."""
        stop = rows.read_back(rows.row_of(ResultRow(1, None, error))).stop
        assert (type(stop), str(stop)) == (type(error), str(error))

    def test_as_many_as_the_cluster_has_room_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A worker a machine; a GPU each for models that are loaded there."""
        stand_in = StandIn(resources={"GPU": 8.0}, nodes=3)
        monkeypatch.setattr(fleet, "Cluster", lambda *_: stand_in)
        found = {}
        for name in ("tiny", "lm-eval/hf"):
            arguments = ("pretrained=x",) if name.startswith("lm-eval") else ()
            _, made = fleet.connect(
                RayOptions(),
                parse_model(name, arguments),
                ModelSettings("x"),
                RunLimits(),
                seed=0,
                room=Room(),
            )
            assert isinstance(made, fleet.Workers)
            found[name] = (made.number, made.gpus)
        assert found == {"tiny": (3, 0.0), "lm-eval/hf": (8, 1.0)}


class Tokenizer:
    """Ends replies with 2."""

    eos_token_id = 2


class TestOfflineVllm:
    """What comes back of vLLM's engine."""

    PLAN = offline.OfflinePlan(
        ModelSettings("m", logprobs=True),
        tokenizer="t",
        trust_remote_code=False,
        defaults={"repetition_penalty": 1.05},
        ends=frozenset({9}),
        window=100,
    )

    def test_thinking_and_params_reach_engine_and_template(self) -> None:
        """In the same form as they reach a server."""
        settings = ModelSettings("m", thinking="300", params={"top_k": 5})
        parameters = replace(self.PLAN, settings=settings).sampling(Request("x", 9))
        assert (parameters["top_k"], parameters["thinking_token_budget"]) == (5, 300)
        assert "chat_template_kwargs" not in parameters
        assert template_fields(settings)["enable_thinking"] is True

    @pytest.fixture(autouse=True)
    def tokenizer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No real one is needed."""
        monkeypatch.setattr(offline, "_tokenizer", lambda *_, **__: Tokenizer())

    @pytest.mark.parametrize(
        ("tokens", "asked", "end"),
        [
            ([5, 2], 10, "stop"),
            ([5, 9], 10, "stop"),
            ([5, 6, 7, 2], 10, "stop"),  # the last token that it may have is the end
            ([5, 6, 7, 8], 10, "length"),
            ([5, 6], 98, "length"),  # the window is full
            ([5], 10, "stop"),  # at a stop sequence
        ],
    )
    def test_how_a_reply_ended_follows_from_its_tokens(
        self, tokens: list[int], asked: int, end: FinishReason
    ) -> None:
        """Ray leaves it out."""
        row = {"generated_tokens": tokens, "num_input_tokens": asked, "generated_text": "4"}
        reply = self.PLAN.reply(row, Request("p", 4))
        usage = Usage(asked, len(tokens))
        assert reply == Reply("4", end, usage, model="m", sure_stop=True)

    def test_probabilities_of_the_tokens(self) -> None:
        """Those that were chosen."""
        row = {
            "generated_tokens": [5, 2],
            "num_input_tokens": 1,
            "generated_text": "4",
            "logprobs": [
                {5: {"logprob": -0.5, "decoded_token": "4"}},
                {2: {"logprob": -0.1, "decoded_token": ""}},
            ],
        }
        assert self.PLAN.reply(row, Request("p", 4)).logprobs == (("4", -0.5), ("", -0.1))

    def test_sampling_is_neutral_whatever_the_model_has(self) -> None:
        """As at `vllm serve`, unless the run says otherwise; other defaults of the model hold."""
        plan = replace(self.PLAN, defaults={"repetition_penalty": 1.05, "min_tokens": 1})
        assert plan.sampling(Request("p", 4)) == {
            **{name: values[0] for name, values in VLLM_NEUTRAL.items()},
            "min_tokens": 1,
            "max_tokens": 4,
            "temperature": 0.0,
            "seed": None,
            "logprobs": 0,
        }

    def test_a_prompt_that_the_engine_refuses(self, lab: Lab) -> None:
        """It fails alone; one that is too long is said to be."""
        (sample,) = lab.wanted(lab.plain, samples=1).plan
        exchange = fleet._Exchange(self.PLAN, 0.0, 0)
        asked = rows.row_of_asked(SampleRow(3, sample, 5))
        why = "The prompt (length 200) is longer than the maximum model length of 100"
        back = rows.read_back(exchange.failed({**asked, "__inference_error__": why}))
        expected = failed(sample, PromptOverflowError(why), attempts=1)
        assert back.record is not None
        assert (back.run, back.record.failure) == (3, expected.failure)
        fine = {"run": 3, "record": b"{}", "stop": "", "charged": b"{}"}
        assert exchange.failed({**fine, "__inference_error__": ""}) == fine

    def test_without_vllm_on_this_machine(
        self, lab: Lab, cluster: StandIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its tokenizer and config are needed here too."""
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
        done = lab.bench_run("--model", "vllm/x", *RAY)
        done.one_line(2, "vllm/x needs vLLM here too")
        assert cluster.closed == 0


def test_the_real_cluster_has_what_the_stand_in_has() -> None:
    """The tests above are about the same interface."""
    used = ("call", "answers", "close", "nodes", "resources", "logs")
    assert all(hasattr(Cluster, name) for name in used)


class SlowRay:
    """Ray whose cluster is ready at the start with this number."""

    def __init__(self, ready: int) -> None:
        self.ready, self.starts, self.ends = ready, 0, 0

    def init(self, **_given: Any) -> None:
        self.starts += 1
        if self.starts < self.ready:
            raise RuntimeError("The current node timed out during startup.")

    def shutdown(self) -> None:
        self.ends += 1


def test_a_cluster_of_our_own_is_started_up_to_three_times() -> None:
    """Ray gives up after 30 s; a cluster of somebody else's is asked once."""
    busy, dead, theirs = SlowRay(3), SlowRay(9), SlowRay(2)
    connect(busy, "local", {})
    assert (busy.starts, busy.ends) == (3, 2)
    with pytest.raises(SetupError, match=r"no Ray cluster at local: .*timed out"):
        connect(dead, "local", {})
    assert dead.starts == 3
    with pytest.raises(SetupError, match="no Ray cluster at auto"):
        connect(theirs, "auto", {})
    assert theirs.starts == 1
