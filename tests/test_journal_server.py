"""Who answers a run: the same model at another address goes on with it, another model does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.journal.server import (
    addresses,
    differences,
    silent_one,
    together,
    unknown_addresses,
)
from eyechart.providers.openai.models import said_of_model
from tests.conftest import Done, Lab
from tests.fake_server import Asked, FakeServer, Response, chat, fake_server

ENTRY = {"id": "m8", "object": "model", "created": 1, "owned_by": "vllm", "root": "/ckpt/a"}


def listing(entry: Mapping[str, Any] | None, model: str = "m8") -> Any:
    """A server with one model; without a list of models where `entry` is `None`."""

    def answer(asked: Asked, _number: int) -> Response:
        if asked.path.endswith("/models"):
            status = 404 if entry is None else 200
            return Response(status, {"object": "list", "data": [entry]})
        if not asked.path.endswith("/completions"):  # what vLLM has besides
            return Response(404, {})
        return Response(body={**chat("Final answer: 2"), "model": model})

    return fake_server(answer)


@contextmanager
def serving(*entries: Mapping[str, Any] | None) -> Iterator[list[FakeServer]]:
    """A server of `listing` for each entry."""
    with ExitStack() as stack:
        yield [stack.enter_context(listing(entry)) for entry in entries]


def ask(lab: Lab, samples: int, *arguments: str, model: str = "m8") -> Done:
    return lab.bench_ask("--model", model, "--samples", str(samples), *arguments)


def at(*servers: FakeServer) -> list[str]:
    return [word for server in servers for word in ("--base-url", server.base_url)]


class TestAtAnotherAddress:
    """The address is no part of a run's identity where the server says which model it has."""

    @pytest.mark.parametrize("model", ["m8", "vllm/m8", "openai/m8"])
    def test_the_same_model_goes_on(self, lab: Lab, model: str) -> None:
        """The manifest has both addresses, and of neither the password."""
        again = {**ENTRY, "created": 2}
        with serving(ENTRY, again) as (first, second):
            assert ask(lab, 1, *at(first), model=model).code == 0
            assert ask(lab, 1, *at(second), model=model).code == 0  # nothing is asked there
            hidden = second.base_url.replace("//", "//me:hidden-7@")
            done = ask(lab, 2, "--base-url", hidden, model=model)
        assert done.code == 0, done.err
        assert len([one for one in second.asked if one.path.endswith("/completions")]) == 4
        manifest = read_manifest(lab.the_run())
        kept = [address.rstrip("/") for address in addresses(manifest.server)]
        assert kept == sorted([first.base_url, second.base_url.replace("//", "//***@")])
        assert manifest.server["root"] == "/ckpt/a"
        assert manifest.accepted == []
        assert "hidden-7" not in (lab.the_run() / "manifest.json").read_text()

    @pytest.mark.parametrize("model", ["m8", "vllm/m8"])
    @pytest.mark.parametrize("change", [{"root": "/ckpt/b"}, {"max_model_len": 99}])
    def test_another_model_is_refused(self, lab: Lab, model: str, change: dict[str, Any]) -> None:
        """Also by --trust, which is for what is not known."""
        with serving(ENTRY, {**ENTRY, **change}) as (first, second):
            assert ask(lab, 1, *at(first), model=model).code == 0
            for more in ([], ["--trust"]):
                done = ask(lab, 2, *at(second), *more, model=model)
                done.one_line(1, "another model or server", *map(str, change), "--fresh")
        assert not [one for one in second.asked if one.path.endswith("/completions")]

    def test_another_model_at_the_same_address_is_refused(self, lab: Lab) -> None:
        entry = dict(ENTRY)
        with serving(entry) as (server,):
            assert ask(lab, 1, *at(server)).code == 0
            entry["root"] = "/ckpt/b"
            ask(lab, 2, *at(server)).one_line(1, "root was '/ckpt/a', is '/ckpt/b'")

    @pytest.mark.parametrize(("before", "now"), [(ENTRY, None), (None, ENTRY), (None, None)])
    def test_a_silent_server_is_accepted_by_an_option(
        self, lab: Lab, before: dict[str, Any] | None, now: dict[str, Any] | None
    ) -> None:
        """Once: after that its address is known. The manifest says what was accepted."""
        with serving(before, now) as (first, second):
            assert ask(lab, 1, *at(first)).code == 0
            silent = [one for one, entry in ((first, before), (second, now)) if entry is None]
            says = [
                *(one.base_url for one in silent),
                "no list of models has it",
                "--trust",
            ]
            ask(lab, 2, *at(second)).one_line(1, *says)
            done = ask(lab, 2, *at(second), "--trust")
            assert done.code == 0
            assert f"{second.base_url} is accepted" in done.err
            assert ask(lab, 3, *at(second)).code == 0
            assert ask(lab, 4, *at(first)).code == 0
        manifest = read_manifest(lab.the_run())
        assert manifest.accepted == [second.base_url]
        assert len(addresses(manifest.server)) == 2

    def test_the_same_address_may_fall_silent(self, lab: Lab) -> None:
        """As while it starts; what it said before is kept and still holds."""
        entry: dict[str, Any] = dict(ENTRY)
        with serving(entry) as (server,):
            assert ask(lab, 1, *at(server)).code == 0
            del entry["id"]
            assert ask(lab, 2, *at(server)).code == 0
            assert read_manifest(lab.the_run()).server["root"] == "/ckpt/a"
            entry |= {"id": "m8", "root": "/ckpt/b"}
            ask(lab, 3, *at(server)).one_line(1, "root")

    def test_replicas_have_the_same_model(self, lab: Lab) -> None:
        other = {**ENTRY, "root": "/ckpt/b"}
        with serving(ENTRY, other, ENTRY, None) as (first, second, third, silent):
            for model in ("m8", "vllm/m8"):
                done = ask(lab, 1, *at(first, second), model=model)
                done.one_line(2, "are no replicas", "/ckpt/a", "/ckpt/b")
            assert ask(lab, 1, *at(first, third)).code == 0
            assert ask(lab, 2, *at(third)).code == 0
            ask(lab, 3, *at(third, silent)).one_line(1, "no list of models has it")

    def test_a_study_accepts_a_server_too(self, lab: Lab) -> None:
        file = lab.folder / "study.yaml"
        with serving(None, None) as servers:
            for server, more in zip(servers, ([], ["--trust"]), strict=True):
                file.write_text(
                    f"name: s\ntitle: S\nsamples: {1 + len(more)}\ntasks: [{lab.ones}]\n"
                    f"models: [{{name: m8, base_url: {server.base_url}}}]\n"
                )
                done = lab.bench("run", str(file), "--trust", "--out", str(lab.out), *more)
                assert done.code == 0, done.err
        manifest = next((lab.out / "runs").rglob("manifest.json"))
        assert read_manifest(manifest.parent).accepted == [servers[1].base_url]

    def test_a_page_says_what_was_accepted(self, lab: Lab) -> None:
        with serving(None, None) as (first, second):
            ask(lab, 1, *at(first))
            ask(lab, 2, *at(second), "--trust")
        page = lab.folder / "page.html"
        assert lab.bench("report", lab.the_run(), "-o", page).code == 0
        assert "accepted without knowing its model" in page.read_text(encoding="utf-8")


class TestFacts:
    """What is compared, and what is not."""

    def test_what_only_one_says_of_its_model_is_no_difference(self) -> None:
        said, silent = {"engine": "openai", "model": "m8", "root": "a"}, {"engine": "openai"}
        assert differences(said, silent) == differences(silent, said) == []
        assert differences(said, {**said, "root": "b"}) == ["root"]
        assert differences(silent, {"engine": "vllm"}) == ["engine"]
        assert differences({"max_model_len": 1}, {"max_model_len": 2}) == ["max_model_len"]

    def test_an_address_is_known_once_it_answered(self) -> None:
        before = {"base_url": ["a", "b"]}
        assert unknown_addresses(before, {"base_url": "a"}) == []
        assert unknown_addresses(before, {"base_url": ["b", "c"]}) == ["c"]
        assert unknown_addresses({}, {"base_url": ["c"]}) == []
        said = {"model": "m8", "base_url": ["c"]}
        assert unknown_addresses({**before, "model": "m8"}, said) == []
        assert silent_one(before, said) == "a or b"

    def test_facts_of_two_servers_together(self) -> None:
        one, other = {"model": "m8", "base_url": ["b"]}, {"engine": "e", "base_url": ["a"]}
        assert together(one, other) == {"model": "m8", "engine": "e", "base_url": ["a", "b"]}
        assert together({}, {"base_url": "a"}) == {"base_url": "a"}


LLAMA = {"id": "/w/m8.gguf", "owned_by": "llamacpp", "meta": {"n_params": 8, "n_ctx": 5, "x": "y"}}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([ENTRY], {"model": "m8", "root": "/ckpt/a", "owned_by": "vllm"}),
        ([{"id": "other"}, ENTRY], {"model": "m8", "root": "/ckpt/a", "owned_by": "vllm"}),
        (
            [LLAMA],
            {
                "model": "/w/m8.gguf",
                "owned_by": "llamacpp",
                "max_model_len": 5,
                "meta": {"n_params": 8},
            },
        ),
        ([{"id": "m8:latest"}, {"id": "m7"}], {"model": "m8:latest"}),
        ([{"id": "m6"}, {"id": "m7"}], {}),
        ([{"id": 7}], {}),
        ([{"id": "m8", "root": ["x"], "max_model_len": -1, "meta": 3}], {"model": "m8"}),
        ([{"id": "m8", "root": "x" * 10_000}], {"model": "m8", "root": "x" * 300}),
        (
            [{"id": "m8", "max_context_length": 9000, "loaded_context_length": 4096}],
            {"model": "m8", "max_model_len": 4096},
        ),
        ([{"id": "m8", "context_window": 70}], {"model": "m8", "max_model_len": 70}),
        ([{"id": "m8", "top": {"context_length": 9}}], {"model": "m8", "max_model_len": 9}),
        ([{"id": "m8", "context_length": 0, "size": 7, "length": 7}], {"model": "m8"}),
        ([None], {}),
        ("m8", {}),
        (None, {}),
    ],
)
def test_what_a_list_of_models_says(data: Sequence[object] | None, said: dict[str, object]) -> None:
    """The time of an entry is none of it, nor what has another type."""
    assert said_of_model({"data": data}, "m8") == said
    assert said_of_model(data, "m8") == {}


def test_addresses_of_other_providers() -> None:
    assert addresses({"base_url": "http://a"}) == ["http://a"]
    assert addresses({"base_url": 3}) == addresses({}) == []


def test_the_option_has_no_default_in_a_file(lab: Lab) -> None:
    """It is meant for one command."""
    lab.monkeypatch.chdir(lab.folder)
    Path("bench.toml").write_text("trust = true\n")
    assert "trust" in lab.bench_run().one_line(2, "bench.toml:1")
