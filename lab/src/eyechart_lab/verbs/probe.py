"""Measure the inside of a model.

Options are parsed before slow modules are imported, as in `harness.cli.app`.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from eyechart.harness.cli.parsing.options import (
    PLANNED,
    JsonOption,
    TrustOption,
    command_of,
    examples,
    listed,
    settings_of,
    takes,
    warner_for_default_axes,
)
from eyechart.harness.cli.parsing.settings import AskingVerb
from eyechart.harness.cli.terminal import warn

app = typer.Typer(rich_markup_mode=None)
PROBE_EXAMPLES = examples(
    "bench probe --model tiny --task counting/ones --axis separator=all --lengths 5,50,500",
    "bench probe --model tiny --task copying/first_last --measure collapse,attention",
    "bench probe --model tiny,changed/window=64:4/tiny --task counting",
    "bench probe --model hf/PATH --task counting/ones --device cuda",
)


def _measures(given: list[str] | None) -> list[str]:
    """The measures that are named, all usual ones where none is."""
    from eyechart_lab.probe.measures.catalogue import check_measures

    return [*check_measures(listed(given or []))]


@app.command(epilog=PROBE_EXAMPLES, cls=AskingVerb)
@takes("task", *PLANNED, "system", "out", task=..., samples=3)
def probe(
    context: typer.Context,
    *,
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            metavar="NAME[,NAME]",
            help="tiny, tiny/FOLDER, hf/FOLDER with a model of Hugging Face, gguf/FILE; "
            "changed/CHANGE/MODEL is one of these with its attention changed, as "
            "changed/window=64:4/tiny.",
        ),
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            metavar="NAME[,NAME]",
            callback=_measures,
            help="Measures to take; default: all but lipschitz, which is slow, and readout, which "
            "needs 10 rows of a line.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Where the model runs: cpu, cuda, mps, cuda:1."),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code", help="Execute Python code in the folder of a model of hf/."
        ),
    ] = False,
    trust: TrustOption = False,  # noqa: ARG001  `Verb` reads it
    as_json: JsonOption = False,
    **given: Any,
) -> None:
    """Measure the inside of a model on the samples that 'bench run' asks.

    The same command again continues where it stopped; more lengths, samples, conditions or measures
    grow the same probe.
    """
    from eyechart.harness.face.options import shaping
    from eyechart.harness.plan import selection
    from eyechart.providers.base import ModelSettings
    from eyechart.providers.registry.model_name import parse_model
    from eyechart_lab.probe.probe_command import ProbedModel
    from eyechart_lab.probe.probe_command import probe as probe_models

    asked = settings_of(given)
    plans = selection.plans(asked, leave_out=warner_for_default_axes(context))
    selection.refuse_turns(plans, "a probe")
    settings = shaping(asked, selection.system_prompt(plans, asked.system))
    models = []
    for name in map(parse_model, listed(model)):
        opened = ModelSettings(
            name.model,
            api=settings.api,
            system=settings.system,
            device=device,
            trust_remote_code=trust_remote_code,
            notify=warn,
        )
        models.append(ProbedModel(name, opened))
    raise typer.Exit(
        probe_models(
            plans,
            models,
            measure or [],
            settings=settings,
            out=asked.out,
            command=command_of(context),
            as_json=as_json,
        )
    )
