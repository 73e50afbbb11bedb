"""What a program may give for the name of a model: a function, or an object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol, TypeAlias

from eyechart.providers.base import Reply, Request
from eyechart.providers.function.descriptor import DESCRIPTOR

Answer: TypeAlias = str | Reply
"""What a function or an object gives back."""


class FunctionModel(Protocol):
    """An object that is asked; `facts`, `count_tokens` and `aclose` of `Provider` may be there."""

    def complete(self, request: Request, /) -> Answer | Awaitable[Answer]:
        """The reply to a request; may be `async def`."""
        ...


Model: TypeAlias = Callable[[str], Answer | Awaitable[Answer]] | FunctionModel
"""A function from a prompt to a reply, which may be `async def`, or an object."""


def name_of(model: object) -> str:
    """`function/answer` for the function `answer`, `function/lambda` for one without a name; of an
    object the name of its class counts.
    """
    while isinstance(model, partial):
        model = model.func
    name = str(getattr(model, "__name__", "")).strip("<>")
    return f"{DESCRIPTOR.name}/{name if name.isidentifier() else type(model).__name__}"
