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
a file that opens. `items` replaces `generator`, `params`, `lengths` and `samples`. Another type of
`answer` needs targets of that type.

<!-- file: marks.yaml -->
```yaml
{whole}```

Beside it is the generator, with a scorer for the example of `scorer`:

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

And the ready items for the example of `items`:

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
_TOGETHER = (Axis, Separator)
"""The models whose keys one example shows together."""
_LONG = ("axes", "prompt")
"""The keys that the whole file alone shows."""
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


_SECTIONS = (
    _Section("The keys of the file", TaskSpec),
    _Section("The keys of an axis", Axis),
    _Section("The keys of a separator", Separator),
    _Section("The keys of an answer", Answer),
)


def task_file_page() -> str:
    """The whole page."""
    names = _SCHEMA["properties"]["axes"]["propertyNames"]
    head = _HEAD.format(name=NAME_FORM.replace("_", "`_`"), longest=names["maxLength"])
    whole = _yaml({key: _example(TaskSpec, key) for key in _IN_WHOLE})
    parts = [head, _FILES.format(whole=whole)]
    for section in _SECTIONS:
        parts += _section(section)
    return "".join(parts)


def _section(section: _Section) -> Iterator[str]:
    """Each key with its form, its description and an example; of an axis and of a separator one
    example has all keys.
    """
    schema = _SCHEMA if section.model is TaskSpec else _SCHEMA["$defs"][section.model.__name__]
    yield f"\n## {section.heading}\n\n"
    if section.model is not TaskSpec:
        yield f"{_prose(schema['description'])}\n\n"
    together = section.model in _TOGETHER
    for key, field in section.model.model_fields.items():
        assert field.description, f"{section.model.__name__}.{key} needs a description"
        form = "; ".join(filter(None, (_form(schema["properties"][key]), _left_out(schema, key))))
        example = "" if together else _inline(section.model, key)
        yield f"- `{key}` ({form}): {_prose(field.description)}{example}\n"
    if together:
        shown = _yaml(_nested(section.model))
        yield f"\n<!-- part of: marks.yaml -->\n```yaml\n{shown}```\n"


def _inline(model: type[BaseModel], key: str) -> str:
    """An example behind a description; "" where the whole file shows it."""
    if key in _LONG:
        return ""
    (line,) = _yaml(_fragment(model, key), flow=True).splitlines()
    return f" Example: `{line[1:-1] if line.startswith('{') else line}`"


def _nested(model: type[BaseModel]) -> Mapping[str, object]:
    """The part of a task file that shows all keys of a model within an axis."""
    shown: dict[str, object] = {name: _example(model, name) for name in model.model_fields}
    if model is Separator:
        shown = {"default": ["marked"], "values": {"marked": shown}}
    return {"axes": {"separator": shown}}


def _fragment(model: type[BaseModel], key: str) -> Mapping[str, object]:
    """The part of a task file that shows a key of the file or of an answer."""
    if model is TaskSpec:
        return {key: _example(model, key)}
    shown = {
        name: _example(model, name)
        for name, field in model.model_fields.items()
        if name == key or field.is_required()
    }
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
    return "" if default in {None, ""} else f"default `{default}`"


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


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _yaml(data: Mapping[str, object], *, flow: bool = False) -> str:
    """A task file, or a part of one; a list, or a mapping without others in it, on one line, and
    with `flow` every one.
    """
    return "".join(
        yaml.dump(
            {key: value},
            Dumper=_Dumper,
            default_flow_style=(flow or None) if isinstance(value, list | dict) else False,
            sort_keys=False,
            allow_unicode=True,
            width=1000 if flow else 100,
        )
        for key, value in data.items()
    )
