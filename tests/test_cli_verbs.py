"""What verbs share: which files their outputs may replace."""

from __future__ import annotations

import pytest

from tests.conftest import Lab
from tests.test_analysis_family import right_to, run


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (("report", "RUN"), "out.html"),
        (("leaderboard", "RUN"), "out.html"),
        (("compare", "RUN", "RUN2"), "out.csv"),
        (("figure", "accuracy", "RUN"), "out.svg"),
        (("export", "batch", "--task", "counting/words", "--model", "gpt-4o"), "out.jsonl"),
    ],
)
def test_an_output_replaces_its_own_kind_alone(lab: Lab, verb: tuple[str, ...], name: str) -> None:
    """A file of somebody else stays, such as a baseline or a page; its own is made anew."""
    runs = {"RUN2" if seen == 4 else "RUN": run(lab, f"m{seen}", right_to(seen)) for seen in (4, 8)}
    out = lab.folder / name
    given = [runs[word].folder if word in runs else word for word in verb]
    target = out.with_suffix(".csv") if verb[0] == "leaderboard" else out
    command = (*given, "-o", target, *(("--out", lab.out) if verb[0] == "export" else ()))
    out.write_text('{"mine": 1}\n')
    done = lab.bench(*command)
    assert (done.code, "would be lost" in done.err, done.err.count("\n")) == (2, True, 1), done.err
    assert out.read_text() == '{"mine": 1}\n'
    out.write_text("")
    for _ in range(2):
        assert lab.bench(*command).code == 0
    assert len(out.read_bytes()) > 100
