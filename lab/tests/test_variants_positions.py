"""Positions of the laboratory against closed forms and numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from eyechart_lab.variants.choices import Randomised
from eyechart_lab.variants.variant import Variant

if TYPE_CHECKING:
    import torch

    from eyechart_lab.variants.mechanisms import (
        biases,
        draws,
        positions,
    )
    from lab.tests.test_variants_mechanisms import _drawn_alike, near
    from lab.tests.test_variants_model import ids_of, model_of
else:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from eyechart_lab.variants.mechanisms import (
        biases,
        draws,
        positions,
    )
    from lab.tests.test_variants_mechanisms import _drawn_alike, near
    from lab.tests.test_variants_model import ids_of, model_of

__all__ = ["_drawn_alike"]
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours


def test_sinusoids() -> None:
    """The formula, at two positions and one between them."""
    found = positions.sinusoids(torch.tensor([[0, 1], [7, 2.5]]), 4)
    assert found.shape == (2, 2, 4)
    near(found[0, 0], [0, 1, 0, 1])
    near(found[0, 1], [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)])
    near(found[1, 1], [math.sin(2.5), math.cos(2.5), math.sin(0.025), math.cos(0.025)])


def rotary(**given: Any) -> positions.Rotary:
    variant = Variant.model_validate(given)
    return positions.Rotary(variant, 16)


def test_rotary_positions() -> None:
    """Pairs stand half a head apart; a product depends on the distance alone."""
    turn = rotary(width=4, heads=1, positions={"rope": {"base": 100}})
    near(turn.inv_freq, [1, 0.1])
    states = torch.tensor([1.0, 2, 3, 4]).expand(1, 1, 6, 4)
    found = positions.turned(states, turn(torch.arange(6)[None]))[0, 0]
    near(found[0], [1, 2, 3, 4])
    near(found[5, 0], 1 * math.cos(5) - 3 * math.sin(5))
    near(found[5, 2], 1 * math.sin(5) + 3 * math.cos(5))
    near(found[5, 3], 2 * math.sin(0.5) + 4 * math.cos(0.5))
    products = found @ found.T
    for apart in range(6):
        near(products.diagonal(apart), products[0, apart].expand(6 - apart), 1e-4)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1, [1, 0.1, 0.01, 0.001]), (0.75, [1, 0.1, 0.01, 0]), (0.5, [1, 0.1, 0, 0]), (0, [0] * 4)],
)
def test_p_rope_takes_the_lowest_frequencies_away(share: float, expected: list[float]) -> None:
    """Of four pairs, with base 10,000."""
    near(rotary(width=8, heads=1, positions={"p_rope": share}).inv_freq, expected, 1e-7)


@pytest.mark.parametrize(("share", "same"), [(0, "none"), (1, "rope")])
def test_p_rope_is_nope_and_rope_at_its_ends(share: float, same: str) -> None:
    """The same weights give the same logits."""
    one, other = (model_of({"positions": given}) for given in ({"p_rope": share}, same))
    near(one(ids_of(1, 30)).logits, other(ids_of(1, 30)).logits.detach())


@pytest.mark.parametrize(
    ("heads", "powers"),
    [
        (1, [8]),
        (4, [2, 4, 6, 8]),
        (8, [1, 2, 3, 4, 5, 6, 7, 8]),
        (6, [2, 4, 6, 8, 1, 3]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_slopes_of_alibi(heads: int, powers: list[float]) -> None:
    """2^-p, for the authors' numbers of heads and others."""
    assert biases.slopes_of(heads) == pytest.approx([2**-power for power in powers])


def distances(tokens: int) -> Any:
    order = torch.arange(tokens)
    return (order[:, None] - order).clamp(min=0)[None]


def test_bias_of_alibi() -> None:
    found = biases.AlibiBias(4)(distances(5))
    assert found.shape == (1, 4, 5, 5)
    near(found[0, 0, 4], [-1, -0.75, -0.5, -0.25, 0])
    near(found[0, 3, 4, 0], -4 / 256)


def test_kernels_of_kerple() -> None:
    """Both kernels; their parameters stay in bounds; and distance 0 has a derivative."""
    log, power = (biases.KerpleBias(3, kernel) for kernel in ("log", "power"))
    for bias in (log, power):
        bias.bias_p.data = torch.tensor([2.0, 1.5, 7])
        bias.bias_a.data = torch.tensor([3.0, 0.5, -1])
    near(log(distances(5))[0, :2, 4, 0], [-2 * math.log(13), -1.5 * math.log(3)])
    near(log(distances(5))[0, 2, 4, 0], -7 * math.log(1.04))
    near(power(distances(5))[0, :, 4, 0], [-3 * 16, -0.5 * 8, -0.01 * 16])
    near(power(distances(5))[0, :, 4, 4], [0, 0, 0])
    power(distances(5)).sum().backward()
    assert power.bias_p.grad is not None
    assert power.bias_p.grad.isfinite().all()
    many = biases.KerpleBias(4000, "power")
    many.reset()
    assert many.bias_p.min() >= 0
    assert many.bias_p.mean().item() == pytest.approx(1, abs=0.05)
    assert many.bias_a.mean().item() == pytest.approx(0.5, abs=0.03)


def test_sandwich_is_the_inner_product_of_sinusoids() -> None:
    """But for a constant, which no softmax sees, and for the divisor of a head."""
    found = biases.SandwichBias(2, 4)(distances(30))
    waves = positions.sinusoids(torch.arange(30)[None], 4)[0]
    expected = (waves @ waves.T - 2).tril()
    near(found[0, 0].tril(), expected.detach() / 4, 1e-4)
    near(found[0, 1].tril(), expected.detach() / 8, 1e-4)
    near(found[0, 0, 3, 0], (math.cos(3) + math.cos(0.03) - 2) / 4)


def test_draws_of_randomised_positions() -> None:
    """All subsets are equally likely, and sorted."""
    found = draws.drawn(torch.tensor([2]).expand(6000), 2, 4)
    counts = {
        pair: int((found == torch.tensor(pair)).all(dim=1).sum())
        for pair in itertools.combinations(range(4), 2)
    }
    assert sum(counts.values()) == 6000
    assert all(abs(count - 1000) < 4 * 29 for count in counts.values()), counts
    near(draws.drawn(torch.tensor([5]), 5, 5)[0], range(5))
    padded = draws.drawn(torch.tensor([3, 5]), 5, 40)
    near(padded[0, 3:], [39, 39])
    assert (padded.diff(dim=1)[1] > 0).all()


@pytest.mark.parametrize(("encoding", "first"), [("sinusoidal", 0), ("alibi", 1)])
def test_asked_positions_are_where_draws_are_expected(encoding: str, first: int) -> None:
    """The mean of each order statistic over all subsets: of 17 of 20 positions for a prompt of one
    token and 16 of a reply, or of 16 of the distances 1 to 19 behind 0.
    """
    subsets = np.array(list(itertools.combinations(range(first, 20), 17 - first)))
    spread = Randomised.model_validate({"of": 20, "encoding": encoding})
    found = draws.asked(spread, torch.tensor([1, 1]), 17)[0]
    near(found, [*[0] * first, *subsets.mean(axis=0)])


@pytest.mark.parametrize("encoding", ["rope", "relative"])
def test_asked_draws_follow_from_the_number_of_tokens(encoding: str) -> None:
    """They are sorted positions from the range, the same ones each time, and go on behind it."""
    spread = Randomised.model_validate({"of": 60, "encoding": encoding, "asked": "drawn"})
    found = draws.asked(spread, torch.tensor([4, 30, 4, 60]), 62)
    near(found[0], found[2])
    assert not torch.equal(found[0], found[1])
    assert (found.diff(dim=1) > 0).all()
    near(found[:, 0] == 0, [encoding == "relative" or bool(one[0] == 0) for one in found])
    assert found[0, 19] < 60
    near(found[0, 20:].diff(), [1] * 41)
    near(found[3, :60], range(60))


def test_distances_that_the_training_draws() -> None:
    """Each subset of the distances behind 0 is equally likely; padding has the farthest."""
    spread = Randomised(of=5, encoding="alibi")
    found = draws.drawn_for(spread, torch.tensor([3]).expand(6000), 4, 4)
    assert set(found[:, 0].tolist()) == {0}
    assert set(found[:, 3].tolist()) == {4}
    for pair in itertools.combinations(range(1, 5), 2):
        count = int((found[:, 1:3] == torch.tensor(pair)).all(dim=1).sum())
        assert abs(count - 1000) < 4 * 29, pair


def test_random_padding() -> None:
    """A text of 3 tokens begins equally often at each of the 6 places of 8 where it fits."""
    variant = Variant.model_validate({"positions": {"learned": {"random_padding": True}}})
    found = draws.drawn_for(variant.positions, torch.tensor([3]).expand(6000), 4, 8)
    near(found[:, 1:3] - found[:, :1], np.tile([1, 2], (6000, 1)))
    counts = np.bincount(found[:, 0].numpy(), minlength=8)
    assert all(abs(count - 1000) < 4 * 29 for count in counts[:6]), counts
    assert not counts[6:].any()
    assert found.max() == 7


def test_later_positions_are_trained_less_without_random_padding() -> None:
    """Tao et al. 2023: how often each position of 8 is in a text of 1 to 8 tokens."""
    often = {}
    for padded in (False, True):
        given = {"learned": {"of": 8, "random_padding": padded}}
        model = model_of({"positions": given}, trained=8).train()
        seen = torch.zeros(8)
        for tokens in range(1, 9):
            for _ in range(40):
                model(ids_of(1, tokens)).logits.sum().backward()
                seen += model.model.added.vectors.weight.grad.abs().sum(dim=1) > 0
                model.zero_grad()
        often[padded] = seen
    near(often[False], [320 - 40 * place for place in range(8)])
    expected = [
        sum(
            40 * min(tokens, place + 1, 8 - place, 9 - tokens) / (9 - tokens)
            for tokens in range(1, 9)
        )
        for place in range(8)
    ]
    near(often[True], expected, tolerance=35)
    assert often[True].min() > 2 * often[False].min()


def test_training_draws_positions_and_asking_does_not() -> None:
    """A model in training gives other logits each time; a prompt longer than the range fails."""
    model = model_of({"positions": {"randomised": {"of": 50}}})
    ids = ids_of(2, 20)
    assert torch.equal(model(ids).logits, model(ids).logits)
    model.train()
    assert not torch.allclose(model(ids).logits, model(ids).logits)
    message = r"has 51 tokens, and positions are drawn from 50; write .*\{of: 51\}\}, or more"
    with pytest.raises(ValueError, match=message):
        model(ids_of(1, 51))
    with pytest.raises(ValueError, match=message):
        model_of({"positions": {"randomised": {"of": 50}}}, trained=51)


def test_learned_and_scalar_positions() -> None:
    """A vector for each position, and i / C times one vector."""
    learned, scalar = (
        model_of({"positions": {name: of}}).model.added
        for name, of in (("learned", {"of": 512}), ("scalar", {"of": 20}))
    )
    states = torch.randn(1, 3, 64)
    near(
        learned(states, torch.tensor([[0, 5, 511]])) - states,
        learned.vectors.weight[[0, 5, 511]].detach()[None],
    )
    added = (scalar(states, torch.tensor([[0, 5, 40]])) - states)[0]
    near(added, np.outer([0, 0.25, 2], scalar.direction.detach()))


def test_positions_beyond_the_learned_ones_are_refused() -> None:
    message = r"has 51 tokens, and positions are 50; write positions: \{learned: \{of: 51\}\}"
    with pytest.raises(ValueError, match=message):
        model_of({"positions": {"learned": {"of": 50}}}, trained=51)


@pytest.mark.parametrize(("buckets", "longest"), [(32, 128), (8, 20)])
def test_buckets_of_t5(buckets: int, longest: int) -> None:
    """Those of transformers, for distances of a decoder; and the number of each."""
    from transformers.models.t5.modeling_t5 import T5Attention

    bias = biases.T5Bias(2, buckets, longest)
    away = torch.arange(500)[None, None]
    theirs = T5Attention._relative_position_bucket(
        -away, bidirectional=False, num_buckets=buckets, max_distance=longest
    )
    near(bias.bucket(away), theirs)
    assert bias.bucket(away).unique().tolist() == list(range(buckets))
    near(bias(away)[0, 1, 0], bias.numbers.weight[theirs[0, 0], 1].detach())


def test_distances_as_keys() -> None:
    """(q + u) · k + (q + v) · W r, with r of each pair's own distance."""
    relative = positions.RelativeScores(8, 2)
    relative.reset()
    relative.of_content.data.normal_()
    relative.of_distance.data.normal_()
    queries, keys = torch.randn(2, 3, 2, 5, 4)
    table = torch.tensor([[0, 2, 3, 7, 11], [0, 1, 2, 3, 4], [0, 0.5, 1, 1.5, 2]])
    offsets = distances(5).expand(3, -1, -1)
    found = relative(queries, keys, table, offsets)
    for row, head, query, key in itertools.product(range(3), range(2), range(5), range(5)):
        wave = positions.sinusoids(table[row, offsets[row, query, key]][None, None], 8)[0, 0]
        its = relative.key(wave)[4 * head : 4 * head + 4]
        q, k = queries[row, head, query], keys[row, head, key]
        expected = (q + relative.of_content[head, 0]) @ k
        expected = expected + (q + relative.of_distance[head, 0]) @ its
        near(found[row, head, query, key], expected.item(), 1e-4)


@pytest.mark.parametrize("encoding", ["rope", "alibi", "relative", "sinusoidal", "learned"])
def test_drawn_numbers_0_1_2_are_the_plain_encoding(encoding: str) -> None:
    """Given positions (or distances) of 0, 1, 2, … are those of a model without draws."""
    drawn, plain = (
        model_of({"positions": given}).train()
        for given in (
            {"randomised": {"of": 90, "encoding": encoding}},
            {"learned": {"of": 90}} if encoding == "learned" else encoding,
        )
    )
    ids, order = ids_of(2, 20), torch.arange(20).expand(2, -1)
    near(drawn(ids, position_ids=order).logits, plain(ids).logits.detach(), 1e-3)
    far = drawn(ids, position_ids=order * 4).logits - plain(ids).logits
    assert far.abs().max() > 0.1


def test_kerple_comes_back_from_its_bound() -> None:
    """A number below 0.01 is put back to it in the training, where it has a derivative."""
    bias = biases.KerpleBias(2, "power").train()
    bias.bias_p.data, bias.bias_a.data = torch.tensor([-3.0, 5]), torch.tensor([-1.0, 0.5])
    bias(distances(5)).sum().backward()
    near(bias.bias_p, [0.01, 2])
    near(bias.bias_a, [0.01, 0.5])
    for parameter in (bias.bias_p, bias.bias_a):
        assert parameter.grad is not None
        assert parameter.grad.all()
