"""Adaptive evaluations of inspect_ai; skipped where it is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="no inspect_ai: pip install -e '.[inspect]'")

from inspect_ai._eval.loader import load_tasks

from tests.test_export_inspect_waves import known_to

pytestmark = pytest.mark.inspect

EVALUATE = """\
import json
import re
import sys
from collections import Counter

import inspect_ai
from inspect_ai.model import ModelOutput, ModelUsage, get_model

given = json.loads(sys.argv[1])
requests = Counter()


def model(name, sees):
    def reply(messages, tools, choice, config):
        row = max(re.findall("[01]+", messages[-1].text), key=len)
        requests[name] += 1
        if given["faults"] and requests[name] % given["faults"] == 0:
            raise ValueError("no reply today")
        said = row.count("1") + (len(row) > sees)
        output = ModelOutput.from_content("mockllm/model", f"Final answer: {said}")
        output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
        return output

    return get_model(f"mockllm/{name}", memoize=False, custom_outputs=reply)


how = {"display": "none", "log_dir": "logs", "log_format": "json", "log_level": "error"}
models = [model(f"sees{sees}", sees) for sees in given["sees"]]
logs = inspect_ai.eval(
    given["task"], task_args=given["args"], model=models, **given["options"], **how
)
if given["again"]:
    assert {log.status for log in logs} == {"error"}
    logs = inspect_ai.eval_retry(logs, **how)
print(json.dumps({"requests": requests, "logs": [log.location for log in logs]}))
"""
"""Evaluates a task on models that count rightly up to a length; every so many requests may fail."""

ONES = {"adaptive": True, "separator": "none", "samples": 60}
LIMIT_S = 100


def evaluate(
    folder: Path, *sees: int, faults: int = 0, again: bool = False, **given: Any
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The logs of one evaluation on models that see so far, and how many requests each got."""
    said = {
        "task": "eyechart/counting/ones",
        "args": ONES,
        "options": {"max_samples": 4},
        "sees": sees,
        "faults": faults,
        "again": again,
        **given,
    }
    done = subprocess.run(
        [sys.executable, "-c", EVALUATE, json.dumps(said)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    return [json.loads(Path(log).read_bytes()) for log in answer["logs"]], answer["requests"]


def numbers(log: dict[str, Any], scorer: str) -> dict[str, float]:
    """The metrics of one scorer."""
    (found,) = (score for score in log["results"]["scores"] if score["name"] == scorer)
    return {name: metric["value"] for name, metric in found["metrics"].items()}


def ended(log: dict[str, Any]) -> dict[str, Any]:
    """What the evaluation says of its only condition."""
    (condition,) = log["results"]["early_stopping"]["metadata"]["conditions"].values()
    return dict(condition)


@pytest.mark.parametrize("at_once", [1, 40])
def test_it_asks_until_the_effective_length_is_known(tmp_path: Path, at_once: int) -> None:
    """And says that it is adaptive, how many samples it asked, and why it passed over others."""
    (log,), requests = evaluate(tmp_path, 60, options={"max_samples": at_once})
    assert log["status"] == "success"
    stopping = log["results"]["early_stopping"]
    why = ended(log)["ended"]
    assert 0 < known_to(why) <= 0.75
    assert stopping["manager"] == "eyechart adaptive"
    assert stopping["metadata"]["adaptive"] is True
    asked = requests["sees60"]
    assert ended(log) == {"asked": asked, "ended": why}
    assert len(log["samples"]) == asked < 100
    assert len(stopping["early_stops"]) == log["eval"]["dataset"]["samples"] - asked
    reasons = Counter(stop["reason"] for stop in stopping["early_stops"])
    assert reasons.keys() == {why, "the replies so far ask for samples of other lengths"}

    found = numbers(log, "outcome")
    assert found["adaptive"] == 1
    assert found["effective_length_ci_low"] <= 60 <= found["effective_length_ci_high"]
    assert found["correct"] + found["incorrect"] == asked
    shown = numbers(log, "adaptive_verdict")
    assert shown["n"] == asked
    assert "accuracy" not in shown
    assert log["eval"]["metadata"]["adaptive"] is True


def test_models_at_the_same_time_have_their_own_waves(tmp_path: Path) -> None:
    """Though Inspect makes one task for them all, or one for each."""
    logs, requests = evaluate(tmp_path, 20, 200)
    assert len(logs) == 2
    for log, sees in zip(logs, (20, 200), strict=True):
        assert log["eval"]["model"] == f"mockllm/sees{sees}"
        assert ended(log)["asked"] == len(log["samples"]) == requests[f"sees{sees}"]
        found = numbers(log, "outcome")
        assert found["effective_length_ci_low"] <= sees <= found["effective_length_ci_high"]


def test_failed_requests_are_retried_while_others_wait(tmp_path: Path) -> None:
    """A sample that waits for its next attempt has no place, so that nothing may wait for it."""
    options = {"max_samples": 2, "retry_on_error": 20}
    (log,), requests = evaluate(tmp_path, 60, faults=3, options=options)
    assert log["status"] == "success"
    assert ended(log)["asked"] == len(log["samples"]) < requests["sees60"]
    assert 0 < known_to(ended(log)["ended"]) <= 0.75


def test_failed_requests_are_no_answers(tmp_path: Path) -> None:
    """The waves go on without them."""
    (log,), _ = evaluate(tmp_path, 60, faults=5, options={"max_samples": 4, "fail_on_error": False})
    found = numbers(log, "outcome")
    assert found["error"] > 0
    assert found["effective_length_ci_low"] <= 60 <= found["effective_length_ci_high"]


def test_an_evaluation_goes_on_from_its_log(tmp_path: Path) -> None:
    """What it answered is not asked again, and counts."""
    options = {"max_samples": 4, "fail_on_error": 3}
    (log,), requests = evaluate(tmp_path, 60, faults=16, again=True, options=options)
    assert log["status"] == "success"
    assert ended(log)["asked"] == len(log["samples"])
    assert requests["sees60"] < 2 * len(log["samples"])
    assert numbers(log, "outcome")["adaptive"] == 1


def test_epochs_are_samples_of_their_own(tmp_path: Path) -> None:
    """Each is asked or passed over by itself."""
    args = {**ONES, "samples": 20}
    (log,), requests = evaluate(tmp_path, 60, args=args, options={"max_samples": 4, "epochs": 3})
    assert ended(log)["asked"] == len(log["samples"]) == requests["sees60"]
    found = numbers(log, "outcome")
    assert found["effective_length_ci_low"] <= 60 <= found["effective_length_ci_high"]


def test_its_data_set_is_that_of_bench() -> None:
    """Given lengths are bands, and a line has up to 400 samples."""
    (task,) = load_tasks(
        ["eyechart/counting/ones"], {"adaptive": True, "lengths": [10, 20], "separator": "none"}
    )
    assert len(task.dataset) == 2 * 400
    assert len({sample.metadata["length"] for sample in task.dataset}) > 2
    assert task.early_stopping.precision == 0.75
    (usual,) = load_tasks(["eyechart/counting/ones"], {"adaptive": False})
    assert usual.early_stopping is None
