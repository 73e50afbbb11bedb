"""The JSON Schema of a task file: `python -m eyechart.harness.task.schema` writes it."""

from __future__ import annotations

import json

from pydantic.json_schema import GenerateJsonSchema

from eyechart.harness.spec import TaskSpec
from eyechart.harness.spec.answer import TYPES

FILE = "task.schema.json"


def task_schema() -> dict[str, object]:
    """The schema of `TaskSpec`, with the short form of `answer`."""
    schema = TaskSpec.model_json_schema()
    answer = schema["properties"]["answer"]
    kinds = schema["$defs"]["Answer"]["properties"]["type"]["enum"]
    alone = [kind for kind in kinds if not TYPES[kind].needed]
    schema["properties"]["answer"] = {"anyOf": [{"type": "string", "enum": alone}, answer]}
    schema["oneOf"] = [{"required": ["generator", "lengths", "samples"]}, {"required": ["items"]}]
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "Eyechart task"}


def text() -> str:
    """The schema file's content."""
    return json.dumps(task_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    from eyechart.harness.task.catalogue import tasks_root

    (tasks_root() / FILE).write_text(text(), encoding="utf-8")
