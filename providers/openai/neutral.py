"""Fields of a body that make sampling neutral, and what a server makes of them.

Servers have defaults of their own: a penalty on what came before is one, and it makes a model count
and copy worse than it can. So the neutral values are sent, as far as a server takes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eyechart.providers.base import BadRequestError, ProviderError
from eyechart.providers.catalog.endpoints import REPEATS, Neutral


def neutral_of(neutral: Neutral, params: Mapping[str, object]) -> Neutral:
    """The fields that the user has not given; one name of a penalty stands for both."""
    given = {*params, *(REPEATS if params.keys() & {*REPEATS} else ())}
    return {name: values for name, values in neutral.items() if name not in given}


class NeutralFields:
    """The neutral fields for one server, without those that it has refused."""

    def __init__(self, neutral: Neutral) -> None:
        self.fields: dict[str, object] = {name: values[0] for name, values in neutral.items()}
        """Each field with its value."""
        self._next = {name: list(values[1:]) for name, values in neutral.items()}
        self.refused: set[str] = set()
        """Fields that the server takes with none of their values."""
        self._said: set[str] = set()
        self.is_taken = False
        """Whether the server has answered a request that had them."""
        self.is_cleared = False
        """Whether a request failed without them as it had failed with them."""

    def refuse(self, name: str, *, whole: bool = False) -> None:
        """Later requests have the next value of the field; after the last value, or where none of
        them is taken (`whole`), no such field.
        """
        if self._next[name] and not whole:
            self.fields[name] = self._next[name].pop(0)
        else:
            del self.fields[name]
            self.refused.add(name)

    def may_be_refused(self, error: ProviderError, text: str, sent: Mapping[str, object]) -> bool:
        """Whether the `text` of a server's reply may be a refusal of the fields in the body `sent`:
        it names nothing that was sent, and the server has not taken the fields before, nor failed
        without them.
        """
        return (
            not (self.is_taken or self.is_cleared)
            and isinstance(error, BadRequestError)
            and not self.fields.keys().isdisjoint(sent)
            and not any(re.search(rf"\b{re.escape(name)}\b", text) for name in sent)
        )

    def new_note(self, model: str) -> str:
        """A line for the user on the fields refused since the last one; empty if there are none."""
        new = self.refused - self._said
        if not new:
            return ""
        self._said |= new
        names = ", ".join(map(repr, sorted(new)))
        return (
            f"{model} does not take {names}; it is asked without, so its server's own values hold"
        )
