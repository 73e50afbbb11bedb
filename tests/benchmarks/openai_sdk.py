"""`bench run` with the openai provider against a bare loop over the same SDK.

    python tests/benchmarks/openai_sdk.py [--samples 4000] [--rounds 2] [--connections 64]

As `throughput.py`, with the SDK in both places: what is left between them is the harness.
"""

from __future__ import annotations

import argparse

from tests.benchmarks.throughput import compare


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--connections", type=int, default=64)
    given = parser.parse_args()
    compare("openai/fake", given.samples, given.rounds, given.connections, "--sdk")


if __name__ == "__main__":
    main()
