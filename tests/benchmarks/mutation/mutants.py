"""The mutants of a package: how they are made from its code, and how some are drawn."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CALCULATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitOr,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    package: str
    path: str
    """Relative to the repository."""
    source: bytes = field(repr=False)
    """The whole file without the change."""
    line: int
    start: int
    """`after` replaces the bytes of `source` from `start` to before `end`."""
    end: int
    before: str
    after: str
    first_line: int
    """First line of the outermost function around the change; 0 if there is no function."""
    last_line: int
    text: str
    """The source line, without the spaces around it."""

    def __str__(self) -> str:
        """One line: the place of the change, the code before and after."""
        return f"{self.path}:{self.line}: - {self.before}  + {self.after}"

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of this mutant in `REASONS`."""
        return self.path.removeprefix("harness/"), self.text, self.after

    @property
    def changed_source(self) -> bytes:
        """The whole file with the change."""
        return self.source[: self.start] + self.after.encode() + self.source[self.end :]


def is_text(node: ast.AST) -> bool:
    """Whether `node` is a text or a sum of texts; another operator there would only fail."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return constant or isinstance(node, ast.JoinedStr)


def replaced(node: Any, name: str, value: object) -> Any:
    """A copy of `node` with another value of the field `name`."""
    other = copy.deepcopy(node)
    setattr(other, name, value)
    return other


def changed_operators(node: ast.AST) -> Iterator[ast.AST]:
    """Expression `node` with one operator changed."""
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                other = COMPARISONS[type(operator)]()
                yield replaced(node, "ops", [*operators[:place], other, *operators[place + 1 :]])
        case ast.BinOp(op=operation) if type(operation) in CALCULATIONS and not is_text(node):
            yield replaced(node, "op", CALCULATIONS[type(operation)]())
        case ast.BoolOp(op=operation):
            yield replaced(node, "op", ast.Or() if isinstance(operation, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case _:
            pass


def changed_values(node: ast.AST) -> Iterator[ast.AST]:
    """Constant `node` with another value, or call `node` with the opposite function."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            yield replaced(node, "func", ast.Name(FUNCTIONS[name]))
        case _:
            pass


def changed_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Statement `node` changed, or `pass` in its place."""
    match node:
        case ast.AugAssign(op=operation, value=value) if not is_text(value):
            yield replaced(node, "op", CALCULATIONS[type(operation)]())
            yield ast.Pass()
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case (
            ast.Expr(value=ast.Call() | ast.Await())
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            | ast.Delete()
            | ast.Raise()
            | ast.Continue()
            | ast.Break()
        ):
            yield ast.Pass()
        case _:
            pass


def negated_conditions(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Each condition of `node` with its negation, unless `changed_operators` makes the same."""
    conditions = [node.test] if isinstance(node, ast.If | ast.While | ast.IfExp) else []
    conditions += node.ifs if isinstance(node, ast.comprehension) else []
    for condition in conditions:
        match condition:
            case ast.UnaryOp(op=ast.Not()):
                pass
            case ast.Compare(ops=[operator]) if not isinstance(
                operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE
            ):
                pass
            case _:
                yield condition, ast.UnaryOp(ast.Not(), condition)


class Finder:
    """Finds the mutants of one file."""

    def __init__(self, package: str, path: Path) -> None:
        self.package = package
        self.path = path.relative_to(ROOT).as_posix()
        self.source = path.read_bytes()
        self.lines = self.source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.mutants: list[Mutant] = []
        self.function = (0, 0)
        """First and last line of the outermost function around the node."""

    def add(self, node: Any, other: ast.AST) -> None:
        """Adds the mutant that has `other` in the place of `node`."""
        after = ast.unparse(other)
        if isinstance(other, ast.expr) and not isinstance(other, ast.Constant | ast.Name):
            after = f"({after})"
        self.mutants.append(
            Mutant(
                package=self.package,
                path=self.path,
                source=self.source,
                line=node.lineno,
                start=self.starts[node.lineno - 1] + node.col_offset,
                end=self.starts[node.end_lineno - 1] + node.end_col_offset,
                before=ast.unparse(node),
                after=after,
                first_line=self.function[0],
                last_line=self.function[1],
                text=self.lines[node.lineno - 1].decode().strip(),
            )
        )

    def visit(self, node: ast.AST) -> None:
        """Adds the mutants of `node` and of all nodes below it."""
        function_before = self.function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and self.function == (0, 0):
            first = min(part.lineno for part in (node, *node.decorator_list))
            self.function = first, node.end_lineno or node.lineno
        for changes in (changed_operators, changed_values, changed_statements):
            for other in changes(node):
                self.add(node, other)
        for condition, negation in negated_conditions(node):
            self.add(condition, negation)
        for child in changed_children(node):
            self.visit(child)
        self.function = function_before


def changed_children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of `node` that are changed; the command's docstring lists what is not."""
    type_checking = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    if type_checking or isinstance(node, ast.Raise):
        return
    unchanged_fields = {"annotation", "returns", "decorator_list", "keywords"}
    for name, value in ast.iter_fields(node):
        if name in unchanged_fields and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            strict = isinstance(child, ast.keyword) and child.arg == "strict"  # of `zip`
            unchanged = isinstance(child, ast.JoinedStr | ast.Assert | ast.arg)
            if isinstance(child, ast.AST) and not unchanged and not strict:
                yield child


def find(package: str) -> list[Mutant]:
    """All mutants of a package of `harness`."""
    mutants: list[Mutant] = []
    for path in sorted((ROOT / "harness" / package).rglob("*.py")):
        finder = Finder(package, path)
        finder.visit(ast.parse(finder.source))
        mutants += finder.mutants
    return mutants


def draw(mutants: dict[str, list[Mutant]], size: int, rng: random.Random) -> list[Mutant]:
    """About `size` mutants in random order; each package has its share of all mutants."""
    total = sum(map(len, mutants.values()))
    drawn: list[Mutant] = []
    for in_package in mutants.values():
        share = round(size * len(in_package) / total)
        drawn += rng.sample(in_package, min(len(in_package), share))
    rng.shuffle(drawn)
    return drawn
