"""Models of the laboratory, asked and probed through what exists for a folder of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from eyechart.providers.base import ModelSettings, Request, SetupError
from lab.tests.test_variants_model import VARIANTS, folder_of
from tests.conftest import Lab
from tests.plugged import plug, site
from tests.test_providers_hf import CLOSE, PROMPTS, Reference, asked, opened

__all__ = ["site"]

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours
SOME = [
    *("rope", "alibi", "randomised", "relu", "differential", "window", "adaptive", "dual_chunk"),
    *("learned", "relative", "randomised relative", "gate", "leaky_rerope"),
]
"""One variant of each way in which a pass differs."""


@pytest.fixture
def unknown() -> None:
    """Transformers does not know the architecture, as in a new process."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    CONFIG_MAPPING._extra_content.pop("eyechart_lab", None)


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("name", SOME)
def test_replies_in_a_batch_are_those_alone(name: str, tmp_path: Path) -> None:
    """Greedy, with their probabilities, longer than the training; and as the model gives them."""
    folder = folder_of(tmp_path, VARIANTS[name])
    requests = [Request(one, 12) for one in PROMPTS]
    batch = asked(opened(folder, logprobs=True), requests)
    alone = asked(opened(folder, logprobs=True), requests, at_once=False)
    reference = Reference(folder)
    for prompt, one, other in zip(PROMPTS, batch, alone, strict=True):
        assert one.text == other.text
        values = [value for _, value in one.logprobs or ()]
        assert values == pytest.approx([value for _, value in other.logprobs or ()], abs=CLOSE)
        if "randomised" not in name:  # a longer text has other positions
            assert values == pytest.approx(reference.greedy(prompt, 12)[1], abs=CLOSE)


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("name", SOME)
def test_probabilities_in_a_batch_are_those_alone(name: str, tmp_path: Path) -> None:
    """Of options of one and of several tokens."""
    folder = folder_of(tmp_path, VARIANTS[name])
    options = ("7", "12", "one two three", "0")
    requests = [Request(one, 1, options=options, opening="Final answer:") for one in PROMPTS]
    batch = asked(opened(folder), requests)
    alone = asked(opened(folder), requests, at_once=False)
    for one, other in zip(batch, alone, strict=True):
        assert one.options is not None
        assert other.options is not None
        values = [option.logprob for option in one.options]
        assert values == pytest.approx([option.logprob for option in other.options], abs=CLOSE)
        assert len(set(values)) == len(options)


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("name", SOME)
def test_bench_run_and_probe(name: str, tmp_path: Path, lab: Lab) -> None:
    """Both commands take the folder; every measure of attention is a number."""
    folder = folder_of(tmp_path / "model", VARIANTS[name])
    asked_of = ("--task", "counting/ones", "--model", f"hf/{folder}", "--lengths", "4,9")
    words = (*asked_of, "--samples", "2", "--out", lab.out)
    run = lab.bench("run", *words, "--keep-going", "--max-tokens", "4")
    assert run.code == 0, run.err
    probed = lab.bench("probe", *words)
    assert probed.code == 0, probed.err
    (table,) = lab.out.rglob("probe.csv")
    rows = pd.read_csv(table)
    attention = rows[rows["measure"] == "attention"]
    assert set(attention["quantity"]) >= {"entropy", "largest", "sinks_0.3"}
    assert attention["value"].notna().all()
    assert attention[attention["quantity"] == "largest"]["value"].between(0, 1.001).all()
    assert attention[attention["quantity"] == "entropy_share"]["value"].between(0, 1.001).all()


STRETCHED: dict[str, Any] = {
    "rope_scaling=yarn:4": {"yarn": 4},
    "rope_scaling=dynamic_ntk:3": {"dynamic_ntk": 3},
    "dual_chunk=16": "dual_chunk",
    "dual_chunk=16+rope_scaling=yarn:3": {"dual_chunk": 3},
    "rerope=7": {"rerope": 7},
    "leaky_rerope=7:3": {"leaky_rerope": {"window": 7, "slower": 3}},
}
"""Changes of a finished model -> how a variant is stretched that is to be the same."""


def test_interventions(tmp_path: Path) -> None:
    """Those of rotary positions take the trained length; what cannot be is one line."""
    import numpy as np

    from eyechart_lab.probe.changed import open_inside as open_changed
    from eyechart_lab.probe.hf.inside import open_inside

    ids = list(range(5, 45))
    plain = folder_of(tmp_path / "plain", VARIANTS["rope"])

    def logits(folder: Path, change: str = "") -> Any:
        name = f"{change}/hf/{folder}" if change else str(folder)
        opens = open_changed if change else open_inside
        return opens(ModelSettings(name, device="cpu")).forward(ids, last=40)

    for number, (change, stretch) in enumerate(STRETCHED.items()):
        stretched = logits(
            folder_of(tmp_path / f"{number}", VARIANTS["rope"] | {"stretch": stretch})
        )
        found = logits(plain, change)
        np.testing.assert_allclose(found, stretched, atol=1e-3 * np.ptp(found), err_msg=change)
        assert np.abs(logits(plain) - found).max() > 0.1
    relu = folder_of(tmp_path / "relu", VARIANTS["relu"])
    assert np.abs(logits(relu) - logits(relu, "window=6:2")).max() > 0.1
    said = "change a plain softmax, and the attention of this model uses none"
    with pytest.raises(SetupError, match=said):
        logits(relu, "softmax_one")
    recurrent = folder_of(tmp_path / "delta", VARIANTS["delta"])
    with pytest.raises(SetupError, match="window hides tokens from attention, and 'delta_rule'"):
        logits(recurrent, "window=6:2")
    with pytest.raises(SetupError, match="no plain rotary positions"):
        logits(tmp_path / "0", "rope_base=500")


@pytest.mark.usefixtures("unknown")
def test_a_variant_that_is_none_is_one_line(tmp_path: Path) -> None:
    """In the config.json of a folder."""
    folder = folder_of(tmp_path, VARIANTS["rope"])
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"softmax"', '"softmix"'))
    with pytest.raises(
        SetupError, match=r"cannot be loaded: variant\.attention: no 'softmix'; did"
    ):
        asked(opened(folder), [Request("1", 1)])


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("register = 3", "it should be a function that registers classes"),
        ("def register():\n    raise RuntimeError('no')", "calling it raised RuntimeError: no"),
    ],
)
def test_an_architecture_that_cannot_be_registered(
    code: str, problem: str, site: Path, tmp_path: Path
) -> None:
    """The package that adds it is named."""
    points = {"eyechart.architectures": {"own": "own_arch:register"}}
    plug(site, "own-arch", points, files={"own_arch.py": f"{code}\n"})
    folder = folder_of(tmp_path / "model", VARIANTS["rope"])
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"eyechart_lab"', '"own"'))
    with pytest.raises(SetupError, match=rf"own-arch 1\.0, .*: {problem}"):
        asked(opened(folder), [Request("1", 1)])
