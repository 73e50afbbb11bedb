"""`bench run --shard`: which rows are asked, where they are kept, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import orjson
import pytest
from filelock import FileLock

import eyechart
from eyechart.harness.analysis.judged_run import read_run
from eyechart.harness.errors import UsageError
from eyechart.harness.journal.manifest import find_runs, read_manifest, shards_of, unmerged_shards
from eyechart.harness.plan.plan import plan
from eyechart.harness.run.batch import batch_run, context, engine
from eyechart.harness.run.batch.files import run_tag
from eyechart.harness.settings.shard import WHOLE, Shard
from eyechart.harness.task.catalogue import open_task
from eyechart.providers.base import BadRequestError, Request
from eyechart.providers.scripted import ScriptedProvider
from tests.batch_server import BatchServer
from tests.conftest import records, right
from tests.faulty_server import serving

if TYPE_CHECKING:
    from tests.conftest import Lab


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
        """In a folder in that of the run, complete with exit code 0; no table misses the rest."""
        provider = ScriptedProvider(right)
        done = lab.bench_run("--model", lab.fake(provider), "--shard", "2/3")
        assert (done.code, done.err) == (0, "")
        assert len(provider.requests) == 4
        folder = lab.the_run()
        assert folder.parts[-2:] == ("shards", "2-of-3")
        assert {record["index"] for record in records(folder)} == {1}
        assert read_manifest(folder).shard == "2/3"
        judged = read_run(folder)
        assert list(judged.cells["not_run"]) == [0] * 4
        assert "not scored" not in done.out
        assert judged.missing == 0
        assert done.out.splitlines()[-1] == f"next: bench merge {folder.parents[1]}"

    def test_the_run_and_its_shard_have_the_same_hash(self, lab: Lab) -> None:
        """The shard is no part of what a run is."""
        model = lab.fake(right)
        assert lab.bench_run("--model", model, "--shard", "1/2").code == 0
        (shard,) = unmerged_shards(lab.out)
        assert find_runs(lab.out) == []
        whole = lab.bench_run("--model", model, "--out", lab.folder / "whole")
        assert whole.code == 0
        (run,) = find_runs(lab.folder / "whole")
        assert run.relative_to(lab.folder / "whole") == shard.parents[1].relative_to(lab.out)

    def test_the_fingerprint_of_the_run_is_the_sum(self, lab: Lab) -> None:
        """Each shard has the sum of its own rows, so that merging needs no task."""
        model = lab.fake(right)
        for number in (1, 2, 3):
            assert lab.bench_run("--model", model, "--shard", f"{number}/3").code == 0
        manifests = [read_manifest(folder) for folder in unmerged_shards(lab.out)]
        assert lab.bench_run("--model", model, "--out", lab.folder / "whole").code == 0
        (run,) = find_runs(lab.folder / "whole")
        for cells in zip(read_manifest(run).cells, *(one.cells for one in manifests), strict=True):
            whole, *parts = (cell.fingerprint for cell in cells)
            assert None not in parts
            assert whole == sum(part or 0 for part in parts) % 2**256

    def test_it_continues_and_grows(self, lab: Lab) -> None:
        """The same command asks nothing again, and more samples only the new rows."""
        provider = ScriptedProvider(right)
        shard = ("--model", lab.fake(provider), "--shard", "2/3")
        for _ in range(2):
            assert lab.bench_run(*shard, "--samples", "4").code == 0
        assert len(provider.requests) == 4
        assert lab.bench_run(*shard, "--samples", "8").code == 0
        assert {request.sample_id[-1] for request in provider.requests} == {"1", "4", "7"}
        assert len(provider.requests) == 12

    def test_a_reply_that_is_missing_is_said(self, lab: Lab) -> None:
        """The shard is not complete before all its own rows have replies."""

        def lost(request: Request) -> str:
            if "length=5" in request.sample_id:
                raise BadRequestError("no such thing")
            return right(request)

        done = lab.bench_run("--model", lab.fake(lost), "--shard", "1/4")
        assert done.code == 1
        assert "2 samples have no reply" in done.err
        assert read_run(lab.the_run()).missing == 2

    def test_a_dry_run_counts_the_shard(self, lab: Lab) -> None:
        """Requests, answered ones and the folder are those of the shard."""
        model = lab.fake(right)
        asked = ("--model", model, "--samples", "20", "--shard", "3/16")
        (before,) = orjson.loads(lab.bench_run(*asked, "--dry-run", "--json").out)["runs"]
        assert lab.bench_run(*asked, "--lengths", "3").code == 0
        done = lab.bench_run(*asked, "--dry-run", "--json")
        (run,) = orjson.loads(done.out)["runs"]
        assert (run["requests"], run["answered"], run["shard"]) == (8, 4, "3/16")
        assert before["characters"] > run["characters"] > before["characters"] / 2
        whole = lab.bench_run("--model", model, "--samples", "20", "--dry-run", "--json")
        (of_all,) = orjson.loads(whole.out)["runs"]
        assert of_all["characters"] == 10 * before["characters"]
        assert run["folder"] == f"{of_all['folder']}/shards/03-of-16"

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

    def test_what_needs_all_replies_is_refused(self, lab: Lab) -> None:
        """An adaptive run."""
        done = lab.bench_run("--shard", "1/2", "--adaptive")
        done.one_line(2, "--shard", "--adaptive", "all replies so far")

    def test_rows_that_are_in_shards_are_not_asked_again_unseen(self, lab: Lab) -> None:
        """A command without --shard says that the shards are to be merged first."""
        provider = ScriptedProvider(right)
        model = lab.fake(provider)
        assert lab.bench_run("--model", model, "--shard", "1/2").code == 0
        done = lab.bench_run("--model", model)
        done.one_line(1, "not merged", "bench merge")
        assert len(provider.requests) == 8

    def test_a_folder_of_another_shard_is_refused(self, lab: Lab) -> None:
        """As it may have been moved by hand."""
        model = lab.fake(right)
        assert lab.bench_run("--model", model, "--shard", "1/2").code == 0
        folder = lab.the_run()
        folder.rename(folder.with_name("2-of-2"))
        done = lab.bench_run("--model", model, "--shard", "2/2")
        done.one_line(1, "holds shard 1/2", "bench merge")

    def test_fresh_moves_the_shard_alone(self, lab: Lab) -> None:
        """The other shards stay."""
        model = lab.fake(right)
        for number in (1, 2):
            assert lab.bench_run("--model", model, "--shard", f"{number}/2").code == 0
        assert lab.bench_run("--model", model, "--shard", "2/2", "--fresh").code == 0
        assert len(unmerged_shards(lab.out)) == 2
        (replaced,) = (lab.out / "replaced").rglob("2-of-2-*")
        assert len(records(replaced)) == 8

    def test_fresh_never_moves_a_shard_that_is_written(self, lab: Lab) -> None:
        """A run and its shards move together, unless a command writes to one of them."""
        model = lab.fake(right)
        assert lab.bench_run("--model", model, "--shard", "2/2").code == 0
        (shard,) = unmerged_shards(lab.out)
        with FileLock(shard / "lock", timeout=0):
            done = lab.bench_run("--model", model, "--fresh")
        done.one_line(1, str(shard), "being written")
        assert lab.bench_run("--model", model, "--fresh").code == 0
        assert shards_of(shard.parents[1]) == []

    def test_shards_are_listed_until_they_are_merged(self, lab: Lab) -> None:
        """Each with how far it is."""
        assert lab.bench_run("--model", lab.fake(right), "--shard", "1/2").code == 0
        assert "lab/ones@1 shard 1/2    8 of 8" in lab.bench("runs", "--out", lab.out).out
        (listed,) = orjson.loads(lab.bench("runs", "--out", lab.out, "--json").out)["runs"]
        assert (listed["shard"], listed["planned"]) == ("1/2", 8)

    def test_it_goes_through_batches(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only the rows of the shard are submitted, with a tag of their own."""
        for module in (engine, context):
            monkeypatch.setattr(module, "FIRST_POLL_S", 0.001)
            monkeypatch.setattr(module, "LONGEST_POLL_S", 0.001)
        monkeypatch.setattr(batch_run, "SETTLE_S", 0.0)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        with serving(BatchServer()) as server:
            place = ("--model", "my-model", "--base-url", server.base_url)
            done = lab.bench_run(*place, "--batch", "--shard", "2/4")
        assert done.code == 0, done.err
        folder = lab.the_run()
        assert {record["index"] for record in records(folder)} == {1}
        assert run_tag(lab.out, folder) != run_tag(lab.out, folder.parents[1])

    def test_python_has_it(self, lab: Lab) -> None:
        """The run of the command, without a warning of rows that are in other shards."""
        run = eyechart.run(lab.ones, lab.fake(right), shard="2/4", out=lab.out)
        assert run.folder.name == "2-of-4"
        assert run.missing == 0
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
    assert lab.bench_run("--model", lab.fake(right), "--shard", "1/1").code == 0
    assert find_runs(lab.out) == [lab.the_run()]
