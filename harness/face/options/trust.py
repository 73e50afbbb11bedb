"""Decides which settings in a file need a confirmation, because somebody else may have written the
file.

A study, `bench.toml` and `[tool.eyechart]` can come with a stranger's folder. Such a file must not
send a key to an address that it names, load code, or reach outside its folder, unless the command
line says so with the switch `trust`. The functions say why a part of a file needs that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from eyechart.harness.errors import UnknownTaskError
from eyechart.harness.task.catalogue import find, installed_file, open_task
from eyechart.providers.base import ProviderError
from eyechart.providers.naming import named
from eyechart.providers.registry.model_name import parse_model

TRUST = named("trust")
NOT_TRUSTED = f"this study may come from somebody else: add {TRUST} if you trust it"
"""Confirms what a file asks for."""


def is_outside(folder: Path, path: str) -> bool:
    """Whether a path leads outside `folder`, also through a link."""
    try:
        return not Path(path).expanduser().resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # no such user, a loop of links, no file's name
        return True


def why_model(folder: Path, name: str) -> str | None:
    """Why the name of a model in a file of `folder` needs a confirmation; `None` if it does not.

    A name that is no path, such as that of a model on a hub, needs none.
    """
    with suppress(ProviderError):  # the command reports a wrong name
        if code := parse_model(name).executes:
            return f"{name!r} executes the code in {code}"
    given = name.partition("/")[2]
    is_path = given[:1] in ("/", "~", ".") or ".." in Path(given).parts or _exists(given)
    is_doubtful = bool(given) and is_path and is_outside(folder, given)
    return f"{name!r} is a file outside this folder" if is_doubtful else None


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def why_tasks(folder: Path, names: str) -> Iterator[str]:
    """Why tasks that a file of `folder` names need a confirmation; their code is not executed.

    A name that is no task needs none: the command reports it, and opens no task.

    Raises:
        TaskFileError: a task file has mistakes, so what it would do is not known.
    """
    files: Mapping[str, Path] = {}
    with suppress(UnknownTaskError):
        files = find(names)
    for name, path in files.items():
        if installed_file(name) == path:
            continue
        spec = open_task(name, path, trial=False).spec
        code = [
            function.rpartition(":")[0] for function in (spec.generator, spec.scorer) if function
        ]
        beside = [str(path.parent / file) for file in (*code, spec.items) if file]
        if any(is_outside(folder, file) for file in (str(path), *beside)):
            yield f"task {name!r} uses a file outside this folder"
        elif code:
            yield f"task {name!r} executes the code in {' and '.join(dict.fromkeys(code))}"
