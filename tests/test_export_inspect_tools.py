"""A tool in Inspect, as `docs/harnesses.md` has it; skipped where inspect_ai is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Lab, records
from tests.docs.chapters import ROOT, read_blocks

pytest.importorskip("inspect_ai", reason="no inspect_ai: pip install -e '.[inspect]'")

pytestmark = pytest.mark.inspect

EVALUATE = """\
import inspect_ai
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from with_python import with_python


def reply(messages, tools, choice, config):
    said = messages[-1].text.strip()
    if tools and messages[-1].role == "user":
        row = said.splitlines()[-1].partition(": ")[2]
        code = {"code": f"print({row!r}.count('1'))"}
        output = ModelOutput.for_tool_call("mockllm/model", "python", code)
    else:
        answer = said if tools else "0"
        output = ModelOutput.from_content("mockllm/model", f"Final answer: {answer}")
    output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
    return output


for name, how in {"without": {}, "with": {"solver": with_python(), "sandbox": "local"}}.items():
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    inspect_ai.eval(
        "eyechart/counting/ones", model=model, display="none", log_dir=name, log_format="eval",
        task_args={"lengths": [5, 300], "exact": True, "samples": 12, "separator": "none"}, **how,
    )
"""
"""A script that asks a model twice: without its tool it counts wrong, with the tool right."""


def test_a_model_is_compared_with_itself_with_a_tool(lab: Lab) -> None:
    """On the same rows; its calls run where the sandbox says."""
    blocks = read_blocks((ROOT / "docs" / "harnesses.md").read_text(encoding="utf-8"))
    (solver,) = (one.text for one in blocks if one.argument("file") == "with_python.py")
    (lab.folder / "with_python.py").write_text(solver)
    done = subprocess.run(
        [sys.executable, "-c", EVALUATE],
        cwd=lab.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for model, name in (("m", "without"), ("m@python", "with")):
        (log,) = (lab.folder / name).glob("*.eval")
        given = ("--task", "counting/ones", "--model", model, "--out", lab.out)
        assert lab.bench("import", log, *given).code == 0
    first, second = (folder_of(lab.out, model) for model in ("m", "m@python"))
    assert {one["reply"] for one in records(first)} == {"Final answer: 0"}
    assert all(one["reply"] == f"Final answer: {one['target']}" for one in records(second))
    assert [one["id"] for one in records(first)] == [one["id"] for one in records(second)]
    compared = lab.bench("compare", first, second)
    assert "m@python counts exactly further than m" in compared.out.replace("\n", " "), compared


def folder_of(out: Path, model: str) -> Path:
    """The only run of a model."""
    (folder,) = (out / "runs" / model / "counting").iterdir()
    return folder
