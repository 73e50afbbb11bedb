"""Mechanisms of the laboratory against closed forms and numbers worked out by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from eyechart_lab.probe.distances import Chunks
from eyechart_lab.variants.choices import (
    Differential,
    Relu,
    Rope,
    SeqVcr,
    Strided,
    Window,
)
from lab.tests.test_variants_model import ids_of, model_of

if TYPE_CHECKING:
    import torch

    from eyechart_lab.variants.mechanisms import (
        attention,
        delta,
        losses,
        places,
    )
else:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from eyechart_lab.variants.mechanisms import (
        attention,
        delta,
        losses,
        places,
    )

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours


@pytest.fixture(autouse=True)
def _drawn_alike() -> None:
    torch.manual_seed(0)


def near(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=tolerance)


def seen_by(tokens: int, mask: Any = None) -> Any:
    return places.RowPositions.of(tokens, 0, mask, torch.device("cpu"))


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


def test_the_delta_rule() -> None:
    """Weights times values are what the recurrence gives, token by token, and what transformers has
    for a gate of 1; a token of padding changes no state.
    """
    from transformers.models.qwen3_next.modeling_qwen3_next import torch_recurrent_gated_delta_rule

    queries, keys, values = torch.randn(3, 2, 3, 9, 4)
    strength = torch.rand(2, 3, 9)
    is_token = torch.ones(2, 9, dtype=torch.bool)
    is_token[1, :3] = False
    of = seen_by(9, is_token.long())
    found = delta.DeltaRule.weights(
        torch.nn.functional.pad(queries, (0, 1)),
        torch.cat([keys, strength[..., None]], dim=-1),
        of.seen,
        of.is_token,
    )
    mine, its = (
        torch.nn.functional.normalize(torch.nn.functional.silu(one), dim=-1)
        for one in (queries, keys)
    )
    for row, head in itertools.product(range(2), range(3)):
        state = torch.zeros(4, 4)
        for at in range(9):
            if not is_token[row, at]:
                continue
            key, beta = its[row, head, at], strength[row, head, at]
            state = state @ (torch.eye(4) - beta * torch.outer(key, key))
            state = state + beta * torch.outer(values[row, head, at], key)
            near(found[row, head, at] @ values[row, head], state @ mine[row, head, at], 1e-5)
    theirs, _ = torch_recurrent_gated_delta_rule(
        *(one[:1].transpose(1, 2) for one in (mine * 2, its, values)),
        torch.zeros(1, 9, 3),
        strength[:1].transpose(1, 2),
        None,
        False,
    )
    near((found @ values)[:1].transpose(1, 2), theirs)


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


@pytest.mark.parametrize("first", [7, 9])
def test_without_positions_equal_tokens_have_equal_weights(first: int) -> None:
    """So no head of the first layer looks at the token itself or at the one before, as heads with
    rotary positions do, and none of any layer if all tokens are equal. Behind another token the
    states that come out of the first layer differ, and so do the weights of later ones.
    """
    row = torch.full((1, 24), 7)
    row[0, 0] = first
    order = np.arange(1, 25)[:, None]
    for given in ("none", "rope"):
        model = model_of({"positions": given, "layers": 3})
        for layer, weights in enumerate(model(row, output_attentions=True).attentions):
            mine = weights[0, :, 2:]
            apart = float((mine.diagonal(2, 1, 2) - mine.diagonal(1, 1, 2)).abs().max().detach())
            is_even = given == "none" and (first == 7 or layer == 0)
            assert apart < 1e-5 if is_even else apart > 1e-4
            if is_even and first == 7:
                near(weights[0], np.broadcast_to(np.tril(np.ones((24, 24))) / order, (4, 24, 24)))


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
