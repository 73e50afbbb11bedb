"""The task of a run, opened again to make its prompts: from a task file, or from what the run kept.

A run may come from a stranger, so code that came with it is executed only if the user says so. The
spec in the manifest and kept items are data: they are read, and prompts are rendered in the
sandbox.
"""

from __future__ import annotations

from pathlib import Path

from eyechart.harness.errors import AbsentTaskError, ChangedTaskError
from eyechart.harness.journal.kept import KEPT, content_hash, is_kept, read_kept
from eyechart.harness.journal.manifest import Manifest
from eyechart.harness.plan.own_tasks import remembered
from eyechart.harness.settings.judging import JudgeSettings
from eyechart.harness.task.catalogue import Task, code_files, find, open_task, reopen
from eyechart.harness.task.functions import ItemError
from eyechart.harness.task.generator import ItemsFileError
from eyechart.providers.naming import named, turned_on

_NAME_IT = f"name its file with {named('tasks')}"
_EXECUTE = f"or execute the code that came with the run with {turned_on('run_kept_code')}"


class NoTaskError(Exception):
    """The task of a run cannot be opened. The message says why, in a few words."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.remedy = remedy
        """What the user can do; "" if nothing is known to help."""


def task_of(folder: Path, manifest: Manifest, settings: JudgeSettings = JudgeSettings()) -> Task:
    """The task of the run in `folder`; `settings.tasks` names the user's task files.

    The file that `catalogue.reopen` finds comes first, if its content is the one in the run's
    manifest; then the user's own file, if the user has run it here (`plan.own_tasks`); then the
    spec of the manifest with the kept file of the items. A kept generator is executed from a file
    with the same content that is installed or the user's. The kept file itself is executed only
    with `settings.run_kept_code`.

    Raises:
        NoTaskError: there is no such task.
        UnknownTaskError: `settings.tasks` names no task file.
        TaskFileError: a file has mistakes.
    """
    try:
        task = reopen(manifest.task, manifest.task_digest, others=settings.tasks)
    except AbsentTaskError:
        problem = NoTaskError(f"the task file of {manifest.task} is not at hand", _NAME_IT)
        own = None if settings.tasks or settings.run_kept_code else _own(manifest)
        task = own or _from_kept(folder, manifest, settings, problem)
    except ChangedTaskError:
        problem = NoTaskError(f"{manifest.task} has changed since this run")
        task = _from_kept(folder, manifest, settings, problem)
    try:
        _ = task.paired, task.lengths  # loads the file of its items
    except (ItemError, ItemsFileError) as error:
        raise NoTaskError(f"the items of {manifest.task} cannot be made: {error}") from None
    return task


def _own(manifest: Manifest) -> Task | None:
    """The user's own task file of the run, if the user has run it here and it has not changed."""
    task = remembered(manifest.task, manifest.task_digest)
    if task is None or not manifest.kept:
        return task
    return task if is_kept(manifest.kept, task.source) else None


def _from_kept(
    folder: Path, manifest: Manifest, settings: JudgeSettings, problem: NoTaskError
) -> Task:
    """The task of the run's manifest; raises `problem` where the run kept nothing."""
    spec = manifest.task_spec()
    content = read_kept(folder, manifest.kept)
    if content is None:
        raise problem
    copy = folder.resolve() / KEPT / manifest.kept
    if spec.items is not None:
        return Task(manifest.task, copy, spec.model_copy(update={"items": copy.name}))
    is_trusted = settings.run_kept_code
    source = copy if is_trusted else _same_file(manifest.task, content, settings.tasks)
    if source is None:
        raise NoTaskError(str(problem), f"{_NAME_IT}, {_EXECUTE}") from None
    function = (spec.generator or "").rpartition(":")[2]
    generator = f"{source.name}:{function}"
    return Task(manifest.task, source, spec.model_copy(update={"generator": generator}))


def _same_file(name: str, content: bytes, others: str) -> Path | None:
    """A file with this content: the installed generator of the task `name`, or one in `others`."""
    files = code_files(name)
    if others:
        files += [open_task(name, file, trial=False).source for name, file in find(others).items()]
    wanted = content_hash(content)
    return next(
        (file for file in files if file.is_file() and content_hash(file.read_bytes()) == wanted),
        None,
    )
