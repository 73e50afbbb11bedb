"""Interrupts and signals while Python asks: nothing that was answered is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

import eyechart
from eyechart.harness.face.python.ask import run_anywhere
from tests.conftest import SLOW, Lab, has_lines, records, wait_for
from tests.forked import Forked

RUNS = "asyncio.run(notebook())"
LOOPS = "asyncio.new_event_loop().run_until_complete(notebook())"


class TestLoop:
    """`run_anywhere`."""

    def test_a_loop_that_runs_is_left_alone(self) -> None:
        """The work has a thread and a loop of its own."""
        threads = []

        async def work() -> None:
            threads.append(threading.current_thread().name)

        async def notebook() -> None:
            run_anywhere(work())

        run_anywhere(work())
        asyncio.run(notebook())
        assert threads == [threading.current_thread().name, "eyechart"]

    def test_ctrl_c_while_the_thread_starts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An interrupt in `Thread.start` cancels the work that the thread has begun."""
        said = []

        class Interrupted(threading.Thread):
            def start(self) -> None:
                super().start()
                raise KeyboardInterrupt

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                said.append("cancelled")
                raise

        async def notebook() -> None:
            monkeypatch.setattr(threading, "Thread", Interrupted)
            run_anywhere(work())

        with pytest.raises(KeyboardInterrupt):
            asyncio.run(notebook())
        assert said == ["cancelled"]

    @pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
    @pytest.mark.parametrize(
        ("loop", "deaf_to", "said"),
        [
            (RUNS, 0, ["cancelled", "interrupted", "0 threads"]),
            (RUNS, 1, ["cancelled", "cancelled", "interrupted", "0 threads"]),
            (RUNS, 9, ["cancelled", "cancelled", "interrupted", "1 threads"]),
            (LOOPS, 0, ["cancelled", "interrupted", "0 threads"]),
        ],
    )
    def test_ctrl_c_in_a_notebook_ends_the_run_in_order(
        self, tmp_path: Path, loop: str, deaf_to: int, said: list[str]
    ) -> None:
        """The work is cancelled, and again by a second interrupt; when it has ended, the interrupt
        is raised. Work that does not end is left alone after the third.
        """
        code = INTERRUPTED.format(loop=loop, deaf_to=deaf_to)
        reader, writer = os.pipe()
        process = Forked(lambda: exec(code, {}), tmp_path, stdout=writer)  # noqa: S102  ours
        os.close(writer)
        lines = []
        try:
            with os.fdopen(reader) as stdout:
                for line in map(str.strip, stdout):
                    lines.append(line)
                    if line in ("begun", "cancelled") and lines.count("cancelled") <= deaf_to:
                        process.send_signal(signal.SIGINT)
            process.wait()
        finally:
            process.kill()
        assert lines == ["begun", *said]


INTERRUPTED = """\
import asyncio, threading
from eyechart.harness.face.python.ask import run_anywhere

async def work():
    print("begun", flush=True)
    for _ in range({deaf_to} + 1):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("cancelled", flush=True)
    raise asyncio.CancelledError

async def notebook():
    run_anywhere(work())

try:
    {loop}
except KeyboardInterrupt:
    print("interrupted")
print(sum(thread.name == "eyechart" for thread in threading.enumerate()), "threads")
"""


class TestSignals:
    """`eyechart.run` in a script."""

    @pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
    @pytest.mark.parametrize(
        ("number", "within", "ends"),
        [
            (signal.SIGINT, "ask()", "interrupted"),
            (signal.SIGINT, "asyncio.run(notebook())", "interrupted"),
            (signal.SIGINT, "in_a_thread()", "interrupted"),
            (signal.SIGTERM, "ask()", ""),
        ],
    )
    def test_what_was_answered_is_saved(
        self, lab: Lab, number: signal.Signals, within: str, ends: str
    ) -> None:
        """The process ends, and the same call goes on: it asks what has no reply."""
        (lab.folder / "slow.py").write_text(SLOW)
        log = lab.folder / "log"
        for name, value in (("SLOW_LOG", str(log)), ("SLOW_S", "0"), ("STOPS_AT", "5")):
            lab.monkeypatch.setenv(name, value)
        lab.monkeypatch.syspath_prepend(lab.folder)
        code = SCRIPT.format(task=str(lab.ones), out=str(lab.out), within=within)
        process = Forked(lambda: exec(code, {}), lab.folder)  # noqa: S102  ours
        wait_for(lambda: has_lines(log, 6), process)
        process.send_signal(number)
        (lab.folder / "go").touch()  # the reply in flight may come
        out, _ = process.communicate()
        assert out.decode().strip() == ends
        replies = [record for record in records(lab.the_run()) if "reply" in record]
        assert 5 <= len(replies) < 16
        lab.add_provider("slow", "slow:open_provider")
        again = eyechart.run(lab.ones, "slow/x", out=lab.out, warn=lambda _line: None)
        assert again.missing == 0
        asked = log.read_text().splitlines()
        assert len(set(asked)) == 16
        assert len(records(lab.the_run())) == 16


SCRIPT = """\
import asyncio, functools, os, threading, warnings
import eyechart, slow
from eyechart.harness.face.options import run_options
from eyechart.providers import descriptors
from eyechart.providers.descriptor import Descriptor
from eyechart.providers.base import Reply

warnings.simplefilter("ignore")
run_options.RunLimits = functools.partial(run_options.RunLimits, interrupt_drain_s=0.5)

class Stops(slow.Slow):
    asked = 0

    async def complete(self, request):
        Stops.asked += 1
        if Stops.asked > int(os.environ["STOPS_AT"]):
            with open(os.environ["SLOW_LOG"], "a") as log:
                log.write(request.sample_id + "\\n")
            while Stops.asked > int(os.environ["STOPS_AT"]) + 1 or not os.path.exists("go"):
                await asyncio.sleep(0.01)
        return await super().complete(request)

slow.Stops = Stops
slow.open_provider = lambda settings: Stops()
descriptors.BUILT_IN["slow"] = Descriptor(name="slow", opens="slow:open_provider")

def ask():
    run = eyechart.run({task!r}, "slow/x", out={out!r}, max_connections=1)
    print(run.missing, "missing")

async def notebook():
    ask()

def in_a_thread():
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)

try:
    {within}
except KeyboardInterrupt:
    print("interrupted")
"""
