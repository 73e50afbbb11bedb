"""Options and arguments that several commands of `bench` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def examples(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


TaskOption = Annotated[
    str,
    typer.Option(
        "--task", "-t", metavar="NAME[,NAME]", help="Task, group, task file or folder of them."
    ),
]
TaskArgument = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="Task, group, task file or folder of them.")
]
AxisOption = Annotated[
    list[str] | None,
    typer.Option("--axis", metavar="AXIS=VALUE[,VALUE]", help="Values to run; 'all' for all."),
]
ThresholdOption = Annotated[
    float, typer.Option(metavar="SHARE", help="Accuracy from which a length counts as seen.")
]
RelativeOption = Annotated[
    bool, typer.Option("--relative", help="SHARE of the accuracy at the shortest length.")
]
RunsArgument = Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")]
OwnTasksOption = Annotated[
    str, typer.Option("--task", "-t", metavar="NAME[,NAME]", help="Your task files, for prompts.")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder that holds the runs.")]
