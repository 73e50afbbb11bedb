"""As many hostile inputs as there is time for: `python tests/benchmarks/hostile.py --minutes 60`.

Each case spoils one or several places of a run's manifest or journal, a task file, or the reply of
a server, and runs every verb over it; `tests/hostile.py` has the property that must hold. A case
that breaks it is printed with its number, and `--only NUMBER` runs it again. Ends with a table.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from eyechart.harness.cli import app
from eyechart.harness.face.options import run_options
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import SAMPLES
from eyechart.harness.run.limits import RunLimits
from tests.fake_server import Asked, Response, chat, fake_server
from tests.hostile import KEY, WRONG, World, as_json, changed, echoes, headers, places, replies

TASK = """\
version: 1
title: Ones
generator: rows.py:ones
lengths: [3, 5]
samples: 2
axes:
  separator:
    default: [none, comma]
    values: {none: "", comma: ","}
prompt: |
  How many ones? Write "{{ phrase }}" and then the number.
  {{ sequence }}
answer: integer
spread: none
"""
ROWS = """\
from eyechart.harness.spec import Item


def ones(rng, length):
    row = [rng.choice("01") for _ in range(length)]
    return Item(row, row.count("1"))
"""
MOST_PLACES = 3


@dataclass
class Done:
    """What one command left behind."""

    code: int
    out: str
    err: str


def bench(*arguments: str | Path) -> Done:
    """`bench` in this process; raises what has no line for the user."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["bench", *map(str, arguments)]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app.main()
            code: object = 0
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int), code
    return Done(code, out.getvalue(), err.getvalue())


def sound(folder: Path) -> None:
    """Two complete runs of a task."""
    (folder / "lab").mkdir()
    (folder / "lab" / "rows.py").write_text(ROWS)
    (folder / "lab" / "ones.yaml").write_text(TASK)
    for name in ("sound", "spoilt"):
        (folder / f"{name}.txt").write_text("Final answer: 2\nFinal answer: 1\nseven\n")
        with contextlib.chdir(folder):
            done = bench("run", "--task", "lab/ones.yaml", "--model", f"scripted/{name}.txt")
        assert done.code == 0, done


def read_all(world: World) -> None:
    """Every verb that reads runs."""
    runs = [path.parent for path in sorted((world.out / "runs").rglob(MANIFEST))]
    world.look()
    for run in runs:
        world.run("score", run)
        world.run("report", run, "-o", world.out / "report.html", "--task", "lab/ones.yaml")
        told = ("--organization", "X", "--relationship", "third_party", "--task", "lab/ones.yaml")
        world.run("export", "every-eval-ever", run, "-o", world.out / "e", *told)
    world.run("compare", *runs[:2], "-o", world.out / "compare.csv")
    world.run("leaderboard", "--out", world.out)
    more = ("--task", "lab/ones.yaml", "--model", "scripted/spoilt.txt", "--out", world.out)
    for command in (("run", *more), ("run", *more, "--samples", "3"), ("run", *more, "--fresh")):
        world.run(*command)


def spoil_json(rng: random.Random, value: Any) -> Any:
    """`value` with other values at some of its places, or with places missing."""
    for _ in range(rng.randint(1, MOST_PLACES)):
        at = rng.choice(list(places(value)))
        value = changed(value, at, ... if at and rng.random() < 0.2 else rng.choice(WRONG))
    return value


def spoil_bytes(rng: random.Random, content: bytes) -> bytes:
    """`content` with some bytes changed, left out or put in."""
    made = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(made) + 1)
        put = rng.randbytes(rng.randint(0, 3)) if rng.random() < 0.5 else b'"{[,]}:\x1b\x00\n'[:2]
        made[at : at + rng.randint(0, 3)] = put
    return bytes(made)


def spoil_file(rng: random.Random, world: World, name: str) -> None:
    """A run's manifest or journal."""
    (manifest,) = (world.out / "runs" / "scripted" / "spoilt.txt").rglob(MANIFEST)
    path = manifest.with_name(name)
    content = path.read_bytes()
    if rng.random() < 0.3:
        path.write_bytes(spoil_bytes(rng, content))
    elif name == MANIFEST:
        path.write_bytes(as_json(spoil_json(rng, orjson.loads(content))))
    else:
        lines = content.splitlines()
        one = as_json(spoil_json(rng, orjson.loads(rng.choice(lines))))
        path.write_bytes(one + b"\n" + content)
    read_all(world)


def spoil_task(rng: random.Random, world: World) -> None:
    """A task file."""
    path = world.folder / "lab" / "ones.yaml"
    path.write_bytes(spoil_bytes(rng, path.read_bytes()))
    world.look()
    for command in (("tasks", "check", path), ("tasks", "show", path)):
        world.run(*command)
    world.run("run", "--task", path, "--model", "scripted/spoilt.txt", "--out", world.out)


def spoil_reply(rng: random.Random, world: World) -> None:
    """A server's replies, one in three; then the same command at a sound server."""
    kind = rng.choice(["corpus", "echo", "json", "bytes"])
    body = chat("Final answer: 2")
    respond: Callable[[Asked], Response]
    if kind == "echo":
        _, respond = rng.choice(list(echoes()))
    else:
        made = {
            "corpus": lambda: rng.choice([*replies(), *headers()])[1],
            "json": lambda: Response(body=as_json(spoil_json(rng, body))),
            "bytes": lambda: Response(
                rng.choice((200, 200, 400, 500)), spoil_bytes(rng, as_json(body))
            ),
        }[kind]()

        def respond(_asked: Asked) -> Response:
            return made

    spoils = True

    def answer(asked: Asked, number: int) -> Response:
        if asked.path.endswith("/models"):
            return Response(body={"data": [{"id": "m", "max_model_len": 4096}]})
        spoilt = spoils and number % 3 == 1
        return respond(asked) if spoilt else Response(body=chat(f"Final answer: {number}"))

    with fake_server(answer, reads_json=False) as server:
        model = rng.choice(["vllm/m", "m"])
        command = ("run", "--task", "lab/ones.yaml", "--model", model, "--out", world.out)
        for spoils in (True, False):  # noqa: B007  read by `answer`
            world.look()
            world.run(*command, "--base-url", server.base_url, "--max-connections", "2")
        world.run("leaderboard", "--out", world.out)


KINDS: dict[str, Callable[[random.Random, World], None]] = {
    "manifest": partial(spoil_file, name=MANIFEST),
    "journal": partial(spoil_file, name=SAMPLES),
    "task": spoil_task,
    "reply": spoil_reply,
}


def case(number: int, seed: int, start: Path, place: Path) -> tuple[str, str]:
    """The kind of a case, and why it failed, if it did."""
    rng = random.Random(f"{seed}|{number}")
    kind = rng.choice(list(KINDS))
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(start, place)
    try:
        with contextlib.chdir(place):
            KINDS[kind](rng, World(place, bench))
    except Exception:  # noqa: BLE001  whatever it is, it is what we look for
        return kind, traceback.format_exc()
    return kind, ""


def main() -> None:
    """Runs cases until the time is over; exits with 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this case alone")
    given = parser.parse_args()
    os.environ |= {"OPENAI_API_KEY": KEY, "VLLM_API_KEY": KEY}
    quick = {"initial_backoff_s": 0, "max_backoff_s": 0, "max_rate_limited": 3, "max_attempts": 3}
    vars(run_options)["RunLimits"] = partial(RunLimits, **quick)
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        start, place = Path(folder) / "start", Path(folder) / "case"
        start.mkdir()
        sound(start)
        end_s = time.monotonic() + 60 * given.minutes
        number = given.only or 0
        while time.monotonic() < end_s:
            kind, why = case(number, given.seed, start, place)
            tried[kind] += 1
            if why:
                failed[kind] += 1
                print(f"case {number} ({kind}):\n{why}", flush=True)
            if given.only is not None:
                break
            number += 1
    print("| spoilt | cases | failed |\n| --- | ---: | ---: |")
    for kind in KINDS:
        print(f"| {kind} | {tried[kind]} | {failed[kind]} |")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
