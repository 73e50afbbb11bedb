"""Runs as records of "Every Eval Ever", by the words of its schema and, where it is at hand, by the
judgement of its own package.

`TESTS_EEE_PYTHON` names a Python (3.12 or newer) that has the package `every-eval-ever`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.journal.record import SAMPLES
from eyechart.providers.base import BadRequestError, PromptOverflowError, Reply, Request, Usage
from tests.conftest import Done, Lab, right

MOST = 2**64 - 1
"""That fits into a journal."""
PACKAGE = os.environ.get("TESTS_EEE_PYTHON", "")
needs_package = pytest.mark.skipif(
    not PACKAGE, reason="TESTS_EEE_PYTHON names no Python with every-eval-ever"
)
NEITHER_SCHEMA_NOR_PYDANTIC = """\
import json, sys
from pathlib import Path
from jsonschema import Draft7Validator
import every_eval_ever
schemas = Path(every_eval_ever.__file__).parent / "schemas"
of_runs, of_samples = (
    Draft7Validator(json.loads((schemas / f"{name}.schema.json").read_text()))
    for name in ("eval", "instance_level_eval")
)
for path in map(Path, sys.argv[1:]):
    if path.suffix == ".json":
        found = of_runs.iter_errors(json.loads(path.read_text()))
    else:
        lines = path.read_text().splitlines()
        found = (error for line in lines for error in of_samples.iter_errors(json.loads(line)))
    for error in found:
        print(path, list(error.path), error.message)
"""
"""Prints where files break the JSON schemas, which are stricter than the package's own models."""


def any_outcome(request: Request) -> Reply | BadRequestError | PromptOverflowError:
    """A reply of every kind, by the sample's index and length."""
    index = int(request.sample_id.rpartition("=")[2])
    usage = Usage(20, 5)
    if "length=3" in request.sample_id:
        return (
            Reply(right(request), usage=usage, reasoning="ones\u2028and\x85zeros"),
            Reply("Final answer: 99", usage=usage, model="scripted-1"),
            Reply("I'm sorry, but I can't help with that.", usage=usage),
            Reply("1, 2, 3, 4", "length", usage=usage),
        )[index]
    return (
        Reply("no idea\u2029whatsoever", usage=usage),
        PromptOverflowError("the prompt has 9000 tokens, the window 4096"),
        BadRequestError('400: "bad" \u2028 request'),
        Reply("", refusal="no"),
    )[index]


@pytest.fixture
def run(lab: Lab) -> Path:
    """The folder of a run with every outcome but `not_run`; its two errors make it incomplete."""
    done = lab.bench_run("--model", lab.fake(any_outcome))
    assert done.code == 1, done
    return lab.the_run()


def export(lab: Lab, *arguments: str | Path) -> Done:
    """`bench export every-eval-ever` into `eee`, told where the tasks are."""
    output = lab.folder / "eee"
    named = () if "--task" in arguments else ("--task", lab.folder / "lab")
    return lab.bench("export", "every-eval-ever", *arguments, "-o", output, *named)


def exported(lab: Lab) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The only record there is, and its samples."""
    (aggregate,) = (lab.folder / "eee" / "data").rglob("*.json")
    samples = aggregate.with_name(f"{aggregate.stem}_samples.jsonl")
    lines = samples.read_text().splitlines() if samples.exists() else []
    return json.loads(aggregate.read_text()), list(map(json.loads, lines))


def by_name(record: dict[str, Any], metric: str) -> dict[str, dict[str, Any]]:
    """The score details of one metric's results, by the results' ids."""
    return {
        one["evaluation_result_id"]: one["score_details"]
        for one in record["evaluation_results"]
        if one["metric_config"]["metric_id"] == metric
    }


def texts(value: object, inside: str = "") -> Iterator[tuple[str, object]]:
    """Whatever stands in an object of free names, which the schema wants to be texts."""
    if isinstance(value, dict):
        for name, one in value.items():
            if inside in ("additional_details", "details", "metadata"):
                yield f"{inside}.{name}", one
            yield from texts(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one, inside)


def test_who_averages_the_samples_gets_the_table(lab: Lab, run: Path) -> None:
    """By a result's id or by its name, mean score and number of samples are the cell's own, so
    samples without a reply are in no mean.
    """
    assert export(lab, run, "--incomplete").code == 0
    record, samples = exported(lab)
    cells = [
        one
        for one in record["evaluation_results"]
        if one["metric_config"]["metric_id"] == "accuracy"
    ]
    assert len(cells) == 4
    for key in ("evaluation_result_id", "evaluation_name"):
        scores = defaultdict(list)
        for sample in samples:
            scores[sample.get(key)].append(sample["evaluation"]["score"])
        for cell in cells:
            mine, said = scores.pop(cell[key]), cell["score_details"]
            assert said["score"] == pytest.approx(sum(mine) / len(mine), abs=1e-6)
            assert said["uncertainty"]["num_samples"] == len(mine)
        assert sum(map(len, scores.values())) == 2, "the errors belong to none"
    accuracies = by_name(record, "accuracy")
    label = "separator=none|length=3|accuracy"
    assert accuracies[label]["score"] == 0.25
    interval = accuracies[label]["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == (0.045587, 0.699358)
    details = accuracies["separator=none|length=5|accuracy"]["details"]
    counts = {name: details[name] for name in ("unparsed", "overflow", "refused", "error")}
    assert counts == dict.fromkeys(counts, "1")


def test_what_is_no_answer_is_not_shown_as_a_wrong_one(lab: Lab, run: Path) -> None:
    """Every outcome is named; all but right and wrong carry an error and nothing extracted."""
    export(lab, run, "--incomplete")
    _, samples = exported(lab)
    seen = {}
    for sample in samples:
        outcome = sample["metadata"]["outcome"]
        answered = outcome in ("correct", "incorrect")
        assert bool(sample["answer_attribution"]) == answered
        assert ("error" in sample) == (not answered)
        assert sample["evaluation"]["is_correct"] == (outcome == "correct")
        assert sample["metadata"]["scored"] == ("false" if outcome == "error" else "true")
        assert ("evaluation_result_id" in sample) == (outcome != "error")
        seen[outcome] = sample.get("error", "").partition(":")[2].strip()
    assert seen == {
        "correct": "",
        "incorrect": "",
        "refused": "no",
        "truncated": "cut off before the answer was whole",
        "unparsed": seen["unparsed"],
        "overflow": "the prompt has 9000 tokens, the window 4096",
        "error": '400: "bad" \u2028 request',
    }
    no_reply = [one for one in samples if one["metadata"]["outcome"] in ("error", "overflow")]
    assert [one["output"]["raw"] for one in no_reply] == [[]] * 4


def test_a_sample_has_its_prompt_reply_answer_and_cost(lab: Lab, run: Path) -> None:
    """All that the journal knows of it, and its prompt, made again from the task."""
    path = run / SAMPLES
    timed, count = re.subn(rb'"latency_s":[0-9.e-]+', b'"latency_s":0.25', path.read_bytes())
    assert count == 12  # of sixteen; four have no reply
    path.write_bytes(timed)
    export(lab, run, "--incomplete")
    _, samples = exported(lab)
    (sample,) = (
        one for one in samples if one["sample_id"].endswith("=none|length=3|seed=0|index=1")
    )
    assert sample["input"]["raw"].startswith('How many ones? Write "Final answer:"')
    assert sample["input"]["reference"] == [str(sample["input"]["raw"].splitlines()[-1].count("1"))]
    assert sample["output"]["raw"] == ["Final answer: 99"]
    (found,) = sample["answer_attribution"]
    assert (found["extracted_value"], found["is_terminal"]) == ("99", True)
    assert sample["token_usage"] == {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
    assert sample["performance"] == {"latency_ms": 250.0}
    assert sample["metadata"]["answered_by"] == "scripted-1"
    hashed = json.dumps(sample["input"], sort_keys=True, separators=(",", ":")).encode()
    assert sample["sample_hash"] == hashlib.sha256(hashed).hexdigest()
    (thought,) = (
        one for one in samples if one["sample_id"].endswith("none|length=3|seed=0|index=0")
    )
    assert thought["output"]["reasoning_trace"] == ["ones\u2028and\x85zeros"]


def test_tokens_that_nobody_can_have_used_are_left_out(lab: Lab, run: Path) -> None:
    """Journals of earlier versions hold whatever a server said."""
    path = run / SAMPLES
    path.write_bytes(path.read_bytes().replace(b'"output_tokens":5', b'"output_tokens":%d' % MOST))
    done = export(lab, run, "--incomplete")
    assert done.code == 0
    _, samples = exported(lab)
    assert samples
    assert not any("token_usage" in one for one in samples)


def test_free_names_hold_texts_and_samples_hold_lines(lab: Lab, run: Path) -> None:
    """As the schema asks of free names; and no reader of lines finds an end in a text."""
    export(lab, run, "--incomplete")
    record, samples = exported(lab)
    found = dict(texts([record, samples]))
    assert len(found) > 40
    assert {name: value for name, value in found.items() if not isinstance(value, str)} == {}
    (path,) = (lab.folder / "eee").rglob("*.jsonl")
    content = path.read_bytes()
    assert len(content.decode().splitlines()) == len(content.split(b"\n")) - 1 == len(samples) == 16
    reference = record["detailed_evaluation_results"]
    assert reference["total_rows"] == 16
    assert reference["checksum"] == hashlib.sha256(content).hexdigest()
    assert str(path).endswith(f"eee/{reference['file_path']}")


@pytest.mark.parametrize(
    ("wrong_from", "score", "said"),
    [(0, 0.0, "< 2"), (3, 2.0, "2"), (9, 3.0, "> 3")],
    ids=["never", "within", "beyond"],
)
def test_an_effective_length_outside_the_tested_range_keeps_its_definition(
    lab: Lab, wrong_from: int, score: float, said: str
) -> None:
    """0 below the shortest tested length, the longest one above it; the details have the bound and
    the tested length, and the interval has the name of its method.
    """

    def reads(request: Request) -> str:
        words = request.prompt.splitlines()[-1].strip()
        return f"Final answer: {words}" if len(words.split()) < wrong_from else "Final answer: mud"

    command = ("--model", lab.fake(reads), "--samples", "4")
    assert lab.bench_ask(*command, task=lab.echo).code == 0
    assert export(lab, lab.the_run()).code == 0
    record, samples = exported(lab)
    assert [one["evaluation_name"] for one in record["evaluation_results"]] == [
        "eyechart.lab.echo/length=2",
        "eyechart.lab.echo/length=3",
        "eyechart.lab.echo",
        "eyechart.lab.echo",
    ]
    (found,) = by_name(record, "eyechart.length").values()
    assert found["score"] == score
    assert found["details"]["effective_length"] == said
    assert found["details"]["tested_length"] == said
    assert found["details"]["one_threshold"] == "yes"
    assert float(found["details"]["lapse"]) <= 1
    assert "posterior" in found["uncertainty"]["confidence_interval"]["method"]
    assert "num_bootstrap_samples" not in found["uncertainty"]
    (area,) = by_name(record, "eyechart.area").values()
    interval = area["uncertainty"]["confidence_interval"]
    assert 0 <= interval["lower"] <= area["score"] <= interval["upper"] <= 1
    assert len(samples) == 8


def test_the_same_run_gives_the_same_files_and_a_grown_one_replaces_them(lab: Lab) -> None:
    """Names and bytes depend on the run alone; samples that come later go into the same files."""
    model = lab.fake(right)
    lab.bench_ask("--model", model, "--lengths", "3")
    first = export(lab, lab.the_run())
    content = {path: path.read_bytes() for path in map(Path, first.out.split())}
    assert len(content) == 2
    lab.bench_ask("--model", model, "--lengths", "3")  # nothing is left to ask
    again = export(lab, lab.the_run())
    assert again.out == first.out
    assert {path: path.read_bytes() for path in content} == content
    lab.bench_ask("--model", model)
    grown = export(lab, lab.the_run())
    assert grown.out == first.out
    assert len(exported(lab)[1]) == 16
    assert {path: path.read_bytes() for path in content} != content


def test_files_of_others_stay(lab: Lab) -> None:
    """A file in the place of one of ours is not overwritten, whichever of the two it is."""
    lab.bench_ask("--model", lab.fake(right))
    for path in map(Path, export(lab, lab.the_run()).out.split()):
        before = path.read_bytes()
        path.write_bytes(b"mine \xff")
        export(lab, lab.the_run()).one_line(1, str(path), "not a file of this run", "another -o")
        assert path.read_bytes() == b"mine \xff"
        path.write_bytes(before)
    assert list((lab.folder / "eee").rglob("*.tmp")) == []


def test_an_incomplete_run_is_not_published_unless_asked_for(lab: Lab, run: Path) -> None:
    """It is refused with what is missing; the record of one that is published says so."""
    export(lab, run).one_line(1, "2 of 16 samples have no reply (2 error)", "--incomplete")
    assert not (lab.folder / "eee").exists()
    done = export(lab, run, "--incomplete")
    assert done.code == 0
    assert "is incomplete, and its files say so: 2 of 16" in done.err
    record, _ = exported(lab)
    details = record["source_metadata"]["additional_details"]
    assert details["incomplete"] == "2 of 16 samples have no reply (2 error)"


def test_a_run_without_a_score_is_none(lab: Lab) -> None:
    """There is nothing to publish where no reply came, and in a folder that is no run."""
    lab.bench_ask("--model", lab.fake(lambda _request: BadRequestError("no")), task=lab.plain)
    export(lab, lab.the_run(), "--incomplete").one_line(1, "no scored sample")
    export(lab, lab.folder).one_line(1, "no run in", "manifest.json")


def test_a_cell_without_a_score_has_no_result(lab: Lab) -> None:
    """Its samples are in the file, its absence is counted, and no accuracy is made up."""

    def short_only(request: Request) -> str | BadRequestError:
        return right(request) if "length=3" in request.sample_id else BadRequestError("no")

    lab.bench_ask("--model", lab.fake(short_only))
    export(lab, lab.the_run(), "--incomplete")
    record, samples = exported(lab)
    assert [name.split("|")[1] for name in by_name(record, "accuracy")] == ["length=3"] * 2
    assert len(samples) == 16
    details = by_name(record, "eyechart.area")["separator=none|eyechart.area"]["details"]
    assert details["lengths"] == "[3]"


def test_prompts_of_ones_own_tasks_are_asked_for(lab: Lab) -> None:
    """Without the task's file there are no prompts: it is named, or the samples are left out."""
    lab.bench_ask("--model", lab.fake(right))
    run = lab.the_run()
    lab.bench("export", "every-eval-ever", run, "-o", lab.folder / "eee").one_line(
        2, "lab/ones is not at hand", "--task", "--run-kept-code", "--no-samples"
    )
    assert export(lab, run).code == 0
    done = export(lab, run, "--no-samples")
    assert done.code == 0
    assert len(done.out.split()) == 1
    record, samples = exported(lab)
    assert samples == []
    assert "detailed_evaluation_results" not in record


def test_a_prompt_that_was_not_asked_is_not_published(lab: Lab) -> None:
    """A generator that changed since makes other rows than those that the journal has hashes of."""
    lab.bench_ask("--model", lab.fake(right))
    journal = lab.the_run() / SAMPLES
    journal.write_text(re.sub(r'"prompt_hash":"\w+"', '"prompt_hash":"0"', journal.read_text()))
    export(lab, lab.the_run()).one_line(2, "is not what was asked", "--no-samples")
    assert [path for path in (lab.folder / "eee").rglob("*") if path.is_file()] == []


def test_a_place_that_cannot_be_written_is_named(lab: Lab) -> None:
    """A file where a folder should be."""
    lab.bench_ask("--model", lab.fake(right), task=lab.plain)
    (lab.folder / "eee").write_text("mine")
    export(lab, lab.the_run()).one_line(1, "cannot write", "eee", "Not a directory")


def test_one_name_is_not_given_to_several_models(lab: Lab) -> None:
    """`--model-id` is of one model; the same run named twice is one."""
    lab.bench_ask("--model", lab.fake(right), task=lab.plain)
    mine = lab.the_run()
    done = export(lab, mine, mine.parent / ".." / mine.parent.name / mine.name)
    assert len(done.out.split()) == 2
    lab.bench_ask("--model", lab.model("Final answer: 2"), task=lab.plain)
    runs = [path.parent for path in (lab.out / "runs").rglob(SAMPLES)]
    export(lab, *runs, "--model-id", "a/b").one_line(2, "runs have 2: ", "fake/model")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--relationship", "friend", "first_party, third_party, collaborative, other"),
        ("--weights", "ajar", "open, closed or unknown"),
        ("--model-id", "my-model", "ORG/NAME"),
        ("--model-id", "a/b/c", "ORG/NAME"),
        ("--benchmark", "../up", "folder"),
        ("--organization", " ", "empty"),
        ("--threshold", "0", "--threshold must be a number from 0.02"),
    ],
)
def test_what_no_record_can_hold_is_said_at_once(
    lab: Lab, option: str, value: str, said: str
) -> None:
    """One line, with the value and what would do, before any run is read."""
    export(lab, lab.folder, option, value).one_line(2, said)


def test_the_publisher_says_what_no_run_knows(lab: Lab) -> None:
    """Who publishes, how they stand to the maker, and the model's name on its hub."""
    lab.bench_ask("--model", lab.fake(right), task=lab.plain)
    done = export(lab, lab.the_run())
    assert "the maker of 'fake/model' is unknown" in done.err
    assert "--organization" in done.err
    said = ("--organization", "Lab", "--relationship", "first_party", "--weights", "open")
    done = export(lab, lab.the_run(), *said, "--model-id", "lab/m:1", "--benchmark", "mine")
    assert done.err == ""
    aggregate, samples = map(Path, done.out.split())
    assert aggregate.parts[-5:-1] == ("data", "mine", "lab", "m_1")
    record = json.loads(aggregate.read_text())
    assert record["model_info"]["id"] == json.loads(samples.read_text().splitlines()[0])["model_id"]
    assert record["model_info"]["id"] == "lab/m:1"
    assert record["model_info"]["additional_details"]["model_availability"] == "open_weights"
    assert record["source_metadata"]["source_organization_name"] == "Lab"
    assert record["evaluation_id"].startswith("mine.lab.plain@3-")


def runs_of(lab: Lab, provider: str) -> list[Path]:
    """The folders of all runs of a provider's models."""
    return [path.parent for path in (lab.out / "runs" / provider).rglob(SAMPLES)]


def package(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The package's Python, run where `data/` is."""
    return subprocess.run(
        [PACKAGE, *arguments],
        cwd=lab.folder / "eee",
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )


def validate(lab: Lab) -> tuple[int, list[dict[str, Any]]]:
    """What the package's own command says of all files there are: its exit code and reports."""
    done = package(
        lab, "-m", "every_eval_ever", "validate", "--format", "json", "data/*/*/*/*.json*"
    )
    assert done.stdout, done
    return done.returncode, json.loads(done.stdout)


@needs_package
@pytest.mark.usefixtures("run")
def test_the_real_package_takes_runs_of_every_kind(lab: Lab) -> None:
    """Its validator, its JSON schemas and its search for duplicates find nothing wrong with every
    outcome, with texts, with tasks that have no axes, and with the embedded model.
    """
    copying = ("copying/repeated_words", "--samples", "3", "--lengths", "5", "--model", "tiny")
    assert lab.bench_ask("--out", lab.out, "--task", *copying).code == 0
    assert export(lab, *runs_of(lab, "tiny")).code == 0
    for task in (lab.plain, lab.echo):
        assert lab.bench_ask("--model", lab.fake(right), task=task).code == 0
    said = ("--model-id", "lab/model", "--organization", "Lab", "--relationship", "other")
    assert export(lab, *runs_of(lab, "fake"), *said, "--incomplete").code == 0
    code, reports = validate(lab)
    assert [one for one in reports if one["errors"] or one["warnings"]] == []
    assert (code, len(reports)) == (0, 8)
    files = [str(path) for path in (lab.folder / "eee" / "data").rglob("*.json*")]
    strict = package(lab, "-c", NEITHER_SCHEMA_NOR_PYDANTIC, *files)
    assert (strict.returncode, strict.stdout) == (0, ""), strict
    twice = package(lab, "-m", "every_eval_ever", "check-duplicates", "data")
    assert "No duplicates found" in twice.stdout, twice


@needs_package
def test_the_real_package_warns_of_a_model_that_nobody_made(lab: Lab) -> None:
    """Which is what `bench` warns of too; `--model-id` mends it."""
    lab.bench_ask("--model", lab.fake(right), task=lab.plain)
    export(lab, lab.the_run(), "--no-samples")
    code, (report,) = validate(lab)
    assert (code, report["valid"]) == (2, True)
    assert "must be known" in report["warnings"][0]["msg"]


def test_an_adaptive_run_has_no_area(lab: Lab) -> None:
    """Its effective length and the accuracies of its cells are results as ever."""
    lab.bench_ask("--model", lab.fake(right), "--adaptive")
    assert export(lab, lab.the_run()).code == 0
    record, _ = exported(lab)
    assert by_name(record, "eyechart.area") == {}
    assert len(by_name(record, "eyechart.length")) == 2
