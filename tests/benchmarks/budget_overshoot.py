"""What a budget lets through: dollars spent, and what keeping to it costs in time.

    python tests/benchmarks/budget_overshoot.py [--budgets 0.000001,10] [--connections 64,512]

A server with prices takes 200 ms a reply and adds up what a vendor would ask. Its replies use all
of the tokens that they may have, a twentieth of them, or the twentieth at first and then all: that
one is for rules which expect of the next replies what the last ones took. Seconds are the server's
own, from the first question to the last answer; a run without a budget of as many samples is
beside them. `--before FOLDER` asks with the `bench` of another checkout as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from aiohttp import web

from tests.benchmarks.measure import ROOT, environment, show
from tests.faulty_server import serving

INPUT, OUTPUT = 2.5, 10.0
"""Dollars per million tokens."""
MOST_TOKENS = 30_000
"""Of a reply."""
SHARE = 1 / 20
SHORT = 100
"""Replies after which the server that deceives changes its ways."""
MODES = ("whole", "a twentieth", "short, then whole")
MODELS = f"openai/fake: {{prices: {{input: {INPUT}, output: {OUTPUT}, as_of: 2026-01-01}}}}\n"


@dataclass
class Vendor:
    """Answers, and adds up what that costs."""

    mode: str
    latency_s: float
    base_url: str = ""
    dollars: float = 0.0
    most: float = 0.0
    """Of one request."""
    asked: int = 0
    first_s: float = 0.0
    last_s: float = 0.0

    @property
    def seconds(self) -> float:
        """From the first question to the last answer."""
        return self.last_s - self.first_s

    def application(self) -> web.Application:
        """The one route."""
        application = web.Application()
        application.router.add_post("/v1/chat/completions", self._complete)
        return application

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked += 1
        self.first_s = self.first_s or perf_counter()
        used = self._usage(body, self.asked)
        asked, said = used["prompt_tokens"], used["completion_tokens"]
        self.dollars += (asked * INPUT + said * OUTPUT) / 1e6
        self.most = max(self.most, (asked * INPUT + body["max_tokens"] * OUTPUT) / 1e6)
        await asyncio.sleep(self.latency_s)
        self.last_s = perf_counter()
        message = {"role": "assistant", "content": "Final answer: 5"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"model": "fake", "choices": [choice], "usage": used})

    def _usage(self, body: dict[str, Any], number: int) -> dict[str, int]:
        short = self.mode == MODES[1] or (self.mode == MODES[2] and number <= SHORT)
        said = int(body["max_tokens"] * (SHARE if short else 1))
        return {"prompt_tokens": len(body["messages"][-1]["content"]), "completion_tokens": said}


def ask(
    given: argparse.Namespace,
    mode: str,
    connections: int,
    *,
    budget: float | None,
    samples: int,
    source: Path = ROOT,
) -> Vendor:
    """What the server saw of one `bench run`."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        serving(Vendor(mode, given.latency)) as vendor,
    ):
        folder = Path(temporary)
        models = folder / "models.yaml"
        models.write_text(MODELS)
        command = [
            *(sys.executable, "-m", "eyechart.harness", "run", "--task", "counting/ones"),
            *("--model", "fake", "--base-url", vendor.base_url, "--out", str(folder / "results")),
            *("--lengths", "5", "--axis", "separator=none", "--samples", str(samples)),
            *("--max-tokens", str(MOST_TOKENS), "--max-connections", str(connections)),
            *(() if budget is None else ("--budget", str(budget))),
        ]
        known = {**environment(), "PYTHONPATH": str(source), "EYECHART_MODELS": str(models)}
        done = subprocess.run(command, cwd=folder, env=known, capture_output=True, check=False)
        if done.returncode not in (0, 1) or not vendor.asked:
            raise SystemExit(done.stderr.decode(errors="replace"))
    return vendor


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budgets", default="0.000001,10", help="dollars")
    parser.add_argument("--connections", default="64,512")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout")
    given = parser.parse_args()
    rows: list[list[str]] = []
    for mode in MODES:
        for budget in map(float, given.budgets.split(",")):
            for connections in map(int, given.connections.split(",")):
                seen = ask(given, mode, connections, budget=budget, samples=given.samples)
                free = ask(given, mode, connections, budget=None, samples=seen.asked)
                row = [
                    *(mode, f"{budget:g}", str(connections), f"{seen.dollars:.2f}"),
                    f"{seen.dollars / budget:.3g}",
                    f"{(seen.dollars - budget) / seen.most:+.2f}",
                    *(str(seen.asked), f"{seen.seconds:.1f}", f"{free.seconds:.1f}"),
                ]
                if given.before is not None:
                    old = ask(
                        given,
                        mode,
                        connections,
                        budget=budget,
                        samples=given.samples,
                        source=given.before.resolve(),
                    )
                    over = f"{(old.dollars - budget) / old.most:+.2f}"
                    row += [f"{old.dollars:.2f}", over, str(old.asked), f"{old.seconds:.1f}"]
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
    print(f"replies after {given.latency:g} s, at most ${MOST_TOKENS * OUTPUT / 1e6:.2f} each;")
    print("of it: the share of the budget; over: beyond it, in worst cases of one request\n")
    columns = ["replies", "budget $", "connections", "spent $", "of it", "over", "requests", "s"]
    columns.append("s without a budget")
    if given.before is not None:
        columns += ["spent before $", "over before", "requests before", "s before"]
    show(columns, rows)


if __name__ == "__main__":
    main()
