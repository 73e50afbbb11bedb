"""The sandbox in which prompts are rendered: Jinja's own, in which a template reaches no Python,
and without what would make a prompt another each time.
"""

from __future__ import annotations

from typing import Any

import jinja2
from jinja2 import pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

REMOVED = ("random", "lipsum")
"""Random functions and filters of Jinja."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox for plain texts, without chance."""

    def __init__(self) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # prompts are not HTML
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown,
        )
        for name in REMOVED:
            self.filters.pop(name, None)
            self.globals.pop(name, None)


@pass_context  # or Jinja would call it for a constant once, at compile time
def _shown(_context: Context, value: Any) -> Any:
    """The value that is printed; raises `SecurityError` if it has a part without a fixed text: a
    set, a function or an iterator.
    """
    if isinstance(value, str | Undefined):  # the second raises an error with the missing name
        return value
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            parts += [*part, *part.values()]
        elif isinstance(part, list | tuple):
            parts += part
        elif isinstance(part, set | frozenset):
            raise SecurityError("a set has no order of its own: add '|sort'")
        elif callable(part) or hasattr(part, "__next__"):
            raise SecurityError(
                "a function, or a row that is not made yet, has no text: add '|list'"
            )
    return value
