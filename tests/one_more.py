"""The program with one more entry in a module of `harness/score`, in a process of its own.

    python -m tests.one_more MODULE BEFORE ENTRY < STEPS

puts the text ENTRY in front of the text BEFORE in MODULE.py, before anything else is imported. Then
it takes the steps, a JSON list: a text is Python code, a list the arguments of `bench`, in which
`*` stands for any name. It prints a
JSON list with `[exit code, stdout, stderr]` of each `bench`.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[1]


def with_entry(
    folder: Path, module: str, before: str, entry: str, steps: list[list[str] | str]
) -> list[tuple[int, str, str]]:
    """What each `bench` of `steps` says in `folder`; see the module's docstring."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.one_more", module, before, entry],
        input=json.dumps([str(folder), *steps]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def _add(module: str, before: str, entry: str) -> None:
    name = f"eyechart.harness.score.{module}"
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    changed = importlib.util.module_from_spec(spec)
    sys.modules[name] = changed
    text = Path(spec.origin).read_text(encoding="utf-8")
    assert text.count(before) == 1, before
    code = compile(text.replace(before, entry + before), spec.origin, "exec")
    exec(code, changed.__dict__)  # noqa: S102  our own text


def _bench(arguments: list[str]) -> tuple[object, str, str]:
    from eyechart.harness.cli import main

    found = [sorted(map(str, Path().glob(one))) if "*" in one else [one] for one in arguments]
    sys.argv = ["bench", *(one for names in found for one in names)]
    code: object = 0
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


def _main() -> None:
    _add(*sys.argv[1:])
    folder, *steps = json.load(sys.stdin)
    os.chdir(folder)
    said = []
    for step in steps:
        if isinstance(step, str):
            exec(step, {})  # noqa: S102  of a test
        else:
            said.append(_bench(step))
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    _main()
