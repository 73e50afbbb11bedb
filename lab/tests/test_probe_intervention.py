"""Changes of attention: how they are read, what each does, and models that are asked with them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyechart.providers.base import ModelSettings, Request, SetupError
from eyechart_lab.probe.changed import open_provider
from eyechart_lab.probe.intervention import Intervention, read_intervention
from lab.tests.keeper import Keeper
from lab.tests.test_probe_hf import IDS, changed, opened
from tests.conftest import Lab
from tests.hf_models import write
from tests.test_providers_hf import CLOSE, asked

ALL = (
    *("rope_base=300", "rope_scaling=linear:3", "rope_scaling=ntk:3", "rope_scaling=yarn:3"),
    *("log_n=5", "softmax_one", "window=7:2", "window=6:0+log_n=3+softmax_one+rope_base=500"),
)


def test_reading() -> None:
    assert read_intervention("rope_base=5e5+window=64:4") == Intervention(5e5, window=(64, 4))
    assert read_intervention("rope_scaling=yarn:2.5").factor == 2.5
    assert read_intervention("window=9").window == (9, 0)
    assert read_intervention("rerope=9").facts() == {"intervention": {"rerope": (9, None)}}
    assert read_intervention("leaky_rerope=9:2").rerope == (9, 2)
    assert read_intervention("softmax_one").facts() == {"intervention": {"softmax_one": True}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("windows=3:1", "no intervention 'windows' in 'windows=3:1'; did you mean 'window=64:4'"),
        ("dropout=1", "known: rope_base=20000, rope_scaling"),
        ("", "no intervention ''"),
        ("window=0:4", "at least one of the last"),
        ("window=a", "two whole numbers"),
        ("rope_base=1", "above 1"),
        ("rope_base=nan", "not 'nan'"),
        ("rope_scaling=dynamic:2", "linear, ntk, dynamic_ntk or yarn"),
        ("rerope=0", "rerope wants a whole number of 1 or more, not '0'"),
        ("dual_chunk=2.5", "whole number of 2 or more"),
        ("leaky_rerope=8", "leaky_rerope wants a number above 1"),
        ("rerope=4+leaky_rerope=4:2", "twice"),
        ("rerope=4+dual_chunk=9", "both change distances"),
        ("rope_scaling=yarn", "above 1e-09"),
        (f"rope_scaling=linear:0.{'0' * 300}1", "above 1e-09"),
        ("rope_base=1e999", "not '1e999'"),
        ("x" * 10**6, "no intervention 'xxx"),
        (f"x={'9' * 10**6}", "no intervention 'x'"),
        (f"rope_base={'9' * 10**6}", "at most 1e12, not '999"),
        ("+".join(["softmax_one"] * 10_000), "twice"),
        ("softmax_one=2", "takes no value"),
        ("kv=int2", "is int8 or int4, not 'int2'"),
        ("log_n=3+log_n=4", "twice"),
    ],
)
def test_mistakes(given: str, said: str) -> None:
    with pytest.raises(SetupError) as caught:
        read_intervention(given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("kind", ["linear", "ntk", "yarn"])
@pytest.mark.parametrize("factor", ["0.000000002", "1e12"])
@pytest.mark.parametrize("base", ["1.000001", "1e12"])
def test_extreme_numbers_give_finite_angles(kind: str, factor: str, base: str) -> None:
    change = read_intervention(f"rope_base={base}+rope_scaling={kind}:{factor}")
    for width in (4, 64, 256):
        assert np.isfinite(change.frequencies(10_000, width, 1)).all()


def test_ntk_needs_more_than_one_pair() -> None:
    """Its base has the exponent d / (d - 2)."""
    with pytest.raises(SetupError, match="more than one pair"):
        read_intervention("rope_scaling=ntk:2").frequencies(10_000, 2, 64)


def test_frequencies() -> None:
    """Scalings as their papers define them, at the fastest and the slowest pair."""
    plain = Intervention().frequencies(10_000, 64, 2048)
    assert plain[-1] == pytest.approx(10_000 ** (-62 / 64), rel=1e-5)
    linear = read_intervention("rope_scaling=linear:4").frequencies(10_000, 64, 2048)
    np.testing.assert_allclose(linear, plain / 4)
    ntk = read_intervention("rope_scaling=ntk:4").frequencies(10_000, 64, 2048)
    assert [ntk[0], ntk[-1]] == [1, pytest.approx(plain[-1] / 4, rel=1e-4)]
    yarn = read_intervention("rope_scaling=yarn:4")
    mixed = yarn.frequencies(10_000, 64, 2048)
    assert [mixed[0], mixed[-1]] == [1, pytest.approx(plain[-1] / 4, rel=1e-4)]
    assert np.all(np.diff(mixed) < 0)
    assert yarn.rotary_size == pytest.approx(0.1 * math.log(4) + 1)
    base = read_intervention("rope_base=500").frequencies(10_000, 64, 2048)
    np.testing.assert_allclose(base, Intervention().frequencies(500, 64, 2048))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", ALL)
def test_what_each_changes(tmp_path: Path, given: str) -> None:
    """Positions are turned by the angles of the change, and weights follow from its definition."""
    change, folder = read_intervention(given), write(tmp_path, "llama")
    kept, plain = Keeper(), Keeper()
    logits = changed(folder, given).forward(IDS, kept, last=40)
    expected = opened(folder).forward(IDS, plain, last=40)
    assert np.abs(logits - expected).max() > 0.05
    angles = np.arange(40)[:, None] * (
        change.frequencies(10_000, 12, 256) - Intervention().frequencies(10_000, 12, 256)
    )
    for now, before in zip(kept.keys[0][:2], plain.keys[0][:2], strict=True):
        pairs = before[..., :6] + 1j * before[..., 6:]
        turned = pairs * np.exp(1j * angles)[:, None] * change.rotary_size
        np.testing.assert_allclose(now[..., :6], turned.real, atol=1e-4 * float(np.ptp(now)))
        np.testing.assert_allclose(now[..., 6:], turned.imag, atol=1e-4 * float(np.ptp(now)))
    for layer in range(3):
        queries, keys, _ = kept.keys[layer]
        keys = np.repeat(keys, 2, axis=1)
        scores = np.einsum("shd,thd->hst", queries, keys) / math.sqrt(12)
        seen = np.arange(1, 41)
        if change.log_n is not None:
            scores *= np.maximum(1, np.log(seen) / math.log(change.log_n))[:, None]
        apart = np.arange(40)[:, None] - np.arange(40)
        is_seen = apart >= 0
        if change.window is not None:
            last, first = change.window
            is_seen &= (apart < last) | (np.arange(40) < first)
        sizes = np.where(is_seen, np.exp(scores), 0)
        weights = sizes / (sizes.sum(axis=-1, keepdims=True) + change.softmax_one)
        np.testing.assert_allclose(np.concatenate(kept.weights[layer], 1), weights, atol=1e-4)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bits", [8, 4])
def test_keys_and_values_of_few_bits(tmp_path: Path, bits: int) -> None:
    """Weights and outputs are those of keys and values that are rounded by the definition; the
    derivative is not 0.
    """
    folder = write(tmp_path, "llama")
    inside, kept = changed(folder, f"kv=int{bits}"), Keeper()
    inside.forward(IDS, kept)

    def rounded(states: Any) -> Any:
        low, high = states.min(axis=-1, keepdims=True), states.max(axis=-1, keepdims=True)
        levels = np.rint((states - low) / (high - low) * (2**bits - 1))
        assert levels.max() == 2**bits - 1
        return low + levels * (high - low) / (2**bits - 1)

    for layer in range(3):
        queries, *both = kept.keys[layer]
        keys, values = (np.repeat(rounded(one), 2, axis=1) for one in both)
        scores = np.einsum("shd,thd->hst", queries, keys) / math.sqrt(12)
        sizes = np.exp(scores) * np.tri(len(IDS))
        weights = sizes / sizes.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(np.concatenate(kept.weights[layer], 1), weights, atol=1e-3)
        mixed = np.einsum("hst,thd->shd", weights, values)
        np.testing.assert_allclose(kept.outputs[layer], mixed, atol=1e-3 * float(np.ptp(mixed)))
    assert np.abs(inside.gradients(IDS, np.ones(346, np.float32))[0]).max() > 0


def chunked(query: int, key: int) -> float:
    """The distance of dual chunk attention with 16 tokens in the training: chunks of 12."""
    if query // 12 == key // 12:
        return query - key
    if query // 12 == key // 12 + 1:
        return min(query % 12 + 12, 15) - key % 12
    return 15 - key % 12


AGAIN: dict[str, Callable[[int, int], float]] = {
    "dual_chunk=16": chunked,
    "dual_chunk=16+rope_scaling=yarn:3": chunked,
    "rerope=7": lambda query, key: min(query - key, 7),
    "leaky_rerope=7:4": lambda query, key: min(query - key, 7 + (query - key - 7) / 4),
    "rope_scaling=dynamic_ntk:2": lambda query, key: query - key,
}
"""Changes that turn queries and keys a second time -> the distance that a pair is to have."""


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", AGAIN)
def test_pairs_are_turned_by_their_distance(tmp_path: Path, given: str) -> None:
    """Weights of the first layer, of every pair, from queries and keys that are not turned."""
    change, folder = read_intervention(given), write(tmp_path, "llama")
    trained_to(folder, 16)
    kept, plain = Keeper(), Keeper()
    logits = changed(folder, given).forward(IDS, kept, last=40)
    expected = opened(folder).forward(IDS, plain, last=40)
    assert np.abs(logits - expected).max() > 0.05
    turned = np.arange(40)[:, None] * Intervention().frequencies(10_000, 12, 16)
    queries, keys = (
        (one[..., :6] + 1j * one[..., 6:]) * np.exp(-1j * turned)[:, None]
        for one in plain.keys[0][:2]
    )
    distance = np.array([[AGAIN[given](query, key) for key in range(40)] for query in range(40)])
    angles = distance[..., None] * change.frequencies(10_000, 12, 16, tokens=40)
    products = np.einsum(
        "shp,thp,stp->hst", queries, np.repeat(keys, 2, axis=1).conj(), np.exp(1j * angles)
    )
    scores = products.real * change.rotary_size**2 / math.sqrt(12)
    sizes = np.where(np.tri(40, dtype=bool), np.exp(scores), 0)
    weights = sizes / sizes.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(np.concatenate(kept.weights[0], 1), weights, atol=1e-4)


def trained_to(folder: Path, tokens: int) -> None:
    """Says in its config how many tokens the texts of a model's training had."""
    config = json.loads((folder / "config.json").read_text())
    config["original_max_position_embeddings"] = tokens
    (folder / "config.json").write_text(json.dumps(config))


def test_dynamic_ntk_is_that_of_transformers() -> None:
    """The frequencies of a text that is longer than the training."""
    transformers = pytest.importorskip("transformers")
    rope_utils = pytest.importorskip("transformers.modeling_rope_utils")
    config = transformers.LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        max_position_embeddings=100,
        rope_parameters={"rope_type": "dynamic", "factor": 3.0, "rope_theta": 5000.0},
    )
    theirs, _ = rope_utils.ROPE_INIT_FUNCTIONS["dynamic"](config, "cpu", seq_len=250)
    change = read_intervention("rope_scaling=dynamic_ntk:3")
    ours = change.frequencies(5000, 32, 100, tokens=250)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5)
    short = change.frequencies(5000, 32, 100, tokens=100)
    np.testing.assert_allclose(short, Intervention().frequencies(5000, 32, 100))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_pairs_in_another_order_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that turns neighbouring numbers together would be turned wrongly."""
    folder = write(tmp_path, "llama")
    changed(folder, "rerope=7")
    from transformers.models.llama import modeling_llama

    def neighbours(states: Any) -> Any:
        swapped = states.unflatten(-1, (-1, 2)).flip(-1)
        swapped[..., 0] *= -1
        return swapped.flatten(-2)

    monkeypatch.setattr(modeling_llama, "rotate_half", neighbours)
    with pytest.raises(SetupError, match="another order than Llama"):
        changed(folder, "rerope=7")


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("given", [*ALL, "softmax_one", *AGAIN])
def test_replies_in_a_batch_are_those_alone(tmp_path: Path, given: str) -> None:
    """Greedy, of prompts of different lengths: each is the one that the changed inside gives."""
    folder = write(tmp_path, "llama")
    settings = ModelSettings(
        f"{given}/hf/{folder}", provider="changed", logprobs=True, device="cpu"
    )
    requests = [Request(one, 8) for one in ("1", "1,1,1,1,1,1", "Row ab: 1,1,1,1,1,1,1,1,1,1,1")]
    batch = asked(open_provider(settings), requests)
    alone = asked(open_provider(settings), requests, at_once=False)
    inside = changed(folder, given)
    for request, one, other in zip(requests, batch, alone, strict=True):
        assert one.text == other.text
        values = [value for _, value in one.logprobs or ()]
        assert values == pytest.approx([value for _, value in other.logprobs or ()], abs=CLOSE)
        logits = inside.forward(inside.tokens(request.prompt).ids)[0].astype(float)
        best = logits.max() - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
        assert values[0] == pytest.approx(best, abs=CLOSE)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
def test_a_run_and_a_probe_have_one_name(lab: Lab) -> None:
    """So the page draws the probe beside the run."""
    words = ("--task", "counting/ones", "--model", "changed/window=8:2/tiny", "--lengths", "5,20")
    run = lab.bench("run", *words, "--samples", "3", "--out", lab.out, "--keep-going")
    assert run.code == 0, run.err
    assert lab.bench("probe", *words, "--measure", "answer", "--out", lab.out).code == 0
    (run_folder,) = lab.out.glob("runs/changed/window=8%3A2/tiny/counting/*")
    (probed,) = lab.out.glob("probes/changed/window=8%3A2/tiny/counting/*")
    page = lab.folder / "page.html"
    assert lab.bench("report", run_folder, probed, "-o", page).code == 0
    assert "Probability of the right answer" in page.read_text(encoding="utf-8")


def test_what_cannot_be_changed_is_one_line(lab: Lab) -> None:
    for name, said in (
        ("changed/softmax_one/gpt-4o", "openai/gpt-4o cannot be changed: changed/CHANGE/MODEL"),
        ("changed/windw=3:1/tiny", "did you mean 'window=64:4'"),
        ("changed/softmax_one", "is not of the form provider/model"),
    ):
        lab.bench_run("--model", name, task=lab.plain).one_line(2, said)
    model = ("--model", "changed/softmax_one/tiny")
    done = lab.bench_run(*model, "--thinking", "low", task=lab.plain)
    done.one_line(2, "changed/softmax_one/tiny does not support --thinking")
