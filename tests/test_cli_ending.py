"""What the end of a command that made several runs shows."""

from __future__ import annotations

import shlex

from eyechart.harness.cli.work.next_command import named
from eyechart.providers.base import Request
from tests.conftest import Lab, right

ASKED = ("--lengths", "5,20", "--samples", "4")


def table_of(out: str) -> list[list[str]]:
    """The cells of the table."""
    rows = [line for line in out.splitlines() if "|" in line]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_several_runs_end_in_one_table(lab: Lab) -> None:
    """A row for each, under the default condition; what follows is the next command."""
    models = ("--model", "oracle:10,oracle:30")
    done = lab.bench_run("--task", "counting/ones,counting/sum", *models, *ASKED)
    head, more, *rows = table_of(done.out)
    assert head == ["task", "model", "condition", "right to"]
    assert more == ["", "", "", "(85 %)"]
    assert [row[:3] for row in rows] == [
        ["counting/ones", "oracle/10", "separator=none"],
        ["counting/sum", "oracle/10", ""],
        ["counting/ones", "oracle/30", "separator=none"],
        ["counting/sum", "oracle/30", ""],
    ]
    for task, model, _, seen in rows:
        (folder,) = (lab.out / "runs" / model).glob(f"{task}*")
        shown = lab.bench("score", folder).out
        assert seen.split(" (")[0] in shown
        assert shown.splitlines()[0] not in done.out
    assert done.out.rstrip().splitlines()[-1].startswith("next: ")


def test_the_printed_commands_judge_as_this_one(lab: Lab) -> None:
    """They have the settings of judging that are not the default ones."""
    models = ("--model", "oracle:10,oracle:30", "--threshold", "0.5", "--near", "0.1")
    done = lab.bench_run("--task", "counting/sum", *models, *ASKED)
    (line,) = (one for one in done.out.splitlines() if one.startswith("Accuracies and all"))
    command = line.partition(": ")[2]
    assert command.startswith("bench score --all-findings --threshold 0.5 --near 0.1 ")
    assert "right to (50 %)" in lab.bench(*shlex.split(command)[1:]).out
    last = done.out.rstrip().splitlines()[-1]
    assert last.startswith("next: bench compare ")
    assert last.endswith(" --threshold 0.5 --near 0.1")


def test_one_run_has_no_such_table(lab: Lab) -> None:
    """Its own table is the last."""
    done = lab.bench_run("--task", "counting/sum", "--model", "oracle:10", *ASKED)
    assert "bench score" not in done.out


def test_what_limits_a_length_is_said_there(lab: Lab) -> None:
    """A length that is no property of the model is marked."""
    replies = lab.folder / "replies.txt"
    replies.write_text("Let me think about it.\n")
    lab.monkeypatch.setenv("COLUMNS", "240")  # for the name of the file
    models = ("--model", f"oracle:10,scripted/{replies}")
    done = lab.bench_run("--task", "counting/sum", *models, *ASKED, "--keep-going")
    oracle, unreadable = (row[-1] for row in table_of(done.out)[2:])
    assert "not known" not in oracle
    assert unreadable == "not known†"
    assert f"† scripted/{replies}, counting/sum: limited by form" in done.out


def test_a_warning_is_one_sentence_that_names_its_run(lab: Lab) -> None:
    """Results that are in the table are not said again."""
    replies = lab.folder / "replies.txt"
    replies.write_text("Let me think about it.\n")
    models = ("--model", f"oracle:10,scripted/{replies}")
    done = lab.bench_run("--task", "counting/sum", *models, *ASKED, "--keep-going")
    said = done.out.partition("\n+")[2].rpartition("+\n")[2].splitlines()
    assert [
        line for line in said if "oracle" in line and "bench" not in line and "†" not in line
    ] == []
    (unread,) = (line for line in said if "have no answer that can be read" in line)
    assert unread.startswith(f"counting/sum scripted/{replies}: ")
    assert unread.count(". ") == 0


def test_many_runs_are_named_by_a_pattern(lab: Lab) -> None:
    """Of which `bench` finds the runs, whatever the models are called."""
    models = ",".join(f"oracle:{sees}" for sees in (5, 10, 20, 30))
    done = lab.bench_run("--task", "counting/sum", "--model", models, *ASKED)
    last = done.out.rstrip().splitlines()[-1]
    (name, *_) = (path.name for path in lab.out.rglob("sum@*"))
    assert last == f"next: bench compare '{lab.out}/runs/oracle/*/counting/{name}'"
    folders = [lab.folder / "runs" / name / "t@1" for name in ("x", "y/z", "w", "v")]
    for folder in folders:
        folder.mkdir(parents=True)
    assert named(folders) == [lab.folder / "runs/**/*/t@1"]
    (lab.folder / "runs/u/t@1").mkdir(parents=True)
    assert named(folders) == folders, "the pattern would be of a fifth run too"
    shown = lab.bench(*shlex.split(last)[2:])
    assert shown.code == 0
    assert "oracle/30" in shown.out


def test_a_condition_that_is_seen_further_than_the_default_is_told(lab: Lab) -> None:
    """In a sentence, since the row is that of the default condition."""

    def sees(request: Request) -> str:
        is_seen = "separator=comma" in request.sample_id or "length=3|" in request.sample_id
        return right(request) if is_seen else "Final answer: 99"

    task = lab.ones.parent
    asked = ("--lengths", "3,6,12", "--samples", "20")
    done = lab.bench_run("--model", lab.fake(sees), *asked, task=task)
    said = " ".join(done.out.split())
    assert "; the longest length seen under 2 conditions is" in said
    (folder,) = lab.out.rglob("lab/ones@*")
    out = " ".join(lab.bench("score", folder).out.split())
    assert "Tests show that it is longer than with the other condition (same rows)." in out
    done = lab.bench_run("--model", lab.fake(right), *asked, "--fresh", task=task)
    assert "the longest length" not in " ".join(done.out.split())
