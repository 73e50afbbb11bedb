"""Whatever a call from Python is given: it works, or one clear line names the argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.errors import UsageError
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.harness.settings.spelling import as_key, as_option
from eyechart.providers.naming import in_python, named, settings_in, spelled, turned_on
from tests.conftest import Lab, right

ODD: dict[str, Any] = {
    "None": None,
    "int": 5,
    "minus": -1,
    "huge": 10**5000,
    "float": 0.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "bool": True,
    "text": "x",
    "empty": "",
    "nul": "a\0b",
    "surrogate": "\ud800",
    "bytes": b"x",
    "list": ["x"],
    "numbers": [5],
    "odd list": [None],
    "nested": [[5]],
    "empty list": [],
    "dict": {"separator": "none"},
    "odd dict": {5: 5},
    "object": object(),
}
"""What may come in place of any argument."""
SMALL: dict[str, Any] = {"lengths": [3], "samples": 2, "warn": lambda _line: None}


def call_of(lab: Lab, name: str) -> Callable[..., Any]:
    """A public function, with arguments that work; the current folder is empty."""
    (lab.folder / "empty").mkdir()
    lab.monkeypatch.chdir(lab.folder / "empty")
    ask = partial(eyechart.run, task=lab.ones, model=lab.fake(right), out=lab.out, **SMALL)
    match name:
        case "run":
            return ask
        case "load_run":
            return partial(eyechart.load_run, folder=ask().folder)
        case "compare":
            return partial(eyechart.compare, first=ask(), second=ask(model="oracle:2"))
        case "Run.compare":
            return partial(ask().compare, axis="separator", first="none", second="comma")
        case "Run.choose_samples":
            return ask().choose_samples
        case _:
            return FUNCTIONS[name]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "run": eyechart.run,
    "load_run": eyechart.load_run,
    "load_task": eyechart.load_task,
    "list_runs": eyechart.list_runs,
    "compare": eyechart.compare,
    "Run.compare": eyechart.Run.compare,
    "Run.choose_samples": eyechart.Run.choose_samples,
}
ARGUMENTS = [
    (name, argument)
    for name, function in FUNCTIONS.items()
    for argument in signature(function).parameters
    if argument != "self"
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_an_odd_argument(lab: Lab, name: str, argument: str) -> None:
    """Is taken, or is refused with an error of ours in one line; a run that was made can be read,
    and nothing is written outside of the folders of runs.
    """
    call = call_of(lab, name)
    for kind, value in ODD.items():
        try:
            call(**{argument: value})
        except (eyechart.EyechartError, eyechart.ProviderError) as error:
            text = str(error)
            assert text.strip(), kind
            assert "\n" not in text or argument == "task", (kind, text)
            assert len(text) < 700, (kind, text)
            assert "--" not in text.replace("'--", ""), (kind, text)
        except Exception as error:
            error.add_note(f"{name}({argument}={kind})")
            raise
        else:
            assert eyechart.list_runs(lab.out)["answered"].gt(0).all(), kind
        allowed = {"5", "x", "results"} if argument == "out" else {"results"}
        assert {path.name for path in Path().iterdir()} <= allowed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": None}, "model must be a text that is not empty, not None"),
        ({"model": ["x"]}, r"model must be a name, a function .*, not \['x'\]"),
        ({"model": "tiny,oracle:5"}, "several models; ask each with a call of its own"),
        ({"model": b"x"}, "model must be a name, a function .*, not b'x'"),
        ({"axes": 5}, r"axes must map axes to values, as .*, not 5"),
        ({"axes": ["comma"]}, "axes wants AXIS=VALUE.* or AXIS=all, not 'comma'"),
        ({"axes": {"separator": 5.5}}, "axes 'separator' must have a text or a list of texts, not"),
        ({"out": 5}, "out must be a path, not 5"),
        ({"out": None}, "out must be a path, not None"),
        ({"out": "a\0b"}, "out .* has a NUL character"),
        ({"base_url": 5}, "base_url must be a text or a list of texts, not 5"),
        ({"system": 5}, "system must be a text, not 5"),
        ({"system": "\ud800"}, "^system .* is not UTF-8"),
        ({"adaptive": 1}, "adaptive must be true or false, not 1"),
        ({"threshold": "0.5"}, "threshold must be a number from 0.02 to 0.995, not '0.5'"),
        ({"rpm": -1.0}, "^rpm must be a number above 0, not -1.0$"),
        ({"rpm": 5, "tier": "batch"}, "^rpm does not go together with tier='batch'"),
        ({"tier": "gold"}, "^tier must be default, flex or batch, not 'gold'"),
        ({"api": "chats"}, "^api must be chat or completions, not 'chats'"),
        ({"thinking": "High!"}, "^thinking must be on, off"),
        ({"name": "@a b"}, "^name must be NAME.*, not '@a b'"),
        ({"model": "oracle:5", "base_url": "http://h"}, "^oracle takes no base_url"),
        (
            {"model": "oracle:5", "model_args": ["x=1"]},
            "^model_args is for models of vllm/",
        ),
        ({"precision": 0.5}, "^precision needs adaptive=True; add it"),
        ({"shard": "1/2", "adaptive": True}, "^shard does not go together with adaptive=True"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(lab: Lab, given: dict[str, Any], said: str) -> None:
    """As Python writes it, and not as an option of the command line."""
    with pytest.raises((eyechart.EyechartError, eyechart.ProviderError), match=said):
        eyechart.run(**{"task": lab.ones, "model": "oracle:3", "out": lab.out, **given})


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("load_run", {"folder": None}, "folder must be a path, not None"),
        (
            "load_run",
            {"threshold": "0.5"},
            "threshold must be a number from 0.02 to 0.995, not '0.5'",
        ),
        ("list_runs", {"out": None}, "out must be a path, not None"),
        ("compare", {"first": None}, "first must be a path, not None"),
        ("compare", {"margin": "x"}, "margin must be a number from 0.001 to 0.999, or a"),
        ("Run.choose_samples", {"condition": 5}, "condition must map axes to values"),
        ("Run.choose_samples", {"lengths": "x"}, "lengths must be whole numbers"),
        ("load_task", {"task": 5}, "task must be a path, not 5"),
    ],
)
def test_so_is_one_of_the_other_functions(
    lab: Lab, name: str, given: dict[str, Any], said: str
) -> None:
    """Of those that read runs and tasks."""
    with pytest.raises(UsageError, match=said):
        call_of(lab, name)(**given)


def test_each_door_spells_a_setting_its_own_way() -> None:
    """A switch is shown with its value where the door writes one; other text stays."""
    said = f"{named('model_args')}: leave out {turned_on('fresh')}, {named('engine', 'ray')}{{x}}"
    assert in_python(said) == "model_args: leave out fresh=True, engine='ray'{x}"
    assert spelled(said, as_option) == "--model-arg: leave out --fresh, --engine ray{x}"
    assert spelled(named("adaptive", "True"), as_key) == "'adaptive: true'"
    assert spelled(named("name"), as_key) == "called"
    assert settings_in(said) == ["model_args", "fresh", "engine"]


def test_python_has_the_settings_of_a_run() -> None:
    """Under their names, with their defaults."""
    arguments = signature(eyechart.run).parameters
    assert set(SETTINGS) <= set(arguments)
    for name in set(SETTINGS) - {"task", "model"}:
        default = arguments[name].default
        assert SETTINGS[name].read(default) == SETTINGS[name].default, name
