"""`bench merge`: shards and parts of runs become one run, and what does not belong is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from filelock import FileLock

from eyechart.harness.analysis.judged_run import read_run
from eyechart.harness.analysis.results import DIAGNOSES, EFFECTIVE_LENGTHS, TABLE
from eyechart.harness.face.listing import list_runs
from eyechart.harness.journal import merge as merging
from eyechart.harness.journal.manifest import MANIFEST, find_runs, read_manifest
from eyechart.harness.journal.record import SAMPLES
from eyechart.providers.base import BadRequestError, Reply, Request, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records

if TYPE_CHECKING:
    from tests.conftest import Done, Lab

TABLES = (TABLE, EFFECTIVE_LENGTHS, DIAGNOSES, "verdicts.json")
WRONG = "Final answer: 77"


def near(request: Request) -> Reply:
    """Miscounts rows that end in a zero; says how many tokens it took."""
    row = request.prompt.splitlines()[-1]
    off = row.endswith("0")
    return Reply(f"Final answer: {row.count('1') + off}", usage=Usage(len(row), 3), model="near")


def shards(lab: Lab, of: int, *more: str, script: Callable[[Request], Any] = near) -> list[Path]:
    """The folders of all shards of the lab's run, asked one after another."""
    for number in range(1, of + 1):
        done = lab.bench_run("--model", lab.fake(script), "--shard", f"{number}/{of}", *more)
        assert done.code == 0, done.err
    (run,) = {path.parents[2] for path in (lab.out / "runs").rglob(MANIFEST)}
    return sorted(run.glob("shards/*"))


def whole(lab: Lab, *more: str, script: Callable[[Request], Any] = near) -> Path:
    """The folder of the same run, asked by one command."""
    out = lab.folder / "whole"
    assert lab.bench_run("--model", lab.fake(script), "--out", out, *more).code == 0
    (run,) = find_runs(out)
    return run


def merged(lab: Lab, *folders: Path) -> tuple[Done, Path]:
    """`bench merge` into a new folder, and the only run there."""
    out = lab.folder / "merged"
    done = lab.bench("merge", *folders, "-o", out)
    assert done.code in (0, 1), done.err
    (run,) = find_runs(out)
    return done, run


def content(folder: Path) -> dict[str, bytes]:
    """The files of a run, but for locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock" and "shards" not in path.parts
    }


def change(folder: Path, **fields: object) -> None:
    """Changes fields of a run's manifest."""
    path = folder / MANIFEST
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | fields))


def rewrite(folder: Path, edit: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    """Changes every record of a journal."""
    lines = [orjson.dumps(edit(record)) for record in records(folder)]
    (folder / SAMPLES).write_bytes(b"\n".join(lines) + b"\n")


class TestShards:
    """All shards of a run."""

    def test_merged_they_are_the_run(self, lab: Lab) -> None:
        """The tables have the bytes of one run, the manifest its plan and its fingerprint."""
        parts = shards(lab, 3, "--samples", "10", "--spread", "bands")
        one = whole(lab, "--samples", "10", "--spread", "bands")
        done, run = merged(lab, *parts)
        assert done.code == 0
        for name in TABLES:
            assert (run / name).read_bytes() == (one / name).read_bytes(), name
        ours, theirs = read_manifest(run), read_manifest(one)
        assert ours.fingerprint == theirs.fingerprint is not None
        assert sorted(cell.line for cell in ours.cells) == sorted(
            cell.line for cell in theirs.cells
        )
        assert (ours.shard, ours.kept, ours.server) == ("", theirs.kept, theirs.server)
        assert len(records(run)) == 40
        assert sum(record["prompt_tokens"] for record in records(run)) == sum(
            record["prompt_tokens"] for record in records(one)
        )
        assert run.relative_to(lab.folder / "merged") == one.relative_to(lab.folder / "whole")

    def test_without_o_the_run_is_where_the_shards_are(self, lab: Lab) -> None:
        """And a command without --shard then asks nothing, and grows it."""
        parts = shards(lab, 2)
        done = lab.bench("merge", lab.out)
        assert done.code == 0
        assert find_runs(lab.out) == [parts[0].parents[1]]
        provider = ScriptedProvider(near)
        assert lab.bench_run("--model", lab.fake(provider)).code == 0
        assert provider.requests == []
        assert lab.bench_run("--model", lab.fake(provider), "--samples", "5").code == 0
        assert {request.sample_id[-1] for request in provider.requests} == {"4"}
        assert "--shard" not in "".join(read_manifest(parts[0].parents[1]).commands)

    def test_merging_again_changes_nothing(self, lab: Lab) -> None:
        """Not a byte; from the shards, from the run, and from both."""
        parts = shards(lab, 2)
        _, run = merged(lab, *parts)
        before = content(run)
        for folders in (parts, [*parts, run], [lab.out]):
            done, _ = merged(lab, *folders)
            assert "nothing is new" in done.err
            assert content(run) == before

    def test_a_shard_that_is_not_there_is_named(self, lab: Lab) -> None:
        """The merged run lacks its samples; merged later, they complete it."""
        parts = shards(lab, 4)
        done, run = merged(lab, *parts[:2])
        assert done.code == 1
        assert "8 of 16 samples have no reply; these shards are not there: 3/4, 4/4" in done.err
        assert read_manifest(run).fingerprint is None
        assert read_run(run).missing == 8
        done, run = merged(lab, *parts[2:])
        assert done.code == 0
        one = whole(lab)
        assert (run / TABLE).read_bytes() == (one / TABLE).read_bytes()
        _, run = merged(lab, *parts)  # the sum of all rows follows from shards that are together
        assert read_manifest(run).fingerprint == read_manifest(one).fingerprint

    def test_a_shard_that_grew_is_not_asked_again_unseen(self, lab: Lab) -> None:
        """The command without --shard wants it merged; it is listed until then."""
        parts = shards(lab, 2)
        provider = ScriptedProvider(near)
        model = lab.fake(provider)
        assert lab.bench("merge", lab.out).code == 0
        assert [one.shard for one in list_runs(lab.out, pytest.fail)] == [""]
        more = ("--model", model, "--samples", "6")
        assert lab.bench_run(*more, "--shard", "1/2").code == 0
        assert [one.shard for one in list_runs(lab.out, pytest.fail)] == ["", "1/2"]
        asked = len(provider.requests)
        lab.bench_run(*more).one_line(1, "shards that are not merged (1)", "bench merge")
        assert lab.bench("merge", parts[0].parents[1]).code == 1
        assert lab.bench_run(*more).code == 0
        assert len(provider.requests) - asked == 4  # row 5 of each of four lengths

    def test_a_merge_that_was_killed_is_to_be_made_again(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the plan and the replies: no reply is asked again."""
        parts = shards(lab, 2)
        provider = ScriptedProvider(near)

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as broken:
            broken.setattr(merging._Lines, "copy", killed)
            assert lab.bench("merge", lab.out).code != 0
        assert read_manifest(parts[0].parents[1]).cells
        done = lab.bench_run("--model", lab.fake(provider))
        done.one_line(1, "shards that are not merged (2)", "bench merge")
        assert lab.bench("merge", lab.out).code == 0
        assert lab.bench_run("--model", lab.fake(provider)).code == 0
        assert provider.requests == []

    def test_a_folder_between_is_searched(self, lab: Lab) -> None:
        """As that of a model, which has the folders of its runs."""
        parts = shards(lab, 2)
        assert lab.bench("merge", lab.out / "runs").code == 0
        assert find_runs(lab.out) == [parts[0].parents[1]]

    def test_a_shard_without_its_manifest_is_named(self, lab: Lab) -> None:
        """It is not called absent: its replies may be paid for."""
        parts = shards(lab, 2)
        (parts[1] / MANIFEST).unlink()
        for folder in (lab.out, parts[0].parents[1], lab.out / "runs"):
            done = lab.bench("merge", folder)
            assert done.code == 1
            assert f"left out: {parts[1]} has replies but no {MANIFEST}" in done.err
            assert "not there" not in done.err

    def test_a_shard_may_be_of_another_number(self, lab: Lab) -> None:
        """Shards need not be of one division, as long as all rows are there."""
        model = lab.fake(near)
        for shard in ("1/2", "2/4", "4/4"):
            assert lab.bench_run("--model", model, "--shard", shard).code == 0
        done, run = merged(lab, lab.out)
        assert done.code == 0
        assert (run / TABLE).read_bytes() == (whole(lab) / TABLE).read_bytes()
        assert read_manifest(run).fingerprint is None  # until a command makes the samples
        again = lab.bench_run("--model", model, "--out", lab.folder / "merged")
        assert again.code == 0
        assert read_manifest(run).fingerprint is not None

    def test_many_runs_under_one_folder(self, lab: Lab) -> None:
        """Each run is merged by itself; those without shards are left in place."""
        for task in (lab.ones, lab.plain):
            for number in (1, 2):
                shard = ("--model", lab.fake(near), "--shard", f"{number}/2")
                assert lab.bench_run(*shard, task=task).code == 0
        assert lab.bench_run("--model", lab.fake(near), task=lab.echo).code == 0
        done = lab.bench("merge", lab.out, "--json")
        assert done.code == 0
        documents = orjson.loads(done.out)["runs"]
        assert [one["task"] for one in documents] == ["lab/ones", "lab/plain"]
        assert [one["missing"] for one in documents] == [0, 0]
        assert all((Path(one["folder"]) / TABLE).is_file() for one in documents)

    def test_jobs_with_folders_of_their_own(self, lab: Lab) -> None:
        """As a CI matrix has them: -o is needed, and said to be."""
        outs = [lab.folder / f"job-{number}" for number in (1, 2)]
        for number, out in enumerate(outs, start=1):
            model = lab.fake(near)
            assert lab.bench_run("--model", model, "--shard", f"{number}/2", "--out", out).code == 0
        lab.bench("merge", *outs).one_line(2, "is in 2 folders", "-o FOLDER")
        done, run = merged(lab, *outs)
        assert done.code == 0
        assert (run / TABLE).read_bytes() == (whole(lab) / TABLE).read_bytes()

    def test_answers_of_an_earlier_adaptive_plan_are_kept(self, lab: Lab) -> None:
        """The next adaptive run of the merged one has them."""
        outs = [lab.folder / f"job-{number}" for number in (1, 2)]
        full = ("--model", lab.fake(near), "--spread", "bands")
        lab.bench_run(*full, "--adaptive", "--precision", "0.4", "--samples", "6", "--out", outs[1])
        for out in outs:
            assert lab.bench_run(*full, "--samples", "2", "--out", out).code == 0
        _, run = merged(lab, *outs)
        (second,) = find_runs(outs[1])
        assert read_manifest(run).former == read_manifest(second).former != []


class TestRecords:
    """Which record of a sample is kept."""

    def test_a_reply_replaces_a_failed_request(self, lab: Lab) -> None:
        """In either order of the folders; two failed requests stay one."""

        def half(request: Request) -> Reply:
            if "length=5" in request.sample_id:
                raise BadRequestError("not now")
            return near(request)

        first = lab.bench_run("--model", lab.fake(half))
        assert first.code == 1
        (lame,) = find_runs(lab.out)
        sound = whole(lab)
        done, run = merged(lab, lame, sound)
        assert done.code == 0
        assert "8 failed requests have a reply in another folder" in done.err
        assert (run / TABLE).read_bytes() == (sound / TABLE).read_bytes()
        shutil.rmtree(lab.folder / "merged")
        done, run = merged(lab, lame)
        assert done.code == 1
        assert len(records(run)) == 16

    def test_of_different_replies_the_first_in_time_is_kept(self, lab: Lab) -> None:
        """Whichever folder is named first; how many there are is said."""
        early = whole(lab)
        assert lab.bench_run("--model", lab.fake(near)).code == 0
        (late,) = find_runs(lab.out)
        rewrite(
            late, lambda one: one | ({"reply": WRONG} if one["index"] == 2 else {}) | {"at": 9e9}
        )
        for number, folders in enumerate(((early, late), (late, early))):
            out = lab.folder / f"both-{number}"
            done = lab.bench("merge", *folders, "-o", out)
            assert "4 samples have different replies in several folders" in done.err
            (run,) = find_runs(out)
            assert sorted(records(run), key=str) == sorted(records(early), key=str)

    def test_of_several_replies_in_one_journal_the_last_counts(self, lab: Lab) -> None:
        """As in the tables of the run itself."""
        run = whole(lab)
        again = [one | {"reply": WRONG} for one in records(run) if one["index"] == 1]
        with (run / SAMPLES).open("ab") as file:
            file.writelines(orjson.dumps(one) + b"\n" for one in again)
        assert lab.bench("score", run).code == 0
        _, joined = merged(lab, run)
        assert (joined / TABLE).read_bytes() == (run / TABLE).read_bytes()
        assert len(records(joined)) == 16

    def test_torn_and_unreadable_lines(self, lab: Lab) -> None:
        """A torn last line is passed over, a broken one is named, and a record that lacks its line
        end is kept.
        """
        first, second, third = shards(lab, 3)
        journal = first / SAMPLES
        journal.write_bytes(journal.read_bytes() + b'{"id":"lab/on')
        journal = second / SAMPLES
        journal.write_bytes(b"gibberish\n" + journal.read_bytes())
        journal = third / SAMPLES
        journal.write_bytes(journal.read_bytes().removesuffix(b"\n"))
        done, run = merged(lab, first, third, second)
        assert done.code == 0
        assert f"{second / SAMPLES}:1: not a record" in done.err
        assert len(records(run)) == 16

    def test_samples_that_left_the_plan_are_kept(self, lab: Lab) -> None:
        """A command that asks for them again finds them."""
        run = whole(lab)
        cells = orjson.loads((run / MANIFEST).read_bytes())["cells"]
        change(run, cells=cells[:2], completed=[])
        _, joined = merged(lab, run)
        assert len(records(joined)) == 16


class TestRefused:
    """What does not belong together, each with one line that names the difference."""

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            (("--seed", "1"), ("the setting seed is 0 and 1",)),
            (("--label", "bf16"), ("the model is 'fake/model' and 'fake/model@bf16'",)),
            (("--max-tokens", "9"), ("the setting max_tokens is None and 9",)),
        ],
    )
    def test_other_runs(self, lab: Lab, more: tuple[str, ...], words: tuple[str, ...]) -> None:
        """Named one by one; under one --out they are runs of their own."""
        first = whole(lab)
        assert lab.bench_run("--model", lab.fake(near), *more).code == 0
        (second,) = find_runs(lab.out)
        target = lab.folder / "merged"
        done = lab.bench("merge", first, second, "-o", target)
        done.one_line(1, str(first), str(second), *words)
        assert not target.exists()
        assert lab.bench("merge", lab.folder / "whole", lab.out, "-o", target).code == 0
        assert len(find_runs(target)) == 2

    def test_another_task_or_version(self, lab: Lab) -> None:
        """Also one whose file was changed and not its version."""
        first = whole(lab)
        assert lab.bench_run("--model", lab.fake(near), task=lab.plain).code == 0
        done = lab.bench("merge", first, *find_runs(lab.out), "-o", lab.folder / "merged")
        done.one_line(1, "the task is 'lab/ones' and 'lab/plain'")
        shutil.rmtree(lab.out)
        lab.ones.write_text(lab.ones.read_text().replace("How many ones?", "Count the ones."))
        assert lab.bench_run("--model", lab.fake(near)).code == 0
        done = lab.bench("merge", first, *find_runs(lab.out), "-o", lab.folder / "merged")
        done.one_line(1, "the task 'lab/ones' was changed between them")

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"server": {"engine": "b"}}, "engine is 'scripted' and 'b'"),
            ({"answered_by": ["other"]}, "was answered by 'near', and"),
            ({"kept": f"{'0' * 16}-rows.py"}, "the file that makes their items has changed"),
            ({"adaptive": [{"separator": "none"}]}, "adaptive run chooses its samples"),
        ],
    )
    def test_other_parts_of_the_run(self, lab: Lab, fields: dict[str, object], words: str) -> None:
        """Another server or model, other code, samples chosen by replies."""
        first, second = shards(lab, 2)
        for folder in (first, second):
            change(folder, server={"engine": "scripted", "base_url": [str(folder)]})
        change(second, **fields)
        target = lab.folder / "merged"
        done = lab.bench("merge", first, second, "-o", target)
        done.one_line(1, str(first), str(second), words)
        assert not target.exists()

    def test_servers_of_the_jobs_may_have_their_addresses(self, lab: Lab) -> None:
        """The merged run has all of them."""
        first, second = shards(lab, 2)
        change(first, server={"engine": "openai", "base_url": ["http://b/v1"]})
        change(second, server={"engine": "openai", "base_url": ["http://a/v1"]})
        _, run = merged(lab, first, second)
        server = {"engine": "openai", "base_url": ["http://a/v1", "http://b/v1"]}
        assert read_manifest(run).server == server

    def test_other_data(self, lab: Lab) -> None:
        """Sums of the same rows that differ, and another prompt of the same sample."""
        first, second = whole(lab), lab.folder / "copy"
        shutil.copytree(first, second)
        cells = orjson.loads((second / MANIFEST).read_bytes())["cells"]
        change(second, cells=[cell | {"sum": "f" * 64} for cell in cells])
        done = lab.bench("merge", first, second, "-o", lab.folder / "merged")
        done.one_line(1, str(first), str(second), "the data of their task differ")
        change(second, cells=[cell | {"sum": None} for cell in cells])
        rewrite(second, lambda one: one | {"prompt_hash": "abc"})
        done = lab.bench("merge", first, second, "-o", lab.folder / "merged")
        done.one_line(1, str(first), str(second), "their prompts or targets of lab/ones@1|")
        assert not (lab.folder / "merged").exists()

    def test_recorded_and_asked(self, lab: Lab) -> None:
        """They never mix, nor do replies that were recorded in other files."""
        first, second = whole(lab), lab.folder / "copy"
        shutil.copytree(first, second)
        file = {"name": "a", "sha256": "0" * 64, "size": 1, "source": 0, "by": "me", "at": "2026"}
        change(second, recorded={"files": [file]})
        done = lab.bench("merge", first, second, "-o", lab.folder / "merged")
        done.one_line(1, "the origin is 'asked' and 'recorded'")
        change(first, recorded={"files": [file | {"by": "you"}]})
        done = lab.bench("merge", first, second, "-o", lab.folder / "merged")
        done.one_line(1, "recorded in other files", "bench import")

    def test_what_is_no_run(self, lab: Lab) -> None:
        """An empty folder, none at all, and a run without shards."""
        run = whole(lab)
        (lab.folder / "empty").mkdir()
        for name in ("empty", "nowhere"):
            lab.bench("merge", lab.folder / name).one_line(1, f"no run in {lab.folder / name}")
        lab.bench("merge", run / SAMPLES).one_line(1, f"no run in {run / SAMPLES}: it is a file")
        lab.bench("merge", run).one_line(2, f"nothing to merge in {run}")


class TestTarget:
    """The folder of the merged run."""

    def test_a_run_that_is_written_is_refused(self, lab: Lab) -> None:
        """And a part that is written is said, since it may get more replies."""
        first, second = shards(lab, 2)
        _, run = merged(lab, first)
        with FileLock(run / "lock", timeout=0):
            done = lab.bench("merge", second, "-o", lab.folder / "merged")
            done.one_line(1, str(run), "being written")
        with FileLock(second / "lock", timeout=0):
            done, _ = merged(lab, second)
        assert f"{second} is being written; merge again" in done.err

    def test_a_merge_that_fails_leaves_nothing_half(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A full disk in the middle of the journal; the next merge completes the run."""
        first, second = shards(lab, 2)
        _, run = merged(lab, first)
        before = (run / SAMPLES).read_bytes()

        def fails(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(merging._Lines, "copy", fails)
            done = lab.bench("merge", second, "-o", lab.folder / "merged")
        done.one_line(1, "cannot write", "No space left on device")
        assert (run / SAMPLES).read_bytes() == before
        assert [path.name for path in run.glob("*.tmp")] == []
        assert lab.bench("score", run).code == 1  # incomplete, and sound
        merged(lab, second)
        assert len(records(run)) == 16

    def test_what_a_killed_merge_left_is_removed(self, lab: Lab) -> None:
        """Its partial journal."""
        first, second = shards(lab, 2)
        _, run = merged(lab, first)
        gone = run / f"{SAMPLES}.4194304.tmp"  # above the largest id of a process
        gone.write_bytes(b"{")
        merged(lab, second)
        assert not gone.exists()

    def test_a_batch_under_way_is_said(self, lab: Lab) -> None:
        """Its replies are not there yet."""
        first, second = shards(lab, 2)
        (first / "batches.json").write_text("[]")
        done, _ = merged(lab, first, second)
        assert f"{first} has a batch under way" in done.err

    def test_answers_without_a_manifest_are_refused(self, lab: Lab) -> None:
        """They may be of any run."""
        first, second = shards(lab, 2)
        _, run = merged(lab, first)
        (run / MANIFEST).unlink()
        done = lab.bench("merge", second, "-o", lab.folder / "merged")
        done.one_line(1, str(run), f"no {MANIFEST}")
