"""Variants of one model: how it is served, changed or asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.spec import VARIANT, ReadBy
from eyechart.providers.naming import named
from eyechart.providers.registry.model_name import owner_of

_VERSION = re.compile(r"[0-9]+|default|latest")
"""What follows an @ in names of models at vendors."""
_NAME = re.compile(r"(?=.{1,100}$)[A-Za-z0-9][\w.+=-]*(/[A-Za-z0-9][\w.+=-]*)*", re.ASCII)


def check_name(name: str, base_urls: Sequence[str], *, is_file: bool = False) -> None:
    """Raises `UsageError` where the user's name for a model is no folder's name or another model's,
    or where the model is neither at a server of the user's nor in a file.
    """
    if not (base_urls or is_file):
        raise UsageError(
            f"{named('name')} needs the server of the model, {named('base_url')}; add it"
        )
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{named('name')} {name!r} must be of letters, digits and . _ = + -, in parts with / "
            "between them that begin with a letter or digit, at most 100"
        )
    if owner := owner_of(name):
        raise UsageError(
            f"{named('name')} {name!r} is taken by {owner}; choose a name of your own, such as "
            "my-lab/m8"
        )


def variant_of(
    label: str,
    effort: str | None = None,
    thinking: str | None = None,
    read: ReadBy = "reply",
) -> str:
    """The variant of a model that is served as `label` says, asked for this reasoning effort or
    thinking, and read in this way; "" where nothing but a reply is wanted.
    """
    thought = thinking and f"thinking={thinking}"
    return "+".join(filter(None, (label, effort, thought, "" if read == "reply" else read)))


def refuse_variant(model: str, base_urls: Sequence[str] = ()) -> None:
    """Raises `UsageError` for the name of a model with its variant, as tables have it; a server of
    the user's may have models with such names.
    """
    name, at, variant = model.rpartition(VARIANT)
    if not name or not variant or base_urls or _VERSION.fullmatch(variant):
        return
    raise UsageError(
        f"{named('model')} {model!r} has the variant {at}{variant} in its name; write "
        f"{named('model', name)}, and the variant with {named('name')}, {named('thinking')} or "
        f"{named('reading')}"
    )


def refuse_other_arguments(
    out: Path, model: ResolvedModel, label: str, facts: Mapping[str, object]
) -> None:
    """Raises `UsageError` if a run of the same variant has other arguments of the server; `facts`
    are those that are known of the model before it is opened.
    """
    if not label:
        return
    given = facts.get("server_args", [])
    for folder in find_runs(out, model.label):
        try:
            before = read_manifest(folder).server.get("server_args")
        except JournalError:  # of another run; 'bench runs' names it
            continue
        if isinstance(before, list) and before != given:
            was = " ".join(map(str, before)) or "none"
            now = " ".join(map(str, given)) if isinstance(given, list) and given else "none"
            raise UsageError(
                f"{named('name', f'@{label}')}: {folder} has it with the server arguments {was}, "
                f"and this command has {now}; give these a name of their own"
            )
