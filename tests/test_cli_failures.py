"""What the parser of options says, in our words."""

from __future__ import annotations

import pytest

from tests.conftest import Lab


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run --limit 10", "no such option: --limit; did you mean '--samples'?"),
        ("run --max-samples=10", "no such option: --max-samples; did you mean '--samples'?"),
        ("runs --limit 10", "no such option: --limit"),
        ("runs --jsn", "no such option: --jsn; did you mean '--json'?"),
        ("run --zzz", "no such option: --zzz"),
        ("report", "missing argument 'RUN…'; 'bench runs' lists the runs"),
        ("compare", "missing argument 'RUN…'; 'bench runs' lists the runs"),
        ("samples", "missing argument 'RUN'; 'bench runs' lists the runs"),
        ("import", "missing argument 'REPLIES…'"),
        ("nonsense", "no such command 'nonsense'"),
        ("run --samples", "option '--samples' requires an argument"),
        ("run a b", "got unexpected extra argument(s) (b)"),
    ],
)
def test_mistakes_are_one_line_in_lower_case(lab: Lab, command: str, said: str) -> None:
    """With what was probably meant, or what says more."""
    lab.monkeypatch.chdir(lab.folder)
    assert lab.bench(*command.split()).one_line(2) == f"bench: {said}"
