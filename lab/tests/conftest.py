"""The tests of the laboratory run as those of the core do: the same fixtures and the same hooks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import (
    _no_code_was_run_before,
    _no_secret_of_another_test,
    _no_wait_between_attempts,
    _no_wait_for_the_disk,
    _our_project_is_parsed_once,
    lab,
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_configure,
    server,
)

__all__ = [
    "_no_code_was_run_before",
    "_no_secret_of_another_test",
    "_no_wait_between_attempts",
    "_no_wait_for_the_disk",
    "_our_project_is_parsed_once",
    "lab",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "server",
]


@pytest.fixture(autouse=True)
def _one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests marked `torch` use one thread of the CPU. Without torch they are skipped."""
    if request.node.get_closest_marker("torch") is None:
        yield
        return
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
