"""Model folders that somebody damaged or made with bad intent: one clear line, and no code runs."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from eyechart.providers.base import ModelSettings, Request, SetupError, StopRunError
from eyechart.providers.hf.files import files_in
from eyechart.providers.in_process import model_files
from eyechart.providers.tiny import provider as tiny_provider
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import SHIPPED
from eyechart.providers.tiny.runtime import TinyModel
from tests.conftest import Lab
from tests.small_models import write_model

Change = Callable[[Path], object]
PROBE = ("--task", "counting/ones", "--axis", "separator=none", "--lengths", "5", "--samples", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped model."""
    made = tmp_path / "model"
    made.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(SHIPPED / name, made / name)
    return made


def read(folder: Path, prompt: str) -> None:
    """Loads the model, and computes a prompt."""

    async def ask() -> None:
        provider = tiny_provider.open_provider(ModelSettings(str(folder)))
        try:
            await provider.complete(Request(prompt, max_tokens=1))
        finally:
            await provider.aclose()

    asyncio.run(ask())


def edit(path: Path, **changes: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | changes), encoding="utf-8")


def refused(folder: Path, *words: str, prompt: str = "count 1") -> None:
    """Asserts that reading the folder is refused with one line, which has all of `words`."""
    with pytest.raises(SetupError) as caught:
        read(folder, prompt)
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert "\n" not in said
    assert len(said) < 700


@pytest.mark.parametrize("value", [-1, 0, True, None, "x", 2.5, float("nan"), 1e999, 10**400, []])
@pytest.mark.parametrize(
    "name",
    ["num_hidden_layers", "hidden_size", "vocab_size", "max_position_embeddings"],
)
def test_sizes_that_are_none(folder: Path, name: str, value: object) -> None:
    edit(folder / "config.json", **{name: value})
    refused(folder, "config.json", name)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"num_attention_heads": "x"}, "num_attention_heads must be a whole number"),
        ({"num_key_value_heads": 0}, "num_key_value_heads must be a whole number"),
        ({"head_dim": 3}, "head_dim to 3"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps must be a finite number above 0, not nan"),
        ({"rms_norm_eps": 10**400}, "rms_norm_eps must be a finite number"),
        ({"rope_parameters": {"rope_theta": 1}}, "rope_theta must be a finite number above 1"),
        ({"rope_parameters": {"rope_theta": [2]}}, "rope_theta must be a finite number above 1"),
        ({"rope_parameters": "x"}, "rope_parameters to 'x'"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings to 'no'"),
        ({"eos_token_id": [[1]]}, "eos_token_id must be a whole number"),
        ({"architectures": ["x" * 10**6]}, "architectures"),
        ({"auto_map": {"AutoConfig": "code.Config"}}, "auto_map"),
        ({"num_hidden_layers": 10**9}, "has no 'model.layers.4"),
        ({"hidden_size": 10**9}, "has shape"),
        ({"num_hidden_layers": 2}, "model.layers.2"),  # was measured without its last layers
    ],
)
def test_settings_that_are_none(folder: Path, changes: dict[str, Any], named: str) -> None:
    edit(folder / "config.json", **changes)
    refused(folder, named)


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_loop(path: Path) -> None:
    path.symlink_to(path.name)


def as_hole(path: Path) -> None:
    path.write_bytes(b"{")
    os.truncate(path, 1 << 36)


def as_depth(path: Path) -> None:
    path.write_bytes(b"[" * 100_000)


@pytest.mark.parametrize(
    "name",
    ["config.json", "generation_config.json", "tokenizer_config.json", "chat_template.jinja"],
)
@pytest.mark.parametrize("change", [as_pipe, Path.mkdir, as_loop, as_hole, as_depth])
def test_files_that_are_none(folder: Path, name: str, change: Change) -> None:
    """A pipe was waited for without end, a hole of 64 GB was read, deep JSON was a traceback."""
    if name == "chat_template.jinja" and change is as_depth:
        pytest.skip("a template is no JSON")
    (folder / name).unlink(missing_ok=True)
    change(folder / name)
    refused(folder, name if change is not Path.mkdir else str(folder))


def test_weights_that_cannot_be_read_say_why(folder: Path) -> None:
    """Saving the model again would not help; damaged ones ask for that."""
    weights = folder / "model.safetensors"
    weights.write_bytes(b"damaged")
    with pytest.raises(SetupError, match=r"is damaged .* save the model again"):
        files_in(str(folder))
    weights.unlink()
    weights.mkdir()
    with pytest.raises(SetupError, match=r"cannot be read: \w+ \w+"):
        files_in(str(folder))


def test_weights_larger_than_their_config_are_not_read(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 1 << 36)
    refused(folder, "model.safetensors", "68,719,476,736 bytes")


def test_weights_that_cannot_be_computed_with(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"model.more": np.zeros(2, np.float32)}, path)
    refused(folder, "model.more")
    norm = tensors["model.norm.weight"].copy()
    norm[3] = np.nan
    save_file(tensors | {"model.norm.weight": norm}, path)
    refused(folder, "model.norm.weight", "not finite")


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_pickled_weights_are_never_read(folder: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Bomb(folder / "created")))
    refused(folder, "model.safetensors")
    assert not (folder / "created").exists()


def test_a_window_takes_no_memory_before_a_prompt_needs_it(tmp_path: Path) -> None:
    """The rotations of 2,147,483,647 positions would be 64 GB; those of a long prompt are made
    when it comes, and are the same.
    """
    wide = TinyModel.load(write_model(tmp_path, max_position_embeddings=2_147_483_647))
    before = len(wide._rotations)
    narrow = TinyModel.load(write_model(tmp_path, max_position_embeddings=before + 100))
    ids = [7] * (before + 50)
    np.testing.assert_array_equal(wide.logits(ids)[-1], narrow.logits(ids)[-1])
    assert before < len(wide._rotations) <= 2 * before


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"chat_template": [1, {}]}, "has no chat template"),
        ({"chat_template": "{{ 1 // 0 }}"}, "the chat template fails"),
        ({"chat_template": "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}"}, "template fails"),
        ({"chat_template": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"}, "is wrong"),
        ({"chat_template": "{% for i in range(10 ** 9) %}x{% endfor %}"}, "the chat template"),
        ({"bos_token": {}, "chat_template": "{{ bos_token + 1 }}"}, "the chat template fails"),
    ],
)
def test_chat_templates_that_fail(folder: Path, changes: dict[str, Any], named: str) -> None:
    edit(folder / "tokenizer_config.json", **changes)
    refused(folder, named)


def test_a_chat_template_that_adds_too_much(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "_MOST_ADDED", 1000)
    edit(folder / "tokenizer_config.json", chat_template="{% for i in range(2000) %}x{% endfor %}")
    refused(folder, "2,000 characters of a prompt of 7")


def test_a_tokenizer_of_another_model(folder: Path, lab: Lab) -> None:
    """Also where it is asked, by `bench run`."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    for text in list(vocabulary)[50:]:
        vocabulary[text] += 100_000
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    refused(folder, "the model has 346 tokens")
    asked = lab.bench("run", *PROBE, "--model", f"tiny/{folder}", "--out", str(lab.out))
    assert asked.code == 2
    assert asked.err.strip().splitlines()[-1].startswith("bench: the tokenizer makes the token 100")


def test_an_expression_that_takes_too_long(folder: Path) -> None:
    """The library gives up with a panic of its Rust code, which is no `Exception`."""
    pattern = {"type": "Replace", "pattern": {"Regex": "(1+1+)+2"}, "content": ""}
    edit(folder / "tokenizer.json", normalizer=pattern)
    refused(folder, "the tokenizer of", "retry-limit", prompt="1" * 100)


def test_a_template_without_an_end_does_not_keep_the_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing waits for a bounded time for the thread that renders it."""
    entered, leave = threading.Event(), threading.Event()

    def endless(*_: object) -> list[list[int]]:
        entered.set()
        leave.wait(60)
        return [[1]]

    monkeypatch.setattr(Chat, "ids", endless)
    monkeypatch.setattr(tiny_provider, "_PATIENCE_S", 0.01)

    async def main() -> bool:
        provider = tiny_provider.open_provider(ModelSettings(str(folder)))
        asked = asyncio.create_task(provider.complete(Request("a", 4)))
        await asyncio.to_thread(entered.wait, 60)
        await provider.aclose()
        still = not asked.done()
        leave.set()
        with pytest.raises(StopRunError):
            await asked
        return still

    assert asyncio.run(main())
