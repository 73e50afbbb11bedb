"""Files that may be a stranger's: what they need a confirmation for, and what a dry run sends."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from eyechart.harness.face.options.trust import is_outside, why_model
from eyechart.harness.journal.manifest import find_runs
from eyechart.providers.descriptor import Destination
from eyechart.providers.descriptors import descriptor_of
from tests.fake_server import Asked, FakeServer, Response, chat, fake_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Lab

OPENAI_KEY = "sk-of-openai-0123456789"
KEYS = {
    "OPENAI_API_KEY": OPENAI_KEY,
    "GROQ_API_KEY": "gsk-of-groq-0123456789",
    "VLLM_API_KEY": "of-vllm-0123456789",
}
ITEMS = '{"variables": {"x": "b"}, "target": "b", "length": 1}\n'
TASK = "version: 1\ntitle: X\nitems: x.jsonl\nprompt: '{{ x }}? {{ phrase }}'\nanswer: text\n"


def answering(asked: Asked, _number: int) -> Response:
    if asked.path == "/v1/models":
        return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
    if asked.path == "/version":
        return Response(body={"version": "1"})
    if asked.path == "/tokenize":
        return Response(body={"count": 7})
    return Response(body=chat("Final answer: 2"))


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with fake_server(answering) as one:
        yield one


@pytest.fixture
def home(lab: Lab) -> Lab:
    """A laboratory whose folder is the current one, with keys and without other variables."""
    for name in [name for name in os.environ if name.startswith("EYECHART_")]:
        lab.monkeypatch.delenv(name)
    for name, key in KEYS.items():
        lab.monkeypatch.setenv(name, key)
    lab.monkeypatch.chdir(lab.folder)
    (lab.folder / "x.jsonl").write_text(ITEMS)
    (lab.folder / "x.yaml").write_text(TASK)
    return lab


def study(home: Lab, models: str, task: str = "./x.yaml", name: str = "s.yaml") -> Path:
    path = home.folder / name
    path.write_text(f"name: s\ntitle: S\nmodels: {models}\ntasks: [{task}]\n")
    return path


MODELS = [("my-model", "OPENAI_API_KEY"), ("groq/m", "GROQ_API_KEY"), ("vllm/m", "VLLM_API_KEY")]


@pytest.mark.parametrize(("model", "variable"), MODELS)
def test_a_study_sends_no_key_to_the_address_it_names(
    home: Lab, server: FakeServer, model: str, variable: str
) -> None:
    """Without a confirmation nothing is sent, and with one a line says what goes where."""
    file = study(home, f'[{{name: {model}, base_url: "{server.base_url}"}}]')
    for verb in (("run", file), ("run", file, "--dry-run"), ("study", "check", file)):
        done = home.bench(*verb)
        assert done.code == 2, done
        first, last = done.err.strip().splitlines()
        assert f"s.yaml:3:10: {model if '/' in model else f'local/{model}'} would be" in first
        assert f"asked at {server.base_url}, with the key in {variable}" in first
        assert last == "this study may come from somebody else: add --trust if you trust it"
    assert not server.asked
    done = home.bench("run", file, "--trust")
    assert f" is asked at {server.base_url}, with the key in {variable}\n" in done.err
    assert {one.headers["authorization"] for one in server.asked} == {f"Bearer {KEYS[variable]}"}
    assert not any(key in done.out + done.err for key in KEYS.values())


def test_the_vendors_own_address_needs_no_confirmation(home: Lab) -> None:
    """Written out in a study, it is where the requests go anyway."""
    file = study(home, '[{name: gpt-4o, base_url: "https://api.openai.com/v1/"}]')
    assert home.bench("run", file, "--dry-run").code == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("{name: vllm/m, model_arg: '--load-format=x'}", "model_arg can load code"),
        ("{name: lm-eval/hf, model_arg: 'pretrained=x'}", "model_arg can load code"),
        ("scripted//etc/hostname", "'scripted//etc/hostname' is a file outside this folder"),
        ("scripted/../x", "'scripted/../x' is a file outside this folder"),
        ("tiny/~/x", "'tiny/~/x' is a file outside this folder"),
    ],
)
def test_other_parts_of_a_study_need_a_confirmation(home: Lab, model: str, words: str) -> None:
    """Arguments that can load code, and files elsewhere; models of the command line do not."""
    file = study(home, f"[{model}]")
    done = home.bench("run", file, "--dry-run")
    assert (done.code, words in done.err) == (2, True), done
    assert words not in home.bench("run", file, "--dry-run", "--trust").err
    assert home.bench("run", file, "--dry-run", "--model", "oracle:5").code == 0


def test_the_code_of_a_study_needs_a_confirmation(home: Lab) -> None:
    """It is not executed before; a task of ready items has none."""
    mark = home.folder / "executed"
    code = home.folder / "code.py"
    code.write_text(
        f"open({str(mark)!r}, 'w').close()\n\ndef make(rng, length):\n    return None\n"
    )
    text = TASK.replace("items: x.jsonl", "generator: code.py:make\nlengths: [1]\nsamples: 1")
    (home.folder / "y.yaml").write_text(text)
    file = study(home, "[oracle:5]", task="./y.yaml")
    for verb in (("run", file), ("study", "check", file), ("study", "show", file)):
        done = home.bench(*verb)
        assert (done.code, mark.exists()) == (2, False), done
        assert f"task '{home.folder.name}/y' executes the code in code.py" in done.err
    assert home.bench("study", "check", file, "--trust").code == 2  # the generator makes no item
    assert mark.exists()
    mark.unlink()
    (home.folder / "bench.toml").write_text("task = './y.yaml'\n")
    home.bench("run", "-m", "oracle:5").one_line(
        2, "bench.toml:1: ", "executes the code in code.py", "--trust", "EYECHART_TASK"
    )
    assert not mark.exists()
    elsewhere = home.folder / "in"
    elsewhere.mkdir()
    away = study(home, "[oracle:5]", task="../x.yaml", name="in/s.yaml")
    assert "uses a file outside this folder" in home.bench("run", away).err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("base-url = 'http://127.0.0.1:9/v1'", "names an address that requests and keys"),
        ("model-arg = ['x=y']", "'model-arg' can load code"),
        ("engine = 'ray:x:1'", "can name a cluster that code and keys"),
        ("out = '../victim'", "'out' leads out of this folder"),
        ("out = '/tmp/victim'", "'out' leads out of this folder"),
        ("out = 'link/victim'", "'out' leads out of this folder"),
        ("model = 'scripted//etc/hostname'", "is a file outside this folder"),
        ("model = 'oracle:5,scripted/link/x'", "is a file outside this folder"),
    ],
)
def test_a_default_of_a_file_needs_a_confirmation(home: Lab, line: str, words: str) -> None:
    """It is given with the option, by the command line or the environment, or with --trust; a verb
    that does not use the value goes on.
    """
    (home.folder / "link").symlink_to(home.folder.parent)
    (home.folder.parent / "x").write_text("Final answer: b\n")
    (home.folder / "bench.toml").write_text(f"{line}\n")
    option = line.partition(" ")[0]
    asked = ("run", "-t", "x.yaml", *(() if option == "model" else ("-m", "oracle:5")))
    variable = f"EYECHART_{option.replace('-', '_').upper()}"
    home.bench(*asked).one_line(2, "bench.toml:1: ", words, "add --trust", variable)
    assert words not in home.bench(*asked, "--trust", "--dry-run").err
    assert home.bench("runs").code == (2 if option == "out" else 0)
    assert home.bench("tasks").code == 0
    if option in ("out", "model"):
        value = {"out": "here", "model": "oracle:5"}[option]
        assert home.bench(*asked, f"--{option}", value).code == 0
        home.monkeypatch.setenv(variable, value)
        assert home.bench(*asked).code == 0


def test_no_verb_writes_outside_for_a_file(home: Lab) -> None:
    """`bench leaderboard` has no confirmation but the option itself."""
    victim = home.folder.parent / "victim"
    victim.mkdir()
    (victim / "leaderboard.csv").write_text("mine")
    (home.folder / "bench.toml").write_text("out = '../victim'\n")
    home.bench("leaderboard").one_line(2, "bench.toml:1: 'out' leads out", "EYECHART_OUT")
    assert (victim / "leaderboard.csv").read_text() == "mine"
    assert "--trust" not in home.bench("leaderboard").err
    (home.folder / "bench.toml").unlink()
    (home.folder / "results").mkdir()
    link = home.folder / "results" / "leaderboard.csv"
    link.symlink_to(victim / "leaderboard.csv")
    assert home.bench("run", "-t", "x.yaml", "-m", "oracle:5").code == 0
    home.bench("leaderboard").one_line(2, "leaderboard.csv is a link to a file elsewhere", "-o")
    assert (victim / "leaderboard.csv").read_text() == "mine"
    assert home.bench("run", "-t", "x.yaml", "-m", "oracle:5", "--out", "in").code == 0


def test_every_verb_says_what_came_from_a_file(home: Lab) -> None:
    """Also those that only read; not what a study does not use."""
    (home.folder / "bench.toml").write_text("out = 'there'\nsamples = 1\n")
    assert home.bench("run", "-t", "x.yaml", "-m", "oracle:5").code == 0
    assert home.bench("runs").err == "bench: bench.toml: --out there\n"
    assert home.bench("leaderboard").err.startswith("bench: bench.toml: --out there\n")
    done = home.bench("run", study(home, "[oracle:5]"))
    assert done.err.startswith("bench: bench.toml: --out there\n")


MISTAKES = {
    "an unknown key": ("title: X", "title: X\nunknown: 1"),
    "no phrase": ("? {{ phrase }}", ""),
    "no samples": ("samples: 1\n", ""),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_lets_no_code_run(home: Lab, mistake: str) -> None:
    """The mistakes that are known without the code are said; the code is executed after --trust."""
    mark = home.folder / "executed"
    (home.folder / "code.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    text = TASK.replace("items: x.jsonl", "generator: code.py:make\nlengths: [1]\nsamples: 1")
    (home.folder / "grp").mkdir()
    (home.folder / "grp" / "y.yaml").write_text(text.replace(*MISTAKES[mistake]))
    (home.folder / "grp" / "code.py").write_text((home.folder / "code.py").read_text())
    for task in ("./grp/y.yaml", "./grp/"):
        file = study(home, "[oracle:5]", task=task)
        for verb in (("run", file), ("study", "check", file), ("study", "show", file)):
            assert (home.bench(*verb).code, mark.exists()) == (2, False), (task, verb)
        (home.folder / "bench.toml").write_text(f"task = '{task}'\n")
        assert home.bench("run", "-m", "oracle:5", "--dry-run").code == 2
        assert not mark.exists()
        (home.folder / "bench.toml").unlink()


def test_the_items_of_a_task_stay_inside(home: Lab) -> None:
    """Items elsewhere are another's files, also behind a link."""
    inside = home.folder / "in"
    inside.mkdir()
    (inside / "link.jsonl").symlink_to(home.folder / "x.jsonl")
    for name in ("../x.jsonl", "link.jsonl"):
        (inside / "z.yaml").write_text(TASK.replace("x.jsonl", name))
        done = home.bench("study", "check", study(home, "[oracle:5]", "./z.yaml", "in/s.yaml"))
        assert (done.code, "uses a file outside this folder" in done.err) == (2, True), done


def test_paths_that_lead_out(tmp_path: Path) -> None:
    """Through links, homes and loops; the name of a model on a hub is no path."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "up").symlink_to(tmp_path.parent)
    within = [f"{tmp_path}/{path}" for path in ("..", "up/x", "a/../../x", "loop", "a\0b")]
    for path in (*within, "/", "~", "~nobody-has-this-name/x"):
        assert is_outside(tmp_path, path), path
    assert not is_outside(tmp_path, f"{tmp_path}/a/../b")
    assert why_model(tmp_path, "vllm/Qwen/Qwen3-4B") is None
    assert why_model(tmp_path, "gpt-4o") is None
    assert why_model(tmp_path, "oracle:50/0.9") is None
    assert why_model(tmp_path, "scripted/~x/y") is not None


@pytest.mark.parametrize(("model", "variable"), MODELS)
def test_a_dry_run_opens_no_connection(
    home: Lab, server: FakeServer, model: str, variable: str
) -> None:
    """It says what it does not know; --ask-server asks."""
    asked = ("run", "-t", "x.yaml", "-m", model, "--base-url", server.base_url, "--dry-run")
    done = home.bench(*asked)
    assert (done.code, done.err, server.asked) == (0, "", [])
    assert f"asked at: {server.base_url}, with the key in {variable}\n" in done.out
    is_vllm = model.startswith("vllm/")
    unknown = "not known: the window and the tokenizer of the server"
    assert (unknown in done.out) == is_vllm
    assert home.bench(*asked, "--json").code == 0
    assert not server.asked
    done = home.bench(*asked, "--ask-server")
    assert (done.code, unknown in done.out) == (0, False)
    facts = {"/v1/models", "/version", "/tokenize"} if is_vllm else set()
    assert {one.path for one in server.asked} == facts
    home.bench(*asked[:-1], "--ask-server").one_line(2, "--ask-server needs --dry-run")


def destination(
    provider: str,
    addresses: Sequence[str] = (),
    model_args: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Destination | None:
    """Where a provider says that its models are asked."""
    return descriptor_of(provider, environ).destination(addresses, model_args, environ)


def test_a_run_says_where_it_asks(home: Lab, server: FakeServer) -> None:
    """Before anything is sent; a model of this machine is asked nowhere."""
    asked = ("run", "-t", "x.yaml", "--base-url", server.base_url, "-m")
    for model, variable in MODELS:
        done = home.bench(*asked, model, "--out", model.replace("/", "-"))
        assert f"is asked at {server.base_url}, with the key in {variable}\n" in done.err
    assert str(destination("anthropic", [server.base_url])) == f"{server.base_url}, without a key"
    assert "asked at" not in home.bench("run", "-t", "x.yaml", "-m", "oracle:5").err


def test_where_models_are_asked() -> None:
    """By vendor; never with a password, and only with a key that is set."""
    environ = {"OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "https://a.example"}
    own = destination("openai", environ=environ)
    assert str(own) == "https://api.openai.com/v1, with the key in OPENAI_API_KEY"
    urls = ["https://user:pw@a.example/v1", "http://b.example"]
    given = destination("groq", urls, environ=environ)
    both = "https://***@a.example/v1 and http://b.example"
    assert str(given) == f"{both}, with the password in the address"
    environ["GROQ_API_KEY"] = "k"
    keys = "the password in the address and the key in GROQ_API_KEY"
    assert str(destination("groq", urls, environ=environ)) == f"{both}, with {keys}"
    assert str(destination("groq", urls[:1], environ=environ)).endswith(
        ", with the password in the address"
    )
    assert str(destination("azure", environ=environ)) == "https://a.example, without a key"
    environ = {"ANTHROPIC_BASE_URL": "https://b.example", "ANTHROPIC_API_KEY": "k"}
    assert str(destination("anthropic", environ=environ)) == (
        "https://b.example, from ANTHROPIC_BASE_URL, with the key in ANTHROPIC_API_KEY"
    )
    named = destination("lm-eval", model_args=["base_url=http://c.example"])
    assert str(named) == "http://c.example, with the key that lm-eval reads"
    for name in ("tiny", "oracle", "scripted", "hf", "gguf", "vllm", "lm-eval"):
        assert destination(name, environ={}) is None


def test_the_vendors_variable_of_the_address_is_obeyed(home: Lab, server: FakeServer) -> None:
    """As its SDK does: the gateway gets key and prompts, a line says why, and the run is one at a
    server of the user's; an address in the command goes before it.
    """
    home.monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    home.monkeypatch.setenv("GROQ_BASE_URL", server.base_url.removesuffix("/v1"))
    asked = ("run", "-t", "x.yaml", "-m")
    where = f"{server.base_url}, from OPENAI_BASE_URL, with the key in OPENAI_API_KEY"
    for model, label in (
        ("gpt-4o", "local/gpt-4o"),
        ("openai/m", "openai/m"),
        ("a/b", "local/a/b"),
    ):
        assert f"asked at: {where}" in home.bench(*asked, model, "--dry-run").out
        done = home.bench(*asked, model)
        assert done.code == 0
        assert f"{label} is asked at {where}\n" in done.err
        assert (home.folder / "results" / "runs" / label).is_dir()
    assert {one.headers["authorization"] for one in server.asked} == {f"Bearer {OPENAI_KEY}"}
    groq = f"{server.base_url.removesuffix('/v1')}/openai/v1, from GROQ_BASE_URL"
    assert groq in home.bench(*asked, "groq/m", "--dry-run").out
    home.monkeypatch.delenv("OPENAI_BASE_URL")
    home.monkeypatch.setenv("OPENAI_API_BASE", server.base_url)  # of its SDK before 1.0
    assert f"{server.base_url}, from OPENAI_API_BASE" in home.bench(*asked, "m", "--dry-run").out
    own = home.bench(*asked, "gpt-4o", "--base-url", "https://api.openai.com/v1", "--dry-run").out
    assert "asked at: https://api.openai.com/v1, with the key" in own
    assert "OPENAI" not in home.bench(*asked, "oracle:5", "--dry-run").out
    home.monkeypatch.setenv("OPENAI_BASE_URL", "gateway:80")
    home.bench(*asked, "gpt-4o").one_line(2, "OPENAI_BASE_URL 'gateway:80' does not begin with")


def test_the_kept_file_of_a_study_has_no_password(home: Lab, server: FakeServer) -> None:
    """It is written to the results as it was asked, without secrets."""
    address = server.base_url.replace("://", "://user:pa55word@")
    file = study(home, f'[{{name: openai/m, base_url: "{address}"}}]')
    home.bench("run", file, "--trust")
    (kept,) = (home.folder / "results" / "studies").rglob("study.yaml")
    assert "***@" in kept.read_text()
    for path in (home.folder / "results").rglob("*"):
        assert path.is_dir() or b"pa55word" not in path.read_bytes()


@pytest.mark.parametrize(
    "system", [f"Say {KEYS['OPENAI_API_KEY']}", "See https://a.example/x?key=12345"]
)
def test_a_system_prompt_with_a_key_is_refused(home: Lab, system: str) -> None:
    """It would be sent to the model, and stand in the manifest."""
    asked = ("run", "-t", "x.yaml", "-m", "oracle:5", "--system", system)
    said = home.bench(*asked).one_line(2, "--system has a key or a password in it", "leave it out")
    assert KEYS["OPENAI_API_KEY"] not in said
    assert not find_runs(home.folder / "results")
    file = study(home, "[oracle:5]")
    file.write_text(file.read_text() + f"system: {orjson.dumps(system).decode()}\n")
    assert "has a key or a password in it" in home.bench("run", file).err
