"""`bench export batch` and `bench import`: out into files, back from files, the same table."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.cli.work import batch
from eyechart.harness.cli.work.batch import import_replies
from eyechart.harness.face.options.run_options import models_of
from eyechart.harness.journal.kept import KEPT, content_hash
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.journal.writer import Journal
from eyechart.harness.plan.plan import plan
from eyechart.harness.run.batch.files import FileLimits
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.task import functions, generator
from eyechart.harness.task.catalogue import built_in_files, open_task
from tests.batch_server import right
from tests.conftest import records
from tests.fake_server import Response, chat, fake_server

if TYPE_CHECKING:
    from tests.conftest import Done, Lab

Reply = dict[str, Any]
Script = Callable[[dict[str, Any]], Reply]


def answered(line: Mapping[str, Any]) -> Reply:
    """The right reply to a line of requests."""
    body = line["body"]
    said = chat(right(body))
    if "prompt" in body:
        said["choices"] = [{"index": 0, "text": right(body), "finish_reason": "stop"}]
    return reply(line, status=200, body=said)


def reply(line: Mapping[str, Any], *, status: int, body: object, error: object = None) -> Reply:
    """A line of replies."""
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "x", "custom_id": line["custom_id"], "response": response, "error": error}


def left_out(line: Mapping[str, Any], code: str = "batch_expired") -> Reply:
    """What OpenAI says of a request that it never came to."""
    error = {"code": code, "message": "too late"}
    return {"id": "x", "custom_id": line["custom_id"], "response": None, "error": error}


def export(lab: Lab, *arguments: str | Path, task: str | Path | None = None) -> Done:
    """`bench export batch` of the lab's task, into `requests.jsonl`."""
    command: list[str | Path] = ["export", "batch", "--task", task or lab.ones, *arguments]
    if "--model" not in arguments:
        command += ["--model", "my-model"]
    return lab.bench(*command, "-o", lab.folder / "requests.jsonl", "--out", lab.out)


def requests(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of requests."""
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def write(path: Path, lines: Sequence[Reply]) -> Path:
    """A file of replies."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def answer_all(lab: Lab, script: Script = answered) -> Path:
    """Replies to `requests.jsonl`, in the opposite order."""
    asked = requests(lab.folder / "requests.jsonl")
    return write(lab.folder / "replies.jsonl", [script(line) for line in reversed(asked)])


def take(lab: Lab, *files: Path, more: Sequence[str | Path] = ()) -> Done:
    """`bench import` with the lab's tasks, unless `more` names others."""
    named = (
        ()
        if {"--task", "--run-kept-code"} & set(map(str, more))
        else ("--task", lab.folder / "lab")
    )
    return lab.bench("import", *files, "--out", lab.out, *named, *more)


def tables(out: Path) -> dict[str, bytes]:
    """The tables of all runs in `out`."""
    found = {str(p.relative_to(out)): p.read_bytes() for p in (out / "runs").rglob("*.csv")}
    assert found
    return found


def direct(lab: Lab, *arguments: str | Path, task: Path | None = None) -> dict[str, bytes]:
    """The tables of a direct run with the same replies."""

    def answer(asked: Any, _number: int) -> Response:
        return Response(body=answered({"custom_id": "", "body": asked.body})["response"]["body"])

    with fake_server(answer) as server:
        place = ("--model", "openai/my-model", "--base-url", server.base_url)
        done = lab.bench_run(*place, *arguments, "--out", lab.folder / "direct", task=task)
    assert done.code == 0
    return tables(lab.folder / "direct")


class TestRoundTrip:
    """Out and back."""

    @pytest.mark.parametrize("how", [(), ("--api", "completions"), ("--system", "Be brief.")])
    def test_the_table_is_that_of_a_direct_run(self, lab: Lab, how: tuple[str, ...]) -> None:
        """Whatever the order of the replies."""
        done = export(lab, *how)
        assert (done.code, done.out) == (0, f"{lab.folder / 'requests.jsonl'}\n")
        assert done.err == "16 requests; 'bench import' takes the replies, with the same --task\n"
        done = take(lab, answer_all(lab))
        assert done.code == 0
        assert done.err == "16 new answers, 0 without a reply, 0 known before\n"
        assert done.out.startswith("lab/ones  openai/my-model\n")
        assert tables(lab.out) == direct(lab, *how)
        manifest = read_manifest(lab.the_run())
        assert manifest.answered_by == ["fake-model-1"]
        assert manifest.commands[-1].startswith("bench export batch")

    def test_several_tasks_are_in_one_file(self, lab: Lab) -> None:
        """And come apart again, each into its own run."""
        assert export(lab, task=lab.folder / "lab").code == 0
        assert len(requests(lab.folder / "requests.jsonl")) == 16 + 3 + 4
        assert take(lab, answer_all(lab)).code == 0
        assert tables(lab.out) == direct(lab, task=lab.folder / "lab")

    def test_the_same_file_again_changes_nothing(self, lab: Lab) -> None:
        """Neither answers nor failures are written twice."""
        export(lab)
        odd = {line["custom_id"] for line in requests(lab.folder / "requests.jsonl")[::2]}
        file = answer_all(lab, lambda x: left_out(x) if x["custom_id"] in odd else answered(x))
        first = take(lab, file)
        before = records(lab.the_run())
        again = take(lab, file)
        assert first.code == again.code == 1
        assert records(lab.the_run()) == before
        assert "0 new answers, 0 without a reply, 16 known before" in again.err

    def test_a_reply_with_all_of_its_tokens_was_cut_off(self, lab: Lab) -> None:
        """Whatever its server says of it."""
        export(lab)

        def full(line: dict[str, Any]) -> Reply:
            said = chat("Final answer: 1")
            most = line["body"]["max_completion_tokens"]
            said["usage"] = {"prompt_tokens": 11, "completion_tokens": most}
            return reply(line, status=200, body=said)

        take(lab, answer_all(lab, full))
        assert read_run(lab.the_run()).cells["truncated"].sum() == 16

    def test_a_newer_reason_is_kept(self, lab: Lab) -> None:
        """What a sample failed of last is what counts."""
        export(lab)
        for code in ("batch_expired", "batch_cancelled"):
            done = take(lab, answer_all(lab, partial(left_out, code=code)))
            assert f"16 failed (the last: {code}" in done.err
        assert len(records(lab.the_run())) == 32
        assert "batch_cancelled" in records(lab.the_run())[-1]["failure"]["message"]

    def test_the_same_failure_twice_in_a_file_is_written_once(self, lab: Lab) -> None:
        """And another reason for it is written too."""
        export(lab)
        first = requests(lab.folder / "requests.jsonl")[0]
        lines = [left_out(first), left_out(first), left_out(first, "batch_cancelled")]
        done = take(lab, write(lab.folder / "replies.jsonl", lines))
        assert "0 new answers, 2 without a reply, 1 known before" in done.err
        messages = [record["failure"]["message"] for record in records(lab.the_run())]
        assert messages == ["batch_expired: too late", "batch_cancelled: too late"]

    @pytest.mark.parametrize("code", ["context_length_exceeded", "content_filter"])
    def test_the_same_refusal_twice_in_a_file_is_written_once(self, lab: Lab, code: str) -> None:
        """It is an answer like any other."""
        export(lab)
        first = requests(lab.folder / "requests.jsonl")[0]
        refusal = reply(first, status=400, body={"error": {"message": "no", "code": code}})
        done = take(lab, write(lab.folder / "replies.jsonl", [refusal, refusal, answered(first)]))
        assert "1 new answers, 0 without a reply, 2 known before" in done.err
        assert len(records(lab.the_run())) == 1

    def test_requests_are_no_replies(self, lab: Lab) -> None:
        """The wrong file is told from the right one, and nothing is written."""
        export(lab)
        done = take(lab, lab.folder / "requests.jsonl")
        assert done.code == 1
        assert "requests.jsonl:1: the line is a request, not a reply (16 such)" in done.err
        assert records(lab.the_run()) == []

    def test_only_what_has_no_answer_is_exported(self, lab: Lab) -> None:
        """After an import, after a direct run, and in more samples of the same run."""
        export(lab)
        asked = requests(lab.folder / "requests.jsonl")
        half = write(lab.folder / "half.jsonl", [answered(line) for line in asked[:10]])
        assert take(lab, half).code == 1
        done = export(lab)
        assert "6 requests; 10 samples need none" in done.err
        assert requests(lab.folder / "requests.jsonl") == asked[10:]
        assert take(lab, answer_all(lab)).code == 0
        said, old = export(lab).err.splitlines()
        assert said == "nothing to ask: all 16 samples have an answer or can have none"
        assert old.endswith(
            "requests.jsonl comes from an earlier export: its samples need no request"
        )
        assert "16 requests; 16 samples need none" in export(lab, "--samples", "8").err

    def test_direct_runs_go_on_where_an_import_stopped(self, lab: Lab) -> None:
        """One run, whoever asked."""
        export(lab)
        asked = requests(lab.folder / "requests.jsonl")
        take(lab, write(lab.folder / "half.jsonl", [answered(line) for line in asked[:10]]))

        def answer(one: Any, _number: int) -> Response:
            return Response(body=chat(right(one.body)))

        with fake_server(answer) as server:
            done = lab.bench_run("--model", "openai/my-model", "--base-url", server.base_url)
        assert done.code == 0
        assert len([one for one in server.asked if one.body]) == 6
        assert take(lab, answer_all(lab)).code == 0
        assert tables(lab.out) == direct(lab)

    def test_built_in_tasks_need_no_file(self, lab: Lab) -> None:
        """Made again from their names."""
        done = export(lab, "--lengths", "5", "--samples", "2", task="counting/ones")
        assert done.code == 0
        assert take(lab, answer_all(lab)).code == 0
        assert read_manifest(lab.the_run()).file == ""

    def test_what_no_window_holds_is_recorded_and_not_exported(self, lab: Lab) -> None:
        """As a direct run does."""
        models = lab.folder / "models.yaml"
        models.write_text("openai/my-model: {window: 20}\n")
        lab.monkeypatch.setenv("EYECHART_MODELS", str(models))
        done = export(lab, "--lengths", "3,9999", "--samples", "1")
        assert "at length 9999" in done.err
        assert len(requests(lab.folder / "requests.jsonl")) == 2
        kinds = [one["failure"]["kind"] for one in records(lab.the_run())]
        assert kinds == ["overflow", "overflow"]
        assert take(lab, answer_all(lab)).code == 0


class TestMissing:
    """What an import says of what it lacks."""

    def test_failures_and_what_never_came(self, lab: Lab) -> None:
        """With the last reason, and the command that asks for it again."""
        export(lab)
        asked = requests(lab.folder / "requests.jsonl")
        lines = [*map(answered, asked[:9]), *map(left_out, asked[9:12])]
        done = take(lab, write(lab.folder / "replies.jsonl", lines))
        assert done.code == 1
        assert "9 new answers, 3 without a reply, 0 known before" in done.err
        said = "lab/ones: 7 of 16 samples have no reply: 3 failed (the last: batch_expired: too"
        assert said in done.err
        assert "4 never came; the same command again writes only those: bench export" in done.err
        failed = [one["failure"] for one in records(lab.the_run()) if "failure" in one]
        assert {one["type"] for one in failed} == {"BatchExpiredError"}
        assert {one["kind"] for one in failed} == {"error"}

    def test_failures_are_what_they_are_in_direct_runs(self, lab: Lab) -> None:
        """Overflow and refusals are answers of a kind; other errors are asked again."""
        export(lab, "--lengths", "3", "--samples", "2")
        codes = iter(("context_length_exceeded", "content_filter", "other", "other"))

        def fail(line: dict[str, Any]) -> Reply:
            return reply(line, status=400, body={"error": {"message": "no", "code": next(codes)}})

        done = take(lab, answer_all(lab, fail))
        assert done.code == 1
        kinds = [one["failure"]["kind"] for one in records(lab.the_run())]
        assert kinds == ["overflow", "refused", "error", "error"]
        assert "2 of 4 samples have no reply: 2 failed (the last: 400: no);" in done.err

    def test_an_answer_wins_over_an_error(self, lab: Lab) -> None:
        """In whichever order they come, from one file or two."""
        export(lab, task=lab.plain)
        errors = answer_all(lab, left_out).rename(lab.folder / "errors.jsonl")
        replies = answer_all(lab)
        assert take(lab, errors).code == 1
        assert take(lab, replies, errors).code == 0
        assert take(lab, errors).code == 0


class TestUnusable:
    """Lines that say nothing of use cost themselves only."""

    def test_each_kind_is_counted_with_its_first_line(self, lab: Lab) -> None:
        """`file:line`, once a kind; all other lines count."""
        export(lab)
        asked = requests(lab.folder / "requests.jsonl")
        name = asked[0]["custom_id"]
        run, condition, length, index, prompt = name.split("-")
        others = [
            {"custom_id": "request-1"},
            {"no": "id"},
            {"custom_id": f"{'0' * 12}-{condition}-{length}-{index}-{prompt}"},
            {"custom_id": f"{run}-{'0' * 8}-{length}-{index}-{prompt}"},
            {"custom_id": f"{run}-{condition}-{length}-999-{prompt}"},
            {"custom_id": f"{run}-{condition}-77-{index}-{prompt}"},
            {"custom_id": f"{run}-{condition}-{length}-{index}-{'0' * 8}"},
        ]
        file = write(lab.folder / "replies.jsonl", [*others, *map(answered, asked)])
        file.write_bytes(b"<html>\n[]\n" + file.read_bytes() + b'{"custom_id": "br')
        done = take(lab, file)
        assert done.code == 0
        said = [line.removeprefix(f"bench: {file}:") for line in done.err.splitlines()]
        assert said == [
            "26: the last line is cut off (1 such)",
            "1: the line is no JSON object (2 such)",
            "3: the line has no custom_id of Eyechart (2 such)",
            "5: the reply's run is not here; give the folder that holds it with --out (1 such)",
            "6: the reply's task has no such sample (1 such)",
            "7: the reply is to another prompt: the task changed after the request (3 such)",
            "16 new answers, 0 without a reply, 0 known before",
        ]

    def test_a_line_that_comes_twice_counts_once(self, lab: Lab) -> None:
        """The first one."""
        export(lab)
        file = answer_all(lab)
        file.write_bytes(file.read_bytes() * 2)
        done = take(lab, file)
        assert done.code == 0
        assert "16 new answers, 0 without a reply, 16 known before" in done.err
        assert len(records(lab.the_run())) == 16

    @pytest.mark.parametrize("body", [None, [], "x", {"choices": 3}, {"choices": [{}]}, 7])
    def test_replies_that_are_none(self, lab: Lab, body: object) -> None:
        """Whatever stands where a reply should."""
        export(lab, task=lab.plain)
        done = take(lab, answer_all(lab, lambda line: reply(line, status=200, body=body)))
        assert done.code == 1
        assert {one["failure"]["kind"] for one in records(lab.the_run())} == {"error"}

    @pytest.mark.parametrize("figure", [10**400, 2**64 - 1], ids=int.bit_length)
    def test_figures_that_cannot_be_true_are_unknown(self, lab: Lab, figure: int) -> None:
        """All replies are imported, and the user is told once."""
        export(lab)

        def odd(line: Mapping[str, Any]) -> Reply:
            said = answered(line)
            said["response"]["body"]["usage"] = {"prompt_tokens": 11, "completion_tokens": figure}
            return said

        done = take(lab, answer_all(lab, odd))
        assert done.code == 0
        assert done.err.count("the server's counts of tokens are ignored") == 1
        assert "16 new answers, 0 without a reply, 0 known before" in done.err
        assert {one["output_tokens"] for one in records(lab.the_run())} == {None}

    @pytest.mark.parametrize("odd", [3, "x", None, [], {"status_code": []}, {"body": {}}])
    def test_lines_of_an_odd_form(self, lab: Lab, odd: object) -> None:
        """As long as they name a sample they are a failure of it."""
        export(lab, task=lab.plain)
        done = take(lab, answer_all(lab, lambda x: {"custom_id": x["custom_id"], "response": odd}))
        assert done.code == 1
        assert len(records(lab.the_run())) == 3

    def test_nothing_of_use_at_all(self, lab: Lab) -> None:
        """Exit code 1, and where runs were looked for."""
        file = write(lab.folder / "replies.jsonl", [])
        done = take(lab, file)
        done.one_line(1, "no reply to a run under", str(lab.out / "runs"))

    def test_a_file_that_is_not_there(self, lab: Lab) -> None:
        """The command is wrong."""
        take(lab, lab.folder / "no.jsonl").one_line(2, "no file", "no.jsonl")


class TestRuns:
    """The runs that replies belong to."""

    def test_a_task_that_changed(self, lab: Lab) -> None:
        """Samples are made by the spec of the run, as long as the generator is the one of the run;
        else nothing is lost, as the file is there.
        """
        export(lab)
        file = answer_all(lab)
        lab.ones.write_text(lab.ones.read_text().replace("How many", "Count the"))
        rows = lab.ones.with_name("rows.py")
        before = rows.read_text()
        rows.write_text(before + "# changed\n")
        take(lab, file).one_line(2, "lab/ones has changed since this run", "--task")
        rows.write_text(before)
        assert take(lab, file).code == 0

    def test_a_task_that_moved_is_named(self, lab: Lab) -> None:
        """With --task, as for reports."""
        export(lab)
        file = answer_all(lab)
        moved = lab.folder / "elsewhere" / "lab"
        moved.parent.mkdir()
        (lab.folder / "lab").rename(moved)
        done = lab.bench("import", file, "--out", lab.out)
        done.one_line(2, "lab/ones is not at hand", "--task", "--run-kept-code")
        assert take(lab, file, more=("--task", moved / "ones.yaml")).code == 0

    def test_code_that_came_with_a_run_is_executed_only_where_asked(self, lab: Lab) -> None:
        """Neither the file that a manifest names, nor the copy in the run's folder."""
        export(lab)
        file = answer_all(lab)
        executed = lab.folder / "executed"
        rows = lab.ones.with_name("rows.py")
        (kept,) = (lab.the_run() / KEPT).iterdir()
        text = f"{rows.read_text()}\nopen({str(executed)!r}, 'w').close()\n"
        rows.write_text(text)
        name = f"{content_hash(text.encode())[:16]}-rows.py"
        kept.unlink()
        kept.with_name(name).write_text(text)
        manifest = json.loads((lab.the_run() / MANIFEST).read_bytes())
        assert manifest["file"] == str(lab.ones)
        (lab.the_run() / MANIFEST).write_text(json.dumps(manifest | {"kept": name}))
        done = lab.bench("import", file, "--out", lab.out)
        done.one_line(2, "lab/ones is not at hand", "--task", "--run-kept-code")
        assert not executed.exists()
        assert take(lab, file, more=("--run-kept-code",)).code == 0
        assert executed.exists()

    def test_a_renamed_task_file_is_known_by_what_is_in_it(self, lab: Lab) -> None:
        """Its samples are those of its old name."""
        export(lab)
        file = answer_all(lab)
        lab.ones.parent.rename(lab.folder / "new")
        assert take(lab, file, more=("--task", lab.folder / "new" / "ones.yaml")).code == 0

    def test_a_generator_that_changed_makes_other_prompts(self, lab: Lab) -> None:
        """Its answers are refused, line by line."""
        export(lab)
        file = answer_all(lab)
        rows = lab.folder / "lab" / "rows.py"
        rows.write_text(rows.read_text().replace('choice("01")', 'choice("10")'))
        generator.load_generator.cache_clear()
        functions.load_module.cache_clear()
        done = take(lab, file)
        assert done.code == 1
        assert (
            "the reply is to another prompt: the task changed after the request (16 such)"
            in done.err
        )

    def test_another_model_is_not_mixed_in(self, lab: Lab) -> None:
        """As in direct runs."""
        export(lab)
        file = answer_all(lab)
        take(lab, file)
        export(lab, "--samples", "5")
        text = answer_all(lab).read_text().replace("fake-model-1", "fake-model-2")
        file.write_text(text)
        done = take(lab, file)
        done.one_line(1, "is now answered by 'fake-model-2', and was by 'fake-model-1'")
        assert len(records(lab.the_run())) == 16

    def test_a_run_that_is_being_written(self, lab: Lab) -> None:
        """Is left alone."""
        export(lab)
        file = answer_all(lab)
        with Journal(lab.the_run(), lab.said.append):
            take(lab, file).one_line(1, "is being written by process")

    def test_results_that_moved(self, lab: Lab) -> None:
        """A run is known by its folder under --out, wherever that is."""
        export(lab)
        file = answer_all(lab)
        lab.out.rename(lab.folder / "moved")
        named = ("--task", lab.folder / "lab")
        done = lab.bench("import", file, "--out", lab.folder / "moved", *named)
        assert done.code == 0


class TestExport:
    """What is written, and what is refused."""

    def test_large_exports_are_several_files(self, lab: Lab) -> None:
        """Numbered, all of them named on stdout, and all of them imported at once."""
        (options,) = models_of(RunSettings.read(model="my-model", out=lab.out))
        output = lab.folder / "requests.jsonl"
        output.write_text('{"custom_id":"of an earlier export"}')
        task = open_task("lab/ones", lab.ones)
        lab.capture.readouterr()
        assert batch.export([plan(task)], options, output, FileLimits(requests=7)) == 0
        said = lab.capture.readouterr()
        paths = [lab.folder / f"requests-{number}.jsonl" for number in (1, 2, 3)]
        assert said.out.split() == list(map(str, paths))
        assert f"{output} comes from an earlier export" in said.err
        assert [len(requests(path)) for path in paths] == [7, 7, 2]
        for path in paths:
            write(path, [answered(line) for line in requests(path)])
        assert take(lab, *paths).code == 0

    def test_files_of_an_earlier_export_are_pointed_at(self, lab: Lab) -> None:
        """Sent by mistake, their samples would be paid for twice."""
        old = lab.folder / "requests-2.jsonl"
        old.write_text("")
        assert f"{old} comes from an earlier export" in export(lab).err

    def test_it_needs_neither_key_nor_network(self, lab: Lab) -> None:
        """The body is what OpenAI would be sent."""
        lab.monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        assert export(lab, "--model", "gpt-4o", "--temperature", "0.5", "--seed", "4").code == 0
        body = requests(lab.folder / "requests.jsonl")[0]["body"]
        assert set(body) == {"model", "messages", "max_completion_tokens", "temperature", "seed"}
        assert (body["model"], body["temperature"], body["seed"]) == ("gpt-4o", 0.5, 4)

    def test_every_built_in_task_has_unique_names(self, lab: Lab) -> None:
        """All conditions of all tasks that batches take in one file; each line within what vendors
        take.
        """
        names = ",".join(name for name in built_in_files() if name != "turns/running_sum")
        axes = [word for axis in ("separator", "strategy") for word in ("--axis", f"{axis}=all")]
        done = export(lab, "--samples", "1", *axes, task=names)
        assert done.code == 0
        ids = [line["custom_id"] for line in requests(lab.folder / "requests.jsonl")]
        assert len(set(ids)) == len(ids) > 100
        assert max(map(len, ids)) <= 64

    def test_vllm_run_batch_takes_no_completions(self, lab: Lab) -> None:
        """The user is told before the file is used."""
        done = export(lab, "--model", "vllm/x", "--api", "completions")
        assert "vllm run-batch takes chat requests only" in done.err

    @pytest.mark.parametrize("model", ["tiny", "anthropic/x", "scripted/x"])
    def test_other_providers(self, lab: Lab, model: str) -> None:
        """Are not asked in this form."""
        export(lab, "--model", model).one_line(2, "does not take the Batch form of OpenAI")
        assert not lab.out.exists()

    def test_a_folder_is_no_file(self, lab: Lab) -> None:
        """The command is wrong."""
        command = ("export", "batch", "--task", lab.ones, "--model", "m", "--out", lab.out)
        lab.bench(*command, "-o", lab.folder).one_line(2, "is a folder")

    def test_an_output_that_cannot_be_written(self, lab: Lab) -> None:
        """One line; no half a file."""
        (lab.folder / "file").write_text("")
        command = ("export", "batch", "--task", lab.ones, "--model", "m", "--out", lab.out)
        done = lab.bench(*command, "-o", lab.folder / "file" / "requests.jsonl")
        done.one_line(1, "file")


def test_memory_is_flat(lab: Lab) -> None:
    """A line more takes some bytes, for its place, and not as many as the line has."""
    peaks, sizes = [], []
    for samples in ("120", "180", "240"):  # the first fills caches, and has all rows of pairs
        out = lab.folder / samples
        file = lab.folder / f"{samples}.jsonl"
        command = ("export", "batch", "--task", lab.ones, "--model", "m", "--samples", samples)
        assert lab.bench(*command, "-o", file, "--out", out).code == 0
        write(file, [answered(line) for line in requests(file)])
        sizes.append(file.stat().st_size)
        tracemalloc.start()
        try:
            assert import_replies([file], out, JudgeSettings(tasks=str(lab.ones))) == 0
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] - peaks[1] < sizes[2] - sizes[1]
