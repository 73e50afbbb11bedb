"""The editors' schema and the task files agree."""

from __future__ import annotations

import json

import jsonschema
import pytest

from eyechart.harness.task import schema
from eyechart.harness.task.catalogue import built_in_files, tasks_root
from eyechart.harness.task.source import parse


def test_the_schema_file_is_the_one_the_spec_makes() -> None:
    """A change of the spec without `python -m eyechart.harness.task.schema` fails here."""
    written = (tasks_root() / schema.FILE).read_text(encoding="utf-8")
    assert written == schema.text(), "run: python -m eyechart.harness.task.schema"


@pytest.mark.parametrize("name", built_in_files())
def test_built_in_tasks_are_valid_by_the_schema(name: str) -> None:
    """What the spec accepts, the schema accepts."""
    read = parse(built_in_files()[name].read_text(encoding="utf-8"))
    jsonschema.validate(read.data, json.loads(schema.text()))


@pytest.mark.parametrize(
    "change",
    [
        {"promt": "x"},
        {"lengths": [0]},
        {"answer": "float"},
        {"answer": "choice"},
        {"answer": {"type": "choice", "options": ["one"]}},
        {"samples": "many"},
        {"generator": None, "items": "x.csv"},
    ],
)
def test_the_schema_rejects_what_the_spec_rejects(change: dict[str, object]) -> None:
    """An editor underlines the common mistakes."""
    good = parse(built_in_files()["counting/ones"].read_text(encoding="utf-8")).data
    assert isinstance(good, dict)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, **change}, json.loads(schema.text()))
