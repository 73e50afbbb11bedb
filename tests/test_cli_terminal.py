"""What is printed steers no terminal, and a stream that is closed or full stops nothing."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import logging
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.cli import terminal
from eyechart.harness.cli.progress import LiveDisplay, live
from eyechart.harness.cli.terminal import clean, one_line
from eyechart.harness.journal.manifest import MANIFEST, Manifest, read_manifest, write_manifest
from eyechart.harness.journal.record import read_records
from eyechart.harness.run.progress import Progress
from eyechart.providers.base import BadRequestError, ProviderError, Reply, StopRunError
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import plain, records, right

if TYPE_CHECKING:
    from tests.conftest import Done, Lab
    from tests.forked import Forked

ROOT = Path(__file__).parents[1]
STEERING = {
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
} - {ord("\n"), ord("\t")}
"""Characters that no terminal is to see."""
NASTY = "\x1b]0;named\x07\x1b[2J\x00\x9b31m\x7f\u202e\u2066\u2028\u061c\x85\r\nbench: forged"
"""Names the window, clears the screen, turns the line around, begins a line like one of ours."""
SHOWN = one_line(NASTY)
FILE = NASTY.replace("\0", "")
"""What a file may be called."""


def harmless(done: Done, *, says: str = SHOWN) -> str:
    """Asserts that nothing printed steers a terminal or forges a line, and that `says` is there."""
    said = done.out + done.err
    assert not {c for c in said if ord(c) in STEERING}
    assert not [line for line in said.split("\n") if line.startswith("bench: forged")]
    assert "Traceback" not in said
    assert says in said, said
    return said


class TestCleaning:
    """Control characters as escapes."""

    def test_every_character_that_steers_is_escaped_and_no_other(self) -> None:
        """Over all there are."""
        everything = [chr(code) for code in range(0x110000)]
        changed = {ord(character) for character in everything if character != clean(character)}
        assert changed == STEERING
        assert not {c for c in clean("".join(everything)) if ord(c) in STEERING}

    def test_escapes_are_those_of_python(self) -> None:
        """So a reader knows which character it is."""
        assert clean("\x1b[2J\r\x9b\u202e") == r"\x1b[2J\r\x9b\u202e"
        assert clean("a\tb\nc é 漢 🙂") == "a\tb\nc é 漢 🙂"
        assert one_line("a\tb\nc") == "a\tb\\nc"


FORBIDDEN_CALLS = {"print", "pprint", "secho", "echo_via_pager", "print_exc", "print_exception"}


def printing(path: Path) -> Iterator[str]:
    """What in a file prints by other ways than `harness.cli.terminal`."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"print|echo|console|write\(", text):
        return
    tree = ast.parse(text)
    ours = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "eyechart.harness.cli.terminal"
        for name in node.names
    }
    for node in ast.walk(tree):
        place = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.ImportFrom | ast.Import):
            names = {name.name for name in node.names}
            if (isinstance(node, ast.ImportFrom) and node.module == "rich.console") or (
                "rich.console" in names
            ):
                yield f"{place}: rich.console"
        if isinstance(node, ast.Call):
            function = node.func
            name = getattr(function, "attr", getattr(function, "id", ""))
            if name in FORBIDDEN_CALLS or (name == "echo" and name not in ours):
                yield f"{place}: {name}()"
            if name == "write" and isinstance(function, ast.Attribute):
                if ast.unparse(function.value).removesuffix(".buffer") in (
                    *("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"),
                ):
                    yield f"{place}: {ast.unparse(function)}()"
                if ast.unparse(function.value) == "os" and ast.unparse(node.args[0]) in "12":
                    yield f"{place}: os.write"


class TestOnePlace:
    """Everything is printed by `harness.cli.terminal`."""

    def test_nothing_else_prints(self) -> None:
        """By print, echo, a console of its own or a stream's write; scripts of training aside."""
        files = [*(ROOT / "harness").rglob("*.py"), *(ROOT / "providers").rglob("*.py")]
        theirs = ("terminal.py", "interrupts.py")  # which says one word, before the rest is loaded
        looked_at = [f for f in files if f.name not in theirs and "embedded" not in f.parts]
        assert len(looked_at) > 60
        assert [found for path in looked_at for found in printing(path)] == []

    @pytest.mark.parametrize(
        "code",
        [
            "print('x')",
            "import typer\ntyper.echo('x')",
            "from typer import echo\necho('x')",
            "from rich.console import Console",
            "import sys\nsys.stdout.write('x')",
            "import sys\nsys.stderr.buffer.write(b'x')",
            "import os\nos.write(2, b'x')",
        ],
    )
    def test_the_check_can_fail(self, tmp_path: Path, code: str) -> None:
        """It finds each way to print."""
        file = tmp_path / "some.py"
        file.write_text(code)
        assert list(printing(file))


class TestForeignText:
    """What others say is shown, and does nothing."""

    def test_an_error_of_a_server(self, lab: Lab) -> None:
        """Of one sample, and of the whole run."""
        errors: list[ProviderError] = [BadRequestError(f"400 {NASTY}"), StopRunError(NASTY)]
        for error in errors:
            harmless(lab.bench_run("--model", lab.fake(ScriptedProvider([error]))))

    def test_the_model_of_a_reply(self, lab: Lab) -> None:
        """In the warning that another one answers."""
        replies = iter(range(10**6))
        fake = lab.fake(lambda request: Reply(right(request), model=f"{next(replies)}{NASTY}"))
        harmless(
            lab.bench_run("--model", fake, "--max-connections", "1"), says="bench: replies now"
        )

    def test_facts_of_a_server(self, lab: Lab) -> None:
        """In the line that says how they changed."""

        class Server(ScriptedProvider):
            async def facts(self) -> Mapping[str, object]:
                return {NASTY: NASTY}

        lab.bench_run("--model", lab.fake(right), "--lengths", "3")
        harmless(lab.bench_run("--model", lab.fake(Server(right))), says="another model or server")

    def test_an_exception_of_a_generator(self, lab: Lab) -> None:
        """Checked, tried and in the middle of a run."""
        rows = lab.ones.parent / "rows.py"
        rows.write_text(f"def ones(rng, length):\n    raise ValueError({NASTY!r})\n")
        says = "ValueError: \\x1b]0;named"
        harmless(lab.bench("tasks", "check", lab.ones), says=says)
        harmless(lab.bench_run(), says=says)

    def test_a_task_file(self, lab: Lab) -> None:
        """Its title, its mistakes, the file itself, and a prompt."""
        text = lab.ones.read_text()
        title = '"\\e]0;named\\x9b\\u202E\\nbench: forged"'
        lab.ones.write_text(text.replace("title: Ones", f"title: {title}"))
        harmless(lab.bench("tasks", "show", lab.ones), says="title: ")
        harmless(lab.bench_run("--dry-run"), says="\\x1b]0;named\\x9b\\u202e\\nbench: forged")
        rows = (lab.ones.parent / "rows.py").read_text()
        (lab.ones.parent / "nasty.py").write_text(rows.replace('"01"', f"['1', {NASTY!r}]"))
        lab.ones.write_text(text.replace("rows.py", "nasty.py"))
        harmless(lab.bench("tasks", "show", lab.ones), says="\\x1b[2J")
        lab.ones.write_text(text.replace("version: 1", 'version: "\\e[2J"'))
        harmless(lab.bench("tasks", "check", lab.ones), says="must be a whole number")

    def test_a_manifest(self, lab: Lab) -> None:
        """Its names are a table's title, and what `import` says to do next."""
        lab.bench_run()
        folder = lab.the_run()

        def altered(**said: Any) -> None:
            manifest = read_manifest(folder)
            for name, value in said.items():
                setattr(manifest, name, value)
            write_manifest(folder, manifest)

        before: Manifest = read_manifest(folder)
        altered(model=NASTY, task=NASTY, run="")
        harmless(lab.bench("score", folder))
        altered(model=before.model)
        axis = ("--axis", "separator=none,comma")
        harmless(lab.bench("compare", folder, *axis, "-o", lab.folder / f"c{FILE}.csv"))
        (folder / MANIFEST).write_bytes(orjson.dumps({NASTY: 1, "cells": []}))
        harmless(lab.bench("score", folder), says="cannot be read")

    def test_names_on_the_command_line(self, lab: Lab) -> None:
        """Of folders, files, options and values."""
        done = lab.bench_run("--out", lab.folder / f"out{FILE}")
        assert done.code == 0
        harmless(done, says=f"out{one_line(FILE)}")
        for arguments in (
            ("run", "--task", NASTY, "--model", "tiny"),
            ("run", "--task", "counting", "--model", NASTY),
            ("run", "--task", "counting", "--model", f"nobody/{NASTY}"),
            ("run", "--task", "counting", "--model", "tiny", "--axis", NASTY),
            ("run", "--task", "counting", "--model", "tiny", "--samples", NASTY),
            ("run", f"--{NASTY}"),
            (NASTY,),
            ("score", NASTY),
            ("import", NASTY),
            ("report", NASTY),
            ("export", NASTY),
            ("tasks", "check", f"{NASTY}.yaml"),
        ):
            done = lab.bench(*arguments)
            assert done.code, arguments
            assert harmless(done, says="").strip()

    def test_a_traceback_for_who_asks(self) -> None:
        """With `--debug`, of an error with a nasty text."""
        code = (
            "import sys\nfrom eyechart.harness import cli\n"
            "from eyechart.harness.cli.work import models\n"
            f"def fails(**_):\n    raise RuntimeError({NASTY!r})\n"
            "models.list_models = fails\nsys.argv = ['bench', '--debug', 'models']\ncli.main()"
        )
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        said = done.stderr.decode()
        assert done.returncode == 1
        assert "RuntimeError: \\x1b]0;named\\x07\\x1b[2J\\x00" in said
        assert not {c for c in said if ord(c) in STEERING}

    def test_logs_that_nobody_handles(self, lab: Lab) -> None:
        """As asyncio's, of a task that failed unseen."""
        lab.monkeypatch.setattr(logging, "lastResort", None)
        terminal.take_logs()
        handler = logging.lastResort
        assert handler is not None
        handler.handle(logging.LogRecord("asyncio", logging.ERROR, "", 0, NASTY, (), None))
        said = lab.capture.readouterr()
        assert "\\x1b[2J" in said.err
        assert not {c for c in said.err if ord(c) in STEERING}

    def test_progress_of_a_task_with_a_nasty_name(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is drawn as it is: no markup, no control character."""

        async def follow() -> None:
            with live(f"[/red]{NASTY}", Progress(total=3)):
                await asyncio.sleep(0)

        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "w", encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stderr", stream)
            asyncio.run(follow())
        drawn = b""
        with contextlib.suppress(OSError):  # Linux says that the other end is closed by an error
            while part := os.read(ours, 65536):  # a terminal hands over in parts
                drawn += part
        shown = plain(drawn.decode())
        os.close(ours)
        assert "[/red]\\x1b]0;named" in shown
        assert not {c for c in shown if ord(c) in STEERING - {ord("\r")}}

    def test_correct_answers_are_counted_on_a_terminal_only(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A sample without a reply is neither right nor wrong."""
        wanted = lab.wanted(lengths=[3], samples=3, axes={"separator": ["none"]})
        script = iter([None, "Final answer: 77", BadRequestError("no")])
        lab.asked(wanted, lambda request: next(script) or right(request))
        display = LiveDisplay()
        assert display.judge(wanted) is None
        ours, theirs = pty.openpty()
        with os.fdopen(theirs, "w", encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stderr", stream)
            judge = display.judge(wanted)
        os.close(ours)
        assert judge is not None
        verdicts = {record.index: judge(record) for record in read_records(wanted.folder)}
        assert sorted(verdicts.values(), key=str) == [False, None, True]

    def test_a_key_is_in_no_talk(self, lab: Lab) -> None:
        """Whoever says it."""
        lab.monkeypatch.setenv("SOME_API_KEY", "planted-planted")
        done = lab.bench_run(
            "--model", lab.fake(ScriptedProvider([StopRunError("planted-planted")]))
        )
        assert "planted" not in done.err
        assert "***" in done.err


def closing(*numbers: int) -> Any:
    """What closes descriptors in a new process."""

    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def without_streams(*numbers: int) -> None:
    """Makes this process one that was started without these standard streams."""
    for number in numbers:
        with contextlib.suppress(OSError):
            os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)


RUN = ("run", "--task", "lab/plain.yaml", "--model", "slow/x", "--out", "results")


class TestStreams:
    """Standard streams that are closed, full or gone."""

    @pytest.mark.parametrize("number", [1, 2, None])
    def test_a_run_without_standard_streams(self, lab: Lab, number: int | None) -> None:
        """One of them, or all, as daemons start it: all is asked, the table is written, the code is
        right.
        """
        process: subprocess.Popen[bytes] | Forked
        if number is None:
            process = lab.slow(*RUN, delay_s=0, preexec_fn=closing(0, 1, 2))
        else:
            process = lab.forked(*RUN, delay_s=0, first=partial(without_streams, number))
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert err == b""
        assert len(records(lab.the_run())) == 3
        assert (lab.the_run() / TABLE).exists()

    def test_a_wrong_command_without_standard_streams(self, lab: Lab) -> None:
        """Its code is said, where nothing else can be."""
        command, closes = ("run", "--task", "none"), partial(without_streams, 0, 1, 2)
        process = lab.forked(*command, delay_s=0, first=closes)
        process.communicate(timeout=60)
        assert process.returncode == 2

    def test_score_without_stdout(self, lab: Lab) -> None:
        """The table is written though nobody reads it here."""
        lab.bench_run("--model", lab.model())
        (lab.the_run() / TABLE).unlink()
        score = ("score", str(lab.the_run()))
        process = lab.forked(*score, delay_s=0, first=partial(without_streams, 1))
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        assert (lab.the_run() / TABLE).exists()

    def test_a_stdout_that_is_full_loses_no_table(self, lab: Lab) -> None:
        """It is said once, code 1, and the runs that follow are reported too."""
        command = ("run", "--task", "lab", "--model", "slow/x", "--out", "results")
        with Path("/dev/full").open("w") as full:
            process = lab.slow(*command, delay_s=0, stdout=full)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        assert err.decode() == "bench: No space left on device: output\n"
        assert len(list(lab.out.rglob(TABLE))) == 3

    def test_a_reader_who_went_away(self, lab: Lab) -> None:
        """As `head` does: nothing is said, and the code is that of the run."""
        reading, writing = os.pipe()
        os.close(reading)
        process = lab.forked(*RUN, delay_s=0, stdout=writing)
        os.close(writing)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        assert (lab.the_run() / TABLE).exists()

    @pytest.mark.parametrize(("command", "code"), [(RUN, 0), (("run", "--task", "none"), 2)])
    def test_talk_that_cannot_be_said(self, lab: Lab, command: tuple[str, ...], code: int) -> None:
        """A full stderr changes nothing."""
        with Path("/dev/full").open("w") as full:
            process = lab.forked(*command, delay_s=0, stderr=full.fileno())
        process.communicate(timeout=60)
        assert process.returncode == code

    def test_a_terminal_that_goes_away(self, lab: Lab) -> None:
        """Progress is not drawn any more; the run goes on and its table is written."""
        ours, theirs = pty.openpty()
        command, closes = (*RUN, "--samples", "30"), partial(os.close, ours)
        process = lab.forked(*command, delay_s=0.05, first=closes, stderr=theirs)
        os.close(theirs)
        os.read(ours, 100)
        os.close(ours)
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert len(records(lab.the_run())) == 30
        assert (lab.the_run() / TABLE).exists()
