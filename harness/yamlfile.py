"""YAML text as data that remembers where each part stood.

Plain scalars are read by YAML 1.2's core rules (`on`, `off`, `yes`, `no`, `1:30` and dates are
text), since axis values such as `off` are names here, not booleans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

Path_: TypeAlias = Sequence[str | int]

_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_MAX_INTEGER_DIGITS = 18


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file, counted from 1 as editors do."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file."""

    position: Position
    message: str
    file: str | None = None
    """The file it is in, if not the one that was parsed."""


@dataclass
class YamlFile:
    """A parsed file: plain data, the nodes it came from, and what was wrong already."""

    text: str
    data: object = None
    problems: list[Problem] = field(default_factory=list)
    _root: yaml.Node | None = None

    def position(self, path: Path_, *, of_key: bool = False) -> Position:
        """Where the value at `path` stands, or its key, or the nearest parent that is there.

        Parts of `path` that are in no mapping, such as pydantic's names for union members, are
        passed over.
        """
        node = self._root
        mark = None if node is None else node.start_mark
        for part in path:
            if isinstance(node, yaml.MappingNode):
                found = next(((k, v) for k, v in node.value if _scalar_text(k) == str(part)), None)
                if found is None:
                    continue
                key, node = found
                mark = key.start_mark if of_key else node.start_mark
            elif (
                isinstance(node, yaml.SequenceNode)
                and isinstance(part, int)
                and part < len(node.value)
            ):
                node = node.value[part]
                mark = node.start_mark
        return Position(1, 1) if mark is None else _position(mark)

    def text_position(self, path: Path_, line: int, find: str = "") -> Position:
        """Where line `line` (from 1) of the string at `path` stands, at `find` if it is there."""
        start = self.position(path)
        node = self._node(path)
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        at = start.line + line - 1 + (1 if block else 0)
        lines = self.text.splitlines()
        if not (block or line > 1):
            column = lines[at - 1].find(find, start.column - 1) if find else -1
            return Position(at, column + 1 if column >= 0 else start.column)
        if at > len(lines):
            return start
        column = lines[at - 1].find(find) if find else -1
        indent = len(lines[at - 1]) - len(lines[at - 1].lstrip())
        return Position(at, column + 1 if column >= 0 else indent + 1)

    def _node(self, path: Path_) -> yaml.Node | None:
        node = self._root
        for part in path:
            if isinstance(node, yaml.MappingNode):
                node = next((v for k, v in node.value if _scalar_text(k) == str(part)), None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
                node = node.value[part] if part < len(node.value) else None
            else:
                return None
        return node


def parse(text: str) -> YamlFile:
    """Read `text`; what is wrong with the YAML itself lands in `.problems`, nothing is raised."""
    file = YamlFile(text)
    try:
        loader = _Loader(text)
        try:
            file._root = loader.get_single_node()  # noqa: SLF001  # the class's own builder
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        file.problems.extend(_syntax_problems(text, error))
        return file
    except yaml.YAMLError as error:
        file.problems.append(Problem(Position(1, 1), str(error).splitlines()[0]))
        return file
    except RecursionError:
        file.problems.append(Problem(Position(1, 1), "nested too deeply"))
        return file
    if file._root is None:  # noqa: SLF001
        file.problems.append(Problem(Position(1, 1), "the file is empty"))
        return file
    file.data = _build(file._root, file.problems, set())  # noqa: SLF001
    return file


def _build(node: yaml.Node, problems: list[Problem], parents: set[int]) -> object:
    if id(node) in parents:
        problems.append(Problem(_position(node.start_mark), "an anchor that contains itself"))
        return None
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, problems)
    inner = parents | {id(node)}
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, problems, inner) for child in node.value]
    assert isinstance(node, yaml.MappingNode)
    built: dict[str, object] = {}
    first_seen: dict[str, Position] = {}
    for key_node, value_node in node.value:
        key, position = _scalar_text(key_node), _position(key_node.start_mark)
        if key is None:
            problems.append(Problem(position, "a key must be plain text"))
        elif key == "<<":
            problems.append(Problem(position, "merge keys ('<<') are not read; write it out"))
        elif key in built:
            line = first_seen[key].line
            problems.append(Problem(position, f"key {key!r} is here twice (first on line {line})"))
        else:
            first_seen[key] = position
            built[key] = _build(value_node, problems, inner)
    return built


def _scalar(node: yaml.ScalarNode, problems: list[Problem]) -> object:
    text: str = node.value
    if node.tag not in _KNOWN_TAGS:
        problems.append(Problem(_position(node.start_mark), f"tag {node.tag!r} is not read"))
    if node.style:
        return text
    if text.lower() in _WORDS and (text in (text.lower(), text.capitalize(), text.upper())):
        return _WORDS[text.lower()]
    if _INTEGER.match(text) and len(text) <= _MAX_INTEGER_DIGITS:
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text


_KNOWN_TAGS = {
    f"tag:yaml.org,2002:{kind}"
    for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}


def _scalar_text(node: yaml.Node) -> str | None:
    return node.value if isinstance(node, yaml.ScalarNode) else None


def _position(mark: yaml.Mark) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _syntax_problems(text: str, error: yaml.MarkedYAMLError) -> Iterator[Problem]:
    tabs = [
        Position(number, line.index("\t") + 1)
        for number, line in enumerate(text.splitlines(), start=1)
        if "\t" in line[: len(line) - len(line.lstrip())]
    ]
    if tabs:
        for position in tabs:
            yield Problem(position, "a tab in the indentation; YAML wants spaces")
        return
    mark = error.problem_mark or error.context_mark
    position = Position(1, 1) if mark is None else _position(mark)
    what = error.problem or error.context or "not YAML"
    if "mapping values are not allowed" in what:
        what += "; text that holds ': ' needs quotes"
    elif "could not find expected ':'" in what or "while scanning a simple key" in what:
        what += "; is a ':' missing, or the indentation off?"
    elif "found character" in what and "cannot start any token" in what:
        what += "; quote the text"
    context = f" {error.context}" if error.context and error.context != what else ""
    yield Problem(position, f"{what}{context}")
