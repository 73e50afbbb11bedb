"""Batch files through the real `vllm run-batch`; `.ci/vllm` makes the environment for it.

It and the embedded runtime are two engines for the same weights: greedy and in float32 they say the
same, word for word.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Done, records
from tests.real_server import (
    ENVIRONMENT,
    MODEL,
    STARTED_S,
    USUAL,
    VLLM,
    WINDOW,
    Answers,
    answers,
    assert_same,
    runs,
)

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm"),
]

SMALL = (
    "--task",
    "counting,copying/first_last",
    "--exact",
    "--lengths",
    "5,10,20,50",
    "--samples",
    "4",
)
WAYS = {"chat": SMALL, "system": (*SMALL, "--system", "Be brief.")}
LONG = ("--task", "counting/ones", "--axis", "separator=none", "--exact", "--lengths", "5,5000")


def bench(folder: Path, *arguments: str) -> Done:
    """The command with `folder` as its working folder; a traceback is never right."""
    done = subprocess.run(
        [sys.executable, "-m", "eyechart.harness", *arguments],
        env=ENVIRONMENT,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=STARTED_S,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all was exported, answered by one `vllm run-batch`, and imported."""
    folder = tmp_path_factory.mktemp("batch")
    parts = []
    for way, asked in {**WAYS, "long": (*LONG, "--samples", "1", "--seed", "9")}.items():
        command = ("export", "batch", *asked, "--model", "vllm/tiny", "--out", way)
        done = bench(folder, *command, "-o", f"{way}.jsonl")
        assert done.code == 0, done
        parts.append((folder / f"{way}.jsonl").read_bytes())
    (folder / "requests.jsonl").write_bytes(b"".join(parts))
    names = ("--model", str(MODEL), "--served-model-name", "tiny", "--dtype", "float32")
    with (folder / "vllm.log").open("wb") as log:
        done_vllm = subprocess.run(
            [
                *(str(VLLM), "run-batch", "-i", "requests.jsonl", "-o", "replies.jsonl"),
                *(*names, "--max-model-len", str(WINDOW)),
            ],
            env=USUAL,
            cwd=folder,
            stdout=log,
            stderr=log,
            check=False,
            timeout=2 * STARTED_S,
        )
    assert done_vllm.returncode == 0, (folder / "vllm.log").read_text()[-3000:]
    return folder


def embedded(folder: Path, way: str) -> Answers:
    """What the embedded runtime says."""
    out = f"{way}-direct"
    assert bench(folder, "run", *WAYS[way], "--model", "tiny", "--out", out).code == 0
    return answers(folder / out)


@pytest.mark.parametrize("way", WAYS)
def test_run_batch_says_what_the_embedded_runtime_says(imported: Path, way: str) -> None:
    """Every sample has the same reply, with the same end and as many tokens."""
    done = bench(imported, "import", "replies.jsonl", "--out", way)
    assert done.code == 0, done
    assert "0 without a reply" in done.err
    assert_same(embedded(imported, way), answers(imported / way))


def test_a_prompt_beyond_the_window_is_an_overflow(imported: Path) -> None:
    """By the error that vLLM writes beside its response; it is not asked again."""
    done = bench(imported, "import", "replies.jsonl", "--out", "long")
    assert done.code == 0, done
    (folder,) = runs(imported / "long")
    kinds = {one["length"]: one.get("failure", {}).get("kind") for one in records(folder)}
    assert kinds == {5: None, 5000: "overflow"}
    command = ("export", "batch", *LONG, "--samples", "1", "--seed", "9", "--model", "vllm/tiny")
    done = bench(imported, *command, "--out", "long", "-o", "more.jsonl")
    assert "nothing to ask" in done.err


def test_a_server_without_a_batch_api_is_said() -> None:
    """`vllm serve` has none; what can be used instead is named."""
    command = ("run", "--tier", "batch", *LONG, "--model", "vllm/tiny")
    bench(Path.cwd(), *command).one_line(2, "'vllm run-batch'")
