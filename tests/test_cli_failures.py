"""What the parser of options says, in our words."""

from __future__ import annotations

import pytest

from eyechart.harness.face import panels
from eyechart.harness.settings.figure import KINDS
from tests.conftest import Lab

KEY = (
    "a key goes into a variable of the environment, such as OPENAI_API_KEY: 'bench models' names "
    "that of each provider"
)
CONTENT = "the form of a file is known by its content: name files alone"
LISTED = "'bench runs' lists the runs"
ORDER = "the baseline comes first: bench gate BASELINE RUN…"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run --limit 10", "no such option: --limit; did you mean '--samples'?"),
        ("run --max-samples=10", "no such option: --max-samples; did you mean '--samples'?"),
        ("runs --limit 10", "no such option: --limit"),
        ("runs --jsn", "no such option: --jsn; did you mean '--json'?"),
        ("run --zzz", "no such option: --zzz"),
        ("run -n 5", "no such option: -n; did you mean '--samples'?"),
        ("run -o out", "no such option: -o; did you mean '--out'?"),
        ("run --output-path=out", "no such option: --output-path; did you mean '--out'?"),
        (
            "run --openai-api-key sk-abc --task x",
            f"no such option: --openai-api-key; {KEY}",
        ),
        (
            "figure results/runs/tiny",
            f"missing argument 'RUN…'; write bench figure {'|'.join(KINDS)} RUN…; {LISTED}",
        ),
        ("figure x/y x/z", f"no figure 'x/y'; known: {', '.join(KINDS)}"),
        (
            "import lm-eval samples.jsonl",
            f"no file 'lm-eval'; {CONTENT}",
        ),
        (
            "import lm-eval samples.jsonl --task counting/ones --model m",
            f"no file 'lm-eval'; {CONTENT}",
        ),
        ("gate . base.json", f". is a folder and no baseline; {ORDER}"),
        (
            "gate . --save base.json",
            f". is a folder and no baseline; {ORDER.replace('gate', 'gate --save')}",
        ),
        ("import a.jsonl b.jsonl", "no file 'a.jsonl'"),
        ("report", "missing argument 'RUN…'; 'bench runs' lists the runs"),
        ("compare", "missing argument 'RUN…'; 'bench runs' lists the runs"),
        ("samples", "missing argument 'RUN'; 'bench runs' lists the runs"),
        ("import", "missing argument 'REPLIES…'"),
        ("nonsense", "no such command 'nonsense'; 'bench --help' lists them"),
        (
            "tasks list",
            "no such command 'list'; 'bench tasks' or 'bench tasks --help' says what there is",
        ),
        ("run --samples", "option '--samples' requires an argument"),
        ("run a b", "got unexpected extra argument(s) (b)"),
    ],
)
def test_mistakes_are_one_line_in_lower_case(lab: Lab, command: str, said: str) -> None:
    """With what was probably meant, or what says more."""
    lab.monkeypatch.setattr(panels, "panel_sources", lambda _warn: [])  # none adds a figure
    lab.monkeypatch.chdir(lab.folder)
    assert lab.bench(*command.split()).one_line(2) == f"bench: {said}"
