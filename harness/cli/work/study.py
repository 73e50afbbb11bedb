"""`bench study`: studies listed, shown and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eyechart.harness.cli.documents import print_document
from eyechart.harness.cli.failures import explain, lines_of
from eyechart.harness.cli.terminal import echo, say, warn
from eyechart.harness.cli.work.dry_run.dry_run import conditions_text
from eyechart.harness.cli.work.models_asked import warn_of_unknown
from eyechart.harness.errors import COMPLETE, EyechartError
from eyechart.harness.face.options.study import study_runs
from eyechart.harness.study.reading import built_in, find_study, read_study
from eyechart.providers.base import ProviderError


def list_studies(*, as_json: bool) -> None:
    studies = [read_study(path).spec for path in built_in()]
    if as_json:
        fields = {"name", "version", "title"}
        print_document({"studies": [one.model_dump(include=fields) for one in studies]})
        return
    echo(*(f"{one.name}@{one.version}  {one.title}" for one in studies))


def show_study(name: str, *, trusts: bool) -> None:
    """Prints a study's file, and on stderr how it is cited."""
    study = read_study(find_study(name))
    spec = study.spec
    echo(*study.text.rstrip("\n").split("\n"))
    runs = study_runs(study, {"model": ["tiny"]}, notify=warn, trusts=trusts)
    say(f"cited as: Eyechart study {spec.name}, version {spec.version} ({runs.label})")


def check_studies(names: Sequence[str], *, trusts: bool, as_json: bool) -> int:
    """Checks studies; prints what each would ask, or its mistakes. Executes the code of the tasks
    that they name, and with `trusts` also that of the user's own files.
    """
    code = COMPLETE
    documents: list[dict[str, Any]] = []
    for name in names:
        try:
            study = read_study(find_study(name))
            models = [] if study.spec.models else ["tiny"]
            runs = study_runs(study, {"model": models}, notify=warn, trusts=trusts)
        except (EyechartError, ProviderError) as error:
            code = max(code, error.exit_code)
            if as_json:
                documents.append({"study": name, "problems": lines_of(error)})
            else:
                explain(error)
            continue
        warn_of_unknown(runs.models)
        if as_json:
            documents.append({"study": runs.label, "problems": []})
            continue
        labels = [] if models else [options.model.label for options in runs.models]
        parts = _counted(len(runs.plans), "task"), _counted(len(labels), "model")
        echo(f"{runs.label}: {', '.join(parts)}; no mistakes")
        echo(*(f"  {plan.task.name}: {conditions_text(plan)}" for plan in runs.plans))
        echo(*(f"  {label}" for label in labels))
    if as_json:
        print_document({"studies": documents})
    return code


def _counted(number: int, noun: str) -> str:
    """`2 tasks`, `no models`."""
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"
