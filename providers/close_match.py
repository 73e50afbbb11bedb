"""What somebody meant who wrote a name almost right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(given: str, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """The known name that is most like `given`; `None` if none is, as `difflib` measures it."""
    return next(iter(difflib.get_close_matches(given, list(known), n=1, cutoff=likeness)), None)


def did_you_mean(given: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """`did you mean 'counting'?`; where no known name is like `given`, `otherwise` or all names:
    `known: counting, copying`.
    """
    names = list(known)
    if (close := closest(given, names)) is not None:
        return f"did you mean {close!r}?"
    return f"known: {', '.join(names) or 'none'}" if otherwise is None else otherwise
