"""Providers of other packages: found by their entry points, named where they cannot be used."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eyechart.harness.cli.parsing.completion import completion_of
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.providers.base import ModelSettings, SetupError
from eyechart.providers.plugins import plugins
from eyechart.providers.plugins.contract import PluginError
from eyechart.providers.plugins.plugin_provider import PluginProvider
from eyechart.providers.plugins.plugins import INSIDES, PROVIDERS
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import has_batches, listed, open_model
from eyechart.providers.registry.setting_checks import check_tier
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import records
from tests.plugged import EXAMPLES, plug, plug_example

if TYPE_CHECKING:
    from tests.conftest import Lab

SOUND = """\
from eyechart.providers.scripted import ScriptedProvider


def open_provider(settings):
    settings.refuse_all_but("base_urls", "tier")
    return ScriptedProvider([settings.model])
"""
BROKEN = {
    "absent": ("no_such_module_of_ours:open", "", "importing it raised ModuleNotFound"),
    "raises": ("raising:open", "raise SystemExit('gone')", "importing it raised SystemExit: gone"),
    "lacks": ("lacking:open", "", "lacking has no 'open'"),
    "number": ("of_number:open", "open = 7", "it is an int, and should be a function"),
}
"""Name -> entry point, the module's text, what is said when it is imported."""
FAILING = {
    "fails": ("failing:open", "def open(settings): return 1 / 0", "opening 'x' raised ZeroDiv"),
    "leaves": (
        "leaving:open",
        "def open(settings): raise SystemExit('gone')",
        "raised SystemExit: g",
    ),
    "gives": ("giving:open", "def open(settings): return 'me'", "a str, which has no method comp"),
}
"""The same of those that fail when they are opened."""


@pytest.fixture(autouse=True)
def _laboratory_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It adds a provider, where it is."""
    found = plugins._distributions_with
    monkeypatch.setattr(
        plugins, "_distributions_with", lambda group: found(group) - {"eyechart-lab"}
    )


def plug_provider(site: Path, name: str, module: str = "sound", text: str = SOUND) -> None:
    plug(
        site,
        f"acme-{name}",
        {PROVIDERS: {name: f"{module}:open_provider"}},
        version="2.1",
        summary="Acme's models",
        files={f"{module}.py": text},
    )


def test_its_models_are_asked(site: Path) -> None:
    """With the settings that it supports; others it refuses by the option's name."""
    plug_provider(site, "acme")
    name = parse_model("acme/some/model")
    assert (name.label, str(name.plugin)) == ("acme/some/model", "acme-acme 2.1")
    settings = ModelSettings("", base_urls=("http://127.0.0.1:1/v1",), tier="flex")
    opened = open_model(name, settings)
    assert isinstance(opened, PluginProvider)
    assert isinstance(opened.provider, ScriptedProvider)
    assert parse_model("acme/acme").label == "acme/acme"
    for more, option in (
        ({"effort": "high"}, "thinking"),
        ({"temperature": 0.5}, "temperature"),
        ({"logprobs": True}, "logprobs"),
    ):
        with pytest.raises(SetupError, match=f"acme/some/model does not support {option};"):
            open_model(name, ModelSettings("", **more))


def test_what_it_is_not_asked_for(site: Path) -> None:
    """Batches, and a name without a model; a tier is its own business."""
    plug_provider(site, "acme")
    with pytest.raises(SetupError, match="acme/… names a model"):
        parse_model("acme")
    with pytest.raises(SetupError, match="did you mean 'acme'"):
        parse_model("acmee/x")
    with pytest.raises(SetupError, match="tier='batch' is for"):
        has_batches(parse_model("acme/x"))
    check_tier(parse_model("acme/x"), "flex")
    assert parse_model("acme", base_urls=["http://h"]).label == "local/acme"


@pytest.mark.parametrize("name", [*BROKEN, *FAILING])
def test_one_that_cannot_be_used(lab: Lab, site: Path, name: str) -> None:
    """Is named in one line by the verbs that need it; all others go on."""
    value, text, said = (BROKEN | FAILING)[name]
    files = {f"{value.partition(':')[0]}.py": text} if text or name == "lacks" else {}
    plug(site, "acme-x", {PROVIDERS: {name: value}}, files=files)
    place = f"acme-x 1.0, entry point '{name} = {value}' of eyechart.providers: "
    asked = lab.bench_run("--model", f"{name}/x", task=lab.plain)
    assert asked.one_line(2, place, said)
    done = lab.bench("models")
    assert "scripted" in done.out
    if name in BROKEN:
        assert f"{place}{said}" in done.err
        assert len(done.err.splitlines()) == 1
        assert name not in done.out
    else:
        assert name in done.out


def test_a_name_that_is_taken(lab: Lab, site: Path) -> None:
    """The built-in provider is used; of two plugins with one name neither is."""
    plug_provider(site, "openai")
    plug_provider(site, "acme")
    plug(site, "other", {PROVIDERS: {"acme": "sound:open_provider", "A/b": "sound:x"}})
    plug_provider(site, "lab")
    (lab.folder / "endpoints.yaml").write_text("lab: {base_url: 'http://127.0.0.1:9/v1'}\n")
    lab.monkeypatch.setenv("EYECHART_ENDPOINTS", str(lab.folder / "endpoints.yaml"))
    assert parse_model("lab/x").plugin is None
    assert parse_model("openai/x").plugin is None
    with pytest.raises(PluginError, match=r"acme-acme 2\.1.* other 1\.0 has the same name"):
        parse_model("acme/x")
    errors = sorted(lab.bench("models").err.splitlines())
    assert [line.partition("eyechart.providers: ")[2] for line in errors] == [
        "other 1.0 has the same name, so neither is used; uninstall one",
        "'lab' is your own, and that one is used",
        "'openai' is built in, and that one is used",
        "a name has lower-case letters, digits, '-' and '_'",
    ]
    places = (
        "acme-acme 2.1",
        "acme-lab 2.1",
        "acme-openai 2.1",
        "other 1.0, entry point 'A/b = sound:x'",
    )
    assert all(f"bench: {place}" in line for place, line in zip(places, errors, strict=True))


def test_the_first_on_the_path_hides_others(site: Path, tmp_path: Path) -> None:
    """A distribution that is there twice counts once, as Python imports it."""
    plug_provider(site, "acme")
    later = tmp_path / "later"
    plug(later, "acme-acme", {PROVIDERS: {"acme": "old:open", "older": "old:open"}}, version="1.0")
    sys.path.append(str(later))
    assert str(parse_model("acme/x").plugin) == "acme-acme 2.1"
    with pytest.raises(SetupError, match="unknown provider 'older'"):
        parse_model("older/x")


def test_a_broken_distribution_takes_nothing_down(site: Path) -> None:
    """One whose files cannot be read has no plugin."""
    plug_provider(site, "acme")
    (site / "bad-1.dist-info").mkdir()
    (site / "bad-1.dist-info" / "entry_points.txt").write_bytes(b"[eyechart.providers]\n\xff")
    (site / "worse-1.dist-info").mkdir()
    (site / "worse-1.dist-info" / "entry_points.txt").write_text("[eyechart.providers]\nx = ")
    plug(site, "form", {})
    info = site / "form-1.0.dist-info" / "entry_points.txt"
    info.write_text("[eyechart.providers]\nno sign of equality\n")
    assert parse_model("acme/x").plugin is not None
    assert [one.provider for one in listed()[0] if one.origin != "built in"] == ["acme"]


def test_where_providers_come_from(lab: Lab, site: Path) -> None:
    """As text, as JSON, and for a shell that completes."""
    assert " from " not in lab.bench("models").out.splitlines()[0]
    noisy = "print('hello')\n" + SOUND
    plug_provider(site, "acme", module="noisy", text=noisy)
    sys.path.insert(0, str(site / "again"))  # what is installed is read once for each sys.path
    done = lab.bench("models")
    rows = [line.split("  ") for line in done.out.splitlines()]
    assert [cell.strip() for cell in rows[-1] if cell] == [
        *("acme", "acme-acme 2.1", "Acme's models", "see acme-acme")
    ]
    assert "built in" in rows[1]
    providers = json.loads(lab.bench("models", "--json").out)["providers"]
    assert providers[-1] == {
        "provider": "acme",
        "from": "acme-acme 2.1",
        "what": "Acme's models",
        "needs": "see acme-acme",
    }
    assert providers[0]["from"] == "built in"
    complete = completion_of(SETTINGS["model"])
    assert complete is not None
    assert "acme/" in complete(None, "")


def test_built_in_names_read_no_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does the help, which knows no names."""
    monkeypatch.setattr(plugins, "_read", lambda *_: pytest.fail("read"))
    for model in ("openai/x", "tiny", "oracle:5", "scripted/x"):
        assert parse_model(model).plugin is None
    with pytest.raises(pytest.fail.Exception):
        parse_model("other/x")


def test_the_example(lab: Lab, site: Path) -> None:
    """A provider of fewer than 80 lines; a run says which version of it was used."""
    lab.monkeypatch.setattr(sys, "path", plug_example("eyechart-command", site))
    code = (EXAMPLES / "eyechart-command" / "eyechart_command.py").read_text()
    assert len(code.splitlines()) < 80
    says = "command/echo 'Final answer: 2'"
    done = lab.bench_run("--model", says, task=lab.plain)
    assert done.code == 0, done
    folder = lab.the_run()
    assert {record["reply"] for record in records(folder)} == {"Final answer: 2\n"}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["software"]["eyechart-command"] == "0.1.0"
    assert manifest["server"]["engine"] == "command"
    lab.bench_run("--model", "command/no-such-program", task=lab.plain).one_line(
        2, "there is no program 'no-such-program'"
    )


def test_models_that_are_asked_and_looked_into_have_one_name(lab: Lab, site: Path) -> None:
    """A package may have an entry point of each kind: what varies stands in the model's name."""
    points = {INSIDES: {"varied": "looked:open"}, PROVIDERS: {"varied": "sound:open_provider"}}
    plug(site, "acme-varied", points, files={"sound.py": SOUND})
    name = parse_model("varied/window=4:2/small")
    assert (name.label, name.plugin is not None) == ("varied/window=4:2/small", True)
    done = lab.bench_run(
        "--model", f"{name.label},varied/window=8:2/small", "--keep-going", task=lab.plain
    )
    assert done.code == 0, done.err
    assert len([*lab.out.glob("runs/varied/window=*/small/*")]) == 2
