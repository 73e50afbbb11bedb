"""What the end of a command that made several runs shows."""

from __future__ import annotations

from tests.conftest import Lab

ASKED = ("--lengths", "5,20", "--samples", "3")


def table_of(out: str) -> list[list[str]]:
    """The cells of the last table."""
    rows = [line for line in out.rpartition("with 95 % intervals")[2].splitlines() if "|" in line]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_several_runs_end_in_one_table(lab: Lab) -> None:
    """A row for each, under the default condition; what follows is the next command."""
    models = ("--model", "oracle:10,oracle:30")
    done = lab.bench_run("--task", "counting/ones,counting/sum", *models, *ASKED)
    head, *rows = table_of(done.out)
    assert head == ["task", "model", "condition", "right to (85 %)"]
    assert [row[:3] for row in rows] == [
        ["counting/ones", "oracle/10", "separator=none"],
        ["counting/sum", "oracle/10", "-"],
        ["counting/ones", "oracle/30", "separator=none"],
        ["counting/sum", "oracle/30", "-"],
    ]
    for task, model, _, seen in rows:
        (folder,) = (lab.out / "runs" / model).glob(f"{task}*")
        shown = lab.bench("score", folder).out
        assert seen.split(" (")[0] in shown
    assert done.out.rstrip().splitlines()[-1].startswith("next: ")


def test_one_run_has_no_such_table(lab: Lab) -> None:
    """Its own table is the last."""
    done = lab.bench_run("--task", "counting/sum", "--model", "oracle:10", *ASKED)
    assert "with 95 % interval" not in done.out


def test_what_limits_a_length_is_said_there(lab: Lab) -> None:
    """A length that is no property of the model is marked."""
    replies = lab.folder / "replies.txt"
    replies.write_text("Let me think about it.\n")
    lab.monkeypatch.setenv("COLUMNS", "240")  # for the name of the file
    models = ("--model", f"oracle:10,scripted/{replies}")
    done = lab.bench_run("--task", "counting/sum", *models, *ASKED, "--keep-going")
    oracle, unreadable = (row[-1] for row in table_of(done.out)[1:])
    assert "limited" not in oracle
    assert unreadable == "not known†"
    assert f"† scripted/{replies}, counting/sum: limited by form" in done.out
