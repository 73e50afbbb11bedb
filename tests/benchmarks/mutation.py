"""How many small errors in the code the tests notice: mutants, killed and survived.

    python tests/benchmarks/mutation.py [--sample 160] [--seed 0] [--package score] [--jobs 2]

A mutant is the code with one small change: `<` for `<=`, `and` for `or`, `+` for `-`, a condition
turned round, a number one more or one less, True for False, `min` for `max`, `None` returned, a
statement left out. It is killed if a test fails, or if the tests take far longer than without it;
else it survives, and either a test is missing or nobody could see the difference (`REASONS`).

Not changed: texts, f-strings, regular expressions, annotations, decorators, assertions, and what is
raised (only whether). So the figures say nothing of how well patterns are tested.

Mutants are drawn at random, from each package as its share of all is. The rate has a Wilson
interval: it is that of a sample. A rate after `without those of REASONS` leaves out survivors that
have a reason there.

Nothing is written to the checkout: each job has a copy of it. The tests run once without a mutant,
which must pass; that run notes the functions that each test calls. A mutant then meets only the
tests of its package (`PACKAGES`) that call the function it is in, the quickest first, until one
fails, and last those that start processes; a mutant outside of functions meets all of them. Tests
beyond `--test-seconds` are not run, so that the share killed is a lower bound.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import importlib
import json
import os
import py_compile
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("harness", "providers", "tasks", "tests", "results", "pyproject.toml", "README.md")
PACKAGES = {
    "score": ("score_verdict", "score_extraction"),
    "analysis": (
        *("analysis_cells", "analysis_comparison", "analysis_judged_run", "analysis_results"),
        *("analysis_tables", "doors", "analysis_stats", "analysis_leaderboard"),
    ),
    "run": (
        *("run_limiter", "run_pool", "run_batch_files", "run_task_run", "run_batch_importer"),
        *("run_batch_engine", "cli_interrupts"),
    ),
    "journal": ("journal", "run_batch_files", "run_task_run"),
}
"""Package of `harness` -> its test files, without `test_` and `.py`."""
LEFT_OUT = ("test_time_is_linear",)
"""Tests that measure time: what else the machine does would kill mutants."""
HEAVY = (
    *("numpy", "pandas", "pydantic", "hypothesis", "orjson", "msgspec", "aiohttp", "httpx2"),
    *(
        "openai",
        "jinja2",
        "rich",
        "typer",
        "yaml",
        "filelock",
        "uvloop",
        "altair",
        "huggingface_hub",
    ),
)
"""Libraries that are imported once, before a process is forked for each mutant."""
MAX_MEMORY = 8 << 30
BASELINE_LIMIT_S = 1800
REASONS = {
    ("score/extraction.py", "for lead in (bullets.end() if bullets else 0, *leads):", "-1"): (
        "a search from -1 begins at 0"
    ),
    (
        "score/extraction.py",
        "start, end = _line_around(bare, len(bare.rstrip()) - 1, 0, len(bare))",
        "0",
    ): "the place after the last character is on the same line",
    ("analysis/paired.py", "adjusted = [0.0] * count", "1.0"): "each is written over",
    (
        "analysis/effective_length.py",
        "draws = drawn_accuracies([samples], resamples, seed)[0]",
        "-1",
    ): "the list has one item",
    ("journal/writer.py", "self._lock = FileLock(folder / _LOCK, timeout=0)", "1"): (
        "the same refusal, a second later"
    ),
    ("journal/writer.py", "self._file = -1", "2"): "every negative number is no file",
    ("journal/answers.py", "return int.from_bytes(said[:8]) or 1", "2"): (
        "one text in 2**64 has this hash"
    ),
    ("run/pool.py", "seed: int = 0,", "-1"): "a run always gives its seed",
}
"""File in `harness`, line, and changed code of survivors that no test has to notice -> why."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    package: str
    path: str
    """In the repository."""
    line: int
    start: int
    """Bytes of the file that `after` takes the place of."""
    end: int
    before: str
    after: str
    first_line: int
    """Of the outermost function around it; 0 where there is none."""
    last_line: int
    text: str
    """The source line, without the spaces around it."""

    def __str__(self) -> str:
        """A line of a diff, with its place."""
        return f"{self.path}:{self.line}: - {self.before}  + {self.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Under which `REASONS` has it."""
        return self.path.removeprefix("harness/"), self.text, self.after


@dataclass
class Baseline:
    """What the tests of a package did without a mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Test -> its duration."""
    calls: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Test -> file and first line of the functions it called."""
    processes: list[str] = field(default_factory=list)
    """Tests that start processes, whose calls are not seen."""

    def tests(self, mutant: Mutant, limit_s: float) -> list[str]:
        """The tests that may notice the mutant, the quickest first, as many as `limit_s` holds."""
        lines = range(mutant.first_line, mutant.last_line + 1)
        calling = [
            test
            for test, calls in self.calls.items()
            if not mutant.first_line
            or any(path == mutant.path and line in lines for path, line in calls)
        ]
        calling.sort(key=lambda test: self.seconds[test])
        others = [test for test in self.processes if test not in set(calling)]
        calling += sorted(others, key=lambda test: self.seconds[test])
        ends_s = accumulate(self.seconds[test] for test in calling)
        return [test for test, end_s in zip(calling, ends_s, strict=True) if end_s <= limit_s]


COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitOr,
}
SWAPPED = {"min": "max", "max": "min", "any": "all", "all": "any"}


def is_text(node: ast.AST) -> bool:
    """Whether a node is a text, or such are put together: with another operator it only fails."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return constant or isinstance(node, ast.JoinedStr)


def changed(node: Any, name: str, value: object) -> Any:
    """The node with another value of one field."""
    other = copy.deepcopy(node)
    setattr(other, name, value)
    return other


def changed_operators(node: ast.AST) -> Iterator[ast.AST]:
    """The expression with one operator changed."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                others = [*operators[:place], COMPARED[type(operator)](), *operators[place + 1 :]]
                yield changed(node, "ops", others)
        case ast.BinOp(op=operation) if type(operation) in CALCULATED and not is_text(node):
            yield changed(node, "op", CALCULATED[type(operation)]())
        case ast.BoolOp(op=joint):
            yield changed(node, "op", ast.Or() if isinstance(joint, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case _:
            pass


def changed_values(node: ast.AST) -> Iterator[ast.AST]:
    """The constant, or the call of a function that has an opposite, changed."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Call(func=ast.Name(id=name)) if name in SWAPPED:
            yield changed(node, "func", ast.Name(SWAPPED[name]))
        case _:
            pass


def changed_statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statement changed or left out."""
    match node:
        case ast.AugAssign(op=operation, value=value) if not is_text(value):
            yield changed(node, "op", CALCULATED[type(operation)]())
            yield ast.Pass()
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Delete():
            yield ast.Pass()
        case ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case _:
            pass


def turned(test: ast.expr) -> ast.expr | None:
    """A condition turned round, unless a change of its own operator does the same."""
    plain = isinstance(test, ast.Compare) and len(test.ops) == 1
    same = plain and not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)  # type: ignore[attr-defined]
    if same or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
        return None
    return ast.UnaryOp(ast.Not(), test)


class Finder:
    """Finds the mutants of one file."""

    def __init__(self, package: str, path: Path) -> None:
        self.package = package
        self.path = path.relative_to(ROOT).as_posix()
        self.source = path.read_bytes()
        self.starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.mutants: list[Mutant] = []
        self.around: tuple[int, int] = (0, 0)

    def add(self, node: Any, other: ast.AST) -> None:
        """A mutant with `other` in the place of `node`."""
        before, after = ast.unparse(node), ast.unparse(other)
        if isinstance(other, ast.expr) and not isinstance(other, ast.Constant | ast.Name):
            after = f"({after})"
        place = self.starts[node.lineno - 1] + node.col_offset
        end = self.starts[node.end_lineno - 1] + node.end_col_offset
        line = self.source[self.starts[node.lineno - 1] : self.starts[node.lineno]]
        code = node.lineno, place, end, before, after
        text = line.decode().strip()
        self.mutants.append(Mutant(self.package, self.path, *code, *self.around, text))

    def visit(self, node: ast.AST) -> None:
        """Adds the mutants of `node` and of all below it."""
        before = self.around
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and before == (0, 0):
            first = min(part.lineno for part in (node, *node.decorator_list))
            self.around = first, node.end_lineno or node.lineno
        for change in (changed_operators, changed_values, changed_statements):
            for other in change(node):
                self.add(node, other)
        tests = [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else []
        tests += node.ifs if isinstance(node, ast.comprehension) else []
        for test in tests:
            if (condition := turned(test)) is not None:
                self.add(test, condition)
        for child in self.below(node):
            self.visit(child)
        self.around = before

    def below(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes below that are changed."""
        checking = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if checking or isinstance(node, ast.Raise):
            return
        unseen = (ast.JoinedStr, ast.Assert, ast.arg)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "keywords") and not isinstance(
                node, ast.Call
            ):
                continue
            for child in value if isinstance(value, list) else [value]:
                strict = isinstance(child, ast.keyword) and child.arg == "strict"  # of `zip`
                if isinstance(child, ast.AST) and not isinstance(child, unseen) and not strict:
                    yield child


def find(package: str) -> list[Mutant]:
    """All mutants of a package."""
    mutants: list[Mutant] = []
    for path in sorted((ROOT / "harness" / package).rglob("*.py")):
        finder = Finder(package, path)
        finder.visit(ast.parse(finder.source))
        mutants += finder.mutants
    return mutants


def draw(mutants: dict[str, list[Mutant]], size: int, rng: random.Random) -> list[Mutant]:
    """So many mutants, from each package as its share of all is, in random order."""
    total = sum(map(len, mutants.values()))
    drawn: list[Mutant] = []
    for of_package in mutants.values():
        drawn += rng.sample(of_package, min(len(of_package), round(size * len(of_package) / total)))
    rng.shuffle(drawn)
    return drawn


class Watch:
    """A plugin of pytest: which functions of `folder` each test calls, and how long it takes."""

    def __init__(self, folder: Path) -> None:
        self.root = f"{folder}/"
        self.baseline = Baseline()
        self.calls: set[tuple[str, int]] = set()
        self.of_fixtures: dict[object, set[tuple[str, int]]] = {}
        self.starts_processes = False

    def trace(self, frame: Any, event: str, _: object) -> None:
        """What Python calls when a function begins."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{self.root}harness/"):
            self.calls.add((code.co_filename[len(self.root) :], code.co_firstlineno))
        elif code.co_name == "__init__" and code.co_qualname == "Popen.__init__":
            self.starts_processes = True

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Notes the calls of a fixture that several tests share: they count for all of them."""
        if fixturedef.scope == "function":
            return (yield)
        before, self.calls = self.calls, set()
        try:
            return (yield)
        finally:
            self.of_fixtures[fixturedef] = self.calls
            self.calls = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Traces one test."""
        self.calls, self.starts_processes = set(), False
        started_s = time.perf_counter()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            for fixtures in item._fixtureinfo.name2fixturedefs.values():
                for fixture in fixtures:
                    self.calls |= self.of_fixtures.get(fixture, set())
            self.baseline.seconds[item.nodeid] = time.perf_counter() - started_s
            self.baseline.calls[item.nodeid] = sorted(self.calls)
            if self.starts_processes:
                self.baseline.processes.append(item.nodeid)


class Chosen:
    """A plugin of pytest: these tests alone, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Chooses."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes which test failed."""
        if report.failed:
            self.failed = self.failed or report.nodeid


def in_copy(folder: Path, tests: Sequence[str], plugin: object, output: Path) -> int:
    """Runs pytest in the copy, in a process forked for it; its exit code."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    with output.open("wb") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    sys.path[0] = str(folder)
    os.environ["PYTHONPATH"] = str(folder)
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=short"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # `HEAVY` is there already
    left_out = f"not {' and not '.join(LEFT_OUT)}"
    return int(pytest.main([*options, "-k", left_out, *tests], plugins=[plugin]))


def fork(work: Callable[[], int]) -> int:
    """A process that does `work` and ends with what it returns; its id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        code = work()
    except BaseException:  # noqa: BLE001  the process ends here, whatever it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


@dataclass
class Running:
    """A process that runs tests in a copy."""

    folder: Path
    end_s: float
    done: Callable[[Path, int | None], None]


@dataclass
class Jobs:
    """Forked processes, one a copy of the checkout."""

    copies: list[Path]
    running: dict[int, Running] = field(default_factory=dict)

    def start(
        self,
        work: Callable[[Path], int],
        limit_s: float,
        done: Callable[[Path, int | None], None],
    ) -> None:
        """Starts `work` in the next copy that is free; `done` takes that copy and the exit code,
        `None` where time ran out.
        """
        while not self.copies:
            self.wait()
        folder = self.copies.pop()
        process = fork(partial(work, folder))
        self.running[process] = Running(folder, time.monotonic() + limit_s, done)

    def wait(self) -> None:
        """Waits a moment, and ends what has taken too long."""
        time.sleep(0.02)
        for process, run in list(self.running.items()):
            code: int | None = None
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() < run.end_s:
                continue
            with suppress(ProcessLookupError):  # also what the tests started
                os.killpg(process, signal.SIGKILL)
            if not ended:
                os.waitpid(process, 0)
            del self.running[process]
            self.copies.append(run.folder)
            run.done(run.folder, code)

    def stop(self) -> None:
        """Ends all that runs."""
        for process in self.running:
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)

    def finish(self) -> None:
        """Waits until nothing runs."""
        while self.running:
            self.wait()


def copied(folder: Path) -> Path:
    """A copy of the checkout in `folder`."""
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for name in ("harness", "providers"):  # valid by content: a mutant may be as long and as new
        by_content = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / name, quiet=2, invalidation_mode=by_content)
    return folder


def files(package: str) -> list[str]:
    """The test files of a package."""
    return [f"tests/test_{name}.py" for name in PACKAGES[package]]


def baselines(packages: Sequence[str], jobs: Jobs) -> dict[str, Baseline]:
    """What the tests of each package do without a mutant.

    Raises:
        SystemExit: one fails.
    """
    found: dict[str, Baseline] = {}

    def work(package: str, folder: Path) -> int:
        watch = Watch(folder)
        code = in_copy(folder, files(package), watch, folder / "output.txt")
        (folder / f"{package}.json").write_text(json.dumps(vars(watch.baseline)))
        return code

    def done(package: str, folder: Path, code: int | None) -> None:
        if code:
            output = (folder / "output.txt").read_text(errors="replace")
            raise SystemExit(f"the tests of {package} end with {code}\n{output[-3000:]}")
        noted = json.loads((folder / f"{package}.json").read_text())
        found[package] = Baseline(**noted)

    for package in packages:
        jobs.start(partial(work, package), BASELINE_LIMIT_S, partial(done, package))
    jobs.finish()
    return found


def read_baselines(path: Path | None, packages: Sequence[str]) -> dict[str, Baseline]:
    """What an earlier run kept in a file; empty where it does not have all packages."""
    kept = json.loads(path.read_text()) if path is not None and path.exists() else {}
    return {name: Baseline(**kept[name]) for name in packages} if {*packages} <= {*kept} else {}


def run_mutant(mutant: Mutant, tests: Sequence[str], folder: Path) -> int:
    """Runs the tests on a mutant in a copy."""
    path = folder / mutant.path
    source = path.read_bytes()
    path.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
    chosen = Chosen(tests)
    paths = list(dict.fromkeys(test.split("::")[0] for test in tests))
    code = in_copy(folder, paths, chosen, folder / "output.txt")
    (folder / "failed.txt").write_text(chosen.failed)
    return code


@dataclass
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    killer: str
    """The test that failed, or how else the tests ended; empty if the mutant survived."""


def run_all(
    mutants: Sequence[Mutant],
    known: dict[str, Baseline],
    jobs: Jobs,
    *,
    test_limit_s: float,
    end_s: float,
) -> list[Outcome]:
    """Runs the tests on all mutants, until the time is up."""
    outcomes: list[Outcome] = []

    def done(mutant: Mutant, folder: Path, code: int | None) -> None:
        shutil.copy(ROOT / mutant.path, folder / mutant.path)
        shutil.rmtree(folder / ".hypothesis", ignore_errors=True)
        noted = folder / "failed.txt"
        killer = noted.read_text() if noted.exists() else ""
        noted.unlink(missing_ok=True)
        if code == 0:
            killer = ""
        elif code is None:
            killer = "time"
        outcomes.append(Outcome(mutant, killer or (f"exit code {code}" if code else "")))
        print(f"{len(outcomes)} {mutant}  [{outcomes[-1].killer or 'SURVIVED'}]", file=sys.stderr)

    for mutant in mutants:
        if time.monotonic() > end_s:
            break
        baseline = known[mutant.package]
        tests = baseline.tests(mutant, test_limit_s)
        if not tests:
            outcomes.append(Outcome(mutant, ""))
            continue
        limit_s = 30 + 4 * sum(baseline.seconds[test] for test in tests)
        jobs.start(partial(run_mutant, mutant, tests), limit_s, partial(done, mutant))
    jobs.finish()
    return outcomes


def show(outcomes: Sequence[Outcome], known: dict[str, int]) -> None:
    """Prints the table and the survivors."""
    sys.path[0] = str(ROOT)
    from harness.analysis.interval import wilson

    print("| package | mutants | tried | killed | share | 95 % interval |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for package in (*known, "all"):
        of = [one for one in outcomes if package in ("all", one.mutant.package)]
        count = sum(known.values()) if package == "all" else known[package]
        row(package, count, sum(bool(one.killer) for one in of), len(of), wilson)
    survived = [one.mutant for one in outcomes if not one.killer]
    open_ones = [mutant for mutant in survived if mutant.key not in REASONS]
    killed = len(outcomes) - len(survived)
    row("without those of REASONS", sum(known.values()), killed, killed + len(open_ones), wilson)
    print("\nsurvived:")
    for mutant in sorted(survived, key=lambda one: (one.path, one.line)):
        print(f"{mutant}  {REASONS.get(mutant.key, '(no reason yet)')}")
    killers = Counter(one.killer.split("[")[0] for one in outcomes if one.killer)
    print("\nmost killed by:", ", ".join(f"{test} {n}" for test, n in killers.most_common(8)))


def row(name: str, count: int, killed: int, tried: int, wilson: Any) -> None:
    """Prints a row of the table."""
    low, high = wilson(killed, tried) or (0.0, 1.0)
    share = killed / tried if tried else 0.0
    print(f"| {name} | {count} | {tried} | {killed} | {share:.1%} | {low:.1%} to {high:.1%} |")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=160, help="mutants drawn (160)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", choices=tuple(PACKAGES), action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60, help="no mutant begins later (60)")
    parser.add_argument(
        "--test-seconds", type=float, default=60, help="tests of one mutant, the quickest ones (60)"
    )
    parser.add_argument(
        "--baseline",
        type=Path,
        help="file that keeps what the tests do without a mutant, for later runs of equal tests",
    )
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    given = parser.parse_args()
    packages = given.package or list(PACKAGES)
    mutants = {package: find(package) for package in packages}
    drawn = draw(mutants, given.sample, random.Random(given.seed))
    if given.list:
        print("\n".join(map(str, drawn)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running
    started_s = time.monotonic()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in HEAVY:
        with suppress(ImportError):
            importlib.import_module(name)
    hypothesis = importlib.import_module("hypothesis")
    quick = {"deadline": None, "derandomize": True, "phases": [hypothesis.Phase.generate]}
    hypothesis.settings.register_profile("mutants", **quick)  # no time for the smallest example
    hypothesis.settings.load_profile("mutants")
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs([copied(Path(folder) / str(number)) for number in range(given.jobs)])
        try:
            known = read_baselines(given.baseline, packages) or baselines(packages, jobs)
            if given.baseline:
                kept = {package: vars(baseline) for package, baseline in known.items()}
                given.baseline.write_text(json.dumps(kept))
            print(f"without a mutant: {time.monotonic() - started_s:.0f} s", file=sys.stderr)
            end_s = started_s + 60 * given.minutes
            outcomes = run_all(drawn, known, jobs, test_limit_s=given.test_seconds, end_s=end_s)
        finally:
            jobs.stop()
    show(outcomes, {package: len(of) for package, of in mutants.items()})
    print(f"\n{time.monotonic() - started_s:.0f} s")


if __name__ == "__main__":
    main()
