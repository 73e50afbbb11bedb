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
from eyechart.providers.registry.model_name import owner_of

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
    label: str,
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
    if not last.startswith(THINKING) and last not in EFFORTS:
        label, last = variant, ""
    given += [named("name", f"@{label}")] * bool(label)
    given += [named("thinking", last.removeprefix(THINKING))] * bool(last)
    given += [named("reading", "likelihood")] * is_read
    raise UsageError(
        f"{named('model')} {model!r} has the variant {at}{whole} in its name; write "
        f"{' '.join(given)}"
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
