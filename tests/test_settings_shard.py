"""`bench run --shard`, and runs with several journals."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import orjson
import pytest
from pandas.testing import assert_frame_equal

import eyechart
from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.errors import UsageError
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.journal.record import SAMPLES, journals
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.plan import plan
from eyechart.harness.settings.shard import WHOLE, Shard
from eyechart.harness.task import functions, generator
from eyechart.harness.task.catalogue import open_task
from eyechart.providers.base import BadRequestError, Request
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records, right

if TYPE_CHECKING:
    from tests.conftest import Lab


def _lost(request: Request) -> str:
    """Right replies at length 3, and none at length 5."""
    if "length=5" in request.sample_id:
        raise BadRequestError("no such thing")
    return right(request)


class TestRows:
    """Which rows a shard has."""

    @pytest.mark.parametrize("of", [1, 2, 3, 7, 16])
    def test_shards_share_all_rows_among_them(self, of: int) -> None:
        """Each row is in one of them: every N-th."""
        shards = [Shard(number, of) for number in range(1, of + 1)]
        rows = [list(shard.rows(20)) for shard in shards]
        assert sorted(chain(*rows)) == list(range(20))
        for shard, its in zip(shards, rows, strict=True):
            assert its == [index for index in range(20) if index % of == shard.number - 1]

    def test_the_first_row_is_in_the_first_shard(self) -> None:
        """Numbers go from 1."""
        assert list(Shard.read("1/16").rows(20)) == [0, 16]
        assert list(Shard.read("16/16").rows(20)) == [15]
        assert str(Shard.read("03/16")) == "3/16"

    @pytest.mark.parametrize(
        "text", ["0/16", "17/16", "3", "a/b", "", "3/", "-1/16", "1/0", "3/16/2", "1/16 ", "٣/16"]
    )
    def test_other_texts_are_refused(self, text: str) -> None:
        """With one line that has the text."""
        with pytest.raises(ValueError, match=r"3/16|numbered") as raised:
            Shard.read(text)
        assert repr(text) in str(raised.value)

    def test_a_plan_keeps_whole_rows(self, lab: Lab) -> None:
        """All lengths and conditions of a row are in the same shard, in the order of the plan."""
        whole = plan(open_task("lab/ones", lab.ones, trial=False), samples=7)
        parts = [replace(whole, shard=Shard(number, 3)) for number in (1, 2, 3)]
        assert [part.size for part in parts] == [12, 8, 8]
        ids = [[sample.id for sample in part] for part in parts]
        assert [len(one) for one in ids] == [12, 8, 8]
        assert ids[1] == [sample.id for sample in whole if sample.index in (1, 4)]
        assert sorted(chain(*ids)) == sorted(sample.id for sample in whole)


class TestRun:
    """`bench run --shard`."""

    def test_only_its_rows_are_asked(self, lab: Lab) -> None:
        """Into a journal of its own in the run's folder, with exit code 0; what the run lacks is
        in the table.
        """
        provider = ScriptedProvider(right)
        done = lab.bench_run("--model", lab.fake(provider), "--shard", "2/3")
        assert (done.code, done.err) == (0, "")
        assert len(provider.requests) == 4
        folder = lab.the_run()
        assert [path.name for path in journals(folder)] == ["samples-2-of-3.jsonl"]
        assert {record["index"] for record in records(folder)} == {1}
        assert list(read_run(folder).cells["not_run"]) == [3] * 4

    def test_shards_of_one_folder_are_the_run(self, lab: Lab) -> None:
        """Without another command, in any order; the whole has nothing left to ask."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        for number in (3, 1, 2):
            assert lab.bench_run("--model", model, "--shard", f"{number}/3").code == 0
        assert len(provider.requests) == 16
        folder = lab.the_run()
        table = (folder / TABLE).read_bytes()
        assert lab.bench_run("--model", model).code == 0
        assert len(provider.requests) == 16
        shutil.rmtree(lab.out)
        assert lab.bench_run("--model", model).code == 0
        assert (lab.the_run() / TABLE).read_bytes() == table

    def test_copied_files_are_the_run(self, lab: Lab) -> None:
        """Of jobs without a common disk, one over the other, whatever their journals are called."""
        model = lab.fake(right)
        for number in (1, 2):
            out = lab.folder / f"job-{number}"
            assert lab.bench_ask("--model", model, "--shard", f"{number}/2", "--out", out).code == 0
            shutil.copytree(out, lab.out, dirs_exist_ok=True)
        folder = lab.the_run()
        judged = read_run(folder, pytest.fail)
        assert (judged.missing, len(judged.samples)) == (0, 16)
        (folder / "samples-1-of-2.jsonl").rename(folder / "samples z.jsonl")
        assert_frame_equal(read_run(folder).cells, judged.cells)

    def test_a_copied_journal_may_have_other_cells(self, lab: Lab) -> None:
        """Other lengths, bands, conditions and more samples: all are the run, as if asked here."""
        lab.with_bands()
        model = lab.fake(right)
        other = ("--lengths", "4,8,20", "--samples", "6", "--axis")
        commands = (("--samples", "3"), (*other, "separator=comma,space"))
        for place, command in enumerate(commands):
            out = lab.folder / f"job-{place}"
            assert lab.bench_ask("--model", model, *command, "--out", out).code == 0
            assert lab.bench_ask("--model", model, *command).code == 0
        here, there = (find_runs(lab.folder / f"job-{place}")[0] for place in (0, 1))
        shutil.copy(there / SAMPLES, here / "samples-2.jsonl")
        assert_frame_equal(read_run(here).cells, read_run(lab.the_run()).cells)
        assert read_run(here).fingerprint() == read_run(lab.the_run()).fingerprint() is not None

    def test_an_adaptive_journal_stays_adaptive(self, lab: Lab) -> None:
        """Its records say that answers chose them, whatever the manifest is of."""
        model = lab.fake(right)
        chosen = ("--adaptive", "--axis", "separator=comma", "--max-requests", "20")
        assert lab.bench_ask("--model", model, "--axis", "separator=none").code == 0
        lab.bench_ask("--model", model, *chosen, "--out", lab.folder / "job")
        (job,) = find_runs(lab.folder / "job")
        shutil.copy(job / SAMPLES, lab.the_run() / "samples-job.jsonl")
        kinds = {
            one.condition["separator"]: one.adaptive for one in read_run(lab.the_run()).shown()
        }
        assert kinds == {"none": False, "comma": True}

    def test_the_first_reply_counts(self, lab: Lab) -> None:
        """Of several journals, whatever they are called; a failed request never does."""
        replies = iter([right, lambda _request: "Final answer: 99"])
        for out in ("early", "late"):
            answer = next(replies)
            done = lab.bench_run("--model", lab.fake(answer), "--out", lab.folder / out)
            assert done.code == 0
        early, late = (find_runs(lab.folder / out)[0] for out in ("early", "late"))
        for here, there, name in ((early, late, "samples-a"), (late, early, "samples-z")):
            copy = lab.folder / name
            shutil.copytree(here, copy)
            shutil.copy(there / SAMPLES, copy / f"{name}.jsonl")
            assert read_run(copy).cells["accuracy"].tolist() == [1.0] * 4
        lost = lab.bench_run("--model", lab.fake(_lost), "--out", lab.folder / "lost")
        assert lost.code == 1
        (folder,) = find_runs(lab.folder / "lost")
        shutil.copy(late / SAMPLES, folder / "samples-late.jsonl")
        assert read_run(folder).missing == 0

    def test_a_journal_of_another_run_is_not_counted(self, lab: Lab) -> None:
        """Another model, setting or version of the task: one line names the file."""
        model = lab.fake(right)
        assert lab.bench_run("--model", model, "--lengths", "3").code == 0
        folder = lab.the_run()
        before = (folder / TABLE).read_bytes()
        lab.plain.write_text(lab.ones.read_text().replace("version: 1", "version: 2"))
        for others in (
            ("--model", lab.model()),
            ("--model", model, "--temperature", "1"),
            ("--model", model, "--task", lab.plain),
        ):
            out = lab.folder / "other"
            assert lab.bench_run(*others, "--samples", "9", "--out", out).code == 0
            (other,) = find_runs(out)
            strange = folder / "samples-strange.jsonl"
            shutil.copy(other / SAMPLES, strange)
            shutil.rmtree(out)
            done = lab.bench("score", folder)
            assert done.code == 0
            said = [line for line in done.lines if str(strange) in line]
            assert len(said) == 1
            assert "a record of another run" in said[0]
            assert "(36 such)" in said[0]
            assert (folder / TABLE).read_bytes() == before

    def test_answers_to_other_prompts_are_refused(self, lab: Lab) -> None:
        """Where the data of a task differ and not its version, before anything is asked."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        assert lab.bench_ask("--model", model, "--shard", "1/2").code == 0
        rows = lab.ones.with_name("rows.py")
        rows.write_text(rows.read_text().replace('"01"', '"10"'))
        generator.load_generator.cache_clear()
        functions.load_module.cache_clear()
        other = lab.folder / "other"
        assert lab.bench_ask("--model", model, "--shard", "2/2", "--out", other).code == 0
        shutil.copytree(other, lab.out, dirs_exist_ok=True)
        asked = len(provider.requests)
        done = lab.bench_run("--model", model)
        done.one_line(1, "another prompt or target", "remove that journal")
        assert len(provider.requests) == asked

    def test_a_killed_shard_costs_its_last_line(self, lab: Lab) -> None:
        """Torn in the middle; the other journals are whole, and the same command goes on."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        for number in (1, 2):
            assert lab.bench_run("--model", model, "--shard", f"{number}/2").code == 0
        folder = lab.the_run()
        (folder / "verdicts.json").unlink()
        torn = folder / "samples-2-of-2.jsonl"
        torn.write_bytes(torn.read_bytes()[:-30])
        assert read_run(folder, pytest.fail).missing == 1
        done = lab.bench_run("--model", model, "--shard", "2/2")
        assert done.code == 0
        assert "removed an incomplete last line" in done.err
        assert len(provider.requests) == 17
        assert read_run(folder, pytest.fail).missing == 0

    def test_a_shard_has_one_writer(self, lab: Lab) -> None:
        """Another shard may be asked at the same time; the same one and the whole run may not."""
        model = lab.fake(right)
        assert lab.bench_ask("--model", model, "--shard", "1/2", "--lengths", "3").code == 0
        with Journal(lab.the_run(), print, "samples-1-of-2.jsonl"):
            for more in ((), ("--shard", "1/2"), ("--fresh",)):
                done = lab.bench_run("--model", model, *more)
                done.one_line(1, "samples-1-of-2.jsonl is being written by process")
            assert lab.bench_ask("--model", model, "--shard", "2/2").code == 0

    def test_it_continues_and_grows(self, lab: Lab) -> None:
        """The same command asks nothing again, and more samples only the new rows."""
        provider = ScriptedProvider(right)
        shard = ("--model", lab.fake(provider), "--shard", "2/3")
        for _ in range(2):
            assert lab.bench_ask(*shard, "--samples", "4").code == 0
        assert len(provider.requests) == 4
        assert lab.bench_ask(*shard, "--samples", "8").code == 0
        assert {request.sample_id[-1] for request in provider.requests} == {"1", "4", "7"}
        assert len(provider.requests) == 12

    def test_a_reply_that_is_missing_is_said(self, lab: Lab) -> None:
        """The shard is not complete before all its own rows have replies."""
        done = lab.bench_run("--model", lab.fake(_lost), "--shard", "1/4")
        assert done.code == 1
        assert "2 samples have no reply" in done.err

    def test_a_dry_run_counts_the_shard(self, lab: Lab) -> None:
        """Requests and answered ones are those of the shard; the folder is that of the run."""
        model = lab.fake(right)
        asked = ("--model", model, "--samples", "20", "--shard", "3/16")
        whole = lab.bench_run("--model", model, "--samples", "20", "--dry-run", "--json")
        (of_all,) = orjson.loads(whole.out)["runs"]
        (before,) = orjson.loads(lab.bench_run(*asked, "--dry-run", "--json").out)["runs"]
        assert lab.bench_ask(*asked, "--lengths", "3").code == 0
        done = lab.bench_run(*asked, "--dry-run", "--json")
        (run,) = orjson.loads(done.out)["runs"]
        assert (run["requests"], run["answered"], run["shard"]) == (8, 4, "3/16")
        assert before["characters"] > run["characters"] > before["characters"] / 2
        assert of_all["characters"] == 10 * before["characters"]
        assert run["folder"] == of_all["folder"]

    def test_a_long_plan_is_estimated_from_its_rows(self, lab: Lab) -> None:
        """The weights add up to the requests of the shard."""
        asked = ("--model", lab.model(), "--samples", "20000", "--dry-run", "--json")
        sizes = []
        for shard in ("1/1", "4/8"):
            done = lab.bench_run(*asked, "--shard", shard)
            (run,) = orjson.loads(done.out)["runs"]
            sizes.append((run["requests"], run["characters"]))
        (requests, characters), of_shard = sizes
        assert of_shard[0] == requests // 8
        assert of_shard[1] == pytest.approx(characters / 8, rel=0.01)

    def test_tasks_without_a_row_are_left_out(self, lab: Lab) -> None:
        """With a line; a shard in which no task has a row is refused."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        both = ("--model", model, "--task", f"{lab.ones},{lab.plain}", "--out", lab.out)
        done = lab.bench("run", *both, "--shard", "4/4")
        assert done.code == 0
        assert "shard 4/4 has no row of lab/plain" in done.err
        assert len(provider.requests) == 4
        refused = lab.bench("run", *both, "--shard", "5/5")
        refused.one_line(2, "--shard 5/5", "at most 4 shards")

    @pytest.mark.parametrize("other", ["--adaptive", "--tier batch", "--fresh"])
    def test_what_concerns_the_whole_run_is_refused(self, lab: Lab, other: str) -> None:
        """An adaptive run, batches and starting over."""
        done = lab.bench_run("--shard", "1/2", *other.split())
        done.one_line(2, "--shard", other, "does not go together")

    def test_python_has_it(self, lab: Lab) -> None:
        """The run of the command."""
        run = eyechart.run(lab.ones, lab.fake(right), shard="2/4", out=lab.out)
        assert {record["index"] for record in records(run.folder)} == {1}
        assert "shard='2/4'" in read_manifest(run.folder).commands[0]
        with pytest.raises(UsageError, match="5/4"):
            eyechart.run(lab.ones, lab.fake(right), shard="5/4", out=lab.out)


def test_a_number_that_no_shard_has() -> None:
    """The message says which numbers there are."""
    with pytest.raises(ValueError, match="'5/4': shards are numbered from 1 to 4"):
        Shard.read("5/4")


def test_one_shard_of_one_is_the_run(lab: Lab) -> None:
    """It has no folder of its own."""
    assert Shard.read("1/1") == WHOLE
    assert lab.bench_ask("--model", lab.fake(right), "--shard", "1/1").code == 0
    assert find_runs(lab.out) == [lab.the_run()]
