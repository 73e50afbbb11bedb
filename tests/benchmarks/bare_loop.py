"""Sends ready bodies and reads the replies as JSON: what a harness is measured against.

    python tests/benchmarks/bare_loop.py BASE_URL BODIES.jsonl CONNECTIONS

One aiohttp session on asyncio's own loop, and as many workers as connections. Prints the seconds
from the first request to the last reply and how many there were.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter


async def by_aiohttp(base_url: str, lines: Iterator[bytes], connections: int) -> int:
    """How many requests were answered."""
    import aiohttp

    answered = 0
    address = f"{base_url}/chat/completions"
    headers = {"Content-Type": "application/json"}

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal answered
        for line in lines:
            async with session.post(address, data=line, headers=headers) as response:
                read = await response.json()
            answered += bool(read["choices"][0]["message"]["content"])

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(600)
    ) as session:
        await asyncio.gather(*(work(session) for _ in range(connections)))
    return answered


def main(base_url: str, bodies: str, connections: str) -> None:
    with Path(bodies).open("rb") as file:
        lines = (line.rstrip(b"\n") for line in file)
        started = perf_counter()
        answered = asyncio.run(by_aiohttp(base_url, lines, int(connections)))
        print(perf_counter() - started, answered)


if __name__ == "__main__":
    main(*sys.argv[1:])
