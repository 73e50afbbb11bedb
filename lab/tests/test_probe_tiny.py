"""The embedded model's inside: the same arithmetic as its replies, and a true derivative."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyechart.providers.base import ModelSettings, PromptOverflowError
from eyechart.providers.tiny.runtime import TinyModel
from eyechart.providers.tiny.weights import Tensors, read_config
from eyechart_lab.probe.inside import Array, Positions, Wants, Watcher
from eyechart_lab.probe.tiny import TinyInside, open_inside
from eyechart_lab.probe.tiny_layers import Layers, to_bfloat16
from tests.small_models import write_model

IDS = [int(one) for one in np.random.default_rng(5).integers(0, 60, 40)]


class Keeper(Watcher):
    """Keeps everything that happens in a pass."""

    wants: Wants = dict.fromkeys(("residual", "final", "projections", "attention", "heads"))

    def __init__(self) -> None:
        self.streams: dict[int, Array] = {}
        self.ended: list[Array] = []
        self.keys: dict[int, tuple[Array, ...]] = {}
        self.weights: dict[int, list[Array]] = {}
        self.outputs: dict[int, Array] = {}

    def residual(self, layer: int, at: Positions, states: Array) -> None:
        assert len(at) == len(states)
        self.streams[layer] = states.copy()

    def final(self, at: Positions, states: Array) -> None:
        assert len(at) == len(states)
        self.ended.append(states.copy())

    def projections(
        self, layer: int, at: Positions, queries: Array, keys: Array, values: Array
    ) -> None:
        assert len(at) == len(queries)
        self.keys[layer] = (queries.copy(), keys.copy(), values.copy())

    def attention(self, layer: int, at: Positions, weights: Array) -> None:
        blocks = self.weights.setdefault(layer, [])
        blocks.append(weights.copy())
        assert at[-1] + 1 - at[0] == len(at) == weights.shape[1]

    def heads(self, layer: int, at: Positions, outputs: Array) -> None:
        assert len(at) == len(outputs)
        self.outputs[layer] = outputs.copy()


def layers_of(folder: Path) -> Layers:
    return Layers(read_config(folder), Tensors(folder / "model.safetensors"))


@pytest.fixture(scope="module")
def tiny() -> TinyInside:
    return open_inside(ModelSettings("tiny"))


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("tied", [True, False])
def test_same_arithmetic_as_replies(tmp_path: Path, key_heads: int, tied: bool) -> None:
    folder = write_model(tmp_path, num_key_value_heads=key_heads, tie_word_embeddings=tied)
    expected = TinyModel.load(folder).logits(IDS)
    np.testing.assert_allclose(layers_of(folder).forward(IDS, None, len(IDS)), expected, atol=2e-4)
    assert np.ptp(expected) > 5


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_what_is_shown_belongs_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_heads: int
) -> None:
    """Weights add up to 1 over what precedes, heads are weighted values, streams their sums; in
    blocks of few positions.
    """
    monkeypatch.setattr("eyechart_lab.probe.tiny_layers._BLOCK", 4 * 40 * 7)
    layers, kept = layers_of(write_model(tmp_path, num_key_value_heads=key_heads)), Keeper()
    logits = layers.forward(IDS, kept, 1)
    assert [len(blocks) for blocks in kept.weights.values()] == [6, 6, 6]
    for layer, block in enumerate(layers.blocks):
        weights = np.concatenate(kept.weights[layer], axis=1)
        assert weights.shape == (4, 40, 40)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
        assert np.abs(np.triu(weights, 1)).max() == 0
        values = np.repeat(kept.keys[layer][2], 4 // key_heads, axis=1)
        mixed = np.einsum("hst,thd->shd", weights, values)
        np.testing.assert_allclose(kept.outputs[layer], mixed, atol=1e-4)
        after = kept.streams[layer] + mixed.reshape(40, -1) @ block.o
        fed = layers._fed(layers._normed(after, block.before_feed_forward), block)
        np.testing.assert_allclose(kept.streams[layer + 1], after + fed, atol=1e-3)
    np.testing.assert_allclose(kept.ended[0][-1:] @ layers._head.T, logits, atol=1e-5)


@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_derivative_equals_differences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key_heads: int
) -> None:
    """The derivative along random directions at single positions, in blocks too; the differences
    are computed in double precision.
    """
    monkeypatch.setattr("eyechart_lab.probe.tiny_layers._BLOCK", 4 * 40 * 7)
    layers = layers_of(write_model(tmp_path, num_key_value_heads=key_heads))
    rows, draw, step = layers.embedding[IDS].astype(float), np.random.default_rng(3), 1e-5
    weights = draw.normal(size=60).astype(np.float32)
    slope = layers.gradients(IDS, weights)

    def logit(embedded: Any) -> float:
        return float(layers.forward_from(embedded, None, 1)[0] @ weights)

    for place in (0, 1, 17, 38, 39):
        direction = np.zeros_like(rows)
        direction[place] = draw.normal(size=rows.shape[1])
        apart = logit(rows + step * direction) - logit(rows - step * direction)
        along = float((slope * direction).sum())
        assert apart / (2 * step) == pytest.approx(along, rel=1e-3, abs=1e-3)


def test_bfloat16_is_rounded_everywhere(tiny: TinyInside) -> None:
    ids = tiny.tokens("How many ones are in row ab?\nRow ab: 1,1,1").ids
    rounded, exact = Keeper(), Keeper()
    tiny.forward(ids, rounded, precision="bfloat16")
    tiny.forward(ids, exact)
    for kept in (rounded.streams, rounded.outputs):
        for values in kept.values():
            np.testing.assert_array_equal(values, to_bfloat16(values))
    for layer in range(5):
        largest = np.abs(exact.streams[layer]).max()
        apart = np.abs(rounded.streams[layer] - exact.streams[layer]).max()
        assert 0 < apart < 0.1 * largest


def test_nearest_bfloat16() -> None:
    values = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-7, -(1 + 2**-8 + 2**-12)], np.float32)
    wanted = [1, 1, 1 + 2**-6, 1 + 2**-7, -(1 + 2**-7)]  # ties go to the even one
    assert to_bfloat16(values).tolist() == wanted


def test_tokens_know_their_characters(tiny: TinyInside) -> None:
    prompt = "How many ones are in row ab?\nRow ab: 1,1,1"
    tokens = tiny.tokens(prompt)
    shown = [prompt[slice(*span)] for span in tokens.spans if span is not None]
    assert "".join(shown) == prompt
    assert [tokens.spans[0], tokens.spans[-1]] == [None, None]
    assert tiny.answer_ids(prompt, "Final answer: 17")[:3] == tiny.answer_ids(
        prompt, "Final answer:"
    )


def test_prompt_beyond_the_window(tiny: TinyInside) -> None:
    with pytest.raises(PromptOverflowError, match="window 4096"):
        tiny.tokens("1," * 2100)
