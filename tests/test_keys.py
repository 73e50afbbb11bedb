"""Keys planted everywhere are found nowhere: not on the screen, not in a file of the run."""

from __future__ import annotations

import base64
import json
import sys

import orjson
import pytest

from eyechart.harness.run.batch import engine
from eyechart.providers.base import AuthError
from tests.batch_server import BatchServer
from tests.conftest import Lab, records
from tests.fake_server import Asked, Response, chat, fake_server
from tests.faulty_server import serving

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


def traces(lab: Lab, said: str, *others: str) -> list[str]:
    """Where the key is, or another secret, in what was said and in every file."""
    files = {str(path): path.read_bytes() for path in lab.folder.rglob("*") if path.is_file()}
    assert any(path.endswith("manifest.json") for path in files)
    files["the screen"] = said.encode()
    secrets = [one.encode() for one in (KEY, *others)]
    return [path for path, content in files.items() if any(one in content for one in secrets)]


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
    with fake_server(echoing) as server:
        address = server.base_url.replace("://", f"://user:{KEY}@")
        done = lab.bench_run("--model", model, "--base-url", address, "--samples", "3")
        assert server.asked
    assert done.code == 1
    assert not traces(lab, done.out + done.err)


PASSWORD = "pa'ss-of-planted"  # noqa: S105  nobody's
AS_SENT = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
PARTS = ("ss-of-planted", AS_SENT.rstrip("="))
"""By which the password is known, however it is quoted."""


def saying_back(asked: Asked, _number: int) -> Response:
    """An answer, and in each of its parts the key of the request."""
    headers = json.dumps({name: asked.headers.get(name) for name in ("authorization", "x-api-key")})
    if asked.path == "/v1/models":
        return Response(body={"data": [{"id": "m", "root": headers, "max_model_len": 4096}]})
    if asked.path == "/version":
        return Response(body={"version": headers})
    if asked.path.endswith("/messages"):
        parts = [
            {"type": kind, kind: f"{headers} Final answer: 2"} for kind in ("text", "thinking")
        ]
        return Response(body={"model": headers, "content": parts, "stop_reason": "end_turn"})
    told = {"reasoning_content": headers, "refusal": headers}
    body = chat(f"{headers} Final answer: 2", **told) | {"model": f"m {headers}"}
    tokens = [headers[at : at + 9] for at in range(0, len(headers), 9)]
    body["choices"][0]["logprobs"] = {
        "content": [{"token": token, "logprob": -0.5} for token in tokens]
    }
    return Response(body=body)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("where", ["variable", "address"])
def test_a_reply_that_says_the_key_back_is_kept_without_it(
    lab: Lab, model: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every field of the record and in the manifest; a run that goes on finds the same model."""
    for variable in VARIABLES:
        monkeypatch.setenv(variable, KEY)
    said = ""
    with fake_server(saying_back) as server:
        address = server.base_url
        if where == "address":
            address = address.replace("://", f"://user:{PASSWORD}@")
        given = ["--base-url", address]
        if (model, where) == ("anthropic/m", "variable"):  # elsewhere it sends no key
            monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
            given = []
        if not model.startswith("anthropic"):
            given += ["--logprobs", "0"]
        for samples in ("2", "3"):  # the second time it is a run that goes on
            done = lab.bench_run("--model", model, *given, "--samples", samples, "--keep-going")
            assert done.code == 0, done
            said += done.out + done.err
        sent = " ".join(str(asked.headers) for asked in server.asked)
        assert (KEY in sent) or (AS_SENT in sent)
    run = lab.the_run()
    if (model, where) == ("vllm/m", "address"):  # what is made of them is the same for all
        for command in (
            ("score", run),
            ("leaderboard", "--out", lab.out, "--task", lab.ones),
            ("report", run, "--task", lab.ones, "-o", lab.folder / "report.html"),
            ("export", "every-eval-ever", run, "--task", lab.ones, "-o", lab.folder / "eee"),
        ):
            done = lab.bench(*command)
            assert done.code == 0, done
            said += done.out + done.err
        assert {path.suffix for path in lab.folder.rglob("*")} >= {".html", ".csv", ".jsonl"}
    assert not traces(lab, said, *PARTS)
    kept = records(run)
    assert len(kept) == 12
    for record in kept:
        assert "***" in record["reply"]
        assert "***" in record["model"]
        assert record["reply"].endswith("Final answer: 2")
        assert "***" in (record["reasoning"] or "***")
    assert orjson.loads((run / "manifest.json").read_bytes())["answered_by"] == [kept[0]["model"]]


@pytest.mark.parametrize("model", ["m", "vllm/m", "anthropic/m"])
@pytest.mark.parametrize("form", ["{}", "bad header {}", '{{"error": {{"message": "no: {}"}}}}'])
def test_an_error_that_says_the_password_back_shows_none(lab: Lab, model: str, form: str) -> None:
    """As the base64 that it was sent in, or as it was typed, with its quote."""

    def answer(asked: Asked, number: int) -> Response:
        if asked.path == "/v1/models":
            return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
        said = asked.headers["authorization"] if number % 2 else PASSWORD
        return Response(400, form.format(said).encode())

    with fake_server(answer) as server:
        address = server.base_url.replace("://", f"://user:{PASSWORD}@")
        done = lab.bench_run("--model", model, "--base-url", address, "--samples", "1")
    assert done.code == 1
    assert not traces(lab, done.out + done.err, *PARTS)
    (command,) = orjson.loads((lab.the_run() / "manifest.json").read_bytes())["commands"]
    assert f"http://***@{address.partition('@')[2]}" in command


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:9/v1?auth={KEY}",
        f"http://127.0.0.1:9/v1/?api_key={KEY}",
        f"http://127.0.0.1:9/v1?x={KEY}",
        f"http://127.0.0.1:9/v1#key={KEY}",
        f"http://127.0.0.1:9/v1#{KEY}",
        f"http://user:a#{KEY}@127.0.0.1:9/v1",
        f"http://user:a/{KEY}@127.0.0.1:9/v1",
        f"user:{KEY}@127.0.0.1:9/v1",
        f"http://[::1/{KEY}@x?{KEY}",
    ],
)
def test_a_refused_address_is_said_without_its_key(lab: Lab, url: str) -> None:
    """In one line, and nothing is written."""
    done = lab.bench_run("--model", "vllm/m", "--base-url", url)
    assert KEY not in done.one_line(2, "--base-url")
    assert not lab.out.exists()


def test_a_batch_that_says_the_key_back_is_kept_without_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its lines, also in the file of replies that stays because it was not wholly used."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(engine, "FIRST_POLL_S", 0.0)
    server = BatchServer(says=lambda _body: f'Bearer {KEY} "{KEY}" Final answer: 2')
    server.lines_besides = [json.dumps({"custom_id": "foreign", "said": KEY}).encode() + b"\n"]
    with serving(server):
        done = lab.bench_run("--model", "m", "--base-url", server.base_url, "--tier", "batch")
    assert done.code == 0, done
    (replies,) = lab.out.rglob("replies-*.jsonl")
    assert b"foreign" in replies.read_bytes()
    assert not traces(lab, done.out + done.err)
    assert {record["reply"] for record in records(lab.the_run())} == {
        'Bearer *** "***" Final answer: 2'
    }


def test_arguments_of_models_and_servers_give_no_key_away(lab: Lab) -> None:
    """Also shortened, as vLLM would take them; the line names the option alone."""
    for name in ("--api-key", "--api_key", "--api-k", "--hf-tok", "--hf_token"):
        done = lab.bench_run("--model", "vllm/m", f"--model-arg={name}={KEY}")
        assert KEY not in done.one_line(2)
    given = (f"api_key={KEY}", f"base_url=http://user:{KEY}@127.0.0.1:9/v1", "x")
    options = (part for one in given for part in ("--model-arg", one))
    assert KEY not in lab.bench_run("--model", "lm-eval/x", *options).one_line(2)


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


@pytest.mark.parametrize("model", ["m", "vllm/m", "anthropic/m"])
def test_tracebacks_show_no_key(lab: Lab, model: str) -> None:
    """A refused key, with `--debug`; Python itself shows such errors by `sys.excepthook`."""
    for variable in VARIABLES:
        lab.monkeypatch.setenv(variable, KEY)
    lab.monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    refusing = Response(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})

    def answer(asked: Asked, number: int) -> Response:
        return echoing(asked, number) if asked.path == "/v1/models" else refusing

    command = ("--debug", "run", "--model", model, "--task", lab.ones, "--out", lab.out)
    with fake_server(answer) as server, pytest.raises(AuthError) as raised:
        lab.bench(*command, "--base-url", server.base_url)
    sys.excepthook(raised.type, raised.value, raised.tb)
    said = lab.capture.readouterr()
    assert "Traceback" in said.err
    assert "AuthError" in said.err
    assert not traces(lab, said.out + said.err)
