"""Mechanisms of the laboratory against closed forms and numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from eyechart_lab.probe.distances import Chunks
from eyechart_lab.variants.choices import (
    Differential,
    Randomised,
    Relu,
    Rope,
    SeqVcr,
    Strided,
    Window,
)
from eyechart_lab.variants.variant import Variant
from lab.tests.test_variants_model import ids_of, model_of

if TYPE_CHECKING:
    import torch

    from eyechart_lab.variants.mechanisms import (
        attention,
        biases,
        draws,
        losses,
        places,
        positions,
    )
else:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from eyechart_lab.variants.mechanisms import (
        attention,
        biases,
        draws,
        losses,
        places,
        positions,
    )

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def near(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=tolerance)


def seen_by(tokens: int, mask: Any = None) -> Any:
    return places.RowPositions.of(tokens, 0, mask, torch.device("cpu"))


# positions


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


@pytest.mark.parametrize("encoding", ["rope", "alibi", "relative", "sinusoidal"])
def test_drawn_numbers_0_1_2_are_the_plain_encoding(encoding: str) -> None:
    """Given positions (or distances) of 0, 1, 2, … are those of a model without draws."""
    drawn, plain = (
        model_of({"positions": given}).train()
        for given in ({"randomised": {"of": 90, "encoding": encoding}}, encoding)
    )
    ids, order = ids_of(2, 20), torch.arange(20).expand(2, -1)
    near(drawn(ids, position_ids=order).logits, plain(ids).logits.detach(), 1e-3)
    far = drawn(ids, position_ids=order * 4).logits - plain(ids).logits
    assert far.abs().max() > 0.1


# weights


def test_off_by_one() -> None:
    """exp(s) / (1 + Σ exp(s)); scores at minus infinity give nothing."""
    seen = torch.ones(1, 2, dtype=torch.bool)
    near(attention.off_by_one(torch.tensor([[0, math.log(2)]]), seen)[0], [1 / 4, 2 / 4])
    near(attention.off_by_one(torch.full((1, 2), -torch.inf), seen)[0], [0, 0], 0)
    near(attention.off_by_one(torch.full((1, 2), 500.0), seen)[0], [0.5, 0.5])
    near(attention.off_by_one(torch.zeros(1, 2), ~seen)[0], [0, 0], 0)


def test_relu() -> None:
    """Divided by the root of half the tokens that are seen."""
    scores = torch.tensor([2.0, -1, 4, 9])
    seen = torch.tensor([True, True, True, False])
    near(attention.relu(scores, seen), np.array([2, 0, 4, 0]) / math.sqrt(1.5))


def test_relu_with_gamma_and_by_length() -> None:
    """Shen et al. divide by γ besides, Wortsman et al. by the number of tokens."""
    scores, seen = torch.tensor([2.0, -1, 4, 9]), torch.tensor([True, True, True, False])
    near(attention.relu(scores, seen, gamma=5), np.array([2, 0, 4, 0]) / (5 * math.sqrt(1.5)))
    near(attention.relu(scores, seen, "length", 5), np.array([2, 0, 4, 0]) / 3)


@pytest.mark.parametrize("tokens", [1, 10, 100])
def test_relu_keeps_the_variance(tokens: int) -> None:
    """Of values with variance 1, for any number of tokens."""
    scores, values = torch.randn(2, 40_000, tokens)
    mixed = (attention.relu(scores, torch.ones(tokens, dtype=torch.bool)) * values).sum(dim=-1)
    assert mixed.var().item() == pytest.approx(1, abs=0.06)


def difference(layer: int) -> attention.Difference:
    made = attention.Difference(layer, 2)
    made.reset()
    for vector in (made.lambda_q1, made.lambda_k1, made.lambda_q2, made.lambda_k2):
        vector.data.zero_()
    return made


def test_lambda_of_differential_attention() -> None:
    """At the beginning, and with learned vectors."""
    assert [difference(layer).factor.item() for layer in range(3)] == pytest.approx(
        [0.2, 0.355509, 0.470713], abs=1e-6
    )
    learned = difference(0)
    learned.lambda_q1.data, learned.lambda_k1.data = torch.tensor([2.0]), torch.tensor([0.5])
    learned.lambda_q2.data, learned.lambda_k2.data = torch.tensor([-1.0]), torch.tensor([3.0])
    assert learned.factor.item() == pytest.approx(math.e - math.exp(-3) + 0.2)


def test_differential_attention() -> None:
    """The first map minus λ times the second, and what a head gives scaled by 1 - λ0."""
    scores = torch.tensor([[0, math.log(3)], [math.log(3), 0]])[None, None, :, None]
    seen = torch.ones(1, 1, 1, 1, 2, dtype=torch.bool)
    made = difference(0)
    near(made.weights(scores, seen)[0, 0, 0], [0.25 - 0.2 * 0.75, 0.75 - 0.2 * 0.25])
    near(made.scaled(torch.tensor([3.0, 4])), np.array([3, 4]) / math.sqrt(12.5) * 0.8)


def test_window_and_sinks() -> None:
    """The last two positions, and the first one."""
    of = seen_by(5)
    window = Window(window=2, sinks=1)
    seen = of.seen & attention.in_window(window, of.queries, of.keys)
    expected = [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 1, 1, 0],
        [1, 0, 0, 1, 1],
    ]
    near(seen[0, 0].long(), expected)


def test_positions_towards_sinks_are_those_of_the_cache() -> None:
    """The paper's example: of tokens 0-3 and 6-9, the last one is at position 7, not 9."""
    of = seen_by(10)
    (move,) = attention.beyond_sinks(Window(window=4, sinks=4), of.queries, of.keys)
    near(move.queries[0], [0] * 8 + [-1, -2])
    near(move.where[0, 0, 0].long(), [1] * 4 + [0] * 6)
    assert attention.beyond_sinks(Window(window=6, sinks=4), of.queries, of.keys) == []


def test_strided() -> None:
    """The last three positions, and every third before them."""
    of = seen_by(8)
    seen = of.seen & attention.in_stride(Strided(every=3), of.queries, of.keys)
    near(seen[0, 0, 7].long(), [0, 1, 0, 0, 1, 1, 1, 1])
    near(seen[0, 0, 2].long(), [1, 1, 1, 0, 0, 0, 0, 0])


def test_log_n() -> None:
    """Log n / log of the tokens in the training, for the n tokens that are seen."""
    seen = torch.ones(256, 256, dtype=torch.bool).tril()[None, None]
    found = attention.log_n(seen, 16)[0, 0, :, 0]
    near(found[[0, 3, 15, 255]], [0, 0.5, 1, 2])


def test_adaptive_temperature() -> None:
    """The authors' polynomial of the entropy; nothing changes at an entropy of at most 0.5."""
    scores = torch.tensor([3.0, 2.5, 2, 1.5, 1, 0.5, 0, -0.5])
    weights = np.exp(scores.numpy()) / np.exp(scores.numpy()).sum()
    entropy = -(weights * np.log(weights)).sum()
    times = np.polyval([-0.037, 0.481, -2.3, 4.917, -1.791], entropy)
    assert entropy == pytest.approx(1.6104, abs=1e-4)
    assert times == pytest.approx(1.9225, abs=1e-3)
    sharp = np.exp(times * scores.numpy())
    every = torch.ones(8, dtype=torch.bool)
    near(attention.adaptive(scores, every), sharp / sharp.sum())
    sure = torch.tensor([5.0, 0.0])
    near(attention.adaptive(sure, every[:2]), torch.softmax(sure, dim=0))
    half = torch.tensor([True] * 4 + [False] * 4)
    assert not attention.adaptive(scores, half)[4:].any()
    near(attention.adaptive(scores, half)[:4], attention.adaptive(scores[:4], every[:4]))


def test_padding_sees_itself_alone() -> None:
    """So that no number is lost; no token sees it."""
    of = seen_by(4, torch.tensor([[0, 0, 1, 1]]))
    near(of.seen[0, 0].long(), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
    near(of.queries[0], [0, 0, 0, 1])


# weights in a model, with distances that are written down


def by_distance(model: Any, ids: Any, distance: Any, seen: Any, times: Any = 1) -> Any:
    """(H, T, T): the weights of the first layer, from the distance of each pair: softmax of the
    products of queries that are turned by it and of keys that are not, or with ALiBi's penalty.
    """
    layer = model.model.layers[0]
    states = layer.input_layernorm(model.model.embed_tokens(ids))
    heads, width = model.config.num_attention_heads, model.config.head_dim
    query, key = (
        project(states)[0].view(len(ids[0]), heads, width).double()
        for project in (layer.self_attn.q_proj, layer.self_attn.k_proj)
    )
    away = distance[..., None].double()
    frequencies = torch.zeros(width // 2) if model.model.bias else model.model.rotary_emb.inv_freq
    angle = (away * frequencies.double())[:, :, None]
    cosine, sine = angle.cos(), angle.sin()
    first, second = query[:, None].chunk(2, dim=-1)
    turned = torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    scores = (turned * key[None]).sum(dim=-1).permute(2, 0, 1) / width**0.5 * times
    if model.model.bias:  # of four heads
        scores = scores - torch.tensor([1 / 4, 1 / 16, 1 / 64, 1 / 256])[:, None, None] * distance
    return torch.softmax(scores.masked_fill(~seen, -torch.inf), dim=-1)


def dual_chunk(query: int, key: int) -> int:
    """The distance with 8 tokens in the training and so chunks of 6, as the paper defines it."""
    if query // 6 == key // 6:
        return query - key
    if query // 6 == key // 6 + 1:
        return min(query % 6 + 6, 7) - key % 6
    return 7 - key % 6


def streaming(query: int, key: int) -> int:
    """With a window of 5 and 2 sinks."""
    return min(query, 6) - key if key < 2 else query - key


def streaming_sees(query: int, key: int) -> bool:
    return key <= query and (query - key < 5 or key < 2)


@pytest.mark.parametrize(
    ("given", "distance_of", "sees"),
    [
        ({}, lambda query, key: query - key, lambda query, key: key <= query),
        ({"positions": "alibi"}, lambda query, key: query - key, lambda query, key: key <= query),
        ({"stretch": "dual_chunk"}, dual_chunk, lambda query, key: key <= query),
        (
            {"stretch": {"rerope": 5}},
            lambda query, key: min(query - key, 5),
            lambda query, key: key <= query,
        ),
        (
            {"stretch": {"leaky_rerope": {"window": 5, "slower": 4}}},
            lambda query, key: min(query - key, 5 + (query - key - 5) / 4),
            lambda query, key: key <= query,
        ),
        (
            {"attention": {"window": 5, "sinks": 2}},
            streaming,
            streaming_sees,
        ),
        (
            {"attention": {"window": 5, "sinks": 2}, "positions": "alibi"},
            streaming,
            streaming_sees,
        ),
    ],
    ids=["softmax", "alibi", "dual_chunk", "rerope", "leaky", "window", "window with alibi"],
)
@pytest.mark.parametrize("temperature", ["none", "log_n"])
def test_weights_by_distance(
    given: dict[str, Any],
    distance_of: Callable[[int, int], float],
    sees: Callable[[int, int], bool],
    temperature: str,
) -> None:
    """Every pair of 21 tokens, from a distance that is worked out for it alone."""
    model = model_of(given | {"temperature": temperature}, trained=8)
    ids = ids_of(1, 21)
    distance, seen = (
        torch.tensor([[of(query, key) for key in range(21)] for query in range(21)])
        for of in (distance_of, sees)
    )
    times = seen.sum(dim=1, keepdim=True).log() / math.log(8)
    expected = by_distance(model, ids, distance, seen, times if temperature == "log_n" else 1)
    near(model(ids, output_attentions=True).attentions[0][0], expected.detach(), 1e-4)


def test_dual_chunk_of_the_paper() -> None:
    """Its figure has 12 tokens, chunks of 6 and a training of 10: 6, 7, 8, 9, 9, 9. Chunks of a
    training of 9 are of 6 tokens too.
    """
    assert Chunks(9).size == 6
    (before, _) = Chunks(9).bands(np.arange(12), np.arange(12))
    assert before.queries[6:].tolist() == [6, 7, 8, 8, 8, 8]
    assert before.keys.tolist() == [0, 1, 2, 3, 4, 5] * 2
    assert before.where[8].tolist() == [True] * 6 + [False] * 6


def test_dual_chunk_changes_nothing_within_a_chunk() -> None:
    """12 of 16 tokens are in the first one."""
    plain, stretched = model_of({}), model_of({"stretch": "dual_chunk"})
    near(stretched(ids_of(1, 12)).logits, plain(ids_of(1, 12)).logits.detach())
    far = stretched(ids_of(1, 40)).logits - plain(ids_of(1, 40)).logits
    assert far.abs().max() > 0.1


@pytest.mark.parametrize(
    ("given", "theirs"),
    [
        ({"linear": 2}, {"rope_type": "linear", "factor": 2.0}),
        ({"yarn": 4}, {"rope_type": "yarn", "factor": 4.0}),
        ({"dynamic_ntk": 2}, {"rope_type": "default", "rope_theta": 5000 * 5.25 ** (16 / 14)}),
        ({"ntk": 2}, {"rope_type": "default", "rope_theta": 5000 * 2 ** (16 / 14)}),
    ],
    ids=["linear", "yarn", "dynamic_ntk", "ntk"],
)
def test_stretched_models_are_those_of_transformers(
    given: dict[str, float], theirs: dict[str, Any]
) -> None:
    """Llama with the same weights and with scaled rotary positions."""
    import transformers

    model = model_of({"positions": {"rope": {"base": 5000}}, "stretch": given})
    config = transformers.LlamaConfig(
        vocab_size=60,
        hidden_size=64,
        intermediate_size=model.config.intermediate_size,
        num_hidden_layers=2,
        num_attention_heads=4,
        tie_word_embeddings=True,
        max_position_embeddings=64,
        rope_parameters={"rope_theta": 5000.0, "original_max_position_embeddings": 16} | theirs,
    )
    llama = transformers.LlamaForCausalLM(config).eval()
    llama.load_state_dict(model.state_dict())
    near(model(ids_of(2, 50)).logits, llama(ids_of(2, 50)).logits.detach(), 1e-3)
    plain = model_of({"positions": {"rope": {"base": 5000}}})
    assert (model(ids_of(2, 50)).logits - plain(ids_of(2, 50)).logits).abs().max() > 0.1


def test_dynamic_ntk_grows_with_the_tokens_of_a_row() -> None:
    """In one layer each token that is asked is the end of a pass over all before it, and a row is
    what it is alone. A row of the trained length is as it was.
    """
    given = {"layers": 1, "stretch": {"dynamic_ntk": 2}}
    model, plain = model_of(given), model_of({"layers": 1})
    rows = [ids_of(1, 30)[0], ids_of(2, 14)[1]]
    ids, mask = (torch.zeros((2, 30), dtype=torch.long) for _ in range(2))
    for place, row in enumerate(rows):
        ids[place, 30 - len(row) :], mask[place, 30 - len(row) :] = row, 1
    together = model(ids, attention_mask=mask).logits[:, -1]
    alone = torch.stack([model(row[None]).logits[0, -1] for row in rows])
    near(together, alone.detach(), 1e-3)
    near(alone[1], plain(rows[1][None]).logits[0, -1].detach(), 1e-3)
    past = model(rows[0][None, :20], use_cache=True).past_key_values
    for end in range(21, 31):
        output = model(rows[0][None, end - 1 : end], past_key_values=past, use_cache=True)
        whole = model(rows[0][None, :end]).logits[0, -1]
        near(output.logits[0, -1], whole.detach(), 1e-3)


# what heads give


def test_the_gate_of_heads() -> None:
    """What heads give is multiplied by the sigmoid of a map of the states: of 0 by a half."""
    for of in ("numbers", "heads"):
        gated, plain = model_of({"gate": {"sigmoid": of}}), model_of({})
        plain.load_state_dict(gated.state_dict(), strict=False)
        for layer in range(2):
            gated.model.layers[layer].self_attn.gate.weight.data.zero_()
            plain.model.layers[layer].self_attn.o_proj.weight.data.mul_(0.5)
        near(gated(ids_of(1, 9)).logits, plain(ids_of(1, 9)).logits.detach(), 1e-4)
        assert (
            gated.model.layers[0].self_attn.gate.weight.shape[0] == {"heads": 4, "numbers": 64}[of]
        )


def test_differential_attention_has_half_the_heads() -> None:
    """Each with two queries of the width of a head of others, and with as many weights in all."""
    plain, other = model_of({}), model_of({"attention": "differential"})
    layer = other.model.layers[0].self_attn
    assert (layer.head_dim, other.config.num_attention_heads) == (32, 2)
    assert layer.weigher.scaling == plain.model.layers[0].self_attn.weigher.scaling == 16**-0.5
    matrices = [
        sum(one.numel() for one in model.parameters() if one.dim() > 1) for model in (plain, other)
    ]
    assert matrices[0] == matrices[1]


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


# the loss


def test_seq_vcr() -> None:
    """Two rows at one place: each variance is 2, and so is the covariance."""
    variance, covariance = losses.seq_vcr(torch.tensor([[[0.0, 0]], [[2, 2]]]))
    assert variance.item() == 0
    assert covariance.item() == pytest.approx((2**2 + 2**2) / 2)
    variance, covariance = losses.seq_vcr(torch.tensor([[[0.0, 5]], [[1, 5]]]))
    narrow = (1 - math.sqrt(0.501)) + (1 - math.sqrt(0.001))
    assert variance.item() == pytest.approx(narrow / 2, abs=1e-6)
    assert covariance.item() == 0


def test_seq_vcr_of_padded_rows() -> None:
    """Places are told apart, and what is padding counts for nothing."""
    states = torch.randn(3, 5, 4)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 0, 0, 0]])
    terms = [losses.seq_vcr(states[:, :2]), losses.seq_vcr(states[:2, 2:3])]
    for one, (whole, pair) in zip(
        losses.seq_vcr(states, mask), zip(*terms, strict=True), strict=True
    ):
        near(one, (2 * whole + pair).item() / 3)
    loss, _ = losses.seq_vcr(states.requires_grad_(), mask)
    (slopes,) = torch.autograd.grad(loss, states)
    assert slopes[0, 0].any()
    assert not slopes[mask == 0].any()
    alone = losses.seq_vcr(states[:1])
    assert [one.item() for one in alone] == [0, 0]


def test_the_loss_of_a_variant() -> None:
    """Both terms with their weights, of the layer that is named, or of the last but one."""
    states = [torch.randn(4, 6, 64) * scale for scale in (0.5, 0.3, 0.1)]
    for given, layer in (({}, 1), ({"layer": 2}, 2), ({"layer": 1}, 1)):
        loss = {"seq_vcr": given | {"variance": 2, "covariance": 0.5}}
        config = model_of({"loss": loss}).config
        assert isinstance(config.read.loss, SeqVcr)
        variance, covariance = losses.seq_vcr(states[layer])
        found = losses.extra_loss(config, states)
        assert found.item() == pytest.approx((2 * variance + 0.5 * covariance).item())
    assert losses.extra_loss(model_of({}).config, states).item() == 0


@pytest.mark.parametrize("kind", [Differential, Relu])
def test_what_is_asked_is_what_is_named(kind: type[Any]) -> None:
    """Other attention gives other logits from the same weights."""
    plain, other = model_of({}), model_of({"attention": kind.name})
    assert isinstance(other.config.read.positions, Rope)
    apart = (plain(ids_of(1, 9)).logits - other(ids_of(1, 9)).logits).abs().max()
    assert apart > 0.1
