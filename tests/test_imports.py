"""The house: which package may import which, no circles, and what a quick command loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from eyechart.harness.spec import TaskSpec
from eyechart.harness.task.catalogue import built_in_files
from eyechart.harness.task.source import parse

ROOT = Path(__file__).parents[1]
FACE = "eyechart."
OURS = ("eyechart", "harness", "providers")
SOURCES = ("examples", "eyechart", "harness", "providers", "results", "tasks", "tests")
"""Folders whose files import ours."""
LEAVES = (
    "harness.answer",
    "harness.bounds",
    "harness.columns",
    "harness.errors",
    "harness.exact_json",
    "harness.shard",
    "harness.spec",
)
"""Modules beside the packages that all of them may import."""
ARROWS = {
    "harness.spec": [
        "harness.answer",
        "harness.bounds",
        "harness.columns",
    ],
    "harness.answer": [],
    "harness.bounds": [],
    "harness.columns": [],
    "harness.errors": [],
    "harness.exact_json": [],
    "harness.shard": ["harness.errors"],
    "harness.score": [],
    "harness.task": ["providers.plugins"],
    "harness.plan": [
        "harness.task",
        "harness.score",
        "providers.base",
        "providers.catalog",
    ],
    "harness.journal": ["providers.plugins", "providers.secrets"],
    "harness.recorded": [  # rows of foreign files become a run's journal; nothing is asked
        *("harness.task", "harness.plan", "harness.journal"),
        *("providers.base", "providers.secrets"),
    ],
    "harness.run": [
        *("harness.plan", "harness.journal", "harness.task"),
        *(
            "providers.base",
            "providers.plugins",
            "providers.registry",
            "providers.secrets",
        ),
        "providers.vllm",
    ],
    "harness.analysis": [
        "harness.journal",
        "harness.score",
        "harness.plan",
        "harness.task",
    ],
    "harness.report": [
        "harness.analysis",
        "harness.journal",
        "harness.probe",
    ],
    "harness.study": ["harness.task"],
    "harness.face": [
        "harness.study",
        *(
            "harness.task",
            "harness.plan",
            "harness.journal",
            "harness.run",
            "harness.analysis",
        ),
        *(
            "providers.base",
            "providers.destinations",
            "providers.registry",
        ),
        "providers.secrets",
    ],
    "harness.export": [
        *(
            "harness.analysis",
            "harness.plan",
            "harness.task",
            "harness.score",
            "harness.journal",
        ),
        *(
            "providers.base",
            "providers.catalog",
            "providers.documents",
            "providers.http",
        ),
        "providers.secrets",
    ],
    "harness.probe": [  # a model's inside, on the samples of a plan
        *("harness.plan", "harness.task", "harness.journal"),
        *("providers.base", "providers.inside"),
    ],
    "harness.cli": [
        *(
            "harness.task",
            "harness.plan",
            "harness.journal",
            "harness.run",
        ),
        *(
            "harness.analysis",
            "harness.report",
            "harness.export",
            "harness.face",
        ),
        *("harness.recorded", "harness.probe", "harness.study"),
        *(
            "providers.base",
            "providers.catalog",
            "providers.plugins",
            "providers.registry",
        ),
        *("providers.inside", "providers.secrets"),
    ],
    "harness": ["harness.cli"],  # `python -m eyechart.harness`
}
"""Package or module -> what it may import besides itself and the leaves. Nothing else is allowed,
and `providers` never imports `harness`."""
SELF_PROOF = ("harness.plan.proof", "harness.score")
"""The one module of `plan` that judges, and what with."""
HEAVY = ("pandas", "openai", "aiohttp", "numpy")
SAYS_LOADED = f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"


def imports(path: Path) -> Iterator[str]:
    """Modules that the file imports anywhere, also inside functions or for types only; ours without
    `eyechart.` before them.
    """
    package = ".".join(path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
            if "training" not in path.parts:
                parts = path.relative_to(ROOT).with_suffix("").parts
                files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    assert len(files) > 100
    return files


@cache
def imported(module: str) -> frozenset[str]:
    """Modules of ours that `module` imports."""
    known = modules()
    names = set(imports(known[module]))
    parents = {name.rpartition(".")[0] for name in names if name in known}
    return frozenset(name for name in names if name in known and name not in parents) - {module}


def package_of(module: str) -> str:
    """The entry of `ARROWS` that a module of the harness belongs to; of providers, its package."""
    top = ".".join(module.split(".")[:2])
    return "harness" if top == "harness.__main__" else top


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
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
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
    packages = {package_of(name) for name in modules() if name.startswith("harness")}
    assert packages == set(ARROWS)


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


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["export", "--help"], ["tasks"], ["models"], ["runs"]],
    ids=str,
)
def test_quick_commands_load_nothing_heavy(arguments: list[str]) -> None:
    """Help and lists come without pandas, numpy, openai and aiohttp."""
    code = (
        "import sys\nfrom eyechart.harness.cli import main\n"
        f"sys.argv = {['bench', *arguments]!r}\n"
        f"try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n{SAYS_LOADED}"
    )
    assert loaded(code) == "[]"


@pytest.mark.parametrize("name", ["harness.cli.app", "harness", "providers", "providers.registry"])
def test_light_modules_load_nothing_heavy(name: str) -> None:
    """Importing them is all that a quick command pays."""
    assert loaded(f"import sys\nimport {FACE}{name}\n{SAYS_LOADED}") == "[]"


def test_the_check_for_heavy_modules_can_fail() -> None:
    """It finds one that is there."""
    found = loaded(f"import sys\nimport eyechart.harness.analysis.tables\n{SAYS_LOADED}")
    assert found == "['numpy', 'pandas']"


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
            assert all(package_of(other) == "harness.score" for other in reaches(name))


@pytest.mark.parametrize(
    ("start", "never"),
    [
        (
            "harness.run",
            ("harness.score", "harness.analysis", "harness.cli"),
        ),
        (
            "harness.analysis",
            ("harness.run", "harness.cli", "providers.registry"),
        ),
        ("harness.report", ("harness.run", "harness.cli")),
        (
            "harness.export",
            ("harness.run", "harness.report", "harness.cli"),
        ),
    ],
)
def test_what_is_never_reached(start: str, never: tuple[str, ...]) -> None:
    """Neither directly nor through what is imported."""
    for name in modules():
        if package_of(name) == start:
            assert {other for other in reaches(name) if package_of(other) in never} == set()


def test_the_walk_goes_far() -> None:
    """From the command one comes to the provider's seam by way of the runner."""
    assert {"harness.run.pool", "providers.base"} <= reaches("harness.cli.app")


def test_only_what_inspect_itself_loads_imports_inspect() -> None:
    """Three modules do, and nothing of ours but they themselves imports them. The reader of its
    logs imports it when there is a log to read.
    """
    names = ("scores", "tasks", "early_stopping")
    theirs = {f"harness.export.inspect_ai.{name}" for name in names}
    theirs_and_reader = {*theirs, "harness.recorded.inspect_log"}
    for name, path in modules().items():
        wants = {one for one in imports(path) if one.partition(".")[0] == "inspect_ai"}
        assert bool(wants) == (name in theirs_and_reader), name
        assert name in theirs or not imported(name) & theirs, name


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
    assert packages - drawn == {"columns", "exact_json"}
