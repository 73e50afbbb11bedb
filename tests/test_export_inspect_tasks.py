"""Task files as tasks of inspect_ai, and its evaluations of them; skipped where it is missing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="no inspect_ai: pip install -e '.[inspect]'")

from inspect_ai._eval.loader import load_tasks
from inspect_ai._util.registry import registry_name

from eyechart.harness.plan.plan import output_budget, plan
from eyechart.harness.satellites.export.inspect_ai import tasks
from eyechart.harness.satellites.export.inspect_ai.scores import FACTS, ours
from eyechart.harness.satellites.export.inspect_ai.tasks import BadParameterError
from eyechart.harness.spec import Line
from eyechart.harness.task.catalogue import built_in_files, open_task
from tests.conftest import Lab

pytestmark = pytest.mark.inspect

EVALUATE = """\
import itertools
import json
import sys

import inspect_ai
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model

given = json.loads(sys.argv[1])
replies = itertools.cycle(given["replies"])
asked = []


def reply(messages, tools, choice, config):
    asked.append([[message.role for message in messages], config.max_tokens, config.temperature])
    said = next(replies)
    if said is None:
        raise ValueError("no reply today")
    output = ModelOutput.from_content("mockllm/model", said[0], stop_reason=said[1])
    output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
    return output


how = {"memoize": False, "custom_outputs": reply}
if "config" in given:
    model = {"model": get_model("mockllm/model", config=GenerateConfig(**given["config"]), **how)}
else:
    model = {"model": "mockllm/model", "model_args": how}
(log,) = inspect_ai.eval(
    given["task"], task_args=given["args"], **model, **given["options"],
    display="none", log_dir="logs", log_format="json", log_level="error", max_samples=1,
)
print(json.dumps({"asked": asked, "log": log.location}))
"""
"""Evaluates a task on a model that gives some replies in turn; says how it was asked, and where
the log is."""


def evaluate(
    folder: Path, *replies: tuple[str, str] | None, task: str = "counting/ones", **given: Any
) -> tuple[dict[str, Any], list[Any]]:
    """The log of an evaluation in which a model gives `replies` in turn (text and stop reason, or
    none), and how it was asked: roles, room and temperature.
    """
    said = {"task": f"eyechart/{task}", "replies": replies, "args": {}, "options": {}, **given}
    done = subprocess.run(
        [sys.executable, "-c", EVALUATE, json.dumps(said)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    return json.loads(Path(answer["log"]).read_bytes()), answer["asked"]


def numbers(log: dict[str, Any], scorer: str) -> dict[str, float]:
    """The metrics of one scorer."""
    (found,) = (score for score in log["results"]["scores"] if score["name"] == scorer)
    return {name: metric["value"] for name, metric in found["metrics"].items()}


def made(name: str, **parameters: Any) -> Any:
    """The task of that name, as Inspect makes it."""
    (task,) = load_tasks([name], parameters)
    return task


def test_names_begin_as_ours_wherever_we_are_installed() -> None:
    """Inspect would put the import package of an installed module before them."""

    def made() -> None:
        """Stands for a task, scorer or metric."""

    made.__module__ = "pytest"
    assert registry_name(made, "eyechart/counting") == "pytest/eyechart/counting"
    assert registry_name(ours(made), "eyechart/counting") == "eyechart/counting"


@pytest.mark.parametrize("name", built_in_files())
def test_every_task_file_is_a_task(name: str) -> None:
    """Its samples are the plan's, in the plan's order, with all that a verdict needs."""
    file = open_task(name, built_in_files()[name])
    task = made(f"eyechart/{name}", samples=1)
    assert (task.name, task.version) == (f"eyechart/{name}", file.spec.version)
    planned = list(plan(file, samples=1))
    assert len(task.dataset) == len(planned)
    for got, sample in zip(task.dataset, planned, strict=True):
        (first, *others), target = sample.messages, str(sample.target)
        assert (got.id, got.input, got.target) == (sample.id, first, target)
        assert got.metadata[FACTS].get("next_turns", ()) == tuple(others)
        assert got.metadata.items() >= sample.condition.items()
        assert (got.metadata["length"], got.metadata["index"]) == (sample.length, sample.index)
        assert Line(*got.metadata[FACTS]["line"]) == sample.line
        assert got.metadata[FACTS]["target"] == sample.target
        assert got.metadata[FACTS]["prompt_hash"] == sample.prompt_hash
        assert got.metadata[FACTS]["max_tokens"] == output_budget(sample)


@pytest.mark.parametrize("group", sorted({name.partition("/")[0] for name in built_in_files()}))
def test_every_group_is_a_task(group: str) -> None:
    """It has the samples of all its tasks."""
    task = made(f"eyechart/{group}", samples=1)
    members = [name for name in built_in_files() if name.startswith(f"{group}/")]
    assert {sample.metadata["task"] for sample in task.dataset} == set(members)
    versions = ",".join(f"{name}@1" for name in members)
    assert task.version == (versions if len(members) > 1 else 1)


def test_parameters_are_those_of_bench() -> None:
    """Lengths, samples, seed and axes, in the forms that -T gives them."""
    name = "eyechart/copying/first_last"
    asked = {"lengths": ["10", "5"], "samples": 2, "seed": 3, "odd": "zero", "position": "first"}
    task = made(name, **asked, hint=True, separator=["none", "comma"])
    file = open_task("copying/first_last", built_in_files()["copying/first_last"])
    axes = {"odd": ["zero"], "position": ["first"], "hint": ["on"], "separator": ["none", "comma"]}
    planned = plan(file, lengths=[5, 10], samples=2, seed=3, axes=axes)
    assert [sample.id for sample in task.dataset] == [sample.id for sample in planned]
    assert len(made(name, lengths=5, samples=1, hint="all", odd="zero").dataset) == 4
    exact = plan(file, lengths=[5, 10], samples=2, exact=True)
    task = made(name, lengths=[5, 10], samples=2, exact=True)
    assert [sample.id for sample in task.dataset] == [sample.id for sample in exact]


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("counting/ones", {"seperator": "all"}, "did you mean 'separator'?"),
        ("counting/ones", {"separator": "tab"}, "it has none, space, comma"),
        ("counting/ones", {"separator": True}, "no value 'True'"),
        ("counting/ones", {"separator": None}, "-T separator is empty"),
        ("counting/ones", {"lengths": "ten"}, "not 'ten'"),
        ("counting/ones", {"exact": "all"}, "-T exact must be true or false, not 'all'"),
        ("counting/ones", {"lengths": ["5", "-1"]}, "not '-1'"),
        (
            "counting/ones",
            {"samples": "few"},
            "samples must be a whole number from 1 to 1,000,000, not 'few'",
        ),
        ("counting/ones", {"samples": True}, "must be a whole number"),
        ("counting/ones", {"samples": 0}, "from 1 to 1,000,000"),
        ("counting/ones", {"seed": [1, 2]}, "seed must be a whole number"),
        ("file", {}, "-T path="),
        ("file", {"path": "none.yaml"}, "no file 'none.yaml'"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    name: str, parameters: dict[str, object], words: str
) -> None:
    """As of `bench run`, with its exit code; Inspect's command prints it without a traceback."""
    with pytest.raises(BadParameterError) as error:
        made(f"eyechart/{name}", **parameters)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


def test_a_file_of_the_users_runs(lab: Lab) -> None:
    """`eyechart/file` with its path; every sample is asked and judged."""
    args = {"path": str(lab.ones), "samples": 1, "lengths": [3]}
    log, asked = evaluate(lab.folder, ("Final answer: 2", "stop"), task="file", args=args)
    assert log["status"] == "success"
    assert [sample["metadata"]["task"] for sample in log["samples"]] == ["lab/ones"] * 2
    assert len(asked) == 2
    assert numbers(log, "outcome")["correct"] + numbers(log, "outcome")["incorrect"] == 2


def test_a_file_with_mistakes_says_all_of_them(lab: Lab) -> None:
    """A line for each, with its place."""
    lab.ones.write_text(lab.ones.read_text().replace("version: 1", "version: one\nextra: 1"))
    with pytest.raises(BadParameterError) as error:
        made("eyechart/file", path=str(lab.ones))
    assert str(error.value).splitlines()[0] == "a task file is wrong"
    assert len(str(error.value).splitlines()) == 3


def test_a_system_prompt_comes_first(lab: Lab) -> None:
    """Of a task that has one; without it the prompt is the whole input."""
    (plain, *_) = made("eyechart/file", path=str(lab.ones), samples=1, lengths=[3]).dataset
    assert isinstance(plain.input, str)
    lab.ones.write_text(lab.ones.read_text() + "system: Be brief.\n")
    (sample, *_) = made("eyechart/file", path=str(lab.ones), samples=1, lengths=[3]).dataset
    texts = [(message.role, message.content) for message in sample.input]
    assert texts == [("system", "Be brief."), ("user", plain.input)]


def test_a_scorer_is_refused(lab: Lab) -> None:
    """In one line: the log could not be scored again."""
    lab.ones.write_text(lab.ones.read_text() + "scorer: score.py:score\n")
    (lab.ones.parent / "score.py").write_text("def score(reply, item):\n    return 'correct'\n")
    with pytest.raises(BadParameterError, match="has a scorer of its own"):
        made("eyechart/file", path=str(lab.ones))


ONE_CELL = {"separator": "none", "lengths": 5}
TWO_ROOMS = {"separator": "none", "lengths": [5, 200], "samples": 1, "strategy": "all"}


@pytest.mark.parametrize(
    ("given", "room", "temperature"),
    [
        ({}, None, 0.0),
        ({"options": {"max_tokens": 7, "temperature": 0.5}}, 7, 0.5),
        ({"config": {"max_tokens": 9}}, 9, 0.0),
    ],
)
def test_each_sample_has_its_own_room(
    tmp_path: Path, given: dict[str, Any], room: int | None, temperature: float
) -> None:
    """As `bench run --max-tokens auto` has it, greedily, unless Inspect is told otherwise."""
    file = open_task("counting/ones", built_in_files()["counting/ones"])
    axes = {"separator": ["none"], "strategy": ["all"]}
    planned = list(plan(file, lengths=[5, 200], samples=1, axes=axes))
    _, asked = evaluate(tmp_path, ("Final answer: 5", "stop"), args=TWO_ROOMS, **given)
    assert sorted(asked) == sorted(
        [["user"], room or output_budget(sample), temperature] for sample in planned
    )
    assert len({output_budget(sample) for sample in planned}) > 2


def test_a_reasoning_model_has_room_to_think(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the file of models says of it, on top of the reply's own room."""
    facts = tmp_path / "models.yaml"
    facts.write_text("mockllm/thinker: {reasoning: true, think_tokens: 1000}\n")
    monkeypatch.setenv("EYECHART_MODELS", str(facts))
    assert tasks._room_to_think("mockllm/thinker") == 1000
    assert tasks._room_to_think("mockllm/other") == 0


def test_what_is_no_answer_is_left_out_and_counted(tmp_path: Path) -> None:
    """Of eight replies two are right and two wrong; four are unscored, of which one failed."""
    log, asked = evaluate(
        tmp_path,
        ("Final answer: 5", "stop"),
        ("It is 5.", "stop"),
        ("Final answer: 4", "stop"),
        ("who knows", "stop"),
        ("I cannot help with that.", "stop"),
        ("no", "content_filter"),
        ("Final ans", "max_tokens"),
        None,
        args={**ONE_CELL, "samples": 8},
    )
    assert len(asked) == 8
    (verdicts,) = (score for score in log["results"]["scores"] if score["name"] == "verdict")
    assert (verdicts["scored_samples"], verdicts["unscored_samples"]) == (4, 4)
    shown = numbers(log, "verdict")
    assert (shown["accuracy"], shown["length=5"], shown["length=5 n"]) == (0.5, 0.5, 4)
    counted = numbers(log, "outcome")
    assert list(counted.items())[:7] == [
        *(("correct", 2), ("incorrect", 1), ("unparsed", 1)),
        *(("refused", 2), ("truncated", 1), ("overflow", 0), ("error", 1)),
    ]
    assert log["status"] == "error"
    (failed,) = (sample for sample in log["samples"] if sample.get("error"))
    assert "no reply today" in failed["error"]["message"]
    assert math.isnan(failed["scores"]["verdict"]["value"])


def test_epochs_are_means_and_all_counted(tmp_path: Path) -> None:
    """A sample that is right every second time is half right; its replies are counted apart."""
    log, _ = evaluate(
        tmp_path,
        ("Final answer: 5", "stop"),
        ("Final answer: 4", "stop"),
        args={**ONE_CELL, "samples": 1},
        options={"epochs": 6},
    )
    assert numbers(log, "verdict")["accuracy"] == 0.5
    assert numbers(log, "verdict")["n"] == 1
    counted = numbers(log, "outcome")
    assert (counted["correct"], counted["incorrect"]) == (3, 3)


def test_turns_are_asked_one_after_the_other(tmp_path: Path) -> None:
    """With the model's own replies between; the last one is judged."""
    file = open_task("turns/running_sum", built_in_files()["turns/running_sum"])
    (sample,) = plan(file, samples=1, lengths=[3])
    replies = ("Final answer: 1", "stop"), ("", "stop"), (f"Final answer: {sample.target}", "stop")
    args = {"samples": 1, "lengths": 3}
    log, asked = evaluate(
        tmp_path, replies[0], replies[0], replies[2], task="turns/running_sum", args=args
    )
    turn = ["user", "assistant"]
    assert [roles for roles, _, _ in asked] == [["user"], [*turn, "user"], [*turn * 2, "user"]]
    assert numbers(log, "verdict")["accuracy"] == 1.0
    users = [one["content"] for one in log["samples"][0]["messages"] if one["role"] == "user"]
    assert tuple(users) == sample.messages
    _, asked = evaluate(tmp_path, *replies, task="turns/running_sum", args=args)
    assert len(asked) == 2, "nothing follows an empty reply"
