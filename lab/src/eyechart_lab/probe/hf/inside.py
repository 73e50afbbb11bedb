"""The inside of a Hugging Face model; see `eyechart_lab.probe.inside.Inside`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from inspect import signature
from typing import Any, Literal

import numpy as np

from eyechart.providers.base import Tokens

try:
    import torch
    import transformers

    from eyechart_lab.probe.hf import attention, loading, stream
    from eyechart_lab.probe.hf.attention import AttentionPass, to_numpy
    from eyechart_lab.probe.hf.turning import SecondRotation, turning_of
except ImportError as error:
    from eyechart.providers.base import SetupError
    from eyechart_lab.extras import install

    raise SetupError(
        f"models of hf/ and gguf/ need torch and transformers: {install('probe')}"
    ) from error

from eyechart.providers.base import ModelSettings, SetupError
from eyechart.providers.documents import as_document
from eyechart.providers.hf.files import ModelFiles, file_at, files_in
from eyechart.providers.in_process.model_files import (
    characters,
    check_ids,
    check_rendered,
    rendering,
    tokenizing,
)
from eyechart.providers.tiny.folder import model_folder
from eyechart_lab.probe.inside import (
    Anatomy,
    Array,
    Event,
    Precision,
    PromptCache,
    ReplacedState,
    Watcher,
    fitting,
)
from eyechart_lab.probe.intervention import Intervention
from eyechart_lab.probe.measures.states import shown_of

_NO_WINDOW = 1 << 30
"""Most tokens of a prompt, for models that give no limit."""


def open_inside(settings: ModelSettings) -> HfInside:
    """Loads the model in a folder; raises `SetupError` like `HfInside`."""
    files = files_in(settings.model, trust_remote_code=settings.trust_remote_code)
    return HfInside(files, settings)


def open_file(settings: ModelSettings) -> HfInside:
    """Loads the model in a GGUF file; raises `SetupError` like `HfInside`."""
    return HfInside(file_at(settings.model), settings)


def open_tiny(settings: ModelSettings) -> HfInside:
    """Loads `tiny`, or a model of its kind in a folder; raises `SetupError` like `HfInside`."""
    return HfInside(files_in(str(model_folder(settings.model))), settings)


class HfInside:
    """A causal language model of Hugging Face, one prompt at a time."""

    def __init__(
        self, files: ModelFiles, settings: ModelSettings, change: Intervention = Intervention()
    ) -> None:
        """Loads it.

        Raises:
            SetupError: it cannot be loaded, or its attention cannot be changed in this way.
        """
        self._files, self._folder = files, files.place
        model, self._tokenizer, self._is_watched = loading.load(files, settings)
        self._models: dict[Precision, Any] = {"float32": model}
        self._config = model.config.get_text_config()
        self._settings = settings
        self._change = change
        self._layers = stream.layers_of(model, self._config)
        self._keeps_logits = "logits_to_keep" in signature(type(model).forward).parameters
        self.anatomy = self._anatomy(model)
        self._turning: SecondRotation | None = None
        self._apply(model)
        self._turning = turning_of(self, change, self._trained_window)
        if change.scaling == "dynamic_ntk" or not self._can_share():
            self.anatomy = replace(self.anatomy, shares=False)
        self._sha256, self._config_sha256 = files.weights_sha256(), files.config_sha256()
        self._vocabulary = len(self._tokenizer)

    def facts(self) -> dict[str, object]:
        """The hashes of the weights and the config, and the libraries that compute."""
        return {
            "engine": f"transformers {transformers.__version__}, torch {torch.__version__}",
            "device": str(self._models["float32"].device),
            "weights_sha256": self._sha256[:16],
            "config_sha256": self._config_sha256 and self._config_sha256[:16],
            "vocabulary": self._vocabulary,
            **self._change.facts(),
        }

    def tokens(self, prompt: str) -> Tokens:
        """The prompt in the chat template, or as a text to continue if there is none."""
        text, is_chat = self._text(prompt)
        with tokenizing(self._folder):
            encoded = self._tokenizer(
                text, add_special_tokens=not is_chat, return_offsets_mapping=True
            )
        spans = characters(prompt, text, encoded["offset_mapping"])
        return fitting(Tokens(tuple(encoded["input_ids"]), spans), self.anatomy)

    def answer_ids(self, prompt: str, answer: str) -> tuple[int, ...]:
        text, is_chat = self._text(prompt)
        if not is_chat:
            text = f"{text} "
        with tokenizing(self._folder):
            before, whole = (
                self._tokenizer(one, add_special_tokens=not is_chat)["input_ids"]
                for one in (text.rstrip(" ") if not is_chat else text, text + answer)
            )
            ids = tuple(whole[len(before) :])
            if whole[: len(before)] != before:
                ids = tuple(self._tokenizer(answer, add_special_tokens=False)["input_ids"])
        return check_ids(ids, self.anatomy.vocabulary)

    def _text(self, prompt: str) -> tuple[str, bool]:
        """The text that the model gets, and whether a chat template made it."""
        if self._settings.api != "chat" or not self._tokenizer.chat_template:
            return as_document(prompt), False
        messages = [{"role": "user", "content": prompt}]
        if self._settings.system:
            messages.insert(0, {"role": "system", "content": self._settings.system})
        with rendering():
            text = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        return check_rendered(str(text), prompt), True

    def forward(
        self,
        ids: Sequence[int],
        watcher: Watcher | None = None,
        *,
        precision: Precision = "float32",
        last: int = 1,
        trunk: PromptCache | None = None,
        replaced: ReplacedState | None = None,
    ) -> Array:
        model = self._at(precision)
        trunk = trunk if self.anatomy.shares else None
        start = 0 if trunk is None else trunk.start(ids, last)
        cache = None if trunk is None else _beginning(trunk, start)
        with torch.inference_mode(), ExitStack() as hooks:
            if replaced is not None:
                layers = stream.layers_of(model, self._config)
                hooks.callback(stream.put_in(layers, replaced, replaced.place - start).remove)
            if watcher is not None:
                for handle in self._hooks(model, watcher, start, len(ids)):
                    hooks.callback(handle.remove)
            given = torch.tensor([list(ids[start:])], device=model.device)
            logits = self._run(model, watcher, last, cache, input_ids=given)
        if trunk is not None and trunk.kept is None:
            trunk.ids, trunk.kept = tuple(ids), cache
        rows: Array = to_numpy(logits[0, -last:])
        return rows

    def unembedded(self, states: Array) -> Array:
        model = self._at("float32")
        with torch.inference_mode():
            given = torch.from_numpy(states).to(model.device)
            rows: Array = to_numpy(stream.unembedded(model, self._norm_of(model), given))
        return rows

    def output_rows(self, tokens: Sequence[int]) -> Array:
        model = self._at("float32")
        with torch.inference_mode():
            rows: Array = to_numpy(stream.output_rows(model, self._norm_of(model), tokens))
        return rows

    def _norm_of(self, model: Any) -> Any:
        return stream.final_norm_of(model, stream.layers_of(model, self._config))

    def embedded(self, ids: Sequence[int]) -> Array:
        model = self._at("float32")
        with torch.inference_mode():
            rows: Array = to_numpy(
                model.get_input_embeddings()(torch.tensor(list(ids), device=model.device))
            )
        return rows

    def logits_of(self, embedded: Array) -> Array:
        model = self._at("float32")
        with torch.inference_mode():
            given = torch.from_numpy(embedded).to(model.device)[None]
            row: Array = to_numpy(self._run(model, None, inputs_embeds=given)[0, -1])
        return row

    def gradients(self, ids: Sequence[int], weights: Array) -> Array:
        """(T, C): derivative of `weights` times the last position's logits by each embedding.

        Attention weights are computed again on the way back, so memory grows with T, not T².
        """
        model = self._at("float32")
        given = torch.from_numpy(self.embedded(ids)).to(model.device)[None].requires_grad_()
        with torch.enable_grad():
            logits = self._run(model, None, inputs_embeds=given)[0, -1]
            total = (logits * torch.from_numpy(weights).to(logits)).sum()
            (slopes,) = torch.autograd.grad(total, given)
        rows: Array = to_numpy(slopes[0])
        return rows

    def matrices(self) -> Iterator[tuple[int, str, Array]]:
        for number, layer in enumerate(self._layers or ()):
            for name, module in layer.named_modules():
                kind = type(module).__name__
                if isinstance(module, torch.nn.Linear):
                    yield number, name.replace(".", "_"), to_numpy(module.weight.T)
                elif kind == "Conv1D" and hasattr(module, "nf"):
                    yield number, name.replace(".", "_"), to_numpy(module.weight)

    def close(self) -> None:
        self._models.clear()

    def changed(self) -> Any:
        """The model in float32, with the change in each pass that somebody else makes: also over
        rows that are padded on the left, as its argument `attention_mask` says.
        """
        model = self._at("float32")

        def begin(_module: Any, _args: Any, kwargs: Any) -> None:
            mask = kwargs.get("attention_mask")
            padding = [] if mask is None else (mask.cumsum(dim=1) == 0).sum(dim=1).tolist()
            attention.CURRENT.set(
                AttentionPass(self._change, turning=self._turning, padding=padding)
            )

        model.register_forward_pre_hook(begin, with_kwargs=True)
        return model

    def _at(self, precision: Precision) -> Any:
        """The model in this precision; that in bfloat16 is made when it is first asked for."""
        if precision not in self._models:
            model = loading.rounded(self._files, self._settings, is_watched=self._is_watched)
            self._apply(model)
            self._models[precision] = model
        return self._models[precision]

    def _run(
        self, model: Any, watcher: Watcher | None, last: int = 1, cache: Any = None, **given: Any
    ) -> Any:
        """(1, last, V): the logits of one pass; of all positions where the model knows no other."""
        if self._keeps_logits:
            given["logits_to_keep"] = last
        if cache is not None:
            given["past_key_values"] = cache
        token = attention.CURRENT.set(AttentionPass(self._change, watcher, self._turning))
        try:
            return model(**given, use_cache=cache is not None).logits
        finally:
            attention.CURRENT.reset(token)

    def _hooks(self, model: Any, watcher: Watcher, start: int, count: int) -> Iterator[Any]:
        """Hooks that pass the residual stream at the positions from `start` on to a watcher."""
        layers = stream.layers_of(model, self._config)
        norm = stream.final_norm_of(model, layers)
        shown = shown_of(watcher.wants, start, count)
        if layers is not None and (at := shown.get("residual")) is not None:

            def pass_on(number: int, states: Any) -> None:
                watcher.residual(number, at, to_numpy(states[0, at - start]))

            for number, layer in enumerate(layers):

                def enter(_module: Any, args: Any, kwargs: Any, number: int = number) -> None:
                    pass_on(number, args[0] if args else kwargs["hidden_states"])

                yield layer.register_forward_pre_hook(enter, with_kwargs=True)

            def leave(_module: Any, _args: Any, output: Any) -> None:
                pass_on(len(layers), output[0] if isinstance(output, tuple) else output)

            yield layers[-1].register_forward_hook(leave)
        if norm is not None and (of_norm := shown.get("final")) is not None:

            def normed(_module: Any, _args: Any, output: Any) -> None:
                watcher.final(of_norm, to_numpy(output[0, of_norm - start]))

            yield norm.register_forward_hook(normed)

    def _can_share(self) -> bool:
        """Whether passes that go on from the keys and values of another one give the same logits:
        tried, since architectures keep what they like.
        """
        ids = [token % self.anatomy.vocabulary for token in (5, 7, 5, 6, 5, 9)]
        trunk = PromptCache()
        try:
            self.forward([*ids[:4], 8 % self.anatomy.vocabulary], trunk=trunk)
            found = self.forward(ids, trunk=trunk)
            plain = self.forward(ids)
        except SetupError:
            raise
        except Exception:  # noqa: BLE001  each architecture fails in its own way
            return False
        return bool(np.allclose(found, plain, rtol=1e-3, atol=1e-3 * float(np.ptp(plain))))

    def _anatomy(self, model: Any) -> Anatomy:
        config = self._config
        heads = int(getattr(config, "num_attention_heads", 0) or 0)
        width = getattr(config, "head_dim", None) or (config.hidden_size // heads if heads else 0)
        missing: list[str] = []
        unavailable: set[Event | Literal["gradients", "matrices"]] = set()
        name = type(model).__name__
        if not self._is_watched:
            missing.append(
                f"{name}: its attention cannot be watched or changed, so attention, rotary "
                "positions and heads are left out"
            )
            unavailable |= {"attention", "heads", "projections"}
        if self._layers is None:
            missing.append(
                f"{name}: its layers were not found, so the stream and maps are left out"
            )
            unavailable |= {"residual", "matrices"}
        if stream.final_norm_of(model, self._layers) is None:
            missing.append(f"{name}: its final norm was not found")
            unavailable |= {"final"}
        turned = _rotary_modules(model)
        base = _rotary_base(config) if turned else None
        return Anatomy(
            architecture=name,
            layers=int(config.num_hidden_layers),
            hidden=int(config.hidden_size),
            heads=heads,
            key_heads=int(getattr(config, "num_key_value_heads", None) or heads),
            head_width=int(width),
            vocabulary=int(model.get_output_embeddings().weight.shape[0]),
            window=int(getattr(config, "max_position_embeddings", None) or _NO_WINDOW),
            rotary_base=base,
            rotary_width=2 * len(turned[0].inv_freq) if turned else 0,
            sliding_window=getattr(config, "sliding_window", None),
            missing=tuple(missing),
            unavailable=frozenset(unavailable),
        )

    def _apply(self, model: Any) -> None:
        """Changes the rotary positions of a model; raises `SetupError` where that is impossible."""
        change, anatomy = self._change, self.anatomy
        if change.facts() and not self._is_watched:
            raise SetupError(f"the attention of {anatomy.architecture} cannot be changed")
        if not change.is_rotary:
            return
        turned = _rotary_modules(model)
        if anatomy.rotary_base is None or any(
            getattr(one, "rope_type", "default") != "default" for one in turned
        ):
            raise SetupError(
                f"{anatomy.architecture} has no plain rotary positions that could be changed"
            )
        frequencies = change.frequencies(
            anatomy.rotary_base, anatomy.rotary_width, self._trained_window
        )
        for module in turned:
            module.inv_freq = torch.from_numpy(frequencies).to(module.inv_freq)
            module.attention_scaling = (
                getattr(module, "attention_scaling", 1.0) * change.rotary_size
            )

    @property
    def _trained_window(self) -> int:
        """Tokens of the training, as the config has them."""
        trained = getattr(self._config, "original_max_position_embeddings", None)
        return int(trained or self.anatomy.window)


def _beginning(trunk: PromptCache, start: int) -> Any:
    """The cache for a pass from the position `start` on, with what the trunk keeps before it."""
    cache = transformers.DynamicCache()  # without a config it drops nothing that is out of a window
    if trunk.kept is None:
        return cache
    for known in trunk.kept.layers:
        layer = copy(known)
        layer.keys, layer.values = (one[..., :start, :] for one in (known.keys, known.values))
        cache.layers.append(layer)
    return cache


def _rotary_modules(model: Any) -> list[Any]:
    """The modules that hold rotary frequencies, each once."""
    found = [one for one in model.modules() if getattr(one, "inv_freq", None) is not None]
    return list({id(one): one for one in found}.values())


def _rotary_base(config: Any) -> float:
    parameters = getattr(config, "rope_parameters", None) or {}
    if "rope_theta" not in parameters:  # of several kinds of layers
        nested = [one for one in parameters.values() if isinstance(one, dict)]
        parameters = nested[0] if nested else {}
    base = parameters.get("rope_theta") or getattr(config, "rope_theta", None) or 10_000.0
    return float(np.float64(base))
