"""What a model at a server of one's own is called: `local/m8`, or the name that the user gives."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

import eyechart
from eyechart.harness.analysis.samples.judged_run import model_of
from eyechart.harness.errors import UsageError
from eyechart.harness.face.options.run_options import RunOptions, models_of
from eyechart.harness.face.options.variant import check_name
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.run.batch import context, engine
from eyechart.harness.satellites.export.model_identity import identify
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.providers.base import SetupError
from eyechart.providers.registry.model_name import owner_of, parse_model
from tests.batch_server import BatchServer, Plot
from tests.conftest import Lab
from tests.fake_server import Asked, FakeServer, Response, chat, fake_server
from tests.faulty_server import serving

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def own() -> Iterator[FakeServer]:
    """A server of one's own, without a list of models."""

    def answer(asked: Asked, _number: int) -> Response:
        is_asked = asked.path.endswith("/completions")
        return Response(body=chat("Final answer: 2")) if is_asked else Response(404, {})

    with fake_server(answer) as server:
        yield server


def options(model: str, **named: object) -> RunOptions:
    (found,) = models_of(
        RunSettings.read(**{"model": model, "base_url": URL, "out": "out"} | named)
    )
    return found


class TestWithoutAName:
    """A server of the user's is not OpenAI."""

    @pytest.mark.parametrize(
        ("given", "label"),
        [
            ("m8", "local/m8"),
            ("local/m8", "local/m8"),
            ("gpt-4o", "local/gpt-4o"),
            ("Qwen/Qwen3-4B", "local/Qwen/Qwen3-4B"),
            ("openai/m8", "openai/m8"),
            ("vllm/m8", "vllm/m8"),
            ("ollama/m8", "ollama/m8"),
        ],
    )
    def test_a_bare_name_is_local(self, given: str, label: str) -> None:
        assert parse_model(given, base_urls=[URL]).label == label

    def test_at_openais_own_address_it_is_openais(self) -> None:
        for url in ("https://api.openai.com/v1", "https://api.openai.com/v1/"):
            assert parse_model("gpt-4o", base_urls=[url]).label == "openai/gpt-4o"
        assert parse_model("gpt-4o").label == "openai/gpt-4o"

    def test_local_needs_a_server(self) -> None:
        with pytest.raises(SetupError, match=r"'local/m8' is a model at a server.*base_url"):
            parse_model("local/m8")

    def test_it_has_no_vendors_prices_or_facts(self, lab: Lab) -> None:
        """Facts of the user's file are entered under the name that it is asked by."""
        assert options("gpt-5").model.prices is None
        assert not options("gpt-5").model.facts.reasoning
        assert options("openai/gpt-5").model.facts.reasoning
        models = lab.folder / "models.yaml"
        models.write_text(
            "local/m8: {window: 77, prices: {input: 1, output: 2, as_of: 2026-01-01}}\n"
        )
        lab.monkeypatch.setenv("EYECHART_MODELS", str(models))
        for called in (None, "lab/m8"):
            model = options("m8", name=called).model
            assert (model.facts.window, model.prices is None) == (77, False)

    def test_it_is_asked_by_the_name_that_the_server_has(self, lab: Lab, own: FakeServer) -> None:
        """With the key that such servers got before."""
        lab.monkeypatch.setenv("OPENAI_API_KEY", "sk-for-the-test-7")
        done = lab.bench_run("--model", "org/m8", "--base-url", own.base_url)
        assert done.code == 0, done.err
        assert "local/org/m8" in done.out
        (asked, *_) = (one for one in own.asked if one.body)
        assert asked.body["model"] == "org/m8"
        assert asked.headers["authorization"] == "Bearer sk-for-the-test-7"
        assert lab.the_run().is_relative_to(lab.out / "runs" / "local" / "org" / "m8")

    def test_batches_there_are_asked_and_imported(self, lab: Lab) -> None:
        """The replies of the second batch, which are another model's, are left for an import."""
        for module in (engine, context):
            lab.monkeypatch.setattr(module, "FIRST_POLL_S", 0.001)
        with serving(BatchServer(plots=[Plot(), Plot(model="stand-in-2")])) as server:
            given = ("--model", "m8", "--base-url", server.base_url, "--tier", "batch")
            assert lab.bench_ask(*given, "--samples", "2").code == 0
            assert "was by 'stand-in-1'" in lab.bench_run(*given).err
        assert read_manifest(lab.the_run()).model == "local/m8"
        (replies,) = lab.the_run().glob("replies-*")
        done = lab.bench("import", replies, "--out", lab.out, "--task", lab.ones)
        assert "local/m8' is now answered by 'stand-in-2'" in done.err


class TestName:
    """`--name` stands in the place of `provider/model` everywhere but in requests."""

    @pytest.mark.parametrize("model", ["m8", "openai/m8"])
    def test_everywhere(self, lab: Lab, own: FakeServer, model: str) -> None:
        given = ("--model", model, "--base-url", own.base_url, "--name", "acme/big-m8")
        done = lab.bench_run(*given)
        assert done.code == 0, done.err
        assert {one.body["model"] for one in own.asked if one.body} == {"m8"}
        folder = lab.the_run()
        assert folder.is_relative_to(lab.out / "runs" / "acme" / "big-m8")
        manifest = read_manifest(folder)
        asked_as = "local/m8" if model == "m8" else model
        assert (manifest.model, manifest.served_as) == ("acme/big-m8", asked_as)
        assert identify(manifest).id == "acme/big-m8"
        board = lab.folder / "board.csv"
        assert lab.bench("leaderboard", folder, "-o", board).code == 0
        page = lab.folder / "page.html"
        assert lab.bench("report", folder, "-o", page).code == 0
        rows = csv.DictReader(board.read_text().splitlines())
        assert {row["model"] for row in rows} == {"acme/big-m8"}
        for text in (done.out, (folder / "table.csv").read_text(), page.read_text("utf-8")):
            assert "acme/big-m8" in text
        again = lab.bench_run(*given, "--samples", "5")
        assert again.code == 0
        assert lab.the_run() == folder

    def test_one_name_is_of_one_model(self, lab: Lab, own: FakeServer) -> None:
        at = ("--base-url", own.base_url, "--name", "lab/m8")
        assert lab.bench_ask("--model", "m8", *at).code == 0
        done = lab.bench_run("--model", "m9", *at, "--samples", "5")
        done.one_line(1, "holds a run of lab/m8, which was local/m8", "asks local/m9", "--name")

    def test_with_variants(self) -> None:
        one = options("m8", name="lab/m8@fp8", thinking="low")
        assert one.model.label == "lab/m8@fp8+low"
        assert one.model.provider == "local"
        assert one.model_settings().model == "m8"

    @pytest.mark.parametrize(
        ("name", "owner"),
        [
            ("openai/m8", "the provider 'openai'"),
            ("tiny", "the provider 'tiny'"),
            ("vllm", "the provider 'vllm'"),
            ("gpt-4o", "a model of openai"),
            ("claude-sonnet-4-0", "a model of anthropic"),
            ("m8", ""),
            ("lab/gpt-4o", ""),
        ],
    )
    def test_names_of_others_are_refused(self, name: str, owner: str) -> None:
        assert owner_of(name) == owner
        if owner:
            with pytest.raises(UsageError, match=f"is taken by {owner}; choose"):
                check_name(name, [URL])
        else:
            check_name(name, [URL])

    def test_names_of_the_users_own_providers_too(self, lab: Lab) -> None:
        file = lab.folder / "endpoints.yaml"
        file.write_text(f"lab: {{base_url: {URL!r}}}\n")
        lab.monkeypatch.setenv("EYECHART_ENDPOINTS", str(file))
        assert owner_of("lab/m8") == "the provider 'lab'"

    @pytest.mark.parametrize("name", ["", "a@b", "../x", "a//b", "a/", "a b", "é", "x" * 101])
    def test_names_that_no_folder_has_are_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match=r"name .* must be of letters"):
            check_name(name, [URL])

    def test_it_needs_a_server_and_one_model(self, lab: Lab) -> None:
        lab.bench_run("--name", "lab/m8").one_line(2, "--name needs", "--base-url; add it")
        two = ("--model", "a,b", "--base-url", URL, "--name", "lab/m8")
        lab.bench_run(*two).one_line(2, "--name names one model, and --model has 2")

    def test_a_default_of_a_file(self, lab: Lab, own: FakeServer) -> None:
        lab.monkeypatch.chdir(lab.folder)
        Path("bench.toml").write_text('name = "lab/m8"\n')
        done = lab.bench_run("--model", "m8", "--base-url", own.base_url)
        assert "bench.toml: --name lab/m8" in done.err
        assert read_manifest(lab.the_run()).model == "lab/m8"

    def test_in_a_study_its_key_is_called(self, lab: Lab, own: FakeServer) -> None:
        """Where `name` is the name by which the model is asked."""
        file = lab.folder / "study.yaml"
        text = (
            f"name: s\ntitle: S\ntasks: [{lab.ones}]\n"
            f"models: [{{name: m8, base_url: {own.base_url}, called: NAME}}]\n"
        )
        file.write_text(text.replace("NAME", "lab/m8"))
        done = lab.bench("run", file, "--trust", "--out", lab.out)
        assert done.code == 0, done.err
        assert read_manifest(lab.the_run()).model == "lab/m8"
        file.write_text(text.replace("NAME", "tiny"))
        done = lab.bench("run", file, "--trust", "--out", lab.out)
        assert (done.code, "called 'tiny' is taken by" in done.err) == (2, True), done.err
        done = lab.bench("run", file, "--trust", "--name", "lab/m8", "--out", lab.out)
        assert done.code == 0, done.err
        assert read_manifest(lab.the_run()).model == "lab/m8"

    def test_in_python(self, lab: Lab, own: FakeServer) -> None:
        run = eyechart.run(
            lab.ones, "m8", base_url=own.base_url, name="lab/m8", samples=1, out=lab.out
        )
        manifest = read_manifest(lab.the_run())
        assert manifest.model == "lab/m8"
        assert "'local/m8', name='lab/m8'" in manifest.commands[0]
        assert run.model == "lab/m8"

    def test_costs_are_those_of_the_model_that_was_asked(self, lab: Lab, own: FakeServer) -> None:
        models = lab.folder / "models.yaml"
        models.write_text("local/m8: {prices: {input: 1, output: 2, as_of: 2026-01-01}}\n")
        lab.monkeypatch.setenv("EYECHART_MODELS", str(models))
        given = ("--model", "m8", "--base-url", own.base_url, "--name", "lab/m8", "--budget", "5")
        done = lab.bench_run(*given)
        assert done.code == 0, done.err
        assert "cost about $" in done.err
        assert model_of(read_manifest(lab.the_run())).prices is not None
