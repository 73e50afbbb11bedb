"""What the benchmarks share: processes with their time and memory, a server, a Markdown table.

No benchmark itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from eyechart.harness.plan.plan import Plan, output_budget, plan
from eyechart.harness.task.catalogue import built_in_files, open_task

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TASK = "counting/bernoulli"
LENGTHS = (10, 20, 50, 100, 200)
SEPARATORS = ("none", "comma")
CELLS = len(LENGTHS) * len(SEPARATORS)


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    wall_s: float
    cpu_s: float
    """User and system time of the process and of what it waited for."""
    peak_mb: float
    """Most resident memory."""
    out: str


def environment() -> dict[str, str]:
    """This one, with our packages in reach and no key."""
    known = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**known, "PYTHONPATH": str(ROOT)}


def run(command: Sequence[str | Path], folder: Path, **more: str) -> Cost:
    """Runs `command` in `folder` with `more` in its environment; its output goes to files there.

    Raises:
        SystemExit: it failed; its last words are shown.
    """
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    with out.open("wb") as out_file, err.open("wb") as err_file:
        started = perf_counter()
        child = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            env={**environment(), **more},
            stdout=out_file,
            stderr=err_file,
        )
        _, status, used = os.wait4(child.pid, 0)
        wall_s = perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        last = err.read_text(errors="replace")[-3000:]
        raise SystemExit(f"{list(map(str, command))} ended with {child.returncode}\n{last}")
    cpu_s = used.ru_utime + used.ru_stime
    return Cost(wall_s, cpu_s, used.ru_maxrss / 1024, out.read_text(errors="replace"))


def bench(*arguments: str | Path) -> list[str | Path]:
    """The command `bench` of this checkout."""
    return [sys.executable, "-m", "eyechart.harness", *arguments]


def bench_run(model: str, base_url: str, samples: int, connections: int, out: Path) -> Cost:
    """`bench run` of so many samples of `TASK` a cell, into the new folder `out`."""
    out.mkdir(parents=True)
    command = bench(
        *("run", "--task", TASK, "--lengths", ",".join(map(str, LENGTHS))),
        *("--axis", f"separator={','.join(SEPARATORS)}", "--samples", str(samples)),
        *("--model", model, "--base-url", base_url, "--max-connections", str(connections)),
        *("--out", out / "results"),
    )
    return run(command, out)


def samples_plan(samples: int, *, seed: int = 0) -> Plan:
    """What `bench_run` asks."""
    task = open_task(TASK, built_in_files()[TASK])
    return plan(
        task,
        lengths=LENGTHS,
        exact=True,
        samples=samples,
        axes={"separator": SEPARATORS},
        seed=seed,
    )


def write_bodies(path: Path, samples: int) -> None:
    """The bodies of `bench_run`'s requests, one a line."""
    with path.open("w", encoding="utf-8") as file:
        for sample in samples_plan(samples):
            body = {
                "model": "fake",
                "messages": [{"role": "user", "content": sample.prompt}],
                "max_tokens": output_budget(sample),
                "temperature": 0.0,
            }
            file.write(json.dumps(body) + "\n")


def bare_loop(base_url: str, bodies: Path, connections: int) -> Cost:
    """The same requests without a harness; `out` has the seconds of the requests alone."""
    command: list[str | Path] = [
        sys.executable,
        HERE / "bare_loop.py",
        base_url,
        bodies,
        str(connections),
    ]
    return run(command, bodies.parent)


@contextmanager
def local_server(*arguments: str) -> Iterator[str]:
    """The base URL of a `local_server.py` that runs until the block ends."""
    command = [sys.executable, str(HERE / "local_server.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def fetch(address: str) -> str:
    """What `address` says."""
    with urllib.request.urlopen(address, timeout=30) as response:  # noqa: S310  # loopback
        return cast("bytes", response.read()).decode()


def post(address: str, body: Mapping[str, Any]) -> Any:
    """What `address` answers to `body`, as JSON."""
    request = urllib.request.Request(  # noqa: S310  # loopback
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310  # loopback
        return json.loads(response.read())


def show(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a Markdown table; the first column is text."""
    print("| " + " | ".join(columns) + " |")
    print("| --- |" + " ---: |" * (len(columns) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def cheapest(costs: Sequence[Cost]) -> Cost:
    """The quickest round: what disturbs only ever adds."""
    return min(costs, key=lambda cost: cost.wall_s)
