"""The model of the laboratory: what it shares with Llama, and what it keeps from pass to pass."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from eyechart.harness.satellites.lab.model import LabForCausalLM, config_of  # noqa: E402
from eyechart.harness.satellites.lab.variant import Variant  # noqa: E402

pytestmark = pytest.mark.torch


def model_of(variant: Variant, seed: int = 0) -> LabForCausalLM:
    """A model with random weights, large enough that a wrong detail shows in the logits."""
    config = config_of(variant, vocabulary=60, trained_window=16, bos=1, eos=2, pad=2)
    torch.manual_seed(seed)
    model: LabForCausalLM = LabForCausalLM(config).eval()
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    return model


def test_rotary_positions_and_softmax_are_those_of_llama() -> None:
    """The same weights under the same names give the same logits."""
    model = model_of(Variant.model_validate({"positions": {"rope": {"base": 5000}}}))
    config = transformers.LlamaConfig(
        vocab_size=60,
        hidden_size=64,
        intermediate_size=model.config.intermediate_size,
        num_hidden_layers=2,
        num_attention_heads=4,
        tie_word_embeddings=True,
        rope_parameters={"rope_theta": 5000.0, "rope_type": "default"},
    )
    llama = transformers.LlamaForCausalLM(config).eval()
    llama.load_state_dict(model.state_dict())
    ids = torch.randint(0, 60, (3, 17))
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, llama(ids).logits, atol=1e-6)
