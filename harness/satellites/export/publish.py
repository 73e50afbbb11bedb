"""`bench export` of runs: which runs may be published, and where their files go.

A run with samples that have no reply is refused unless the user allows it. The same run gives the
same files, byte for byte. A file that was not written by this export is not overwritten.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast, get_args

from eyechart.harness.analysis.samples.details import (
    RemadePrompts,
    RunDetails,
    prompts_of,
    read_details,
)
from eyechart.harness.cli.documents import print_files
from eyechart.harness.cli.readable import each_readable
from eyechart.harness.cli.terminal import warn
from eyechart.harness.errors import COMPLETE, INCOMPLETE, IncompleteError, JournalError, UsageError
from eyechart.harness.journal.files import replace_file
from eyechart.harness.satellites.export.every_eval_ever.aggregate import (
    Evaluation,
    Publisher,
    Relationship,
)
from eyechart.harness.satellites.export.every_eval_ever.samples import lines
from eyechart.harness.satellites.export.model_identity import HUB_NAME, UNKNOWN, Weights
from eyechart.harness.satellites.export.publishable import Publishable, read_publishable
from eyechart.harness.settings import checks
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.spec import exact_json
from eyechart.providers.naming import named

_BEGINNING = 4096
"""Characters at the start of a file that show whether this export wrote it."""
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)


def _publishables(
    folders: Sequence[Path], unread: list[str], judging: JudgeSettings, *, incomplete: bool
) -> list[Publishable]:
    """The runs to publish; the problem of each that cannot be read is added to `unread`.

    Raises:
        JournalError: no folder holds a run that can be read.
        IncompleteError: some runs have samples without a reply and `incomplete` is false.
    """
    distinct = {folder.resolve(): folder for folder in folders}
    read = partial(read_publishable, warn=warn, judging=judging)
    publishables = [*each_readable(distinct.values(), read, unread)]
    unfinished = [publishable for publishable in publishables if publishable.missing_text]
    if unfinished and not incomplete:
        raise IncompleteError(
            *(
                f"{publishable.run.folder}: {publishable.missing_text}; the command that made it "
                "asks them again, --incomplete publishes what there is"
                for publishable in unfinished
            )
        )
    for publishable in unfinished:
        warn(
            f"{publishable.run.folder} is incomplete, and its files say so: "
            f"{publishable.missing_text}"
        )
    return publishables


def every_eval_ever(
    folders: Sequence[Path],
    output: Path,
    publisher: Publisher,
    *,
    samples: bool = True,
    incomplete: bool = False,
    judging: JudgeSettings = JudgeSettings(),
    as_json: bool = False,
) -> int:
    """Writes a record of each run under `output`/data, and its samples beside it; returns the exit
    code.
    """
    unread: list[str] = []
    publishables = _publishables(folders, unread, judging, incomplete=incomplete)
    models = list(dict.fromkeys(publishable.run.manifest.model for publishable in publishables))
    if publisher.model_id is not None and len(models) > 1:
        raise UsageError(
            f"--model-id names one model, and the runs have {len(models)}: {', '.join(models)}"
        )
    evaluations = [Evaluation(publishable, publisher) for publishable in publishables]
    prompts = [_prompts(publishable) if samples else None for publishable in publishables]
    written = [
        path
        for evaluation, run_prompts in zip(evaluations, prompts, strict=True)
        for path in _write_record(evaluation, output, run_prompts)
    ]
    print_files(written, as_json=as_json)
    identities = (evaluation.model for evaluation in evaluations)
    unknown = (model.name for model in identities if model.developer == UNKNOWN)
    for name in dict.fromkeys(unknown):
        warn(f"the maker of {name!r} is unknown, and the datastore needs it: give --model-id")
    if publisher.organization == UNKNOWN:
        warn("the records do not name their publisher: give --organization and --relationship")
    return INCOMPLETE if unread else COMPLETE


def read_publisher(
    organization: str,
    relationship: str,
    *,
    benchmark: str,
    model_id: str | None,
    weights: str | None,
) -> Publisher:
    """The publisher that the options name; raises `UsageError` for what no record can hold."""
    if relationship not in get_args(Relationship):
        known = ", ".join(get_args(Relationship))
        raise UsageError(f"--relationship is one of {known}, not {relationship!r}")
    if weights is not None and weights not in get_args(Weights):
        raise UsageError(f"--weights is open, closed or unknown, not {weights!r}")
    if model_id is not None and not HUB_NAME.fullmatch(model_id):
        raise UsageError(f"--model-id must be ORG/NAME, not {model_id!r}")
    if not _FOLDER_NAME.fullmatch(benchmark):
        raise UsageError(
            f"--benchmark names a folder: letters, digits, '-', '_' and '.', not {benchmark!r}"
        )
    try:
        is_empty = not checks.text(organization).strip()
    except ValueError as error:
        raise UsageError(f"--organization {error}") from None
    if is_empty:
        raise UsageError("--organization is empty; leave it out if there is nothing to say")
    return Publisher(
        organization,
        cast("Relationship", relationship),
        benchmark,
        model_id,
        cast("Weights | None", weights),
    )


def _prompts(publishable: Publishable) -> RemadePrompts:
    prompts = prompts_of(publishable.run)
    if prompts.task is None:
        remedy = prompts.remedy or f"name its file with {named('tasks')}"
        raise UsageError(
            f"{publishable.run.folder}: its prompts cannot be made again, {prompts.why}; {remedy}, "
            "or leave the samples out with --no-samples"
        )
    return prompts


def _write_record(
    evaluation: Evaluation, output: Path, prompts: RemadePrompts | None
) -> list[Path]:
    """Writes the files of one run; returns their paths.

    Raises:
        JournalError: other files have these paths, or the files cannot be written.
        UsageError: a prompt cannot be made again.
    """
    aggregate, samples = output / evaluation.aggregate_path, output / evaluation.samples_path
    for path in (aggregate, samples):
        _refuse_others(path, evaluation.id)
    aggregate.parent.mkdir(parents=True, exist_ok=True)
    written, reference = [aggregate], None
    if prompts is None:
        samples.unlink(missing_ok=True)
    else:
        reference = _write_samples(evaluation, samples, prompts)
        written.append(samples)
    record = exact_json.dumps(evaluation.aggregate(reference), indent=True)
    replace_file(aggregate, record + b"\n")
    return written


def _write_samples(evaluation: Evaluation, path: Path, prompts: RemadePrompts) -> dict[str, object]:
    """Writes the samples; returns the record's reference to their file."""
    run = evaluation.publishable.run
    run_details = RunDetails(run, read_details(run), run.manifest.model)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as file:
            for line in lines(evaluation, run_details.details, _prompt_texts(run_details, prompts)):
                digest.update(line)
                file.write(line)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return {
        "format": "jsonl",
        "file_path": str(evaluation.samples_path),
        "hash_algorithm": "sha256",
        "checksum": digest.hexdigest(),
        "total_rows": len(run_details.details),
    }


def _prompt_texts(run_details: RunDetails, prompts: RemadePrompts) -> Iterator[str]:
    """The prompt of each detail; raises `UsageError` if one is unknown or was another one."""
    for detail, prompt in zip(run_details.details, prompts.of(run_details), strict=True):
        if prompt is None:
            why = "not what was asked: the task's generator or items changed"
            if detail.record.line is not None:
                why = "not known, since it was not recorded"
            raise UsageError(
                f"{run_details.run.folder}: the prompt of {detail.record.id} is {why}; "
                "--no-samples leaves the samples out"
            )
        yield prompt


def _refuse_others(path: Path, evaluation: str) -> None:
    """Raises `JournalError` if `path` is a file that is not of the evaluation with this id."""
    try:
        with path.open(encoding="utf-8") as file:
            ours = f'"{evaluation}"' in file.read(_BEGINNING)
    except FileNotFoundError:
        return
    except UnicodeDecodeError:
        ours = False
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    if not ours:
        raise JournalError(f"{path} is not a file of this run's; move it away or use another -o")
