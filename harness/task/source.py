"""Parses YAML text into data with the position of each part.

Plain scalars follow YAML 1.2's core schema (`on`, `off`, `yes`, `no`, `1:30` and dates are text),
since axis values such as `off` are names here, not booleans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

Path_: TypeAlias = Sequence[str | int]

_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_MAX_INTEGER_DIGITS = 4_000
_DEEPEST = 50
_SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of the UTF-16 pairs of characters beyond U+FFFF."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file, counted from 1 as in editors."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file."""

    position: Position
    message: str
    file: str | None = None
    """The file of the mistake, if it is not the parsed one."""


@dataclass
class YamlFile:
    """A parsed file: plain data, its YAML nodes, and the problems found so far."""

    text: str
    root: yaml.Node | None = None
    data: object = None
    problems: list[Problem] = field(default_factory=list)

    def position(self, path: Path_, *, of_key: bool = False) -> Position:
        """Position of the value at `path`, or of its key, or else of the nearest parent."""
        mark = None if self.root is None else self.root.start_mark
        for _, key, node in self._walk(path):
            mark = key.start_mark if of_key and key is not None else node.start_mark
        return Position(1, 1) if mark is None else _position(mark)

    def real_path(self, path: Path_) -> list[str | int]:
        """The parts of `path` that are in the file; pydantic adds others, such as union members."""
        return [part for part, _, _ in self._walk(path)]

    def text_position(self, path: Path_, line: int) -> Position:
        """Position of the first character of line `line` (from 1) of the text at `path`."""
        node = self._node(path)
        start = self.position(path)
        if not (isinstance(node, yaml.ScalarNode) and node.style == "|"):
            return start
        lines = self.text.splitlines()
        number = min(start.line + line, len(lines))
        indented = lines[number - 1]
        return Position(number, len(indented) - len(indented.lstrip()) + 1)

    def name_position(self, path: Path_, name: str) -> Position:
        """Position of the first use of `name` in the template at `path`, inside braces."""
        node = self._node(path)
        if node is None:
            return self.position(path)
        source = self.text[node.start_mark.index : node.end_mark.index]
        for braces in re.finditer(r"\{[{%].*?[%}]\}", source, re.DOTALL):
            if use := re.search(rf"\b{re.escape(name)}\b", braces[0]):
                before = self.text[: node.start_mark.index + braces.start() + use.start()]
                return Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        return self.position(path)

    def _node(self, path: Path_) -> yaml.Node | None:
        steps = [node for _, _, node in self._walk(path)]
        return steps[-1] if steps else self.root

    def _walk(self, path: Path_) -> Iterator[tuple[str | int, yaml.Node | None, yaml.Node]]:
        """Part, key node and value node of each part of `path` that is in the file."""
        node = self.root
        for part in path:
            if isinstance(node, yaml.MappingNode):
                pairs = ((k, v) for k, v in node.value if _scalar_text(k) == str(part))
                if (pair := next(pairs, None)) is not None:
                    node = pair[1]
                    yield part, *pair
            elif (
                isinstance(node, yaml.SequenceNode)
                and isinstance(part, int)
                and part < len(node.value)
            ):
                node = node.value[part]
                yield part, None, node


def parse(text: str) -> YamlFile:
    """Parses `text`; mistakes in the YAML are added to `problems`, no error is raised."""
    file = YamlFile(text)
    try:
        file.problems += _refused_parts(text)
        if not file.problems:
            file.root = yaml.compose(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"character #x{error.character:04x} is not allowed; take it out"
        file.problems.append(Problem(position, message))
    except yaml.MarkedYAMLError as error:
        file.problems.extend(_syntax_problems(text, error))
    if file.root is not None:
        file.data = _build(file.root, file.problems)
    if file.data is None and not file.problems:
        file.problems.append(Problem(Position(1, 1), "the file is empty"))
    return file


def _refused_parts(text: str) -> Iterator[Problem]:
    """A problem for each alias, tag and second document, and for nesting that is too deep.

    Reads the events of the parser, which neither recurse nor expand aliases.
    """
    depth = documents = 0
    for event in yaml.parse(text, Loader=_Loader):
        assert event.start_mark is not None
        place = _position(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            yield Problem(place, f"alias '*{event.anchor}' is not supported; write the value out")
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                yield Problem(place, "a second document ('---') begins here; a task file holds one")
                return
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                yield Problem(place, "nested too deeply")
                return
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if tag := getattr(event, "tag", None):
            yield Problem(place, f"tag {tag!r} is not supported; leave it out")


def _build(node: yaml.Node, problems: list[Problem]) -> object:
    if isinstance(node, yaml.ScalarNode):
        if _SURROGATES.search(node.value):
            position = _position(node.start_mark)
            problems.append(
                Problem(position, "a lone surrogate, which no request can hold; leave it out")
            )
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, problems) for child in node.value]
    assert isinstance(node, yaml.MappingNode)
    built: dict[str, object] = {}
    first_seen: dict[str, Position] = {}
    for key_node, value_node in node.value:
        key, position = _scalar_text(key_node), _position(key_node.start_mark)
        if key is None:
            problems.append(Problem(position, "a key must be plain text"))
        elif key == "<<":
            problems.append(
                Problem(position, "merge keys ('<<') are not supported; write the keys out")
            )
        elif key in built:
            line = first_seen[key].line
            problems.append(Problem(position, f"key {key!r} is here twice (first on line {line})"))
        else:
            first_seen[key] = position
            built[key] = _build(value_node, problems)
    return built


def _scalar(node: yaml.ScalarNode) -> object:
    text: str = node.value
    if node.style:
        return text
    if text.lower() in _WORDS and (text in (text.lower(), text.capitalize(), text.upper())):
        return _WORDS[text.lower()]
    if _INTEGER.match(text):
        return int(text) if len(text) <= _MAX_INTEGER_DIGITS else text
    if _FLOAT.match(text):
        return float(text)
    return text


def _scalar_text(node: yaml.Node) -> str | None:
    return node.value if isinstance(node, yaml.ScalarNode) else None


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _syntax_problems(text: str, error: yaml.MarkedYAMLError) -> Iterator[Problem]:
    mark = error.problem_mark or error.context_mark
    position = Position(1, 1) if mark is None else _position(mark)
    tabs = [
        Position(number, line.index("\t") + 1)
        for number, line in enumerate(text.splitlines(), start=1)
        if "\t" in line[: len(line) - len(line.lstrip())]
    ]
    if position.line in {tab.line for tab in tabs}:
        for tab in tabs:
            if tab.line >= position.line:
                yield Problem(tab, "a tab in the indentation; YAML wants spaces")
        return
    message = error.problem or error.context or "not YAML"
    if "nesting depth" in message:  # PyYAML 6.0.4 looks ahead and stops at a depth of 1,000
        yield Problem(position, "nested too deeply")
        return
    if "mapping values are not allowed" in message:
        message += "; text that holds ': ' needs quotes"
    elif "could not find expected ':'" in message:
        message += "; is a ':' missing, or the indentation off?"
    elif "found character" in message and "cannot start any token" in message:
        message += "; quote the text"
    context_mark = error.context_mark
    if error.context and error.context != message:
        message += f" {error.context}"
        if context_mark is not None and context_mark.line + 1 != position.line:
            message += f" (which began on line {context_mark.line + 1})"
    yield Problem(position, message)
