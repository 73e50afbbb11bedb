from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import yaml

from eyechart.harness.errors import TaskFileError
from eyechart.harness.task import source
from eyechart.harness.task.catalogue import open_task

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Lab

# The sound task that each broken one is made of. Places in the table below are its lines:
GOOD = """\
version: 1
title: Ones in a row
generator: rows.py:ones
params: {symbol: "1"}
lengths: [2, 5]
samples: 2
axes:
  separator:
    default: [none]
    values: {none: "", comma: ","}
prompt: |
  How many ones are in the row?
  Write "{{ phrase }}" and the number.
  Row: {{ sequence }}
answer: integer
"""
ROWS = """\
from eyechart.harness.spec import Item


def ones(rng, length, *, symbol):
    return Item([symbol] * length, length)
"""
READY = """\
version: 1
title: Ready rows
items: rows.jsonl
prompt: |
  How many ones are in {{ row }}?
  Write "{{ phrase }}" and the number.
answer: integer
"""
ITEMS = """\
{"variables": {"row": "11"}, "target": 2, "length": 2}
{"variables": {"row": "10"}, "target": 1, "length": 2}
{"variables": {"row": "111"}, "target": 3, "length": 3}
"""


@dataclass(frozen=True)
class Broken:
    """A task with mistakes, and all that should be said about them."""

    name: str
    text: str | bytes
    expected: tuple[tuple[str, str], ...]
    """`line:column`, with `file:` before it if not in the task file; a part of the message, at its
    end if the part ends in a line end."""
    others: Mapping[str, str | bytes] = field(default_factory=dict)
    """Other files: text beside `task.yaml`."""


def said(*expected: str) -> tuple[tuple[str, str], ...]:
    """Pairs of `place message`."""
    return tuple((place, message) for place, _, message in (one.partition(" ") for one in expected))


def good(old: str, new: str, *expected: str, name: str = "", rows: str = ROWS) -> Broken:
    """`GOOD` with a text in it replaced."""
    assert GOOD.count(old) == 1, old
    return Broken(name or new, GOOD.replace(old, new), said(*expected), {"rows.py": rows})


def text(name: str, given: str | bytes, *expected: str) -> Broken:
    """A whole file."""
    return Broken(name, given, said(*expected), {"rows.py": ROWS})


def rows(name: str, body: str, *expected: str) -> Broken:
    """`GOOD` whose generator is `body`."""
    head = "from eyechart.harness.spec import Item\n\n\ndef ones(rng, length, *, symbol):\n"
    written = body if body.startswith("\n") else f"{head}    {body}\n"
    return Broken(name, GOOD, said(*expected), {"rows.py": written})


def items(name: str, lines: str | bytes, *expected: str) -> Broken:
    """`READY` whose items are `lines`."""
    return Broken(name, READY, said(*expected), {"rows.jsonl": lines})


def ready(old: str, new: str, *expected: str, name: str = "", lines: str = ITEMS) -> Broken:
    """`READY` with a text in it replaced."""
    assert READY.count(old) == 1, old
    return Broken(name or new, READY.replace(old, new), said(*expected), {"rows.jsonl": lines})


CHOICE = "{type: choice, options: [red, green]}"


def answered(answer: str, item: str, *expected: str) -> Broken:
    """A task with this `answer`, whose one item has this target and what follows it."""
    line = f'{{"variables": {{"row": "11"}}, "target": {item}, "length": 2}}\n'
    return ready(
        "answer: integer", f"answer: {answer}", *expected, name=f"{answer} {item}", lines=line
    )


def prompt(name: str, third_line: str, *expected: str) -> Broken:
    """`GOOD` whose prompt's third line, line 14 of the file, is another."""
    return good("Row: {{ sequence }}", third_line, *expected, name=name)


VALUES = '{none: "", comma: ","}'
BLOCK = GOOD[GOOD.index("prompt:") : GOOD.index("answer:")]

NOT_A_MAPPING = "1:1 a task file is a mapping of keys to values"

FILE_ITSELF = [
    text("empty file", "", "1:1 the file is empty"),
    text("only comments", "# nothing\n# here\n", "1:1 the file is empty"),
    text("only a document mark", "---\n", "1:1 the file is empty"),
    text("null", "~\n", "1:1 the file is empty"),
    text("a list", "- version: 1\n- title: x\n", NOT_A_MAPPING),
    text("a scalar", "counting ones\n", NOT_A_MAPPING),
    text("binary", b"\x7fELF\x02\x01\x01\x00\xff\xfe", "1:9 not UTF-8"),
    text("UTF-16", GOOD.encode("utf-16"), "1:1 not UTF-8"),
    text("UTF-16 without a mark", GOOD.encode("utf-16-le"), "1:2 character"),
    text("Latin-1 in line 2", GOOD.replace("Ones", "Où").encode("latin-1"), "2:9 not UTF-8"),
    text("a control character", GOOD.replace("many", "ma\x08ny"), "12:9 character"),
    text("markdown", "# Title\n\nSome *text*: with\n- a list\n", "4:1 "),
    text("two documents", f"{GOOD}---\n{GOOD}", "16:1 second document"),
    text("a quote that the next one closes", GOOD.replace("Ones in", '"Ones in'), "4:19 "),
    text("unclosed quote", GOOD.replace("integer", '"integer'), "16:1 line 15"),
    text("unclosed list", GOOD.replace("[2, 5]", "[2, 5"), "6:8 line 5"),
    text("unclosed brace", GOOD.replace(VALUES, VALUES[:-1]), "11:1 line 10"),
    text("missing colon", GOOD.replace("samples: 2", "samples 2"), "7:1 line 6"),
    text("colon in a title", GOOD.replace("Ones in", "Ones: in"), "2:12 needs quotes"),
    text("at sign", GOOD.replace("Ones in", "@Ones in"), "2:8 quote the text"),
    text("tab as indentation", GOOD.replace("    default", "\t\tdefault"), "9:1 a tab"),
    text(
        "two tabs as indentation",
        GOOD.replace("    default", "\tdefault").replace("    values", "    \tvalues"),
        "9:1 a tab",
        "10:5 a tab",
    ),
    text("tab before a block's text", GOOD.replace("  How many", "\tHow many"), "12:1 a tab"),
    text(
        "tab within a block, mistake elsewhere",
        GOOD.replace("  How many", "  \tHow many").replace("[2, 5]", "[2, 5"),
        "6:8 ",
    ),
    text("indentation off", GOOD.replace("    values", "   values"), "10:4 "),
    text("recursive alias", GOOD.replace('{symbol: "1"}', "&p {symbol: *p}"), "4:21 alias "),
    text("unknown alias", GOOD.replace('{symbol: "1"}', "{symbol: *p}"), "4:18 alias"),
    text(
        "merge key",
        GOOD.replace('{symbol: "1"}', "{<<: {symbol: x}}"),
        "4:10 merge keys",
    ),
    text("a tag", GOOD.replace("Ones in", "!mine Ones in"), "2:8 tag '!mine'"),
    text(
        "a tag on a mapping",
        GOOD.replace('{symbol: "1"}', '!!python/dict {symbol: "1"}'),
        "4:9 tag ",
    ),
    text("nested too deeply", f"params: {'[' * 900}{']' * 900}\n", "1:58 nested too deeply"),
]

KEYS = [
    good("samples: 2", "sample: 2", "1:1 missing key 'samples'", "6:1 did you mean 'samples'"),
    good("samples: 2", "samples: 2\nfoo: 1", "7:1 unknown key 'foo'; known: version"),
    good("title: Ones in a row\n", "", "1:1 missing key 'title'", name="no title"),
    good(BLOCK, "", "1:1 missing key 'prompt'", name="no prompt"),
    good("answer: integer\n", "", "1:1 missing key 'answer'", name="no answer"),
    good(
        "samples: 2",
        "samples: 2\nlengths: [3]\ntitle: x",
        "7:1 key 'lengths' is here twice (first on line 5)",
        "8:1 key 'title' is here twice (first on line 2)",
        name="keys twice",
    ),
    good(
        VALUES,
        '{none: "", none: " "}\n    default: [none]',
        "10:24 key 'none' is here twice (first on line 10)",
        "11:5 key 'default' is here twice (first on line 9)",
        name="keys twice deep down",
    ),
    good(
        "samples: 2", "samples: 2\n? [a]\n: 1", "7:3 a key must be plain text", name="list as key"
    ),
    good("samples: 2", "samples: 2\n5: 1", "7:1 unknown key '5'", name="number as key"),
    good("title: Ones in a row", "title: 2024", "2:8 title: must be text (quote it"),
    good("title: Ones in a row", 'title: ""', "2:8 title: must not be empty"),
    good(
        "title: Ones in a row",
        "title: Ones\nunit: sym<b>",
        "3:7 unit: must be one word or several, of lower case letters: symbols, tokens, words, …",
    ),
    good("title: Ones in a row", "title:", "2:7 title: must be text", name="title without a value"),
    good("title: Ones in a row", "title: [a, b]", "2:8 title: must be text"),
    *(
        good("version: 1", f"version: {wrong}", f"1:10 version: must be {must}")
        for wrong, must in [
            ('"1"', "a whole number, not '1'"),
            ("0", "greater than 0, not 0"),
            ("-1", "greater than 0, not -1"),
            ("1.5", "a whole number, not 1.5"),
            ("1.0", "a whole number, not 1.0"),
            ("true", "a whole number, not true"),
            ("one", "a whole number, not 'one'"),
            ("1e999", "a whole number"),
            ("99999999999999999999999", "at most 1,000,000,000"),
        ]
    ),
    good("samples: 2", "samples: 0", "6:10 samples: must be greater than 0, not 0"),
    good("samples: 2", "samples: -3", "6:10 samples: must be greater than 0, not -3"),
    good("samples: 2", "samples: many", "6:10 samples: must be a whole number, not 'many'"),
    good("samples: 2\n", "", "1:1 missing key 'samples'", name="no samples"),
    good("lengths: [2, 5]\n", "", "1:1 missing key 'lengths'", name="no lengths"),
    good("[2, 5]", "5", "5:10 lengths: must be a list, not 5", name="lengths: 5"),
    good("[2, 5]", "[0, 5]", "5:11 lengths: must be greater than 0, not 0"),
    good("[2, 5]", "[5, -1]", "5:14 lengths: must be greater than 0, not -1"),
    good("[2, 5]", "[2.5]", "5:11 lengths: must be a whole number, not 2.5"),
    good("[2, 5]", "[ten]", "5:11 lengths: must be a whole number, not 'ten'"),
    good("[2, 5]", "[2, 5, 2]", "5:17 length 2 is here twice"),
    good("[2, 5]", "[1, true]", "5:14 lengths: must be a whole number"),
    good("[2, 5]", "[]", "5:10 lengths: must not be empty"),
    *(
        good(
            "answer: integer",
            f"answer: {{type: choice, options: {options}}}",
            *(f"15:{column} options: {message}" for column, message in mistakes.items()),
            name=f"options {options}",
        )
        for options, mistakes in {
            "[]": {33: "needs at least 2 options\n"},
            "[red]": {33: "needs at least 2 options\n"},
            '[red, ""]': {39: "must not be empty\n"},
            '[""]': {33: "needs at least 2 options\n", 34: "must not be empty\n"},
            "[1, 2, red]": {34: "must be text (quote it", 37: "must be text (quote it"},
            "red": {33: "must be a list, not 'red'\n"},
        }.items()
    ),
    good(
        "answer: integer",
        "answer: {type: choice, options: [red, Red]}",
        "15:9 answer: options 'red' and 'Red' are the same but for case, spaces or Unicode normal "
        "form\n",
    ),
    ready("items: rows.jsonl", "items: rows.jsonl\nlengths: [x]", "4:11 lengths: must be a whole"),
    good(
        "[2, 5]",
        "[0, 2, 2, x, 1.5]",
        "5:11 greater than 0",
        "5:17 length 2 is here twice",
        "5:20 whole number, not 'x'",
        "5:23 whole number, not 1.5",
    ),
    good('{symbol: "1"}', "[1]", "4:9 params: must be a mapping", name="params: [1]"),
]

AXES = [
    good(
        "default: [none]\n    ",
        "",
        "9:5 missing key 'default' in 'axes.separator'",
        name="no default",
    ),
    good(f"values: {VALUES}", "", "9:5 missing key 'values' in 'axes.separator'", name="no values"),
    good("[none]", "[]", "9:14 default: must not be empty", name="default: []"),
    good(VALUES, "{}", "9:15 no value 'none'", "10:13 values: must not be empty"),
    good(VALUES, "[none, comma]", "10:13 values: must be a mapping", name="values a list"),
    good(VALUES, "none", "10:13 values: must be a mapping", name="values a text"),
    good("[none]", "none", "9:14 default: must be a list, not 'none'", name="default: none"),
    good("[none]", "[coma]", "9:15 axis 'separator' has no value 'coma'; did you mean 'comma'?"),
    good("[none]", "[semicolon]", "9:15 no value 'semicolon'; known: none, comma"),
    good("[none]", "[none, none]", "9:21 default 'none' is here twice"),
    good("[none]", "[none, 1]", "9:21 default: must be text"),
    good(VALUES, '{none: "", Comma: ","}', "10:24 name 'Comma' must be lower case"),
    good(VALUES, '{none: "", a comma: ","}', "10:24 name 'a comma' must be lower case"),
    good(VALUES, '{none: "", 5: ","}', "10:24 name '5' must be lower case"),
    good(VALUES, f'{{none: "", {"x" * 41}: ","}}', "10:24 at most 40", name="long value name"),
    good(VALUES, "{none: , comma: ','}", "10:20 none: must be text", name="value null"),
    good(VALUES, '{none: "", comma: [","]}', "10:31 comma: must be text", name="value a list"),
    good("  separator:", "  Separator:", "8:3 name 'Separator' must be lower case"),
    good("  separator:", "  length:", "8:3 an axis cannot be called 'length'"),
    good("  separator:", "  model:", "8:3 an axis cannot be called 'model'"),
    good(
        VALUES,
        '{none: "", five: {inside: ",", betwen: ";", every: 5}}',
        "10:44 unknown key 'betwen'; did you mean 'between'?",
    ),
    good(
        VALUES,
        '{none: "", five: {between: ";"}}',
        "10:30 five: 'between' and 'every' need each other",
    ),
    good(VALUES, '{none: "", five: {every: 0}}', "10:38 every: must be at least 1, not 0"),
    good(VALUES, '{none: "", five: {inside: 5}}', "10:39 inside: must be text"),
    good("  separator:", "  colour:", "8:3 axis 'colour' changes nothing"),
    rows(
        "a row of the items' own",
        "return Item([symbol] * length, length, {'sequence': 'zzz'})",
        "8:3 axis 'separator' changes nothing: the items' variable 'sequence' stands in place",
    ),
    good(VALUES, '{none: "", one: 1}', "10:29 the separator '1' is also a symbol, so rows show"),
    good(VALUES, '{none: "", off: ""}', "10:29 values 'none' and 'off' of axis"),
    good(
        VALUES,
        "{two: {inside: x}, none: 2, on: true, three: {inside: x, every: null}}",
        "10:58 values 'two' and 'three' of axis 'separator' are the same, so both ask the same",
    ),
    good(
        "axes:\n  separator:\n    default: [none]\n",
        "axes:\n",
        "8:13 missing key 'default' in 'axes.values'",
        "8:13 missing key 'values' in 'axes.values'",
        "8:14 unknown key 'none'",
        "8:24 unknown key 'comma'",
        name="axes too shallow",
    ),
    good(
        f"axes:\n  separator:\n    default: [none]\n    values: {VALUES}",
        "axes: [separator]",
        "7:7 axes: must be a mapping",
    ),
    good(
        "[none]",
        "[none]\n    valeus: {a: b}",
        "10:5 unknown key 'valeus'; did you mean 'values'?",
    ),
    good(
        VALUES,
        '{none: "", shots: "11. Final answer: 2. 1. final answer: 1."}',
        "10:31 'shots' has the answer phrase 'Final answer:' more than once",
        name="phrase twice in a few-shot text",
    ),
    good(
        VALUES,
        "\n      none: ''\n      shots: |\n        33: Say: 2\n        3: Say: 2",
        "12:14 'shots' has the answer phrase 'Say:' more than once",
        name="own phrase twice in a few-shot text",
    ),
]
AXES[-1] = Broken(
    AXES[-1].name,
    str(AXES[-1].text).replace("answer: integer", "answer: {type: integer, phrase: 'Say:'}"),
    AXES[-1].expected,
    AXES[-1].others,
)

ANSWERS = [
    good("answer: integer", "answer: float", "15:9 answer: must be one of 'integer', 'number'"),
    good("answer: integer", "answer: 5", "15:9 answer: must be"),
    good("answer: integer", "answer: {}", "15:9 missing key 'type' in 'answer'"),
    good("answer: integer", "answer: {type: int}", "15:16 type: must be one of 'integer'"),
    good(
        "answer: integer",
        "answer: {type: integer, frase: x}",
        "15:25 unknown key 'frase'; did you mean 'phrase'?",
    ),
    *(
        good("answer: integer", f"answer: {{type: integer, phrase: {wrong}}}", f"15:33 {must}")
        for wrong, must in [
            ('""', "phrase: must not be empty"),
            ('"   "', "phrase: must not be empty"),
            ('"ab"', "phrase: must have at least 3 characters"),
            ("5", "phrase: must be text"),
        ]
    ),
]

PROMPTS = [
    good(BLOCK, 'prompt: ""\n', "11:9 prompt: must not be empty"),
    good(BLOCK, "prompt: 5\n", "11:9 prompt: must be text"),
    prompt("unclosed braces", "Row: {{ sequence", "14:3 bad Jinja"),
    prompt(
        "half a character",
        r"Row: {{ '\ud83d' }}{{ sequence }}",
        "11:9 the prompt has the lone surrogate '\\ud83d', which no request can hold",
    ),
    prompt("unclosed block", "{% if separator %}Row: {{ sequence }}", "14:3 bad Jinja"),
    prompt("unknown filter", "Row: {{ sequence | revers }}", "14:3 bad Jinja: No filter named"),
    prompt("unknown test", "{% if sequence is oddly %}{% endif %}", "14:3 No test named"),
    prompt("unknown block", "{% fi separator %}{{ sequence }}", "14:3 bad Jinja"),
    prompt("undefined variable", "Row: {{ sequense }}", "14:11 did you mean 'sequence'?"),
    prompt(
        "undefined variable, its word before", "The row: {{ row }} {{ sequence }}", "14:15 'row'"
    ),
    prompt(
        "two undefined variables",
        "{{ one }}{{ two }}{{ sequence }}",
        "14:6 undefined variable 'one'",
        "14:15 undefined variable 'two'",
    ),
    prompt("undefined attribute", "Row: {{ sequence.first }}", "14:3 has no attribute 'first'"),
    prompt("undefined index", "Row: {{ sequence }} {{ symbols[99] }}", "14:3 no element 99"),
    prompt(
        "undefined function", "Row: {{ sequence }} {{ now() }}", "14:26 undefined variable 'now'"
    ),
    prompt("division by zero", "Row: {{ sequence }} {{ 1 / 0 }}", "14:3 division by zero"),
    prompt(
        "a long loop", "{% for i in range(10**9) %}{{ sequence }}{% endfor %}", "14:3 Range too big"
    ),
    prompt("sandbox", "Row: {{ sequence.__class__.__mro__ }}", "14:3 unsafe"),
    prompt("include", "{% include 'other.txt' %}{{ sequence }}", "14:3 "),
    prompt("adding unlike types", "Row: {{ sequence + 1 }}", "14:3 TypeError"),
    prompt(
        "fails under another value only",
        "Row: {{ sequence }}{% if separator == ',' %}{{ 1 / 0 }}{% endif %}",
        "14:3 division by zero",
    ),
    prompt(
        "unknown filter under another value only",
        "Row: {{ sequence }}{% if separator == ',' %}{{ 1 | oops }}{% endif %}",
        "14:3 oops",
    ),
    good("{{ phrase }}", "the number", "11:1 never asks for the answer phrase"),
    text(
        "undefined variable after escaped line ends",
        GOOD.replace(BLOCK, "").replace(
            "title", 'prompt: "{{ phrase }}\\n\\n\\n{{ sequense }}{{ sequence }}"\ntitle'
        ),
        "2:31 did you mean 'sequence'?",
    ),
    good(
        BLOCK,
        "prompt: >\n  {{ phrase }}\n  and\n\n  {{ sequense }} {{ sequence }}\n",
        "15:6 did you mean 'sequence'?",
        name="undefined variable in a folded block",
    ),
    good(
        VALUES,
        """{none: "", loud: 'write {{ phrase }}'}""",
        "10:30 loud",
        name="braces in a value",
    ),
]

GENERATORS = [
    good(
        "generator: rows.py:ones",
        "items: rows.jsonl",
        "4:1 'params' go to a generator",
        "3:8 items file 'rows.jsonl' is not there",
    ),
    good("generator: rows.py:ones\n", "", "1:1 missing key 'generator'", name="no generator"),
    good(
        "generator: rows.py:ones",
        "generator: rows.py:ones\nitems: rows.jsonl",
        "4:1 'generator' and 'items' are both given",
    ),
    good("rows.py:ones", "rows.py", "3:12 generator: must be 'file.py:function'"),
    good("rows.py:ones", "rows:ones", "3:12 generator: must be 'file.py:function'"),
    good("rows.py:ones", "row.py:ones", "3:12 generator file 'row.py' is not there"),
    good("rows.py:ones", "../../no.py:ones", "3:12 generator file '../../no.py' is not there"),
    good("rows.py:ones", f"{'x' * 300}.py:ones", "3:12 generator file", name="a very long name"),
    good("rows.py:ones", '"r\\0ws.py:ones"', "3:12 generator file", name="NUL in a name"),
    good("rows.py:ones", "rows.py:one", "3:12 no function 'one' in 'rows.py'; it has ones"),
    good("rows.py:ones", "rows.py:zzz", "3:12 no function 'zzz' in 'rows.py'; it has ones"),
    good(
        'rows.py:ones\nparams: {symbol: "1"}',
        "rows.py:Item",
        "3:12 is no function",
        name="a class as generator",
    ),
    good("rows.py:ones", "rows.py:dict", "3:12 'dict'", rows="dict = dict\n", name="a built-in"),
    rows("not callable", "\nones = 5\n", "3:12 is no function"),
    rows(
        "syntax error", "\n\ndef ones(:\n", "3:12 SyntaxError: invalid syntax (rows.py, line 3)\n"
    ),
    rows(
        "import error",
        "\n\nimport no_such_module\n",
        "3:12 No module named 'no_such_module' (line 3)",
    ),
    rows("exit on import", "\nimport sys\nsys.exit(0)\n", "3:12 SystemExit: 0 (line 3)"),
    rows("error on import", "\n\n1 / 0\n", "3:12 ZeroDivisionError: division by zero (line 3)"),
    rows("exits", "raise SystemExit(0)", "3:12 at length 2: the generator raised SystemExit"),
    rows("raises", "raise ValueError('no such row')", "3:12 ValueError: no such row (line 5)"),
    rows(
        "out of memory",
        "raise MemoryError",
        "3:12 at length 2: the generator raised MemoryError (line 5)\n",
    ),
    rows(
        "a symbol that is half a character",
        "return Item([chr(0xD83D)] * length, 3)",
        "3:12 at length 2: a symbol has the lone surrogate '\\ud83d'",
    ),
    rows(
        "a variable that is half a character",
        "return Item(['1'] * length, 3, {'more': chr(0xD83D)})",
        "3:12 at length 2: variable 'more' has the lone surrogate '\\ud83d'",
    ),
    rows("raises deep in a library", "return __import__('json').loads('{')", "3:12 (line 5)"),
    rows(
        "raises at the longer length",
        "return Item([symbol] * length, {2: 2, 3: 3, 4: 4}[length])",
        "3:12 at length 5: the generator raised KeyError: 5",
    ),
    rows(
        "raises at the shortest length of a band",
        "return Item([symbol] * length, {2: 2, 3: 3, 5: 5}[length])",
        "3:12 at length 4: the generator raised KeyError: 4",
    ),
    rows(
        "raises at the longest length of a band",
        "return Item([symbol] * length, {2: 2, 4: 4, 5: 5}[length])",
        "3:12 at length 3: the generator raised KeyError: 3",
    ),
    rows("returns None", "pass", "3:12 at length 2: the generator returned None"),
    rows("returns a tuple", "return (['1'], 1)", "3:12 returned tuple, not an Item"),
    rows("yields", "yield Item([], 1)", "3:12 returned generator, not an Item"),
    rows(
        "too many symbols",
        "return Item([symbol] * 3, 3)",
        "3:12 at length 2: 3 symbols where length is 2",
    ),
    rows(
        "numbers as symbols", "return Item([1] * length, 3)", "3:12 symbols are a list of strings"
    ),
    rows("a text as symbols", "return Item('1' * length, 3)", "3:12 symbols are a list of strings"),
    rows(
        "an iterator as symbols", "return Item(iter('11'), 3)", "3:12 symbols are a list of strings"
    ),
    rows("None as symbols", "return Item(None, 3)", "3:12 symbols are a list of strings"),
    rows(
        "a set as symbols",
        "return Item({str(i) for i in range(length)}, 3)",
        "3:12 symbols are a list of strings",
    ),
    rows(
        "a text as target",
        "return Item([symbol] * length, '2')",
        "3:12 target '2' does not fit 'answer: integer'",
    ),
    rows(
        "a truth value as target",
        "return Item([symbol] * length, True)",
        "3:12 target True does not fit",
    ),
    rows(
        "variables that are no mapping",
        "return Item([symbol] * length, 2, ['a'])",
        "3:12 variables",
    ),
    rows(
        "numbers as variables' names",
        "return Item([symbol] * length, 2, {1: 'a'})",
        "3:12 variables",
    ),
    rows(
        "module-level random",
        "\nimport random\nfrom eyechart.harness.spec import Item\n\n\n"
        "def ones(rng, length, *, symbol):\n"
        "    return Item([str(random.random()) for _ in range(length)], 2)\n",
        "3:12 two calls with the same rng gave different items",
    ),
    rows(
        "too few parameters",
        "\ndef ones(rng):\n    pass\n",
        "3:12 must take (rng, length, …), it takes 1",
    ),
    rows(
        "a variable hides an axis",
        "return Item([symbol] * length, 2, {'separator': 1})",
        "3:12 variable 'separator' hides",
    ),
    good(
        "{symbol: ",
        "{symbl: ",
        "3:12 ones() needs 'symbol'",
        "4:10 ones() takes no 'symbl'; did you mean 'symbol'?",
    ),
    good('params: {symbol: "1"}\n', "", "3:12 ones() needs 'symbol'", name="no params"),
    good('{symbol: "1"}', '{symbol: "1", separator: x}', "4:23 ones() takes no 'separator'"),
    Broken(
        "empty text as target",
        GOOD.replace("answer: integer", "answer: text"),
        said("3:12 the target is empty text"),
        {"rows.py": ROWS.replace(", length)\n", ", ' ')\n")},
    ),
    Broken(
        "several at once, one in the generator's name",
        GOOD.replace("rows.py:ones", "row.py:ones")
        .replace("samples: 2", "samples: 0")
        .replace("[none]", "[nine]"),
        said(
            "3:12 generator file 'row.py' is not there",
            "6:10 samples: must be greater than 0",
            "9:15 did you mean 'none'?",
        ),
    ),
    Broken(
        "several at once, one an undefined variable",
        GOOD.replace("samples: 2", "samples: 0\ncolour: red").replace(" sequence", " sequense"),
        said(
            "6:10 samples: must be greater than 0",
            "7:1 unknown key 'colour'",
            "15:11 did you mean 'sequence'?",
        ),
        {"rows.py": ROWS},
    ),
]

ITEM = '{"variables": {"row": "11"}, "target": 2, "length": 2}\n'
ITEM_FILES = [
    Broken("items missing", READY, said("3:8 items file 'rows.jsonl' is not there")),
    ready("items: rows.jsonl", "items: rows.csv", "3:8 items: must be a .jsonl file"),
    ready("items: rows.jsonl", "items: rows.jsonl\nlengths: [2, 7]", "4:14 no item of length 7"),
    ready(
        *("items: rows.jsonl", "items: rows.jsonl\nspread: bands"),
        "4:9 'spread: bands' needs a generator",
    ),
    ready(
        *("items: rows.jsonl", "items: rows.jsonl\nspread: both"),
        "4:9 spread: must be one of 'bands', 'fifth', 'none', not 'both'",
    ),
    ready("items: rows.jsonl", "items: rows.jsonl\nsamples: 0", "4:10 samples: must be greater"),
    ready("{{ row }}", "{{ rwo }}", "5:27 undefined variable 'rwo'; did you mean 'row'?"),
    ready("{{ row }}", "{{ sequence }}", "5:27 symbols", name="sequence without symbols"),
    items("items empty", "", "rows.jsonl:1:1 items file 'rows.jsonl' is empty"),
    items("items blank", "\n\n", "rows.jsonl:1:1 items file 'rows.jsonl' is empty"),
    items("bad JSON", f"{ITEM}\n{{'row': 1}}\n", "rows.jsonl:3:2 not JSON"),
    items("NaN", ITEM.replace(" 2,", " NaN,"), "rows.jsonl:1:40 not JSON"),
    items("a list as item", f"{ITEM}[1]\n", "rows.jsonl:2:1 an item is a JSON object"),
    items(
        "no variable in most",
        ITEMS.replace('"row": "1', '"a": 1, "b": "1', 2).replace('"a": 1, ', "", 1),
        "rows.jsonl:1:1 the item has no 'row', which the prompt shows (and 1 more line with",
    ),
    ready(
        "{{ row }}",
        "{{ rwo }}",
        "5:27 undefined variable 'rwo'; did you mean 'row'?\n",
        name="a misspelt name in the prompt and in an item",
        lines=ITEMS.replace('"row": "10"', '"rov": "10"'),
    ),
    items("no target", '{"variables": {}, "length": 2}\n', "rows.jsonl:1:1 no 'target'"),
    items(
        "unknown key",
        ITEM.replace('"target"', '"lenght": 2, "target"'),
        "rows.jsonl:1:1 unknown key 'lenght'",
    ),
    items("misspelt key", ITEM.replace("target", "traget"), "rows.jsonl:1:1 did you mean 'target'"),
    *(
        answered(answer, item, f"rows.jsonl:1:1 {message}")
        for answer, item, message in [
            ("number", '"2"', "the target '2' does not fit 'answer: number'; give a number"),
            ("number", "true", "the target True does not fit 'answer: number'"),
            ("list", "[]", "the target is an empty list"),
            ("list", '"a,,b"', "an item of the target is empty text"),
            ("list", '["a, b"]', "the item 'a, b' has a comma or a line break"),
            ("list", "[1, 2]", "the target [1, 2] does not fit 'answer: list'; give a list of"),
            (CHOICE, '"rde"', "the target 'rde' is none of the options; did you mean 'red'?"),
            (CHOICE, '"x"', "the target 'x' is none of the options; they are 'red', 'green'"),
            (CHOICE, '"red", "accept": ["x"]', "the accepted answer 'x' is none of the options"),
            (
                CHOICE,
                '"red", "accept": ["green"]',
                "the target and accept are all of the options, so every choice would be right\n",
            ),
            ("text", '"a", "accept": "b"', "accept is a list of texts, not 'b'"),
            ("text", '"a", "accept": [" "]', "the accepted answer is empty text"),
            ("text", '"a", "accept": [5]', "the accepted answer 5 does not fit 'answer: text'"),
            (
                "integer",
                '2, "accept": ["b"]',
                "accept goes with symbol, code, text, choice, not",
            ),
            ("integer", '2, "metadata": []', "metadata is a mapping of names to texts or"),
            ("integer", '2, "metadata": {"A b": 1}', "metadata name 'A b' must be lower case"),
            ("integer", '2, "metadata": {"a": null}', "metadata 'a' must be a text or a number"),
            ("integer", '2, "metadat": {}', "unknown key 'metadat' in the item; did you mean"),
        ]
    ),
    items("text as target", ITEM.replace(" 2,", ' "2",'), "rows.jsonl:1:1 target '2' does not fit"),
    items("length -1", ITEM.replace(" 2}", " -1}"), "rows.jsonl:1:1 length must be a whole number"),
    items(
        "length true", ITEM.replace(" 2}", " true}"), "rows.jsonl:1:1 length must be a whole number"
    ),
    items(
        "variables a list", ITEM.replace('{"row": "11"}', "[]"), "rows.jsonl:1:1 variables must be"
    ),
    items(
        "symbols of another length",
        ITEM.replace('"row"', '"symbols": ["1"], "row"'),
        "rows.jsonl:1:1 1 symbols where length is 2",
    ),
    items("UTF-16 items", ITEM.encode("utf-16"), "rows.jsonl:1:1 not UTF-8"),
    items(
        "two bad items",
        f"{ITEM}{{}}\n{ITEM}oops\n",
        "rows.jsonl:2:1 no 'variables'",
        "rows.jsonl:4:1 not JSON",
    ),
    items(
        "one mistake on many lines",
        f"{{}}\n{ITEM}" * 1000 + "oops\n" + ITEM.replace(" 2,", " 2.5,") * 2,
        "rows.jsonl:1:1 no 'variables' (and 999 more lines with the same mistake)",
        "rows.jsonl:2001:1 not JSON",
        "rows.jsonl:2002:1 (and 1 more line with the same mistake)",
    ),
    items(
        "a variable of some items only",
        f"{ITEM}{ITEM.replace('row', 'rwo')}",
        "rows.jsonl:2:1 the item has no 'row', which the prompt shows; it has 'rwo'\n",
    ),
    items(
        "a variable called length",
        ITEM.replace('"row"', '"length": 2, "row"'),
        "3:8 variable 'length' hides",
    ),
]

BROKEN = [*FILE_ITSELF, *KEYS, *AXES, *ANSWERS, *PROMPTS, *GENERATORS, *ITEM_FILES]


def write(folder: Path, broken: Broken) -> Path:
    """The task file, written with those beside it."""
    for name, content in {**broken.others, "task.yaml": broken.text}.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return folder / "task.yaml"


def matches(said_line: str, folder: Path, place: str, message: str) -> bool:
    file = place if ".jsonl:" in place else f"task.yaml:{place}"
    return said_line.startswith(f"{folder}/{file}: ") and message in f"{said_line}\n"


by_name = pytest.mark.parametrize("broken", BROKEN, ids=[broken.name for broken in BROKEN])


def test_the_table_is_long_and_each_file_is_in_it_once() -> None:
    """At least sixty broken files, all different."""
    assert len({(broken.text, *broken.others.values()) for broken in BROKEN}) == len(BROKEN)
    assert len({broken.name for broken in BROKEN}) == len(BROKEN) >= 60


def test_the_files_that_are_broken_below_are_sound(tmp_path: Path) -> None:
    """Without its mistake each file of the table would be right."""
    (tmp_path / "rows.py").write_text(ROWS)
    (tmp_path / "rows.jsonl").write_text(ITEMS)
    for name, sound in (("good", GOOD), ("ready", READY)):
        (tmp_path / f"{name}.yaml").write_text(sound)
        assert open_task(f"x/{name}", tmp_path / f"{name}.yaml").spec.version == 1


@by_name
def test_each_mistake_is_said_once_with_its_place(broken: Broken, tmp_path: Path, lab: Lab) -> None:
    """Every mistake is one line, `file:line:column: message`, and there are no others; `bench tasks
    check` and `bench run` print the same on stderr and nothing on stdout.
    """
    path = write(tmp_path, broken)
    with pytest.raises(TaskFileError) as caught:
        open_task("x/task", path)
    lines = str(caught.value).splitlines()
    missing = [
        one for one in broken.expected if not any(matches(line, tmp_path, *one) for line in lines)
    ]
    assert not missing, lines
    assert len(lines) == len(broken.expected), lines
    checked = lab.bench("tasks", "check", path)
    assert (checked.code, checked.out, checked.err.splitlines()) == (2, "", lines)
    ran = lab.bench_run(task=path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == ["bench: a task file is wrong", *lines]
    assert not lab.out.exists()


def test_mistakes_of_all_files_are_said_at_once(tmp_path: Path, lab: Lab) -> None:
    """A folder with two broken files and a sound one says what is wrong in both."""
    (tmp_path / "rows.py").write_text(ROWS)
    (tmp_path / "a.yaml").write_text(GOOD.replace("samples: 2", "samples: 0"))
    (tmp_path / "b.yaml").write_text(GOOD)
    (tmp_path / "c.yaml").write_text(GOOD.replace("[2, 5]", "[]"))
    done = lab.bench_run(task=tmp_path)
    assert done.code == 2
    assert [line.partition(": ")[0] for line in done.err.splitlines()[1:]] == [
        f"{tmp_path}/a.yaml:6:10",
        f"{tmp_path}/c.yaml:5:10",
    ]


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_other_line_ends_change_no_place(ends: str, tmp_path: Path) -> None:
    """A file with line ends of Windows is read, and its mistakes are where an editor shows them."""
    (tmp_path / "rows.py").write_text(ROWS)
    path = tmp_path / "task.yaml"
    path.write_bytes(GOOD.replace("\n", ends).encode())
    assert open_task("x/task", path).spec.prompt.count("\n") == 3
    path.write_bytes(
        GOOD.replace("{{ sequence }}", "{{ sequense }}{{ sequence }}").replace("\n", ends).encode()
    )
    with pytest.raises(TaskFileError, match=r"task\.yaml:14:11: .*sequence"):
        open_task("x/task", path)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """What an editor of Windows puts before the text is passed over, and shifts no column."""
    (tmp_path / "rows.py").write_text(ROWS)
    path = tmp_path / "task.yaml"
    path.write_text(GOOD, encoding="utf-8-sig")
    assert open_task("x/task", path).spec.version == 1
    path.write_text(GOOD.replace("version: 1", "version: 0"), encoding="utf-8-sig")
    with pytest.raises(TaskFileError, match=r"task\.yaml:1:10: version"):
        open_task("x/task", path)


def test_columns_count_characters_not_bytes(tmp_path: Path) -> None:
    """Letters of two to four bytes before a mistake shift its column by one each."""
    (tmp_path / "rows.py").write_text(ROWS)
    path = tmp_path / "task.yaml"
    path.write_text(GOOD.replace("{symbol: ", "{é: 日, 😀: x, symbol: "))
    with pytest.raises(TaskFileError) as caught:
        open_task("x/task", path)
    places = [line.split(": ")[0].partition("yaml:")[2] for line in str(caught.value).splitlines()]
    assert places == ["4:10", "4:16"]


def test_an_empty_file_name_and_a_folder_are_mistakes_too(tmp_path: Path) -> None:
    """What cannot be read at all is said with its reason."""
    for path, reason in ((tmp_path, "is a directory"), (tmp_path / "no.yaml", "no such file")):
        with pytest.raises(TaskFileError, match=f":1:1: cannot be read: {reason}"):
            open_task("x/task", path)


def test_half_a_character_in_yaml_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where PyYAML has no libyaml, which refuses it by itself."""
    (tmp_path / "rows.py").write_text(ROWS)
    path = tmp_path / "task.yaml"
    path.write_text(GOOD.replace('comma: ","', r'comma: "\ud83d"'))
    with pytest.raises(TaskFileError, match=r"task\.yaml:10:3\d: .*(escape|surrogate)"):
        open_task("x/task", path)
    monkeypatch.setattr(source, "_Loader", yaml.SafeLoader)
    with pytest.raises(TaskFileError, match=r"task\.yaml:10:31: a lone surrogate"):
        open_task("x/task", path)


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
GREEDY = [
    text("alias bomb", BOMB, "alias"),
    text("nested past the stack", f"params: {'[' * 100_000}\n", "nested too deeply"),
    good("[2, 5]", "[2, 1000000000]", "5:14 length", name="a length of 10 ** 9"),
]


def test_small_files_take_little_time_and_memory(tmp_path: Path) -> None:
    """Files that would unfold to gigabytes are refused with their places, all within limits."""
    files = []
    for number, broken in enumerate(GREEDY):
        (tmp_path / str(number)).mkdir()
        files.append(str(write(tmp_path / str(number), broken)))
    done = subprocess.run(
        [sys.executable, "-c", WITHIN_LIMITS, "tasks", "check", ",".join(files)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2, (done.returncode, done.stderr[-300:])
    for file, broken in zip(files, GREEDY, strict=True):
        place, message = broken.expected[0]
        said = [line for line in done.stderr.splitlines() if line.startswith(file)]
        wanted = f"{file}:{place}" if place[0].isdigit() else place
        assert any(wanted in line for line in said), said
        assert any(message in line for line in said), said
    assert "Traceback" not in done.stderr


WITHIN_LIMITS = """\
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from eyechart.harness.cli.app import main
main()
"""
"""`bench` with a gigabyte of memory and five seconds of processor time."""
