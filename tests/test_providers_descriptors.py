"""One descriptor beside each provider: nobody else compares names, and a new one is one entry."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import types
from collections.abc import Iterator
from dataclasses import replace

import pytest

from eyechart.providers import descriptors
from eyechart.providers.base import ModelSettings, SetupError
from eyechart.providers.descriptor import Descriptor, Destination
from eyechart.providers.descriptors import BUILT_IN, descriptor_of, vendors
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import has_batches, open_batch_form
from eyechart.providers.registry.setting_checks import asked_thinking, check_tier
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Lab, right
from tests.test_imports import loaded, modules

NAMES = {*BUILT_IN, *vendors({})}
HOMES = ("providers.tiny.", "providers.vllm.", "providers.lm_eval.")
"""Where a provider's name is that of a model or of a library."""


def compared(tree: ast.AST) -> Iterator[str]:
    """The texts that something is compared with, also by `in`, `startswith` and `case`."""
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts = [*node.args] if node.func.attr in ("startswith", "removeprefix") else []
        for part in parts:
            for one in ast.walk(part):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.value.rstrip(":/")


def lists(tree: ast.AST) -> Iterator[set[str]]:
    """The texts in each tuple, list and set, and the keys of each table."""
    for node in ast.walk(tree):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        constants = (one.value for one in items if isinstance(one, ast.Constant))
        yield {value for value in constants if isinstance(value, str)}


def test_nobody_else_compares_the_names_of_providers() -> None:
    """Nor has a list of them."""
    wrong = {}
    quoted = re.compile(rf"[\"'}}](?:{'|'.join(map(re.escape, NAMES))})\b")
    for name, path in modules().items():
        text = path.read_text(encoding="utf-8")
        if not quoted.search(text):
            continue
        tree = ast.parse(text)
        found = {*compared(tree)} & NAMES if not name.startswith(HOMES) else set()
        found |= {one for names in lists(tree) if len(names & NAMES) > 1 for one in names & NAMES}
        if found:
            wrong[name] = found
    assert wrong == {}


@pytest.mark.parametrize(
    "code",
    ["a == 'tiny'", "a in ('vllm', 'x')", "a.startswith('oracle:')", "match a:\n case 'hf': pass"],
)
def test_the_search_can_find_one(code: str) -> None:
    """In each form."""
    assert {*compared(ast.parse(code))} & NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_what_a_descriptor_names_is_there(name: str) -> None:
    """Its functions, and what it needs, in a line."""
    one = descriptor_of(name, {})
    assert one.name == name
    assert one.title
    assert "\n" not in one.needs({})
    for path in filter(None, (one.opens, one.batch_form, one.batch_service)):
        module, _, function = path.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


@pytest.fixture
def acme(lab: Lab) -> Descriptor:
    """A new provider: one module with its descriptor, and one entry."""
    provider = ScriptedProvider(right)
    module = types.ModuleType("acme")
    descriptor = Descriptor(
        name="acme",
        title="Acme's models",
        needs=lambda environ: f"ACME ({'set' if environ.get('ACME') else 'not set'})",
        opens="acme:open_provider",
        efforts="none",
        takes_address=False,
        tiers=lambda _addresses: ("flex",),
        batch_hint="send a letter",
        destination=lambda _addresses, _model_args, _environ: Destination(
            ("https://acme",), "ACME"
        ),
    )
    module.__dict__.update(open_provider=lambda _settings: provider, DESCRIPTOR=descriptor)
    lab.monkeypatch.setitem(sys.modules, "acme", module)
    lab.monkeypatch.setitem(descriptors.BUILT_IN, "acme", descriptor)
    return descriptor


@pytest.mark.usefixtures("acme")
def test_a_new_provider_goes_through_all_doors(lab: Lab) -> None:
    """It is asked, forecast, listed and completed, and each option that it lacks is refused."""
    done = lab.bench_run("--model", "acme/a", task=lab.plain)
    assert done.code == 0
    assert "acme/a is asked at https://acme, with ACME\n" in done.err
    dry = lab.bench_run("--model", "acme/b", "--dry-run", task=lab.plain)
    assert dry.code == 0
    assert "cost: unknown, there are no prices of acme/b" in dry.out
    lab.monkeypatch.setenv("ACME", "1")
    models = lab.bench("models").out
    (line,) = (line for line in models.splitlines() if line.startswith("acme "))
    assert line.split("  ")[-1].strip() == "ACME (set)"
    assert "Acme's models" in line
    for options, said in (
        (["--tier", "batch"], "not for acme/a; send a letter; leave out --tier batch"),
        (["--thinking", "low"], "acme/a takes nothing for --thinking, not 'low'"),
        (["--tier", "default"], "acme/a is not asked in a tier 'default'; it has flex"),
        (["--base-url", "http://127.0.0.1:1/v1"], "acme takes no --base-url"),
        (["--model-arg", "a=b"], "--model-arg is for models of vllm/ and lm-eval/, not of acme"),
    ):
        lab.bench_run("--model", "acme/a", *options, task=lab.plain).one_line(2, said)
    with pytest.raises(SetupError, match="acme/a does not take the Batch form"):
        open_batch_form(parse_model("acme/a"), ModelSettings("a"))


def test_an_option_that_a_new_provider_takes(lab: Lab, acme: Descriptor) -> None:
    """Is refused no more."""
    taking = replace(acme, efforts="any", batch_service="acme:open_service")
    lab.monkeypatch.setitem(descriptors.BUILT_IN, "acme", taking)
    name = parse_model("acme/a")
    has_batches(name)
    assert asked_thinking(name, "a-word-of-its-own") == ("a-word-of-its-own", None)
    check_tier(name, "flex")


def test_descriptors_load_no_provider() -> None:
    """All of them are read without the module that opens a model."""
    opened = {path for one in BUILT_IN.values() if (path := one.opens.partition(":")[0])}
    light = {"eyechart.providers.oracle", "eyechart.providers.scripted"}
    code = "import sys, eyechart.providers.registry.registry\n"
    assert loaded(f"{code}print(sorted({opened - light!r} & set(sys.modules)))") == "[]"
