"""Tables that fit the terminal, at each width, with every cell whole."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from eyechart.harness.analysis.samples.judged_run import read_run
from eyechart.harness.analysis.tables.paper_text import interval_text
from eyechart.harness.analysis.tables.results import TABLE
from eyechart.harness.cli.tables.layout import Column, blocks, joined, letters, show_blocks, table
from eyechart.harness.cli.tables.lists import aligned
from eyechart.harness.cli.terminal import show, tell, width
from eyechart.providers.base import Reply, Request
from tests.conftest import Lab, plain, right

WIDTHS = (80, 100, 120, 200)
AXES = """\
axes:
  separator:
    default: [none, comma]
    values: {none: "", space: " ", comma: ",", a_separator_of_some_length: "; "}
  hint:
    default: [plain]
    values: {plain: "Look.", with_a_hint_that_is_long: "Count."}
prompt: |
  {{ hint }}
"""
"""Eight conditions in all."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that needs the run with eight conditions keeps it for the others."""
    return tmp_path_factory.mktemp("kept") / "results"


@pytest.fixture
def eight(lab: Lab, kept: Path) -> Lab:
    """A lab with a run of eight conditions, some replies unread."""
    if kept.exists():
        shutil.copytree(kept, lab.out)
        return lab
    text = lab.ones.read_text()
    head, tail = text[: text.index("axes:")], text[text.index("prompt: |") :]
    lab.ones.write_text(head + AXES + tail.removeprefix("prompt: |\n"))

    def script(request: Request) -> str | Reply:
        return "hm" if "length=3|seed=0|index=0" in request.sample_id else right(request)

    axes = ("--axis", "separator=all", "--axis", "hint=all", "--lengths", "2,3,50,500")
    assert lab.bench_ask("--model", lab.fake(script), *axes, "--samples", "12").code == 0
    shutil.copytree(lab.out, kept)
    return lab


def scored(lab: Lab) -> str:
    """What `bench score` prints of the run."""
    return lab.bench("score", lab.the_run()).out


def rows_of(out: str) -> list[str]:
    """The lines of tables."""
    return [line for line in out.splitlines() if line.startswith(("|", "+"))]


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_table_fits_and_has_every_cell(eight: Lab, columns: int) -> None:
    """None is cut, none is wrapped, none is missing."""
    eight.monkeypatch.setenv("COLUMNS", str(columns))
    rows = rows_of(scored(eight))
    assert max(map(cell_len, rows)) <= columns
    cells = [cell.strip() for row in rows if row[0] == "|" for cell in row.strip("|").split("|")]
    run = read_run(eight.the_run())
    accuracies = [
        interval_text(row["accuracy"], row["ci_low"], row["ci_high"])
        for _, row in run.cells.iterrows()
    ]
    assert len(accuracies) == 32
    for text in set(accuracies):
        assert cells.count(text) == accuracies.count(text)
    for condition in run.conditions:
        assert set(condition.values()) <= set(cells)
    assert cells.count("accuracy, %") == 8


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_terminal_gets_the_same_table(eight: Lab, columns: int) -> None:
    """With other borders, and as narrow."""
    piped = scored(eight)
    eight.monkeypatch.setenv("COLUMNS", str(columns))
    eight.capture.readouterr()
    eight.monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    out = plain(scored(eight))
    lines = [line for line in out.splitlines() if "(" in line and "–" in line]
    assert lines
    assert max(map(cell_len, lines)) <= columns
    numbers = re.findall(r"\d+ \(\d+–\d+\)", out)
    assert sorted(numbers) == sorted(re.findall(r"\d+ \(\d+–\d+\)", piped))


def test_conditions_are_columns_where_they_fit(lab: Lab) -> None:
    """Under the names of their values."""
    lab.bench_ask("--model", lab.fake(right))
    rows = rows_of(lab.bench("score", lab.the_run()).out)
    assert rows[1].strip("|").split() == ["separator", "|", "none", "|", "comma"]
    assert rows[2].count("accuracy, %") == 2


def test_letters_have_a_legend(eight: Lab) -> None:
    """A row for each, with its values and how far the models are right; it comes first."""
    rows = rows_of(scored(eight))
    assert re.match(r"\| +\| separator", rows[1])
    legend = [row for row in rows if re.match(r"\| [A-H] ", row)]
    assert [row[2] for row in legend] == [*"ABCDEFGH"] * (len(legend) // 8)
    assert "a_separator_of_some_length | plain " in " ".join(legend)
    heads = [row for row in rows if re.match(r"\| +length \| +[A-H] ", row)]
    assert " ".join(" ".join(heads).replace("length", "").replace("|", "").split()) == (
        "A B C D E F G H"
    )


OF_MANY = """\
axes:
  separator:
    default: [none, comma]
    values: {none: "", space: " ", comma: ",", semicolon: ";", dash: "-"}
  hint:
    default: [a]
    values: {a: "A", b: "B", c: "C", d: "D", a_hint_with_a_name_of_forty_characters__: "E"}
prompt: |
  {{ hint }}
"""
"""Twenty-five conditions in all."""


def test_many_conditions_are_one_list(lab: Lab) -> None:
    """By effective length, those that are ranked first, without the accuracies, whose file is
    named.
    """
    text = lab.ones.read_text()
    head, tail = text[: text.index("axes:")], text[text.index("prompt: |") :]
    lab.ones.write_text(head + OF_MANY + tail.removeprefix("prompt: |\n"))

    def script(request: Request) -> str | Reply:
        length = int(request.sample_id.partition("|length=")[2].partition("|")[0])
        if "hint=c" in request.sample_id and "separator=dash" in request.sample_id:
            return right(request) if length < 3 else "Final answer: 99"  # the only one by sight
        return "hm" if length == 50 else right(request)

    axes = ("--axis", "separator=all", "--axis", "hint=all", "--lengths", "2,3,50")
    out = lab.bench_run("--model", lab.fake(script), *axes).out
    rows = rows_of(out)
    assert max(map(cell_len, rows)) <= 80
    first, second = (
        [
            cell.strip()
            for cell in next(row for row in rows if row.startswith(f"| {name} ")).split("|")
        ]
        for name in "AB"
    )
    assert (first[2:4], second[2:4]) == (["dash", "c"], ["none", "a"])
    assert "accuracy, %" not in out
    assert (
        "25 conditions, the longest effective length first; the accuracies on each line are in "
        + (str(lab.the_run() / TABLE))
        in out.splitlines()
    )
    lab.monkeypatch.setenv("COLUMNS", "200")
    assert "accuracy, %" in lab.bench("score", lab.the_run()).out


def test_a_pipe_without_a_width_gets_eighty_columns(eight: Lab) -> None:
    """And sentences as one line each, so that they can be searched."""
    out = scored(eight)
    assert max(map(cell_len, rows_of(out))) <= 80
    (said,) = (line for line in out.splitlines() if line.startswith("fake/model counts exactly to"))
    assert "more than 500 symbols (" in said
    assert ") on lab/ones under all 8 conditions" in said
    assert out.count("not sure: 12 rows") == 1


def test_the_width() -> None:
    """Of a pipe none, of what `COLUMNS` says that, and never below 80."""
    assert width() is None


@pytest.mark.parametrize(
    ("given", "known"),
    [("120", 120), ("40", 80), ("", None), ("0", None), ("wide", None), ("٣", None), ("-90", None)],
)
def test_what_the_variable_says(
    monkeypatch: pytest.MonkeyPatch, given: str, known: int | None
) -> None:
    """Nonsense says nothing."""
    monkeypatch.setenv("COLUMNS", given)
    assert width() == known


def test_a_terminal_without_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has eighty columns."""
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert width() == 80


def test_letters_go_on_after_z() -> None:
    """With two."""
    names = letters(26 * 27 + 1)
    assert (names[0], names[25], names[26], names[27], names[-2]) == ("A", "Z", "AA", "AB", "ZZ")
    assert names[-1] == "AAA"
    assert len(set(names)) == len(names)


def test_a_column_that_is_too_wide_has_a_block_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is whole, as are those before and after it."""
    key = Column(["k"], ["A", "B"])
    wide = Column(["wide"], ["x" * 200, "漢" * 50])
    columns = [Column([str(place)], ["1", "2"]) for place in range(3)]
    found = list(blocks([key], [*columns, wide, *columns]))
    assert [len(block) for block in found] == [4, 2, 4]
    show(table(found[1]))
    printed = capsys.readouterr().out
    assert "x" * 200 in printed
    assert "漢" * 50 in printed
    assert len({cell_len(line) for line in printed.splitlines()}) == 1


def test_keys_that_are_too_wide_stand_below_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under letters for the rows; a column that is too wide for any table changes nothing."""
    monkeypatch.setenv("COLUMNS", "80")
    keys = [Column([name], [name * 35, ""], "left") for name in "kl"]
    show_blocks(keys, [Column(["right to"], ["20 (10 to > 20)", "-"])])
    rows = rows_of(capsys.readouterr().out)
    assert max(map(cell_len, rows)) <= 80
    assert [row[:3] for row in rows if row[2] in "AB"] == ["| A", "| B"] * 2
    show_blocks(keys[:1], [Column(["wide"], ["x" * 90, "-"])])
    assert "| A" not in capsys.readouterr().out


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_table_of_several_models_fits(lab: Lab, columns: int) -> None:
    """At the end of a run, with every name whole, also long ones."""
    lab.monkeypatch.setenv("COLUMNS", str(columns))
    axes = ("--axis", "separator=all", "--lengths", "5,10", "--samples", "2")
    label = "a-variant-with-a-name-of-40-characters__"
    models = ("--model", "oracle:20,oracle:60/0.9,tiny", "--name", f"@{label}")
    done = lab.bench_run(*models, *axes)
    rows = rows_of(done.out)
    assert max(map(cell_len, rows)) <= columns
    assert any(f" oracle/60/0.9@{label} " in row for row in rows)


def test_titles_break_between_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never within one."""
    monkeypatch.setenv("COLUMNS", "80")
    assert joined(["task", "model"]) == ["task  model"]
    assert joined(["a" * 50, "b c" * 10, "d" * 90]) == [
        "a" * 50,
        f"  {'b c' * 10}",
        f"  {'d' * 90}",
    ]


def test_a_sentence_is_wrapped_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names stay whole; a key that is told is masked."""
    monkeypatch.setenv("COLUMNS", "80")
    tell("word " * 30 + "results/runs/a-name/" * 5)
    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [79, 69, 100]


def test_what_an_adaptive_run_says_of_conditions_is_wrapped(lab: Lab) -> None:
    """On stderr too, where the width is known."""
    lab.monkeypatch.setenv("COLUMNS", "80")
    done = lab.bench_run("--model", "oracle:9", "--adaptive", task=Path("copying/first_last"))
    said = done.err.splitlines()
    condition = "position=first, hint=off, layout=plain, separator=none, odd=zero, order="
    text = " ".join(map(str.strip, said))
    assert f"copying/first_last {condition}" in text
    assert "its effective length is known to 0." in text
    assert max(map(len, said)) <= 80


def test_a_list_that_is_too_wide_goes_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column after its name; empty ones are left out, long ones wrapped between words."""
    rows = [("name", "size", "what"), ("a", "5", "w " * 50), ("bb", "1,000", "-")]
    assert aligned(rows, right=(1,)) == [
        "name   size  what",
        f"a         5  {'w ' * 49}w",
        "bb    1,000  -",
    ]
    monkeypatch.setenv("COLUMNS", "80")
    assert aligned(rows, right=(1,)) == [
        "name   size",
        "a         5",
        f"    what: {'w ' * 34}w",
        f"      {'w ' * 14}w",
        "bb    1,000",
    ]


@pytest.mark.parametrize("command", ["tasks", "models", "runs"])
def test_lists_fit(lab: Lab, command: str) -> None:
    """At 80 columns; what has no space in it is whole."""
    lab.bench_ask("--model", lab.fake(right))
    lab.monkeypatch.setenv("COLUMNS", "80")
    arguments = ("--out", lab.out) if command == "runs" else ()
    done = lab.bench(command, *arguments)
    assert done.code == 0
    for line in done.out.splitlines():
        assert cell_len(line) <= 80 or str(lab.the_run()) in line
    if command == "runs":
        assert str(lab.the_run()) in [line.strip() for line in done.out.splitlines()]
