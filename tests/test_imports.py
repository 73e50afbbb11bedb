"""What loads what: `bench --help` is quick, and the arrows between packages point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import cli
from harness.library import built_in_files
from harness.spec import TaskSpec
from harness.yamlfile import parse

ROOT = Path(cli.__file__).parents[1]
HEAVY = ("pandas", "openai", "aiohttp", "numpy")
SAYS_LOADED = f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"


def imports(path: Path) -> Iterator[str]:
    """Modules that the file imports anywhere, also inside functions or for types only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield node.module or ""
            yield from (f"{node.module}.{name.name}" for name in node.names)


def ours(path: Path) -> set[str]:
    """Modules of this project that the file imports."""
    return {name for name in imports(path) if name.partition(".")[0] in ("harness", "providers")}


def modules(package: str) -> list[Path]:
    """The package's files that are installed."""
    found = [path for path in (ROOT / package).rglob("*.py") if "training" not in path.parts]
    assert len(found) > 3
    return found


def reaches(start: str) -> set[str]:
    """Modules of ours that importing `start` may bring in, near and far."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for package in ("harness", "providers")
        for path in modules(package)
    }
    found: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name in files and name not in found:
            found.add(name)
            ahead += ours(files[name])
    return found


def loaded(code: str) -> str:
    """What `code` prints in a new interpreter, last line only."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["export", "--help"], ["tasks"], ["models"]],
    ids=str,
)
def test_quick_commands_load_nothing_heavy(arguments: list[str]) -> None:
    """Help and lists come without pandas, numpy, openai and aiohttp."""
    code = (
        "import sys\nfrom harness.cli import main\n"
        f"sys.argv = {['bench', *arguments]!r}\n"
        f"try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n{SAYS_LOADED}"
    )
    assert loaded(code) == "[]"


@pytest.mark.parametrize("name", ["harness.cli", "harness", "providers", "providers.registry"])
def test_light_modules_load_nothing_heavy(name: str) -> None:
    """Importing them is all that a quick command pays."""
    assert loaded(f"import sys\nimport {name}\n{SAYS_LOADED}") == "[]"


def test_the_check_for_heavy_modules_can_fail() -> None:
    """It finds one that is there."""
    assert loaded(f"import sys\nimport harness.tables\n{SAYS_LOADED}") == "['numpy', 'pandas']"


@pytest.mark.parametrize("path", modules("providers"), ids=lambda path: path.name)
def test_providers_never_import_the_harness(path: Path) -> None:
    """The arrow points from the harness to the providers."""
    assert not {name for name in ours(path) if name.startswith("harness")}


@pytest.mark.parametrize("path", modules("harness"), ids=lambda path: path.name)
def test_the_harness_knows_the_seam_and_not_who_is_behind_it(path: Path) -> None:
    """The seam, the registry, what is known of models and keys, how a prompt is put as a text and
    what a rejection means; the providers come by name.
    """
    known = {name for name in ours(path) if name.startswith("providers.")}
    assert {".".join(name.split(".")[:2]) for name in known} <= {
        "providers.base",
        "providers.documents",
        "providers.http_errors",
        "providers.model_facts",
        "providers.registry",
        "providers.secrets",
    }


@pytest.mark.parametrize("name", sorted(built_in_files()))
def test_a_generator_knows_only_the_item(name: str) -> None:
    """A task's generator imports nothing of ours but `harness.spec`."""
    file = built_in_files()[name]
    spec = TaskSpec.model_validate(parse(file.read_text(encoding="utf-8")).data)
    assert spec.generator is not None
    generator = file.parent / spec.generator.partition(":")[0]
    assert {name for name in ours(generator) if not name.startswith("harness.spec")} == set()
    assert ours(generator)


@pytest.mark.parametrize("start", ["harness.extract", "harness.score", "harness.stats"])
def test_judging_never_reaches_the_runner(start: str) -> None:
    """Neither itself nor through what it imports; nor a provider or the journal."""
    assert start in reaches(start)
    assert not reaches(start) & {
        *("harness.runner", "harness.session", "harness.verbs", "harness.journal"),
        *("providers.base", "providers.registry"),
    }


def test_tables_never_reach_the_runner() -> None:
    """A table is a function of the journal, not of a run in progress."""
    reached = reaches("harness.tables")
    assert {"harness.journal", "harness.score", "harness.stats"} <= reached
    assert not reached & {"harness.runner", "harness.session", "harness.verbs", "providers.base"}


def test_the_runner_never_reaches_judging() -> None:
    """It does not know what a right answer is."""
    assert not reaches("harness.runner") & {"harness.score", "harness.extract", "harness.tables"}


def test_the_walk_goes_far() -> None:
    """From the session one comes to the provider's seam by way of the runner."""
    assert {"harness.runner", "providers.base"} <= reaches("harness.session")


def test_only_what_inspect_itself_loads_imports_inspect() -> None:
    """Two modules do, and nothing of ours but they themselves imports them."""
    theirs = {"harness.inspect_scores", "harness.inspect_tasks"}
    for path in [*modules("harness"), *modules("providers")]:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        wants = {one for one in imports(path) if one.partition(".")[0] == "inspect_ai"}
        assert bool(wants) == (name in theirs), name
        assert name in theirs or not ours(path) & theirs, name
