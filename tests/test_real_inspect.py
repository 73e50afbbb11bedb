"""The real `inspect` and `bench run` on one real vLLM, sample by sample.

Both commands must be beside this Python: `.ci/vllm` puts them there.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from eyechart.harness.analysis.samples.verdicts import Judge
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.journal.record import decode
from eyechart.harness.score.outcomes import Outcome
from eyechart.harness.score.verdict import Verdict
from tests.conftest import records
from tests.real_server import ENVIRONMENT, STARTED_S, VLLM, WINDOW, Server

INSPECT = Path(sys.executable).with_name("inspect")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm"),
    pytest.mark.skipif(not INSPECT.exists(), reason="no inspect beside this Python; see .ci/vllm"),
]

UNSCORED = ("refused", "truncated", "overflow", "error")


def ended(folder: Path, server: Server, *command: str) -> subprocess.CompletedProcess[str]:
    """A command in `folder`, once it has ended; `openai-api/local/` and `vllm/` are the server."""
    addresses = {"LOCAL_BASE_URL": server.base_url, "VLLM_BASE_URL": server.base_url}
    return subprocess.run(
        command,
        cwd=folder,
        env={**ENVIRONMENT, **addresses, "LOCAL_API_KEY": "none"},
        capture_output=True,
        text=True,
        timeout=STARTED_S,
        check=False,
    )


def evaluated(folder: Path, server: Server, *arguments: str) -> dict[str, Any]:
    """The log of `inspect eval`, which must be the only one in `folder`."""
    how = ("--log-format", "json", "--log-dir", "logs", "--display", "plain")
    done = ended(folder, server, str(INSPECT), "eval", *arguments, *how)
    assert done.returncode == 0, done
    (log,) = (folder / "logs").glob("*.json")
    read: dict[str, Any] = json.loads(log.read_bytes())
    return read


def benched(folder: Path, server: Server, *arguments: str) -> dict[str, tuple[Any, Verdict]]:
    """Sample id -> record and verdict, of `bench run` on the server."""
    where = ("--model", "vllm/tiny", "--base-url", server.base_url, "--out", str(folder))
    done = ended(
        folder, server, sys.executable, "-m", "eyechart.harness", "run", *arguments, *where
    )
    assert done.returncode == 0, done
    found = {}
    for manifest in (folder / "runs").rglob(MANIFEST):
        answer = read_manifest(manifest.parent).task_spec().answer
        for record in records(manifest.parent):
            found[record["id"]] = record, Judge(answer).verdict(decode(orjson.dumps(record)))
    return found


def metrics(log: dict[str, Any], scorer: str) -> dict[str, float]:
    """The numbers of one scorer."""
    (found,) = (score for score in log["results"]["scores"] if score["name"] == scorer)
    return {name: metric["value"] for name, metric in found["metrics"].items()}


def assert_same_verdicts(log: dict[str, Any], expected: dict[str, tuple[Any, Verdict]]) -> None:
    """Fails unless every sample has the same reply, the same outcome, and the score of it.

    `bench run` gives some samples more room, after their reply or another was cut off; Inspect does
    not: their replies begin alike.
    """
    samples = {sample["id"]: sample for sample in log["samples"]}
    assert len(samples) == len(log["samples"])
    assert samples.keys() == expected.keys()
    for key, (record, whole) in expected.items():
        judged = whole
        sample = samples[key]
        output, scores = sample["output"], sample["scores"]
        usage = output["usage"]
        assert usage["input_tokens"] == record["prompt_tokens"], key
        if record["output_tokens"] > usage["output_tokens"]:
            assert record["reply"].startswith(output["completion"]), key
            assert output["choices"][0]["stop_reason"] == "max_tokens", key
            judged = replace(judged, outcome=Outcome.TRUNCATED, answer=None)
            expected[key] = record, judged
        else:
            assert record["reply"] == output["completion"], key
            assert record["output_tokens"] == usage["output_tokens"], key
        assert sample["metadata"]["eyechart"]["prompt_hash"] == record["prompt_hash"]
        assert scores["outcome"]["value"] == judged.outcome, key
        value = scores["verdict"]["value"]
        if judged.outcome in UNSCORED:
            assert math.isnan(value), key
        else:
            assert value == ("C" if judged.outcome == "correct" else "I"), key
        said = None if judged.answer is None else str(judged.answer)
        assert scores["verdict"].get("answer") == said, key


def both(
    folder: Path, server: Server, task: str, lengths: str, *axes: str
) -> tuple[dict[str, Any], dict[str, tuple[Any, Verdict]]]:
    """The log of `inspect eval` and what `bench run` has of the same samples, three a cell."""
    wanted = [word for axis in axes for word in ("--axis", axis)]
    size = ("--exact", "--lengths", lengths, "--samples", "3")
    expected = benched(folder, server, "--task", task, *size, *wanted)
    given = (f"lengths={lengths}", "exact=true", "samples=3", *axes)
    options = [word for one in given for word in ("-T", one)]
    model = ("--model", "openai-api/local/tiny")
    return evaluated(folder, server, f"eyechart/{task}", *model, *options), expected


def test_inspect_and_bench_agree_on_every_sample(server: Server, tmp_path: Path) -> None:
    """The same replies, tokens and verdicts, from which the metrics follow.

    Lengths beyond what the model learned bring wrong, unreadable and cut-off replies.
    """
    lengths = (5, 50, 100, 500)
    log, expected = both(tmp_path, server, "counting", ",".join(map(str, lengths)))
    assert (log["status"], log["eval"]["task"]) == ("success", "eyechart/counting")
    assert_same_verdicts(log, expected)

    outcomes = Counter(judged.outcome.value for _, judged in expected.values())
    assert outcomes.keys() == {"correct", "incorrect", "unparsed", "truncated"}
    counted = metrics(log, "outcome")
    assert {name: counted[name] for name in outcomes} == outcomes
    shown = metrics(log, "verdict")
    assert shown["n"] == sum(outcomes.values()) - outcomes["truncated"]
    assert shown["accuracy"] == pytest.approx(outcomes["correct"] / shown["n"])
    for length in lengths:
        of_length = [judged for record, judged in expected.values() if record["length"] == length]
        judged = [one for one in of_length if one.outcome not in UNSCORED]
        right = sum(one.outcome == "correct" for one in judged)
        assert shown[f"length={length} n"] == len(judged)
        assert shown[f"length={length}"] == pytest.approx(right / len(judged))


@pytest.mark.parametrize(
    ("task", "axes"),
    [
        ("counting/bernoulli", ("separator=none,groups_of_five", "strategy=all")),
        ("copying/first_last", ("hint=on", "separator=all")),
    ],
)
def test_they_agree_under_all_conditions(
    server: Server, tmp_path: Path, task: str, axes: tuple[str, ...]
) -> None:
    """Axes as -T gives them, replies of many lengths, another kind of answer."""
    log, expected = both(tmp_path, server, task, "5,50", *axes)
    assert_same_verdicts(log, expected)


@pytest.mark.parametrize("model", ["vllm/tiny", "openai-api/local/tiny"])
def test_a_prompt_beyond_the_window_is_an_overflow(
    server: Server, tmp_path: Path, model: str
) -> None:
    """Also where Inspect's provider does not know the server's words."""
    given = (f"lengths=10,{WINDOW + 100}", "exact=true", "samples=2", "separator=none")
    options = (word for one in given for word in ("-T", one))
    log = evaluated(tmp_path, server, "eyechart/counting/ones", "--model", model, *options)
    assert log["status"] == "success"
    counted, shown = metrics(log, "outcome"), metrics(log, "verdict")
    assert (counted["correct"], counted["overflow"]) == (2, 2)
    assert (shown["accuracy"], shown["n"]) == (1.0, 2)
    assert f"length={WINDOW + 100}" not in shown


def test_what_cannot_be_asked_is_one_line(server: Server, tmp_path: Path) -> None:
    """On stderr, with exit code 2 and no traceback."""
    asked = ("eyechart/counting", "--model", "openai-api/local/tiny", "-T", "seperator=all")
    done = ended(tmp_path, server, str(INSPECT), "eval", *asked)
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "Error: no axis 'seperator' in 'counting'; did you mean 'separator'?"
    )
