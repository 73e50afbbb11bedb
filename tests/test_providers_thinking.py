"""`--thinking` and `--param`: what each form of a request says, and what is refused by name."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import eyechart
from eyechart.harness.errors import UsageError
from eyechart.harness.face.options.run_options import models_of
from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.run.room import Room
from eyechart.harness.settings.run_settings import RunSettings
from eyechart.providers.base import (
    ModelSettings,
    ProviderError,
    Reply,
    Request,
    SetupError,
    environment_key,
)
from eyechart.providers.catalog.endpoints import NEUTRAL, endpoint_of, thinking_fields
from eyechart.providers.catalog.model_facts import ModelFacts
from eyechart.providers.openai.form import OpenAIForm, vllm_form
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.setting_checks import checked
from tests.conftest import right

if TYPE_CHECKING:
    from tests.conftest import Lab

KEY = "sk-0123456789abcdef0123456789abcdef"
SERVER = ("http://127.0.0.1:9/v1",)


def body_of(model: str, thinking: str, urls: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """The fields of a body besides those that every request has: a prompt, a limit, and what makes
    sampling neutral.
    """
    name = parse_model(model, base_urls=urls)
    settings = checked(name, ModelSettings("", base_urls=urls, thinking=thinking, **more))
    endpoint = endpoint_of(name.provider, urls)
    facts = ModelFacts().asked_for(settings.effort, settings.thinking)
    body = OpenAIForm(settings, endpoint, facts).body(Request("x", 9, None))
    return {
        field: value
        for field, value in body.items()
        if field not in ("messages", "max_tokens", "max_completion_tokens")
        and value not in NEUTRAL.get(field, ())
    }


def kwargs(*, on: bool, **more: Any) -> dict[str, Any]:
    """The chat template's switches."""
    return {"enable_thinking": on, "thinking": on, **more}


@pytest.mark.parametrize(
    ("model", "urls", "thinking", "fields"),
    [
        ("Qwen/Qwen3-8B", SERVER, "on", {"chat_template_kwargs": kwargs(on=True)}),
        ("Qwen/Qwen3-8B", SERVER, "off", {"chat_template_kwargs": kwargs(on=False)}),
        (
            "Qwen/Qwen3-8B",
            SERVER,
            "2000",
            {
                "chat_template_kwargs": kwargs(on=True, thinking_budget=2000),
                "thinking_token_budget": 2000,
            },
        ),
        ("openai/gpt-5.1", (), "off", {"reasoning_effort": "none"}),
        ("openai/gpt-5.1", (), "low", {"reasoning_effort": "low"}),
        ("deepseek/deepseek-chat", (), "on", {"thinking": {"type": "enabled"}}),
        (
            "gemini/gemini-2.5-flash",
            (),
            "512",
            {"extra_body": {"google": {"thinking_config": {"thinking_budget": 512}}}},
        ),
        ("openrouter/x/y", (), "300", {"reasoning": {"max_tokens": 300}}),
        ("groq/qwen3", (), "off", {"reasoning_effort": "none"}),
    ],
)
def test_each_vendor_is_asked_in_its_form(
    model: str, urls: tuple[str, ...], thinking: str, fields: dict[str, Any]
) -> None:
    """An effort, a budget, or the switches of a chat template."""
    assert body_of(model, thinking, urls) == fields


def test_thinking_and_params_of_one_field_are_joined() -> None:
    """A switch of the template takes nothing away from the user's own; null is sent as it is."""
    params = {"chat_template_kwargs": {"mode": "fast"}, "top_k": None}
    body = body_of("q", "off", SERVER, params=params)
    assert body == {"chat_template_kwargs": kwargs(on=False, mode="fast"), "top_k": None}


def test_one_field_is_not_set_twice() -> None:
    """One of the two would not be sent, and one request would have two folders."""
    given = {"thinking": "on", "params": ['chat_template_kwargs={"enable_thinking": false}']}
    with pytest.raises(SetupError, match=r"chat_template_kwargs\.enable_thinking"):
        models_of(RunSettings.read(model="q", base_url=SERVER, **given))


def test_a_field_of_ours_gives_way_and_one_of_the_users_does_not() -> None:
    """A server may lack the field that keeps prompts out of its cache."""
    settings = ModelSettings("gpt-5.6", provider="openai", params={"top_k": 5})
    form = OpenAIForm(settings, endpoint_of("openai"), ModelFacts(), uncached=True)
    assert "prompt_cache_options" in form.body(Request("x", 9))
    assert form.adapt("prompt_cache_options", "unknown")
    assert not form.adapt("top_k", "unknown")
    body = form.body(Request("x", 9))
    assert "prompt_cache_options" not in body
    assert body["top_k"] == 5


def test_vllm_is_asked_as_other_open_servers() -> None:
    """Also by its own client."""
    settings = ModelSettings("m", thinking="off", params={"top_p": 0.5})
    body = vllm_form(settings).body(Request("x", 9))
    assert body["chat_template_kwargs"] == kwargs(on=False)
    assert body["top_p"] == 0.5


@pytest.mark.parametrize(
    ("model", "more", "said"),
    [
        (
            "openai/gpt-5.1",
            {"thinking": "on"},
            "takes off or an effort such as low",
        ),
        (
            "openai/gpt-5.1",
            {"thinking": "500"},
            "for thinking, not '500'",
        ),
        ("tiny", {"thinking": "on"}, "tiny takes nothing for thinking"),
        ("tiny", {"thinking": "low"}, "tiny takes nothing for thinking, not 'low'"),
        ("tiny", {"params": ["top_p=1"]}, "tiny takes no params"),
        ("gpt-4o", {"params": ["temperature=1"]}, "temperature sets it"),
        ("gpt-4o", {"params": ["n=2"]}, "cannot be given here: a request has one reply"),
        ("gpt-4o", {"params": ["tools=[]"]}, "tools are not run"),
        ("q", {"params": {"extra_body": {"max_tokens": 9}}}, "max_tokens sets it"),
    ],
)
def test_what_a_form_lacks_is_refused_by_name(model: str, more: dict[str, Any], said: str) -> None:
    """Before anything is asked."""
    with pytest.raises((ProviderError, UsageError)) as caught:
        models_of(RunSettings.read(model=model, **more))
    assert said in str(caught.value)


def test_a_completion_has_no_thinking() -> None:
    """A text to continue is not templated."""
    with pytest.raises(SetupError, match="a text to continue takes no wish for thoughts"):
        body_of("q", "off", SERVER, api="completions")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("on,off", ("on", "off")),
        (True, ("on",)),
        (4096, ("4096",)),
        ([False, "low"], ("off", "low")),
    ],
)
def test_thinking_is_read_from_every_door(given: Any, read: tuple[str, ...]) -> None:
    """YAML reads on and off as true and false."""
    assert RunSettings.read(thinking=given).thinking == read


@pytest.mark.parametrize("given", ["ON", "-3", "0", {"a": 1}, 1.5, None])
def test_other_thinking_is_refused(given: Any) -> None:
    """In one line; nothing given leaves it to the model."""
    if given is None:
        assert RunSettings.read(thinking=given).thinking == ()
        return
    with pytest.raises(UsageError, match="thinking must be on, off, a number of tokens"):
        RunSettings.read(thinking=given)


def test_params_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or texts, where they are none; a broken object is told, and a key is no parameter."""
    read = RunSettings.read(params=["top_p=0.9", "mode=fast", 'kwargs={"a": [1]}', "x=null"])
    assert read.params == {"top_p": 0.9, "mode": "fast", "kwargs": {"a": [1]}, "x": None}
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    environment_key("OPENAI_API_KEY")
    for bad in (
        ["top_p=1", "top_p=0.5"],
        ['a={"b"'],
        ["=1"],
        ["a b=1"],
        ["alone"],
        [{"a": object()}],
        [f"key={KEY}"],
    ):
        with pytest.raises(UsageError):
            RunSettings.read(params=bad)


def test_params_of_a_variable_have_no_blanks(lab: Lab) -> None:
    """They would end the value, and the message says so."""
    lab.monkeypatch.setenv("EYECHART_PARAM", 'chat_template_kwargs={"a": false}')
    done = lab.bench_run("--model", "q", "--base-url", SERVER[0], "--dry-run")
    done.one_line(2, "EYECHART_PARAM", "no valid JSON", "blanks separate the values of a variable")


@pytest.mark.parametrize(
    "line",
    [
        "thinking = false",
        'thinking = ["on", false]',
        'param = ["top_p=0.9", "mode=fast"]',
        'param = {mode = "1", off = false, stops = ["a", "b c"], deep = {x = [1.0]}}',
    ],
)
def test_what_is_said_of_a_file_can_be_pasted(lab: Lab, line: str) -> None:
    """The options that are echoed are those of the file."""
    lab.monkeypatch.chdir(lab.folder)
    file = lab.folder / "bench.toml"
    file.write_text(line)
    command = ("--model", "q", "--base-url", SERVER[0], "--dry-run", "--json")
    from_file = lab.bench_run(*command)
    (said,) = re.findall(r"^bench: bench.toml: (.*)$", from_file.err, re.MULTILINE)
    file.unlink()
    pasted = lab.bench_run(*command, *shlex.split(said))
    assert (pasted.code, pasted.out) == (0, from_file.out)
    assert pasted.err == ""


def test_one_number_is_one_run() -> None:
    """However it is written."""
    settings = [
        models_of(RunSettings.read(model="q", base_url=SERVER, params=[text]))[0].settings.given()
        for text in ("x=[1, {}]", "x=[1.0, {}]")
    ]
    assert settings[0] == settings[1]
    assert str(settings[0]) == str(settings[1])


@pytest.mark.parametrize(
    ("option", "argument"),
    [
        ("param", "params"),
        ("read", "reading"),
        ("axis", "axes"),
        ("model_arg", "model_args"),
        ("temprature", "temperature"),
    ],
)
def test_python_knows_its_arguments(option: str, argument: str) -> None:
    """Also by the names of the options on the command line."""
    given: dict[str, Any] = {option: "x"}
    with pytest.raises(TypeError, match=f"has no argument '{option}'; did you mean '{argument}'"):
        eyechart.run("counting/ones", "tiny", **given)


def test_of_several_unknown_arguments_the_first_is_named() -> None:
    """The same in each process: names in a set have another order in the next one."""
    wrong: dict[str, Any] = {f"wrong_{letter}": 1 for letter in "zyxwvutsrq"}
    with pytest.raises(TypeError, match="has no argument 'wrong_z'"):
        eyechart.run("counting/ones", "tiny", **wrong)


class TestIdentity:
    """What is sent makes the run; what is not sent does not."""

    def test_each_kind_is_a_run_of_its_own(self) -> None:
        """With a label of its own, so that tables can tell them apart."""
        given = RunSettings.read(model="q", base_url=SERVER, thinking="on,off,300")
        options = models_of(given)
        assert [one.model.label for one in options] == [
            "local/q@thinking=on",
            "local/q@thinking=off",
            "local/q@thinking=300",
        ]
        assert len({str(sorted(one.settings.given().items())) for one in options}) == 3

    def test_a_word_is_an_effort(self) -> None:
        """It names the run by itself."""
        (word,) = models_of(RunSettings.read(model="gpt-5.1", thinking="low"))
        assert (word.settings.effort, word.settings.thinking) == ("low", None)
        assert word.model.label == "openai/gpt-5.1@low"

    def test_a_temperature_that_is_not_sent_is_no_part(self) -> None:
        """It is named, and 0 and 0.6 are one run; a server of the user's gets it."""
        said: list[str] = []
        cold, warm = (
            models_of(RunSettings.read(model="o3", temperature=heat), notify=said.append)[0]
            for heat in (0, 0.6)
        )
        assert cold.settings == warm.settings
        assert cold.settings.temperature is None
        assert len(said) == 1
        assert "takes no" in said[0]
        (own,) = models_of(RunSettings.read(model="o3", temperature=0.6, base_url=SERVER))
        assert own.settings.temperature == 0.6

    def test_a_known_thinker_has_its_room_from_the_start(self) -> None:
        """By its entry in models.yaml; others begin with the tokens of the answer."""
        for model, tokens in (("o3", 40 + 8192), ("gpt-4o", 40)):
            (options,) = models_of(RunSettings.read(model=model))
            assert Room.of(options.model, options.settings).tokens("x", 40) == tokens

    def test_runs_without_them_keep_their_folders(self, lab: Lab) -> None:
        """The identity has the new settings only where they are set."""
        given = lab.wanted().settings.given()
        assert sorted(given) == ["api", "effort", "max_tokens", "seed", "system", "temperature"]

    def test_the_manifest_has_what_was_sent(self, lab: Lab) -> None:
        """As the provider says it, and the settings of the run; a later command goes on."""

        def answer(request: Request) -> Reply:
            return Reply(str(right(request)), sent={"top_p": 0.5})

        name = lab.fake(answer)
        done = lab.bench_run("--model", name)
        assert done.code == 0
        manifest = read_manifest(lab.wanted(model=name).folder)
        assert manifest.sent == {"top_p": 0.5}


def test_the_command_takes_both(lab: Lab) -> None:
    """As the dry run of a server's model shows."""
    done = lab.bench_run(
        *("--model", "q", "--base-url", SERVER[0], "--thinking", "off", "--param", "top_k=5"),
        *("--dry-run", "--json"),
    )
    assert done.code == 0, done.err
    (run,) = orjson.loads(done.out)["runs"]
    assert run["settings"]["thinking"] == "off"
    assert run["settings"]["params"] == {"top_k": 5}


def test_a_study_has_variants(lab: Lab) -> None:
    """With `off` as YAML reads it."""
    file = lab.folder / "study.yaml"
    file.write_text(
        "name: s\ntitle: S\ntasks: [counting/bernoulli]\nmodels:\n"
        "  - {name: deepseek/deepseek-chat, thinking: off}\n"
        "  - {name: deepseek/deepseek-chat, thinking: on, params: {top_p: 0.5}}\n"
    )
    done = lab.bench("run", str(file), "--dry-run", "--json")
    assert done.code == 0, done.err
    labels = {run["model"] for run in orjson.loads(done.out)["runs"]}
    assert labels == {
        "deepseek/deepseek-chat@thinking=off",
        "deepseek/deepseek-chat@thinking=on",
    }


def test_forms_have_the_number() -> None:
    """At every depth; an unknown kind has no fields."""
    assert thinking_fields("7", {"tokens": {"a": {"b": "$TOKENS"}}}) == {"a": {"b": 7}}
    assert thinking_fields("on", {"tokens": {"a": 1}}) == {}
    assert thinking_fields(None, {}) == {}
