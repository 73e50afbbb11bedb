"""Ways to find out: `-h`, `bench help`, examples, what a shell completes, and guesses."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command

from eyechart.harness.cli.app import app
from tests.docs.scratch import parse
from tests.test_imports import HEAVY

if TYPE_CHECKING:
    from tests.conftest import Lab

ROOT = Path(__file__).parents[1]


def verbs(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every verb, with its command."""
    command = command or get_command(app)
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from verbs(command.get_command(None, name), (*path, name))


VERBS = dict(verbs())


def test_all_verbs_are_looked_at() -> None:
    """Also those of groups."""
    assert {(), ("run",), ("help",), ("tasks", "check"), ("export", "batch")} <= set(VERBS)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_comes_in_three_ways(lab: Lab, verb: tuple[str, ...]) -> None:
    """`-h`, `--help` and `bench help`, all the same."""
    long = lab.bench(*verb, "--help")
    assert (long.code, long.err) == (0, "")
    assert "-h, --help" in long.out
    assert not re.search(r"\w\.\.\.$", long.out, re.MULTILINE), "a line of a verb is cut off"
    assert lab.bench(*verb, "-h") == long
    assert lab.bench("help", *verb) == long


def test_what_is_used_most_stands_first(lab: Lab) -> None:
    """Ten of the options of a run, of which there are not too many."""
    said = lab.bench("run", "--help").out.split("\n\n")
    (first,) = (part for part in said if part.startswith("Most used:"))
    names = ("task", "model", "lengths", "samples", "axis", "adaptive", "base-url", "budget")
    given = [line.split("--")[1].split()[0] for line in first.splitlines() if "--" in line[:10]]
    assert sorted(given) == sorted([*names, "out", "dry-run"])
    options = [one for one in VERBS["run",].params if one.param_type_name == "option"]
    hidden = [one.name for one in options if one.hidden]
    assert hidden == ["threshold", "near"]
    assert len(options) - len(hidden) <= 38
    assert "--near" not in "".join(said)
    assert said.index(first) < min(said.index(part) for part in said if part.startswith("What is"))


def test_the_exit_codes_of_verdicts_are_a_table(lab: Lab) -> None:
    """Of both verbs that have `--fail-if`, and of no other one."""
    table = (
        "Exit codes of --fail-if, each with its verdicts:\n"
        "  worse           3 worse; 4 incomplete, not comparable\n"
        "  undecided       3 worse; 4 undecided, incomplete, not comparable\n"
        "  different       3 worse, better; 4 incomplete, not comparable\n"
        "  not-equivalent  3 worse, better; 4 undecided, incomplete, not comparable\n"
    )
    have = [verb for verb in VERBS if "Exit codes of --fail-if" in lab.bench(*verb, "--help").out]
    assert have == [("compare",), ("gate",)]
    assert all(table in lab.bench(*verb, "--help").out for verb in have)


def test_help_of_no_verb(lab: Lab) -> None:
    """The nearest one is named, else all."""
    lab.bench("help", "scoer").one_line(2, "'scoer'", "did you mean 'score'?")
    lab.bench("help", "tasks", "chekc").one_line(2, "'chekc'", "did you mean 'check'?")
    lab.bench("help", "zzz").one_line(2, "'zzz'", "known: run, samples")
    lab.bench("help", "run", "zzz").one_line(2, "'zzz'", "known: none")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scoer"], ["'scoer'", "'score'"]),
        (["tasks", "chekc"], ["'chekc'", "'check'"]),
        (["run", "--sampels", "3"], ["--sampels", "did you mean '--samples'"]),
        (["run", "--bugdet", "3"], ["--bugdet", "did you mean '--budget'"]),
    ],
    ids=str,
)
def test_a_misspelt_word_is_guessed(lab: Lab, arguments: list[str], words: list[str]) -> None:
    """Verbs and options."""
    lab.bench(*arguments).one_line(2, *words)


def examples(command: Any) -> list[str]:
    """The examples at the end of a verb's help."""
    return [line.strip() for line in (command.epilog or "").split("\n")[2:]]


def test_every_verb_that_does_something_has_examples() -> None:
    """Groups have verbs instead; each example is a command that parses."""
    for verb, command in VERBS.items():
        assert bool(examples(command)) != hasattr(command, "commands"), verb
        for line in examples(command):
            parse(line)


@pytest.mark.parametrize(
    "verb",
    [verb for verb, command in VERBS.items() if "results/runs" in (command.epilog or "")],
    ids=" ".join,
)
def test_folders_in_examples_are_there(lab: Lab, verb: tuple[str, ...]) -> None:
    """After the example's own first command."""
    lab.monkeypatch.chdir(lab.folder)
    for line in examples(VERBS[verb]):
        if line.startswith("bench run "):
            ran = lab.bench(*line.split()[1:], "--lengths", "5", "--samples", "2", "--exact")
            assert ran.code == 0, ran
        for folder in (word for word in shlex.split(line) if word.startswith("results/runs/")):
            assert list(Path().glob(folder)), line
            assert all((run / "manifest.json").exists() for run in Path().glob(folder)), line


COMPLETES = f"""\
import os, sys
from eyechart.harness.cli import main

asked, sys.argv[:] = sys.argv[1:], ["bench"]
for words in asked:
    os.environ |= {{"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}}
    try:
        main()
    except SystemExit:
        print("end of", words)
assert not set({HEAVY!r}) & set(sys.modules)
"""


def completed(folder: Path, *words: str) -> list[list[str]]:
    """What bash is told about the last word of each; fails where a heavy module is loaded."""
    done = subprocess.run(
        [sys.executable, "-c", COMPLETES, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "_BENCH_COMPLETE": "complete_bash"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    found, said = [], done.stdout
    for one in words:
        before, _, said = said.partition(f"end of {one}\n")
        found.append(before.split())
    return found


def test_a_shell_completes_names(lab: Lab) -> None:
    """Of verbs, tasks, task files and models, also within a list; without what is slow."""
    wanted = {
        "bench sc": {"score"},
        "bench run --task counting/o": {"counting/ones"},
        "bench run -t copying,counting/o": {"copying,counting/ones"},
        "bench run -t lab/o": {"lab/ones.yaml"},
        "bench tasks show count": {"counting", "counting/ones", "counting/sum"},
        "bench run --model orac": {"oracle:50"},
        "bench run -m gpt-4o-m": {"gpt-4o-mini"},
        "bench run -m tiny,anthropic/claude-o": {"tiny,anthropic/claude-opus-4-1"},
        "bench run --api ch": {"chat"},
    }
    for words, found in zip(wanted, completed(lab.folder, *wanted), strict=True):
        assert wanted[words] <= set(found), words
        assert all(word.startswith(words.rsplit(" ", maxsplit=1)[-1]) for word in found), words


def test_a_shell_completes_folders_of_runs(lab: Lab) -> None:
    """Those under `--out`, or under `results`."""
    lab.bench_ask("--model", "oracle:5", task=lab.plain)
    run = lab.the_run().relative_to(lab.folder)
    assert completed(lab.folder, "bench score results/ru") == [[str(run)]]
    elsewhere = lab.folder / "elsewhere"
    elsewhere.mkdir()
    asked = ("bench score ", f"bench leaderboard --out {lab.out} ")
    assert completed(elsewhere, *asked) == [[], [str(lab.the_run())]]


def test_a_broken_file_of_models_completes_nothing(lab: Lab) -> None:
    """And prints nothing."""
    (lab.folder / "models.yaml").write_text("[")
    lab.monkeypatch.setenv("EYECHART_MODELS", str(lab.folder / "models.yaml"))
    assert completed(lab.folder, "bench run -m ti") == [[]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_switched_on(shell: str) -> None:
    """`--show-completion` prints the script that `--install-completion` writes."""
    code = "import sys; sys.argv[0] = 'bench'; from eyechart.harness.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--show-completion", shell],
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"_BENCH_COMPLETE=complete_{shell}" in done.stdout
    assert done.stderr == ""
