"""Runs as the `.eval_results/*.yaml` of the Hugging Face Hub, by its documented form and by its own
library's reading of it.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import eval_result_entries_to_yaml, parse_eval_result_entries

from eyechart.harness.satellites.export.hub import FOLDER, HEADER
from eyechart.harness.satellites.export.publish import DATASET
from eyechart.providers.base import BadRequestError, Request
from tests.conftest import Done, Lab, right

REQUIRED = {"dataset": {"id", "task_id"}, "source": {"url"}}
OPTIONAL = {"dataset": {"revision"}, "source": {"name", "user", "org"}}
"""Of an entry's parts; https://github.com/huggingface/hub-docs/blob/main/eval_results.yaml."""
ENTRY = {"dataset", "value", "verifyToken", "date", "source", "notes"}


def export(lab: Lab, *arguments: str | Path) -> Done:
    """`bench export hf-eval-results` into the repository `model`, for a benchmark of one's own."""
    named = () if "--dataset" in arguments else ("--dataset", "lab/eyechart")
    return lab.bench("export", "hf-eval-results", *arguments, *named, "-o", lab.folder / "model")


def exported(lab: Lab) -> dict[str, list[dict[str, Any]]]:
    """File name -> entries, each held against the documented form."""
    found = {}
    for path in sorted((lab.folder / "model" / FOLDER).iterdir()):
        assert path.suffix == ".yaml"
        entries = yaml.safe_load(path.read_text())
        for entry in entries:
            assert set(entry) <= ENTRY
            for part in set(REQUIRED) & set(entry):
                assert REQUIRED[part] <= set(entry[part]) <= REQUIRED[part] | OPTIONAL[part]
            assert isinstance(entry["value"], float)
            assert isinstance(entry["date"], str)
            assert datetime.fromisoformat(entry["date"]).tzinfo is not None
            assert isinstance(entry["notes"], str)
            assert "\n" not in entry["notes"]
        assert eval_result_entries_to_yaml(parse_eval_result_entries(entries)) == entries
        found[path.name] = entries
    return found


def test_each_condition_has_a_file_with_its_area(lab: Lab) -> None:
    """One number, of a task that says version and condition; the notes say the rest."""
    assert lab.bench_run("--model", lab.fake(right)).code == 0
    done = export(lab, lab.the_run())
    assert (done.code, done.err) == (0, "")
    files = exported(lab)
    settings = lab.the_run().name.rpartition("-")[2]
    names = [f"lab_ones_v1__separator_{value}-{settings}.yaml" for value in ("comma", "none")]
    assert list(files) == names
    assert done.out.split() == [str(lab.folder / "model" / FOLDER / name) for name in names[::-1]]
    ((entry,), _) = files.values()
    assert entry["dataset"] == {"id": "lab/eyechart", "task_id": "lab_ones_v1__separator_comma"}
    assert entry["value"] == 1.0
    assert "source" not in entry
    for said in (
        "area under accuracy over log length, 0 to 1 (95 % ",
        "sees to > 5 (3 to > 5) symbols at 85 %",
        "4 scored samples at each of lengths 3, 5",
        "separator=comma; seed 0, temperature 0, max_tokens auto, api chat",
        "lab/ones version 1, data ",
    ):
        assert said in entry["notes"]


def test_other_lengths_are_another_task(lab: Lab) -> None:
    """An area over other lengths than the task's own is not set beside those over its own."""
    lab.bench_run("--model", lab.fake(right), "--lengths", "3")
    export(lab, lab.the_run())
    entries = [entry for file in exported(lab).values() for entry in file]
    tasks = [entry["dataset"]["task_id"] for entry in entries]
    assert tasks == [f"lab_ones_v1__separator_{value}__lengths_3" for value in ("comma", "none")]


def test_each_length_can_have_a_number(lab: Lab) -> None:
    """Accuracy with its interval, as a task of its own, in its condition's file."""

    def only_three(request: Request) -> str:
        return right(request) if "length=3" in request.sample_id else "no idea"

    lab.bench_run("--model", lab.fake(only_three), "--axis", "separator=none")
    export(lab, lab.the_run(), "--per-length")
    (entries,) = exported(lab).values()
    assert [(entry["dataset"]["task_id"], entry["value"]) for entry in entries] == [
        ("lab_ones_v1__separator_none", 0.5),
        ("lab_ones_v1__separator_none__length_3", 1.0),
        ("lab_ones_v1__separator_none__length_5", 0.0),
    ]
    assert "accuracy at length 5, 0 to 1 (95 % 0.00 to 0.49), 4 scored" in entries[2]["notes"]
    told = ["no answer and so not correct: 4 unparsed" in entry["notes"] for entry in entries]
    assert told == [True, False, True]


def test_where_it_can_be_looked_up_is_said(lab: Lab) -> None:
    """The source, and which state of the benchmark it was."""
    lab.bench_run("--model", lab.fake(right), task=lab.plain)
    named = ("--source-name", "Logs", "--source-user", "me", "--source-org", "lab")
    url = "https://example.org/logs"
    assert export(lab, lab.the_run(), *named, "--source-url", url, "--revision", "0a1b").code == 0
    ((entry,),) = exported(lab).values()
    assert entry["source"] == {"url": url, "name": "Logs", "user": "me", "org": "lab"}
    assert entry["dataset"] == {"id": "lab/eyechart", "task_id": "lab_plain_v3", "revision": "0a1b"}


def test_the_default_benchmark_is_said_to_be_none(lab: Lab) -> None:
    """Nobody takes a stand-in for a data set that is there."""
    lab.bench_run("--model", lab.fake(right), task=lab.plain)
    done = lab.bench("export", "hf-eval-results", lab.the_run(), "-o", lab.folder / "model")
    assert done.code == 0
    assert f"there is no data set {DATASET} on the hub yet" in done.err
    ((entry,),) = exported(lab).values()
    assert entry["dataset"]["id"] == DATASET


def test_an_incomplete_run_says_so_where_it_is_published(lab: Lab) -> None:
    """It is refused at first; then its notes count what has no reply."""

    def mostly(request: Request) -> str | BadRequestError:
        return BadRequestError("no") if request.sample_id.endswith("=0") else right(request)

    lab.bench_run("--model", lab.fake(mostly), task=lab.plain)
    export(lab, lab.the_run()).one_line(1, "1 of 3 samples have no reply (1 error)", "--incomplete")
    assert export(lab, lab.the_run(), "--incomplete").code == 0
    ((entry,),) = exported(lab).values()
    assert "incomplete, without a reply and not scored: 1 error" in entry["notes"]
    assert "2 scored samples at each of lengths 4" in entry["notes"]


def test_a_control_is_called_one(lab: Lab) -> None:
    """Where a model that sees nothing is right, the number does not pass for sight."""
    copying = ("--lengths", "5", "--samples", "2", "--axis", "odd=absent")
    done = lab.bench_run("--model", "tiny", *copying, task=Path("copying/first_last"))
    assert done.code == 0, done
    export(lab, lab.the_run())
    assert all(
        "a control: a model that sees nothing is right" in entry["notes"]
        for file in exported(lab).values()
        for entry in file
    )


def test_the_same_run_gives_the_same_files_and_files_of_others_stay(lab: Lab) -> None:
    """Ours are replaced, byte for byte; what somebody wrote by hand is not."""
    lab.bench_run("--model", lab.fake(right), task=lab.plain)
    path = Path(export(lab, lab.the_run()).out.strip())
    before = path.read_bytes()
    assert before.startswith(HEADER.encode())
    assert export(lab, lab.the_run()).code == 0
    assert path.read_bytes() == before
    path.write_text("- dataset: mine\n")
    export(lab, lab.the_run()).one_line(1, path.name, "not a file of this run", "another -o")
    assert path.read_text() == "- dataset: mine\n"


def test_runs_that_belong_on_several_pages_or_in_one_file_are_refused(lab: Lab) -> None:
    """A model's repository has one model's results, and one number for a task and its settings."""
    lab.bench_run("--model", lab.fake(right), task=lab.plain)
    lab.bench_run("--model", lab.model("Final answer: 2"), task=lab.plain)
    runs = [path.parent for path in (lab.out / "runs").rglob("manifest.json")]
    export(lab, *runs).one_line(2, "runs of 2 models", "one model at a time")
    elsewhere = lab.folder / "elsewhere"
    lab.bench_run("--model", lab.fake(lambda _: "no"), "--out", elsewhere, task=lab.plain)
    (other,) = (path.parent for path in elsewhere.rglob("manifest.json"))
    mine = next(run for run in runs if "fake" in str(run))
    export(lab, mine, other).one_line(2, "one task, version and settings", "name one")
    assert not (lab.folder / "model").exists()
    assert export(lab, mine, mine).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--dataset", "eyechart"), "ORG/NAME, not 'eyechart'"),
        (("--dataset", "https://huggingface.co/datasets/a/b"), "ORG/NAME"),
        (("--source-user", "me"), "--source-url"),
        (("--source-user", ""), "--source-user is empty"),
        (("--source-url", "http://\udce9"), "is not UTF-8"),
        (("--source-url", "example.org"), "http:// or https://"),
        (("--threshold", "2"), "--threshold"),
    ],
)
def test_what_the_form_has_not_is_said_at_once(
    lab: Lab, arguments: tuple[str, ...], said: str
) -> None:
    """One line, before any run is read."""
    export(lab, lab.folder, *arguments).one_line(2, said)


def test_task_ids_are_plain_words(lab: Lab) -> None:
    """Whatever a user calls a task, its names on the hub are letters, digits and underscores."""
    folder = lab.folder / "meine Aufgaben (2)"
    folder.mkdir()
    (folder / "Zähl's-mal.yaml").write_text(lab.plain.read_text())
    (folder / "rows.py").write_text((lab.folder / "lab" / "rows.py").read_text())
    lab.bench_run("--model", lab.fake(right), task=folder)
    assert export(lab, lab.the_run()).code == 0
    ((name, (entry,)),) = exported(lab).items()
    assert re.fullmatch(r"\w+-[0-9a-f]{8}\.yaml", name, re.ASCII)
    assert entry["dataset"]["task_id"] == "meine_Aufgaben_2_Z_hl_s_mal_v3"


def test_an_adaptive_run_has_no_number_to_publish(lab: Lab) -> None:
    """One line with the remedy, and no file."""
    lab.bench_run("--model", lab.fake(right), "--adaptive")
    export(lab, lab.the_run()).one_line(1, "is an adaptive run, which has no area", "without")
    assert not (lab.folder / "model" / FOLDER).exists()


def test_an_adaptive_condition_has_no_number_to_publish(lab: Lab) -> None:
    """Another condition of the run, which was asked in full, has one."""
    lab.bench_run("--model", lab.fake(right), "--axis", "separator=comma")
    lab.bench_run("--model", lab.fake(right), "--axis", "separator=none", "--adaptive")
    assert export(lab, lab.the_run()).code == 0
    ((name, _),) = exported(lab).items()
    assert "separator_comma" in name
