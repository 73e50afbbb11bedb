"""How the optional packages of the laboratory are installed."""

from __future__ import annotations


def install(extra: str) -> str:
    """The command that installs an extra, from a clone: the distribution is not on an index."""
    return f"pip install -e . -e 'lab[{extra}]' in a clone of the repository"
