"""Variants of one model: how it is served, changed or asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.plan.resolved_model import ResolvedModel, is_effort
from eyechart.harness.spec import VARIANT
from eyechart.providers.registry import owner_of

_EFFORT = re.compile(r"[a-z]{1,20}")
_VERSION = re.compile(r"[0-9]+|default|latest")
"""Names after an @ that vendors use in names of models."""
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]{0,39}")


_NAME = re.compile(r"(?=.{1,100}$)[A-Za-z0-9][\w.+=-]*(/[A-Za-z0-9][\w.+=-]*)*", re.ASCII)


def read_name(name: str | None, base_urls: Sequence[str]) -> str:
    """The user's name for a model at the user's server; empty if none is given.

    Raises:
        UsageError: no server is given, no folder can have the name, or another model has it.
    """
    if name is None:
        return ""
    if not base_urls:
        raise UsageError("--name needs the server of the model, --base-url; add it")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r} must be of letters, digits and . _ = + -, in parts with / between "
            "them that begin with a letter or digit, at most 100"
        )
    if owner := owner_of(name):
        raise UsageError(
            f"--name {name!r} is taken by {owner}; choose a name of your own, such as my-lab/m8"
        )
    return name


def check_word(effort: str | None) -> None:
    """Raises `UsageError` for a word that cannot be a reasoning effort."""
    if effort is not None and not _EFFORT.fullmatch(effort):
        raise UsageError(f"--effort is a word such as low, medium or high, not {effort!r}")


def variant_of(label: str | None, effort: str | None, intervention: str | None = None) -> str:
    """The name of a model's variant, from its label, its intervention and its reasoning effort; ""
    if none is given.

    Raises:
        UsageError: no folder can have the label.
    """
    if label is not None and not _LABEL.fullmatch(label):
        raise UsageError(
            f"--label {label!r} must be of letters, digits and . _ = + -, at most 40, and begin "
            "with a letter or digit"
        )
    return "+".join(filter(None, (label, intervention, effort)))


def refuse_variant(model: str, base_urls: Sequence[str] = ()) -> None:
    """Raises `UsageError` for the name of a model with its variant, as tables have it; a server of
    the user's may have models with such names.
    """
    name, at, variant = model.rpartition(VARIANT)
    if not name or not variant or base_urls or _VERSION.fullmatch(variant):
        return
    label, _, last = variant.rpartition("+")
    effort = f"--effort {last}"
    given = f"--label {variant}"
    if is_effort(last):
        given = f"--label {label} {effort}" if label else effort
    raise UsageError(
        f"--model {model!r} has the variant {at}{variant} in its name; write --model {name} {given}"
    )


def refuse_other_arguments(
    out: Path, model: ResolvedModel, label: str | None, server_args: Sequence[str]
) -> None:
    """Raises `UsageError` if a run with the same label has other arguments of the server."""
    if label is None:
        return
    for folder in find_runs(out, model.label):
        try:
            before = read_manifest(folder).server.get("server_args")
        except JournalError:  # of another run; 'bench runs' names it
            continue
        if isinstance(before, list) and before != list(server_args):
            was, now = (" ".join(map(str, args)) or "none" for args in (before, server_args))
            raise UsageError(
                f"--label {label}: {folder} has it with the server arguments {was}, and this "
                f"command has {now}; give these a label of their own"
            )
