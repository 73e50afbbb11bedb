"""The laboratory as a distribution of its own: types, imports, and what its wheel has."""

from __future__ import annotations

import importlib.metadata
import shutil
import tomllib
import zipfile
from importlib import import_module
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eyechart.providers.plugins.plugins import (
    ARCHITECTURES,
    INSIDES,
    PANELS,
    PROVIDERS,
    VERBS,
    installed,
)
from tests.plugged import EXAMPLES
from tests.test_imports import FACE, PUBLIC_ROOMS, imports, not_public
from tests.test_project import ROOT, _imported, _run

LAB = ROOT / "lab"
PROJECT = tomllib.loads((LAB / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_types_are_strict() -> None:
    """Mypy's strict mode has nothing to say."""
    _run("-m", "mypy", "lab")


def test_every_import_is_declared() -> None:
    """It needs what the core needs, and what its extras name."""
    extras = [one for group in PROJECT["optional-dependencies"].values() for one in group]
    core = importlib.metadata.requires("eyechart") or ()
    declared = {
        canonicalize_name(Requirement(one).name)
        for one in (*PROJECT["dependencies"], *extras, *core)
    }
    of_import = importlib.metadata.packages_distributions()
    undeclared = {
        name
        for path in (LAB / "src").rglob("*.py")
        for name in _imported(path)
        if name in of_import and not {*map(canonicalize_name, of_import[name])} & declared
    }
    assert undeclared <= {
        "eyechart_lab",
        "markupsafe",
        "pydantic_core",
    }  # itself; with Jinja2; with pydantic


def test_it_imports_public_modules_alone() -> None:
    """The laboratory imports only modules that docs/plugins.md lists. Every public name of the
    core's rooms is used by the laboratory or by an example.
    """
    files = [*(LAB / "src").rglob("*.py")]
    assert not_public(files) == set()
    used = {name for path in [*files, *EXAMPLES.rglob("*.py")] for name in imports(path)}
    for room in PUBLIC_ROOMS:
        public = {f"{room}.{name}" for name in import_module(f"{FACE}{room}").__all__}
        assert public <= used, "made public for nobody"


def test_its_entry_points_are_found() -> None:
    """By the core, as those of any other distribution."""
    for group in (VERBS, PANELS, INSIDES, PROVIDERS, ARCHITECTURES):
        names = PROJECT["entry-points"][group]
        plugins = installed(group, ()).usable
        found = {name for name in plugins if plugins[name].distribution == PROJECT["name"]}
        assert found == {*names}


def test_its_wheel_has_its_package_alone(tmp_path: Path) -> None:
    """So that both distributions can be installed and removed apart."""
    copy = tmp_path / "lab"  # a build leaves its folder where it was made
    shutil.copytree(LAB, copy, ignore=shutil.ignore_patterns("build", "tests"))
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    _run(*build, "--wheel-dir", str(tmp_path), str(copy))
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in names} == {"eyechart_lab"}
    assert {"eyechart_lab/probe/engine.py", "eyechart_lab/variants/model.py"} <= set(names)
