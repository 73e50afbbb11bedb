"""The provider keeps the rules of all providers."""

from __future__ import annotations

from eyechart.providers.base import ModelSettings
from eyechart.testing import check_provider
from eyechart_command import open_provider


def test_it_is_a_provider() -> None:
    """`cat` repeats the prompt."""
    check_provider(open_provider, ModelSettings("cat"), expected=lambda request: request.prompt)
