"""Studies: their files, how they are asked, and what they end in."""

from __future__ import annotations

import asyncio
import csv
import re
import shutil
import signal
import sys
import types
import weakref
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.cli.work.dry_run import dry_run, preview, previewing
from eyechart.harness.errors import StudyFileError
from eyechart.harness.face.asking.engine import ModelRuns
from eyechart.harness.face.options.run_options import models_of
from eyechart.harness.face.options.study import study_runs
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.plan import plan as plan_module
from eyechart.harness.plan.cost import Budget, MaxUsage
from eyechart.harness.plan.plan import make_sample
from eyechart.harness.report.page import page
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.harness.spec.dollars import at_most_text, dollars_text
from eyechart.harness.study.reading import built_in, find_study, read_study
from eyechart.providers.base import AuthError, BadRequestError, Reply, Request, Usage
from eyechart.providers.catalog.model_facts import PriceList
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import PATIENCE_S, has_lines, records, right, wait_for
from tests.test_plan_cost import priced

if TYPE_CHECKING:
    from tests.conftest import Lab

STANDARD = "standard@1-f3c2a1b2"
STUDY = """\
name: two-tasks
title: Ones twice
samples: 4
models:
  - fake/a
  - {name: other/b, called: "@bf16", max_connections: 2}
tasks:
  - lab/ones.yaml
  - {task: lab/plain.yaml, samples: 2}
"""
TASKS = "tasks:" + STUDY.partition("tasks:")[2]


def write(lab: Lab, text: str = STUDY) -> Path:
    """A study's file beside the tasks."""
    path = lab.folder / "study.yaml"
    path.write_text(text)
    return path


def two_models(lab: Lab, first: Any = right, second: Any = right) -> list[ScriptedProvider]:
    """The models of `STUDY`, which network providers would have."""
    providers = [ScriptedProvider(script) for script in (first, second)]
    lab.fake(providers[0])
    name_provider(lab, "other", providers[1])
    return providers


def name_provider(lab: Lab, name: str, provider: ScriptedProvider) -> None:
    """Makes a provider known under a name."""
    module = types.ModuleType(f"{name}_provider")
    module.__dict__["open_provider"] = lambda _settings: provider
    lab.monkeypatch.setitem(sys.modules, f"{name}_provider", module)
    lab.add_provider(name, f"{name}_provider:open_provider")


class Slow(ScriptedProvider):
    """Says of itself what the slow provider of the lab says."""

    async def facts(self) -> dict[str, object]:
        return {"engine": "slow"}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page takes seconds, and is not what the test is about."""
    monkeypatch.setattr(page, "write_report", lambda *_, **__: None)


class TestRun:
    """One command."""

    @pytest.mark.usefixtures("no_page")
    def test_the_only_model_of_a_task_has_its_fact(self, lab: Lab) -> None:
        """Why it is not ranked, and what helps; the other one was stopped by its first replies."""

        def cut(request: Request) -> Reply | str:
            long = "length=3|" not in request.sample_id
            return Reply("", "length", reasoning="One, then") if long else right(request)

        two_models(lab, cut, lambda _: "It could be 1 or 2.")
        done = lab.bench("run", write(lab), "--trust", "--out", lab.out)
        said = " ".join(done.out.split())
        assert said.count("limited by room") == said.count("limited by form") == 2
        assert (
            "In 4 runs the effective length is not known under some conditions: lab/ones fake/a, "
            in said
        )
        assert "with --keep-going asks them" in done.err

    def test_every_model_is_asked_every_task(self, lab: Lab) -> None:
        """With a leaderboard and a page of these runs alone; the second time asks nothing."""
        lab.monkeypatch.setenv("COLUMNS", "120")
        first, second = two_models(lab)
        study = write(lab)
        assert lab.bench("run", "--task", lab.echo, "--model", "fake/a", "--out", lab.out).code == 0
        first.requests.clear()
        done = lab.bench("run", study, "--trust", "--out", lab.out)
        assert done.code == 0, done.err
        assert len(first.requests) == len(second.requests) == 18
        (folder,) = (lab.out / "studies").iterdir()
        assert folder.name.startswith("two-tasks@1-")
        assert {path.name for path in folder.iterdir()} >= {"study.yaml", "leaderboard.html"}
        assert (folder / "study.yaml").read_text() == STUDY
        found = rows(folder / "leaderboard.csv")
        assert {(row["task"], row["model"]) for row in found} == {
            (task, model)
            for task in ("lab/ones", "lab/plain")
            for model in ("fake/a", "other/b@bf16")
        }
        assert str(folder / "leaderboard.csv") in done.out
        shown = [line.replace("|", " ").split() for line in done.out.splitlines()]
        assert [row[:2] for row in shown if row and row[0].startswith("lab/")] == [
            [task, model]
            for model in ("fake/a", "other/b@bf16")
            for task in ("lab/ones", "lab/plain")
        ]
        known = orjson.loads((folder / "study.json").read_bytes())
        assert known["study"] == folder.name
        assert len(known["runs"]) == 4
        assert all((lab.out / run / TABLE).is_file() for run in known["runs"])
        again = lab.bench("run", study, "--trust", "--out", lab.out)
        assert again.code == 0
        assert len(first.requests) == len(second.requests) == 18

    @pytest.mark.usefixtures("no_page")
    def test_models_of_earlier_commands_stay_in_the_ranks(self, lab: Lab) -> None:
        """As long as their runs are there."""
        two_models(lab)
        study = write(lab)
        for model in ("fake/a", "other/b"):
            done = lab.bench("run", study, "--trust", "--model", model, "--out", lab.out)
            assert done.code == 0, done.err
        (folder,) = (lab.out / "studies").iterdir()
        assert {row["model"] for row in rows(folder / "leaderboard.csv")} == {"fake/a", "other/b"}
        known = orjson.loads((folder / "study.json").read_bytes())
        assert (known["models"], len(known["runs"])) == (["fake/a", "other/b"], 4)
        shutil.rmtree(lab.out / "runs" / "fake")
        (folder / "leaderboard.csv").unlink()
        done = lab.bench("run", study, "--trust", "--model", "other/b", "--out", lab.out)
        assert done.code == 0, done.err
        assert {row["model"] for row in rows(folder / "leaderboard.csv")} == {"other/b"}
        (folder / "study.json").write_text("{")
        done = lab.bench("run", study, "--trust", "--model", "other/b", "--out", lab.out)
        assert done.code == 0
        assert f"{folder / 'study.json'} cannot be read and is written anew" in done.err

    @pytest.mark.usefixtures("no_page")
    def test_only_what_the_study_asks_is_ranked(self, lab: Lab) -> None:
        """Other commands add lengths and conditions to the same runs."""
        two_models(lab)
        study = write(lab, STUDY.replace("samples: 4", "samples: 4\nlengths: [5, 10]", 1))
        assert lab.bench("run", study, "--trust", "--out", lab.out).code == 0
        (folder,) = (lab.out / "studies").iterdir()

        def ranks() -> list[dict[str, str]]:
            changed = ("command", "date")
            found = rows(folder / "leaderboard.csv")
            return [{k: row[k] for k in row if k not in changed} for row in found]

        before = ranks()
        more = ("--lengths", "3,5,10,20", "--samples", "4", "--out", lab.out)
        assert lab.bench("run", "--task", lab.ones, "--model", "fake/a", *more).code == 0
        done = lab.bench("run", study, "--trust", "--out", lab.out)
        assert (done.code, "left out" in done.err) == (0, False)
        assert ranks() == before

    @pytest.mark.usefixtures("no_page")
    def test_without_a_reply_there_is_no_chart(self, lab: Lab) -> None:
        """Every request is refused; nothing has a length."""

        def refuses(_: Request) -> str:
            raise BadRequestError("no such thing")

        two_models(lab, refuses, refuses)
        done = lab.bench("run", write(lab), "--trust", "--out", lab.out)
        assert done.code == 1
        assert "right to" not in done.out
        assert "leaderboard.csv: 0 rows" in done.out

    def test_a_dry_run_goes_on_without_a_model(self, lab: Lab) -> None:
        """One that needs a server which is not there; the others have their prices."""
        two_models(lab)
        away = 'vllm/x, base_url: "http://127.0.0.1:9/v1"}'
        study = write(lab, STUDY.replace("  - fake/a", "  - fake/a\n  - {name: " + away, 1))
        asked = ("run", study, "--trust", "--dry-run", "--out", lab.out)
        blind = lab.bench(*asked)
        assert (blind.code, blind.out.count("not known: the window")) == (0, 1)
        done = lab.bench(*asked, "--ask-server")
        assert done.code == 1
        assert "no connection to http://127.0.0.1:9/v1" in done.err
        assert {"fake/a", "other/b@bf16"} <= set(done.out.split())
        document = orjson.loads(lab.bench(*asked, "--ask-server", "--json").out)
        assert [one["model"] for one in document["models"]] == ["fake/a", "other/b@bf16"]
        assert [one["model"] for one in document["failed"]] == ["vllm/x"]

    def test_a_dry_run_of_many_models_makes_each_prompt_once(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What models have in common is made once, and no model's previews are kept; a model with
        another window or reasoning has numbers of its own, as alone.
        """
        drawn: list[str] = []
        loops: list[object] = []
        alive: list[weakref.ref[Previews]] = []

        class Previews(list[preview.Preview]):
            pass

        def counted(*arguments: Any, **options: Any) -> Any:
            drawn.append("")
            return make_sample(*arguments, **options)

        def previews_of(*arguments: Any, **options: Any) -> Previews:
            assert sum(one() is not None for one in alive) <= 1
            found = Previews(preview_of(*arguments, **options))
            alive.append(weakref.ref(found))
            return found

        def total(models: list[str]) -> tuple[list[str], int]:
            listed = "".join(f"  - {model}\n" for model in models)
            study = write(lab, STUDY.partition("models:")[0] + "models:\n" + listed + TASKS)
            alive.clear()
            drawn.clear()
            done = lab.bench("run", study, "--trust", "--dry-run", "--out", lab.out)
            assert done.code == 0
            rows = [line for line in done.out.splitlines() if re.match(r"\W*openai/", line)]
            return rows, len(drawn)

        preview_of = previewing.previews_of
        monkeypatch.setenv("COLUMNS", "120")  # a model is one row
        monkeypatch.setattr(dry_run, "previews_of", previews_of)
        monkeypatch.setattr(previewing, "run_in_loop", loops.append)
        monkeypatch.setattr(plan_module, "make_sample", counted)
        other = ["{name: openai/gpt-5, thinking: high}", "openai/gpt-4"]
        labels = [f"{{name: openai/gpt-4o, called: '@m{number:02}'}}" for number in range(40)]
        (alone,), samples = total(labels[:1])
        both = [total([model]) for model in other]
        rows, made = total([*labels, *other])
        assert made == samples + sum(each for _, each in both) > samples
        assert rows[:40] == [alone.replace("m00", f"m{number:02}") for number in range(40)]
        assert [row.split() for row in rows[40:]] == [row.split() for (row,), _ in both]
        assert loops == []

    @pytest.mark.usefixtures("no_page")
    def test_models_are_asked_at_the_same_time(self, lab: Lab) -> None:
        """Each waits for the other's first request."""
        met = {"fake/a": asyncio.Event(), "other/b": asyncio.Event()}

        class Meets(ScriptedProvider):
            def __init__(self, mine: str, other: str) -> None:
                super().__init__(right)
                self.mine, self.other = mine, other

            async def complete(self, request: Request) -> Reply:
                met[self.mine].set()
                await asyncio.wait_for(met[self.other].wait(), PATIENCE_S)
                return await super().complete(request)

        two_models(lab)
        for name, provider in (
            ("fake", Meets("fake/a", "other/b")),
            ("other", Meets("other/b", "fake/a")),
        ):
            name_provider(lab, name, provider)
        assert lab.bench("run", write(lab), "--trust", "--out", lab.out).code == 0

    def test_models_of_this_machine_are_asked_in_turn(self, lab: Lab) -> None:
        """They share its processors."""
        kinds = {}
        for name, urls in (("tiny", ()), ("vllm/x", ()), ("vllm/x", ("http://127.0.0.1:1/v1",))):
            (options,) = models_of(RunSettings.read(model=name, out=lab.out, base_url=urls))
            kinds[name, urls] = ModelRuns([], options, Budget()).computes_here
        assert list(kinds.values()) == [True, True, False]

    @pytest.mark.usefixtures("no_page")
    def test_a_model_that_fails_stops_no_other(self, lab: Lab) -> None:
        """It is said in one line, and asked by the next command."""
        two_models(lab, [AuthError("no such key")])
        done = lab.bench("run", write(lab), "--trust", "--out", lab.out)
        assert done.code == 1
        assert "bench: fake/a: no such key" in done.err
        assert "1 of 2 models are complete; these are not:\n  fake/a: no such key" in done.err
        assert [read_manifest(run).model for run in find_runs(lab.out)].count("other/b@bf16") == 2
        two_models(lab)
        assert lab.bench("run", write(lab), "--trust", "--out", lab.out).code == 0

    def test_an_adaptive_one_is_priced_with_all_its_waves(self, lab: Lab) -> None:
        """Its models and tasks together, unless longer lines may follow."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder, "fake/a"))
        lab.fake(right)
        text = "name: one\ntitle: One\nadaptive: true\nmodels: [fake/a]\n"
        command = ("run", write(lab, text + TASKS), "--trust", "--dry-run", "--out", lab.out)
        waves = [run["adaptive"] for run in orjson.loads(lab.bench(*command, "--json").out)["runs"]]
        about, most = (sum(one[of]["dollars"] for one in waves) for of in ("expected", "most"))
        row = f"| {dollars_text(about)} | {at_most_text(most)} |"
        assert row in " ".join(lab.bench(*command).out.split())
        write(lab, f"{text}precision: 1\n{TASKS}")
        assert re.search(r"\$[\d,.]+ +\| +- \|", lab.bench(*command).out)

    @pytest.mark.usefixtures("no_page")
    @pytest.mark.parametrize(
        ("keys", "script", "why"),
        [
            (
                "adaptive: true\nprecision: 1\nmax_requests: 7\n",
                right,
                "3 conditions are not known to 1 octave (--max-requests is reached); the same",
            ),
            (
                "budget: 20\n",
                lambda request: Reply(right(request), usage=Usage(1, 10)),
                "16 samples have no reply (the budget of $20 is spent); a new budget",
            ),
            (
                "",
                lambda request: BadRequestError("no") if "index=1" in request.sample_id else "7",
                "5 samples have no reply (the last: no); the same command",
            ),
        ],
        ids=["limit", "budget", "failure"],
    )
    def test_why_a_model_is_not_complete_is_said(
        self, lab: Lab, keys: str, script: Callable[[Request], Any], why: str
    ) -> None:
        """In one line at the end."""
        lab.monkeypatch.setenv("EYECHART_MODELS", priced(lab.folder, "fake/a"))
        lab.fake(script)
        text = (
            "name: one\ntitle: One\nmax_tokens: 10\nmodels: [{name: fake/a, max_connections: 1}]\n"
        )
        study = write(lab, f"{text}{keys}{TASKS}")
        done = lab.bench("run", study, "--trust", "--keep-going", "--out", lab.out)
        assert done.code == 1
        assert why in done.err

    @pytest.mark.usefixtures("no_page")
    def test_models_of_the_command_stand_in_place_of_those_of_the_file(self, lab: Lab) -> None:
        """So a study without models can be asked of any."""
        two_models(lab)
        done = lab.bench("run", write(lab), "--trust", "--model", "fake/c", "--out", lab.out)
        assert done.code == 0
        assert {read_manifest(run).model for run in find_runs(lab.out)} == {"fake/c"}

    @pytest.mark.usefixtures("no_page")
    def test_it_is_one_document(self, lab: Lab) -> None:
        """With the numbers of the files."""
        two_models(lab)
        done = lab.bench("run", write(lab), "--trust", "--out", lab.out, "--json")
        document = orjson.loads(done.out)
        assert list(document) == ["study", "folder", "models", "runs", "leaderboard"]
        assert [model["exit_code"] for model in document["models"]] == [0, 0]
        assert len(document["runs"]) == 4
        assert len(document["leaderboard"]["rows"]) == len(
            rows(Path(document["folder"]) / "leaderboard.csv")
        )

    @pytest.mark.usefixtures("no_page")
    def test_the_table_is_that_of_a_run(self, lab: Lab) -> None:
        """The same data give the same numbers, whatever asks."""
        two_models(lab)
        assert lab.bench("run", write(lab), "--trust", "--out", lab.out).code == 0
        out = lab.folder / "alone"
        asked = ("--task", lab.ones, "--model", "fake/a", "--samples", "4", "--out", out)
        assert lab.bench("run", *asked).code == 0
        (alone,) = find_runs(out)
        ours = lab.out / alone.relative_to(out)
        assert (ours / TABLE).read_bytes() == (alone / TABLE).read_bytes()

    @pytest.mark.usefixtures("no_page")
    def test_a_killed_one_goes_on(self, lab: Lab) -> None:
        """Nothing that was answered is asked again."""
        study = write(lab, STUDY.replace("fake/a", "slow/x").replace("other/b", "slow/y"))
        command = ("run", str(study), "--trust", "--out", str(lab.out))
        process = lab.forked(*command, delay_s=0.3)
        journals = (lab.out / "runs").rglob
        try:
            wait_for(lambda: any(has_lines(one, 2) for one in journals("samples.jsonl")), process)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        known = [one["id"] for run in find_runs(lab.out) for one in records(run)]
        assert 0 < len(known) < 36
        provider = Slow(right)
        name_provider(lab, "slow", provider)
        done = lab.bench(*command)
        assert done.code == 0, done.err
        assert sum(len(records(run)) for run in find_runs(lab.out)) == 36
        assert len(provider.requests) == 36 - len(known)


class TestFile:
    """What a file may have, and what is said of one that is wrong."""

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("title:", "titel:", "study.yaml:2:1: unknown key 'titel'; did you mean 'title'?"),
            ("samples: 4", "samples: many", "study.yaml:3:10: samples: must be a whole number"),
            ('called: "@bf16"', 'caled: "@bf16"', "unknown key 'caled'; did you mean 'called'?"),
            ("lab/plain.yaml", "lab/plane.yaml", "study.yaml:9:5: no file '/"),
            ("  - fake/a", "  - nobody/a", "study.yaml:5:5: unknown provider 'nobody'"),
            ("  - fake/a", "  - {name: tiny, thinking: high}", "study.yaml:5:5: "),
            (
                "samples: 4",
                "precision: 0.5",
                "study.yaml:3:1: precision needs 'adaptive: true'; add it",
            ),
            ("samples: 2}", "axes: {colour: red}}", "study.yaml:9:5: "),
            ("  - lab/ones.yaml", "  - lab/plain.yaml", "lab/plain is here twice"),
            ("  - fake/a", "  - fake/a\n  - fake/a", "'fake/a' is here twice"),
            ("name: two-tasks", "name: Two tasks", "study.yaml:1:7: name: must be lower case"),
            ("name: two-tasks", "- a", "study.yaml:"),
        ],
    )
    def test_mistakes_have_their_place(self, lab: Lab, old: str, new: str, words: str) -> None:
        """And a remedy; nothing is asked."""
        two_models(lab)
        path = write(lab, STUDY.replace(old, new, 1))
        for verb in (("run",), ("study", "check")):
            done = lab.bench(*verb, path, "--trust")
            assert done.code == 2, done
            assert words in done.err
            assert "Traceback" not in done.err
        assert not (lab.out / "runs").exists()

    def test_all_mistakes_are_said_at_once(self, lab: Lab) -> None:
        """Of tasks, and of models where the tasks are sound."""
        two_models(lab)
        path = write(lab, STUDY.replace("ones.yaml", "one.yaml").replace("plain.y", "plane.y"))
        said = lab.bench("study", "check", path, "--trust").err
        assert ["study.yaml:8:5: " in said, "study.yaml:9:5: " in said] == [True, True]
        path = write(lab, STUDY.replace("fake/a", "nobody/a").replace("other/b", "nobody/b"))
        said = lab.bench("study", "check", path, "--trust").err
        assert ["study.yaml:5:5: " in said, "study.yaml:6:5: " in said] == [True, True]

    def test_one_without_models_needs_some(self, lab: Lab) -> None:
        """From the command."""
        path = write(lab, "name: a\ntitle: b\ntasks: [lab/ones.yaml]\n")
        lab.bench("run", path, "--trust").one_line(2, "'a' names no models", "--model")
        assert lab.bench("study", "check", path, "--trust").code == 0

    def test_a_name_that_is_none(self, lab: Lab) -> None:
        """What was meant."""
        lab.bench("run", "standrad", "--model", "tiny").one_line(2, "did you mean 'standard'?")
        for task in ("counting/ones", "counting"):
            lab.bench("run", task, "--model", "tiny").one_line(2, f"use --task {task}")
        lab.bench("run", lab.ones, "--model", "tiny").one_line(
            2, "is a task's file and no study", f"use --task {lab.ones}"
        )
        lab.bench("run", "nothing.yaml").one_line(2, "no study's file 'nothing.yaml'")

    @pytest.mark.parametrize(
        ("option", "value", "words"),
        [
            ("--lengths", "5", "write 'lengths' into its file"),
            ("--axis", "a=b", "write 'axes' into its file"),
            ("--task", "counting", "write 'tasks' into its file"),
            ("--budget", "0", "--budget must be a number above 0"),
        ],
    )
    def test_other_options_belong_into_the_file(
        self, lab: Lab, option: str, value: str, words: str
    ) -> None:
        """So that a study is the same wherever it is asked."""
        done = lab.bench("run", "standard", "--model", "tiny", option, value)
        done.one_line(2, option, words)

    def test_how_a_model_is_asked_may_be_said_by_the_command(self, lab: Lab) -> None:
        """Of a built-in study too, and in place of what the file says; without --trust."""
        server = ("--base-url", "http://127.0.0.1:9/v1", "--max-requests", "40", "--name", "my/m")
        done = lab.bench("run", "standard", "--model", "m", *server, "--dry-run")
        assert (done.code, done.err) == (0, "")
        assert "my/m would be asked at http://127.0.0.1:9/v1" in done.out
        runs = study_runs(
            read_study(write(lab, f"name: a\ntitle: b\nmodels: [{{name: tiny, rpm: 5}}]\n{TASKS}")),
            {"rpm": 7.0, "out": lab.out},
            notify=print,
            trusts=True,
        )
        assert [options.limits.rpm for options in runs.models] == [7.0]

    def test_a_shown_study_is_a_file(self, lab: Lab) -> None:
        """Which runs, as the built-in one does, without --trust."""
        path = lab.folder / "mine.yaml"
        path.write_text(lab.bench("study", "show", "zhang").out)
        mine, theirs = (
            lab.bench("run", study, "--model", "tiny", "--dry-run", "--out", lab.out)
            for study in (path, "zhang")
        )
        assert mine.code == 0
        assert (mine.out, mine.err) == (theirs.out, theirs.err)

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            ('{name: gpt-4o, base_url: "notaurl"}', "does not begin with http"),
            ("{name: tiny, model_arg: '--x'}", "model_arg is for models of vllm/ and lm-eval/"),
            ("'tiny,oracle:5'", "names several models; list each of them on its own"),
            ("''", "must not be empty"),
        ],
    )
    def test_models_that_cannot_be_asked_are_found_before(
        self, lab: Lab, model: str, words: str
    ) -> None:
        """At their place in the file, and without a key or a server."""
        path = write(lab, f"name: a\ntitle: b\nmodels:\n  - {model}\ntasks: [counting/ones]\n")
        done = lab.bench("study", "check", path, "--trust")
        assert done.code == 2
        assert f"{path}:4:" in done.err
        assert words in done.err

    def test_a_model_of_the_command_has_its_message(self, lab: Lab) -> None:
        """As where a variable of a script is empty."""
        done = lab.bench("run", "standard", "--model", "")
        done.one_line(2, "model '' is not of the form provider/model")

    def test_the_hash_is_of_what_is_asked(self, lab: Lab) -> None:
        """And not of how the file says it."""
        (lab.folder / "lab").mkdir(exist_ok=True)
        base = "name: a\ntitle: b\nmodels: [tiny]\n"
        same = [
            "tasks: [{task: counting/ones, lengths: [5, 10]}]",
            "tasks: [{task: counting/ones, lengths: [10, 5]}]",
            "lengths: [5, 10]\ntasks: [counting/ones]",
            "tasks: [{task: counting/ones, lengths: [5, 10], axes: {strategy: direct}}]",
        ]
        others = [
            "tasks: [{task: counting/ones, lengths: [5, 11]}]",
            "tasks: [{task: counting/ones, lengths: [5, 10], axes: {separator: none}}]",
            "seed: 1\ntasks: [{task: counting/ones, lengths: [5, 10]}]",
            "tasks: [{task: counting/ones, lengths: [5, 10], samples: 3}]",
        ]

        def digest(text: str) -> str:
            study = read_study(write(lab, base + text))
            return study_runs(study, {"out": lab.out}, notify=print, trusts=True).digest

        assert len({digest(text) for text in same}) == 1
        assert len({digest(text) for text in (*same, *others)}) == 5

    def test_paths_are_those_beside_the_file(self, lab: Lab) -> None:
        """Never of the folder where the command is given."""
        study = lab.folder / "elsewhere" / "study.yaml"
        study.parent.mkdir()
        study.write_text("name: a\ntitle: b\nmodels: [tiny]\ntasks: [lab/ones.yaml]\n")
        lab.monkeypatch.chdir(lab.folder)
        assert (lab.folder / "lab" / "ones.yaml").exists()
        done = lab.bench("study", "check", study, "--trust")
        done.one_line(2, "study.yaml:4:9: no file", "elsewhere/lab/ones.yaml")

    @pytest.mark.usefixtures("no_page")
    def test_settings_of_a_folder_do_not_change_it(self, lab: Lab) -> None:
        """Neither bench.toml nor variables."""
        two_models(lab)
        path = write(lab)
        lab.monkeypatch.setenv("EYECHART_SAMPLES", "2")
        lab.monkeypatch.setenv("EYECHART_MODEL", "tiny")
        assert lab.bench("run", path, "--trust", "--out", lab.out).code == 0
        sizes = {len(records(run)) for run in find_runs(lab.out)}
        assert sizes == {16, 2}

    def test_one_effort_or_several(self, lab: Lab) -> None:
        """Each is a model of its own; a value may stand for a list of one."""
        models = "[{name: gpt-5, thinking: [low, high]}]"
        text = f"name: a\ntitle: b\nmodels: {models}\ntasks: counting/ones"
        with pytest.raises(StudyFileError, match="tasks: must be a list"):
            read_study(write(lab, text))
        path = write(lab, text.replace("tasks: counting/ones", "tasks: [counting/ones]"))
        runs = study_runs(read_study(path), {"out": lab.out}, notify=print, trusts=True)
        labels = [options.model.label for options in runs.models]
        assert labels == ["openai/gpt-5@low", "openai/gpt-5@high"]


class TestDryRun:
    """What a study would cost."""

    def test_a_row_a_model_and_their_sum(self, lab: Lab) -> None:
        """Nothing is sent; what is answered is not asked."""
        text = STUDY.replace("fake/a", "gpt-4o").replace(
            '{name: other/b, called: "@bf16", max', "{name: gpt-4.1, max"
        )
        path = write(lab, text)
        done = lab.bench("run", path, "--trust", "--dry-run", "--out", lab.out)
        assert done.code == 0
        assert "| openai/gpt-4o " in done.out
        assert "together less than $0.01, at most $" in done.out
        document = orjson.loads(lab.bench("run", path, "--trust", "--dry-run", "--json").out)
        assert [one["model"] for one in document["models"]] == ["openai/gpt-4o", "openai/gpt-4.1"]
        assert sum(run["requests"] for run in document["runs"]) == 36
        assert not lab.out.exists()

    @pytest.mark.parametrize("several", [False, True], ids=["one run", "several"])
    def test_what_sets_a_limit_is_where_the_command_takes_it(
        self, lab: Lab, *, several: bool
    ) -> None:
        """A study's command refuses `--lengths`, so its file is named."""
        task = "tasks: [lab/ones.yaml, lab/plain.yaml]" if several else "tasks: [lab/ones.yaml]"
        path = write(lab, f"name: s\ntitle: S\nadaptive: true\nprecision: 0.75\n{task}\n")
        server = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
        done = lab.bench("run", path, "--trust", *server, "--dry-run")
        assert "longer lines may follow" in done.out
        assert "'lengths' in the study's file limits them" in done.out
        assert not {"--lengths", "--max-tokens"} & set(done.out.split())

    @pytest.mark.usefixtures("no_page")
    @pytest.mark.parametrize(("more", "answered"), [((), "18"), (("--fresh",), "0")])
    def test_a_fresh_start_counts_no_answers(
        self, lab: Lab, more: tuple[str, ...], answered: str
    ) -> None:
        """All is asked again."""
        two_models(lab)
        asked = ("run", write(lab, STUDY), "--trust", "--out", lab.out)
        lab.bench(*asked)
        done = lab.bench(*asked, "--dry-run", *more)
        (row,) = (line for line in done.out.splitlines() if line.startswith("| fake/a "))
        assert [cell.strip() for cell in row.split("|")][2:4] == ["18", answered]


class TestStandard:
    """The built-in study."""

    def test_its_definition_is_frozen(self) -> None:
        """A change of the study or of one of its tasks needs a new version, and a new hash here."""
        runs = study_runs(read_study(find_study("standard")), {"model": ["tiny"]}, notify=print)
        assert runs.label == STANDARD

    def test_the_hash_is_of_what_is_asked(self, lab: Lab) -> None:
        """Models, prices and words about it are not; tasks and settings are."""
        lab.fake(right)
        labels = set()
        for old, new in (
            ("title: Ones twice", "title: Other words"),
            ("  - fake/a", "  - fake/z"),
            ('called: "@bf16", ', ""),
        ):
            study = read_study(write(lab, STUDY.replace("other/b", "fake/b").replace(old, new)))
            labels.add(study_runs(study, {"out": lab.out}, notify=print, trusts=True).label)
        assert len(labels) == 1
        lab.ones.write_text(lab.ones.read_text().replace("How many", "Say how many"))
        study = read_study(write(lab, STUDY.replace("other/b", "fake/b")))
        labels.add(study_runs(study, {"out": lab.out}, notify=print, trusts=True).label)
        study = read_study(write(lab, STUDY.replace("other/b", "fake/b") + "seed: 1\n"))
        labels.add(study_runs(study, {"out": lab.out}, notify=print, trusts=True).label)
        assert len(labels) == 3

    def test_built_in_ones_are_listed_and_shown(self, lab: Lab) -> None:
        """With how they are cited."""
        assert [path.stem for path in built_in()] == [
            *("barbero", "barbero_commas", "bounded", "chroma", "standard", "zhang")
        ]
        assert "standard@1  The eye chart\n" in lab.bench("study").out
        done = lab.bench("study", "show", "standard")
        assert done.out.startswith("name: standard\n")
        assert f"({STANDARD})" in done.err
        assert done.out == find_study("standard").read_text()
        assert orjson.loads(lab.bench("study", "--json").out)["studies"][0]["version"] == 1
        checked = orjson.loads(lab.bench("study", "check", "standard", "--json").out)
        assert checked == {"studies": [{"study": STANDARD, "problems": []}]}


PRICES = PriceList(input=1e6, output=1e6, as_of=date(2026, 11, 1)).prices()
"""A dollar a token."""


class TestSharedBudget:
    """The limit of a study is one for all its models."""

    @staticmethod
    def two(limit: float) -> tuple[Budget, Budget]:
        first, second = (Budget(prices=PRICES, limit=limit) for _ in range(2))
        first.shared_with.append(second)
        second.shared_with.append(first)
        return first, second

    def test_what_one_spends_the_other_has_not(self) -> None:
        """The limit is reached by both together."""
        first, second = self.two(10)
        first.charge(Usage(6, 0))
        assert not second.exhausted
        second.charge(Usage(4, 0))
        assert first.exhausted
        assert second.exhausted

    def test_a_request_waits_for_those_of_the_other_model(self) -> None:
        """It goes out when the other's has ended and left room."""

        async def ask() -> None:
            first, second = self.two(10)
            big = MaxUsage(9, 0)
            assert await first.admit(big)
            assert await second.admit(big)  # below the limit when it is asked for
            waiting = asyncio.create_task(second.admit(big))
            await asyncio.sleep(0)
            assert not waiting.done()
            first.charge(Usage(1, 0))
            first.release(big)
            second.charge(Usage(1, 0))
            second.release(big)
            assert await asyncio.wait_for(waiting, PATIENCE_S)

        asyncio.run(ask())


def test_the_committed_leaderboard_is_a_study() -> None:
    """Its rows are the tasks and conditions that the study asks."""
    results = Path(__file__).parents[1] / "results"
    runs = study_runs(read_study(results / "study.yaml"), {"out": results}, notify=print)
    asked = {
        (plan.task.name, str(plan.task.spec.version), condition.only(plan.task.spec.axes).label)
        for plan in runs.plans
        for condition in plan.conditions
    }
    found = {
        (row["task"], row["task_version"], row["condition"])
        for row in rows(results / "leaderboard.csv")
    }
    assert found == asked
    assert [options.model.label for options in runs.models] == ["tiny"]
