"""What the bridge needs of lm-eval, without lm-eval: its modules, and models that say what they are
told to.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pytest

END = 0
"""The token that ends a reply; all others are a character's number."""
PAD = 1

Script: TypeAlias = Callable[[str], tuple[str, str] | BaseException]
"""Prompt -> what the model generates and how it ends (stop or length), or what it fails with."""


@dataclass
class Instance:
    """One request, as lm-eval has it."""

    request_type: str
    doc: dict[str, Any]
    arguments: tuple[str, dict[str, Any]]
    idx: int


class Base:
    """What every model of lm-eval's is made by."""

    @classmethod
    def create_from_arg_obj(cls, args: dict[str, Any], more: dict[str, Any] | None = None) -> Any:
        return cls(**args, **(more or {}))


class Plain(Base):
    """A model of which only texts are known, as most of the rarer types."""

    script: ClassVar[Callable[[str], str | None]] = staticmethod(lambda _prompt: "Final answer: 2")
    made: ClassVar[list[Plain]] = []

    def __init__(self, **args: Any) -> None:
        self.args = args
        self.asked: list[list[tuple[str, dict[str, Any]]]] = []
        Plain.made.append(self)

    def generate_until(self, requests: Sequence[Instance]) -> list[str | None]:
        self.asked.append([request.arguments for request in requests])
        return [type(self).script(request.arguments[0]) for request in requests]


class Engine(Base):
    """As lm-eval's `vllm`: lists of tokens go in, tokens and a finish reason come out."""

    script: ClassVar[Script] = staticmethod(lambda _prompt: ("Final answer: 2", "stop"))
    made: ClassVar[list[Engine]] = []
    template: ClassVar[str | None] = "<{}>"
    system: ClassVar[bool] = True

    def __init__(
        self, pretrained: str, batch_size: int = 1, max_length: int = 400, **args: Any
    ) -> None:
        self.args = {"pretrained": pretrained, **args}
        self.batch_size = batch_size
        self.max_length = max_length
        self.batches: list[list[str]] = []
        self.wanted: list[dict[str, Any]] = []
        self.scored: list[list[tuple[str, Any]]] = []
        Engine.made.append(self)

    def apply_chat_template(self, history: list[dict[str, str]]) -> str:
        if self.template is None:
            raise ValueError("tokenizer.chat_template is not set")
        shown = [one["content"] for one in history if self.system or one["role"] != "system"]
        return self.template.format("|".join(shown))

    modify_gen_kwargs = None
    """Says that each request has its own arguments."""

    def tok_encode(self, text: str) -> list[int]:
        return [ord(sign) for sign in text]

    def tok_decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(token) for token in tokens if token not in (END, PAD))

    def _model_generate(
        self, *, requests: list[list[int]], sampling_params: list[int]
    ) -> list[Any]:
        rows = []
        for ids, most in zip(requests, sampling_params, strict=True):
            said, finish = self.says(self.tok_decode(ids))
            tokens = [*map(ord, said), *([END] if finish == "stop" else [])]
            if len(tokens) > most:
                tokens, finish = tokens[:most], "length"
            one = types.SimpleNamespace(token_ids=tokens, finish_reason=finish)
            rows.append(types.SimpleNamespace(outputs=[one]))
        return rows

    def says(self, prompt: str) -> tuple[str, str]:
        said = type(self).script(prompt)
        if isinstance(said, BaseException):
            raise said
        return said

    def loglikelihood(
        self, requests: Sequence[Instance], disable_tqdm: bool = False
    ) -> list[tuple[float, bool]]:
        """Each character of what goes on is worth -1."""
        assert disable_tqdm
        pairs = [request.arguments for request in requests]
        self.scored.append(pairs)
        for before, _ in pairs:
            self.says(before)
        return [(-float(len(after)), False) for _, after in pairs]

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = False) -> list[str]:
        assert disable_tqdm
        assert len(requests) <= self.batch_size
        order = sorted(range(len(requests)), key=lambda place: -len(requests[place].arguments[0]))
        asked = [requests[place].arguments for place in order]
        self.batches.append([prompt for prompt, _ in asked])
        self.wanted += [wanted for _, wanted in asked]
        texts = self.texts(asked)
        return [text for _, text in sorted(zip(order, texts, strict=True))]

    def texts(self, asked: list[tuple[str, dict[str, Any]]]) -> list[str]:
        made = self._model_generate(
            requests=[self.tok_encode(prompt) for prompt, _ in asked],
            sampling_params=[wanted["max_gen_toks"] for _, wanted in asked],
        )
        return [
            self.cut(self.tok_decode(row.outputs[0].token_ids), wanted["until"])
            for row, (_, wanted) in zip(made, asked, strict=True)
        ]

    def cut(self, text: str, until: list[str]) -> str:
        for stop in until:
            text = text.split(stop, maxsplit=1)[0]
        return text


class Transformers(Engine):
    """As lm-eval's `hf`: padded rows go in, longer rows come out; nobody says how they ended."""

    eot_token_id = END
    backend = "causal"
    tok_batch_encode = None
    """Says that a batch has one set of arguments."""
    tokenizer = types.SimpleNamespace(pad_token_id=PAD)

    def __getattribute__(self, name: str) -> Any:
        if name == "modify_gen_kwargs":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def _model_generate(  # type: ignore[override]
        self, *, context: Any, attention_mask: Any, max_length: int, stop: list[str], **more: Any
    ) -> Any:
        assert not more or more == {"stop_strings": stop, "tokenizer": self.tokenizer}
        rows = []
        for ids, kept in zip(context.tolist(), attention_mask.tolist(), strict=True):
            prompt = self.tok_decode([one for one, keep in zip(ids, kept, strict=True) if keep])
            said, finish = self.says(prompt)
            rows.append([*ids, *map(ord, said), *([END] if finish == "stop" else [])][:max_length])
        width = max(map(len, rows))
        return np.array([[*row, *[PAD] * (width - len(row))] for row in rows])

    def texts(self, asked: list[tuple[str, dict[str, Any]]]) -> list[str]:
        prompts = [self.tok_encode(prompt) for prompt, _ in asked]
        wanted = asked[0][1]
        assert all(other == wanted for _, other in asked)
        width = max(map(len, prompts))
        assert width + wanted["max_gen_toks"] <= self.max_length, "this would be cut"
        made = self._model_generate(
            context=np.array([[PAD] * (width - len(ids)) + ids for ids in prompts]),
            attention_mask=np.array([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts]),
            max_length=width + wanted["max_gen_toks"],
            stop=wanted["until"],
        )
        return [self.cut(self.tok_decode(row[width:]), wanted["until"]) for row in made.tolist()]


class TemplateAPI(Base):
    """What asks a server for completions, as lm-eval's `local-completions`."""

    def __init__(
        self,
        model: str = "m",
        base_url: str | None = None,
        tokenizer_backend: str | None = "huggingface",
        timeout: int = 300,
        max_length: int = 400,
        **args: Any,
    ) -> None:
        assert args.pop("batch_size") == 1
        self.args = args
        self.model = model
        self.base_url = base_url
        self.tokenizer = None if tokenizer_backend == "none" else object()
        self.tokenized_requests = self.tokenizer is not None
        self.add_bos_token = False
        self.max_length = max_length
        self.timeout = timeout
        self.verify_certificate = True
        self.eos_string = None
        self._seed = 1234
        self.header = {"Authorization": f"Bearer {args.get('auth_token', '')}"}

    def apply_chat_template(
        self,
        history: list[dict[str, str]],
        add_generation_prompt: bool = True,  # noqa: ARG002
    ) -> Any:
        return history

    def create_message(self, messages: list[Any]) -> Any:
        return messages[0]

    def tok_encode(self, text: str, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        return [ord(sign) for sign in text]

    def model_call(self, messages: Any, **_: Any) -> Any:
        raise NotImplementedError

    def _create_payload(self, messages: Any, **wanted: Any) -> dict[str, Any]:
        return {"prompt": messages, **self.sampling(**wanted)}

    def sampling(
        self, *, generate: bool, gen_kwargs: dict[str, Any], seed: int, eos: str | None = None
    ) -> dict[str, Any]:
        assert generate
        until = gen_kwargs.pop("until", [])
        return {
            "model": self.model,
            "max_tokens": gen_kwargs["max_gen_toks"],
            "temperature": gen_kwargs["temperature"],
            "stop": until + ([eos] if eos else []),
            "seed": seed,
        }


class Chat(TemplateAPI):
    """As lm-eval's `local-chat-completions`."""

    def _create_payload(self, messages: Any, **wanted: Any) -> dict[str, Any]:
        assert isinstance(messages, list)
        return {"messages": messages, **self.sampling(**wanted)}


class Warm(Chat):
    """One that asks at a temperature of its own, as `openai-chat-completions` does some models."""

    def sampling(self, **wanted: Any) -> dict[str, Any]:
        return {**super().sampling(**wanted), "temperature": 1}


class Own(Chat):
    """One that sends its requests itself, as `litellm` does."""

    said: ClassVar[Any] = None

    def model_call(self, messages: Any, **_: Any) -> Any:
        assert messages[0][-1]["role"] == "user"
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said


class Gguf(Plain):
    """As lm-eval's `gguf`."""

    def __init__(self, base_url: str, **_: Any) -> None:
        super().__init__()
        self.base_url = base_url

    def gguf_completion(self) -> None:
        raise NotImplementedError


class Broken(Base):
    def __init__(self, **_: Any) -> None:
        raise RuntimeError("weights.bin is\nno file of weights")


class Lacking(Base):
    def __init__(self, **_: Any) -> None:
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")


@dataclass
class FakeLmEval:
    """The tree, and the models that were made by it."""

    models: dict[str, type] = field(
        default_factory=lambda: {
            "plain": Plain,
            "engine": Engine,
            "hf": Transformers,
            "local-completions": TemplateAPI,
            "local-chat-completions": Chat,
            "warm": Warm,
            "own": Own,
            "gguf": Gguf,
            "broken": Broken,
            "lacking": Lacking,
        }
    )

    def engine(self) -> Engine:
        """The only one that was made."""
        (made,) = Engine.made
        return made


def read(value: str) -> Any:
    """A value of a model argument, nearly as lm-eval reads it."""
    return int(value) if value.isdecimal() else value


def install(monkeypatch: pytest.MonkeyPatch) -> FakeLmEval:
    """Puts the tree where lm-eval would be, for one test."""
    fake = FakeLmEval()
    parts: dict[str, dict[str, Any]] = {
        "lm_eval": {},
        "lm_eval.models": {},
        "lm_eval.models.api_models": {"TemplateAPI": TemplateAPI},
        "lm_eval.api": {},
        "lm_eval.api.instance": {"Instance": Instance},
        "lm_eval.api.registry": {
            "MODEL_REGISTRY": fake.models,
            "get_model": fake.models.__getitem__,
        },
        "lm_eval._cli": {},
        "lm_eval._cli.utils": {"handle_cli_value_string": read},
    }
    for name, content in parts.items():
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata,
        "version",
        lambda name: "0.4.99" if name == "lm_eval" else version(name),
    )
    for kind in (Plain, Engine):
        monkeypatch.setattr(kind, "made", [])
    return fake
