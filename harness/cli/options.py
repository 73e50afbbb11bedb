"""Options and arguments that several verbs of `bench` share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from eyechart.harness.cli.completion import complete_models, complete_runs, complete_tasks, one_of
from eyechart.harness.cli.numbers import number, number_of, whole_of
from eyechart.harness.cli.terminal import warn


def examples(*lines: str) -> str:
    """The end of a verb's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def listed(given: Sequence[str]) -> list[str]:
    """The names in an option that takes several, separated by commas or given again; each once."""
    return list(dict.fromkeys(name.strip() for option in given for name in option.split(",")))


def command_of(context: typer.Context) -> str:
    """The command line with options from a file or the environment; "" if there are none."""
    verb: Any = context.command  # a `harness.cli.settings.Verb`
    settings = verb.settings(context)
    return shlex.join(["bench", *sys.argv[1:], *settings]) if settings else ""


def warner_for_default_axes(context: typer.Context) -> Callable[[str], None] | None:
    """A function that warns of an axis that tasks lack, if the axes come from a file or the
    environment: these are only for tasks that have them. `None` if the command line names the axes.
    """
    verb: Any = context.command  # a `harness.cli.settings.Verb`
    place = verb.place(context, "axis")
    return (lambda text: warn(f"{place}: {text}")) if place else None


def folder(given: str | Path) -> Path:
    if not str(given):
        raise typer.BadParameter("it is empty; name a folder, '.' for this one")
    return Path(given)


_TASK = typer.Option(
    "--task",
    "-t",
    metavar="NAME[,NAME]",
    help="Task, group, task file or folder of them.",
    autocompletion=complete_tasks,
)
TaskOption = Annotated[list[str], _TASK]
TaskUnlessStudyOption = Annotated[list[str] | None, _TASK]
TaskArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="Task, group, task file or folder of them.",
        autocompletion=complete_tasks,
    ),
]
_MODEL = typer.Option(
    "--model",
    "-m",
    metavar="NAME[,NAME]",
    help="provider/model, or a name that the server at --base-url has; 'tiny' and 'oracle:50' "
    "are built in.",
    autocompletion=complete_models,
)
ModelOption = Annotated[list[str], _MODEL]
ModelUnlessStudyOption = Annotated[list[str] | None, _MODEL]
NameOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the model at --base-url in tables, folders and pages, as lab/m8.",
    ),
]
LengthsOption = Annotated[
    str | None, typer.Option(metavar="N[,N]", help="Symbols in a row; default: the task's.")
]
SpreadOption = Annotated[
    str | None,
    typer.Option(
        metavar="bands|fifth|none",
        help="Bands around the lengths, or exact ones; default: as the task has it, and exact "
        "with --lengths, but bands with --adaptive.",
        autocompletion=one_of("bands", "fifth", "none"),
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Lengths and axes that the task file has under this name, such as those of a paper; "
        "other options go over it.",
    ),
]
SamplesOption = Annotated[
    int | None, typer.Option(metavar="N", parser=whole_of("samples"), help="Samples per cell.")
]
SeedOption = Annotated[
    int,
    typer.Option(
        metavar="N", parser=whole_of("seed"), help="Seed from which every sample is drawn."
    ),
]
TemperatureOption = Annotated[
    float,
    typer.Option(metavar="T", parser=number_of("temperature"), help="Temperature of the model."),
]
MaxTokensOption = Annotated[str, typer.Option(metavar="auto|N", help="Tokens a reply may have.")]
ApiOption = Annotated[
    str,
    typer.Option(
        metavar="chat|completions",
        help="completions: for base models.",
        autocompletion=one_of("chat", "completions"),
    ),
]
SystemOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="A system prompt; default: the task's.")
]
EffortOption = Annotated[
    str | None,
    typer.Option(
        metavar="WORD[,WORD]",
        help="How much a reasoning model thinks: low, medium, high, …; one run each.",
        autocompletion=one_of("minimal", "low", "medium", "high"),
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Names how the model is served, as bf16-fp8kv: a variant of it."
    ),
]
InterveneOption = Annotated[
    list[str] | None,
    typer.Option(
        "--intervene",
        metavar="CHANGE[,CHANGE]",
        help="Change the attention of tiny (and of hf/ in a probe), as window=64:4 or "
        "rope_scaling=yarn:2; none is the model as it is. Each is a variant.",
    ),
]
AdaptiveOption = Annotated[
    bool,
    typer.Option(
        "--adaptive",
        help="Ask where a reply tells most, until the effective length is known; --samples is then "
        "the most of a line.",
    ),
]
PrecisionOption = Annotated[
    float | None,
    typer.Option(
        metavar="OCTAVES",
        parser=number(),
        help="With --adaptive: width of the interval that is enough, 0.4 to 1; default: 0.75.",
    ),
]
MaxRequestsOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole_of("max_requests"),
        help="With --adaptive: samples to ask, at most.",
    ),
]
LogprobsOption = Annotated[
    bool, typer.Option("--logprobs", help="Keep the probabilities of the replies' tokens.")
]
AxisOption = Annotated[
    list[str] | None,
    typer.Option("--axis", metavar="AXIS=VALUE[,VALUE]", help="Values to run; 'all' for all."),
]
ThresholdOption = Annotated[
    float,
    typer.Option(
        metavar="SHARE", parser=number(), help="Accuracy from which a length counts as seen."
    ),
]
RelativeOption = Annotated[
    bool, typer.Option("--relative", help="SHARE of the accuracy at the shortest length.")
]
RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="Folder of a run.", autocompletion=complete_runs)
]
RunsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="RUN…", help="Folders of runs.", autocompletion=complete_runs),
]
OwnTasksOption = Annotated[
    str,
    typer.Option(
        "--task",
        "-t",
        metavar="NAME[,NAME]",
        help="Your own task files, to make prompts again.",
        autocompletion=complete_tasks,
    ),
]
RunKeptCodeOption = Annotated[
    bool,
    typer.Option(
        "--run-kept-code",
        help="Execute the generators that came with the runs, to make items again, and the scorers "
        "that they name. Only for runs that you trust.",
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="K/N", help="Ask only every N-th row, from row K on; 'bench merge' joins the N."
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option("--engine", metavar="ray", help="Ask through a Ray cluster instead of from here."),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="The cluster; without it (and RAY_ADDRESS) one starts on this machine.",
    ),
]
RayWorkersOption = Annotated[
    int | None,
    typer.Option(
        "--ray-workers",
        metavar="N",
        parser=whole_of("ray_workers"),
        help="Engines or workers; default: what the cluster has room for.",
    ),
]
OutOption = Annotated[
    Path,
    typer.Option("--out", metavar="FOLDER", parser=folder, help="Folder that holds the runs."),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Use what a study or bench.toml names and may be another's: addresses, code, files "
        "elsewhere.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, as docs/json.md says.")
]
