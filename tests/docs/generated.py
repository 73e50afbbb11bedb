"""Chapters that code writes; what they print is renewed as in every other chapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.docs.commands import commands_page
from tests.docs.prompts import prompts_page
from tests.docs.python_reference import python_page

GENERATED: Mapping[str, Callable[[], str]] = {
    "api.md": python_page,
    "commands.md": commands_page,
    "prompts.md": prompts_page,
}
"""Name of a file in docs/ -> its text, without what commands print."""
