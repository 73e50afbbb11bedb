"""Logs of Inspect as recorded replies; skipped where inspect_ai is missing."""

from __future__ import annotations

import pytest

pytest.importorskip("inspect_ai", reason="no inspect_ai: pip install -e '.[inspect]'")

from inspect_ai._util.error import EvalError
from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage

from tests.conftest import Lab, records
from tests.test_recorded import outcomes, take, words

pytestmark = pytest.mark.inspect


def sample(number: int, reply: str | None, epoch: int = 1) -> EvalSample:
    """A sample of a log, with an error where there is no reply."""
    output = ModelOutput(model="mockllm/model")
    if reply is not None:
        output = ModelOutput.from_content("mockllm/model", reply, stop_reason="stop")
        output.usage = ModelUsage(input_tokens=9, output_tokens=3)
    failed = EvalError(message="no reply today", traceback="", traceback_ansi="")
    return EvalSample(
        id=number,
        epoch=epoch,
        input=[ChatMessageUser(content="any")],
        target=["3", "4", "3", "5"][number],
        output=output,
        error=None if reply is not None else failed,
    )


@pytest.mark.parametrize("ids", [None, [0, 1, 2, 3]])
def test_a_log(lab: Lab, ids: list[int | str] | None) -> None:
    """Each sample is found by its id; usage and errors are kept, and epochs are draws."""
    spec = EvalSpec(
        created="2026-04-01T00:00:00+00:00",
        task="words",
        dataset=EvalDataset(sample_ids=ids),
        model="mockllm/model",
        config=EvalConfig(epochs=2),
    )
    samples = [sample(0, "3"), sample(1, "9"), sample(2, None), sample(3, "5"), sample(3, "5", 2)]
    log = lab.folder / "log.eval"
    write_eval_log(EvalLog(eval=spec, samples=samples, status="success"), str(log))
    done = take(lab, log, words(lab), "--axis", "hint=yes")
    assert done.code == 1
    assert outcomes(lab) == {"correct": 3, "incorrect": 1, "error": 1}
    assert "each asked 1 to 2 times" in done.out
    first = records(lab.the_run())[0]
    facts = ("model", "finish_reason", "prompt_tokens", "output_tokens")
    assert tuple(first[name] for name in facts) == ("mockllm/model", "stop", 9, 3)
