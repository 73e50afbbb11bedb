"""One model on one task: runs continue, grow, and never mix."""

from __future__ import annotations

import asyncio
import csv
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import JournalError
from eyechart.harness.journal.manifest import MANIFEST, Manifest, read_manifest, write_manifest
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.plan.plan import output_budget
from eyechart.harness.run import writer
from eyechart.harness.run.engine import RunEngine
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings
from eyechart.harness.task import functions, generator
from eyechart.providers.base import (
    AuthError,
    BadRequestError,
    PromptOverflowError,
    ProviderError,
    RefusedError,
    Reply,
    Request,
    SetupError,
    StopRunError,
)
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import ONES, asking_of, records, right
from tests.run_task import run_task

if TYPE_CHECKING:
    from pathlib import Path

    from eyechart.harness.run.progress import Progress
    from eyechart.harness.run.writer import Judge
    from tests.conftest import Lab

pytestmark = pytest.mark.usefixtures("own_time")


def ids(wanted: RunRequest) -> list[str]:
    return [sample.id for sample in wanted.plan]


class Server(ScriptedProvider):
    """A right model with facts of its own."""

    def __init__(self, facts: Mapping[str, object]) -> None:
        super().__init__(right)
        self._facts = facts

    async def facts(self) -> Mapping[str, object]:
        return self._facts


class Watching:
    """Keeps how many samples of each run are pending; for it every reply is right."""

    def __init__(self) -> None:
        self.pending: list[int] = []
        self.done: list[int] = []
        self.correct: list[int] = []

    def judge(self, _request: RunRequest) -> Judge:
        return lambda _record: True

    @contextmanager
    def show(self, _request: RunRequest, progress: Progress) -> Iterator[None]:
        assert progress.done == 0
        self.pending.append(progress.total)
        yield


class TestAsking:
    """A run asks what its plan says."""

    def test_all_of_the_plan_is_asked_in_its_order(self, lab: Lab) -> None:
        """Index by index, with one worker, each sample once."""
        wanted = lab.wanted()
        provider = ScriptedProvider(right)
        lab.run(wanted, provider, max_connections=1)
        assert [request.sample_id for request in provider.requests] == ids(wanted)
        assert len(set(ids(wanted))) == wanted.plan.size == 16
        assert [request.prompt for request in provider.requests] == [
            sample.prompt for sample in wanted.plan
        ]

    def test_the_output_budget_is_the_samples_or_the_users(self, lab: Lab) -> None:
        """`auto` leaves room for the answer; a number is a number."""
        auto, fixed = ScriptedProvider(right), ScriptedProvider(right)
        lab.run(lab.wanted(), auto, max_connections=1)
        lab.run(lab.wanted(settings=Settings(max_tokens=17)), fixed)
        budgets = [output_budget(sample) for sample in lab.wanted().plan]
        assert [request.max_tokens for request in auto.requests] == budgets
        assert {request.max_tokens for request in fixed.requests} == {17}

    def test_whoever_watches_is_told_what_is_pending(self, lab: Lab) -> None:
        """Of a run half done, the other half."""
        display = Watching()
        for samples in (1, 4, 4):
            asking = asking_of([lab.wanted(samples=samples)], display=display)
            engine = RunEngine(asking, ScriptedProvider(right))
            asyncio.run(engine.run())
            (outcome,) = engine.outcomes
            display.done.append(outcome.progress.done)
            display.correct.append(outcome.progress.correct)
        assert display.pending == [4, 12, 0]
        assert display.done == [4, 12, 0]
        assert display.correct == [4, 12, 0]


class TestResuming:
    """The same command continues where it stopped."""

    def test_a_full_run_asks_nothing_again(self, lab: Lab) -> None:
        """Nor does it write to the journal."""
        wanted = lab.wanted()
        lab.asked(wanted)
        before = (wanted.folder / SAMPLES).read_bytes()
        assert lab.asked(wanted) == []
        assert (wanted.folder / SAMPLES).read_bytes() == before

    def test_a_run_that_was_stopped_asks_the_rest(self, lab: Lab) -> None:
        """The manifest knows from the start what was meant, and no answer is asked twice."""
        wanted = lab.wanted()
        provider = ScriptedProvider([*["Final answer: 2"] * 5, AuthError("401")])
        with pytest.raises(AuthError):
            lab.run(wanted, provider, max_connections=1)
        assert [record["id"] for record in records(wanted.folder)] == ids(wanted)[:5]
        assert sum(cell.samples for cell in read_manifest(wanted.folder).cells) == 16
        assert sorted(lab.asked(wanted)) == sorted(ids(wanted)[5:])

    def test_errors_are_asked_again_and_failures_of_the_model_not(self, lab: Lab) -> None:
        """A refused prompt and one too long stay as they are."""
        wanted = lab.wanted()
        failures: dict[str, ProviderError] = dict(
            zip(
                ids(wanted),
                [BadRequestError("400"), PromptOverflowError("long"), RefusedError("filter")],
                strict=False,
            )
        )
        lab.asked(wanted, lambda request: failures.get(request.sample_id) or right(request))
        assert lab.asked(wanted) == ids(wanted)[:1]
        assert lab.asked(wanted) == []

    def test_a_corrupt_line_costs_its_sample(self, lab: Lab) -> None:
        """It is reported, and that sample alone is asked again."""
        wanted = lab.wanted()
        lab.asked(wanted)
        path = wanted.folder / SAMPLES
        lines = path.read_bytes().splitlines(keepends=True)
        lost = orjson.loads(lines[6])["id"]
        path.write_bytes(b"".join([*lines[:6], b"\xff\x00 not a record\n", *lines[7:]]))
        assert lab.asked(wanted) == [lost]
        assert [line for line in lab.said if f"{path}:7:" in line]

    def test_a_torn_last_line_costs_its_sample(self, lab: Lab) -> None:
        """As after `kill -9` in the middle of a write."""
        wanted = lab.wanted()
        lab.asked(wanted)
        path = wanted.folder / SAMPLES
        last = records(wanted.folder)[-1]["id"]
        path.write_bytes(path.read_bytes()[:-25])
        assert lab.asked(wanted) == [last]
        assert [record["id"] for record in records(wanted.folder)].count(last) == 1

    def test_a_lost_journal_is_asked_anew(self, lab: Lab) -> None:
        """With the manifest alone, everything is pending."""
        wanted = lab.wanted()
        lab.asked(wanted)
        (wanted.folder / SAMPLES).unlink()
        assert len(lab.asked(wanted)) == 16

    def test_a_cancelled_run_keeps_what_came(self, lab: Lab) -> None:
        """And frees the lock, so that the same command continues at once."""
        wanted = lab.wanted()
        stuck = asyncio.Event()

        class Stuck(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                if len(self.requests) >= 7:
                    stuck.set()
                    await asyncio.Event().wait()
                return await super().complete(request)

        async def main() -> None:
            limits = RunLimits(max_connections=2, interrupt_drain_s=0.05)
            doing = asyncio.create_task(
                run_task(wanted, Stuck(right), limits=limits, warn=lab.said.append)
            )
            await stuck.wait()
            await asyncio.sleep(0)
            doing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await doing

        asyncio.run(main())
        assert len(records(wanted.folder)) == 7
        assert len(lab.asked(wanted)) == 9


class TestGrowing:
    """More lengths, samples or conditions grow the same run."""

    def test_growth_asks_only_what_is_new(self, lab: Lab) -> None:
        """In the end the run is the one that asking for all at once would have made."""
        steps = [
            lab.wanted(lengths=[3], samples=2, axes={"separator": ["none"]}),
            lab.wanted(lengths=[3], samples=5, axes={"separator": ["none"]}),
            lab.wanted(lengths=[2, 3, 9], samples=5, axes={"separator": ["none"]}),
            lab.wanted(lengths=[9], samples=1),
            lab.wanted(lengths=[2, 3, 9], samples=5, axes={"separator": ["all"]}),
        ]
        assert [len(lab.asked(step)) for step in steps] == [2, 3, 10, 1, 29]
        assert len({step.folder for step in steps}) == 1
        grown = records(steps[-1].folder)
        assert sorted(record["id"] for record in grown) == sorted(ids(steps[-1]))
        fingerprint = read_run(steps[-1].folder).fingerprint()
        shutil.rmtree(lab.out)
        lab.asked(steps[-1])
        assert read_run(steps[-1].folder).fingerprint() == fingerprint is not None
        by_id = {record["id"]: record for record in records(steps[-1].folder)}
        for record in grown:
            for name in ("reply", "prompt_hash", "target", "condition", "length", "index"):
                assert record[name] == by_id[record["id"]][name]

    def test_asking_for_less_takes_nothing_away(self, lab: Lab) -> None:
        """A smaller command leaves plan and answers of a larger one."""
        lab.asked(lab.wanted())
        before = read_manifest(lab.wanted().folder)
        assert lab.asked(lab.wanted(lengths=[3], samples=1)) == []
        after = read_manifest(lab.wanted().folder)
        assert after.cells == before.cells

    def test_the_fingerprint_is_of_every_sample(self, lab: Lab) -> None:
        """Whoever answers; another prompt or target gives another one, a gap gives none."""
        prints = {}
        for name, change in (("same", ""), ("prompt", "Count them. "), ("fewer", "")):
            lab.ones.write_text(ONES.replace("How many", f"{change}How many"))
            wanted = lab.wanted(model=f"scripted/{name}", samples=3 if name == "fewer" else None)
            lab.asked(wanted, lambda _request: "Final answer: 1")
            prints[name] = read_run(wanted.folder).fingerprint()
        lab.ones.write_text(ONES)
        lab.asked(lab.wanted())
        assert read_run(lab.wanted().folder).fingerprint() == prints["same"]
        assert len(set(prints.values())) == 3
        path = lab.wanted().folder / SAMPLES
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
        (lab.wanted().folder / "verdicts.json").unlink(missing_ok=True)
        assert read_run(lab.wanted().folder).fingerprint() is None


class Stopping(ScriptedProvider):
    """A right model that is gone after so many replies."""

    def __init__(self, replies: int) -> None:
        left = iter(range(replies))
        gone = StopRunError("gone")
        super().__init__(lambda request: gone if next(left, None) is None else right(request))


class TestTakingBack:
    """A plan that was widened by mistake."""

    @pytest.fixture
    def widened(self, lab: Lab) -> Lab:
        """A complete run, of which much more was asked and little of that answered."""
        lab.asked(lab.wanted())
        with pytest.raises(StopRunError):
            lab.run(lab.wanted(lengths=[3, 5, 50], samples=400), Stopping(31))
        return lab

    def test_until_then_the_wide_plan_is_what_is_missing(self, widened: Lab) -> None:
        """The same command goes on with it."""
        assert widened.bench("score", widened.the_run()).code == 1
        asked = widened.asked(widened.wanted(lengths=[3, 5, 50], samples=400))
        assert len(asked) == 3 * 2 * 400 - 16 - 31

    def test_the_first_command_makes_the_run_complete(self, widened: Lab) -> None:
        """It asks nothing, and every reader of the run finds it complete again, with what was
        answered beyond it.
        """
        before = widened.wanted()
        assert widened.asked(before) == []
        run = str(widened.the_run())
        assert len(read_run(widened.the_run()).samples) == 16 + 31
        assert widened.bench("score", run).code == 0
        table = widened.bench("leaderboard", "--out", widened.out)
        assert "left out" not in table.err
        assert "leaderboard.csv: 2 rows" in table.out

    def test_nothing_that_was_answered_is_asked_again(self, widened: Lab) -> None:
        """What is taken back comes back when it is asked for once more."""
        widened.asked(widened.wanted())
        asked = widened.asked(widened.wanted(lengths=[3, 5, 50], samples=8))
        assert len(asked) < 3 * 2 * 8 - 16
        kept = records(widened.the_run())
        assert len({record["id"] for record in kept}) == len(kept)

    def test_a_plan_between_both_is_added_to_what_was_answered(self, widened: Lab) -> None:
        """Nothing of the wide one is left but its answers."""
        between = widened.wanted(samples=12)
        widened.asked(between)
        run = read_run(widened.the_run())
        sizes = {(cell.length, cell.samples) for cell in run.manifest.cells}
        assert {(3, 12), (5, 12)} < sizes <= {(3, 12), (5, 12), *((50, n) for n in range(12))}
        assert len(run.samples) == len({record["id"] for record in records(run.folder)})

    def test_an_absurd_number_of_samples_is_refused(self, lab: Lab) -> None:
        """Before anything is written."""
        lab.asked(lab.wanted())
        before = (lab.the_run() / MANIFEST).read_bytes()
        for number in (10**12, 10**20):
            lab.bench_run("--samples", str(number)).one_line(2, "1,000,000")
        assert (lab.the_run() / MANIFEST).read_bytes() == before


class TestLongIntegers:
    """Targets of more digits than a machine's integer has."""

    TASK = """\
version: 1
title: Copy a long number
generator: long.py:row
lengths: [15, 19, 20, 40, 400]
spread: none
samples: 3
prompt: |
  Copy this number. Write "{{ phrase }}" and then the number.
  {{ sequence }}
answer: integer
"""
    ROWS = """\
from eyechart.harness.spec import Item


def row(rng, length):
    digits = [rng.choice("123456789") for _ in range(length)]
    return Item(digits, int("".join(digits)))
"""

    @pytest.fixture
    def file(self, lab: Lab) -> Path:
        """The task file."""
        (lab.folder / "lab" / "long.py").write_text(self.ROWS)
        file = lab.folder / "lab" / "long.yaml"
        file.write_text(self.TASK)
        return file

    def test_they_are_asked_once_and_judged_exactly(self, lab: Lab, file: Path) -> None:
        """The last digit decides, and a second command asks nothing."""

        def reply(request: Request) -> str:
            number = int(request.prompt.split()[-1])
            return f"Final answer: {number + (len(str(number)) == 20)}"

        assert len(lab.asked(lab.wanted(file), reply)) == 15
        assert lab.asked(lab.wanted(file), reply) == []
        assert lab.bench("score", lab.the_run()).code == 0
        rows = read_run(lab.the_run()).cells.set_index("length")
        assert list(rows["accuracy"]) == [1, 1, 0, 1, 1]
        assert rows.loc[20, "off_by_one"] == 1

    def test_every_reader_has_all_digits(self, lab: Lab, file: Path) -> None:
        """The table of errors, the record that is published, the page."""
        lab.asked(lab.wanted(file), lambda request: f"Final answer: {request.prompt.split()[-1]}")
        run = str(lab.the_run())
        targets = {str(record["target"]) for record in records(lab.the_run())}
        assert {len(target) for target in targets} == {15, 19, 20, 40, 400}
        told = ("--organization", "X", "--relationship", "third_party", "--task", file)
        assert lab.bench("export", "every-eval-ever", run, "-o", lab.folder / "e", *told).code == 0
        (published,) = (lab.folder / "e").rglob("*_samples.jsonl")
        assert all(f'"{target}"' in published.read_text() for target in targets)
        assert lab.bench("export", "lm-eval", "--task", file, "-o", lab.folder / "l").code == 0
        rows = "".join(path.read_text() for path in (lab.folder / "l").rglob("*.jsonl"))
        assert all(f'"{target}"' in rows for target in targets)
        lab.bench("score", run)
        with (lab.the_run() / "diagnosis.csv").open() as table:
            assert {row["modal_answer"] for row in csv.DictReader(table)} <= targets
        page = lab.bench("report", run, "-o", lab.folder / "r.html", "--format", "html,svg")
        assert page.code == 0, page

    def test_longer_ones_than_can_be_read_are_refused(self, lab: Lab, file: Path) -> None:
        """By 'run' as by 'tasks check', before anything is asked."""
        lab.bench_run("--lengths", "4001", task=file).one_line(2, "more than 4,000 digits")
        file.write_text(self.TASK.replace("400]", "4001]"))
        lab.bench("tasks", "check", file).one_line(2, "more than 4,000 digits", ":3:12")


class TestManifest:
    """All that made a run."""

    def test_it_says_what_made_the_run(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        """Model, task, settings, server, versions, and each command once."""
        settings = Settings(seed=3, temperature=0.5, max_tokens=40)
        wanted = lab.wanted(settings=settings)
        for arguments in (["run", "a b"], ["run", "a b"], ["run", "--samples", "9"]):
            monkeypatch.setattr(sys, "argv", ["/x/bench", *arguments])
            lab.run(wanted, Server({"engine": "e", "window": 8}))
        manifest = read_manifest(wanted.folder)
        assert (manifest.model, manifest.task) == ("scripted/test", "lab/ones")
        assert manifest.task_version == 1
        assert manifest.settings == settings
        assert manifest.server == {"engine": "e", "window": 8}
        assert {"eyechart", "python"} <= set(manifest.software)
        assert manifest.commands == ["bench run 'a b'", "bench run --samples 9"]
        assert manifest.task_spec() == wanted.plan.task.spec
        assert manifest.created <= manifest.updated


class TestNeverMixed:
    """Answers of another model, setting, task or server stay apart."""

    def refused(
        self, lab: Lab, wanted: RunRequest, *words: str, server: Server | None = None
    ) -> None:
        """Asserts that the run is refused in one line, nothing asked, nothing changed."""
        before = (wanted.folder / SAMPLES).read_bytes()
        provider = server or ScriptedProvider(right)
        with pytest.raises(JournalError) as refused:
            lab.run(wanted, provider)
        said = str(refused.value)
        assert "\n" not in said
        assert not [word for word in (*words, "fresh=True") if word not in said], said
        assert provider.requests == []
        assert (wanted.folder / SAMPLES).read_bytes() == before

    def moved(self, lab: Lab, one: RunRequest, other: RunRequest) -> RunRequest:
        """`other`, with the finished run of `one` in its place."""
        lab.asked(one)
        shutil.copytree(one.folder, other.folder)
        return other

    @pytest.mark.parametrize(
        "settings", [Settings(seed=1), Settings(temperature=0.5), Settings(max_tokens=9)]
    )
    def test_other_settings_make_another_run(self, lab: Lab, settings: Settings) -> None:
        """Everything is asked anew."""
        lab.asked(lab.wanted())
        assert len(lab.asked(lab.wanted(settings=settings))) == 16

    def test_another_model_makes_another_run(self, lab: Lab) -> None:
        """Everything is asked anew."""
        lab.asked(lab.wanted())
        assert len(lab.asked(lab.wanted(model="scripted/other"))) == 16

    def test_a_run_of_another_model_in_the_way_is_refused(self, lab: Lab) -> None:
        """As when a folder was copied by hand."""
        other = self.moved(lab, lab.wanted(), lab.wanted(model="scripted/other"))
        self.refused(lab, other, "scripted/test")

    @pytest.mark.parametrize("settings", [Settings(temperature=0.5), Settings(max_tokens=9)])
    def test_a_run_of_other_settings_in_the_way_is_refused(
        self, lab: Lab, settings: Settings
    ) -> None:
        """The manifest's settings count, not the folder's name."""
        self.refused(lab, self.moved(lab, lab.wanted(), lab.wanted(settings=settings)))

    def test_a_run_of_another_task_in_the_way_is_refused(self, lab: Lab) -> None:
        """The manifest of another task is not continued."""
        self.refused(lab, self.moved(lab, lab.wanted(lab.plain), lab.wanted()), "lab/plain")

    def test_a_changed_prompt_is_refused(self, lab: Lab) -> None:
        """A generator that draws other rows under the same version is noticed."""
        lab.asked(lab.wanted())
        rows = lab.ones.parent / "rows.py"
        rows.write_text(rows.read_text().replace('"01"', '"10"'))
        self.forget_generators()
        self.refused(lab, lab.wanted(), "version")

    def test_a_changed_target_is_refused(self, lab: Lab) -> None:
        """So is one that asks the same and wants another answer."""
        lab.asked(lab.wanted())
        rows = lab.ones.parent / "rows.py"
        rows.write_text(rows.read_text().replace('count("1")', 'count("0")'))
        self.forget_generators()
        self.refused(lab, lab.wanted(), "version")

    def forget_generators(self) -> None:
        generator.load_generator.cache_clear()
        functions.load_module.cache_clear()

    def test_another_server_is_refused(self, lab: Lab) -> None:
        """What changed is named with both values."""
        lab.run(lab.wanted(), Server({"engine": "e", "window": 8}))
        said = ("window", "8", "16")
        more = lab.wanted(samples=50)
        self.refused(lab, more, *said, server=Server({"engine": "e", "window": 16}))

    def test_a_server_that_answered_nothing_is_forgotten(self, lab: Lab) -> None:
        """A mistyped address does not spoil the run."""

        class Down(Server):
            async def complete(self, request: Request) -> Reply:
                raise AuthError(f"no access for {request.prompt!r}")

        with pytest.raises(AuthError):
            lab.run(lab.wanted(), Down({"base_url": "http://typo"}))
        lab.run(lab.wanted(), Server({"base_url": "http://right"}))
        assert read_manifest(lab.wanted().folder).server == {"base_url": "http://right"}

    def test_a_complete_run_needs_no_server(self, lab: Lab) -> None:
        """Nothing is pending, so nobody is asked who they are."""

        class Gone(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                raise SetupError("no connection")

        lab.run(lab.wanted())
        lab.run(lab.wanted(), Gone(right))

    def test_another_model_behind_the_same_name_is_refused(self, lab: Lab) -> None:
        """Its replies say who they are from, and the manifest has it from the first of them on."""

        def dying(request: Request) -> Reply | ProviderError:
            return Reply("1", model="m-2024") if request.sample_id.endswith("=0") else killed

        killed = AuthError("as good as kill -9")
        wanted = lab.wanted(lengths=[2])
        with pytest.raises(AuthError):
            lab.run(wanted, ScriptedProvider(dying), max_connections=1)
        assert read_manifest(wanted.folder).answered_by == ["m-2024"]
        before = records(wanted.folder)

        class Slow(ScriptedProvider):
            async def complete(self, request: Request) -> Reply:
                reply = await super().complete(request)
                await asyncio.sleep(0.05)  # time for a second request to be sent
                return reply

        other = Slow([Reply("1", model="m-2025")])
        with pytest.raises(StopRunError, match=r"'m-2025'.*'m-2024'"):
            lab.run(wanted, other)
        assert len(other.requests) == 1
        assert records(wanted.folder) == before
        lab.run(wanted, ScriptedProvider([Reply("1", model="m-2024")]))
        assert len(records(wanted.folder)) == wanted.plan.size

    def test_a_model_that_is_named_anew_in_every_reply(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Few of its names are said and kept; a later command goes on all the same."""
        writes: list[int] = []
        write = write_manifest

        def counted(folder: Path, manifest: Manifest) -> None:
            writes.append(1)
            write(folder, manifest)

        monkeypatch.setattr(writer, "write_manifest", counted)
        turn = iter(range(10**6))
        named = ScriptedProvider(
            lambda request: Reply(right(request), model=f"m{next(turn):04}" + "x" * 10_000)
        )
        lab.run(lab.wanted(samples=100), named)
        assert len(lab.said) == 4
        assert max(map(len, lab.said)) < 1000
        names = read_manifest(lab.wanted().folder).answered_by
        assert len(names) == 16
        assert sum(map(len, names)) == 16 * 200
        assert len(writes) < 25
        assert len(records(lab.wanted().folder)) == 400
        lab.run(lab.wanted(samples=101), named)
        assert len(records(lab.wanted().folder)) == 404

    def test_what_no_window_holds_is_not_sent(self, lab: Lab) -> None:
        """It is said before the run and recorded as overflow; replies are asked to fit the rest."""

        class Small(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                return {"max_model_len": 300}

            async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
                return list(map(len, prompts))

        provider, wanted = Small(right), lab.wanted(lengths=[2, 900], samples=2)
        lab.run(wanted, provider)
        assert {request.sample_id.split("|")[2] for request in provider.requests} == {"length=2"}
        assert all(request.max_tokens < 300 for request in provider.requests)
        kinds = [
            (one["length"], one.get("failure", {}).get("kind")) for one in records(wanted.folder)
        ]
        assert set(kinds) == {(2, None), (900, "overflow")}
        assert any("length 900" in line and "300" in line for line in lab.said)
        again = Small(right)
        lab.run(wanted, again)
        assert again.requests == []
        assert len(records(wanted.folder)) == wanted.plan.size

    def test_what_is_not_sent_counts_as_done(self, lab: Lab) -> None:
        """The progress of a run in which nothing fits is that of its whole plan."""

        class Tiny(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                return {"max_model_len": 300}

            async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
                return list(map(len, prompts))

        wanted = lab.wanted(lengths=[900], samples=2)
        running = run_task(wanted, Tiny(right), limits=RunLimits(4), warn=lab.said.append)
        progress = asyncio.run(running).progress
        assert (progress.done, progress.failed) == (wanted.plan.size, 0)

    def test_a_larger_window_asks_what_did_not_fit(self, lab: Lab) -> None:
        """Nothing was paid for it, so nothing keeps it from being asked."""

        class Counting(ScriptedProvider):
            async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
                return list(map(len, prompts))

        class Small(Counting):
            async def facts(self) -> Mapping[str, object]:
                return {"engine": "e", "max_model_len": 300 if small else None}

        small, wanted = True, lab.wanted(lengths=[900], samples=2, axes={"separator": ["none"]})
        lab.run(wanted, Small(right))
        assert [one["attempts"] for one in records(wanted.folder)] == [0, 0]
        small = False
        provider = Small(right)
        lab.run(wanted, provider)
        assert len(provider.requests) == 2

    def test_the_same_server_is_welcome(self, lab: Lab) -> None:
        """Facts are compared as JSON writes them."""
        facts: dict[str, Any] = {"engine": "e", "sizes": (1, 2), "share": 0.1}
        lab.run(lab.wanted(samples=1), Server(facts))
        server = Server(dict(reversed(facts.items())))
        lab.run(lab.wanted(), server)
        assert len(server.requests) == 12

    def test_answers_without_a_manifest_are_refused(self, lab: Lab) -> None:
        """Nobody knows what made them."""
        wanted = lab.wanted()
        lab.asked(wanted)
        (wanted.folder / MANIFEST).unlink()
        self.refused(lab, wanted, "no manifest.json")

    @pytest.mark.parametrize("content", [b"", b"null", b'{"model": "scripted/te'])
    def test_a_broken_manifest_is_refused(self, lab: Lab, content: bytes) -> None:
        """The answers stay."""
        wanted = lab.wanted()
        lab.asked(wanted)
        (wanted.folder / MANIFEST).write_bytes(content)
        with pytest.raises(JournalError, match=r"manifest\.json cannot be read"):
            lab.run(wanted)
        assert len(records(wanted.folder)) == 16

    def test_a_model_that_cannot_say_what_it_is_leaves_no_run(self, lab: Lab) -> None:
        """Facts that fail stop the run before anything is asked; later it begins as new."""

        class Down(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                raise SetupError("no server at localhost")

        down = Down(right)
        with pytest.raises(SetupError):
            lab.run(lab.wanted(), down)
        assert down.requests == []
        assert not (lab.wanted().folder / MANIFEST).exists()
        assert len(lab.asked(lab.wanted())) == 16


def test_a_second_session_is_refused_while_the_first_runs(lab: Lab) -> None:
    """Two tasks of one process cannot write one run either."""
    wanted = lab.wanted()
    refused: list[str] = []

    class Nosy(ScriptedProvider):
        async def complete(self, request: Request) -> Reply:
            if not refused:
                limits = RunLimits()
                with pytest.raises(JournalError) as second:
                    await run_task(wanted, ScriptedProvider(right), limits=limits, warn=print)
                refused.append(str(second.value))
            return await super().complete(request)

    lab.run(wanted, Nosy(right))
    assert "is being written by process" in refused[0]
    assert len(records(wanted.folder)) == 16


def test_a_users_items_run_like_any_task(lab: Lab, tmp_path: Path) -> None:
    """Cells have as many samples as the file has items, and a resume asks nothing."""
    items = [(2, "11", 2), (2, "01", 1), (3, "111", 3)]
    (tmp_path / "lab" / "own.jsonl").write_bytes(
        b"\n".join(
            orjson.dumps({"variables": {"row": row}, "target": target, "length": length})
            for length, row, target in items
        )
    )
    own = tmp_path / "lab" / "own.yaml"
    own.write_text(
        "version: 1\ntitle: Own\nitems: own.jsonl\nanswer: integer\n"
        'prompt: |\n  How many ones? Write "{{ phrase }}" and it.\n  {{ row }}\n'
    )
    wanted = lab.wanted(own)
    assert len(lab.asked(wanted)) == 3
    assert lab.asked(wanted) == []
    cells = read_manifest(wanted.folder).cells
    assert [(cell.length, cell.samples) for cell in cells] == [(2, 2), (3, 1)]


def test_half_a_character_in_a_models_name_is_the_same_model_again(lab: Lab) -> None:
    """The name in the manifest equals the one that the next reply brings, so that a run goes on."""

    def named(request: Request) -> Reply:
        return Reply(right(request), model="m \ud83d")

    lab.run(lab.wanted(samples=1), ScriptedProvider(named))
    lab.run(lab.wanted(samples=2), ScriptedProvider(named))
    wanted = lab.wanted(samples=2)
    assert len(records(wanted.folder)) == wanted.plan.size
    assert read_manifest(wanted.folder).answered_by == ["m \ufffd"]
