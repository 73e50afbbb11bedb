"""`bench export` of runs: which may be published, and where their files go.

What others read must be whole and must stay: a run with samples that have no reply is refused
unless the user says otherwise, the same run gives the same files byte for byte, and a file that
somebody else made is not overwritten.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast, get_args

from harness import exact_json
from harness.analysis.details import Prompts, RunDetails, prompts_of, read_details
from harness.analysis.stats import Threshold
from harness.cli.terminal import echo, warn
from harness.errors import COMPLETE, IncompleteError, JournalError, UsageError
from harness.export.every_eval_ever.aggregate import Evaluation, Publisher, Relationship
from harness.export.every_eval_ever.samples import lines
from harness.export.hub import FOLDER, HEADER, Benchmark, hub_files
from harness.export.model_identity import HUB_NAME, UNKNOWN, Weights
from harness.export.publishable import Publishable, publishable
from harness.journal.files import replace_file
from harness.plan.selection import check_text

DATASET = "eyechart/eyechart"
"""Stands for the benchmark's data set on the hub until there is one."""
_BEGINNING = 4096
"""Characters of a file by which it is known."""
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_DATASET = re.compile(rf"{_FOLDER_NAME.pattern}/{_FOLDER_NAME.pattern}", re.ASCII)


def _runs(folders: Sequence[Path], *, incomplete: bool) -> list[Publishable]:
    """The runs to publish.

    Raises:
        JournalError: one is no run.
        IncompleteError: some have samples without a reply and `incomplete` is false.
    """
    once = {folder.resolve(): folder for folder in folders}
    runs = [publishable(folder, warn) for folder in once.values()]
    lacking = [of for of in runs if of.missing]
    if lacking and not incomplete:
        raise IncompleteError(
            *(
                f"{of.run.folder}: {of.missing}; the command that made it asks them again, "
                "--incomplete publishes what there is"
                for of in lacking
            )
        )
    for of in lacking:
        warn(f"{of.run.folder} is incomplete, and its files say so: {of.missing}")
    return runs


def every_eval_ever(
    folders: Sequence[Path],
    output: Path,
    publisher: Publisher,
    *,
    samples: bool = True,
    incomplete: bool = False,
    tasks: str = "",
    threshold: Threshold = Threshold(),
) -> int:
    """Writes a record of each run under `output`/data, and its samples beside it; the exit code.

    `tasks` names the user's own task files, as `--task` does, so that prompts can be made again.
    """
    runs = _runs(folders, incomplete=incomplete)
    models = list(dict.fromkeys(of.run.manifest.model for of in runs))
    if publisher.model_id is not None and len(models) > 1:
        raise UsageError(
            f"--model-id names one model, and the runs are of {len(models)}: {', '.join(models)}"
        )
    evaluations = [Evaluation(of, publisher, threshold) for of in runs]
    prompts = [_prompts(of, tasks) if samples else None for of in runs]
    for one, known in zip(evaluations, prompts, strict=True):
        for path in _write_record(one, output, known):
            echo(str(path))
    unknown = (one.model.name for one in evaluations if one.model.developer == UNKNOWN)
    for name in dict.fromkeys(unknown):
        warn(f"nobody knows who made {name!r}, and the datastore asks: say it with --model-id")
    if publisher.organization == UNKNOWN:
        warn("the records do not say who publishes them: --organization and --relationship do")
    return COMPLETE


def read_publisher(
    organization: str,
    relationship: str,
    *,
    benchmark: str,
    model_id: str | None,
    weights: str | None,
) -> Publisher:
    """What the options say; raises `UsageError` on what cannot stand in a record."""
    if relationship not in get_args(Relationship):
        known = ", ".join(get_args(Relationship))
        raise UsageError(f"--relationship is one of {known}, not {relationship!r}")
    if weights is not None and weights not in get_args(Weights):
        raise UsageError(f"--weights is open, closed or unknown, not {weights!r}")
    if model_id is not None and not HUB_NAME.fullmatch(model_id):
        raise UsageError(f"--model-id wants ORG/NAME, not {model_id!r}")
    if not _FOLDER_NAME.fullmatch(benchmark):
        raise UsageError(
            f"--benchmark names a folder: letters, digits, '-', '_' and '.', not {benchmark!r}"
        )
    _check_texts({"--organization": organization})
    return Publisher(
        organization,
        cast("Relationship", relationship),
        benchmark,
        model_id,
        cast("Weights | None", weights),
    )


def _check_texts(given: Mapping[str, str | None]) -> None:
    """Raises `UsageError` where an option that is given says nothing, or what no file can hold."""
    for option, text in given.items():
        check_text(option, text)
        if text is not None and not text.strip():
            raise UsageError(f"{option} is empty; leave it out if there is nothing to say")


def _prompts(of: Publishable, tasks: str) -> Prompts:
    found = prompts_of(of.run, tasks)
    if found.task is None:
        raise UsageError(
            f"{of.run.folder}: its prompts cannot be made again, {found.why}; name its file with "
            "--task, or leave the samples out with --no-samples"
        )
    return found


def _write_record(one: Evaluation, output: Path, prompts: Prompts | None) -> list[Path]:
    """Writes the files of one run; their paths.

    Raises:
        JournalError: there are files of others in their place, or they cannot be written.
        UsageError: a prompt cannot be made again.
    """
    aggregate, samples = output / one.aggregate_path, output / one.samples_path
    for path in (aggregate, samples):
        _refuse_others(path, lambda text: f'"{one.id}"' in text[:_BEGINNING])
    aggregate.parent.mkdir(parents=True, exist_ok=True)
    written, reference = [aggregate], None
    if prompts is None:
        samples.unlink(missing_ok=True)
    else:
        reference = _write_samples(one, samples, prompts)
        written.append(samples)
    said = exact_json.dumps(one.aggregate(reference), indent=True)
    replace_file(aggregate, said + b"\n")
    return written


def _write_samples(one: Evaluation, path: Path, prompts: Prompts) -> dict[str, object]:
    """Writes them; how the record refers to them."""
    run = one.of.run
    shown = RunDetails(run, read_details(run), run.manifest.model)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as file:
            for line in lines(one, shown.details, _made_again(shown, prompts)):
                digest.update(line)
                file.write(line)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return {
        "format": "jsonl",
        "file_path": str(one.samples_path),
        "hash_algorithm": "sha256",
        "checksum": digest.hexdigest(),
        "total_rows": len(shown.details),
    }


def _made_again(shown: RunDetails, prompts: Prompts) -> Iterator[str]:
    for detail, prompt in zip(shown.details, prompts.of(shown), strict=True):
        if prompt is None:
            raise UsageError(
                f"{shown.run.folder}: the prompt of {detail.record.id} is not what was asked: "
                "the task's generator or items changed; --no-samples leaves the samples out"
            )
        yield prompt


def read_benchmark(
    dataset: str,
    revision: str | None,
    *,
    url: str | None,
    name: str | None,
    user: str | None,
    org: str | None,
) -> Benchmark:
    """What the options say; raises `UsageError` on what the form does not have."""
    if not _DATASET.fullmatch(dataset):
        raise UsageError(f"--dataset wants a data set of the hub, ORG/NAME, not {dataset!r}")
    names = {"--source-name": name, "--source-user": user, "--source-org": org}
    _check_texts(names | {"--revision": revision, "--source-url": url})
    if url is None and any(names.values()):
        raise UsageError("--source-name, --source-user and --source-org need a --source-url")
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(f"--source-url must begin with http:// or https://, not {url!r}")
    return Benchmark(dataset, revision, url, name, user, org)


def hf_eval_results(
    folders: Sequence[Path],
    output: Path,
    benchmark: Benchmark,
    *,
    per_length: bool = False,
    incomplete: bool = False,
    threshold: Threshold = Threshold(),
) -> int:
    """Writes a file of each condition under `output`/.eval_results; the exit code.

    Raises:
        UsageError: the runs are of several models, which have a page each.
    """
    runs = _runs(folders, incomplete=incomplete)
    models = list(dict.fromkeys(of.run.manifest.model for of in runs))
    if len(models) > 1:
        raise UsageError(
            f"runs of {len(models)} models ({', '.join(models)}) go to as many model pages; "
            "export those of one model at a time"
        )
    files: dict[str, str] = {}
    for of in runs:
        for name, text in hub_files(of, benchmark, threshold, per_length=per_length):
            if files.setdefault(name, text) != text:
                raise UsageError(
                    f"two of the runs are of one task, version and settings and go to {name}; "
                    "name one of them"
                )
    for name, text in files.items():
        path = output / FOLDER / name
        _refuse_others(path, lambda text: text.startswith(HEADER))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
        echo(str(path))
    if benchmark.dataset == DATASET:
        warn(f"there is no data set {DATASET} on the hub yet: name your benchmark with --dataset")
    return COMPLETE


def _refuse_others(path: Path, is_ours: Callable[[str], bool]) -> None:
    """Raises `JournalError` if somebody else's file is in the place of one of ours."""
    try:
        with path.open(encoding="utf-8") as file:
            ours = is_ours(file.read(_BEGINNING))
    except FileNotFoundError:
        return
    except UnicodeDecodeError:
        ours = False
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    if not ours:
        raise JournalError(f"{path} is not a file of this run's; move it away or use another -o")
