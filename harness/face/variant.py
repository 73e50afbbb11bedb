"""Variants of one model: how it is served (`--label`) and asked (`--effort`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.journal.manifest import find_runs, read_manifest
from harness.plan.resolved_model import ResolvedModel

_EFFORT = re.compile(r"[a-z]{1,20}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]{0,39}")


def check_effort(effort: str | None) -> None:
    """Raises `UsageError` for what cannot be a reasoning effort."""
    if effort is not None and not _EFFORT.fullmatch(effort):
        raise UsageError(f"--effort is a word such as low, medium or high, not {effort!r}")


def variant_of(label: str | None, effort: str | None) -> str:
    """The variant of a model that is served as `label` says and asked for this reasoning effort; ""
    where neither is given.

    Raises:
        UsageError: a label that no folder can have.
    """
    if label is not None and not _LABEL.fullmatch(label):
        raise UsageError(
            f"--label {label!r} must be of letters, digits and . _ = + -, at most 40, and begin "
            "with a letter or digit"
        )
    return "+".join(filter(None, (label, effort)))


def refuse_other_arguments(
    out: Path, model: ResolvedModel, label: str | None, server_args: Sequence[str]
) -> None:
    """Raises `UsageError` where a run of the same label has other arguments of the server."""
    if label is None:
        return
    for folder in find_runs(out, model.label):
        before = read_manifest(folder).server.get("server_args")
        if isinstance(before, list) and before != list(server_args):
            was, now = (" ".join(map(str, args)) or "none" for args in (before, server_args))
            raise UsageError(
                f"--label {label}: {folder} has it with the server arguments {was}, and this "
                f"command has {now}; give these a label of their own"
            )
