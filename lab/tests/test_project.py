"""The laboratory as a distribution of its own: types, imports, and what its wheel has."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import tomllib
import zipfile
from collections.abc import Iterator
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
from tests.test_project import ROOT, _imported, _run

LAB = ROOT / "lab"
INNER = {
    *("analysis.comparison.paired_curves", "analysis.length.curve", "analysis.length.fit"),
    *("analysis.length.interval", "analysis.order.apart"),
    *("analysis.samples.judged_run", "analysis.tables.results"),
    *("cli.outputs", "face.options.run_options", "face.options.trust"),
    *("plan.forced_choice", "plan.request"),
    *(f"journal.{one}" for one in ("files", "manifest", "record", "software")),
    *("report.page.page", "run.limits"),
    *("settings.figure", "settings.judging", "settings.spelling"),
    *("spec.answer", "spec.columns", "spec.duration", "study.reading", "study.spec"),
    *("task.files", "task.problems", "task.source"),
}
"""Modules of `eyechart.harness` that the laboratory imports though they are no public ones."""
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


def test_it_imports_public_modules_and_no_more_inner_ones() -> None:
    """Public is what docs/plugins.md lists; an inner module that is not needed leaves `INNER`."""
    chapter = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    section = chapter.partition("## Modules that a package imports\n")[2].partition("\n## ")[0]
    public = set(re.findall(r"`(eyechart[\w.]*)`", section))
    assert all(_is_module(name) for name in public)
    imported = {
        name
        for path in (LAB / "src").rglob("*.py")
        for name in _modules(path)
        if name.partition(".")[0] == "eyechart" and not name.startswith("eyechart.providers")
    }
    assert imported - public == {f"eyechart.harness.{name}" for name in INNER}


def _modules(path: Path) -> Iterator[str]:
    """The modules that a file imports, also those that are imported from their package."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{one.name}" for one in node.names]
            yield from [name for name in inner if _is_module(name)] or [node.module]


def _is_module(name: str) -> bool:
    place = ROOT / name.replace("eyechart.harness", "harness").replace(".", "/")
    return place.is_dir() or place.with_suffix(".py").is_file()


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
