"""The reference of commands, `docs/commands.md`, made from what `bench --help` is made from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from typer.main import get_command

from eyechart.harness.cli.app import app

_HEAD = """\
# Commands

A reference of every verb with its arguments and options, as `bench VERB --help` prints them;
examples end each help. Options that were explained at an earlier verb are only named. An
option with `…` may be given several times. [Settings](settings.md) says how an option gets its
value from a file or a variable, and [running](running.md#output-and-exit-codes) has the exit codes.

"""
_COLUMNS = "| {} | what |\n| --- | --- |\n"


def commands_page() -> str:
    """The whole page."""
    root: Any = get_command(app)
    verbs = [(path, verb) for path, verb in _verbs(root, ()) if path]
    parts = [_HEAD, "Before the verb:\n\n", _COLUMNS.format("option"), *_rows(root, "bench")]
    told: dict[str, str] = {}
    for path, verb in verbs:
        parts += ["\n", *_section(f"bench {' '.join(path)}", verb, told)]
    return "".join(parts)


def _verbs(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    for name, one in ((name, command.get_command(None, name)) for name in names):
        yield from _verbs(one, (*path, name))


def _section(name: str, verb: Any, told: dict[str, str]) -> Iterator[str]:
    """A verb: what it does, its usage, and its options.

    `told` maps each row to the verb that has it first; it grows.
    """
    yield f"## {name}\n\n{_prose(verb.help)}\n\n"
    arguments = [p for p in verb.params if p.param_type_name == "argument"]
    needed = [p for p in verb.params if p not in arguments and p.required]
    words = [f"{max(p.opts, key=len)} {p.metavar}" for p in needed]
    words += ["[OPTION…]", *(p.metavar or p.name.upper() for p in arguments)]
    usage = " ".join([name, *words])
    yield f"`{usage}`\n\n"
    rows = list(_rows(verb, name))
    if new := [row for row in rows if told.setdefault(row, name) == name]:
        yield _COLUMNS.format("argument or option" if arguments else "option")
        yield from new
    earlier = (f"{row.split('` ')[0].removeprefix('| ')}`" for row in rows if row not in new)
    if named := ", ".join(earlier):
        yield "\n" if new else ""
        yield f"Also, as explained above: {named}.\n"


def _rows(verb: Any, name: str) -> Iterator[str]:
    """A row for each argument and option; --help is left out."""
    context = verb.make_context(name, [], resilient_parsing=True)
    groups = verb.groups(context).values() if hasattr(verb, "groups") else [verb.params]
    for parameter in chain.from_iterable(groups):
        record = parameter.get_help_record(context)
        if record is None or "--help" in parameter.opts:
            continue
        shown, text = record
        if parameter.param_type_name == "argument":
            shown = shown.partition(" <")[0]
        text = text.removesuffix("[required]")  # the usage says it
        again = " …" if parameter.param_type_name == "option" and parameter.multiple else ""
        yield f"| `{_cell(shown)}`{again} | {_cell(' '.join(text.split()))} |\n"


def _prose(text: str) -> str:
    """A help text, its paragraphs unwrapped."""
    paragraphs = text.replace("\b", "").strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
