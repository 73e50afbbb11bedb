"""`bench export verifiers`: an environment with our rows, whose reward is our verdict.

`TESTS_VERIFIERS_PYTHON` names a Python that has the package `verifiers`. It wants an older OpenAI
SDK than ours, so it has an environment of its own.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pytest
from pydantic import BaseModel

from eyechart.harness.errors import UsageError
from eyechart.harness.plan.plan import output_budget, plan
from eyechart.harness.satellites.export.verifiers.writer import environment_name
from eyechart.harness.score.judge import judge
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.spec.answer import Answer
from eyechart.harness.task.catalogue import open_task

if TYPE_CHECKING:
    from tests.conftest import Lab

PACKAGE = os.environ.get("TESTS_VERIFIERS_PYTHON", "")
NAME, MODULE = "eyechart-lab-ones", "eyechart_lab_ones"
REPLIES = (
    *("Final answer: {}", "final answer: **{}**.", "I count {}", "{}", "Final answer: 1{}"),
    *("", "I cannot help with that.", "<think>Final answer: 9</think>Final answer: {}"),
    *("Final answer: {}\nFinal answer: 99", "7 or 8", "Step {}"),
)

_First = TypeVar("_First")
_Second = TypeVar("_Second")


class Data(BaseModel):
    """What a row of verifiers has that an export writes."""

    id: str
    name: str
    prompt: str
    system_prompt: str | None = None


class Row(Generic[_First]):
    """A task of verifiers."""

    def __init__(self, data: Any, config: object = None) -> None:
        self.data, self.config = data, config


class Config(BaseModel):
    """The settings of a taskset."""

    id: str = ""
    task: object = None


class Rows(Generic[_First, _Second]):
    """A taskset."""

    def __init__(self, config: Any) -> None:
        self.config = config


def said(text: str, *, cut: bool = False) -> types.SimpleNamespace:
    """The trace of one reply."""
    return types.SimpleNamespace(last_reply=text, is_truncated=cut, assistant_messages=[text])


@pytest.fixture
def exported(lab: Lab) -> Path:
    """The lab's task, with two conditions and two lengths."""
    folder = lab.folder / "environment"
    done = lab.bench("export", "verifiers", "--task", lab.ones, "-o", folder)
    assert (done.code, done.out) == (0, f"{folder}\n")
    assert done.lines == [
        f"16 rows: pip install -e {folder}",
        f"vf-eval {NAME} --env.agent.harness.id null --env.agent.runtime.type subprocess --model …",
    ]
    return folder


@pytest.fixture
def taskset(exported: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exported module, with as much of verifiers as it needs."""
    whole: Any = types.ModuleType("verifiers")
    whole.v1 = types.ModuleType("verifiers.v1")
    whole.v1.TaskData, whole.v1.Task = Data, Row
    whole.v1.TasksetConfig, whole.v1.Taskset = Config, Rows
    whole.v1.reward = lambda **_: lambda function: function
    whole.v1.metric = lambda function: function
    monkeypatch.setitem(sys.modules, "verifiers", whole)
    monkeypatch.setitem(sys.modules, "verifiers.v1", whole.v1)
    monkeypatch.syspath_prepend(exported)
    yield importlib.import_module(MODULE)
    for name in [name for name in sys.modules if name.partition(".")[0] == MODULE]:
        del sys.modules[name]


def rows(folder: Path) -> list[dict[str, Any]]:
    text = (folder / MODULE / "rows.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def ours(row: dict[str, Any], text: str, finish: str = "stop") -> Outcome:
    """What `bench score` says of a reply."""
    answer = Answer(type="integer")
    given: Any = {"refusal": None, "failure": None, "target": int(row["answer"]), "answer": answer}
    return judge(text=text, finish_reason=finish, **given).outcome


def test_the_rows_are_the_samples_of_a_run(lab: Lab, exported: Path) -> None:
    """Their ids, prompts, targets and places; each once."""
    samples = list(plan(open_task("lab/ones", lab.ones)))
    found = rows(exported)
    assert [row["id"] for row in found] == [sample.id for sample in samples]
    for row, sample in zip(found, samples, strict=True):
        assert (row["prompt"], row["answer"]) == (sample.prompt, str(sample.target))
        assert row["info"] == {
            "task": "lab/ones",
            "task_version": 1,
            "condition": sample.condition.label,
            "length": sample.line.length,
            "symbols": sample.length,
            "row": sample.index,
            "seed": 0,
            "max_tokens": output_budget(sample),
        }


def test_the_package_is_one_that_can_be_installed(exported: Path) -> None:
    """Its names fit each other, and nothing in it imports us."""
    project = tomllib.loads((exported / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["name"] == NAME
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [MODULE]
    assert (exported / MODULE / "__init__.py").is_file()
    for file in exported.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) eyechart\b", text, re.MULTILINE), file


def test_the_reward_is_our_verdict(taskset: Any, exported: Path) -> None:
    """1 for `correct` alone; the outcome is a metric; a cut-off reply is no answer."""
    loaded = list(taskset.EyechartTaskset(taskset.taskset.EyechartConfig()).load())
    assert [task.key for task in loaded] == [row["id"] for row in rows(exported)]
    seen = set()
    for task, row in zip(loaded, rows(exported), strict=True):
        for template in REPLIES:
            for cut in (False, True):
                trace = said(template.format(row["answer"]), cut=cut)
                expected = ours(row, trace.last_reply, "length" if cut else "stop")
                assert asyncio.run(task.correct(trace)) == float(expected == "correct")
                counts = asyncio.run(task.outcome(trace))
                assert counts.pop(str(expected)) == 1.0
                assert set(counts.values()) == {0.0}
                seen.add(str(expected))
        assert asyncio.run(task.validate(None))
        task.data.scoring["phrase"] = ["Answer:", "Resultado:"]
        assert asyncio.run(task.validate(None))
    assert {"correct", "incorrect", "unparsed", "truncated", "refused"} <= seen
    silent = types.SimpleNamespace(last_reply="", is_truncated=False, assistant_messages=[])
    assert asyncio.run(loaded[0].outcome(silent))["error"] == 1.0
    assert asyncio.run(loaded[0].correct(silent)) == 0.0


def test_rows_can_be_chosen(taskset: Any) -> None:
    """By condition and by nominal length."""
    config = taskset.taskset.EyechartConfig(conditions=["separator=comma"], lengths=[5])
    infos = [task.data.info for task in taskset.EyechartTaskset(config).load()]
    assert len(infos) == 4
    assert {(one["condition"], one["length"]) for one in infos} == {("separator=comma", 5)}


def test_a_second_export_replaces_the_first(lab: Lab, exported: Path) -> None:
    """A file of somebody else stays, and a folder that is not ours is left alone."""
    (exported / "mine.txt").write_text("mine", encoding="utf-8")
    lab.bench("export", "verifiers", "--task", "counting/ones,counting/sum", "-o", exported)
    assert not (exported / MODULE).exists()  # the folder inside it is removed before it
    assert (exported / "eyechart_counting" / "rows.jsonl").is_file()
    assert (exported / "mine.txt").read_text(encoding="utf-8") == "mine"
    other = lab.folder / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine", encoding="utf-8")
    said = lab.bench("export", "verifiers", "--task", lab.ones, "-o", other)
    said.one_line(2, "files of another origin")
    assert [path.name for path in other.iterdir()] == ["mine.txt"]


def test_a_title_of_any_characters_is_one_line(lab: Lab) -> None:
    """Of a file that TOML's rules hold for."""
    text = lab.ones.read_text(encoding="utf-8")
    odd = text.replace("title: Ones\n", 'title: "\\"Ones\\" \\x7f and\\n ☺😀\\\\"\n')
    assert odd != text
    lab.ones.write_text(odd, encoding="utf-8")
    assert lab.bench("export", "verifiers", "-t", lab.ones, "-o", lab.folder / "odd").code == 0
    project = tomllib.loads((lab.folder / "odd" / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["description"] == '"Ones" and ☺😀\\'


def test_a_task_with_a_scorer_is_refused(lab: Lab) -> None:
    """The function is not in the exported folder."""
    scorer = lab.ones.with_name("scorer.py")
    scorer.write_text("def score(reply, item):\n    return 'correct'\n", encoding="utf-8")
    task = lab.ones.with_name("own.yaml")
    text = lab.ones.read_text(encoding="utf-8")
    task.write_text(text + "scorer: scorer.py:score\n", encoding="utf-8")
    done = lab.bench("export", "verifiers", "--task", task, "-o", lab.folder / "environment")
    done.one_line(2, "'lab/own'", "a scorer of its own")
    assert not (lab.folder / "environment").exists()


@pytest.mark.parametrize(
    ("tasks", "name"),
    [
        (["counting/ones"], "eyechart-counting-ones"),
        (["counting/ones", "counting/sum"], "eyechart-counting"),
        (["counting/ones", "copying/verbatim"], "eyechart-tasks"),
        (["Mine & Yours/größe"], "eyechart-mine-yours-gr-e"),
    ],
)
def test_the_name_is_one_that_a_package_can_have(tasks: list[str], name: str) -> None:
    """Of the only task, or of the only group."""
    assert environment_name(tasks) == name
    with pytest.raises(UsageError, match="rename the task"):
        environment_name(["日本/語"])


SCRIPT = """\
import asyncio, json, sys

import verifiers.v1 as vf
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import ModelCall
from verifiers.v1.utils.loaders import taskset_config_type

name, replies = sys.argv[1], json.load(sys.stdin)
env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": name}}))
tasks = list(vf.load_taskset(taskset_config_type(name)(id=name)))
assert [one.data.id for one in env.taskset] == [one.data.id for one in tasks]


def judged(task, text, finish):
    trace = vf.Trace(
        task=vf.TraceTask(type="EyechartTask", data=task.data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        nodes=[MessageNode(message=vf.AssistantMessage(content=text), sampled=True)],
        calls=[ModelCall(node=0, finish_reason=finish)],
    )
    asyncio.run(task.score(trace))
    return [trace.reward, {name: value for name, value in trace.metrics.items() if value}]


print(json.dumps({
    "data": [task.data.model_dump(include={"id", "prompt", "answer", "info"}) for task in tasks],
    "valid": [asyncio.run(task.validate(None)) for task in tasks],
    "judged": [[judged(task, *one) for one in given] for task, given in zip(tasks, replies)],
}))
"""


@pytest.mark.skipif(not PACKAGE, reason="TESTS_VERIFIERS_PYTHON names no Python with verifiers")
def test_the_real_verifiers_loads_and_rewards(exported: Path) -> None:
    """Its own loaders open the environment, and its scoring gives the rewards of our verdicts."""
    found = rows(exported)
    replies = [
        [
            (template.format(row["answer"]), end)
            for template in REPLIES
            for end in ("stop", "length")
        ]
        for row in found
    ]
    done = subprocess.run(
        [PACKAGE, "-c", SCRIPT, NAME],
        input=json.dumps(replies),
        env={**os.environ, "PYTHONPATH": str(exported)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    keys = ("id", "prompt", "answer", "info")
    assert told["data"] == [{key: row[key] for key in keys} for row in found]
    assert told["valid"] == [True] * len(found)
    for row, given, judged in zip(found, replies, told["judged"], strict=True):
        for (text, end), (reward, metrics) in zip(given, judged, strict=True):
            expected = ours(row, text, end)
            assert reward == float(expected == "correct"), (text, end)
            assert metrics == {str(expected): 1.0}, (text, end)
