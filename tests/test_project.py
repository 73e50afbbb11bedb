"""The project as a whole: format, lint, types, and a wheel that works elsewhere."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_imports import statements

ROOT = Path(__file__).parent.parent


def _run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_code_is_formatted_and_linted() -> None:
    """Ruff has nothing to say."""
    _run("-m", "ruff", "format", "--check", ".")
    _run("-m", "ruff", "check", ".")


@pytest.mark.longest
def test_types_are_strict() -> None:
    """Mypy's strict mode has nothing to say about packages, tasks and tests."""
    _run("-m", "mypy", "eyechart", "examples", "results", "tests", "tasks")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    _run("-m", "build", "--no-isolation", "--outdir", str(folder))
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.published
def test_wheel_holds_one_package(wheel: Path) -> None:
    """Its top level is one typed package, with tasks, weights and published figures inside."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {"eyechart"}
    assert {
        "eyechart/py.typed",
        "eyechart/tasks/counting/ones.yaml",
        "eyechart/providers/tiny/model/model.safetensors",
        "eyechart/reported/barbero2024_copying.csv",
    } <= set(names)
    assert not [name for name in names if "/training/" in name]


@pytest.mark.published
def test_wheel_runs_elsewhere(wheel: Path, tmp_path: Path) -> None:
    """Installed away from the repository, `bench run` finds its tasks and its model."""
    site = tmp_path / "site"
    _run("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("harness", "providers", "tasks"):  # of the user's own
        (elsewhere / name).mkdir()
        (elsewhere / name / "__init__.py").write_text("raise ImportError\n")
    script = (
        "import eyechart, sys; from eyechart.harness.cli.app import main; "
        f"assert eyechart.__file__.startswith({str(site)!r}), eyechart.__file__; "
        "sys.argv = ['bench', 'run', '--task', 'counting/ones', '--model', 'tiny', "
        "'--lengths', '5', '--samples', '2']; main()"
    )
    said = _run("-c", script, cwd=elsewhere, env={"PYTHONPATH": str(site)})
    assert "counting/ones" in said
    assert list((elsewhere / "results" / "runs" / "tiny").rglob("table.csv"))


def test_the_base_install_needs_neither_scipy_nor_torch() -> None:
    """No package of the base install requires them, and no installed module imports SciPy."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required: set[str] = set()
    pending = list(map(Requirement, project["dependencies"]))
    while pending:
        requirement = pending.pop()
        marker, name = requirement.marker, canonicalize_name(requirement.name)
        extras = ("", *requirement.extras)
        if name in required or (marker and not any(marker.evaluate({"extra": e}) for e in extras)):
            continue
        required.add(name)
        pending += map(Requirement, importlib.metadata.requires(name) or ())
    assert {"numpy", "pandas", "narwhals", "jiter"} < required  # those of packages as well
    assert not {"scipy", "torch"} & required
    files = [
        path
        for folder in ("eyechart", "harness", "providers")
        for path in (ROOT / folder).rglob("*.py")
    ]
    assert [path for path in files if "scipy" in path.read_text(encoding="utf-8")] == []


def test_nothing_in_the_repository_is_large() -> None:
    """The embedded model stays below 8 MB."""
    model = ROOT / "providers" / "tiny" / "model"
    assert sum(path.stat().st_size for path in model.iterdir()) < 8_000_000


def test_every_import_is_declared() -> None:
    """What the packages import is a dependency of the project, or of one of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        canonicalize_name(Requirement(requirement).name)
        for requirements in (project["dependencies"], *project["optional-dependencies"].values())
        for requirement in requirements
    }
    distributions = importlib.metadata.packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("eyechart", "harness", "providers")
        for path in (ROOT / folder).rglob("*.py")
        for name in _imported(path)
        if name in distributions and not set(map(canonicalize_name, distributions[name])) & declared
    }
    # with what is declared
    come_along = ("click", "datasets", "markupsafe", "pyarrow", "pydantic_core")
    assert {entry for entry in undeclared if not entry.endswith(come_along)} == set()


def _imported(path: Path) -> set[str]:
    """Top-level names of the packages that a file imports, ours and Python's own left out."""
    names = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    tops = {name.partition(".")[0] for name in names}
    return tops - set(sys.stdlib_module_names) - {"eyechart"}


def test_what_is_left_out_by_default_is_run_by_ci() -> None:
    """Each marker of tests that `pytest` alone leaves out is asked for by a script of `.ci`."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    left_out = {
        name
        for option in settings["addopts"]
        if option.startswith("-m")
        for name in re.findall(r"not (\w+)", option)
    }
    scripts = "".join(path.read_text(encoding="utf-8") for path in (ROOT / ".ci").iterdir())
    assert left_out == {"browser", "published"}
    assert left_out == set(re.findall(r"pytest -q -m (\w+)", scripts))
