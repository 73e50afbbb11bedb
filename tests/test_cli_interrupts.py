"""Ctrl-C before there is an event loop: one line, code 130, wherever the program is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.test_imports import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab

INTERRUPTS = """\
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0)
"""
SWALLOWS = f"""\
try:
{"".join(f"    {line}" + chr(10) for line in INTERRUPTS.splitlines())}
except BaseException:
    raise ImportError("no such luck") from None
"""
"""As modules written in C take an exception for one of their own."""


def bench(
    folder: Path, *arguments: str, module: str = "harness", ignored: bool = False
) -> tuple[int, str]:
    """Runs the command with `folder` before all other modules; code, stderr."""
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("module", "loading", "code"),
    [
        ("harness", "typer", INTERRUPTS),
        ("harness", "orjson", SWALLOWS),
        ("harness", "jinja2", INTERRUPTS),
        ("eyechart.harness", "typer", SWALLOWS),
        ("eyechart.harness", "orjson", INTERRUPTS),
        ("eyechart.harness", "jinja2", SWALLOWS),
    ],
)
def test_an_interrupt_while_a_module_is_loaded(
    tmp_path: Path, module: str, loading: str, code: str
) -> None:
    """Of the command line, or of a verb; also where the module forgets it."""
    (tmp_path / f"{loading}.py").write_text(code)
    command = ("tasks", "show", "counting/ones")
    assert bench(tmp_path, *command, module=module) == (130, "interrupted\n")


def test_an_interrupt_while_a_verb_works(lab: Lab) -> None:
    """It is an exception there, so that what is open is closed; and still one line."""
    rows = lab.ones.parent / "rows.py"
    body = "    import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\n"
    rows.write_text(rows.read_text().replace("    row =", f"{body}    row ="))
    assert bench(lab.folder, "tasks", "check", str(lab.ones)) == (130, "interrupted\n")


def test_an_interrupt_while_the_interpreter_ends(tmp_path: Path) -> None:
    """Neither a traceback nor silence."""
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    )
    assert bench(tmp_path, "--version") == (130, "interrupted\n")


def test_an_interrupt_that_is_ignored(lab: Lab) -> None:
    """Under nohup it stays so, all the way."""
    (lab.folder / "jinja2_loaded.py").write_text(INTERRUPTS)
    rows = lab.ones.parent / "rows.py"
    rows.write_text("import jinja2_loaded\n" + rows.read_text())
    code, err = bench(lab.folder, "tasks", "check", str(lab.ones), ignored=True)
    assert (code, err) == (0, "")
