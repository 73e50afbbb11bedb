"""The command `bench`."""

from __future__ import annotations

import gc

from eyechart.harness.cli.interrupts import end_at_once


def main() -> None:
    """The entry point: Ctrl-C is handled from here on, before the slow imports."""
    end_at_once()
    gc.set_threshold(50_000)  # what a command reads stays in memory: looking at it often is in vain
    try:
        from eyechart.harness.cli.app import main as bench

        bench()
    finally:
        end_at_once()  # while the interpreter ends
