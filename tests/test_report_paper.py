"""Figures and tables for papers: their size, their looks, and the numbers of every other door."""

from __future__ import annotations

import json
import re
import struct
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import altair as alt
import pytest

import eyechart
from eyechart.harness.analysis.tables.cells import markdown_text
from eyechart.harness.analysis.tables.paper_text import length_cell, reached_text
from eyechart.harness.cli import outputs
from eyechart.harness.errors import UsageError
from eyechart.harness.report.charts.files import drawn
from eyechart.harness.report.charts.looks import Look
from eyechart.harness.report.paper import files
from eyechart.harness.report.paper.charts import NAMED, accuracy_spec
from eyechart.harness.report.paper.files import DOTS
from eyechart.harness.report.paper.tables import PaperTable, latex_text
from eyechart.harness.settings.figure import INCH, KINDS, WIDTH, FigureStyle
from eyechart.harness.task.catalogue import built_in_files
from eyechart.providers.base import BadRequestError, Request
from tests.conftest import right
from tests.vega_lite import check_valid

if TYPE_CHECKING:
    from tests.conftest import Lab

PDF_BOX = re.compile(rb"/MediaBox ?\[ ?0 0 ([\d.]+) ([\d.]+) ?\]")
TITLES = ("Accuracy by length", "Effective length and its", "counting/words")
"""Texts of charts for the page, and of titles."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`tiny`, the same read by likelihood, and an oracle, on one task under two conditions."""
    asked: dict[str, Any] = {
        "axes": {"strategy": ["direct", "cot_few_shot"]},
        "samples": 6,
        "lengths": [5, 20, 40, 80],
        "exact": True,
        "out": tmp_path_factory.mktemp("paper"),
    }
    return {
        "tiny": eyechart.run("counting/words", "tiny", **asked).folder,
        "tiny@likelihood": eyechart.run(
            "counting/words", "tiny", reading="likelihood", **asked
        ).folder,
        "oracle": eyechart.run("counting/words", "oracle:30", **asked).folder,
    }


def figure(lab: Lab, *arguments: str | Path) -> list[Path]:
    """The files that `bench figure` writes."""
    done = lab.bench("figure", *arguments)
    assert done.code == 0, done
    return [Path(line) for line in done.out.splitlines()]


def charts(kind: str, *named: Path, **style: Any) -> dict[str, Any]:
    """The specs of the charts in Python. Altair makes no objects of them here, which is slow."""
    with pytest.MonkeyPatch.context() as patch:
        for made in (alt.LayerChart, alt.VConcatChart):
            patch.setattr(made, "from_dict", lambda spec, **_: spec)
        return cast("dict[str, Any]", eyechart.figures(kind, named, **style))


def test_a_text_that_xml_cannot_have_is_drawn() -> None:
    """A stranger's run may have such a name, and the converter would abort the process."""
    spec = {
        "data": {"values": [{"model": "x\x00\x1b\uffffy"}]},
        "title": "a\x0bb<&",
        "mark": "text",
        "encoding": {"text": {"field": "model"}},
    }
    text = drawn(spec, "svg").decode()
    assert "x\\x00\\x1b\\uffffy" in text
    assert "a\\x0bb&lt;&amp;" in text


def test_a_legend_names_what_is_drawn(tmp_path: Path) -> None:
    """Of two models that were asked under other conditions; a value has one colour in all."""
    asked: dict[str, Any] = {"samples": 2, "lengths": [5, 10], "out": tmp_path}
    folders = [
        eyechart.run("counting/ones", model, axes={"separator": separators}, **asked).folder
        for model, separators in (("oracle:10", ["none", "comma"]), ("oracle:9", ["none", "space"]))
    ]
    named = []
    for spec in charts("accuracy", *folders).values():
        (legend,) = {
            json.dumps(layer["encoding"]["color"]["legend"])
            for layer in spec["layer"]
            if layer["encoding"].get("color", {}).get("legend")
        }
        (domain,) = {
            tuple(layer["encoding"]["color"]["scale"]["domain"])
            for layer in spec["layer"]
            if "color" in layer["encoding"]
        }
        named.append((domain, json.loads(legend).get("values")))
    separators = ("none", "space", "comma")
    assert named == [
        (("oracle/10", "oracle/9"), None),
        (separators, ["none", "comma"]),
        (separators, ["none", "space"]),
    ]


class TestFiles:
    """`bench figure`."""

    def test_each_format_has_the_width_of_a_column(
        self, lab: Lab, runs: dict[str, Path], tmp_path: Path
    ) -> None:
        """In inches, with all labels; nothing is beyond the edge."""
        stem = tmp_path / "new" / "lengths"
        written = figure(
            lab, "lengths", runs["tiny"], runs["oracle"], "-o", stem, "--format", "pdf,svg,png"
        )
        assert [path.name for path in written] == ["lengths.pdf", "lengths.svg", "lengths.png"]
        pdf, svg, png = (path.read_bytes() for path in written)
        box = PDF_BOX.search(pdf)
        assert box is not None
        assert float(box[1]) == WIDTH * INCH
        assert struct.unpack(">II", png[16:24])[0] == pytest.approx(WIDTH * DOTS, abs=1)
        assert f'width="{WIDTH:g}in" height="'.encode() in svg
        assert f'viewBox="0 0 {WIDTH * INCH:g} '.encode() in svg

    def test_several_figures_are_below_each_other(self, lab: Lab, runs: dict[str, Path]) -> None:
        """In the file that was named: all models under one condition, and each under its own."""
        stem = lab.folder / "accuracy.svg"
        command = ("accuracy", runs["tiny"], runs["oracle"], "-o", stem)
        written = figure(lab, *command, "--format", "svg,pdf,png")
        assert [path.name for path in written] == ["accuracy.svg", "accuracy.pdf", "accuracy.png"]
        text = stem.read_text(encoding="utf-8")
        assert not [title for title in TITLES if title in text]
        heads = re.findall('font-weight="bold">([^<]*)</text>', text)
        assert heads == ["all models, strategy direct", "tiny", "oracle/30"]
        assert text.count(">length (symbols)<") == text.count(">accuracy<") == 3
        assert ">cot_few_shot<" in text
        box = PDF_BOX.search(written[1].read_bytes())
        assert box is not None
        width, high = map(float, box.groups())
        assert (width, high) == pytest.approx((WIDTH * INCH, 3 * (0.62 * 234 + 12.8)), rel=0.01)
        wide, tall = struct.unpack(">II", written[2].read_bytes()[16:24])
        assert (wide, tall) == pytest.approx((WIDTH * DOTS, high * DOTS / INCH), abs=2)
        (again,) = figure(lab, "accuracy", runs["tiny"], "-o", stem, "--width", "6.75")
        assert again == stem
        assert 'width="6.75in"' in again.read_text(encoding="utf-8")

    def test_a_file_has_room_for_so_many(self, lab: Lab, runs: dict[str, Path]) -> None:
        """More are too tall for any paper; nothing is written."""
        lab.monkeypatch.setattr(files, "MOST", 2)
        stem = lab.folder / "accuracy.pdf"
        done = lab.bench("figure", "accuracy", runs["tiny"], runs["oracle"], "-o", stem)
        done.one_line(2, "these are 3 figures, and a file has room for 2; name fewer runs")
        assert not stem.exists()

    def test_a_document_names_the_files(
        self, lab: Lab, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without `-o` the file is named by its kind; notes are not on stdout."""
        monkeypatch.chdir(lab.folder)
        done = lab.bench("figure", "lengths", runs["tiny"], "--json")
        assert json.loads(done.out) == {"files": ["lengths.pdf"]}
        assert "counting/words: † not sure: 6 rows" in done.err
        assert (lab.folder / "lengths.pdf").read_bytes().startswith(b"%PDF-")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("acuracy", "RUN"), ["no figure 'acuracy'", "'accuracy'"]),
            (("accuracy", "RUN", "--format", "eps"), ["--format is one of pdf, png, svg", "'eps'"]),
            (("accuracy", "RUN", "-o", "a.eps"), ["-o 'a.eps' must end in .pdf, .png or .svg"]),
            (("accuracy", "RUN", "--width", "0.2"), ["the width must be", "1 to 20 inches"]),
            (("accuracy", "RUN", "--height", "90"), ["the height must be", "1 to 20 inches"]),
            (("accuracy", "RUN", "--font-size", "2"), ["the font size", "4 to 24 points"]),
            (("accuracy", "RUN", "--font", " "), ["the font must have a name"]),
            (("accuracy", "RUN", "--font", "a<b>"), ["the font 'a<b>' has '<'"]),
            (("accuracy", "RUN", "--font", "A & B"), ["the font 'A & B' has '&'"]),
            (("readings", "RUN"), ["no model is here with both readings", "--read likelihood"]),
        ],
    )
    def test_a_mistake_is_one_line(self, lab: Lab, arguments: list[str], said: list[str]) -> None:
        """What is wrong and what helps."""
        assert lab.bench_ask("--lengths", "3", "--samples", "2").code == 0
        named = [lab.the_run() if one == "RUN" else one for one in arguments]
        lab.bench("figure", *named).one_line(2, *said)

    def test_what_cannot_be_written_is_one_line(self, lab: Lab) -> None:
        """A folder in the place of the file, and a file in the place of the folder."""
        assert lab.bench_ask("--lengths", "3", "--samples", "2").code == 0
        (lab.folder / "taken.pdf").mkdir()
        (lab.folder / "file").write_text("")
        place = lab.folder / "taken.pdf"
        lab.bench("figure", "accuracy", lab.the_run(), "-o", place).one_line(2, "is a folder")
        below = lab.folder / "file" / "a.pdf"
        lab.bench("figure", "accuracy", lab.the_run(), "-o", below).one_line(1, "cannot write")

    def test_without_scored_samples_nothing_is_drawn(self, lab: Lab) -> None:
        """Neither a file nor an empty chart."""
        lab.bench_ask("--lengths", "3", "--samples", "2", "--model", lab.fake(_no_reply))
        done = lab.bench("figure", "accuracy", lab.the_run(), "-o", lab.folder / "a.pdf")
        done.one_line(2, "no sample of these runs is scored, so there is nothing to draw")
        assert not (lab.folder / "a.pdf").exists()

    def test_a_missing_extra_is_named(self, lab: Lab) -> None:
        """Before anything is written, and once all that was given can be drawn: nobody installs
        it to learn that a name is wrong.
        """
        assert lab.bench_ask("--lengths", "3", "--samples", "2").code == 0
        lab.monkeypatch.setitem(vars(outputs), "find_spec", lambda _name: None)
        place = lab.folder / "a.svg"
        done = lab.bench("figure", "accuracy", lab.the_run(), "-o", place)
        done.one_line(2, "--format svg needs the package vl-convert-python: ", "[charts]")
        lab.bench("figure", "acuracy", lab.the_run(), "-o", place).one_line(2, "no figure")
        assert "no run in" in lab.bench("figure", "lengths", lab.folder / "away", "-o", place).err
        for kind, code in (("figure", ["lengths"]), ("report", ["--format", "svg"])):
            done = lab.bench(kind, *code, lab.folder / "away")
            assert "no run in" in done.err
            assert "vl-convert" not in done.err
        assert not place.exists()

    def test_a_run_that_is_named_twice_is_said(self, lab: Lab) -> None:
        """Also with another path to it: one mark would look like two that agree."""
        assert lab.bench_ask("--lengths", "3", "--samples", "2").code == 0
        run = lab.the_run()
        beside = run.parent / "other" / ".." / run.name
        (run.parent / "other").mkdir()
        place = lab.folder / "a.svg"
        done = lab.bench("figure", "lengths", run, beside, "-o", place)
        assert done.code == 0
        assert f"{run} is named 2 times, and shown once" in " ".join(done.err.split())
        assert "named" not in lab.bench("figure", "lengths", run, "-o", place).err


def _no_reply(_request: object) -> str:
    raise BadRequestError("no")


class TestLooks:
    """Readable in grey and for the colour-blind."""

    def test_series_differ_without_colour(self, runs: dict[str, Path]) -> None:
        """By mark and by dash."""
        (spec,) = charts("accuracy", runs["tiny"]).values()
        *_, lines, marks = spec["layer"]
        dashes = lines["encoding"]["strokeDash"]["scale"]["range"]
        shapes = marks["encoding"]["shape"]["scale"]["range"]
        assert len({tuple(dash) for dash in dashes}) == len(set(shapes)) == 2
        assert marks["encoding"]["shape"]["legend"]["title"] == "strategy"

    def test_legends_stay_within_the_width(self) -> None:
        """Entries without room stand below each other; two axes have a legend each."""
        names = [f"a-model-with-a-long-name-{place}" for place in range(4)]
        rows: list[dict[str, Any]] = []
        for look in (Look(tuple(names), (), "model"), Look(("a", "b"), ("x", "y"), "one", "two")):
            spec = accuracy_spec(
                look, [5, 50], {"curve": rows, "threshold": []}, FigureStyle(), "length"
            )
            legends = {
                channel: encoded["legend"]
                for layer in spec["layer"]
                for channel, encoded in layer["encoding"].items()
                if channel in ("shape", "strokeDash") and encoded["legend"]
            }
            assert legends["shape"]["columns"] == (1 if look.colours == tuple(names) else 2)
            assert ("strokeDash" in legends) == bool(look.dashes)
        assert legends["strokeDash"]["symbolType"] == "stroke"

    @pytest.mark.parametrize("style", [{}, {"width": 6.75, "font_size": 10, "height": 2}])
    def test_every_figure_is_valid_and_fits(
        self, runs: dict[str, Path], style: dict[str, Any]
    ) -> None:
        """It has the width that was asked for, and the height where one was."""
        wanted = FigureStyle(**style)
        for kind in ("accuracy", "lengths", "readings"):
            for spec in charts(kind, *runs.values(), **style).values():
                if not style:
                    check_valid(spec)
                wide, high = _size(spec)
                assert wide == pytest.approx(wanted.points_wide, abs=0.5)
                if wanted.height:
                    assert high == pytest.approx(wanted.points_high(), abs=0.5)
                assert "title" not in spec
                assert spec["config"]["font"] == wanted.font


def _size(spec: dict[str, Any]) -> tuple[float, float]:
    """Width and height of the drawing in points."""
    found = re.search(r'width="([\d.]+)" height="([\d.]+)"', drawn(spec, "svg").decode())
    assert found is not None
    return float(found[1]), float(found[2])


class TestNumbers:
    """Those of every other door."""

    def test_curves_are_the_cells(self, runs: dict[str, Path]) -> None:
        """Accuracies, intervals and numbers of samples of `table.csv`."""
        run = eyechart.load_run(runs["tiny"])
        (spec,) = charts("accuracy", runs["tiny"]).values()
        drawn_rows = {
            (row["where"], row["length"]): (row["y"], row["low"], row["high"], row["n"])
            for row in spec["datasets"]["curve"]
        }
        cells = run.cells[["accuracy", "ci_low", "ci_high", "n"]].itertuples(index=False)
        keys = zip(run.cells["strategy"], run.cells["length"], strict=True)
        assert drawn_rows == {
            key: tuple(row) for key, row in zip(keys, cells, strict=True) if row.n
        }
        assert spec["datasets"]["threshold"] == [{"y": 0.85}]

    def test_lengths_are_those_of_the_table(self, runs: dict[str, Path]) -> None:
        """With their intervals; an open end is an arrow at the end of the lengths asked. Counts
        have three of them, each with its own mark in a row of its own.
        """
        ((_, spec),) = charts("lengths", runs["tiny"], runs["oracle"]).items()
        rows = spec["datasets"]["estimate"]
        for name in ("tiny", "oracle"):
            run = eyechart.load_run(runs[name])
            for label, exact in run.effective_length.items():
                near, order = run.near_length[label], run.order[label]
                assert exact is not None
                assert near is not None
                assert order is not None
                mine = [
                    row
                    for row in rows
                    if row["of"] == run.model and f"strategy={row['condition']}" in label
                ]
                assert [row["colour"] for row in mine] == ["exact", "near", "apart"]
                assert len({(row["model"], row["lane"]) for row in mine}) == len(mine)
                lengths = [(one.length, one.length_ci) for one in (exact, near)]
                lengths += [(order.apart.length, order.apart.length_ci)]
                for row, (length, (low, high)) in zip(mine, lengths, strict=True):
                    expected = (length.length, low.length, high.length) if length else (None,) * 3
                    assert (row["x"], row["low"], row["high"]) == expected
                    is_known = length is not None
                    assert row["is_below"] is (is_known and low.sign == "<" and low != length)
                    assert row["is_above"] is (is_known and high.sign == ">" and high != length)
                    assert not (row["solid"] == 0 and row["is_above"] and row["x"] == row["high"])
                    assert row["label"].startswith(str(length or "not known"))
                assert mine[0]["label"].endswith("†") is bool(exact.note)
        shapes = [layer["encoding"].get("shape") for layer in spec["layer"]]
        (shape,) = filter(None, shapes)
        assert shape["scale"]["domain"] == ["exact", "near", "apart"]
        assert len(set(shape["scale"]["range"])) == len(shape["scale"]["domain"])
        assert shape["legend"]

    def test_more_conditions_than_colours_have_their_names_at_the_axis(self, lab: Lab) -> None:
        """One row each, below the name of its model; no legend, and no mark means two of them."""
        folders = []
        for name in ("scripted/a", "scripted/b"):
            wanted = lab.wanted(
                built_in_files()["copying/first_last"],
                axes={"separator": ["all"], "position": ["first", "last"], "odd": ["random"]},
                samples=2,
                model=name,
            )
            lab.asked(wanted, right)
            folders.append(wanted.folder)
        (spec,) = charts("lengths", *folders).values()
        rows = spec["datasets"]["estimate"]
        names = [row["model"].rpartition(NAMED)[2] for row in rows]
        assert len(names) == 2 * (1 + 10)
        assert [name for name, row in zip(names, rows, strict=True) if row["x"] is None] == [
            "scripted/a",
            "scripted/b",
        ]
        assert len({row["model"] for row in rows}) == len(rows)
        assert {row["colour"] for row in rows} == {""}
        assert not any("told apart" in note for note in spec["usermeta"]["notes"])

    def test_both_readings_are_in_one_figure(self, runs: dict[str, Path]) -> None:
        """Of each condition that both have, with the accuracies of each run."""
        found = charts("readings", *runs.values())
        assert list(found) == [
            "counting/words: tiny, strategy direct",
            "counting/words: tiny, strategy cot_few_shot",
        ]
        spec = found["counting/words: tiny, strategy direct"]
        for reading, name in (("free text", "tiny"), ("forced choice", "tiny@likelihood")):
            cells = eyechart.load_run(runs[name]).cells.query("strategy == 'direct'")
            shown = [row["y"] for row in spec["datasets"]["curve"] if row["colour"] == reading]
            assert shown == list(cells["accuracy"])

    def test_the_threshold_is_that_of_the_run(self, runs: dict[str, Path]) -> None:
        """And that of the command."""
        run = eyechart.load_run(runs["tiny"], threshold=0.5)
        (chart,) = eyechart.figures("accuracy", run).values()
        assert chart.to_dict()["datasets"]["threshold"] == [{"y": 0.5}]

    def test_python_says_mistakes_too(self) -> None:
        """As the command does."""
        with pytest.raises(UsageError, match="runs is empty"):
            eyechart.figures("accuracy", [])
        with pytest.raises(UsageError, match="the width must be a number from 1 to 20 inches"):
            eyechart.figures("accuracy", "results", width=0)


class TestTables:
    """`bench figure table`, `Run.to_latex`, and those of comparisons."""

    def test_a_table_has_the_numbers_of_the_run(self, lab: Lab, runs: dict[str, Path]) -> None:
        """A row for each condition, and the unit in the head."""
        run = eyechart.load_run(runs["tiny"])
        text = run.to_latex()
        assert r"\toprule" in text
        assert r"    strategy & right to (symbols) & area \\" in text
        for label, row in zip(("direct", r"cot\_few\_shot"), run.conditions.index, strict=True):
            seen, of = list(run.effective_length.values())[row], run.conditions.loc[row]
            assert seen is not None
            (cells,) = (line for line in text.splitlines() if line.startswith(f"    {label} & "))
            assert cells.startswith(f"    {label} & {latex_text(str(seen.length_text))} (")
            assert f"{of['area']:.2f} ({of['area_ci_low']:.2f}--{of['area_ci_high']:.2f})" in cells
        assert r"\par\footnotesize $^{\dagger}$ not sure: 6 rows" in text
        written = figure(lab, "table", runs["tiny"], "-o", lab.folder / "new" / "t.tex")
        assert [path.read_text() for path in written] == [f"{text}\n"]

    def test_several_runs_have_one_table(self, lab: Lab, runs: dict[str, Path]) -> None:
        """In the order of the standing; in both languages at once."""
        stem = lab.folder / "tables"
        tex, md = figure(lab, "table", *runs.values(), "-o", stem, "--format", "tex,md")
        first, table, *notes = md.read_text().split("\n\n")
        assert first.startswith("Effective lengths at an accuracy of 85 %, and areas, on")
        rows = table.splitlines()
        assert rows[0] == "| model | strategy | right to (symbols) | area |"
        assert rows[1] == "| --- | --- | ---: | ---: |"
        assert len(rows) == 2 + 2 * len(runs)
        assert [note for note in notes if "has the longest effective length" in note]
        assert not [note for note in notes if "different lines" in note]
        assert tex.read_text().count(r"\toprule") == 1

    def test_what_one_of_several_runs_shows_is_in_its_row(
        self, lab: Lab, runs: dict[str, Path]
    ) -> None:
        """And in no note; the table of this run alone has the note."""
        alone = figure(lab, "table", runs["tiny"], "-o", lab.folder / "alone.md")
        both = figure(lab, "table", runs["tiny"], runs["oracle"], "-o", lab.folder / "both.md")
        assert ["tiny counts exactly to" in path.read_text() for path in (*alone, *both)] == [
            True,
            False,
        ]

    def test_a_wide_table_has_near_and_apart(self, lab: Lab, runs: dict[str, Path]) -> None:
        """Two columns of a paper have room for them: in both languages, at both doors."""
        stem = lab.folder / "wide"
        tex, md = (
            path.read_text()
            for path in figure(
                lab, "table", runs["tiny"], "-o", stem, "--format", "tex,md", "--width", "6.75"
            )
        )
        run = eyechart.load_run(runs["tiny"])
        assert (tex, md) == tuple(
            f"{text}\n" for text in (run.to_latex(width=6.75), run.to_markdown(width=6.75))
        )
        head, _, *rows = (line for line in md.splitlines() if line.startswith("|"))
        assert head == "| strategy | right to (symbols) | near (5 %) | apart (20 %) | area |"
        for row, near, order in zip(
            rows, run.near_length.values(), run.order.values(), strict=True
        ):
            assert near is not None
            assert order is not None
            apart = reached_text(order.apart.length, order.apart.length_ci)
            assert row.split(" | ")[2:4] == [*map(markdown_text, (length_cell(near), apart))]

    def test_what_the_heads_of_lengths_mean_is_a_note(
        self, lab: Lab, runs: dict[str, Path]
    ) -> None:
        """Their percentages are of three kinds; a table without near and apart has one of them, in
        its caption.
        """
        run = eyechart.load_run(runs["tiny"])
        assert "right to:" not in run.to_markdown()
        note = (
            "right to: the length up to which a model is right in at least 85 % of its replies. "
            "near (5 %): the length up to which its answers are at most 5 % off in at least 85 % "
            "of its replies. apart (20 %): the length up to which its answers order two rows that "
            "differ by a fifth rightly, in at least 75 % of pairs."
        )
        assert f"\n\n{note}\n\n" in run.to_markdown(width=6.75)
        assert latex_text(note) in run.to_latex(width=6.75)
        board = lab.bench("leaderboard", runs["tiny"], runs["oracle"], "--format=markdown")
        assert note.partition(" apart (20 %)")[0] in board.out

    def test_areas_over_different_lines_have_a_note(self, lab: Lab) -> None:
        """An area over short rows alone is larger, so the two say nothing about each other."""
        short, long = (
            lab.wanted(model=f"scripted/{name}", lengths=lengths)
            for name, lengths in (("a", [2, 4]), ("b", [2, 4, 8, 16]))
        )
        for wanted in (short, long):
            lab.run(wanted)
        (path,) = figure(lab, "table", short.folder, long.folder, "-o", lab.folder / "areas.md")
        assert (
            "The areas are over different lines, and so cannot be compared: 2 lines from 2 to 4, "
            "4 lines from 2 to 16 symbols.\n"
        ) in path.read_text()
        (path,) = figure(lab, "table", long.folder, "-o", lab.folder / "area.md")
        assert "different lines" not in path.read_text()

    def test_a_file_of_another_kind_is_kept(self, lab: Lab, runs: dict[str, Path]) -> None:
        """Such as the paper; a table is written again."""
        paper = lab.folder / "paper.tex"
        paper.write_text("my paper")
        done = lab.bench("figure", "table", runs["tiny"], "-o", paper)
        done.one_line(2, "is no tex file, and would be lost")
        for _ in range(2):
            figure(lab, "table", runs["tiny"], "-o", lab.folder / "t", "--format", "tex,md")

    def test_a_comparison_has_its_differences_and_its_verdict(
        self, lab: Lab, runs: dict[str, Path]
    ) -> None:
        """Those of `bench compare`, at both doors."""
        first, second = eyechart.load_run(runs["tiny"]), eyechart.load_run(runs["oracle"])
        compared = eyechart.compare(first, second)
        text = compared.to_latex()
        done = lab.bench("compare", runs["tiny"], runs["oracle"], "--format", "latex")
        assert (done.code, done.out) == (0, f"{text}\n")
        (here, there) = (one.effective_length for one in (first, second))
        for table, label in zip(text.split("% needs")[1:], here, strict=True):
            ends = (here[label], there[label])
            assert all(end is not None and f" & {end.length} (" in table for end in ends)
            lines = compared.comparison.conditions[list(here).index(label)].lines
            row, p = next(iter(lines))
            low, high = (round(100 * end) for end in row.difference_ci)
            difference = f"{round(100 * row.difference):+d} ({low:+d} to {high:+d})"
            assert f" & {difference.replace('-', '$-$')} & {p:.3f} \\\\" in table
        assert latex_text(compared.findings[0].sentence) in text
        assert compared.to_markdown().count("| --- | ---: |") == len(here)
        both = lab.bench("compare", runs["tiny"], "--axis", "strategy=direct,cot_few_shot")
        paper = lab.bench(
            *("compare", runs["tiny"], "--axis", "strategy=direct,cot_few_shot"),
            *("--format", "markdown"),
        )
        assert (
            "| length | strategy=direct, % | strategy=cot_few_shot, % | difference, points | "
            "p (Holm) |"
        ) in paper.out
        assert both.code == paper.code == 0
        wrong = lab.bench("compare", runs["tiny"], runs["oracle"], "--format", "html")
        wrong.one_line(2, "--format is one of latex, markdown, not 'html'")

    def test_three_runs_have_their_ranking(self, lab: Lab) -> None:
        """Before the lines of each pair, at both doors, with what the terminal says."""
        folders = []
        for sees in (3, 4, 12):
            command = (
                "--model",
                f"oracle:{sees}",
                "--lengths",
                "2,4,8,16",
                "--exact",
                "--samples",
                "20",
            )
            done = lab.bench("run", "--task", "counting/words", "--out", lab.out, *command)
            assert done.code == 0
            (folder,) = (lab.out / "runs" / "oracle" / str(sees)).rglob("words@*")
            folders.append(folder)
        printed = lab.bench("compare", *folders, "--format", "markdown")
        tables = printed.out.split("\n\n")
        assert tables[1].splitlines()[0] == (
            "| run | rank | right to (85 %) | area in points (oracle/3 minus it, 90 % interval) | "
            "compared with oracle/3 |"
        )
        rows = [line.strip("| ").split(" | ") for line in tables[1].splitlines()[2:]]
        assert [(row[0], row[1], row[4]) for row in rows] == [
            ("oracle/12", "1", "better"),
            ("oracle/4", "2", "better"),
            ("oracle/3", "3", "–"),
        ]
        assert "| oracle/12 | oracle/4 | " in printed.out
        assert printed.out.count("oracle/12 is further |") == 2
        compared = eyechart.compare(list(map(eyechart.load_run, folders)))
        assert compared.to_markdown() == printed.out.rstrip("\n")
        assert latex_text(compared.findings[0].sentence) in compared.to_latex()

    def test_a_minus_is_a_minus(self) -> None:
        """Before a number, and not in a name."""
        assert latex_text("-3 to (-1) of gpt-4 and x--1") == "$-$3 to ($-$1) of gpt-4 and x--1"

    def test_names_are_escaped(self) -> None:
        """For LaTeX and for Markdown; nothing that a name has is executed or lost."""
        name = "a_b&c%d$e#f{g}\\h~i^j<k>|l\n\\input{x}"
        shown = latex_text(name)
        assert shown == (
            r"a\_b\&c\%d\$e\#f\{g\}\textbackslash{}h\textasciitilde{}i\textasciicircum{}j$<$k$>$"
            r"\textbar{}l\textbackslash{}n\textbackslash{}input\{x\}"
        )
        table = PaperTable("caption", ("model", "area"), ((name, "1"),), 1)
        assert table.latex().count("\n") == 11
        assert r"\|l\\n\\input" in table.markdown()
        assert "&lt;k&gt;" in table.markdown()

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--format", "html"), "--format is one of tex, md, not 'html'"),
            (("-o", "a.pdf"), "-o 'a.pdf' must end in .tex or .md"),
            (("--font-size", "6"), "a table has the height and the font of its paper; leave out"),
        ],
    )
    def test_a_mistake_is_one_line(self, lab: Lab, arguments: list[str], said: str) -> None:
        """What is wrong and what helps."""
        lab.bench("figure", "table", lab.folder, *arguments).one_line(2, said)

    def test_a_table_is_no_chart(self, runs: dict[str, Path]) -> None:
        """In Python a run returns it."""
        with pytest.raises(UsageError, match="a table is no chart; 'to_latex' and 'to_markdown'"):
            eyechart.figures("table", runs["tiny"])

    def test_what_is_not_known_has_a_dash_or_says_so(self, lab: Lab) -> None:
        """A crossing that may be anywhere."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = eyechart.run(
                lab.ones, lab.fake(_some_reply), out=lab.out, lengths=[3, 5], samples=1
            )
        rows = run.to_markdown().splitlines()
        assert [row for row in rows if row.startswith("| none | not known†")]


def _some_reply(request: Request) -> str:
    if "length=5" in request.sample_id:
        raise BadRequestError("no")
    return right(request)


def test_the_kinds_are_those_of_the_help(lab: Lab) -> None:
    """Each with what it shows."""
    said = " ".join(lab.bench("figure", "--help").out.split())
    assert all(f"{kind}: {what}." in said for kind, what in KINDS.items())
