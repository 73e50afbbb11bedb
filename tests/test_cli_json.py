"""`--json`: one document on stdout, with the keys of docs/json.md and the numbers of the files."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eyechart.harness.cli.documents import json_text
from eyechart.harness.plan.plan import plan
from eyechart.harness.task.catalogue import built_in_files
from eyechart.providers.base import BadRequestError, Request
from eyechart.providers.registry.registry import needs
from tests.conftest import right
from tests.test_cli_help import VERBS
from tests.test_run_batch_importer import answer_all, export

if TYPE_CHECKING:
    from tests.conftest import Lab

DOCS = (Path(__file__).parents[1] / "docs" / "json.md").read_text()
_TABLE = DOCS.partition("| verb | keys of the document |\n")[2].partition("\n\n")[0]
ROWS = {
    tuple(verb.split()): re.findall(r"`(\w+)`", keys)
    for verbs, keys in re.findall(r"^\| (`[^|]*`) \| (.*) \|$", _TABLE, re.MULTILINE)
    for verb in re.findall(r"`([a-z -]+)`", verbs)
    if tuple(verb.removesuffix(" --dry-run").split()) in VERBS
}
"""Verb -> keys of its JSON document, for the verbs that are installed."""


def document(lab: Lab, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    """What a command prints; checks that it is the document that the page describes."""
    done = lab.bench(*arguments, "--json")
    assert done.code == code, done
    found: dict[str, Any] = json.loads(done.out)
    assert done.out.endswith("}\n")
    verb = next(verb for length in (2, 1) if (verb := tuple(map(str, arguments[:length]))) in ROWS)
    assert list(found) == ROWS[verb]
    return found


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def same(of_document: dict[str, Any], of_file: dict[str, str]) -> None:
    """A row of a file and its object have the same values."""
    assert list(of_document) == list(of_file)
    for name, value in of_document.items():
        text = of_file[name]
        if value is None or isinstance(value, str):
            assert (value or "") == text, name
        else:
            assert value == pytest.approx(float(text), abs=1e-6), name


def check_run(run: dict[str, Any]) -> None:
    """A run's object has the numbers of its files."""
    folder = Path(run["folder"])
    for key, name in (("cells", "table.csv"), ("conditions", "effective_length.csv")):
        in_file = rows(folder / name)
        assert len(run[key]) == len(in_file) > 0
        for of_document, of_file in zip(run[key], in_file, strict=True):
            same(of_document, of_file)


def test_the_page_has_every_verb_with_json() -> None:
    """And no other."""
    with_json = {
        verb
        for verb, command in VERBS.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert with_json == {verb for verb in ROWS if "--dry-run" not in verb}
    assert {("run",), ("score",), ("tasks", "show"), ("models",), ("leaderboard",)} <= with_json


def test_a_run_is_its_files(lab: Lab) -> None:
    """Of each model; also where the command only finds what is there."""
    command = ("run", "--task", lab.ones, "--model", "oracle:4,oracle:9", "--out", lab.out)
    found = document(lab, *command)
    assert found["models"] == [
        {"model": name, "exit_code": 0, "why": ""} for name in ("oracle/4", "oracle/9")
    ]
    assert [run["model"] for run in found["runs"]] == ["oracle/4", "oracle/9"]
    for run in found["runs"]:
        check_run(run)
        of_runs = DOCS.partition("| key | what |")[2].partition("\n\n")[0]
        described = re.findall(r"^\| (`.*`) \| ", of_runs, re.MULTILINE)
        assert set(run) == {key for row in described for key in re.findall(r"`(\w+)`", row)}
    assert document(lab, *command) == found


def test_what_fails_is_in_the_document(lab: Lab) -> None:
    """And the exit code is that of a command of which a part failed."""

    def script(request: Request) -> str | BadRequestError:
        return BadRequestError("400") if "length=5" in request.sample_id else right(request)

    lab.monkeypatch.delenv("GROQ_API_KEY", raising=False)
    models = f"groq/x,{lab.fake(script)}"
    found = document(lab, "run", "--task", lab.ones, "--model", models, "--out", lab.out, code=1)
    assert [model["exit_code"] for model in found["models"]] == [2, 1]
    assert "GROQ_API_KEY" in found["models"][0]["why"]
    (run,) = found["runs"]
    assert run["missing"] == 8
    assert {cell["accuracy"] for cell in run["cells"]} == {1.0, None}
    check_run(run)


def test_of_several_draws_it_says_what_they_say(lab: Lab) -> None:
    """The numbers, and the sentences of the terminal."""
    command = ("run", "--task", lab.plain, "--model", "oracle:9", "--out", lab.out)
    (run,) = document(lab, *command)["runs"]
    assert run["draws"] == 1
    assert "draws" not in {one["kind"] for one in run["findings"]}
    (run,) = document(lab, *command, "--draws", "2")["runs"]
    assert run["draws"] == 2
    (drawn,) = (one for one in run["findings"] if one["kind"] == "draws")
    assert drawn["sentence"].startswith("Of 3 prompts, each asked 2 times, 3 got the same text")
    assert drawn["facts"]["prompts"] == 3


def test_a_dry_run_is_the_plan_with_its_cost(lab: Lab) -> None:
    """Of each model; nothing is sent."""
    lab.bench_ask("--model", "oracle:9", "--lengths", "5", "--samples", "3")
    of_both = ("--task", lab.ones, "--model", "oracle:9,gpt-4o", "--out", lab.out)
    command = ("run", "--dry-run", *of_both)
    found = document(lab, *command)
    described = re.findall(r"`(\w+)`", DOCS.partition("| key of a planned run |")[2])
    ours, theirs = found["runs"]
    assert set(ours) == set(theirs) <= set(described)
    assert (ours["requests"], ours["answered"], theirs["answered"]) == (16, 6, 0)
    assert sum(cell["samples"] for cell in ours["cells"]) == 16
    assert not Path(theirs["folder"]).exists()
    assert [model["dollars"] for model in found["models"]] == [None, theirs["dollars"]]
    assert 0 < theirs["dollars"] < theirs["most_dollars"]
    assert ours["adaptive"] is None
    assert ours["can_show"].keys() == {"power", "from_accuracy", "tests", "fall", "factor"}
    (wave, _) = document(lab, *command, "--adaptive", "--max-requests", "7")["runs"]
    assert wave["adaptive"]["most_of_command"] == 7
    assert wave["can_show"] is None


def test_score_judges_again(lab: Lab) -> None:
    """With the threshold of the command, and what is now judged otherwise."""
    lab.bench_ask("--model", "oracle:4")
    folder = lab.the_run()
    (run,) = document(lab, "score", folder, "--threshold", "0.5")["runs"]
    check_run(run)
    assert (run["threshold"], run["changes"]) == (0.5, [])
    verdicts = folder / "verdicts.json"
    verdicts.write_text(verdicts.read_text().replace('"cccc"', '"ccci"'))
    (run,) = document(lab, "score", folder)["runs"]
    assert {(one["before"], one["now"]) for one in run["changes"]} == {("incorrect", "correct")}
    assert all(set(one) == {"id", "before", "now", "why"} for one in run["changes"])
    lines = lab.bench("score", folder).out.splitlines()
    assert any("right to" in line for line in lines)  # without --json it is a table


def test_score_by_metadata(lab: Lab) -> None:
    """The rows of `by_NAME.csv`."""
    (lab.ones.parent / "items.yaml").write_text(
        "version: 1\ntitle: Own\nitems: own.jsonl\nanswer: integer\n"
        "prompt: |\n  How many ones? {{ row }} {{ phrase }}\n"
    )
    (lab.ones.parent / "own.jsonl").write_text(
        "\n".join(
            json.dumps(
                {
                    "variables": {"row": "1" * length},
                    "target": length,
                    "length": length,
                    "metadata": {"kind": "even" if length % 2 == 0 else "odd"},
                }
            )
            for length in (1, 2, 3, 4)
        )
    )
    task = lab.ones.parent / "items.yaml"
    lab.bench_ask("--model", "oracle:2", task=task)
    (run,) = document(lab, "score", lab.the_run(), "--by", "kind", "--task", task)["runs"]
    assert run["without_group"] == 0
    assert {row["metadata_value"]: row["accuracy"] for row in run["groups"]} == {
        "even": 0.5,
        "odd": 0.5,
    }
    for of_document, of_file in zip(
        run["groups"], rows(lab.the_run() / "by_kind.csv"), strict=True
    ):
        same(of_document, of_file)


def test_lists(lab: Lab) -> None:
    """Of runs, tasks and providers."""
    lab.bench_ask("--model", "oracle:5", task=lab.plain)
    (run,) = document(lab, "runs", "--out", lab.out)["runs"]
    assert (run["model"], run["answered"], run["planned"]) == ("oracle/5", 3, 3)
    assert all(f"`{key}`" in DOCS for key in run)
    assert document(lab, "runs", "--out", lab.folder / "empty") == {"runs": []}
    tasks = document(lab, "tasks")["tasks"]
    assert [task["task"] for task in tasks] == list(built_in_files())
    providers = document(lab, "models")["providers"]
    ours = [name for name, _, _ in needs()]
    assert [one["provider"] for one in providers if one["provider"] in ours] == ours


def test_a_task_with_its_prompts(lab: Lab) -> None:
    """The samples are those that a run asks; `tasks sample` makes the same one."""
    (task,) = document(lab, "tasks", "show", lab.ones)["tasks"]
    wanted = lab.wanted().plan
    assert task["requests"] == wanted.size
    assert task["spec"]["prompt"] == wanted.task.spec.prompt
    assert [line["length"] for line in task["lines"]] == [3, 5]
    samples = {sample.id: sample for sample in plan(wanted.task, samples=1)}
    for prompt in task["prompts"]:
        assert prompt["prompt"] == samples[prompt["id"]].prompt
        assert prompt["target"] == samples[prompt["id"]].target
        assert document(lab, "tasks", "sample", prompt["id"], "--task", lab.ones) == prompt
    lab.bench("tasks", "--json", "show", lab.ones).one_line(2, "--json goes after the verb")


def test_a_check_says_all_that_is_wrong(lab: Lab) -> None:
    """Also of a file that cannot be read; the exit code is that of the check."""
    (sound,) = document(lab, "tasks", "check", lab.ones)["tasks"]
    assert (sound["sound"], sound["problems"]) == (True, [])
    lab.plain.write_text(lab.plain.read_text().replace("title", "titel"))
    found = document(lab, "tasks", "check", f"{lab.ones},{lab.plain}", code=2)["tasks"]
    assert [task["sound"] for task in found] == [True, False]
    assert f"{lab.plain}:2:1: " in " ".join(found[1]["problems"])


def test_a_leaderboard_has_numbers(lab: Lab) -> None:
    """The rows of its file, with the page beside it."""
    for model in ("oracle:4", "oracle:9"):
        lab.bench_ask("--model", model)
    found = document(lab, "leaderboard", "--out", lab.out, "--task", lab.ones)
    assert Path(found["page"]).exists()
    (ranks,) = found["ranks"]
    assert ranks["condition"] == "separator=none"
    assert [model["model"] for model in ranks["models"]] == ["oracle/9", "oracle/4"]
    for model in ranks["models"]:
        (shown,) = (
            row
            for row in found["rows"]
            if row["model"] == model["model"] and row["condition"] == ranks["condition"]
        )
        assert model["effective_length"] == shown["effective_length"]
        assert 1 <= model["rank_best"] <= model["rank_last"] <= 2
    in_file = rows(Path(found["file"]))
    assert len(in_file) == len(found["rows"]) == 4
    for of_document, of_file in zip(found["rows"], in_file, strict=True):
        same(of_document, of_file)
        assert isinstance(of_document["area"], int | float)
        assert isinstance(of_document["n"], int)


def test_verbs_that_write_files_name_them(lab: Lab) -> None:
    """Each is there."""
    lab.monkeypatch.chdir(lab.folder)
    lab.bench_ask("--model", "oracle:5")
    run, own = lab.the_run(), ("--task", str(lab.ones))
    for command in (
        ("report", run, *own),
        ("figure", "accuracy", run, *own),
        ("export", "batch", *own, "--model", "gpt-4o", "-o", "x.jsonl"),
        ("export", "lm-eval", "--task", "counting/ones", "-o", "tasks", "--samples", "1"),
        ("export", "verifiers", "--task", "counting/ones", "-o", "rows", "--samples", "1"),
        ("tasks", "new", "marks"),
        ("export", "every-eval-ever", run, *own),
    ):
        files = document(lab, *command)["files"]
        assert files, command
        assert all(Path(file).exists() for file in files), command


def test_texts_obey_no_terminal_and_are_json() -> None:
    """Whatever is in them; what is no number is null."""
    text = "\x1b[2J\x7f\x9b\u202e\u2028é\n"
    written = json_text({"a": [text, math.nan, math.inf, 1.5, True, None], "b": 10**30})
    assert written.isascii()
    assert written.isprintable()
    assert json.loads(written) == {"a": [text, None, None, 1.5, True, None], "b": 10**30}


def test_an_import_shows_the_runs_that_it_reached(lab: Lab) -> None:
    """Also where replies are missing, or none fits."""
    own = ("--out", lab.out, "--task", lab.folder / "lab")
    export(lab)
    replies = answer_all(lab)
    (run,) = document(lab, "import", replies, *own)["runs"]
    check_run(run)
    assert (run["model"], run["missing"]) == ("openai/my-model", 0)
    export(lab, task=lab.plain)
    first, *_ = answer_all(lab).read_text().splitlines(keepends=True)
    replies.write_text(first)
    (run,) = document(lab, "import", replies, *own, code=1)["runs"]
    assert (run["task"], run["missing"]) == ("lab/plain", 2)
    replies.write_text("{}\n")
    assert document(lab, "import", replies, *own, code=1) == {"runs": []}
