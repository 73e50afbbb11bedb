"""Variants of one model: how it is served, changed or asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from eyechart.harness.errors import JournalError, UsageError
from eyechart.harness.journal.manifest import find_runs, read_manifest
from eyechart.harness.plan.resolved_model import ResolvedModel
from eyechart.harness.spec import VARIANT, ReadBy
from eyechart.providers.catalog.model_facts import EFFORTS
from eyechart.providers.naming import named
from eyechart.providers.registry import owner_of

THINKING = "thinking="
"""What stands before the kind of thinking in a variant."""
READ: Mapping[ReadBy, str] = {"likelihood": "likelihood"}
"""The way of reading -> what stands for it at the end of a variant."""
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
    label: str | None,
    effort: str | None = None,
    thinking: str | None = None,
    read: ReadBy = "reply",
) -> str:
    """The variant of a model that is served as `label` says, asked for this reasoning effort or
    thinking, and read in this way; "" where nothing but a reply is wanted.
    """
    thought = thinking and f"{THINKING}{thinking}"
    return "+".join(filter(None, (label, effort, thought, READ.get(read))))


def refuse_variant(model: str, base_urls: Sequence[str] = ()) -> None:
    """Raises `UsageError` for the name of a model with its variant, as tables have it; a server of
    the user's may have models with such names.
    """
    name, at, whole = model.rpartition(VARIANT)
    if not name or not whole or base_urls or _VERSION.fullmatch(whole):
        return
    kept, _, last = whole.rpartition("+")
    is_read = last in READ.values()
    variant = kept if is_read else whole
    label, _, last = variant.rpartition("+")
    given = [named("model", name)]
    thinks, kind = last.startswith(THINKING), last.removeprefix(THINKING)
    if not thinks and last not in EFFORTS:
        label, last = variant, ""
    given += [named("label", label)] * bool(label)
    given += [named("thinking" if thinks else "effort", kind)] * bool(last)
    given += [named("reading", "likelihood")] * is_read
    raise UsageError(
        f"{named('model')} {model!r} has the variant {at}{whole} in its name; write "
        f"{' '.join(given)}"
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
                f"{named('label', label)}: {folder} has it with the server arguments {was}, and "
                f"this command has {now}; give these a label of their own"
            )
