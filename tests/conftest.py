"""What the tests of running and judging share: a small task, honest and slow models, `bench`."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import orjson
import pytest

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.cli import app
from eyechart.harness.cli.work import run_results
from eyechart.harness.cli.work.next_command import followed
from eyechart.harness.cli.work.run_results import ShownRun
from eyechart.harness.face.asking import own_models
from eyechart.harness.face.options import run_options
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import Record, encode, journals
from eyechart.harness.plan import own_tasks
from eyechart.harness.plan.cost import Budget
from eyechart.harness.plan.plan import plan
from eyechart.harness.plan.resolved_model import resolve_model
from eyechart.harness.run.engine import EngineContext
from eyechart.harness.run.fresh import OldRuns
from eyechart.harness.run.limits import RunLimits
from eyechart.harness.run.run_request import RunRequest
from eyechart.harness.spec import Settings, exact_json
from eyechart.harness.task.catalogue import open_task
from eyechart.providers import descriptors, secrets
from eyechart.providers.base import Provider, Request
from eyechart.providers.descriptor import Descriptor
from eyechart.providers.scripted import ScriptedProvider
from tests.forked import Forked
from tests.own_time import OwnTimeLoop
from tests.run_task import run_task

if TYPE_CHECKING:
    from tests.real_server import Server

pytest_plugins = ["tests.plugged", "tests.report_browser"]

# pytest's workers share the cores, and idle threads of OpenBLAS spin; NumPy is not imported yet
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same of PyTorch, and of vLLM
for address in [name for name in os.environ if name.endswith(("_BASE_URL", "_API_BASE"))]:
    del os.environ[address]  # of a gateway: it would be asked
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it; what is printed goes by it
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what tests start can be interrupted
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

ONES = """\
version: 1
title: Ones
generator: rows.py:ones
lengths: [3, 5]
samples: 4
axes:
  separator:
    default: [none, comma]
    values: {none: "", space: " ", comma: ","}
prompt: |
  How many ones? Write "{{ phrase }}" and then the number.
  {{ sequence }}
answer: integer
spread: none
"""
"""Two conditions, two lengths, four samples a cell: sixteen requests."""

PLAIN = """\
version: 3
title: Ones without an axis
generator: rows.py:ones
lengths: [4]
samples: 3
prompt: |
  How many ones? Write "{{ phrase }}" and then the number.
  {{ sequence }}
answer: integer
spread: none
"""

ECHO = """\
version: 1
title: Say it again
generator: rows.py:echo
lengths: [2, 3]
samples: 2
prompt: |
  Write "{{ phrase }}" and then these words.
  {{ sequence }}
answer: text
spread: none
"""

ROWS = """\
from eyechart.harness.spec import Item


def ones(rng, length):
    row = [rng.choice("01") for _ in range(length)]
    return Item(row, row.count("1"))


def echo(rng, length):
    words = [f" {rng.choice(('tea', 'cake', 'milk'))}" for _ in range(length)]
    return Item(words, " ".join("".join(words).split()))
"""

SLOW = """\
import asyncio
import os
from pathlib import Path

from eyechart.providers import descriptors
from eyechart.providers.base import Reply, Usage
from eyechart.providers.descriptor import Descriptor


class Slow:
    async def complete(self, request):
        with Path(os.environ["SLOW_LOG"]).open("a") as log:
            log.write(request.sample_id + "\\n")
        await asyncio.sleep(float(os.environ["SLOW_S"]))
        row = request.prompt.splitlines()[-1].replace(",", "")
        wrong = len(row) > int(os.environ.get("SLOW_SEES", "1000000"))
        return Reply(f"Final answer: {row.count('1') + wrong}", usage=Usage(len(row), 3))

    async def facts(self):
        return {"engine": "slow"}

    async def count_tokens(self, prompts):
        return None

    async def aclose(self):
        pass


def open_provider(settings):
    return Slow()


if __name__ == "__main__":
    descriptors.BUILT_IN["slow"] = Descriptor(name="slow", opens="slow:open_provider")
    from eyechart.harness.cli.app import main

    main()
"""
"""`bench` with one provider more, who takes his time and keeps a log of what he was asked."""

PATIENCE_S = 60.0
"""How long a test waits for what should be there at once: the machine may be busy."""
DEFAULTS = Settings()


def right(request: Request) -> str:
    """The right reply to a prompt of `ONES` or `PLAIN`."""
    return f"Final answer: {request.prompt.splitlines()[-1].count('1')}"


@dataclass(frozen=True)
class Done:
    """What one `bench` command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines on stderr, without the first one where it says where a model is asked."""
        lines = self.err.strip().splitlines()
        return lines[1:] if lines and " is asked at " in lines[0] else lines

    def one_line(self, code: int, *words: str) -> str:
        """Asserts that the command failed with `code` and one line, which has all of `words`;
        besides the line that says where a model is asked.
        """
        said = "\n".join(self.lines)
        assert self.code == code, self
        assert self.out == ""
        assert len(said.splitlines()) == 1, said
        assert "Traceback" not in said
        assert not (missing := [word for word in words if word not in said]), (missing, said)
        return said


@dataclass
class Lab:
    """A folder with small tasks, and ways to run them."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    said: list[str] = field(default_factory=list)
    """Warnings of the runs made by `run`."""

    @property
    def out(self) -> Path:
        """Where runs go."""
        return self.folder / "results"

    @property
    def ones(self) -> Path:
        """The task file of `ONES`."""
        return self.folder / "lab" / "ones.yaml"

    @property
    def plain(self) -> Path:
        """The task file of `PLAIN`."""
        return self.folder / "lab" / "plain.yaml"

    @property
    def echo(self) -> Path:
        """The task file of `ECHO`."""
        return self.folder / "lab" / "echo.yaml"

    def with_bands(self) -> None:
        """Makes the lines of the tasks bands."""
        for file in (self.ones, self.plain, self.echo):
            file.write_text(file.read_text().replace("spread: none\n", ""))

    def wanted(
        self,
        file: Path | None = None,
        *,
        lengths: Sequence[int] | None = None,
        exact: bool = False,
        samples: int | None = None,
        axes: Mapping[str, Sequence[str]] | None = None,
        settings: Settings = DEFAULTS,
        model: str = "scripted/test",
    ) -> RunRequest:
        """A run of `file`, `ones` unless given."""
        path = self.ones if file is None else file
        task = open_task(f"lab/{path.stem}", path, trial=False)
        planned = plan(
            task, lengths=lengths, samples=samples, axes=axes, exact=exact, seed=settings.seed
        )
        return RunRequest(planned, resolve_model(model), settings, self.out)

    def run(
        self, wanted: RunRequest, provider: Provider | None = None, *, max_connections: int = 4
    ) -> Provider:
        """Runs in this process, with no pause between attempts; the provider that was asked."""
        asked = provider or ScriptedProvider(right)
        limits = RunLimits(max_connections=max_connections, initial_backoff_s=0, max_backoff_s=0)
        asyncio.run(run_task(wanted, asked, limits=limits, warn=self.said.append))
        return asked

    def asked(self, wanted: RunRequest, script: Callable[[Request], Any] = right) -> list[str]:
        """Runs with a scripted model; the ids of the samples it was asked."""
        provider = ScriptedProvider(script)
        self.run(wanted, provider)
        return [request.sample_id for request in provider.requests]

    def model(self, *lines: str, name: str = "replies.txt") -> str:
        """The name of a scripted model that gives these replies in turn."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines or ("Final answer: 2",)) + "\n")
        return f"scripted/{path}"

    def fake(self, provider: Provider | Callable[[Request], Any]) -> str:
        """The name under which `bench` finds `provider`, in this process."""
        asked = ScriptedProvider(provider) if callable(provider) else provider
        module = types.ModuleType("fake_provider")
        module.__dict__["open_provider"] = lambda _settings: asked
        self.monkeypatch.setitem(sys.modules, "fake_provider", module)
        self.add_provider("fake", "fake_provider:open_provider")
        return "fake/model"

    def add_provider(self, name: str, opens: str) -> None:
        """Makes a provider known under a name, in this process."""
        descriptor = Descriptor(name=name, opens=opens)
        self.monkeypatch.setitem(descriptors.BUILT_IN, name, descriptor)

    def bench(self, *arguments: str | Path) -> Done:
        """The command in this process; an error without a line for the user is raised."""
        self.capture.readouterr()
        self.monkeypatch.setattr(sys, "argv", ["bench", *map(str, arguments)])
        try:
            app.main()
            code: object = 0
        except SystemExit as end:
            code = end.code or 0
        said = self.capture.readouterr()
        assert isinstance(code, int)
        return Done(code, said.out, said.err)

    def bench_run(self, *arguments: str | Path, task: Path | None = None) -> Done:
        """`bench run` of `ones` on a model that always says 2, unless told otherwise."""
        command: list[str | Path] = ["run", *arguments]
        if "--task" not in arguments:
            command += ["--task", task or self.ones]
        if "--model" not in arguments:
            command += ["--model", self.model()]
        if "--out" not in arguments:
            command += ["--out", self.out]
        return self.bench(*command)

    def bench_ask(self, *arguments: str | Path, task: Path | None = None) -> Done:
        """`bench_run` that only asks: no table of the run is made or shown, which takes longer than
        to ask a small model.
        """
        with self.monkeypatch.context() as patch:
            patch.setattr(run_results, "_show", _unshown)
            return self.bench_run(*arguments, task=task)

    def slow(self, *arguments: str, delay_s: float, **options: Any) -> subprocess.Popen[bytes]:
        """Starts `bench` in a process of its own, with the model `slow/x` at hand."""
        path = os.pathsep.join([str(self.folder), str(Path(__file__).parents[1])])
        return subprocess.Popen(
            [sys.executable, str(self._slow_module()), *arguments],
            env={**os.environ, "PYTHONPATH": path, **self._slow_environment(delay_s)},
            cwd=self.folder,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    def forked(
        self,
        *arguments: str,
        delay_s: float,
        first: Callable[[], object] = lambda: None,
        **streams: int,
    ) -> Forked:
        """As `slow`, but in a forked copy of this process, which starts faster, and calls `first`.
        Its output goes to files, or to the descriptors `streams`.
        """

        def command() -> None:
            first()
            self._add_slow(delay_s)
            sys.argv = ["bench", *arguments]
            app.main()

        return Forked(command, self.folder, **streams)

    def slow_here(self, *arguments: str) -> Done:
        """`bench` in this process, with the model `slow/x`, which does not wait."""
        self._add_slow(0)
        return self.bench(*arguments)

    def _add_slow(self, delay_s: float) -> None:
        self.monkeypatch.syspath_prepend(self._slow_module().parent)
        for name, value in self._slow_environment(delay_s).items():
            self.monkeypatch.setenv(name, value)
        self.add_provider("slow", "slow:open_provider")
        self.monkeypatch.chdir(self.folder)

    def _slow_module(self) -> Path:
        module = self.folder / "slow.py"
        module.write_text(SLOW)
        return module

    def _slow_environment(self, delay_s: float) -> dict[str, str]:
        return {"SLOW_LOG": str(self.folder / "slow.log"), "SLOW_S": str(delay_s)}

    def slow_asked(self) -> list[str]:
        """Ids of the samples that slow models were asked so far."""
        log = self.folder / "slow.log"
        return log.read_text().splitlines() if log.exists() else []

    def the_run(self) -> Path:
        """The folder of the only run there is."""
        (manifest,) = (self.out / "runs").rglob(MANIFEST)
        return manifest.parent


def _unshown(request: RunRequest, *_: object, **_named: object) -> ShownRun:
    run = read_run(request.folder)
    return ShownRun(run.lacking(request.plan), followed(run), None, None)


def as_line(record: Record) -> dict[str, Any]:
    """A record as its line in the journal has it."""
    return dict(orjson.loads(encode(record)))


def records(folder: Path) -> list[dict[str, Any]]:
    """Every record of a run whose journals are sound."""
    lines = b"".join(path.read_bytes() for path in journals(folder)).split(b"\n")
    assert lines.pop() == b""
    return [exact_json.loads(line) for line in lines]


def mark_chosen(folder: Path, separator: str) -> None:
    """Makes one condition of a run adaptive: says of its records that answers chose them."""
    lines = [
        orjson.dumps(one | {"chosen": one["condition"].get("separator") == separator}) + b"\n"
        for one in records(folder)
    ]
    (path,) = journals(folder)
    path.write_bytes(b"".join(lines))


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes] | Forked) -> None:
    """Waits until `condition` holds; fails once `process` has ended or after a minute."""
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end_s
        time.sleep(0.005)


def has_lines(path: Path, least: int) -> bool:
    """Whether a file, which may not be there yet, has so many whole lines."""
    return path.exists() and path.read_bytes().count(b"\n") >= least


def plain(text: str) -> str:
    """`text` without a terminal's escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


_ROOM = 4 * 1024**3
"""Bytes that must be free in memory, where tests keep their folders; a container may have few."""


def pytest_configure() -> None:
    """Lets the many commands that tests start keep compiled code, or each would compile it anew;
    and nothing is garbage while tests are collected.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    memory = Path("/dev/shm")  # noqa: S108  folders of tests in memory, where there is room
    if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    hypothesis.settings.register_profile("no_clock", deadline=None)  # the machine may be busy
    hypothesis.settings.load_profile("no_clock")
    gc.disable()


def pytest_collection_finish() -> None:
    """Spares the garbage collector the modules and the tests: what is collected while tests run is
    their own. It looks after every ten thousand new objects, and rarely at the old ones: a command
    makes few circles, and a look after every 700 objects takes a twelfth of the time of the tests.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


class _FromTheEnd(pytest.Directory):
    """A folder whose last file is collected first."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        assert self.parent is not None
        return reversed(list(pytest.Dir.from_parent(self.parent, path=self.path).collect()))


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every second worker begins with the last file: what two workers compile at the same time
    is compiled once, since each finds the second half compiled by the other.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return _FromTheEnd.from_parent(parent, path=path) if worker[-1] in "13579" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests begin first, so that at the end no worker has one before it alone. All
    workers have the same order.
    """
    items.sort(key=lambda item: (item.get_closest_marker("longest") is None, str(item.path)))


@pytest.fixture(autouse=True, scope="session")
def _our_project_is_parsed_once() -> Iterator[None]:
    """Each `bench` looks for defaults in the `pyproject.toml` of its folder, which is ours here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tomllib, "loads", lru_cache(maxsize=8)(tomllib.loads))
        yield


@pytest.fixture(autouse=True)
def _no_secret_of_another_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test plants is a word like any other in the next."""
    monkeypatch.setattr(secrets, "_KNOWN", secrets._KnownSecrets())


@pytest.fixture(autouse=True, scope="session")
def _no_code_was_run_before() -> Iterator[None]:
    """What a user has run is not recorded: its folder cannot be made below a file. Tests of the
    records name a folder.
    """
    with pytest.MonkeyPatch.context() as patch:
        for records_of in (own_tasks, own_models):
            patch.setattr(records_of, "cache_folder", lambda: Path(os.devnull))
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_wait_for_the_disk() -> Iterator[None]:
    """`os.fsync` waits milliseconds for the disk, thousands of times, and here only looks whether
    the file is open. Processes that tests start, and kill, wait for the disk.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_wait_between_attempts() -> Iterator[None]:
    """A command asks again at once what failed."""
    limits = partial(RunLimits, initial_backoff_s=0, max_backoff_s=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_options, "RunLimits", limits)
        yield


@pytest.fixture
def own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coroutines of this test sleep in a time of their own."""
    monkeypatch.setattr(asyncio.events, "new_event_loop", OwnTimeLoop)


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A laboratory of one's own."""
    tasks = tmp_path / "lab"
    tasks.mkdir()
    for name, text in (("ones", ONES), ("plain", PLAIN), ("echo", ECHO)):
        (tasks / f"{name}.yaml").write_text(textwrap.dedent(text))
    (tasks / "rows.py").write_text(ROWS)
    return Lab(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One real vLLM for all tests that ask a server which runs; pytest's workers share it.
    TESTS_VLLM_URL names one that runs already. It answers several tests at the same time, so its
    counters are not those of one test.

    On CPUs a cache block has 128 tokens unless told otherwise, more than most rows have.
    """
    from tests.real_server import WINDOW, Server, shared

    if running := os.environ.get("TESTS_VLLM_URL"):
        yield Server(running.removesuffix("/").removesuffix("/v1"))
        return
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "server"
    folder.mkdir(exist_ok=True)
    with shared(folder, "--max-model-len", str(WINDOW), "--block-size", "32") as one:
        yield one


class Quiet:
    """A display that shows nothing."""

    def judge(self, request: RunRequest) -> None:
        """Nothing is counted."""

    def show(self, *_: object) -> AbstractContextManager[object]:
        return nullcontext()


def asking_of(
    requests: Sequence[RunRequest],
    *,
    budget: Budget | None = None,
    said: Callable[[str], None] = print,
    **more: Any,
) -> EngineContext:
    """What a command without a display gives an engine; `more` are fields of `EngineContext`."""
    given: dict[str, Any] = {"limits": RunLimits(), "display": Quiet(), "say": said} | more
    old_runs = OldRuns((), say=said, warn=said)
    return EngineContext(
        requests=requests, budget=budget or Budget(), old_runs=old_runs, warn=said, **given
    )
