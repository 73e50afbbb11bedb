"""The house: which package may import which, no circles, and what a quick command loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from eyechart.harness.spec import TaskSpec
from eyechart.harness.task.catalogue import built_in_files
from eyechart.harness.task.source import parse
from eyechart.providers.plugins.plugins import ENGINES, TRACKERS, VERBS

ROOT = Path(__file__).parents[1]
FACE = "eyechart."
OURS = ("eyechart", "harness", "providers")
SOURCES = ("examples", "eyechart", "harness", "providers", "results", "tasks", "tests")
"""Folders whose files import ours."""
LEAVES = (
    "harness.errors",
    "harness.score.loops",
    "harness.score.markup",
    "harness.score.outcomes",
    "harness.settings",
    "harness.spec",
    "providers.close_match",
    "providers.naming",
)
"""What all packages may import."""
ARROWS = {
    "harness.spec": [
        *("harness.score", "harness.score.outcomes", "harness.settings"),
        *("providers", "providers.close_match"),
    ],
    "harness.errors": ["providers.naming"],
    "harness.settings": ["harness.errors", "providers", "providers.naming"],
    "harness.score": [],
    "harness.score.loops": [],
    "harness.score.markup": [],
    "harness.score.outcomes": [],
    "harness.task": ["providers"],
    "harness.plan": ["harness.task", "harness.score", "providers"],
    "harness.journal": ["providers"],
    "harness.run": ["harness.plan", "harness.journal", "harness.task", "providers"],
    "harness.analysis": ["harness.journal", "harness.score", "harness.plan", "harness.task"],
    "harness.report": ["harness.analysis", "harness.journal"],
    "harness.study": ["harness.task"],
    "harness.face": [
        *("harness.study", "harness.task", "harness.plan", "harness.journal", "harness.run"),
        *("harness.analysis", "harness.report", "providers"),
    ],
    "harness.cli": [
        *("harness.task", "harness.plan", "harness.journal", "harness.run", "harness.study"),
        *("harness.analysis", "harness.report", "harness.face", "providers"),
    ],
    "harness": ["harness.cli"],  # `python -m eyechart.harness`
}
"""Room of the core -> what it may import besides itself and the leaves. Nothing else is allowed;
`providers` never imports `harness`. A satellite may import all of the core. Nothing imports a
satellite, not even another one: it joins by an entry point."""
SATELLITES = "harness.satellites"
SEAM = (
    "providers.base",
    "providers.plugins.contract",
    "providers.plugins.plugins",
    "providers.secrets",
)
"""Modules of the providers that what neither asks nor plans may import: `journal`, `task`."""
SELF_PROOF = ("harness.plan.proof", "harness.score")
"""The one module of `plan` that judges, and what with."""
PUBLIC_ROOMS = (
    *("harness.analysis", "harness.face.options", "harness.journal", "harness.plan"),
    "harness.study",
)
"""Packages of the core with names for packages of others, in `__all__`."""
HEAVY = ("pandas", "openai", "aiohttp", "numpy", "asyncio", "altair")
SAYS_LOADED = f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules that the file imports anywhere, also inside functions or for types only; ours without
    `eyechart.` before them.
    """
    return frozenset(_imports(path))


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """The module of a file and all its statements. Expressions are left out, since no import and
    no class is one.
    """
    found: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    for node in found:
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            found += getattr(node, name, ())
    return tuple(found)


def _imports(path: Path) -> Iterator[str]:
    package = ".".join(path.parent.parts).removeprefix(".".join([*ROOT.parts, ""]))
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (name.name.removeprefix(FACE) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 or package == "harness.score", f"{path}:{node.lineno}: relative"
            module = ".".join(filter(None, [package if node.level else "", node.module]))
            module = module.removeprefix(FACE)
            yield module
            yield from (f"{module}.{name.name}" for name in node.names)


@cache
def modules() -> dict[str, Path]:
    """Name -> file of every module that is installed."""
    files = {}
    for package in ("harness", "providers"):
        for path in (ROOT / package).rglob("*.py"):
            if "embedded" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert len(files) > 100
    return files


@cache
def imported(module: str) -> frozenset[str]:
    """Modules of ours that `module` imports."""
    known = modules()
    names = imports(known[module])
    parents = {name.rpartition(".")[0] for name in names if name in known}
    return frozenset(name for name in names if name in known and name not in parents) - {module}


def package_of(module: str) -> str:
    """The room of a module: an entry of `ARROWS`, `providers`, a satellite, or a leaf."""
    if module in LEAVES:
        return module
    parts = module.split(".")
    if parts[0] == "providers":
        return "providers"
    top = ".".join(parts[: 3 if parts[1:2] == ["satellites"] else 2])
    return "harness" if top == "harness.__main__" else top


def is_satellite(module: str) -> bool:
    """Whether a module joins by an entry point."""
    return module.startswith(SATELLITES)


@cache
def reaches(start: str) -> set[str]:
    """Modules of ours that importing `start` may bring in, near and far."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += imported(name)
    return found


def loaded(code: str) -> str:
    """What `code` prints in a new interpreter, last line only."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("package", ARROWS)
def test_arrows(package: str) -> None:
    """A package imports what the table allows, and all that it allows."""
    allowed = {package, *ARROWS[package]} | (set() if package in LEAVES else set(LEAVES))
    mine = [name for name in modules() if package_of(name) == package]
    assert mine
    wrong = {
        f"{name} -> {other}"
        for name in mine
        for other in imported(name)
        if package_of(other) not in allowed
    }
    assert wrong == set()
    used = {package_of(other) for name in mine for other in imported(name)}
    assert set(ARROWS[package]) <= used, "the table allows what nobody needs"


def test_ours_are_imported_by_their_installed_names() -> None:
    """`import harness` finds a second copy in a checkout, and nothing elsewhere."""
    wrong = re.compile(r"^\s*(?:from|import) (?:harness|providers)\b", re.MULTILINE)
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []


def test_every_module_has_its_place() -> None:
    """No module stands beside the packages but those of the table."""
    packages = {
        package_of(name)
        for name in modules()
        if name.startswith("harness") and not is_satellite(name)
    }
    assert packages == set(ARROWS)


def test_a_satellite_is_imported_by_nothing_else() -> None:
    """Neither by the core, nor by the providers, nor by another satellite."""
    wrong = {
        f"{name} -> {other}"
        for name in modules()
        for other in imported(name)
        if is_satellite(other) and package_of(name) != package_of(other)
    }
    assert wrong == set()
    assert {package_of(name) for name in modules() if is_satellite(name)} > {SATELLITES}


def test_the_laboratory_joins_by_entry_points_alone() -> None:
    """It imports the core; nothing of the core, and no test of it, imports the laboratory."""
    files = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")]
    named = [path for path in files if "eyechart_lab" in path.read_text(encoding="utf-8")]
    theirs = {path for path in named if "eyechart_lab" in _tops(path)}
    assert theirs == set(), "move it to lab/"
    assert any(
        {name for name in imports(path) if name.startswith("eyechart_lab.")}
        for path in (ROOT / "lab").rglob("*.py")
    ), "the check finds what is there"


@cache
def public_modules() -> frozenset[str]:
    """The modules that docs/plugins.md lists for packages."""
    chapter = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    section = chapter.partition("## Modules that a package imports\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return frozenset(re.findall(r"`eyechart\.?([\w.]*)`", "".join(rows)))


def not_public(files: Iterable[Path]) -> set[str]:
    """What files import of ours and packages should not: a module that is not listed, or a name
    that a room does not have in `__all__`.
    """
    known = modules()
    found = set()
    for path in files:
        names = {name for name in imports(path) if name.startswith("harness.")}
        for name in names - {name.rpartition(".")[0] for name in names if name in known}:
            module, _, attribute = name.rpartition(".")
            is_public = name in public_modules() or name not in known
            if module in PUBLIC_ROOMS and name not in known:
                is_public = attribute in import_module(f"{FACE}{module}").__all__
            found |= set() if is_public else {name}
    return found


def test_the_chapter_lists_modules_that_are_there() -> None:
    """For all packages that join; the rooms among them say what is public of them."""
    assert {*PUBLIC_ROOMS} < public_modules()
    ours = {name for name in public_modules() if name.startswith("harness.")}
    assert ours <= set(modules())


def test_an_example_imports_public_modules_alone(tmp_path: Path) -> None:
    """So do packages of others; the check finds what is inside."""
    assert not_public((ROOT / "examples").rglob("*.py")) == set()
    wrong = {
        "from eyechart.harness.analysis import Fit": "harness.analysis.Fit",
        "from eyechart.harness.plan import cost": "harness.plan.cost",
        "import eyechart.harness.run.pool": "harness.run.pool",
        "from eyechart.harness.run.limits import RunLimits": "harness.run.limits",
    }
    for number, (line, said) in enumerate(wrong.items()):
        path = tmp_path / f"{number}.py"
        path.write_text(line)
        assert not_public([path]) == {said}


def test_entry_points_name_what_is_there() -> None:
    """Each of ours names an object of a satellite."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {VERBS, ENGINES, TRACKERS}
    assert groups < set(project["entry-points"])
    for group in groups:
        for name, value in project["entry-points"][group].items():
            module, _, attribute = value.removeprefix(FACE).partition(":")
            assert is_satellite(module), name
            tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
            found = {getattr(node, "name", None) for node in tree.body}
            for node in tree.body:
                if isinstance(node, ast.Assign):
                    found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            assert attribute in found, value


def test_journal_and_task_use_the_seam_of_the_providers_only() -> None:
    """They keep keys out of files and find plugins; they know no provider."""
    wrong = {
        f"{name} -> {other}"
        for name in modules()
        if package_of(name) in {"harness.journal", "harness.task"}
        for other in imported(name)
        if package_of(other) == "providers" and other not in SEAM
    }
    assert wrong == set()


def test_providers_never_import_the_harness() -> None:
    """The arrow points from the harness to the providers."""
    wrong = {
        f"{name} -> {other}"
        for name in modules()
        if name.startswith("providers")
        for other in imported(name)
        if other.startswith("harness")
    }
    assert wrong == set()


def test_nothing_imports_the_face() -> None:
    """`eyechart` is for users: no module of the harness or of the providers needs it."""
    faces = {name for name, path in modules().items() if {"eyechart"} & _tops(path)}
    assert faces == set()


def _tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def test_only_the_self_proof_of_a_plan_judges() -> None:
    """Counting, pricing and asking never look at what is right."""
    proof, score = SELF_PROOF
    judges = {
        name
        for name in modules()
        if package_of(name) == "harness.plan"
        and any(other.startswith(score) for other in imported(name))
    }
    assert judges == {proof}


def test_no_circles() -> None:
    """No module imports one that, near or far, imports it."""
    circles = {
        name for name in modules() if any(name in reaches(other) for other in imported(name))
    }
    assert circles == set()


def test_quick_commands_load_nothing_heavy() -> None:
    """Help and lists come without the packages in `HEAVY`."""
    code = "import sys\nfrom eyechart.harness.cli import main\n"
    for words in ("--help", "run --help", "export --help", "tasks", "models", "runs"):
        code += (
            f"sys.argv = {['bench', *words.split()]!r}\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
            f"assert not set({HEAVY!r}) & set(sys.modules), sys.argv\n"
        )
    assert loaded(code + SAYS_LOADED) == "[]"


def test_light_modules_load_nothing_heavy() -> None:
    """Importing them is all that a quick command pays."""
    code = "import sys\n"
    for name in ("harness.cli.app", "harness", "providers", "providers.registry.registry"):
        code += f"import {FACE}{name}\nassert not set({HEAVY!r}) & set(sys.modules), {name!r}\n"
    assert loaded(code + SAYS_LOADED) == "[]"


def test_the_check_for_heavy_modules_can_fail() -> None:
    """It finds one that is there."""
    found = loaded(f"import sys\nimport eyechart.harness.analysis.tables.tables\n{SAYS_LOADED}")
    assert found == "['asyncio', 'numpy', 'pandas']"


@pytest.mark.parametrize("name", sorted(built_in_files()))
def test_a_generator_knows_only_the_item(name: str) -> None:
    """A task's generator imports nothing of ours but `Item`."""
    file = built_in_files()[name]
    spec = TaskSpec.model_validate(parse(file.read_text(encoding="utf-8")).data)
    assert spec.generator is not None
    generator = file.parent / spec.generator.partition(":")[0]
    ours = {one for one in imports(generator) if one.partition(".")[0] in OURS}
    assert ours == {"eyechart", "eyechart.Item"}


def test_judging_reaches_nothing_else() -> None:
    """A copy of `score/` alone judges; see the export to lm-eval."""
    for name in modules():
        if package_of(name) == "harness.score":
            assert all(f"{other}.".startswith("harness.score.") for other in reaches(name))


@pytest.mark.parametrize(
    ("start", "never"),
    [
        (
            "harness.run",
            ("harness.score.judge", "harness.analysis", "harness.cli"),
        ),
        (
            "harness.analysis",
            ("harness.run", "harness.cli", "providers.registry.registry"),
        ),
        ("harness.report", ("harness.run", "harness.cli")),
    ],
)
def test_what_is_never_reached(start: str, never: tuple[str, ...]) -> None:
    """Neither directly nor through what is imported."""
    for name in modules():
        if package_of(name) == start:
            assert {one for one in reaches(name) if {one, package_of(one)} & {*never}} == set()


def test_a_public_class_name_is_used_once() -> None:
    """One word, one thing, in the core and in the laboratory."""
    files = [
        path for folder in (*OURS, "lab/src") for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    names = Counter(
        node.name
        for path in {path.resolve() for path in files}
        for node in statements(path)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert len(names) > 100
    assert [name for name, times in names.items() if times > 1] == []


def test_the_walk_goes_far() -> None:
    """From a verb one comes to the provider's seam by way of the runner."""
    assert {"harness.run.pool", "providers.base"} <= reaches("harness.cli.verbs.run")


def test_only_what_inspect_itself_loads_imports_inspect() -> None:
    """Two modules do, and nothing of ours but they themselves imports them. The reader of its
    logs imports it when there is a log to read.
    """
    names = ("scores", "tasks")
    theirs = {f"harness.satellites.export.inspect_ai.{name}" for name in names}
    theirs_and_reader = {*theirs, "harness.satellites.recorded.inspect_log"}
    for name, path in modules().items():
        wants = {one for one in imports(path) if one.partition(".")[0] == "inspect_ai"}
        assert bool(wants) == (name in theirs_and_reader), name
        assert name in theirs or not imported(name) & theirs, name


def test_only_what_is_exported_imports_verifiers() -> None:
    """One file does, which nothing of ours imports: it is copied into the exported package."""
    copied = "harness.satellites.export.verifiers.taskset"
    for name, path in modules().items():
        wants = {one for one in imports(path) if one.partition(".")[0] == "verifiers"}
        assert bool(wants) == (name == copied), name
        assert copied not in imported(name), name


def test_the_house_is_drawn_the_same_everywhere() -> None:
    """CONTRIBUTING draws every package; README has the lines of the top level."""
    short, long = (
        re.findall(r"(?:^    .*\n)*^    tasks/ .*\n(?:^    .*\n)+", text, re.MULTILINE)
        for text in ((ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md"))
    )
    assert len(short) == len(long) == 1
    assert short == ["".join(re.findall(r"^    \S.*\n", long[0], re.MULTILINE))]
    drawn = set(re.findall(r"^      (\w+)(?:/|\.py) ", long[0], re.MULTILINE))
    packages = {name.removeprefix("harness.") for name in ARROWS if name != "harness"}
    assert {name.partition(".")[0] for name in packages} <= drawn
