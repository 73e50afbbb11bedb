"""The real lm-eval against a real vLLM on the CPU, both ways: its tasks are ours, our models its.

`.ci/vllm` makes the environment. Where TESTS_VLLM_URL names a server of the embedded model that
runs already (`http://127.0.0.1:8000`), that one is asked.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from eyechart.harness.analysis.samples.verdicts import Judge
from eyechart.harness.journal.manifest import MANIFEST, read_manifest
from eyechart.harness.journal.record import decode
from tests.conftest import records
from tests.real_server import (
    ENVIRONMENT,
    MODEL,
    STARTED_S,
    VLLM,
    WINDOW,
    Server,
    answers,
    assert_same,
    bench,
    runs,
    the_run,
)

LM_EVAL = Path(sys.executable).with_name("lm_eval")

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not LM_EVAL.exists(), reason="no lm_eval beside this Python; see .ci/vllm"),
    pytest.mark.skipif(
        not (VLLM.exists() or "TESTS_VLLM_URL" in os.environ),
        reason="no vllm beside this Python; see .ci/vllm",
    ),
]

TASKS = (
    "--task",
    "counting,copying/first_last,copying/repeated_words",
    "--exact",
    "--lengths",
    "5,20,100,200",
    "--samples",
    "2",
)
SMALL = (
    "--task",
    "counting,copying/first_last",
    "--exact",
    "--lengths",
    "5,20,50",
    "--samples",
    "2",
)
HF = ("--model", "lm-eval/hf", "--model-arg", f"pretrained={MODEL}", "--model-arg", "dtype=float32")
MORE = re.compile(r"\d+ more findings?\b")
WAYS = {
    "chat": ("local-chat-completions", "/v1/chat/completions", ["--apply_chat_template"]),
    "completions": ("local-completions", "/v1/completions", []),
}
"""lm-eval's model type, the server's path, what `lm_eval` needs besides."""


def bench_export(folder: Path, *arguments: str) -> str:
    """What `bench export lm-eval` says of the tasks it wrote to `tasks`."""
    command = ("-m", "eyechart.harness", "export", "lm-eval", *arguments, "-o", "tasks")
    done = subprocess.run(
        [sys.executable, *command],
        env=ENVIRONMENT,
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "tasks\n"
    return done.stderr


def lm_eval(folder: Path, *arguments: str) -> str:
    """What the real command says; it knows nothing of this project, and works elsewhere."""
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [LM_EVAL, *arguments],
        env={**environment, "HF_HOME": str(folder / "hf")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=STARTED_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return done.stdout


def logged(folder: Path) -> dict[str, dict[str, Any]]:
    """Sample id -> what lm-eval's --log_samples says of it."""
    lines = (line for file in folder.rglob("samples_*") for line in file.read_bytes().splitlines())
    return {one["doc"]["id"]: one for one in map(orjson.loads, lines)}


def judged(out: Path) -> dict[str, tuple[str, str]]:
    """Sample id -> our outcome and the reply, of all runs in `out`."""
    return {
        record["id"]: (
            Judge(spec.answer).verdict(decode(orjson.dumps(record))).outcome,
            record["reply"],
        )
        for folder in runs(out)
        for spec in [read_manifest(folder).task_spec()]
        for record in records(folder)
    }


class TestTasks:
    """`bench export lm-eval`, run by `lm_eval`."""

    @pytest.mark.parametrize("way", WAYS)
    def test_the_same_verdict_on_every_sample(
        self, server: Server, tmp_path: Path, way: str
    ) -> None:
        """Theirs and ours, of one server; the texts differ only where a cut-off one ends."""
        kind, path, more = WAYS[way]
        api = ("--api", way)
        bench_export(tmp_path, *TASKS, *api)
        (tmp_path / "tasks").rename(tmp_path / "moved")
        said = lm_eval(
            tmp_path,
            *("run", "--include_path", str(tmp_path / "moved"), "--log_samples"),
            *("--tasks", "eyechart_counting,eyechart_copying", "--output_path", "out", *more),
            *("--model", kind, "--model_args"),
            f"model=tiny,base_url={server.address}{path},num_concurrent=16,"
            "tokenizer_backend=None,tokenized_requests=False,eos_string=<|endoftext|>",
        )
        bench(tmp_path, *TASKS, *api, "--model", "vllm/tiny", "--base-url", server.base_url)
        theirs, ours = logged(tmp_path / "out"), judged(tmp_path)
        assert theirs.keys() == ours.keys()
        differing = [
            f"{key}: {theirs[key]['acc']} {theirs[key]['resps']}, {ours[key]}"
            for key in ours
            if (theirs[key]["acc"] == 1.0) is not (ours[key][0] == "correct")
        ]
        assert differing == []
        outcomes = Counter(outcome for outcome, _ in ours.values())
        assert min(outcomes["correct"], outcomes["incorrect"], outcomes["unparsed"]) > 10
        other = {key for key in ours if theirs[key]["resps"][0][0] != ours[key][1]}
        assert {ours[key][0] for key in other} <= {"truncated"}
        rows = [line.split("|")[1].strip(" -") for line in said.splitlines() if "|acc" in line]
        assert rows.index("length 5") < rows.index("length 20") < rows.index("length 200")
        condition = "separator=comma,strategy=direct,order=question_first"
        assert {"eyechart counting", "counting/ones", condition} < set(rows)

    def test_a_cell_has_its_mean_and_a_standard_error(self, server: Server, tmp_path: Path) -> None:
        """As any task of lm-eval's; `validate` knows it, and the versions are ours."""
        exported = bench_export(tmp_path, "--task", "counting/sum", "--exact", "--lengths", "5,50")
        assert "eyechart_counting" in exported
        place = ("--include_path", str(tmp_path / "tasks"))
        assert "valid" in lm_eval(tmp_path, "validate", *place, "--tasks", "eyechart_counting")
        lm_eval(
            tmp_path,
            *("run", *place, "--tasks", "eyechart_counting", "--apply_chat_template"),
            *("--output_path", "out", "--model", "local-chat-completions", "--model_args"),
            f"model=tiny,base_url={server.base_url}/chat/completions,eos_string=<|endoftext|>",
        )
        (results,) = (tmp_path / "out").rglob("results_*.json")
        read = orjson.loads(results.read_bytes())
        cell = read["results"]["eyechart_counting_sum__direct__question_first__0000005"]
        assert cell["acc,none"] == 1.0
        assert cell["acc_stderr,none"] == 0.0
        assert read["groups"]["eyechart_counting"]["acc,none"] == 0.5
        assert read["groups"]["eyechart_counting"]["acc_stderr,none"] == 0.0
        assert read["versions"]["eyechart_counting_sum__direct__question_first__0000005"] == 1
        assert read["n-shot"]["eyechart_counting_sum__direct__question_first__0000005"] == 0


class TestProvider:
    """`bench run --model lm-eval/…`."""

    @pytest.mark.parametrize("way", WAYS)
    def test_a_server_answers_through_lm_eval_as_it_answers_us(
        self, server: Server, tmp_path: Path, way: str
    ) -> None:
        """Text, finish reason and tokens, sample by sample."""
        kind, path, _ = WAYS[way]
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        ours.mkdir()
        theirs.mkdir()
        api = ("--api", way)
        bench(ours, *SMALL, *api, "--model", "vllm/tiny", "--base-url", server.base_url)
        address = f"base_url={server.address}{path}"
        args = ("--model-arg", "model=tiny", "--model-arg", address)
        bench(theirs, *SMALL, *api, "--model", f"lm-eval/{kind}", *args)
        assert_same(answers(ours), answers(theirs))

    @pytest.mark.parametrize("way", [(), ("--system", "Be brief.")], ids=["chat", "system"])
    def test_transformers_say_what_the_embedded_runtime_says(
        self, tmp_path: Path, way: tuple[str, ...]
    ) -> None:
        """Greedy and in float32, in batches with padding; nothing but our words on stdout."""
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        ours.mkdir()
        theirs.mkdir()
        alone = bench(ours, *SMALL, *way, "--model", "tiny")
        done = bench(theirs, *SMALL, *way, *HF)
        assert_same(answers(ours), answers(theirs))
        of_tables = ("|", "+", "counting/", "copying/", "†", "  ", "/")
        findings = ("lm-eval/hf/", "The longest", "It is not known ", "Tokens a symbol ")
        rest = ("Accuracies and all findings: ", "Answers are ", "In ", "next: bench ")
        ours_begin = (*of_tables, *findings, *rest)
        lines = [line for line in done.out.splitlines() if line and not MORE.match(line)]
        assert [line for line in lines if not line.startswith(ours_begin)] == []
        # lm-eval and transformers add nothing; the words of --system are news to tiny alone
        said = [line for line in alone.err.splitlines() if "tiny knows only" not in line]
        assert done.err.splitlines() == said
        facts = orjson.loads((runs(theirs)[0] / MANIFEST).read_bytes())["server"]
        assert facts["type"] == "hf"
        assert facts["max_model_len"] == WINDOW
        assert facts["model_args"] == {"dtype": "float32", "pretrained": str(MODEL)}

    def test_what_lm_eval_would_cut_is_said(self, tmp_path: Path) -> None:
        """A prompt beyond the window is an overflow, a reply without an end is cut off."""
        lengths = f"5,{2 * WINDOW}"
        asked = ("--task", "counting/sum", "--exact", "--lengths", lengths, "--samples", "2")
        bench(tmp_path, *asked, "--max-tokens", "3", "--keep-going", *HF)
        found = {
            (one["length"], one.get("finish_reason"), (one.get("failure") or {}).get("kind"))
            for one in records(the_run(tmp_path))
        }
        assert found == {(5, "length", None), (2 * WINDOW, None, "overflow")}
