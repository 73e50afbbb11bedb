"""Changes of attention: how they are read, and what the embedded model makes of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyechart.providers.base import SetupError
from eyechart.providers.intervention import Intervention, read_intervention
from eyechart.providers.registry import check_intervention, parse_model
from eyechart.providers.tiny.runtime import TinyModel
from eyechart.providers.tiny.weights import Tensors, read_config
from eyechart_lab.probe.tiny_layers import Layers
from lab.tests.test_probe_tiny import IDS, Keeper
from tests.small_models import write_model

ALL = (
    *("rope_base=300", "rope_scaling=linear:3", "rope_scaling=ntk:3", "rope_scaling=yarn:3"),
    *("log_n=5", "softmax_one", "window=7:2", "window=6:0+log_n=3+softmax_one+rope_base=500"),
)


def test_reading() -> None:
    assert read_intervention("none") == read_intervention(None) == Intervention()
    assert read_intervention("rope_base=5e5+window=64:4") == Intervention(5e5, window=(64, 4))
    assert read_intervention("rope_scaling=yarn:2.5").factor == 2.5
    assert read_intervention("window=9").window == (9, 0)
    assert read_intervention("softmax_one").facts() == {"intervention": {"softmax_one": True}}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("windows=3:1", "no intervention 'windows'; did you mean 'window=64:4'"),
        ("dropout=1", "known: rope_base=20000, rope_scaling"),
        ("", "no intervention ''"),
        ("window=0:4", "at least one of the last"),
        ("window=a", "two whole numbers"),
        ("rope_base=1", "above 1"),
        ("rope_base=nan", "not 'nan'"),
        ("rope_scaling=dynamic:2", "linear, ntk or yarn"),
        ("rope_scaling=yarn", "above 1e-09"),
        (f"rope_scaling=linear:0.{'0' * 300}1", "above 1e-09"),
        ("rope_base=1e999", "not '1e999'"),
        ("x" * 10**6, "no intervention 'xxx"),
        (f"x={'9' * 10**6}", "no intervention 'x'"),
        (f"rope_base={'9' * 10**6}", "at most 1e12, not '999"),
        ("+".join(["softmax_one"] * 10_000), "twice"),
        ("softmax_one=2", "takes no value"),
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


def test_models_behind_servers_are_not_changed() -> None:
    with pytest.raises(SetupError, match="named with label"):
        check_intervention(parse_model("openai/gpt-4o"), "softmax_one")
    assert check_intervention(parse_model("openai/gpt-4o"), "none") is None


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


@pytest.mark.parametrize("given", ALL)
def test_runtime_and_inside_agree(tmp_path: Path, given: str) -> None:
    """The model that replies, in batches and step by step, and the one that is watched."""
    change = read_intervention(given)
    folder = write_model(tmp_path)
    model = TinyModel.load(folder, change)
    layers = Layers(read_config(folder), Tensors(folder / "model.safetensors"), "float32", change)
    expected = layers.forward(IDS, None, len(IDS))
    np.testing.assert_allclose(model.logits(IDS), expected, atol=3e-3)
    assert np.abs(expected - TinyModel.load(folder).logits(IDS)).max() > 0.05
    (said,) = model.generate([IDS], [8])
    again = [*IDS, *said.ids]
    watched = layers.forward(again[:-1], None, 8).argmax(axis=-1)
    assert tuple(watched) == said.ids


@pytest.mark.parametrize("given", ALL)
def test_derivative_of_a_changed_model(tmp_path: Path, given: str) -> None:
    folder = write_model(tmp_path)
    layers = Layers(
        read_config(folder),
        Tensors(folder / "model.safetensors"),
        "float32",
        read_intervention(given),
    )
    rows: Any = layers.embedding[IDS].astype(float)  # differences need double precision
    draw = np.random.default_rng(2)
    weights = draw.normal(size=60).astype(np.float32)
    slope = layers.gradients(IDS, weights)
    direction = np.zeros_like(rows)
    direction[20] = draw.normal(size=rows.shape[1])
    ahead, behind = (
        float(layers.forward_from(rows + sign * 1e-5 * direction, None, 1)[0] @ weights)
        for sign in (1, -1)
    )
    along = float((slope * direction).sum())
    assert (ahead - behind) / 2e-5 == pytest.approx(along, rel=1e-3, abs=2e-3)


def test_what_each_changes_in_the_weights(tmp_path: Path) -> None:
    folder = write_model(tmp_path)

    def weights(given: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        kept = Keeper()
        Layers(
            read_config(folder),
            Tensors(folder / "model.safetensors"),
            "float32",
            read_intervention(given),
        ).forward(IDS, kept, 1)
        return np.concatenate(kept.weights[0], axis=1)

    windowed = weights("window=7:2")
    attended = windowed[:, 30].max(axis=0)
    assert np.flatnonzero(attended).tolist() == [0, 1, *range(24, 31)]
    np.testing.assert_allclose(windowed.sum(axis=-1), 1, atol=1e-5)
    assert (weights("softmax_one").sum(axis=-1) < 1).all()
    plain, sharp = weights("none"), weights("log_n=5")
    np.testing.assert_array_equal(plain[:, :5], sharp[:, :5])
    assert sharp[:, 5:].max(axis=-1).mean() > plain[:, 5:].max(axis=-1).mean()
