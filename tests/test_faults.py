"""A run against a server that goes wrong ends as one against a server that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import TABLE, write_results
from eyechart.harness.face.options import run_options
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.report.page import page
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.providers.base import AuthError, ModelSettings, StopRunError
from eyechart.providers.http import client
from eyechart.providers.registry.model_name import ModelName
from eyechart.providers.registry.registry import open_model
from tests.conftest import records
from tests.faulty_server import (
    FAULTS,
    HANG,
    NONE,
    PERMANENT,
    Faults,
    FaultyServer,
    answer_to,
    prompt_hash,
    serving,
)
from tests.run_task import run_task

if TYPE_CHECKING:
    from tests.conftest import Lab

CONNECTIONS = 4
LIMITS = RunLimits(max_connections=CONNECTIONS, initial_backoff_s=0.0, max_backoff_s=0.01)
SIZE = 20
UNDISTURBED: dict[str, str] = {}
"""Provider -> table; made once."""
PROVIDERS = ("openai", "vllm")


@dataclass
class Bed:
    """A small run of long rows, no two of them alike."""

    lab: Lab
    provider: str
    said: list[str] = field(default_factory=list)

    @property
    def undisturbed(self) -> str:
        """The table of a run on a sound server."""
        return UNDISTURBED[self.provider]

    def wanted(self, out: str = "results") -> RunRequest:
        """Four cells."""
        planned = self.lab.wanted(
            lengths=[20, 30], samples=SIZE // 4, model=f"{self.provider}/fake"
        )
        return replace(planned, out=self.lab.folder / out)

    async def ask(self, server: FaultyServer, out: str = "results") -> None:
        """Runs once, or on."""
        settings = ModelSettings("fake", base_urls=(server.base_url,), notify=self.said.append)
        provider = open_model(ModelName(self.provider, "fake"), settings)
        try:
            await run_task(self.wanted(out), provider, limits=LIMITS, warn=self.said.append)
        finally:
            await provider.aclose()

    def run(self, server: FaultyServer, out: str = "results") -> str:
        """Runs once, or on; the table."""
        asyncio.run(self.ask(server, out))
        return self.table(out)

    async def cancelled(self, server: FaultyServer, answers: int) -> None:
        """Runs and is cancelled once so many answers were sent."""
        doing = asyncio.create_task(self.ask(server))
        # it counts in a thread of its own, so there is nothing to wait for but the number
        while server.counters.answers.total() < answers and not doing.done():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        doing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doing

    def table(self, out: str = "results") -> str:
        """What `table.csv` says."""
        return write_results(read_run(self.wanted(out).folder)).read_text()

    def recorded(self) -> list[dict[str, Any]]:
        """The journal's records; none where there is no journal yet."""
        folder = self.wanted().folder
        return records(folder) if (folder / SAMPLES).exists() else []

    def prompts(self) -> list[str]:
        """Every prompt of the run."""
        return [sample.prompt for sample in self.wanted().plan]


@pytest.fixture(params=PROVIDERS)
def bed(request: pytest.FixtureRequest, lab: Lab) -> Bed:
    """For each provider."""
    bed = Bed(lab, request.param)
    if request.param not in UNDISTURBED:
        assert len(set(bed.prompts())) == len(bed.prompts()) == SIZE
        with serving(FaultyServer()) as server:
            UNDISTURBED[request.param] = bed.run(server, "undisturbed")
        assert list(server.counters.answers.values()) == [1] * SIZE
    return bed


@contextmanager
def unasked(server: FaultyServer, bed: Bed) -> Iterator[None]:
    """Asserts that inside nothing is asked that the journal has an answer to."""
    known = {
        record["prompt_hash"]
        for record in bed.recorded()
        if (record.get("failure") or {}).get("kind") != "error"
    }
    before = server.counters.requests.copy()
    yield
    assert not [key for key in known if server.counters.requests[key] != before[key]]


class TestFaults:
    """What asking again mends is asked again until it is mended."""

    @pytest.mark.parametrize("fault", FAULTS)
    def test_each_fault_alone(self, bed: Bed, fault: str) -> None:
        """The table is that of an undisturbed run, and no answer was sent twice."""
        with serving(FaultyServer(Faults([fault]))) as server:
            assert bed.run(server) == bed.undisturbed
        counters = server.counters
        assert set(counters.faults) == {fault}
        assert list(counters.answers.values()) == [1] * SIZE
        assert counters.requests.total() == SIZE + counters.faults.total()
        attempts = {record["prompt_hash"]: record["attempts"] for record in bed.recorded()}
        assert attempts == counters.requests
        assert counters.most_concurrent <= CONNECTIONS

    @pytest.mark.parametrize("seed", range(2))
    def test_all_together(self, bed: Bed, seed: int) -> None:
        """One after another, in any order, up to five before an answer."""
        with serving(FaultyServer(Faults(FAULTS, seed, most=5))) as server:
            assert bed.run(server) == bed.undisturbed
        assert list(server.counters.answers.values()) == [1] * SIZE
        assert len(server.counters.faults) > 8

    def test_silence(self, bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
        """No reply in time is one fault more, and the same prompt is asked again."""
        monkeypatch.setattr(client, "TIMEOUT_S", 0.3)
        faults = Faults([HANG], most=1, share=0.4)
        with serving(FaultyServer(faults, hang_s=0.8)) as server:
            assert bed.run(server) == bed.undisturbed
        assert server.counters.faults[HANG] > 2

    def test_more_faults_than_attempts_cost_the_sample_until_the_next_run(self, bed: Bed) -> None:
        """What has no reply is an error in the table; the same command again asks only that."""
        faults = Faults(["503"], most=LIMITS.max_attempts + 2)
        with serving(FaultyServer(faults)) as server:
            first = bed.run(server)
            failed = [record for record in bed.recorded() if "failure" in record]
            assert 0 < len(failed) < SIZE
            assert first != bed.undisturbed
            with unasked(server, bed):
                assert bed.run(server) == bed.undisturbed
        assert list(server.counters.answers.values()) == [1] * SIZE

    def test_through_the_command(self, bed: Bed) -> None:
        """`bench run` says how many samples were tried again, and nothing else of the faults."""
        with serving(FaultyServer(Faults(FAULTS, most=4))) as server:
            done = bed.lab.bench_run(
                *("--model", f"{bed.provider}/fake", "--base-url", server.base_url),
                *("--lengths", "20,30", "--samples", str(SIZE // 4)),
            )
        assert done.code == 0
        (said,) = done.lines
        retried = sum(count > 1 for count in server.counters.requests.values())
        assert said.startswith(f"{retried} samples were tried again (a reason: ")
        assert bed.table() == bed.undisturbed
        assert list(server.counters.answers.values()) == [1] * SIZE


class TestNothingAnswered:
    """A run without any answer says why, and shows no empty table."""

    def test_nobody_listens(self, bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
        """The cause is said at once, and again at the end with what helps."""
        impatient = partial(RunLimits, connect_timeout_s=0.0)
        monkeypatch.setattr(run_options, "RunLimits", impatient)
        with serving(FaultyServer()) as gone:
            pass
        done = bed.lab.bench_run("--model", "openai/fake", "--base-url", gone.base_url)
        assert (done.code, done.out) == (1, "")
        first, last = done.lines
        assert "trying again for up to 0 s" in first
        assert "start the server or correct its address, and the same command goes on" in last

    def test_an_unknown_model(self, bed: Bed) -> None:
        """Or an address that leads nowhere."""
        with serving(FaultyServer()) as server:
            done = bed.lab.bench_run("--model", "openai/fake", "--base-url", f"{server.base_url}/x")
        done.one_line(1, "no such model or address", "check the model's name and the address")
        assert done.out == ""

    def test_samples_that_all_failed(self, bed: Bed) -> None:
        """The files are written all the same."""
        with serving(FaultyServer(Faults(permanent=["bad"] * 8))) as server:
            done = bed.lab.bench_run(
                *("--model", f"{bed.provider}/fake", "--base-url", server.base_url),
                *("--lengths", "20,30", "--samples", "2"),
            )
        assert (done.code, done.out) == (1, "")
        assert "none of the first 6 samples got a reply" in done.err
        assert "  6 times: 400: this request cannot be served" in done.err
        assert (bed.lab.the_run() / TABLE).exists()


class TestCutShort:
    """A run that is stopped at any moment goes on where it was."""

    @pytest.mark.parametrize("answers", [0, 7, SIZE - 1])
    @pytest.mark.parametrize("faults", [NONE, Faults(FAULTS, 7)], ids=["sound", "faulty"])
    def test_stopped_by_the_provider(self, bed: Bed, faults: Faults, answers: int) -> None:
        """The key is refused in the middle; with a good one the rest is asked, and only that."""
        with serving(FaultyServer(faults, refuse_after=answers)) as server:
            with pytest.raises(AuthError):
                bed.run(server)
            kept = len(bed.recorded())
            assert answers - CONNECTIONS <= kept <= answers + CONNECTIONS
            server.refuse_after = None
            with unasked(server, bed):
                assert bed.run(server) == bed.undisturbed
        assert server.counters.answers.total() <= SIZE + CONNECTIONS
        assert len(bed.recorded()) == SIZE

    @pytest.mark.parametrize("faults", [NONE, Faults(FAULTS, 8)], ids=["sound", "faulty"])
    def test_cancelled_again_and_again(self, bed: Bed, faults: Faults) -> None:
        """Each time what was in flight is lost at most."""
        with serving(FaultyServer(faults, latency_s=0.005)) as server:
            for cuts, answers in enumerate((1, 5, 10), start=1):
                with unasked(server, bed):
                    asyncio.run(bed.cancelled(server, answers))
                lost = server.counters.answers.total() - len(bed.recorded())
                assert 0 <= lost <= cuts * CONNECTIONS
            with unasked(server, bed):
                assert bed.run(server) == bed.undisturbed
            with unasked(server, bed):
                assert bed.run(server) == bed.undisturbed
        assert len(bed.recorded()) == SIZE

    def test_a_server_that_is_gone_stops_the_run(self, bed: Bed) -> None:
        """Nothing answers any more, so the run ends by itself."""
        with serving(FaultyServer()) as gone:
            pass
        with pytest.raises(StopRunError):
            bed.run(gone)
        assert not [record for record in bed.recorded() if "reply" in record]

    def test_a_server_that_is_away_and_comes_back(self, bed: Bed) -> None:
        """The run goes on by itself; what was in flight is asked twice at most, nothing else."""
        server = FaultyServer(latency_s=0.005)

        async def ask() -> None:
            with ExitStack() as first:
                first.enter_context(serving(server))
                doing = asyncio.create_task(bed.ask(server))
                while server.counters.answers.total() < 7 and not doing.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
                await asyncio.to_thread(first.close)
            while not any("trying again" in line for line in bed.said):
                assert not doing.done()
                await asyncio.sleep(0.001)
            port = int(server.base_url.rpartition(":")[2].partition("/")[0])
            with serving(server, port):
                await doing

        asyncio.run(ask())
        assert bed.table() == bed.undisturbed
        assert len(bed.recorded()) == SIZE
        assert server.counters.answers.total() <= SIZE + CONNECTIONS


class TestOtherRuns:
    """Where a third of the requests goes wrong, or every second one is a rate limit, adaptive runs
    and studies end as on a sound server.
    """

    FAULTY = (
        Faults(["500", "reset", "502"], 3, most=2, share=0.5),
        Faults(["429"], 4, most=3),
    )

    def tables(
        self,
        bed: Bed,
        faults: Faults,
        command: Sequence[str],
        prepare: Callable[[str], object] = lambda _url: None,
    ) -> list[str]:
        """What the tables say; `prepare` is called with the address of the server. Each prompt is
        answered once, and the same command again asks nothing.
        """
        out = bed.lab.folder / f"results-{len(faults.kinds)}"
        with serving(FaultyServer(faults)) as server:
            prepare(server.base_url)
            given = [word.replace("URL", server.base_url) for word in command]
            done = bed.lab.bench("run", *given, "--out", out)
            asked = server.counters.requests.total()
            assert bed.lab.bench("run", *given, "--out", out).code == done.code
            assert server.counters.requests.total() == asked
        assert set(server.counters.answers.values()) == {1}, done
        assert bool(server.counters.faults) == bool(faults.kinds)
        assert asked == server.counters.answers.total() + server.counters.faults.total()
        return [path.read_text() for path in sorted(out.rglob(TABLE))]

    def test_adaptive(self, bed: Bed) -> None:
        """The same waves, so the same samples."""
        bed.lab.with_bands()
        command = (
            *("--task", str(bed.lab.ones), "--adaptive", "--samples", "12"),
            *("--model", f"{bed.provider}/fake", "--base-url", "URL"),
            *("--lengths", "20,40,80", "--axis", "separator=none"),
        )
        sound = self.tables(bed, NONE, command)
        for faults in self.FAULTY:
            assert self.tables(bed, faults, command) == sound

    def test_study(self, bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
        """A study of two tasks, whose file names the server; without its page, which takes long."""
        monkeypatch.setattr(page, "write_report", lambda *_, **__: None)
        study = bed.lab.folder / "study.yaml"

        def text(url: str) -> str:
            model = f'{{name: {bed.provider}/fake, base_url: "{url}"}}'
            return (
                f"name: two\ntitle: Two\nmodels: [{model}]\nlengths: [20, 30]\n"
                "tasks: [lab/ones.yaml, lab/plain.yaml]\n"
            )

        def tables(of: Faults) -> list[str]:
            return self.tables(
                bed, of, [str(study), "--trust"], lambda url: study.write_text(text(url))
            )

        assert tables(self.FAULTY[0]) == tables(NONE)


class TestPermanent:
    """What asking again does not mend costs its own sample, each under its own name."""

    @pytest.mark.parametrize("mixed", [(), FAULTS], ids=["alone", "among-others"])
    def test_each_has_its_outcome(self, bed: Bed, mixed: Sequence[str]) -> None:
        """Too long and filtered are outcomes for good; a plain 400 is an error, asked next time."""
        faults = Faults(mixed, permanent=list(PERMANENT))
        expected = {
            prompt_hash(prompt): {"overflow": "overflow", "filter": "refused", "bad": "error"}[kind]
            for prompt in bed.prompts()
            if (kind := faults.at(prompt, 10**6)) is not None
        }
        assert set(expected.values()) == {"overflow", "refused", "error"}
        with serving(FaultyServer(faults)) as server:
            table = bed.run(server)
            assert expected == {
                record["prompt_hash"]: record["failure"]["kind"]
                for record in bed.recorded()
                if "failure" in record
            }
            before = server.counters.requests.copy()
            with unasked(server, bed):
                assert bed.run(server) == table
            asked = server.counters.requests - before
            assert asked.keys() == {key for key, kind in expected.items() if kind == "error"}
            # before any reply the fault may be what makes sampling neutral: asked without, once
            assert set(asked.values()) <= {1, 2}
        assert list(server.counters.answers.values()) == [1] * (SIZE - len(expected))


class TestServer:
    """The server itself can be relied upon."""

    def test_faults_are_decided_by_seed_prompt_and_attempt(self) -> None:
        """The same again for the same seed, others for another, and an end to them."""
        prompts = [f"prompt {number}" for number in range(200)]

        def met(faults: Faults) -> list[list[str | None]]:
            return [[faults.at(prompt, attempt) for attempt in range(6)] for prompt in prompts]

        some = met(Faults(FAULTS, 1, most=3))
        assert some == met(Faults(FAULTS, 1, most=3)) != met(Faults(FAULTS, 2, most=3))
        assert {row.index(None) for row in some} == {0, 1, 2, 3}
        assert {fault for row in some for fault in row} == {*FAULTS, None}
        assert all(not any(row[row.index(None) :]) for row in some)
        assert met(NONE) == [[None] * 6] * 200

    def test_answers_are_decided_by_the_prompt(self) -> None:
        """Right ones, wrong ones, none at all, and one cut off."""
        answers = [answer_to(f"row {number}: 111") for number in range(300)]
        assert answers == [answer_to(f"row {number}: 111") for number in range(300)]
        assert {finish for _, finish in answers} == {"stop", "length"}
        assert len(set(answers)) > 4
