"""Distributions that look installed: a `.dist-info` folder on `sys.path`, as pip leaves it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path` for distributions; what is imported from it is forgotten."""
    folder = tmp_path / "site"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    yield folder
    for name, module in list(sys.modules.items()):
        own = vars(module)  # some modules answer to every name
        places = (own.get("__file__"), *own.get("__path__", ()))
        if name not in before and any(str(place).startswith(str(folder)) for place in places):
            del sys.modules[name]


def plug(
    site: Path,
    name: str,
    entry_points: Mapping[str, Mapping[str, str]],
    *,
    version: str = "1.0",
    summary: str = "",
    files: Mapping[str, str] | None = None,
) -> None:
    """Puts a distribution with these entry points, group -> name -> value, and files into `site`,
    which is to be on `sys.path`.
    """
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    points = (
        f"[{group}]\n" + "".join(f"{point} = {value}\n" for point, value in of_group.items())
        for group, of_group in entry_points.items()
    )
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\n"
    more = {f"{info.name}/METADATA": metadata, f"{info.name}/entry_points.txt": "\n".join(points)}
    for file, text in (more | dict(files or {})).items():
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def plug_example(name: str, site: Path) -> list[str]:
    """Does so for a project in `examples/`; returns `sys.path` with it."""
    project = tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text())["project"]
    plug(
        site,
        project["name"],
        project["entry-points"],
        version=project["version"],
        summary=project["description"],
    )
    return [*sys.path, str(site), str(EXAMPLES / name)]
