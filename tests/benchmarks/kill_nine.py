"""`kill -9` of `bench run` at random moments of a run against a server that goes wrong.

    python tests/benchmarks/kill_nine.py [--kills 20] [--samples 4000] [--seed 0]

The same command is started and killed, again and again, and at last left to finish. Every fifth
kill comes soon after the start of the process, the others after its first request. Counted are:
answers that a journal had after a kill and the last one has not; prompts that were asked although
the journal had their answer; and prompts answered more than once, which can only be those in flight
at a kill. The table must be that of a run that nobody disturbed. Ends with 1 where any of it fails.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import SAMPLES
from tests.benchmarks.measure import bench, environment, run, show
from tests.faulty_server import FAULTS, Faults, FaultyServer, serving

LENGTHS = (50, 100)
CONNECTIONS = 64


@dataclass
class Kills:
    """What was seen at each kill."""

    command: list[str]
    folder: Path
    server: FaultyServer
    known: dict[str, str] = field(default_factory=dict)
    """Prompt -> its journal line's id, for all that any journal had an answer to."""
    asked_by_then: list[tuple[set[str], Counter[str]]] = field(default_factory=list)
    """After each kill: the prompts with an answer, and how often each prompt had been asked."""

    def journal(self) -> dict[str, str]:
        """Prompt -> sample id, of the answers that the journal has now."""
        found = {}
        for path in self.folder.rglob(SAMPLES):
            for line in path.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n") and (read := orjson.loads(line)).get("failure") is None:
                    found[read["prompt_hash"]] = read["id"]
        return found

    def strike(self, after_s: float, *, at_start: bool) -> bool:
        """Starts the command and kills it after its start or its first request; was it alive?"""
        before = self.server.counters.requests.total()
        child = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while not at_start and self.server.counters.requests.total() == before:
            if child.poll() is not None:
                break
            time.sleep(0.005)
        time.sleep(after_s)
        alive = child.poll() is None
        child.kill()
        child.wait()
        while self.server.counters.concurrent:  # what was in flight comes to nobody
            time.sleep(0.01)
        answers = self.journal()
        self.known |= answers
        self.asked_by_then.append((set(answers), self.server.counters.requests.copy()))
        return alive

    def asked_again(self) -> int:
        """Prompts that were asked after a kill although the journal had their answer."""
        now = self.server.counters.requests
        return sum(
            any(
                now[prompt] != before[prompt]
                for answers, before in self.asked_by_then
                if prompt in answers
            )
            for prompt in self.known
        )


def command(url: str, samples: int, out: Path) -> list[str]:
    """One and the same, every time."""
    wanted = bench(
        *("run", "--task", "counting/bernoulli", "--lengths", ",".join(map(str, LENGTHS))),
        *("--samples", str(samples // (2 * len(LENGTHS))), "--model", "vllm/fake"),
        *("--base-url", url, "--max-connections", str(CONNECTIONS), "--out", str(out)),
    )
    return list(map(str, wanted))


def table(out: Path) -> str:
    """What the only run's `table.csv` says."""
    (path,) = out.rglob(TABLE)
    return path.read_text()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--samples", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=1.5, help="seconds before a kill")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of the server's")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    faults = Faults(FAULTS, given.seed, most=2, share=0.02)
    server = FaultyServer(faults, given.latency)
    with tempfile.TemporaryDirectory() as temporary, serving(server):
        folder = Path(temporary) / "killed"
        folder.mkdir()
        kills = Kills(command(server.base_url, given.samples, folder / "results"), folder, server)
        rows = []
        for number in range(given.kills):
            alive = kills.strike(rng.uniform(0, given.longest), at_start=number % 5 == 0)
            rows.append((alive, len(kills.asked_by_then[-1][0])))
        print(f"{sum(alive for alive, _ in rows)} of {given.kills} kills struck a live process;")
        print("answers in the journal after each: " + " ".join(str(row[1]) for row in rows))
        run(kills.command, folder)
        killed, last = table(folder), kills.journal()
        manifests = len(list(folder.rglob(MANIFEST)))
        twice = sum(count > 1 for count in server.counters.answers.values())
        again, faulty = kills.asked_again(), server.counters.faults.total()
        lost = len(set(kills.known) - set(last))
        undisturbed = FaultyServer()
        with serving(undisturbed):
            calm = Path(temporary) / "calm"
            calm.mkdir()
            run(command(undisturbed.base_url, given.samples, calm / "results"), calm)
            same = table(calm) == killed
    print()
    show(
        ["after all", "number"],
        [
            ["samples", f"{given.samples:,}"],
            ["faults met", f"{faulty:,}"],
            ["answers lost", str(lost)],
            ["asked again though answered in the journal", str(again)],
            [
                "answered twice (in flight at a kill)",
                f"{twice} of at most {given.kills * CONNECTIONS}",
            ],
            ["run folders", str(manifests)],
            ["table as undisturbed", "yes" if same else "NO"],
        ],
    )
    complete = len(last) == given.samples and manifests == 1
    if lost or again or not same or not complete or twice > given.kills * CONNECTIONS:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
