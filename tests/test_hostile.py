"""Whatever is wrong with its input, a command ends well: see `hostile.py` for what that means."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.errors import JournalError
from eyechart.harness.face.options import run_options
from eyechart.harness.journal.answers import answered
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.journal.writer import Journal
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.spec import Line
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

QUICK = RunLimits(initial_backoff_s=0, max_backoff_s=0, max_rate_limited=3, max_attempts=3)


@pytest.fixture
def world(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two complete runs, one of them to be spoilt, and a shell in a folder of its own."""
    here = lab.folder / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    monkeypatch.setattr(run_options, "RunLimits", partial(_limits))
    lab.model()
    for model in ("scripted/sound", "scripted/spoilt"):
        lab.asked(lab.wanted(samples=2, lengths=[3], model=model), right)
    return World(lab.folder, lab.bench)


def _limits(**given: Any) -> RunLimits:
    return RunLimits(**{**{n: getattr(QUICK, n) for n in QUICK.__slots__}, **given})


def spoilt(world: World) -> Path:
    """The folder of the run that is spoilt."""
    (manifest,) = (world.out / "runs" / "scripted" / "spoilt").rglob(MANIFEST)
    return manifest.parent


def score(world: World) -> None:
    """The verb that reads a run and writes beside it."""
    world.look()
    world.run("score", spoilt(world))


def read_all(world: World) -> None:
    """Every verb that reads runs; the sound run is on the leaderboard whatever the other is."""
    score(world)
    run = spoilt(world)
    (sound,) = (world.out / "runs" / "scripted" / "sound").rglob(MANIFEST)
    world.run("leaderboard", "--out", world.out)
    assert "scripted/sound" in (world.out / "leaderboard.csv").read_text()
    world.run("compare", sound.parent, run, "-o", world.out / "compare.csv")
    world.run("report", run, "-o", world.out / "report.html")
    told = ("--organization", "X", "--relationship", "third_party", "--task", "../lab/ones.yaml")
    world.run("export", "every-eval-ever", run, "-o", world.out / "eee", *told)


def read(number: int, world: World) -> None:
    """Reads the spoilt run, and now and then by the verbs."""
    if number % 120 == 0:
        read_all(world)
    elif number % 20 == 0:
        score(world)
    else:
        with suppress(JournalError):
            read_run(spoilt(world), world.said.append)
        with Journal(spoilt(world), world.said.append) as book:
            answered(book.folder, world.said.append, [Line.exact(3), Line(5, 4, 5)], 0)


def test_manifests(world: World) -> None:
    """One field that is missing or of another kind."""
    path = spoilt(world) / MANIFEST
    sound = path.read_bytes()
    for number, (name, manifest) in enumerate(variants(orjson.loads(sound))):
        path.write_bytes(as_json(manifest))
        with about(name):
            read(number, world)
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


def test_journals(world: World) -> None:
    """One record with a field that is missing or of another kind, before the sound ones."""
    path = spoilt(world) / SAMPLES
    sound = path.read_bytes()
    cases = lines()
    for number, (name, record) in enumerate(cases):
        path.write_bytes(as_json(record) + b"\n" + sound)
        with about(name):
            read(number, world)
    path.write_bytes(b"".join(as_json(record) + b"\n" for _, record in cases) + sound)
    read_all(world)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=300), where=st.sampled_from([MANIFEST, SAMPLES]))
def test_bytes_in_place_of_a_file(world: World, content: bytes, where: str) -> None:
    """Whatever the bytes are."""
    path = spoilt(world) / where
    sound = path.read_bytes()
    path.write_bytes(content + (sound if where == SAMPLES else b""))
    score(world)
    path.write_bytes(sound)


def ask(world: World, model: str, cases: Sequence[tuple[str, Callable[[Asked], Response]]]) -> None:
    """Runs in which one reply in three is a case's, until there are none; then at a sound server.

    A case may cost its sample or end its command, and the same command goes on.
    """
    left = iter(cases)
    served: list[str] = []

    def answer(asked: Asked, number: int) -> Response:
        if asked.path.endswith("/models"):
            return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
        if number % 3 == 1 and (case := next(left, None)) is not None:
            served.append(case[0])
            return case[1](asked)
        return Response(body=chat(f"Final answer: {number}"))

    with fake_server(answer, reads_json=False) as server:
        command = ("run", "--task", "../lab/ones.yaml", "--samples", str(4 * len(cases)))
        more = ("--lengths", "3", "--axis", "separator=none", "--max-connections", "1")
        to = ("--model", model, "--base-url", server.base_url, "--out", world.out)
        total = 0
        while total < len(cases):
            world.look()
            served.clear()
            try:
                world.run(*command, *more, *to)
            except Exception as error:
                error.add_note(f"one of the cases: {served}")
                raise
            assert served, "no case is served any more"
            total += len(served)
        world.look()
        assert world.run(*command, *more, *to).code == 0


@pytest.mark.parametrize("model", ["vllm/m", "m"])
def test_replies(world: World, model: str) -> None:
    """Whatever a server sends in place of a reply."""
    cases = [(name, partial(_always, one)) for name, one in (*replies(), *headers())]
    ask(world, model, cases if model == "vllm/m" else cases[::3])


def _always(response: Response, _asked: Asked) -> Response:
    return response


@pytest.mark.parametrize("model", ["vllm/m", "m"])
def test_echoes(world: World, model: str) -> None:
    """Credentials that a server says back."""
    ask(world, model, list(echoes()))


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
            shutil.rmtree(world.out / "runs")
            url = server.base_url.replace("://", f"://user:{password}@")
            world.look()
            world.run(
                *("run", "--task", "../lab/ones.yaml", "--samples", "2", "--lengths", "3"),
                *("--model", model, "--base-url", url, "--out", world.out),
            )
