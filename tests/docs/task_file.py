"""The reference of keys, `docs/task-file.md`, made from the models that read a task file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from eyechart.harness.spec.answer import TYPES, Answer
from eyechart.harness.spec.task_file import NAME_FORM, Axis, Separator, TaskSpec
from eyechart.harness.task.schema import task_schema

_HEAD = """\
# The keys of a task file

A reference of every key that a task file may have. [A task of your own](tasks.md) shows how a task
is made of them, and says what an [axis, a condition and a control](tasks.md#axes-and-conditions)
are. An unknown key is a mistake: `bench tasks check` reports it at its line. Names of axes and of
their values are {name}; they begin with a letter and have at most
{longest} characters.

"""
_FILES = """\
## A whole file

The examples below are parts of this task file: put in the place of the same key, each of them gives
a file that opens. Where `items` comes in, `generator`, `params`, `lengths` and `samples` go out.
Another type of `answer` needs targets of that type.

<!-- file: marks.yaml -->
```yaml
{whole}```

Beside it is the generator, with a scorer for the [example](#scorer) of one:

<!-- file: marks.py -->
```python
from eyechart import Item, ScorerResult


def row(rng, length, *, mark):
    label = "".join(rng.choice("ABCDEFGH") for _ in range(3))
    return Item(symbols=[mark] * length, target=length, variables={{"label": label}})


def score(reply: str, item: Item) -> ScorerResult:
    answer = reply.rpartition("Final answer:")[2].strip(" .")
    if not answer.isdecimal():
        return "unparsed", "no number after the phrase"
    return "correct" if int(answer) == item.target else "incorrect"
```

And the ready items for the [example](#items) of these:

<!-- file: marks.jsonl -->
```json
{{"variables": {{"label": "BAD", "symbols": ["!", "!"]}}, "target": 2, "length": 2}}
{{"variables": {{"label": "HAG", "symbols": ["!", "!", "!"]}}, "target": 3, "length": 3}}
```

```bash
bench tasks check marks.yaml
```

<!-- printed -->
```text
```
"""
_IN_WHOLE = (
    *("version", "title", "generator", "params", "lengths", "samples", "axes", "prompt", "answer"),
)
"""The keys of the whole file, in its order."""
_TOGETHER = {"between": ("every",), "every": ("between",)}
"""Key of a separator -> the keys that it needs beside it."""
_OWNERS = {name: kind for kind in TYPES.values() for name in kind.fields}
_SCHEMA: dict[str, Any] = task_schema()
_PARTS: Mapping[str, str] = {
    "Axis": "[axis](#the-keys-of-an-axis)",
    "Separator": "[separator](#the-keys-of-a-separator)",
    "Answer": "[mapping](#the-keys-of-an-answer)",
    "JsonValue": "any value",
}
"""A model within the file -> what a value of it is, in the words of the page."""


@dataclass(frozen=True)
class _Section:
    """The keys of one model."""

    heading: str
    model: type[BaseModel]
    path: str
    """What stands before a key in its heading."""


_SECTIONS = (
    _Section("The keys of the file", TaskSpec, ""),
    _Section("The keys of an axis", Axis, "axes.AXIS."),
    _Section("The keys of a separator", Separator, "axes.AXIS.values.VALUE."),
    _Section("The keys of an answer", Answer, "answer."),
)


def task_file_page() -> str:
    """The whole page."""
    names = _SCHEMA["properties"]["axes"]["propertyNames"]
    head = _HEAD.format(name=NAME_FORM.replace("_", "`_`"), longest=names["maxLength"])
    listed = "".join(f"- [{one.heading}](#{_anchor(one.heading)})\n" for one in _SECTIONS)
    whole = _yaml({key: _example(TaskSpec, key) for key in _IN_WHOLE})
    parts = [head, "- [A whole file](#a-whole-file)\n", listed, "\n", _FILES.format(whole=whole)]
    for section in _SECTIONS:
        parts += _section(section)
    return "".join(parts)


def _section(section: _Section) -> Iterator[str]:
    """A table of the keys, and then each key with its description and an example."""
    schema = _SCHEMA if section.model is TaskSpec else _SCHEMA["$defs"][section.model.__name__]
    yield f"\n## {section.heading}\n\n"
    if section.model is not TaskSpec:
        yield f"{_prose(schema['description'])}\n\n"
    yield "| key | value | if left out |\n| --- | --- | --- |\n"
    for key in section.model.model_fields:
        form = _form(schema["properties"][key])
        heading = f"{section.path}{key}"
        yield f"| [`{key}`](#{_anchor(heading)}) | {form} | {_left_out(schema, key)} |\n"
    for key, field in section.model.model_fields.items():
        assert field.description, f"{section.model.__name__}.{key} needs a description"
        yield f"\n### {section.path}{key}\n\n{_prose(field.description)}\n\n"
        yield f"<!-- part of: marks.yaml -->\n```yaml\n{_yaml(_fragment(section.model, key))}```\n"


def _fragment(model: type[BaseModel], key: str) -> Mapping[str, object]:
    """The part of a task file that shows a key."""
    if model is TaskSpec:
        return {key: _example(model, key)}
    shown = {
        name: _example(model, name)
        for name, field in model.model_fields.items()
        if name == key or field.is_required() or name in _TOGETHER.get(key, ())
    }
    if model is Axis:
        return {"axes": {"separator": shown}}
    if model is Separator:
        return {"axes": {"separator": {"default": ["marked"], "values": {"marked": shown}}}}
    if (owner := _OWNERS.get(key)) is not None:
        needed = {name: _example(model, name) for name in owner.needed}
        shown = {"type": owner.name, **needed, key: _example(model, key)}
    return {"answer": shown}


def _example(model: type[BaseModel], key: str) -> object:
    """The example of a key that the model has."""
    field: FieldInfo = model.model_fields[key]
    assert field.examples, f"{model.__name__}.{key} needs an example"
    return field.examples[0]


def _left_out(schema: Mapping[str, Any], key: str) -> str:
    """What holds without the key."""
    if key in schema.get("required", ()):
        return "needed"
    sources = [one["required"] for one in schema.get("oneOf", ())]
    for source, *with_source in sources:
        if key == source:
            return "needed, or " + " or ".join(f"`{one[0]}`" for one in sources if one[0] != key)
        if key in with_source:
            return f"needed with `{source}`"
    default = schema["properties"][key].get("default")
    return "–" if default in {None, ""} else f"`{default}`"


def _form(schema: Mapping[str, Any], *, several: bool = False) -> str:
    """What values the schema allows, in words; `several` for the plural."""
    if "$ref" in schema:
        return _PARTS[schema["$ref"].rpartition("/")[2]]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            found = [one for one in schema[union] if one.get("type") != "null"]
            kinds = {one.get("type") for one in found}
            found = [one for one in found if one.get("type") != "integer" or "number" not in kinds]
            words = [_words(one) or [_form(one, several=several)] for one in found]
            return _or([word for one in words for word in one])
    if "const" in schema:
        return f"`{json.dumps(schema['const']).strip(chr(34))}`"
    if "enum" in schema:
        return _or(_words(schema))
    kind, end = schema["type"], "s" if several else ""
    if kind == "array":
        least = f"at least {n} " if (n := schema.get("minItems", 1)) > 1 else ""
        return f"list of {least}{_form(schema['items'], several=True)}"
    if kind == "object":
        values = next(iter(schema.get("patternProperties", {}).values()), None)
        return f"mapping of a name to {_form(values or schema['additionalProperties'])}"
    if kind == "boolean":
        return "`true` or `false`"
    if kind == "string":
        least, most = schema.get("minLength", 1), schema.get("maxLength")
        bound = f" of at most {most} characters" if most else ""
        return f"text{end}{bound or (f' of at least {least} characters' if least > 1 else '')}"
    return f"{'whole number' if kind == 'integer' else 'number'}{end}{_bounds(schema)}"


def _words(schema: Mapping[str, Any]) -> list[str]:
    """The texts that the schema allows, if it names them."""
    return [f"`{one}`" for one in schema.get("enum", ())]


def _bounds(schema: Mapping[str, Any]) -> str:
    least = schema.get("minimum")
    if "exclusiveMinimum" in schema:
        least = schema["exclusiveMinimum"] + 1  # only whole numbers have it
    words = "" if least is None else f" from {least:,}"
    if "maximum" in schema:
        words += f" to {schema['maximum']:,}"
    if "exclusiveMaximum" in schema:
        words += f" to below {schema['exclusiveMaximum']:,}"
    return words


def _or(words: list[str]) -> str:
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last


def _prose(text: str) -> str:
    """A description, its paragraphs unwrapped."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _anchor(heading: str) -> str:
    return heading.lower().replace(".", "").replace(" ", "-")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _yaml(data: Mapping[str, object]) -> str:
    """A task file, or a part of one; a list, or a mapping without others in it, on one line."""
    return "".join(
        yaml.dump(
            {key: value},
            Dumper=_Dumper,
            default_flow_style=None if isinstance(value, list | dict) else False,
            sort_keys=False,
            allow_unicode=True,
            width=100,
        )
        for key, value in data.items()
    )
