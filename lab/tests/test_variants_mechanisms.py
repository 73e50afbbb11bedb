"""Mechanisms of the laboratory against closed forms and numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from eyechart_lab.variants.variant import (
    Differential,
    Relu,
    Rope,
    SeqVcr,
    Variant,
    Window,
)
from lab.tests.test_variants_model import ids_of, model_of

if TYPE_CHECKING:
    import torch

    from eyechart_lab.variants.mechanisms import (
        attention,
        losses,
        places,
        positions,
        stretch,
    )
else:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from eyechart_lab.variants.mechanisms import (
        attention,
        losses,
        places,
        positions,
        stretch,
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
    assert positions.slopes_of(heads) == pytest.approx([2**-power for power in powers])


def distances(tokens: int) -> Any:
    order = torch.arange(tokens)
    return (order[:, None] - order).clamp(min=0)[None]


def test_bias_of_alibi() -> None:
    found = positions.AlibiBias(4)(distances(5))
    assert found.shape == (1, 4, 5, 5)
    near(found[0, 0, 4], [-1, -0.75, -0.5, -0.25, 0])
    near(found[0, 3, 4, 0], -4 / 256)


def test_kernels_of_kerple() -> None:
    """Both kernels; their parameters stay in bounds; and distance 0 has a derivative."""
    log, power = (positions.KerpleBias(3, kernel) for kernel in ("log", "power"))
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
    many = positions.KerpleBias(4000, "power")
    many.reset()
    assert many.bias_p.min() >= 0
    assert many.bias_p.mean().item() == pytest.approx(1, abs=0.05)
    assert many.bias_a.mean().item() == pytest.approx(0.5, abs=0.03)


def test_sandwich_is_the_inner_product_of_sinusoids() -> None:
    """But for a constant, which no softmax sees, and for the divisor of a head."""
    found = positions.SandwichBias(2, 4)(distances(30))
    waves = positions.sinusoids(torch.arange(30)[None], 4)[0]
    expected = (waves @ waves.T - 2).tril()
    near(found[0, 0].tril(), expected.detach() / 4, 1e-4)
    near(found[0, 1].tril(), expected.detach() / 8, 1e-4)
    near(found[0, 0, 3, 0], (math.cos(3) + math.cos(0.03) - 2) / 4)


def test_draws_of_randomised_positions() -> None:
    """All subsets are equally likely, and sorted."""
    found = positions.drawn(torch.tensor([2]).expand(6000), 2, 4)
    counts = {
        pair: int((found == torch.tensor(pair)).all(dim=1).sum())
        for pair in itertools.combinations(range(4), 2)
    }
    assert sum(counts.values()) == 6000
    assert all(abs(count - 1000) < 4 * 29 for count in counts.values()), counts
    near(positions.drawn(torch.tensor([5]), 5, 5)[0], range(5))
    padded = positions.drawn(torch.tensor([3, 5]), 5, 40)
    near(padded[0, 3:], [39, 39])
    assert (padded.diff(dim=1)[1] > 0).all()


def test_asked_positions_are_where_draws_are_expected() -> None:
    """The mean of each order statistic over all subsets of 3 of 20 positions."""
    subsets = np.array(list(itertools.combinations(range(20), 3)))
    gap = torch.tensor([21 / 4])
    near(positions.spread(torch.arange(3)[None], gap)[0], subsets.mean(axis=0))
    near(positions.gap_of(torch.tensor([3, 23]), 39), [40 / 20, 1])


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
    ((by, where),) = attention.beyond_sinks(Window(window=4, sinks=4), of.queries, of.keys)
    near(by[0], [0] * 8 + [-1, -2])
    near(where[0, 0, 0].long(), [1] * 4 + [0] * 6)
    assert attention.beyond_sinks(Window(window=6, sinks=4), of.queries, of.keys) == []


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
    ids=["softmax", "alibi", "dual_chunk", "window", "window with alibi"],
)
@pytest.mark.parametrize("temperature", ["none", "log_n"])
def test_weights_by_distance(
    given: dict[str, Any],
    distance_of: Callable[[int, int], int],
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
    """Its figure has 12 tokens, chunks of 6 and a training of 10: 6, 7, 8, 9, 9, 9."""
    chunks = stretch.Chunks(10)
    chunks.size = 6
    of = seen_by(12)
    ((by, where),) = chunks.beyond(of.queries, of.keys)
    near(chunks.own(of.queries)[0], [0, 1, 2, 3, 4, 5] * 2)
    near((chunks.own(of.queries) + by)[0, 6:], [6, 7, 8, 9, 9, 9])
    near(where[0, 0].long()[8], [1] * 6 + [0] * 6)


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
        ({"ntk": 2}, {"rope_type": "default", "rope_theta": 5000 * 2 ** (16 / 14)}),
    ],
    ids=["linear", "yarn", "ntk"],
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
