"""The model of the laboratory: what it shares with Llama, and what it keeps from pass to pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eyechart_lab.variants.variant import Variant

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours
TRAINED = 16
VARIANTS: dict[str, dict[str, Any]] = {
    "rope": {"positions": {"rope": {"base": 5000}}},
    "none": {"positions": "none"},
    "sinusoidal": {"positions": "sinusoidal"},
    "p_rope": {"positions": {"p_rope": 0.5}},
    "alibi": {"positions": "alibi", "heads": 8, "width": 64},
    "alibi of 6": {"positions": "alibi", "heads": 6, "width": 48},
    "kerple log": {"positions": {"kerple": "log"}},
    "kerple power": {"positions": {"kerple": "power"}},
    "sandwich": {"positions": {"sandwich": {"dimension": 32}}},
    "learned": {"positions": {"learned": {"of": 64}}},
    "learned with padding": {"positions": {"learned": {"of": 64, "random_padding": True}}},
    "scalar": {"positions": {"scalar": 20}},
    "t5": {"positions": {"t5": {"buckets": 8, "longest": 20}}},
    "relative": {"positions": "relative"},
    "relative in a window": {"positions": "relative", "attention": {"window": 9, "sinks": 3}},
    "randomised": {"positions": {"randomised": {"of": 300}}},
    "randomised drawn": {"positions": {"randomised": {"of": 300, "asked": "drawn"}}},
    "randomised learned": {"positions": {"randomised": {"of": 300, "encoding": "learned"}}},
    "randomised rope": {"positions": {"randomised": {"of": 300, "encoding": "rope"}}},
    "randomised alibi": {"positions": {"randomised": {"of": 300, "encoding": "alibi"}}},
    "randomised relative": {
        "positions": {"randomised": {"of": 300, "encoding": "relative", "asked": "drawn"}}
    },
    "off_by_one": {"attention": "off_by_one"},
    "relu": {"attention": "relu"},
    "relu by length": {"attention": {"relu": {"by": "length", "gamma": 3}}},
    "relu with alibi": {"attention": "relu", "positions": "alibi"},
    "differential": {"attention": "differential"},
    "differential with kerple": {"attention": "differential", "positions": {"kerple": "log"}},
    "delta": {"attention": "delta_rule", "positions": "none"},
    "delta with positions": {"attention": "delta_rule", "positions": "sinusoidal"},
    "strided": {"attention": {"strided": 4}},
    "gate": {"gate": "sigmoid"},
    "gate of heads": {"gate": {"sigmoid": "heads"}, "attention": "differential"},
    "window": {"attention": {"window": 9, "sinks": 3}},
    "window with alibi": {"attention": {"window": 9, "sinks": 3}, "positions": "alibi"},
    "window without sinks": {"attention": {"window": 9, "sinks": 0}, "positions": "none"},
    "log_n": {"temperature": "log_n"},
    "log_n off_by_one": {"temperature": "log_n", "attention": "off_by_one"},
    "adaptive": {"temperature": "adaptive"},
    "adaptive in a window": {"temperature": "adaptive", "attention": {"window": 9, "sinks": 3}},
    "linear": {"stretch": {"linear": 2}},
    "ntk": {"stretch": {"ntk": 2}},
    "yarn": {"stretch": {"yarn": 4}},
    "dual_chunk": {"stretch": "dual_chunk"},
    "dual_chunk with yarn": {"stretch": {"dual_chunk": 3}},
    "rerope": {"stretch": {"rerope": 7}},
    "leaky_rerope": {"stretch": {"leaky_rerope": {"window": 7, "slower": 3}}},
    "dual_chunk differential": {"stretch": "dual_chunk", "attention": "differential"},
    "one layer": {"layers": 1, "inner": 32},
}


def model_of(given: dict[str, Any], trained: int = TRAINED) -> Any:
    """A model with random weights, large enough that a wrong detail shows in the logits."""
    import torch

    from eyechart_lab.variants.config import config_of
    from eyechart_lab.variants.model import LabForCausalLM

    variant = Variant.model_validate(given)
    config = config_of(variant, vocabulary=60, trained_window=trained)
    torch.manual_seed(0)
    model = LabForCausalLM(config).eval()
    for name, weights in model.named_parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.3)
        elif "norm" in name:
            torch.nn.init.uniform_(weights, 0.5, 1.5)
    return model


def ids_of(rows: int, tokens: int) -> Any:
    import torch

    return torch.randint(3, 60, (rows, tokens), generator=torch.Generator().manual_seed(1))


def test_rotary_positions_and_softmax_are_those_of_llama() -> None:
    """The same weights under the same names give the same logits."""
    import torch
    import transformers

    model = model_of(VARIANTS["rope"])
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
    with torch.no_grad():
        found, expected = (one(ids_of(3, 17)).logits for one in (model, llama))
    assert torch.allclose(found, expected, atol=1e-5)
    assert expected.std() > 1


def as_asked(prompt: int) -> dict[str, Any]:
    """What gives a whole pass the randomised positions of a reply to a prompt."""
    import torch

    return {"prompt_tokens": torch.tensor([prompt])}


@pytest.mark.parametrize("name", VARIANTS)
def test_kept_keys_and_values_give_what_a_whole_pass_gives(name: str) -> None:
    """Beyond the trained length, token by token and several at once."""
    import torch

    model, ids = model_of(VARIANTS[name]), ids_of(2, 41)
    with torch.no_grad():
        whole = model(ids, use_cache=False, **as_asked(20)).logits
        past, found = None, []
        for start, end in ((0, 20), (20, 21), (21, 22), (22, 30), (30, 41)):
            output = model(ids[:, start:end], past_key_values=past, use_cache=True)
            past = output.past_key_values
            found.append(output.logits)
    assert torch.allclose(torch.cat(found, dim=1), whole, atol=1e-3 * float(whole.std()))
    assert whole.std() > 0.1


@pytest.mark.parametrize("name", VARIANTS)
def test_a_row_in_a_batch_is_as_alone(name: str) -> None:
    """Padded on the left, as the provider asks, with places given or from the mask; and padded
    behind a row's last token, as it scores. Then rows are left out, and one is doubled.
    """
    import torch

    model = model_of(VARIANTS[name])
    rows = [ids_of(1, 33)[0], ids_of(2, 26)[1], ids_of(3, 12)[2]]
    tails = [ids_of(1, 3)[0], ids_of(2, 5)[1], ids_of(4, 5)[3]]
    ids, mask = (torch.zeros((3, 33), dtype=torch.long) for _ in range(2))
    more, also = (torch.zeros((3, 5), dtype=torch.long) for _ in range(2))
    for place, (row, tail) in enumerate(zip(rows, tails, strict=True)):
        ids[place, 33 - len(row) :], mask[place, 33 - len(row) :] = row, 1
        more[place, : len(tail)], also[place, : len(tail)] = tail, 1
    order = torch.tensor([2, 0, 1, 1])
    with torch.no_grad():
        first = model(ids, attention_mask=mask, use_cache=True)
        places = (mask.cumsum(dim=1) - 1).clamp(min=0)
        again = model(ids, attention_mask=mask, position_ids=places).logits
        first.past_key_values.reorder_cache(order)
        whole_mask = torch.cat([mask, also], dim=1)[order]
        second = model(
            more[order], attention_mask=whole_mask, past_key_values=first.past_key_values
        ).logits
    assert torch.equal(again, first.logits)
    for place, row in enumerate(rows):
        tail = tails[place]
        with torch.no_grad():
            alone = model(row[None], use_cache=False).logits[0]
            longer = model(
                torch.cat([row, tail])[None], use_cache=False, **as_asked(len(row))
            ).logits[0]
        bound = 1e-3 * float(alone.std())
        assert torch.allclose(first.logits[place, 33 - len(row) :], alone, atol=bound)
        for copy in (order == place).nonzero()[:, 0]:
            assert torch.allclose(second[copy, : len(tail)], longer[len(row) :], atol=bound)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_folder_gives_the_same_model(name: str, tmp_path: Path) -> None:
    """All that is learned is in the weights, and all else in config.json."""
    import torch
    import transformers

    from eyechart_lab.variants.model import register

    register()
    model, ids = model_of(VARIANTS[name]), ids_of(1, 40)
    model.save_pretrained(tmp_path)
    read, found = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(found.values())
    with torch.no_grad():
        assert torch.equal(read.eval()(ids).logits, model(ids).logits)
    assert read.config.read == Variant.model_validate(VARIANTS[name])


@pytest.mark.parametrize("name", VARIANTS)
def test_attentions_are_what_is_computed(name: str) -> None:
    """Weights are of earlier tokens only; and to ask for them changes no logit."""
    import torch

    model, ids = model_of(VARIANTS[name]), ids_of(2, 30)
    with torch.no_grad():
        plain = model(ids).logits
        shown = model(ids, output_attentions=True, output_hidden_states=True)
    assert torch.allclose(shown.logits, plain, atol=1e-3 * float(plain.std()))
    assert len(shown.attentions) == model.config.num_hidden_layers
    assert len(shown.hidden_states) == model.config.num_hidden_layers + 1
    for weights in shown.attentions:
        assert weights.shape == (2, model.config.num_attention_heads, 30, 30)
        assert not weights.triu(1).any()


@pytest.mark.parametrize("name", VARIANTS)
def test_every_parameter_is_learned(name: str) -> None:
    """Each gets a derivative from the loss."""
    model = model_of(VARIANTS[name]).train()
    ids = ids_of(3, 24)
    model(ids, labels=ids).loss.backward()
    without = [
        key for key, one in model.named_parameters() if one.grad is None or not one.grad.any()
    ]
    assert without == []


# asked and probed through what exists


def folder_of(path: Path, given: dict[str, Any]) -> Path:
    """A folder of a trained model, with the tokenizer of the embedded one."""
    from eyechart.providers.tiny.folder import SHIPPED
    from eyechart_lab.variants.config import config_of
    from eyechart_lab.variants.model import LabForCausalLM

    config = config_of(Variant.model_validate(given), vocabulary=346, trained_window=16)
    import torch

    torch.manual_seed(0)
    model = LabForCausalLM(config)
    for weights in model.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.3)
    model.save_pretrained(path)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (path / file).write_bytes((SHIPPED / file).read_bytes())
    return path


@pytest.mark.parametrize("name", VARIANTS)
def test_a_probe_sees_what_the_model_computes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits, streams, weights and what heads give, in blocks of few positions."""
    import numpy as np
    import torch
    import transformers

    from eyechart.providers.base import ModelSettings
    from eyechart_lab.probe.hf.inside import open_inside
    from eyechart_lab.probe.inside import PromptCache
    from lab.tests.keeper import Keeper

    monkeypatch.setattr("eyechart_lab.probe.hf.attention._BLOCK", 4 * 40 * 7)
    folder = folder_of(tmp_path, VARIANTS[name])
    inside, kept = open_inside(ModelSettings(str(folder), device="cpu")), Keeper()
    assert inside.anatomy.missing == ()
    ids = [int(one) for one in ids_of(1, 40)[0]]
    logits = inside.forward(ids, kept, last=40)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        whole = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    bound = 1e-3 * float(np.ptp(logits))
    np.testing.assert_allclose(logits, whole.logits[0].numpy(), atol=bound)
    for layer, raw in enumerate(whole.attentions):
        weights = np.concatenate(kept.weights[layer], axis=1)
        shown = raw[0].abs() / raw[0].abs().sum(dim=-1, keepdim=True).clamp(min=1e-12)
        are_shares = model.model.layers[layer].self_attn.weigher.are_shares
        np.testing.assert_allclose(weights, raw[0] if are_shares else shown, atol=1e-3)
        assert weights.sum(axis=-1).max() < 1.001
        mixed = np.einsum("hst,thd->shd", raw[0].numpy(), kept.keys[layer][2])
        np.testing.assert_allclose(kept.outputs[layer], mixed, atol=1e-3 * np.ptp(mixed))
        stream = whole.hidden_states[layer][0].numpy()
        np.testing.assert_allclose(kept.streams[layer], stream, atol=1e-3 * np.ptp(stream))
    final = whole.hidden_states[-1][0].numpy()
    np.testing.assert_allclose(kept.ended[0], final, atol=1e-3 * np.ptp(final))
    if inside.anatomy.shares:
        trunk = PromptCache()
        inside.forward(ids[:30], trunk=trunk)
        near = inside.forward(ids, trunk=trunk, last=5)
        np.testing.assert_allclose(near, logits[-5:], atol=bound)
    assert inside.anatomy.shares == ("randomised" not in name)
    slopes = inside.gradients(ids, np.ones(346, np.float32))
    assert np.isfinite(slopes).all()
    assert slopes.any()
