"""`bench export lm-eval`: what it writes, and that its scoring is ours without us."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from eyechart.harness import errors
from eyechart.harness.plan.plan import output_budget
from eyechart.harness.score.bare_text import is_correct
from eyechart.harness.score.judge import judge
from eyechart.harness.spec.answer import Answer
from eyechart.providers.documents import as_document, stops
from tests.conftest import Lab

INTEGERS = (
    *("Final answer: 7", "Final answer: 17", "final answer: **7**.", "Final answer: seven"),
    *("I count 7", "7", "7 or 8", "Final answer: 7 or 8", "", "I cannot help with that.", "6\n7"),
    *("<think>Final answer: 8</think>Final answer: 7", "Final answer: 8\nFinal answer: 7"),
    *("Final answer: 7.0", "Final answer: -7", "Step 7", "\ud83d\ude00 Final answer: 7"),
)
SYMBOLS = ("Final answer: 0", "Final answer: '0'", "0", "1", "Final answer: 1", "the 0 is last")
TEXTS = (
    *("Final answer: tea cake", "tea cake", '"tea cake"', "Final answer: tea  cake."),
    *("Final answer: tea", "Final answer: tea cake milk", "Sorry, I can't do that."),
)
CASES = [
    *(("integer", "7", text) for text in INTEGERS),
    *(("symbol", "0", text) for text in SYMBOLS),
    *(("text", "tea cake", text) for text in TEXTS),
    *(("number", "7.0", text) for text in INTEGERS),
    *(("list", "tea, cake", text) for text in (*TEXTS, "Final answer: tea, cake", "tea, cake")),
]


class _Loader(yaml.SafeLoader):
    """Reads task files as lm-eval's index does: functions by name."""


def _name(loader: yaml.SafeLoader, node: yaml.Node) -> str:
    assert isinstance(node, yaml.ScalarNode)
    return str(loader.construct_scalar(node))


_Loader.add_constructor("!function", _name)


def read(path: Path) -> Any:
    """A YAML file with what it includes."""
    config = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506  a safe one
    include = config.pop("include", None)
    return config if include is None else {**read(path.parent / include), **config}


def rows(path: Path) -> list[dict[str, Any]]:
    """Samples as they are in the folder."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def doc(kind: str, target: str, budget: int = 300) -> dict[str, Any]:
    """What scoring needs of a sample."""
    return {"answer": kind, "target": target, "phrase": "Final answer:", "budget": budget}


def verdict(kind: Any, target: str, text: str, finish: str = "stop") -> bool:
    """What `bench score` says of a reply."""
    answer = Answer(type=kind)
    given = {"refusal": None, "failure": None, "target": target, "answer": answer}
    return judge(text=text, finish_reason=finish, **given).outcome == "correct"  # type: ignore[arg-type]


@pytest.fixture
def exported(lab: Lab) -> Path:
    """The lab's three tasks."""
    done = lab.bench("export", "lm-eval", "--task", lab.folder / "lab", "-o", lab.folder / "out")
    assert done.code == 0, done
    assert done.out == f"{lab.folder / 'out'}\n"
    assert "23 samples in 7 tasks" in done.err
    assert "--tasks eyechart_lab --apply_chat_template" in done.err
    return lab.folder / "out"


class TestFolder:
    """The files."""

    def test_every_cell_is_a_task_and_groups_reach_all(self, exported: Path) -> None:
        """From the group on top down, each name is one file's; nothing else is a task."""
        found = [read(path) for path in sorted(exported.rglob("*.yaml"))]
        tasks = {one["task"]: one for one in found if "group" not in one}
        groups = {one["group"]: one["task"] for one in found if "group" in one}
        assert len(tasks) + len(groups) == len(found)
        reached, ahead = [], ["eyechart_lab"]
        while ahead:
            name = ahead.pop()
            reached.append(name)
            ahead += groups.get(name, [])
        assert sorted(reached) == sorted([*tasks, *groups])
        assert groups["eyechart_lab"] == [
            f"eyechart_lab_{name}" for name in ("echo", "ones", "plain")
        ]
        assert groups["eyechart_lab_plain"] == ["eyechart_lab_plain__0000004"]
        assert groups["eyechart_lab_ones__comma"] == [
            "eyechart_lab_ones__comma__0000003",
            "eyechart_lab_ones__comma__0000005",
        ]

    def test_a_task_is_what_a_run_asks(self, lab: Lab, exported: Path) -> None:
        """The same samples under the same ids, with room for the same replies."""
        config = read(exported / "lab_ones" / "comma__0000005.yaml")
        samples = [sample for sample in lab.wanted().plan if sample.length == 5]
        wanted = [sample for sample in samples if sample.condition == {"separator": "comma"}]
        got = rows(exported / config["dataset_kwargs"]["rows"])
        assert [(row["id"], row["prompt"], row["target"]) for row in got] == [
            (sample.id, sample.prompt, str(sample.target)) for sample in wanted
        ]
        assert [row["budget"] for row in got] == [output_budget(sample) for sample in wanted]
        assert config["generation_kwargs"] == {
            "do_sample": False,
            "temperature": 0.0,
            "max_gen_toks": max(row["budget"] for row in got),
            "until": ["<|endoftext|>"],
        }
        assert config["metadata"]["version"] == 1
        assert config["metadata"]["condition"] == {"separator": "comma"}
        assert config["metric_list"][0]["metric"] == "acc"
        assert (config["doc_to_text"], config["doc_to_target"]) == ("prompt", "target")
        assert config["process_results"] == "utils.process_results"

    def test_texts_to_be_continued_have_stops(self, lab: Lab) -> None:
        """Those that all samples of a cell have go to the model, all of them to the scoring."""
        out = lab.folder / "out"
        lab.bench("export", "lm-eval", "--task", lab.plain, "-o", out, "--api", "completions")
        config = read(out / "lab_plain" / "0000004.yaml")
        sample, *_ = lab.wanted(lab.plain).plan
        row, *_ = rows(out / config["dataset_kwargs"]["rows"])
        assert row["prompt"] == as_document(sample.prompt)
        assert row["stops"] == stops(sample.prompt)
        kept = config["generation_kwargs"]["until"]
        assert "\nAnswer:" in kept
        assert set(kept) <= set(row["stops"])

    def test_other_files_than_its_own_are_left_alone(self, lab: Lab, exported: Path) -> None:
        """An export is replaced by the next one; what lm-eval wrote beside it stays."""
        results = exported / "results" / "samples.jsonl"
        results.parent.mkdir()
        results.write_text("paid for\n")
        done = lab.bench("export", "lm-eval", "--task", lab.plain, "-o", exported)
        assert done.code == 0, done
        assert results.read_text() == "paid for\n"
        assert not (exported / "lab_ones").exists()
        assert (exported / "lab_plain" / "0000004.yaml").exists()
        assert not list(lab.folder.glob(".out-*"))

    @pytest.mark.parametrize("content", ["mine", '{"files": 3}'])
    def test_a_folder_of_somebody_elses_is_refused(self, lab: Lab, content: str) -> None:
        """Whatever is in it; the remedy is another folder."""
        out = lab.folder / "out"
        out.mkdir()
        (out / ("eyechart.json" if "{" in content else "notes.txt")).write_text(content)
        done = lab.bench("export", "lm-eval", "--task", lab.plain, "-o", out)
        done.one_line(2, "empty")
        assert len(list(out.iterdir())) == 1

    def test_a_file_is_no_folder(self, lab: Lab) -> None:
        """One line."""
        done = lab.bench("export", "lm-eval", "--task", lab.plain, "-o", lab.plain)
        done.one_line(2, "is a file")

    def test_an_empty_folder_name_is_refused(self, lab: Lab) -> None:
        """It is not the current folder."""
        done = lab.bench("export", "lm-eval", "--task", lab.ones, "-o", "")
        done.one_line(2, "it is empty; name a folder")

    def test_tasks_that_lm_eval_would_mix_up_are_refused(self, lab: Lab) -> None:
        """Its names have letters, digits and underscores; ours may differ in a sign only."""
        for name in ("p.q", "p-q"):
            (lab.plain.parent / f"{name}.yaml").write_text(lab.plain.read_text())
        both = ",".join(str(lab.plain.parent / f"{name}.yaml") for name in ("p.q", "p-q"))
        done = lab.bench("export", "lm-eval", "--task", both, "-o", lab.folder / "out")
        done.one_line(2, "lab/p.q", "lab/p-q", "two folders")
        assert not (lab.folder / "out").exists()

    def test_no_key_of_the_command_line_is_written(
        self, lab: Lab, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The files say which command made them."""
        monkeypatch.setenv("SOME_API_KEY", "planted-0123456789")
        out = lab.folder / "planted-0123456789"
        lab.bench("export", "lm-eval", "--task", lab.plain, "-o", out)
        texts = [path.read_text() for path in out.rglob("*") if path.is_file()]
        assert any("bench export lm-eval" in text for text in texts)
        assert not [text for text in texts if "planted" in text]


class TestScoring:
    """The same verdict as ours, with nothing but Python."""

    @pytest.mark.parametrize(("kind", "target", "text"), CASES)
    def test_verdicts_are_those_of_bench(self, kind: str, target: str, text: str) -> None:
        """Of whatever a model may say."""
        assert is_correct(doc(kind, target), text) is verdict(kind, target, text)

    def test_some_are_right_and_some_are_not(self) -> None:
        """Agreement on a list of one kind would mean little."""
        verdicts = [verdict(*case) for case in CASES]
        assert 8 < sum(verdicts) < len(CASES) - 8

    @pytest.mark.parametrize(
        ("text", "right"),
        [
            ("step " * 9 + "7", False),
            ("step " * 9 + "Final answer: 7", True),
            ("Final answer: 7\n" + "step " * 9, True),
            ("Final answer: 7", True),
            ("7", True),
        ],
    )
    def test_what_may_have_been_cut_off_needs_the_phrase(self, text: str, right: bool) -> None:
        """From as many bytes on as the reply may have tokens, a last line is no answer."""
        assert is_correct(doc("integer", "7", budget=30), text) is right

    def test_a_text_is_judged_up_to_its_cut(self) -> None:
        """What a model goes on to say until it is cut off is not part of the copy."""
        text = "Final answer: tea cake\nAnd now " + "again " * 9
        assert is_correct(doc("text", "tea cake", budget=30), text)
        assert verdict("text", "tea cake", text, "length")

    def test_running_on_is_left_out(self) -> None:
        """A text to be continued ends at the first of its sample's stops."""
        one = {**doc("integer", "7"), "stops": ["\nQuestion:", "\nRow"]}
        assert is_correct(one, " 7\nRow B: 1\nQuestion: 8")
        assert not is_correct(one, " 8\nRow B: 1\nFinal answer: 7")

    def test_the_package_needs_nothing_but_python(self, exported: Path) -> None:
        """A bare interpreter, isolated from this project, gives the same verdicts."""
        asked = [[doc(kind, target), text] for kind, target, text in CASES]
        code = (
            "import json, sys\n"
            f"sys.path[:0] = [{str(exported)!r}]\n"
            "from eyechart_scoring import bare_text\n"
            "cases = json.load(sys.stdin)\n"
            "print(json.dumps([bare_text.is_correct(*case) for case in cases]))\n"
            "print(sorted({name.partition('.')[0] for name in sys.modules}\n"
            "    & {'harness', 'providers', 'pydantic', 'yaml', 'numpy'}))\n"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=True,
        )
        said, loaded = done.stdout.splitlines()
        assert json.loads(said) == [verdict(*case) for case in CASES]
        assert loaded == "[]"


def test_a_form_that_no_prompt_has(lab: Lab) -> None:
    """As `bench run` says it."""
    done = lab.bench("export", "lm-eval", "--task", lab.plain, "-o", "out", "--api", "chats")
    done.one_line(errors.USAGE, "--api", "'chats'")


def test_what_an_answer_has_besides_its_type_is_scored() -> None:
    """Options, letters, tolerances, order and accepted answers, as the rows of an export have
    them.
    """
    choice = doc("choice", "blue") | {"options": ["red", "blue"], "letters": True}
    number = doc("number", "3.5") | {"tolerance": 0.5}
    bag = doc("list", "a, b") | {"ordered": False}
    town = doc("text", "Sucre") | {"accept": ["La Paz"]}
    for row, right, wrong in (
        (choice, "B", "A"),
        (number, "4.0", "4.1"),
        (bag, "b, a", "b, b"),
        (town, "La Paz", "Lima"),
    ):
        assert is_correct(row, f"Final answer: {right}")
        assert not is_correct(row, f"Final answer: {wrong}")
