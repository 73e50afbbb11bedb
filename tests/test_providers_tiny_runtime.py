"""The embedded model's arithmetic, on small models with random weights."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from eyechart.providers.base import SetupError
from eyechart.providers.in_process.halving import StoppedError
from eyechart.providers.tiny import runtime
from eyechart.providers.tiny.runtime import GeneratedReply, TinyModel
from tests.small_models import BASE, write_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Writer: TypeAlias = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes a model folder."""
    return partial(write_model, tmp_path)


def random_prompts(count: int, longest: int, seed: int = 0) -> list[list[int]]:
    draw = random.Random(seed)
    return [draw.choices(range(60), k=draw.randint(1, longest)) for _ in range(count)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_batch_equals_single(
    write: Writer, monkeypatch: pytest.MonkeyPatch, workers: int, key_heads: int
) -> None:
    """A prompt's answer is the same alone and among others of other lengths and limits."""
    monkeypatch.setattr(runtime, "_CACHE_BYTES", 1 << 20)
    monkeypatch.setattr(runtime, "_PREFILL_TOKENS", 200)
    model = TinyModel.load(write(num_key_value_heads=key_heads))
    prompts = random_prompts(60, 120)
    limits = [random.Random(index).randint(1, 20) for index in range(60)]
    together = model.generate(prompts, limits, workers=workers)
    alone = [
        model.generate([prompt], [limit])[0] for prompt, limit in zip(prompts, limits, strict=True)
    ]
    assert together == alone
    assert [len(reply.ids) for reply in together] == limits


def test_cache_equals_recomputation(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each token is the best one after all before it, computed afresh without a cache."""
    monkeypatch.setattr(runtime, "_SCORES", 4096)
    model = TinyModel.load(write())
    for prompt in random_prompts(4, 150):
        ids = list(prompt)
        for token in model.generate([prompt], [50])[0].ids:
            assert token == int(model.logits(ids)[-1].argmax())
            ids.append(token)


def test_logits_look_only_back(write: Writer) -> None:
    """Later tokens change nothing, and neither does the size of a block of queries."""
    model = TinyModel.load(write())
    ids = random.Random(3).choices(range(60), k=400)
    whole = model.logits(ids)
    np.testing.assert_allclose(model.logits(ids[:77]), whole[:77], atol=1e-4)
    assert whole.dtype == np.float32
    assert np.isfinite(whole).all()


def test_block_size_changes_nothing(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks bound the memory of attention and nothing else."""
    model = TinyModel.load(write())
    ids = random.Random(3).choices(range(60), k=300)
    whole = model.logits(ids)
    monkeypatch.setattr(runtime, "_SCORES", 1)
    np.testing.assert_allclose(model.logits(ids), whole, atol=1e-4)


def test_window_ends_a_reply(write: Writer) -> None:
    """Prompt and reply together never exceed the window."""
    model = TinyModel.load(write(max_position_embeddings=40))
    replies = model.generate([[1] * 39, [2] * 30], [500, 500])
    assert [len(reply.ids) for reply in replies] == [1, 10]
    assert {reply.finish_reason for reply in replies} == {"length"}
    with pytest.raises(ValueError, match="no room"):
        model.generate([[1] * 40], [5])
    with pytest.raises(ValueError, match="no room"):
        model.generate([[1]], [0])


@pytest.mark.parametrize("where", ["config", "generation_config", "list"])
def test_eos_ends_a_reply(write: Writer, where: str) -> None:
    """The end token, from either file, one or several, is the reply's last."""
    folder = write()
    free = TinyModel.load(folder).generate([[5, 6, 7]], [30])[0]
    assert free.finish_reason == "length"
    end = free.ids[10]
    if where == "config":
        write(eos_token_id=end)
    else:
        value = [end, 59] if where == "list" else end
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": value}))
    cut = free.ids[: free.ids.index(end) + 1]
    assert TinyModel.load(folder).generate([[5, 6, 7]], [30]) == [GeneratedReply(cut, "stop")]


def test_nothing_to_do(write: Writer) -> None:
    """No prompts, no replies."""
    assert TinyModel.load(write()).generate([], []) == []


def test_callbacks(write: Writer) -> None:
    """Every reply is reported once as it ends, and a stop is obeyed at the next step."""
    model = TinyModel.load(write())
    prompts = random_prompts(20, 30)
    heard: dict[int, GeneratedReply] = {}
    replies = model.generate(prompts, [5] * 20, workers=2, on_finished=heard.__setitem__)
    assert [heard[index] for index in range(20)] == replies
    asked: list[int] = []

    def stop_after_three() -> bool:
        asked.append(1)
        return len(asked) > 3

    with pytest.raises(StoppedError):
        model.generate([[1, 2]], [900], should_stop=stop_after_three)
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"attention_bias": True}, "attention_bias"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"architectures": ["MistralForCausalLM"]}, "architectures"),
        ({"model_type": "qwen2"}, "model_type"),
        ({"sliding_window": 128}, "sliding_window"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "type"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "rope_type"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"some_new_trick": 3}, "some_new_trick"),
        ({"vocab_size": "drop"}, "vocab_size"),
    ],
)
def test_refused_configs(write: Writer, changes: dict[str, Any], named: str) -> None:
    """What the runtime does not implement is named, never ignored."""
    folder = write()
    config = {key: value for key, value in (BASE | changes).items() if value != "drop"}
    if "rope_scaling" in changes:
        del config["rope_parameters"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(SetupError, match=named) as caught:
        TinyModel.load(folder)
    assert "\n" not in str(caught.value)


def test_old_rope_theta(write: Writer) -> None:
    """`rope_theta` at the top level, as older transformers wrote it, means the same."""
    new = TinyModel.load(write()).logits([1, 2, 3, 4])
    old = TinyModel.load(write(rope_parameters="drop", rope_theta=5000.0)).logits([1, 2, 3, 4])
    other = TinyModel.load(write(rope_parameters="drop", rope_theta=50.0)).logits([1, 2, 3, 4])
    np.testing.assert_array_equal(new, old)
    assert np.abs(new - other).max() > 1e-3


def test_half_precision_files(write: Writer) -> None:
    """float16 and bfloat16 weights are widened exactly."""
    folder = write(dtype="float16")
    half = TinyModel.load(folder)
    file = folder / "model.safetensors"
    tensors = load_file(file)
    save_file({name: values.astype(np.float32) for name, values in tensors.items()}, file)
    np.testing.assert_array_equal(TinyModel.load(folder).logits([1, 2]), half.logits([1, 2]))

    upper = {name: values.astype(np.float32).view("<u4") >> 16 for name, values in tensors.items()}
    save_file({name: (bits << 16).view("<f4") for name, bits in upper.items()}, file)
    cut = TinyModel.load(folder)
    save_file({name: bits.astype("<u2") for name, bits in upper.items()}, file)
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + size].replace(b'"U16"', b'"BF16"')
    file.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])
    np.testing.assert_array_equal(TinyModel.load(folder).logits([1, 2]), cut.logits([1, 2]))
    assert cut.parameters == sum(values.size for values in tensors.values())


def test_wrong_files(write: Writer) -> None:
    """A missing, damaged or unfitting file is one clear line."""
    folder = write()
    file = folder / "model.safetensors"
    good = file.read_bytes()
    for content, named in [(None, "no model.safetensors"), (good[:100], "damaged")]:
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(SetupError, match=named):
            TinyModel.load(folder)
    write(vocab_size=70)
    (folder / "config.json").write_text(json.dumps(BASE))
    with pytest.raises(SetupError, match="has shape"):
        TinyModel.load(folder)
    write(num_hidden_layers=4)
    (folder / "config.json").write_text(json.dumps(BASE))
    with pytest.raises(SetupError, match=r"model\.layers\.3"):
        TinyModel.load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(SetupError, match="not JSON"):
        TinyModel.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(SetupError, match=r"no config\.json"):
        TinyModel.load(folder)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")  # theirs, not ours
@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("tied", [True, False])
def test_equals_transformers(write: Writer, key_heads: int, tied: bool) -> None:
    """Logits agree to 1e-3 and greedy replies token for token."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = write(num_key_value_heads=key_heads, tie_word_embeddings=tied, head_dim=16)
    model = TinyModel.load(folder)
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    for length in (1, 2, 37, 300, 700):
        ids = random.Random(length).choices(range(60), k=length)
        with torch.no_grad():
            expected = theirs(torch.tensor([ids])).logits[0].float().numpy()
        np.testing.assert_allclose(model.logits(ids), expected, atol=1e-3, rtol=0)
        assert np.ptp(expected) > 5
        given = torch.tensor([ids])
        said = theirs.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=12,
            do_sample=False,
            pad_token_id=0,
        )
        assert model.generate([ids], [12])[0].ids == tuple(said[0, length:].tolist())
