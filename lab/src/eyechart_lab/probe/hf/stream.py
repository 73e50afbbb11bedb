"""The residual stream of a Hugging Face model: where it is, what its end makes of it, and a state
that is put into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from eyechart_lab.probe.inside import ReplacedState


def layers_of(model: Any, config: Any) -> Any | None:
    """The list of layers: the first list of modules whose length is the number of layers."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == config.num_hidden_layers:
            return module
    return None


def final_norm_of(model: Any, layers: Any | None) -> Any | None:
    """The norm after the layers: the last norm beside them."""
    if layers is None:
        return None
    for parent in model.modules():
        children = list(parent.children())
        if any(child is layers for child in children):
            norms = [one for one in children if "norm" in type(one).__name__.lower()]
            return norms[-1] if norms else None
    return None


def unembedded(model: Any, norm: Any, states: Any) -> Any:
    """(N, V): the logits of states (N, C); without a cap or a factor that some architectures add,
    which changes no order.
    """
    return model.get_output_embeddings()(norm(states))


def output_rows(model: Any, norm: Any, tokens: Sequence[int]) -> Any:
    """(K, C): see `Inside.output_rows`.

    A vector of mean 0 and size 1, its opposite, and one of equal numbers: what the norm makes of
    them shows its weights, whatever it calls them, and whether it takes the mean away.
    """
    weights = model.get_output_embeddings().weight
    signs = torch.ones(weights.shape[1]).to(weights)
    signs[1::2] = -1
    up, down, equal = norm(torch.stack([signs, -signs, signs.abs()]))
    gains = signs * (up - down) / 2
    rows = weights[list(tokens)] * gains
    if torch.allclose(equal, (up + down) / 2, atol=1e-3 * float(gains.abs().max())):
        rows = rows - rows.mean(dim=1, keepdim=True)
    return rows


def put_in(layers: Any, replaced: ReplacedState, place: int) -> Any:
    """A hook that puts a state into the stream, at this place of the positions of the pass.

    Raises:
        ValueError: the place lies before these positions.
    """
    if place < 0:
        raise ValueError("the place of a replaced state lies before the positions of the pass")

    def changed(states: Any) -> Any:
        states = states.clone()
        states[0, place] = torch.from_numpy(replaced.state).to(states)
        return states

    if replaced.layer == len(layers):

        def leave(_module: Any, _args: Any, output: Any) -> Any:
            is_tuple = isinstance(output, tuple)
            return (changed(output[0]), *output[1:]) if is_tuple else changed(output)

        return layers[-1].register_forward_hook(leave)

    def enter(_module: Any, args: Any, kwargs: Any) -> Any:
        if args:
            return (changed(args[0]), *args[1:]), kwargs
        return args, kwargs | {"hidden_states": changed(kwargs["hidden_states"])}

    return layers[replaced.layer].register_forward_pre_hook(enter, with_kwargs=True)
