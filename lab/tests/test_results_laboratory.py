"""The published studies of the laboratory: pages, tables and text follow from the rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from markupsafe import Markup

from eyechart.harness.analysis.length.interval import Bound
from eyechart_lab.probe.fails_first import FallingShare, first_to_fail
from eyechart_lab.variants.asking import read_csv
from eyechart_lab.variants.choices import CHOICES
from eyechart_lab.variants.results import page
from eyechart_lab.variants.results.results import p_text, results_of
from eyechart_lab.variants.variant import Variant
from lab.pages import CHAPTER, HERE, chapter, pages, written

REPORTED = HERE.parent.parent.parent / "shared" / "reported" / "mtandhj2025_rope_base_sweep.csv"
README = (HERE / "README.md").read_text(encoding="utf-8")
SMOLLM2 = HERE.parent / "smollm2"


def variants(study: str) -> list[dict[str, str]]:
    """The rows of a table of variants."""
    with (HERE / f"{study}_variants.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_pages_and_tables_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m lab.pages` changes nothing, but for how charts are drawn."""
    monkeypatch.setattr(page, "_svg", lambda _chart: Markup("<svg></svg>"))
    drawn = re.compile(r"<svg.*?</svg>", re.DOTALL)
    for path, text in pages():
        assert drawn.sub("", path.read_text(encoding="utf-8")) == drawn.sub("", text), path.name


def test_the_list_of_mechanisms() -> None:
    """It is that of the code; each has its source, and is read as it is written there."""
    assert CHAPTER.read_text(encoding="utf-8") == chapter()
    for field, choice in CHOICES.items():
        for kind in choice.kinds:
            assert kind.source or kind.name == "none"
            besides = {"positions": "none"} if field == "attention" else {}
            variant = Variant.model_validate(besides | {field: yaml.safe_load(written(kind))})
            assert type(getattr(variant, field)) is kind


def test_the_table_of_bases() -> None:
    """Shares and intervals of the text are those of the tables of variants."""
    found: dict[str, list[str]] = {}
    for study in ("base_sweep", "base_sweep_merged"):
        for row in variants(study):
            names = ("beyond", "beyond_ci_low", "beyond_ci_high")
            share, low, high = (f"{100 * float(row[name]):.0f}" for name in names)
            found.setdefault(row["variant"], []).append(f"{share} ({low} to {high})")
    for variant, shares in found.items():
        base = f"{int(variant.removeprefix('base_')):,}"
        assert f"| {base} | {' | '.join(shares)} |" in README
    assert len(found) == 10


MAJORITY = ("depth", "stretch", "attention", "base_sweep", "seq_vcr")
LATER = ("stretch_more", "adaptive", "pause")


def of_the_majority(studies: Sequence[str]) -> Iterator[str]:
    """The rows of a table of studies of the majority, from their tables of variants."""
    for study in studies:
        for row in variants(f"{study}_majority"):
            shares = [f"{100 * float(row[name]):.0f}" for name in ("within", "beyond")]
            ps = [
                f"{float(row[name]):.2g}" if row[name] else "–"
                for name in ("within_p", "p", "beyond_p")
            ]
            ends = [row[f"effective_length_ci_{end}"] for end in ("low", "high")]
            span = f" ({' to '.join(f'{float(one):.0f}' for one in ends)})" if all(ends) else ""
            less = "less than " * (row["effective_length_bound"] == "<")
            right = f"{less}{float(row['effective_length']):.0f}{span}"
            yield (
                f"| `{study}` | `{row['variant']}` | {shares[0]} | {ps[0]} | {right} | {ps[1]} "
                f"| {shares[1]} | {ps[2]} |"
            )


@pytest.mark.parametrize("studies", [MAJORITY, LATER])
def test_the_table_of_the_majority(studies: Sequence[str]) -> None:
    """Lengths, shares and p of the text are those of the tables of variants."""
    assert "\n".join(of_the_majority(studies)) in README


def test_no_length_is_claimed_where_the_answers_end() -> None:
    """No mean lies beyond the lines whose answers the training had."""
    studies = [study.stem for study in HERE.glob("*.yaml")]
    rows = [row for study in studies for row in variants(study)]
    claimed = [row for row in rows if row["effective_length"]]
    assert all(float(row["effective_length"]) <= int(row["answers_to"]) for row in claimed)
    assert {row["answers_to"] for row in rows if row["task"] == "counting/ones"} == {
        *("6", "20", "32", "40")
    }


@pytest.mark.skipif(not REPORTED.exists(), reason="the reported figures are not beside the project")
def test_the_authors_figures() -> None:
    """The last column of the table."""
    with REPORTED.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            base, figure = f"{int(row['base']):,}", re.escape(row["case_1_accuracy_percent"])
            assert re.search(rf"^\| {base} \|.*\| {figure} \|$", README, re.MULTILINE)


@pytest.mark.parametrize(
    ("study", "variant", "condition", "column", "p"),
    [
        ("positions_bounded", "none", "position=first", "beyond_p", "0.016"),
        ("positions_bounded", "alibi", "position=first", "beyond_p", "0.032"),
        ("positions_bounded", "none", "position=last", "beyond_p", "0.048"),
        ("positions_bounded", "alibi", "divisor=ten", "beyond_p", "0.016"),
        ("positions_majority", "none", "lead=least", "p", "0.016"),
        ("positions_majority", "alibi", "lead=least", "beyond_p", "0.016"),
        ("depth_majority", "layers_8", "lead=least", "beyond_p", "0.016"),
        ("depth_majority", "layers_8", "lead=least", "p", "0.063"),
        ("stretch_majority", "ntk_4", "lead=least", "p", "0.024"),
        ("attention_majority", "differential", "lead=least", "p", "0.016"),
        ("attention_majority", "differential", "lead=least", "beyond_p", "0.98"),
        ("base_sweep_majority", "base_1", "lead=least", "within_p", "0.024"),
        ("base_sweep_majority", "base_100", "lead=least", "p", "0.67"),
        ("stretch_more_majority", "dual_chunk", "lead=least", "p", "0.04"),
        ("stretch_more_majority", "yarn_2", "lead=least", "beyond_p", "0.048"),
        ("stretch_more_majority", "linear_2", "lead=least", "within_p", "0.04"),
        ("adaptive_majority", "adaptive", "lead=least", "beyond_p", "0.024"),
        ("positions_selective", "alibi", "asked=last", "beyond_p", "0.029"),
        ("positions_selective", "alibi", "asked=last", "p", "0.11"),
        ("stretch_ones", "linear_2", "separator=none", "within_p", "0.029"),
        ("positions", "randomised", "position=first", "p", "0.03"),
        ("positions", "none", "separator=none,strategy", "beyond_p", "0.015"),
        ("positions", "sinusoidal", "separator=none,strategy", "beyond_p", "0.019"),
        ("positions", "randomised", "position=first", "beyond_p", "0.32"),
        ("attention", "adaptive", "separator=none,strategy", "p", "0.04"),
        ("attention", "adaptive", "position=last", "within_p", "0.04"),
        ("seq_vcr", "seq_vcr", "separator=none,strategy", "beyond_p", "0.55"),
        ("attention", "relu", "position=first", "beyond_p", "0.079"),
        ("base_sweep", "base_1", "separator=comma", "beyond_p", "0.019"),
        ("stretch", "yarn_2", "position=first", "p", "0.045"),
        ("stretch", "ntk_4", "position=first", "p", "0.071"),
        ("stretch", "yarn_4", "position=first", "beyond_p", "0.015"),
        ("stretch", "linear_4", "position=first", "beyond_p", "0.015"),
        ("stretch", "yarn_4", "position=last", "beyond_p", "0.061"),
    ],
)
def test_what_is_said_of_a_difference(
    study: str, variant: str, condition: str, column: str, p: str
) -> None:
    """The text's p is that of a table."""
    rows = [
        row
        for row in variants(study)
        if row["variant"] == variant and row["condition"].startswith(condition)
    ]
    assert f"{float(rows[-1][column]):.2g}" == p
    assert f"p = {p}" in README


@pytest.mark.parametrize(
    ("task", "condition", "what", "p"),
    [
        ("counting/bernoulli", "separator=none", "by_beyond", "0.0022"),
        ("counting/ones", "separator=none", "by_within", "0.0022"),
        ("copying/first_last", "position=last", "by_length", "0.039"),
        ("copying/first_last", "position=first", "by_length", "0.063"),
        ("copying/first_last", "position=first", "by_beyond", "0.63"),
        ("copying/first_last", "position=last", "by_beyond", "0.23"),
    ],
)
def test_randomised_positions_against_the_encoding_that_they_randomise(
    task: str, condition: str, what: str, p: str
) -> None:
    """The p of the two variants alone, with sinusoidal positions as the reference."""
    two = ("sinusoidal", "randomised")
    rows = [row for row in read_csv(HERE / "positions.csv") if row.variant in two]
    (found,) = (
        one
        for one in results_of(rows, two[0])
        if (one.variant, one.task) == (two[1], task) and one.condition.startswith(condition)
    )
    assert p_text(getattr(found, what).p) == p
    assert f"p = {p}" in README.partition("**Randomised positions and")[2].partition("\n\n")[0]


def test_every_study_has_its_rows() -> None:
    """And none diverged."""
    for study in HERE.glob("*.yaml"):
        assert study.with_suffix(".csv").exists()
        assert {row["diverged"] for row in variants(study.stem)} == {"0"}
        assert Path(f"{study.stem}.html").name in README


@pytest.mark.parametrize(
    ("folder", "lengths", "said", "quantity", "layer"),
    [
        (HERE, "symbols, fixed length", "read at the end, %, ±3 to 9", "best_readable", ""),
        (HERE, "symbols, fixed length", "from the length alone, %", "position_readable", ""),
        (SMOLLM2, "symbols", "read after the last layer, %", "readable", "30"),
        (SMOLLM2, "symbols", "random directions read at the best layer, %", "best_control", ""),
    ],
)
def test_what_is_read_at_the_end_is_that_of_the_rows(
    folder: Path, lengths: str, said: str, quantity: str, layer: str
) -> None:
    """The tables of the pages, by task and length."""
    page = (folder / "README.md").read_text(encoding="utf-8").partition("## Read and not said")[2]
    table = {
        name.strip(): [cell.strip() for cell in cells]
        for name, *cells in (
            line.strip("|").split("|") for line in page.splitlines() if "|" in line
        )
    }
    with (folder / "readout.csv").open(newline="", encoding="utf-8") as file:
        known = {
            row["length"]: float(row[quantity])
            for row in csv.DictReader(file)
            if (row["task"], row["layer"]) == ("counting/density", layer)
        }
    for length, percent in zip(table[lengths], table[said], strict=True):
        assert abs(100 * known[length] - float(percent)) <= 0.5001, length


def test_no_head_without_positions_prefers_itself_or_the_token_before() -> None:
    """The table of rows of one symbol is that of the largest head in each cell of its file."""
    page = (HERE / "README.md").read_text(encoding="utf-8").partition("**Rows of one symbol.**")[2]
    lines = [line.strip("| ").split(" | ") for line in page.split("\n\n")[1].splitlines()]
    names = {"ALiBi": "alibi", "RoPE": "rope", "no positions": "none"}
    with (HERE / "equal_rows.csv").open(newline="", encoding="utf-8") as file:
        heads = list(csv.DictReader(file))
    quantity = ""
    for name, *cells in lines[2:-1]:
        of, _, encoding = name.rpartition(": ")
        quantity = {"the token before": "previous", "the token itself": "diagonal"}.get(
            of, quantity
        )
        for length, cell in zip(("10", "20", "40", "160"), cells, strict=True):
            largest = max(
                float(one[quantity])
                for one in heads
                if (one["variant"], one["length"]) == (names[encoding], length)
            )
            assert cell == f"{largest:.3f}"
            alike = dict(zip(("10", "20", "40", "160"), lines[-1][1:], strict=True))[length]
            assert encoding != "no positions" or largest <= 2.8 * float(alike)


def failing() -> dict[tuple[str, str], dict[str, list[dict[str, str]]]]:
    """Model and task -> share -> its lines, of `fails_first.csv`."""
    found: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
    with (HERE / "fails_first.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            shares = found.setdefault((row["model"], row["task"]), {})
            shares.setdefault(row["share"], []).append(row)
    return found


def held(line: dict[str, str]) -> FallingShare:
    """A share with the lengths that a line of the file has."""
    length, low, high = (
        Bound(text[0] if text[0] in "<>" else "=", float(text.lstrip("<> ")))  # type: ignore[arg-type]
        if text
        else None
        for text in (line["holds"], line["holds_low"], line["holds_high"])
    )
    assert low is not None
    assert high is not None
    unknown = int(line["unknown_from"]) if line["unknown_from"] else None
    return FallingShare(line["share"], (), length, (low, high), unknown)


def said_first(model: str, task: str) -> str:
    """The sentence of what fails first, from the lengths of the file."""
    return first_to_fail([held(lines[0]) for lines in failing()[model, task].values()])


POINT = re.compile(
    r"condition: (?P<share>[^;]+); length: (?P<length>\d+); mean: (?P<value>[^;]+); "
    r'from: (?P<low>[^;]+); to: (?P<high>[^;]+); samples: (?P<n>\d+)"[^>]* '
    r'fill="(?P<fill>[^"]+)"[^>]* stroke="(?P<stroke>[^"]+)"'
)
TITLE = re.compile(r">(hf/[a-z]+-\d), What fails first<")


@pytest.mark.parametrize(
    ("picture", "task", "models"),
    [
        ("fails_first_tiny.svg", "counting/density", ["tiny"]),
        ("fails_first_density.svg", "counting/density", ["hf/none-0", "hf/rope-0"]),
        (
            "fails_first_majority.svg",
            "bounded/majority",
            ["hf/none-0", "hf/alibi-0", "hf/rope-0"],
        ),
    ],
)
def test_the_picture_of_what_fails_first_is_that_of_the_file(
    picture: str, task: str, models: list[str]
) -> None:
    """Its points are the lines of the file, each filled and outlined in one colour; the page shows
    it.
    """
    drawing = (HERE / picture).read_text(encoding="utf-8")
    parts = TITLE.split(drawing)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True)) or {models[0]: drawing}
    assert list(bodies) == models
    numbers = ("value", "low", "high")
    for model, body in bodies.items():
        points = [found.groupdict() for found in POINT.finditer(body)]
        assert all(point["fill"] == point["stroke"] for point in points)
        drawn = {
            (point["share"], point["length"], point["n"]): [
                f"{float(point[name]):.4g}" for name in numbers
            ]
            for point in points
        }
        assert drawn == {
            (share, line["length"], line["n"]): [f"{float(line[name]):.4g}" for name in numbers]
            for share, lines in failing()[model, task].items()
            for line in lines
        }
    assert f"]({picture})" in README


def test_the_sentence_of_what_fails_first_is_that_of_the_file() -> None:
    """In the chapter, of the embedded model."""
    chapter = (HERE.parents[1] / "docs" / "inside.md").read_text(encoding="utf-8")
    assert said_first("tiny", "counting/density") in chapter
    assert said_first("tiny", "counting/bernoulli").startswith("Not known which fails first")


def test_the_table_of_order_and_distance_is_that_of_the_file() -> None:
    """And so are the lengths that the text has of both models."""
    page = README.partition("### In two models of the laboratory")[2]
    lines = [line.strip("| ").split(" | ") for line in page.split("\n\n")[2].splitlines()]
    with (HERE / "order.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {"right, %": "accuracy", "ordered, %": "ordered", "rounding alone": "rounding"}
    model = ""
    for name, *cells in lines[2:]:
        of, _, quantity = name.rpartition(": ")
        model = {"RoPE": "hf/rope-0", "no positions": "hf/none-0"}.get(of, model)
        column = columns.get(quantity, "distance")
        known = {row["length"]: float(row[column]) for row in rows if row["model"] == model}
        for length, cell in zip(lines[0][1:], cells, strict=True):
            shown = known[length] if "%" not in quantity else 100 * known[length]
            assert abs(shown - float(cell)) <= (0.5001 if "%" in quantity else 0.000501), cell
    shares = failing()
    for model in ("hf/rope-0", "hf/none-0"):
        assert said_first(model, "counting/density").startswith("Not known which fails first")
        order = shares[model, "counting/density"]["order kept"][0]
        low, high = order["holds_low"], order["holds_high"]
        assert f"tells rows apart to {order['holds']} ({low} to {high})" in page


def test_the_table_of_what_fails_first_is_that_of_the_files() -> None:
    """Of the models of the majority, with the shares at two lengths, and which of them are said to
    fail first in their answers.
    """
    with (HERE / "readout_models.csv").open(newline="", encoding="utf-8") as file:
        read = {
            (row["model"], row["length"]): row
            for row in csv.DictReader(file)
            if row["task"] == "bounded/majority" and not row["layer"]
        }
    names = {"none": "no positions", "alibi": "ALiBi", "rope": "RoPE"}
    first = []
    for (model, task), shares in failing().items():
        if task != "bounded/majority":
            continue
        cells = []
        for name in ("answer right", "read at the end"):
            line = shares[name][0]
            ends = f" ({line['holds_low']} to {line['holds_high']})"
            is_open = line["holds"] == line["holds_low"] == line["holds_high"]
            cells.append(line["holds"] + ends * (not is_open))
        right = {line["length"]: line["value"] for line in shares["answer right"]}
        for length in ("40", "100"):
            of_row = read[model, length]
            values = (right[length], of_row["best_readable"], of_row["best_control"])
            cells.append(", ".join(f"{100 * float(value):.0f}" for value in values))
        variant, _, seed = model.removeprefix("hf/").partition("-")
        assert f"| {names[variant]}, seed {seed} | {' | '.join(cells)} |" in README
        if said_first(model, task).startswith("'answer right' fails first"):
            first.append(model)
    assert sorted(first) == ["hf/alibi-0", "hf/alibi-1", "hf/alibi-2", "hf/none-0", "hf/none-1"]
