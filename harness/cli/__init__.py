"""The command `bench`."""

from __future__ import annotations

import gc

from eyechart.harness.cli.interrupts import end_at_once


def main() -> None:
    """The entry point: Ctrl-C is handled from here on, before the slow imports."""
    end_at_once()
    # many objects and few cycles: a leaderboard takes 5 % less time
    gc.set_threshold(50_000, 50, 50)
    try:
        from eyechart.harness.cli.app import main as bench

        bench()
    finally:
        end_at_once()  # while the interpreter ends
