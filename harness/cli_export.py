"""`bench export`: the tasks for other engines, the runs for the places where results are published.

Parses first and imports later, as `harness.cli` does.
"""

from __future__ import annotations

import typer

export_app = typer.Typer(
    help="Write tasks for other engines, and runs for where results are published.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
