"""Hugging Face models behind the seam of a probe, against transformers' own passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from eyechart.providers.base import ModelSettings, PromptOverflowError, SetupError
from eyechart.providers.tiny.folder import SHIPPED
from eyechart.providers.tiny.runtime import TinyModel
from eyechart_lab.probe.intervention import read_intervention
from lab.tests.keeper import Keeper
from tests.conftest import Lab
from tests.hf_models import MODELS, SHAPE, edit, write

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours
IDS = [int(one) for one in np.random.default_rng(0).integers(5, 300, 40)]
WATCHED = [name for name in MODELS if name not in ("bloom", "mamba")]


def opened(folder: Path, **settings: Any) -> Any:
    from eyechart_lab.probe.hf.inside import open_inside

    return open_inside(ModelSettings(str(folder), device="cpu", **settings))


def changed(folder: Path, change: str) -> Any:
    from eyechart_lab.probe.changed import open_inside

    return open_inside(ModelSettings(f"{change}/hf/{folder}", device="cpu"))


def theirs(folder: Path, **options: Any) -> Any:
    """The model as transformers runs it by itself."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, **options).eval()


@pytest.mark.parametrize("name", WATCHED)
def test_equals_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Logits, streams, attention, head outputs and slopes, in blocks of few positions."""
    import torch

    monkeypatch.setattr("eyechart_lab.probe.hf.attention._BLOCK", 4 * 40 * 7)
    folder = write(tmp_path, name)
    inside, kept = opened(folder), Keeper()
    reference = theirs(folder, attn_implementation="eager")
    given = torch.tensor([IDS])
    with torch.no_grad():
        whole = reference(given, output_hidden_states=True, output_attentions=True, use_cache=False)
    logits = inside.forward(IDS, kept, last=40)
    np.testing.assert_allclose(logits, whole.logits[0].numpy(), atol=1e-4)
    assert np.ptp(logits) > 2
    for layer in range(3):
        stream = whole.hidden_states[layer][0].numpy()
        np.testing.assert_allclose(kept.streams[layer], stream, atol=1e-4)
        weights = np.concatenate(kept.weights[layer], axis=1)
        np.testing.assert_allclose(weights, whole.attentions[layer][0].numpy(), atol=1e-5)
        values = kept.keys[layer][2]
        values = np.repeat(values, 4 // values.shape[1], axis=1)
        mixed = np.einsum("hst,thd->shd", weights, values)
        np.testing.assert_allclose(kept.outputs[layer], mixed, atol=1e-4)
    np.testing.assert_allclose(kept.ended[0], whole.hidden_states[-1][0].numpy(), atol=1e-4)

    embedded = inside.embedded(IDS)
    np.testing.assert_allclose(inside.logits_of(embedded), logits[-1], atol=1e-4)
    rows = torch.from_numpy(embedded)[None].requires_grad_()
    weights = np.random.default_rng(1).normal(size=346).astype(np.float32)
    last = reference(inputs_embeds=rows, use_cache=False).logits[0, -1]
    (slopes,) = torch.autograd.grad((last * torch.from_numpy(weights)).sum(), rows)
    found = inside.gradients(IDS, weights)
    np.testing.assert_allclose(found, slopes[0].numpy(), atol=1e-3 * np.abs(found).max())


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_bfloat16(tmp_path: Path, name: str) -> None:
    """A pass in torch's own bfloat16."""
    import torch

    folder = write(tmp_path, name)
    inside = opened(folder)
    rounded = inside.forward(IDS, precision="bfloat16", last=40)
    exact = inside.forward(IDS, last=40)
    assert 0 < np.abs(rounded - exact).max() < 0.1 * np.ptp(exact)
    reference = theirs(folder, attn_implementation="eager", dtype=torch.bfloat16)
    with torch.no_grad():
        expected = reference(torch.tensor([IDS])).logits[0].float().numpy()
    np.testing.assert_allclose(rounded, expected, atol=0.02 * np.ptp(exact))
    kept = {name: one.dtype for name, one in inside._at("bfloat16").named_buffers()}
    assert kept == {name: one.dtype for name, one in reference.named_buffers()}


@pytest.mark.parametrize("layers", [2, 4])
def test_weights_that_are_not_of_the_config_are_refused(tmp_path: Path, layers: int) -> None:
    """Those that lack would be drawn at random by transformers, others left out."""
    folder = write(tmp_path, "llama")
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_hidden_layers": layers}))
    with pytest.raises(SetupError, match=r"its config\.json is not that of its weights") as caught:
        opened(folder)
    assert ("no weights for" in str(caught.value)) == (layers == 4)
    assert "model.layers." in str(caught.value)


@pytest.mark.parametrize("name", ["bloom", "mamba"])
def test_what_cannot_be_watched_is_named(tmp_path: Path, name: str) -> None:
    """The rest is measured: logits, slopes, the stream."""
    import torch

    folder = write(tmp_path, name)
    inside, kept = opened(folder), Keeper()
    assert "attention" in inside.anatomy.unavailable
    assert "cannot be watched" in inside.anatomy.missing[0]
    logits = inside.forward(IDS, kept, last=40)
    with torch.no_grad():
        expected = theirs(folder)(torch.tensor([IDS])).logits[0].numpy()
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-3)
    assert sorted(kept.streams) == [0, 1, 2, 3]
    assert not kept.weights
    assert np.isfinite(inside.gradients(IDS, np.ones(346, np.float32))).all()
    with pytest.raises(SetupError, match="cannot be changed"):
        changed(folder, "softmax_one")


def test_anatomies(tmp_path: Path) -> None:
    found = {}
    for name in ("mistral", "gptneox", "gpt2"):
        (tmp_path / name).mkdir()
        found[name] = opened(write(tmp_path / name, name)).anatomy
    mistral, neox, gpt2 = found.values()
    assert (mistral.key_heads, mistral.sliding_window, mistral.rotary_width) == (2, 16, 12)
    assert (neox.rotary_base, neox.rotary_width, neox.head_width) == (10_000, 6, 12)
    assert (gpt2.rotary_base, gpt2.layers, gpt2.window) == (None, 3, 256)


def test_the_embedded_model() -> None:
    """Through transformers, it computes what its replies are computed from."""
    from eyechart_lab.probe.hf.inside import open_tiny

    inside = open_tiny(ModelSettings("tiny", device="cpu"))
    prompt = "How many ones are in row ab?\nRow ab: 1,1,1"
    tokens = inside.tokens(prompt)
    shown = [prompt[slice(*span)] for span in tokens.spans if span is not None]
    assert "".join(shown) == prompt
    assert [tokens.spans[0], tokens.spans[-1]] == [None, None]
    said = inside.answer_ids(prompt, "Final answer: 17")
    assert said[:3] == inside.answer_ids(prompt, "Final answer:")
    expected = TinyModel.load(SHIPPED).logits(tokens.ids)
    found = inside.forward(tokens.ids, last=len(tokens.ids))
    np.testing.assert_allclose(found, expected, atol=1e-4 * float(np.ptp(expected)))
    with pytest.raises(PromptOverflowError, match="window 4096"):
        inside.tokens("1," * 2100)


@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_scalings_of_transformers(kind: str) -> None:
    """Frequencies and temperature as transformers computes them for a model with this scaling."""
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        **SHAPE,
        head_dim=64,
        rope_parameters={
            "rope_type": kind,
            "factor": 4.0,
            "rope_theta": 10_000.0,
            "original_max_position_embeddings": 256,
        },
    )
    frequencies, size = ROPE_INIT_FUNCTIONS[kind](config, "cpu")
    ours = read_intervention(f"rope_scaling={kind}:4")
    np.testing.assert_allclose(ours.frequencies(10_000, 64, 256), frequencies, rtol=1e-5)
    assert ours.rotary_size == pytest.approx(size)


def test_folders_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="there is no such folder"):
        opened(tmp_path / "nowhere")
    folder = write(tmp_path, "llama")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    mapped = config | {"auto_map": {"AutoModelForCausalLM": "code.Model"}}
    (folder / "config.json").write_text(json.dumps(mapped), encoding="utf-8")
    with pytest.raises(SetupError, match="trust_remote_code=True"):
        opened(folder)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(PromptOverflowError, match="window 256"):
        opened(folder).tokens("1," * 200)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(SetupError, match="is damaged") as caught:
        opened(folder)
    assert "\n" not in str(caught.value)
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(SetupError, match="no weights in safetensors"):
        opened(folder)


def test_bench_probe(lab: Lab, tmp_path: Path) -> None:
    """Every measure on a model without rotary positions, which is said; a folder for each model."""
    folder = write(tmp_path, "gpt2")
    done = lab.bench(
        *("probe", "--model", f"hf/{folder}", "--task", "counting/ones", "--out", lab.out),
        *("--axis", "separator=none", "--lengths", "5,30", "--samples", "1", "--measure", "all"),
    )
    assert done.code == 0, done.err
    assert "rotary is left out: the model has no rotary positions" in done.err
    (path,) = lab.out.rglob("probe.csv")
    table = pd.read_csv(path)
    assert {"collapse", "squashing", "attention", "residual", "maps"} < set(table["measure"])
    assert "rotary" not in set(table["measure"])
    assert path.is_relative_to(lab.out / "probes" / "hf" / folder.name)


def test_no_code_of_a_folder_is_executed(tmp_path: Path) -> None:
    """Neither that of a model nor of a tokenizer; pickled weights beside others are not read."""
    folder = write(tmp_path, "llama")
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Code: pass\n")
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04c__main__\nmissing\n.")
    assert opened(folder).anatomy.layers == 3
    mapped = {"auto_map": {"AutoTokenizer": ["code.Code", "code.Code"]}, "tokenizer_class": "Code"}
    edit(folder / "tokenizer_config.json", **mapped)
    with pytest.raises(SetupError, match=r"auto_map in tokenizer_config\.json"):
        opened(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_hidden_layers": 10**9}, "has 1000000000 as num_hidden_layers, and the weights are"),
        ({"num_hidden_layers": 0}, "has 0 as num_hidden_layers"),
        ({"hidden_size": 48 * 10**8}, "has weights of another shape for"),
        ({"num_attention_heads": "x"}, "cannot be loaded"),
    ],
)
def test_configs_of_other_weights_are_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], changes: dict[str, Any], said: str
) -> None:
    """Before any memory is taken, and without transformers' own report."""
    folder = write(tmp_path, "llama")
    edit(folder / "config.json", **changes)
    capfd.readouterr()
    with pytest.raises(SetupError, match=said):
        opened(folder)
    assert capfd.readouterr() == ("", "")


def test_weights_that_cannot_be_computed_with(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = write(tmp_path, "llama")
    path = folder / "model.safetensors"
    tensors = load_file(path)
    norm = tensors["model.norm.weight"]
    save_file(tensors | {"model.norm.weight": norm.view("<i4")}, path, {"format": "pt"})
    with pytest.raises(SetupError, match=r"model\.norm\.weight as I32"):
        opened(folder)
    save_file(tensors | {"model.norm.weight": norm * np.nan}, path, {"format": "pt"})
    with pytest.raises(SetupError, match=r"not finite in model\.norm\.weight"):
        opened(folder)


def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path) -> None:
    import os

    folder = write(tmp_path, "llama")
    (folder / "generation_config.json").unlink()
    os.mkfifo(folder / "generation_config.json")
    with pytest.raises(SetupError, match=r"generation_config\.json' is no file"):
        opened(folder)
