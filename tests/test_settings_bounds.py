"""Command line, Python, study, bench.toml and environment take and refuse the same numbers."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.cli.work import run as models
from eyechart.harness.face.python import ask
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.settings import judging
from eyechart.harness.settings.checks import NumberRange, shown
from eyechart.harness.settings.judging import (
    JUDGING,
    OF_RUNS,
    JudgingArguments,
    PairJudgingArguments,
    RunJudgingArguments,
)
from eyechart.harness.settings.run_settings import SETTINGS
from eyechart.providers.base import SetupError
from tests.conftest import ROWS, Lab

MODEL = "openai/gpt-4o"
"""A model that has prices, as a budget needs them; nothing is sent."""
NUMBERS: dict[str, tuple[list[Any], list[Any]]] = {
    "budget": ([0.01, 5], [0, -1, math.nan, math.inf]),
    "draws": ([1, 1_000], [0, -1, 1_001, 1.5]),
    "lengths": ([1, 1_000_000], [0, -5, 1_000_001, 10**30, 1.5]),
    "max_connections": ([1, 10_000], [0, -1, 10_001, 1.5]),
    "max_requests": ([1, 999_999_999], [0, -1, 1_000_000_000, 1.5]),
    "max_tokens": ([1, 999_999_999], [0, -1, 1_000_000_000, 10**12, 1.5]),
    "precision": ([0.4, 1], [0.39, 1.01, 0, -1, math.nan, math.inf]),
    "rpm": ([0.5, 60], [0, -1, math.nan, math.inf]),
    "samples": ([1, 1_000_000], [0, -1, 1_000_001, 1.5]),
    "seed": ([0, 2**63 - 1], [-1, -5, 2**63, 1.5]),
    "temperature": ([0, 2.5], [-1, -0.5, math.nan, math.inf]),
    "logprobs": ([0, 20], [-1, 21, 1.5]),
    "tpm": ([0.5, 10_000], [0, -1, math.nan, math.inf]),
}
"""Numbers that each option takes, and that it refuses."""


BOUNDS = {name: one.bound for name, one in SETTINGS.items() if one.bound is not None}
"""All settings that are numbers."""


class Accepted(Exception):  # noqa: N818  no error
    """All was checked, and asking would begin."""


@pytest.fixture
def home(lab: Lab) -> Lab:
    """Asking raises `Accepted`. Rows are not drawn at random, since one has a million symbols."""
    rows = lab.plain.with_name("rows.py")
    rows.write_text(f"{ROWS}\n\ndef ones(rng, length):\n    return Item(['1'] * length, length)\n")

    def accept(*_given: object, **_named: object) -> int:
        raise Accepted

    lab.monkeypatch.setattr(models, "ask", accept)
    lab.monkeypatch.setattr(ask, "_ask", accept)
    lab.monkeypatch.chdir(lab.folder)
    return lab


def command_line(lab: Lab, name: str, value: Any) -> str:
    option = name.replace("_", "-")
    return run(lab, f"--{option}={value}")


def run(lab: Lab, *more: str) -> str:
    given = ("--task", str(lab.plain), "--model", MODEL, "--adaptive")
    done = lab.bench("run", *given, *more)
    assert done.code == 2
    return done.err


def environment(lab: Lab, name: str, value: Any) -> str:
    lab.monkeypatch.setenv(f"EYECHART_{name.upper()}", str(value))
    return run(lab)


def file(lab: Lab, name: str, value: Any) -> str:
    given = f"[{value}]" if name == "lengths" else value
    (lab.folder / "bench.toml").write_text(f"{name.replace('_', '-')} = {given}\n")
    return run(lab)


def of_study(lab: Lab, name: str, value: Any) -> str:
    given = {"nan": ".nan", "inf": ".inf"}.get(str(value), str(value))
    of_model = name in ("max_connections", "rpm", "logprobs", "tpm")
    line = f"{name}: {[value] if name == 'lengths' else given}\n"
    (lab.folder / "s.yaml").write_text(
        f"name: s\ntitle: s\ntasks: [lab/plain.yaml]\nadaptive: true\n{'' if of_model else line}"
        f"models:\n  - name: {MODEL}\n{'    ' + line if of_model else ''}"
    )
    done = lab.bench("run", "s.yaml", "--trust")
    assert done.code == 2
    return done.err


def python(lab: Lab, name: str, value: Any) -> str:
    given: dict[str, Any] = {name: [value] if name == "lengths" else value, "adaptive": True}
    with pytest.raises(eyechart.EyechartError) as caught:
        eyechart.run(lab.plain, MODEL, out=lab.out, warn=lambda _line: None, **given)
    return str(caught.value)


DOORS: dict[str, tuple[Callable[[Lab, str, Any], str], Callable[[str], str]]] = {
    "command line": (command_line, lambda name: f"--{name.replace('_', '-')}"),
    "environment": (environment, lambda name: f"EYECHART_{name.upper()}: "),
    "file": (file, lambda _name: "bench.toml:1: "),
    "study": (of_study, lambda name: f"{name}: must be "),
    "python": (python, lambda name: f"{name} must be "),
}
"""Door -> what goes through it and is said, and what that has in it."""


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", NUMBERS)
def test_every_door_has_the_same_bounds(home: Lab, door: str, name: str) -> None:
    """It takes both ends, and says of what is beyond them where that stands and what must be."""
    give, place = DOORS[door]
    good, bad = NUMBERS[name]
    for value in good:
        with pytest.raises(Accepted):
            give(home, name, value)
    for value in bad:
        said = give(home, name, value).splitlines()[-1]
        assert place(name) in said, said
        assert "must be" in said
        assert "Traceback" not in said
    assert not home.out.exists()


KEYS = {"model": "model", "name": "called"}
"""Setting that names a model -> its key in a study."""


@pytest.mark.parametrize("name", KEYS)
def test_a_key_is_no_name(lab: Lab, name: str) -> None:
    """It is refused at every door, and no message shows it."""
    key = "sk-proj-AbC0123456789defghij"
    given: dict[str, Any] = {"model": "tiny", "base_url": "http://127.0.0.1:9/v1"} | {name: key}
    options = [part for one in given.items() for part in (f"--{one[0].replace('_', '-')}", one[1])]
    done = lab.bench("run", "--task", lab.plain, "--out", lab.out, *options)
    done.one_line(2, "has a key in it, which would be written to files")
    model = {"name": given["model"]} | ({} if name == "model" else {KEYS[name]: key})
    study = {"name": "s", "title": "S", "models": [model], "tasks": [str(lab.plain)]}
    (lab.folder / "s.yaml").write_text(json.dumps(study))
    of_study = lab.bench("run", lab.folder / "s.yaml", "--trust", "--out", lab.out)
    assert of_study.code != 0
    assert "has a key in it" in of_study.err
    errors = (eyechart.EyechartError, SetupError)
    with pytest.raises(errors, match="has a key in it") as caught:
        eyechart.run(lab.plain, given.pop("model"), out=lab.out, **given)
    assert key not in done.err + done.out + of_study.err + of_study.out + str(caught.value)
    assert not lab.out.exists()


def test_what_is_tested_is_all_there_is() -> None:
    """Each number that a setting can be has values of both kinds."""
    assert set(NUMBERS) == set(BOUNDS)
    for name, (good, bad) in NUMBERS.items():
        assert all(map(BOUNDS[name].allows, good))
        assert not any(map(BOUNDS[name].allows, bad))


@pytest.mark.parametrize("given", [True, None, "5", b"5", [5], 10**5000, object()], ids=type)
def test_what_is_no_number(given: object) -> None:
    """Neither a switch nor a number that no float holds; the message stays short."""
    for bound in (NumberRange(0, is_whole=False), NumberRange(0, 9)):
        with pytest.raises(ValueError, match=r"^must be ") as caught:
            bound(given)
        assert len(str(caught.value)) < 150


def test_a_value_is_shown_shortened() -> None:
    """As Python writes it."""
    assert (shown(0.25), shown("x"), shown(5)) == ("0.25", "'x'", "5")
    assert len(shown("x" * 1000)) == 60


@pytest.mark.parametrize(("name", "value"), [("temperature", -1.0), ("seed", -5)])
def test_a_run_of_an_earlier_version_can_be_read(lab: Lab, name: str, value: float) -> None:
    """Where it was asked with a number that no run can have any more."""
    lab.bench_run("--model", lab.model("Final answer: 2"), task=lab.plain)
    path = lab.the_run() / MANIFEST
    manifest = json.loads(path.read_text())
    manifest["settings"][name] = value
    manifest["run"] = ""  # as of the same settings
    path.write_text(json.dumps(manifest))
    assert list(eyechart.list_runs(lab.out)["answered"]) == [3]
    assert lab.bench("score", lab.the_run()).code == 0


JUDGED: dict[str, tuple[list[Any], list[Any]]] = {
    "threshold": ([0.02, 0.995], [0, 0.01, 1, 85, math.nan, math.inf]),
    "near": ([0, 0.99], [-0.01, 1, 5, math.nan]),
    "margin": ([0.001, 0.999], [0, -1, 1, 5, math.nan]),
}
"""Numbers that each setting of judging takes, and that it refuses."""


@pytest.fixture
def runs(lab: Lab) -> list[str]:
    """Folders of two runs."""
    lab.monkeypatch.chdir(lab.folder)
    command = ("run", "--task", "counting/ones", "--lengths", "5,9", "--samples", "4")
    assert lab.bench(*command, "--model", "oracle:50,oracle:7").code == 0
    return sorted(str(one) for one in Path("results").glob("runs/oracle/*/counting/*"))


@pytest.mark.parametrize("name", JUDGED)
def test_every_door_has_the_same_bounds_of_judging(lab: Lab, runs: list[str], name: str) -> None:
    """Command line, environment, file and Python."""
    option = name
    verb = ["compare", *runs] if name == "margin" else ["score", runs[0]]
    file, variable = Path("bench.toml"), f"EYECHART_{option.upper()}"

    def python(value: float) -> None:
        if name == "margin":
            eyechart.compare(*runs, margin=value)
        else:
            given: dict[str, Any] = {name: value}
            eyechart.load_run(runs[0], **given)

    good, bad = JUDGED[name]
    for value in good:
        assert lab.bench(*verb, f"--{option}={value}").code == 0
        python(value)
    for value in bad:
        lab.bench(*verb, f"--{option}={value}").one_line(2, f"--{option} must be a number from")
        with pytest.raises(eyechart.EyechartError, match=f"^{name} must be a number from"):
            python(value)
        file.write_text(f"{option} = {value}\n")
        lab.bench(*verb).one_line(2, f"bench.toml:1: {option} must be a number from")
        file.unlink()
        lab.monkeypatch.setenv(variable, str(value))
        lab.bench(*verb).one_line(2, f"{variable}: {option} must be a number from")
        lab.monkeypatch.delenv(variable)


def test_a_file_sets_how_a_project_judges(lab: Lab, runs: list[str]) -> None:
    """`threshold` and `near` reach the tables, `margin` the verdict."""
    Path("bench.toml").write_text("threshold = 0.5\nnear = 0.1\nmargin = 0.2\n")
    done = lab.bench("score", runs[0])
    assert "bench.toml: --threshold 0.5 --near 0.1" in done.err
    with (Path(runs[0]) / "effective_length.csv").open() as file_of_run:
        row, *_ = csv.DictReader(file_of_run)
    assert (row["threshold"], row["near"]) == ("0.5", "0.1")
    document = json.loads(lab.bench("compare", *runs, "--json").out)
    assert (document["threshold"], document["near"], document["margin"]) == (0.5, 0.1, 0.2)
    assert lab.bench("score", runs[0], "--near", "0.3").code == 0
    assert ",0.3," in (Path(runs[0]) / "effective_length.csv").read_text()


def test_every_door_judges_as_the_file_says(lab: Lab, runs: list[str]) -> None:
    """A run, a study, `score`, `leaderboard` and Python give the same numbers under the settings of
    `bench.toml`.
    """
    given: dict[str, Any] = {"threshold": 0.6, "near": 0.2}
    Path("bench.toml").write_text("".join(f"{name} = {one}\n" for name, one in given.items()))
    wanted = eyechart.load_run(runs[0], **given).conditions
    usual = eyechart.load_run(runs[0]).conditions
    names = ["effective_length", "effective_length_ci_low", "near_length", *given]
    assert not (wanted[names].equals(usual[names]))
    folder = Path(runs[0])
    model = f"oracle:{folder.parts[-3]}"
    study = {"name": "s", "title": "S", "models": [model], "tasks": ["counting/ones"]}
    Path("s.yaml").write_text(json.dumps(study | {"lengths": [5, 9], "samples": 4}))
    asking = ("run", "--task", "counting/ones", "--lengths", "5,9", "--samples", "4")

    def rows(*command: str | Path) -> list[dict[str, Any]]:
        """The rows of results in the JSON that a command prints."""
        document = json.loads(lab.bench(*command, "--json").out)
        ranked = document.get("rows") or document.get("leaderboard", {}).get("rows")
        return list(ranked or document["runs"][0]["conditions"])

    expected = json.loads(wanted[names].astype(object).to_json(orient="records"))
    for command in (
        *((*asking, "--model", model), ("run", "s.yaml"), ("score", folder)),
        ("leaderboard", folder, "-o", "board.csv"),
    ):
        found = [{name: row[name] for name in names} for row in rows(*command)]
        assert found == expected, command
        kept = csv.DictReader((folder / "effective_length.csv").read_text().splitlines())
        assert {row["near"] for row in kept} == {"0.2"}, command
    said = lab.bench("leaderboard", runs[1], "-o", "board.csv", "--near", "0.3")
    assert "near is 0.3, and 0.2 elsewhere" in said.err


def test_an_adaptive_run_looks_for_the_threshold_that_it_is_judged_by(lab: Lab) -> None:
    """What it says at its end is about the length of its table."""
    lab.monkeypatch.chdir(lab.folder)
    Path("bench.toml").write_text("threshold = 0.6\n")
    command = ("run", "--task", "counting/ones", "--model", "oracle:50", "--adaptive")
    done = lab.bench(*command, "--max-requests", "80")
    assert "right to (60 %)" in done.out
    assert json.loads(lab.bench(*command, "--dry-run", "--json").out)["runs"]


def test_types_of_python_are_the_settings() -> None:
    """A type checker knows each of them, of the same kind as the command line."""
    assert set(RunJudgingArguments.__annotations__) == {*OF_RUNS}
    assert set(JudgingArguments.__annotations__) == {*judging.JUDGED}
    assert set(PairJudgingArguments.__annotations__) == {*JUDGING} - {"fail_if"}


def test_python_compares_at_a_threshold(lab: Lab, runs: list[str]) -> None:  # noqa: ARG001
    """That of the first run, unless another is given."""
    assert eyechart.compare(*runs).comparison.threshold == 0.85
    assert eyechart.compare(*runs, threshold=0.5).comparison.threshold == 0.5
    loaded = eyechart.load_run(runs[0], threshold=0.6)
    assert eyechart.compare(loaded, runs[1]).comparison.threshold == 0.6
