"""bench probe: samples of a run measured inside the embedded model, in a folder that grows."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from eyechart.harness.errors import COMPLETE, INTERRUPTED, USAGE
from eyechart.harness.plan.plan import item_of, plan
from eyechart.harness.task.catalogue import Task, built_in_files, open_task
from eyechart.providers.base import Tokens
from eyechart_lab.probe.engine import Probe
from eyechart_lab.probe.places import Places, places_of, running_counts, symbol_spans
from tests.conftest import Done, Lab

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours
ONES = ("--model", "tiny", "--task", "counting/ones", "--axis", "separator=none,comma", "--exact")


def built_in(name: str) -> Task:
    return open_task(name, built_in_files()[name], trial=False)


def probe(lab: Lab, *words: str) -> Done:
    return lab.bench("probe", "--out", lab.out, *words)


def probe_of(lab: Lab) -> Path:
    (folder,) = (lab.out / "probes" / "tiny" / "counting").iterdir()
    return folder


def test_places_of_all_built_in_tasks() -> None:
    """The symbols stand where they are said to, under every condition that shows the row."""
    shown = 0
    for name in ("counting/bernoulli", "copying/first_last", "separators/two_symbols"):
        task = built_in(name)
        planned = plan(
            task, lengths=[9], samples=1, axes={axis: ["all"] for axis in task.spec.axes}
        )
        for condition, line in planned.sizes:
            sample = planned.sample(condition, line, 0)
            spans = symbol_spans(planned, sample)
            symbols = item_of(task, condition, 9, 0, 0).symbols
            assert [sample.prompt[slice(*span)] for span in spans] == list(symbols)
            shown += 1
    assert shown > 50


def test_places_in_tokens() -> None:
    """A token may hold several symbols, or a part of one; template tokens hold none."""
    tokens = Tokens((1,) * 6, (None, (0, 2), (2, 4), (4, 5), (5, 9), None))
    spans = [(2, 3), (3, 4), (4, 7), (7, 9)]
    assert places_of(tokens, spans) == Places((2, 3, 4), (2, 2, 4, 4))
    assert places_of(Tokens((1,), (None,)), [(0, 1)]) is None


def test_running_counts() -> None:
    task = built_in("counting/bernoulli")
    planned = plan(task, lengths=[150], samples=1)
    sample = planned.sample(planned.conditions[0], planned.lines[0], 0)
    counts = running_counts(planned, sample)
    assert counts is not None
    symbols = item_of(task, sample.condition, 150, 0, 0).symbols
    for place, count in enumerate(counts):
        assert count is None or count == list(symbols[: place + 1]).count("1")
    assert counts[-1] == sample.target
    copying = plan(built_in("copying/first_last"), lengths=[9], samples=1)
    copied = copying.sample(copying.conditions[0], copying.lines[0], 0)
    assert running_counts(copying, copied) is None


def test_a_probe_grows(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row for each measure, condition, length, layer and head; nothing is measured twice, a
    torn last line is measured again, and further lengths and measures grow the same folder.
    """
    first = probe(lab, *ONES, "--lengths", "6,11", "--measure", "answer,attention")
    assert first.code == COMPLETE
    folder = probe_of(lab)
    assert first.out.splitlines()[-1] == str(folder / "probe.csv")
    table = pd.read_csv(folder / "probe.csv")
    entropy = table[(table["quantity"] == "entropy") & (table["separator"] == "none")]
    assert len(entropy) == 2 * 4 * 4
    assert set(entropy["n"]) == {3}
    assert (table["low"] <= table["value"] + 1e-9).all()
    whole = (folder / "measured.jsonl").read_bytes()

    lines = whole.splitlines(keepends=True)
    (folder / "measured.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:30])
    assert probe(lab, *ONES, "--lengths", "6,11", "--measure", "answer,attention").code == 0
    assert sorted(
        key_of(line) for line in (folder / "measured.jsonl").read_bytes().splitlines()
    ) == (sorted(key_of(line) for line in lines))
    pd.testing.assert_frame_equal(
        table.sort_values(list(table.columns)).reset_index(drop=True),
        pd.read_csv(folder / "probe.csv").sort_values(list(table.columns)).reset_index(drop=True),
    )

    with monkeypatch.context() as patched:
        patched.setattr(Probe, "_scene", lambda *_: pytest.fail("measured again"))
        probe(lab, *ONES, "--lengths", "6", "--measure", "attention")
    more = probe(lab, *ONES, "--lengths", "20", "--measure", "residual,rotary,maps")
    assert more.code == COMPLETE
    grown = pd.read_csv(folder / "probe.csv")
    assert set(grown["measure"]) == {"answer", "attention", "residual", "rotary", "maps"}
    maps = grown[grown["measure"] == "maps"]
    assert len(maps) == 4 * 7
    assert maps["length"].isna().all()
    assert probe_of(lab) == folder


def key_of(line: bytes) -> str:
    fields = json.loads(line)
    return str([fields[name] for name in ("measure", "condition", "line", "index")])


def test_all_measures_on_one_length(lab: Lab) -> None:
    """Each value is a number, and the probability is that of the run's replies."""
    done = probe(lab, *ONES, "--lengths", "9,70", "--measure", "all", "--samples", "2")
    assert done.code == COMPLETE
    table = pd.read_csv(probe_of(lab) / "probe.csv")
    assert set(table["measure"]) == {
        *("answer", "collapse", "squashing", "attention", "residual", "lipschitz", "rotary"),
        "maps",
    }
    assert "counter is left out: the position of a symbol alone says its count" in done.err
    assert "(rows of 70 symbols), 2 samples" in done.err  # once under either condition
    assert table["value"].notna().all()
    assert table["unit"].notna().all()
    right = table[(table["quantity"] == "greedy") & (table["separator"] == "comma")]
    assert right.set_index("length")["value"].to_dict() == {9: 1, 70: 0}
    collapse = table[table["quantity"] == "final_equal_symbol_bfloat16"]
    assert (collapse["value"] < 0.2).all()


def test_a_measure_is_the_same_alone_and_beside_others(lab: Lab) -> None:
    """The answer, of one to three tokens, stands behind the prompt in the passes of another one."""
    asked = (*ONES[:4], "--axis", "separator=none", "--exact", "--samples", "1")
    found = []
    for words in (("--measure", "collapse"), ("--measure", "collapse,answer")):
        for length in ("9", "12", "120"):
            probe(lab, *asked, "--lengths", length, *words)
        table = pd.read_csv(probe_of(lab) / "probe.csv")
        chosen = table[table["quantity"].str.startswith("weights_l1_end")]
        assert set(chosen["length"]) == {9, 12, 120}
        found.append(chosen.set_index(["quantity", "length", "layer", "head"])["value"].to_dict())
        shutil.rmtree(probe_of(lab))
    assert found[0] == pytest.approx(found[1], rel=1e-3, abs=1e-6)


def test_interrupted(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []

    def scene(self: Probe, sample: object) -> None:
        measured.append(sample)
        if len(measured) > 2:
            raise KeyboardInterrupt
        return whole(self, sample)  # type: ignore[arg-type, return-value]

    whole = Probe._scene
    monkeypatch.setattr(Probe, "_scene", scene)
    done = probe(lab, *ONES, "--lengths", "6", "--measure", "attention")
    assert done.code == INTERRUPTED
    assert any("the same command continues" in line for line in done.err.splitlines())
    assert len((probe_of(lab) / "measured.jsonl").read_bytes().splitlines()) == 2


def test_rows_beyond_the_window_are_named(lab: Lab) -> None:
    done = probe(lab, *ONES, "--lengths", "5,5000", "--measure", "answer,counter", "--samples", "1")
    assert done.code == COMPLETE
    assert any("rows from 5,000 symbols on do not fit" in line for line in done.err.splitlines())
    table = pd.read_csv(probe_of(lab) / "probe.csv")
    assert set(table["length"]) == {5}


def test_what_cannot_be_measured_is_named(lab: Lab) -> None:
    done = probe(
        lab,
        *("--model", "tiny", "--task", "copying/first_last", "--measure", "counter"),
        *("--lengths", "5"),
    )
    assert done.code == COMPLETE
    assert any(
        "counter is left out: its answer is no count" in line for line in done.err.splitlines()
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "gpt-4o"), "has no inside that can be read"),
        (("--model", "tiny", "--measure", "sinks"), "no measure 'sinks'"),
        (("--model", "changed/windw=3:1/tiny"), "did you mean 'window=64:4'"),
        (("--model", "changed/softmax_one/gpt-4o"), "openai/gpt-4o cannot be changed"),
        (("--model", "tiny/nowhere"), "no model folder 'nowhere'"),
    ],
)
def test_mistakes(lab: Lab, words: tuple[str, ...], said: str) -> None:
    done = probe(lab, "--task", "counting/ones", *words)
    assert done.code in (USAGE, 1)
    assert len(done.err.splitlines()) == 1
    assert said in done.err


def test_on_the_page_of_its_run(lab: Lab) -> None:
    """The page draws each shown quantity under the accuracy; a probe needs its run there."""
    lab.bench("run", "--out", lab.out, *ONES, "--lengths", "6,11", "--samples", "20")
    probe(lab, *ONES, "--lengths", "6,11", "--measure", "answer,collapse,attention")
    (run,) = (lab.out / "runs" / "tiny" / "counting").iterdir()
    page = lab.folder / "page.html"
    done = lab.bench("report", run, probe_of(lab), "-o", page)
    assert done.code == COMPLETE
    text = page.read_text(encoding="utf-8")
    for title in ("Attention sinks", "Collapse: n and n + 1", "Probability of the right answer"):
        assert title in text
    assert "Rank collapse" not in text
    changed = ("--model", "changed/softmax_one/tiny", *ONES[2:])
    probe(lab, *changed, "--lengths", "6", "--measure", "answer")
    (other,) = (lab.out / "probes").glob("changed/softmax_one/tiny/counting/*")
    assert lab.bench("report", run, probe_of(lab), other, "-o", page).code == COMPLETE
    text = page.read_text(encoding="utf-8")
    assert "changed/softmax_one/tiny" in text
    alone = lab.bench("report", probe_of(lab), "-o", page)
    assert (alone.code, len(alone.err.splitlines())) == (USAGE, 1)
    assert "name its run too" in alone.err


def test_json(lab: Lab) -> None:
    done = probe(lab, *ONES, "--lengths", "6", "--measure", "answer", "--json")
    (document,) = json.loads(done.out)["probes"]
    rows = [row for row in document["rows"] if row["quantity"] == "greedy"]
    assert [row["value"] for row in rows] == [1, 1]
    assert rows[0]["layer"] is None


@pytest.mark.parametrize("fact", ["weights_sha256", "config_sha256"])
def test_another_model_of_the_same_name(lab: Lab, fact: str) -> None:
    probe(lab, *ONES, "--lengths", "6", "--measure", "answer")
    path = probe_of(lab) / "probe.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["facts"][fact] = "another"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    done = probe(lab, *ONES, "--lengths", "6", "--measure", "answer")
    assert done.code == 1
    assert f"({fact} differs)" in done.err


def test_the_fit_on_the_most_rows_is_the_one_that_counts(lab: Lab) -> None:
    """Whatever was asked before it, and after it."""
    asked = ("--model", "tiny", "--task", "counting/bernoulli", "--axis", "separator=none")
    measured = (*asked, "--lengths", "12", "--measure", "counter")
    fresh = lab.folder / "fresh"
    lab.bench("probe", *measured, "--samples", "4", "--out", fresh)
    (alone,) = (fresh / "probes").glob("tiny/counting/*")
    for samples in ("2", "4", "1"):
        assert probe(lab, *measured, "--samples", samples).code == COMPLETE
    assert (probe_of(lab) / "probe.csv").read_bytes() == (alone / "probe.csv").read_bytes()


def test_too_few_states_are_said(lab: Lab) -> None:
    """Not an empty table."""
    done = probe(
        lab,
        *("--model", "tiny", "--task", "counting/bernoulli", "--axis", "separator=none"),
        *("--lengths", "5", "--measure", "counter", "--samples", "1"),
    )
    assert "counter is left out: too few states in rows of 5 symbols" in done.err


@pytest.mark.parametrize(
    "content",
    ["{}", '{"model": "tiny", "axes": [], "task": "a"}', '{"facts": []}', "[]", "x"],
)
def test_a_damaged_manifest_is_one_line(lab: Lab, content: str) -> None:
    """For the page, and for the next probe; without one nothing says whose measures these are."""
    lab.bench("run", "--out", lab.out, *ONES, "--lengths", "6", "--samples", "2")
    probe(lab, *ONES, "--lengths", "6", "--measure", "answer")
    (run,) = (lab.out / "runs" / "tiny" / "counting").iterdir()
    path = probe_of(lab) / "probe.json"
    path.write_text(content, encoding="utf-8")
    report = lab.bench("report", run, probe_of(lab), "-o", lab.folder / "page.html")
    report.one_line(1, str(path), "restore the file")
    again = probe(lab, *ONES, "--lengths", "6", "--measure", "answer")
    again.one_line(1, str(path), "restore the file")
    path.unlink()
    probe(lab, *ONES, "--lengths", "6,11", "--measure", "answer").one_line(
        1, "has measures but no probe.json"
    )


def test_a_hostile_manifest_or_line_is_one_line(lab: Lab) -> None:
    """Commands that are no texts, a pipe, and JSON that is too deep."""
    words = (*ONES, "--lengths", "6", "--measure", "answer", "--samples", "1")
    probe(lab, *words)
    path, lines = probe_of(lab) / "probe.json", probe_of(lab) / "measured.jsonl"
    sound = path.read_bytes()
    path.write_text(json.dumps(json.loads(sound) | {"commands": [[1]]}), encoding="utf-8")
    probe(lab, *words).one_line(1, str(path), "'commands' is wrong")
    path.unlink()
    os.mkfifo(path)
    probe(lab, *words).one_line(1, str(path), "no file")
    path.unlink()
    path.write_bytes(sound)
    number = len(lines.read_bytes().splitlines()) + 1
    with lines.open("ab") as file:
        file.write(b'{"x":' + b"[" * 100_000 + b"\n")
    probe(lab, *words).one_line(1, f"{lines}:{number}", "remove the line")


def test_samples_of_another_seed_are_said(lab: Lab) -> None:
    """A page that has both is not of the same samples."""
    lab.bench("run", "--out", lab.out, *ONES, "--lengths", "6", "--samples", "2")
    out = lab.folder / "seven"
    asked = ("--lengths", "6", "--measure", "answer", "--seed", "7", "--out", out)
    assert lab.bench("probe", *ONES, *asked).code == COMPLETE
    (run,) = (lab.out / "runs" / "tiny" / "counting").iterdir()
    (other,) = (out / "probes").glob("tiny/counting/*")
    done = lab.bench("report", run, other, "-o", lab.folder / "page.html")
    assert f"{other}: its samples have seed 7, those of a run beside it seed 0" in done.err


def test_the_heads_of_columns_are_named(lab: Lab) -> None:
    """The head names the column of the file: measure, dot, quantity."""
    done = probe(lab, *ONES, "--lengths", "4,6", "--measure", "collapse", "--samples", "2")
    said = " ".join(done.out.split())
    assert "n, n+1 at end is collapse.final_relative_end;" in said
    assert "squashing." not in said
    with (probe_of(lab) / "probe.csv").open(newline="") as file:
        rows = {(row["measure"], row["quantity"]) for row in csv.DictReader(file)}
    assert ("collapse", "final_relative_end") in rows
