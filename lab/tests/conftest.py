"""The tests of the laboratory run as those of the core do: the same fixtures and the same hooks."""

from __future__ import annotations

from tests.conftest import (
    _no_secret_of_another_test,
    _no_task_was_run_before,
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
    "_no_secret_of_another_test",
    "_no_task_was_run_before",
    "_no_wait_between_attempts",
    "_no_wait_for_the_disk",
    "_our_project_is_parsed_once",
    "lab",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "server",
]
