"""Whatever is wrong with its input, a command ends well: see `hostile.py` for what that means."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import journal, launch
from harness.runner import Limits
from tests.conftest import Lab, right
from tests.fake_server import Asked, Response, chat, fake_server
from tests.hostile import (
    KEY,
    PASSWORD,
    World,
    as_json,
    echoes,
    headers,
    replies,
    variants,
)

QUICK = Limits(first_wait_s=0, longest_wait_s=0, rate_limited=3, attempts=3)


@pytest.fixture
def world(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two complete runs, one of them to be spoilt, and a shell in a folder of its own."""
    here = lab.folder / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    monkeypatch.setattr(launch, "Limits", partial(_limits))
    lab.model()
    for model in ("scripted/sound", "scripted/spoilt"):
        lab.asked(lab.wanted(samples=2, lengths=[3], model=model), right)
    return World(lab.folder, lab.bench)


def _limits(**given: Any) -> Limits:
    return Limits(**{**{n: getattr(QUICK, n) for n in QUICK.__slots__}, **given})


def spoilt(world: World) -> Path:
    """The folder of the run that is spoilt."""
    (manifest,) = (world.out / "runs" / "scripted" / "spoilt").rglob(journal.MANIFEST)
    return manifest.parent


def score(world: World) -> None:
    """The verb that reads a run and writes beside it."""
    world.look()
    world.run("score", spoilt(world))


def read_all(world: World) -> None:
    """Every verb that reads runs; the sound run is on the leaderboard whatever the other is."""
    score(world)
    run = spoilt(world)
    (sound,) = (world.out / "runs" / "scripted" / "sound").rglob(journal.MANIFEST)
    world.run("leaderboard", "--out", world.out)
    assert "scripted/sound" in (world.out / "leaderboard.csv").read_text()
    world.run("compare", sound.parent, run, "-o", world.out / "compare.csv")
    world.run("report", run, "-o", world.out / "report.html")
    world.run("export", "hf-eval-results", run, "-o", world.out / "hub", "--dataset", "a/b")
    told = ("--organization", "X", "--relationship", "third_party", "--task", "../lab/ones.yaml")
    world.run("export", "every-eval-ever", run, "-o", world.out / "eee", *told)


@pytest.mark.parametrize("part", range(6))
def test_manifests(world: World, part: int) -> None:
    """One field that is missing or of another kind."""
    path = spoilt(world) / journal.MANIFEST
    sound = path.read_bytes()
    for number, (name, manifest) in enumerate(list(variants(orjson.loads(sound)))[part::6]):
        path.write_bytes(as_json(manifest))
        with about(name):
            (score if number % 12 else read_all)(world)
    path.write_bytes(sound)
    assert world.run("score", path.parent).code == 0


@contextmanager
def about(name: str) -> Iterator[None]:
    """Says which case failed."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case: {name}")
        raise


def lines() -> list[tuple[str, Any]]:
    """A record's fields one by one."""
    record = {
        "id": "lab/ones@1|separator=none|length=3|seed=0|index=0",
        "condition": {"separator": "none"},
        "length": 3,
        "index": 0,
        "target": 2,
        "prompt_hash": "1f",
        "chars": 9,
        "attempts": 1,
        "at": 1.5,
        "reply": "Final answer: 2",
        "finish_reason": "stop",
        "refusal": None,
        "reasoning": None,
        "prompt_tokens": 9,
        "output_tokens": 3,
        "model": "m",
        "latency_s": 0.1,
        "logprobs": [["a", -0.1]],
    }
    failed = {**record, "failure": {"kind": "error", "type": "X", "message": "m"}}
    return [*variants(record), *((f"failed: {name}", one) for name, one in variants(failed))]


@pytest.mark.parametrize("part", range(3))
def test_journals(world: World, part: int) -> None:
    """One record with a field that is missing or of another kind, before the sound ones."""
    path = spoilt(world) / journal.SAMPLES
    sound = path.read_bytes()
    cases = lines()[part::3]
    for name, record in cases:
        path.write_bytes(as_json(record) + b"\n" + sound)
        with about(name):
            score(world)
    path.write_bytes(b"".join(as_json(record) + b"\n" for _, record in cases) + sound)
    read_all(world)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=300), where=st.sampled_from([journal.MANIFEST, journal.SAMPLES]))
def test_bytes_in_place_of_a_file(world: World, content: bytes, where: str) -> None:
    """Whatever the bytes are."""
    path = spoilt(world) / where
    sound = path.read_bytes()
    path.write_bytes(content + (sound if where == journal.SAMPLES else b""))
    score(world)
    path.write_bytes(sound)


def ask(world: World, model: str, respond: Callable[[Asked], Response]) -> None:
    """A run whose second reply is `respond`'s, then the same command at a sound server."""
    spoil = True

    def answer(asked: Asked, number: int) -> Response:
        if asked.path.endswith("/models"):
            return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
        if number % 3 == 1 and spoil:
            return respond(asked)
        return Response(body=chat(f"Final answer: {number}"))

    with fake_server(answer) as server:
        command = ("run", "--task", "../lab/ones.yaml", "--samples", "2", "--lengths", "3")
        more = ("--model", model, "--base-url", server.base_url, "--out", world.out)
        world.look()
        world.run(*command, *more, "--max-connections", "1")
        spoil = False
        world.look()
        done = world.run(*command, *more, "--max-connections", "1")
        assert done.code == 0 or "is now answered by" in done.err or "complete" in done.err, done


@pytest.mark.parametrize("model", ["vllm/m", "m"])
@pytest.mark.parametrize("part", range(6))
def test_replies(world: World, model: str, part: int) -> None:
    """A server that once sends something else; it may cost its sample, and the run goes on."""
    for name, response in [*replies(), *headers()][part::6]:
        forget(world, model)
        with about(name):
            ask(world, model, partial(_always, response))


def _always(response: Response, _asked: Asked) -> Response:
    return response


def forget(world: World, model: str) -> None:
    """Removes what the model answered so far."""
    name = model if "/" in model else f"openai/{model}"
    shutil.rmtree(world.out / "runs" / name, ignore_errors=True)


@pytest.mark.parametrize("model", ["vllm/m", "m"])
def test_echoes(world: World, model: str) -> None:
    """Credentials that a server says back, from the environment and from the address."""
    for name, respond in echoes():
        forget(world, model)
        with about(name):
            ask(world, model, respond)


@pytest.mark.parametrize("model", ["vllm/m", "m"])
def test_a_password_in_the_address(world: World, model: str) -> None:
    """With a quote in it, sent and said back by the server."""

    def answer(asked: Asked, number: int) -> Response:
        if asked.path.endswith("/models"):
            return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
        said = f"Final answer: 2 {asked.headers.get('authorization')} {PASSWORD}"
        return Response(body=chat(said)) if number % 2 else Response(400, {"error": said})

    with fake_server(answer) as server:
        for password in (PASSWORD, quote(PASSWORD, safe="")):
            forget(world, model)
            url = server.base_url.replace("://", f"://user:{password}@")
            world.look()
            world.run(
                *("run", "--task", "../lab/ones.yaml", "--samples", "2", "--lengths", "3"),
                *("--model", model, "--base-url", url, "--out", world.out),
            )
