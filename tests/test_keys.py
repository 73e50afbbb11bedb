"""Keys planted everywhere are found nowhere: not on the screen, not in a file of the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import cli, launch
from harness.runner import Limits
from tests.conftest import Lab
from tests.fake_server import Asked, Response, chat, fake_server

KEY = "sk-planted-0123456789abcdef"
VARIABLES = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "VLLM_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "OPENAI_ORG_ID",
)
MODELS = ("m", "groq/m", "vllm/m", "anthropic/m")


def traces(lab: Lab, said: str) -> list[str]:
    """Where the key is, in what was said and in every file."""
    files = [path for path in lab.folder.rglob("*") if path.is_file()]
    assert any(path.name == "manifest.json" for path in files)
    found = [str(path) for path in files if KEY.encode() in path.read_bytes()]
    return found + (["the screen"] if KEY in said else [])


def echoing(asked: Asked, number: int) -> Response:
    """Faults of all kinds that say the key they were sent; every third request is answered."""
    if asked.path == "/v1/models":
        return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
    said = f"no good: {asked.headers.get('authorization') or KEY}, {KEY}, {'x' * 270} {KEY}"
    faults = (
        Response(400, {"error": {"message": said}}, {"X-Key": KEY}),
        Response(500, said.encode(), {"X-Key": KEY}),
        Response(429, {"error": {"message": said, "code": KEY}}, {"Retry-After": "0"}),
        Response(200, {"choices": []}, {"X-Key": KEY}),
        Response(200, said.encode(), {"X-Key": KEY}),
    )
    if number % 3 == 0 and asked.path.endswith("/messages"):
        text = [{"type": "text", "text": "Final answer: 2"}]
        body = {"type": "message", "role": "assistant", "content": text, "stop_reason": "end_turn"}
        return Response(body={**body, "model": "m", "usage": {}})
    return Response(body=chat("Final answer: 2")) if number % 3 == 0 else faults[number % 5]


@pytest.mark.parametrize("model", MODELS)
def test_a_run_through_every_fault_shows_no_key(
    lab: Lab, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In variables, in the address, in what servers say back."""
    for variable in VARIABLES:
        monkeypatch.setenv(variable, KEY)
    patient = Limits(first_wait_s=0, longest_wait_s=0)
    monkeypatch.setattr(launch.Options, "limits", lambda _self: patient)
    with fake_server(echoing) as server:
        address = server.base_url.replace("://", f"://user:{KEY}@")
        done = lab.bench_run("--model", model, "--base-url", address, "--samples", "3")
        assert server.asked
    assert done.code == 1
    assert not traces(lab, done.out + done.err)


def test_a_key_in_a_variable_of_any_name(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server of the user's own."""
    own = lab.folder / "own.yaml"
    own.write_text("lab:\n  base_url: http://127.0.0.1:9/v1\n  key: LAB_AUTH\n")
    monkeypatch.setenv("EYECHART_ENDPOINTS", str(own))
    monkeypatch.setenv("LAB_AUTH", "planted-by-name-0123456789")
    body = {"error": {"code": 400, "message": "no good: planted-by-name-0123456789"}}
    with fake_server(lambda _asked, _number: Response(body=body)) as server:
        arguments = ("--model", "lab/m", "--base-url", server.base_url, "--samples", "1")
        done = lab.bench_run(*arguments)
    assert done.code == 1
    assert "no good: ***" in done.err
    files = [path for path in lab.folder.rglob("*") if path.is_file()]
    assert not [path for path in files if b"planted-by-name" in path.read_bytes()]


@pytest.mark.parametrize("model", MODELS)
def test_tracebacks_show_no_key(lab: Lab, model: str) -> None:
    """A refused key, with `--debug`, in a process of its own."""
    refusing = Response(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})

    def answer(asked: Asked, number: int) -> Response:
        return echoing(asked, number) if asked.path == "/v1/models" else refusing

    with fake_server(answer) as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "harness.cli", "--debug", "run", "--model", model),
                *("--task", str(lab.ones), "--out", str(lab.out), "--base-url", server.base_url),
            ],
            env={**os.environ, **dict.fromkeys(VARIABLES, KEY)},
            cwd=Path(cli.__file__).parents[1],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert "Traceback" in done.stderr
    assert "AuthError" in done.stderr
    assert not traces(lab, done.stdout + done.stderr)
