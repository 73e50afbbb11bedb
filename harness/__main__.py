"""The command `bench`, and `python -m harness`: heeds Ctrl-C before the rest is loaded."""

from __future__ import annotations

from harness.interrupts import end_at_once


def main() -> None:
    """The entry point."""
    end_at_once()
    try:
        from harness.cli import main as bench  # noqa: PLC0415  most of the time of `bench --help`

        bench()
    finally:
        end_at_once()  # while the interpreter ends


if __name__ == "__main__":
    main()
