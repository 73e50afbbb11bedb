"""The embedded model as a provider: many questions at once, on a small random model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from eyechart.providers.base import (
    BadReplyError,
    BadRequestError,
    ModelSettings,
    PromptOverflowError,
    Reply,
    Request,
    SetupError,
    StopRunError,
)
from eyechart.providers.tiny.provider import TinyProvider, open_provider
from eyechart.providers.tiny.runtime import TinyModel

SPECIAL = ["<unk>", "<bos>", "<eos>", "<user>", "<assistant>"]
VOCABULARY = [*SPECIAL, *(f"{space}{char}" for space in ("", " ") for char in "abcdef0123,?"), "\n"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}\n"
    "    {% if m['role'] == 'user' %}<user>{% else %}<assistant>{% endif %}{{ m['content'] }}"
    "{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}\n"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
WINDOW = 512


def write_model(folder: Path, *, eos_token_id: int | None = 2) -> None:
    width, forward, heads, size = 32, 48, 4, len(VOCABULARY)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": width,
        "intermediate_size": forward,
        "max_position_embeddings": WINDOW,
        "num_attention_heads": heads,
        "num_hidden_layers": 2,
        "num_key_value_heads": heads,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "vocab_size": size,
        "bos_token_id": 1,
        "eos_token_id": eos_token_id,
    }
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens": (size, width), "norm": (width,)}
    for layer in ("layers.0.", "layers.1."):
        shapes |= {f"{layer}self_attn.{name}_proj": (width, width) for name in "qkvo"}
        shapes |= {f"{layer}mlp.{name}_proj": (forward, width) for name in ("gate", "up")}
        shapes[f"{layer}mlp.down_proj"] = (width, forward)
        shapes[f"{layer}input_layernorm"] = shapes[f"{layer}post_attention_layernorm"] = (width,)
    draw = np.random.default_rng(0)
    tensors = {f"model.{name}.weight": draw.normal(0, 0.6, shape) for name, shape in shapes.items()}
    weights = {name: values.astype(np.float32) for name, values in tensors.items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))


def write_tokenizer(folder: Path, *, template: str | None = TEMPLATE) -> None:
    tokenizer = Tokenizer(
        models.WordPiece(
            {text: index for index, text in enumerate(VOCABULARY)},
            unk_token=SPECIAL[0],
            continuing_subword_prefix="",
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(
        Regex(r" ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]|\s"), "isolated"
    )
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<bos>",
        "eos_token": {"content": "<eos>", "__type": "AddedToken", "special": True},
        "unk_token": "<unk>",
        "clean_up_tokenization_spaces": False,
    }
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "small"
    made.mkdir()
    write_model(made)
    write_tokenizer(made)
    return made


def opened(folder: Path) -> TinyProvider:
    return open_provider(ModelSettings(str(folder)))


def ask(folder: Path, *requests: Request) -> list[Reply | BaseException]:
    async def main() -> list[Reply | BaseException]:
        provider = opened(folder)
        try:
            return await asyncio.gather(
                *(provider.complete(request) for request in requests), return_exceptions=True
            )
        finally:
            await provider.aclose()

    return asyncio.run(main())


def reply_to(folder: Path, request: Request) -> Reply:
    (reply,) = ask(folder, request)
    if not isinstance(reply, Reply):
        raise reply
    return reply


def test_reply_is_the_models(folder: Path) -> None:
    """Text, usage and finish reason are what the template, the tokenizer and the model give."""
    request = Request("a 0,1?\n", max_tokens=9)
    reply = reply_to(folder, request)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    prompt = tokenizer.encode("<bos><user>a 0,1?\n<assistant>", add_special_tokens=False).ids
    generated = TinyModel.load(folder).generate([prompt], [9])[0]
    assert reply.text == tokenizer.decode(list(generated.ids), skip_special_tokens=True)
    assert reply.finish_reason == generated.finish_reason
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.output_tokens) == (
        len(prompt),
        len(generated.ids),
    )
    assert reply.model == "small"


def test_end_token_counts_and_is_not_shown(folder: Path) -> None:
    """The end token is in output_tokens, as with vLLM, and not in the text."""
    free = reply_to(folder, Request("?", max_tokens=1))
    assert free.finish_reason == "length"
    assert free.text not in ("", "?")
    write_model(folder, eos_token_id=VOCABULARY.index(free.text))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens([free.text])
    tokenizer.save(str(folder / "tokenizer.json"))
    ended = reply_to(folder, Request("?", max_tokens=50))
    assert ended.finish_reason == "stop"
    assert ended.usage is not None
    assert ended.usage.output_tokens == 1
    assert ended.sure_stop
    assert ended.text == ""


def test_many_at_once(folder: Path) -> None:
    """200 concurrent questions each get their own answer, in few batches."""
    prompts = ["ab, " * (index % 40) + f" {index % 4}" for index in range(200)]
    requests = [Request(prompt, max_tokens=1 + index % 7) for index, prompt in enumerate(prompts)]
    replies = ask(folder, *requests)
    for index in range(0, 200, 17):
        assert replies[index] == reply_to(folder, requests[index])
    assert all(isinstance(reply, Reply) for reply in replies)


def test_batches_are_big(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits together is answered in one batch."""
    sizes: list[int] = []
    real = TinyModel.generate

    def counted(self: TinyModel, prompts: Any, *args: Any, **more: Any) -> Any:
        sizes.append(len(prompts))
        return real(self, prompts, *args, **more)

    monkeypatch.setattr(TinyModel, "generate", counted)
    ask(folder, *[Request("ab", max_tokens=2)] * 100)
    assert sizes == [100]


def test_overflow_costs_its_own_sample(folder: Path) -> None:
    """A prompt that fills the window is refused with both numbers; its neighbours are answered."""
    fits = "0" * (WINDOW - 4)
    replies = ask(
        folder, Request(fits + "1", 5), Request(fits, 5), Request("a", 5), Request("2" * 5000, 5)
    )
    assert isinstance(replies[0], PromptOverflowError)
    assert "512" in str(replies[0])
    assert "511" in str(replies[0])
    assert isinstance(replies[1], Reply)
    assert replies[1].usage is not None
    assert (replies[1].usage.prompt_tokens, replies[1].usage.output_tokens) == (511, 1)
    assert isinstance(replies[2], Reply)
    assert isinstance(replies[3], PromptOverflowError)


def test_a_reply_at_a_temperature_follows_from_its_seed(folder: Path) -> None:
    """It is the same in any batch, and another for another seed; near 0 it is the greedy one."""
    drawn = [Request("a b", 12, temperature=5.0, seed=seed) for seed in range(6)]
    texts = [reply.text for reply in ask(folder, *drawn) if isinstance(reply, Reply)]
    assert len(texts) == 6
    assert len(set(texts)) > 1
    assert [ask(folder, request)[0] for request in drawn] == ask(folder, *drawn)
    cold, greedy = ask(folder, Request("a b", 12, temperature=1e-9), Request("a b", 12))
    assert cold == greedy


def test_a_reply_of_no_tokens_costs_its_sample(folder: Path) -> None:
    """It is no reply."""
    assert isinstance(ask(folder, Request("a", 0))[0], BadRequestError)


def test_cancelled_caller_leaves_the_others(folder: Path) -> None:
    """One caller's cancellation, waiting or in a batch, is nobody else's matter."""

    async def main() -> None:
        provider = opened(folder)
        asked = [asyncio.create_task(provider.complete(Request("ab" * 20, 30))) for _ in range(40)]
        await asyncio.sleep(0)
        for task in asked[::3]:
            task.cancel()
        replies = await asyncio.gather(*asked, return_exceptions=True)
        kinds = [asyncio.CancelledError if index % 3 == 0 else Reply for index in range(40)]
        assert [type(reply) for reply in replies] == kinds
        assert isinstance(await provider.complete(Request("a", 2)), Reply)
        await provider.aclose()

    asyncio.run(main())


def test_error_in_the_thread_reaches_every_caller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug is a BadReplyError for each caller, and the next question is answered."""

    async def main() -> None:
        provider = opened(folder)

        def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(TinyModel, "generate", broken)
            failed = await asyncio.gather(
                *(provider.complete(Request("a", 2)) for _ in range(5)), return_exceptions=True
            )
        assert [type(error) for error in failed] == [BadReplyError] * 5
        assert "ZeroDivisionError" in str(failed[0])
        assert isinstance(await provider.complete(Request("a", 2)), Reply)
        await provider.aclose()

    asyncio.run(main())


def test_error_in_loading_reaches_every_caller(folder: Path) -> None:
    """A model that cannot be loaded stops the run with its own line."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"mlp_bias": True}))
    failed = ask(folder, Request("a", 2), Request("b", 2))
    assert [type(error) for error in failed] == [SetupError] * 2
    assert "mlp_bias" in str(failed[1])


@pytest.mark.parametrize(
    ("template", "named"),
    [
        (None, "no chat template"),
        ("{% if %}", "chat template .* is wrong"),
        ("{{ raise_exception('only tools') }}", "only tools"),
        ("{{ messages.append(1) }}", "chat template fails"),
    ],
)
def test_bad_templates(folder: Path, template: str | None, named: str) -> None:
    """A template that is missing, broken, unwilling or unsafe is one clear line."""
    write_tokenizer(folder, template=template)
    with pytest.raises(SetupError, match=named):
        reply_to(folder, Request("a", 2))


def test_template_beside(folder: Path) -> None:
    """chat_template.jinja wins over tokenizer_config.json, as in transformers."""
    inside = reply_to(folder, Request("a", 3))
    (folder / "chat_template.jinja").write_text("<user>{{ messages[0].content }}")
    beside = reply_to(folder, Request("a", 3))
    assert inside.usage is not None
    assert beside.usage is not None
    assert (inside.usage.prompt_tokens, beside.usage.prompt_tokens) == (4, 2)


def test_close_is_quick(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing in the middle of a long batch takes one step; who waits hears of it."""
    real = TinyModel._step
    started = threading.Event()
    steps: list[int] = []

    def slow(self: TinyModel, *args: Any) -> Any:
        started.set()
        steps.append(1)
        time.sleep(0.05)
        return real(self, *args)

    monkeypatch.setattr(TinyModel, "_step", slow)
    write_model(folder, eos_token_id=None)

    async def main() -> None:
        provider = opened(folder)
        asked = [asyncio.create_task(provider.complete(Request("a", 400))) for _ in range(3)]
        await asyncio.to_thread(started.wait)
        asked.append(asyncio.create_task(provider.complete(Request("b", 400))))
        await asyncio.sleep(0)
        before = len(steps)
        await provider.aclose()
        assert len(steps) - before < 40  # of 400
        failed = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(error) for error in failed] == [StopRunError] * 4
        with pytest.raises(StopRunError, match="closed"):
            await provider.complete(Request("a", 1))
        await provider.aclose()

    asyncio.run(main())
    assert not [thread for thread in threading.enumerate() if thread.name == "the embedded model"]


def test_facts_say_what_defines_the_answers(folder: Path) -> None:
    """The manifest says which weights and tokenizer answered, and nothing else."""

    async def main() -> dict[str, object]:
        provider = opened(folder)
        facts = dict(await provider.facts())
        await provider.aclose()
        return facts

    facts = asyncio.run(main())
    for name in ("weights_sha256", "tokenizer_sha256"):
        digest = facts.pop(name)
        assert isinstance(digest, str)
        assert len(digest) == 16
    weights = len(VOCABULARY) * 32 + 32 + 2 * (2 * 32 + 4 * 32 * 32 + 3 * 32 * 48)
    assert facts == {"engine": "numpy", "max_model_len": WINDOW, "parameters": weights}
    json.dumps(facts)


def test_opening_names_what_is_missing(folder: Path, tmp_path: Path) -> None:
    """A folder that is none, or lacks files, is refused at once."""
    with pytest.raises(SetupError, match="no model folder"):
        open_provider(ModelSettings(str(tmp_path / "nowhere")))
    (folder / "tokenizer.json").unlink()
    (folder / "config.json").unlink()
    with pytest.raises(SetupError, match=r"lacks config\.json, tokenizer\.json"):
        opened(folder)


def run_python(code: str, **environment: str) -> str:
    clean = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env=clean | environment,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_import_is_light() -> None:
    """Importing the provider loads nothing heavy."""
    code = "import sys, eyechart.providers.tiny.provider; print(sorted(HEAVY & set(sys.modules)))"
    heavy = {"numpy", "tokenizers", "jinja2", "safetensors", "concurrent.futures.thread"}
    assert run_python(code.replace("HEAVY", repr(heavy))) == "[]"


@pytest.mark.parametrize("given", [{}, {"OPENBLAS_NUM_THREADS": "2"}])
def test_process_is_left_as_it_was(folder: Path, given: dict[str, str]) -> None:
    """The environment keeps its BLAS setting, and a fork after the first reply warns of nothing."""
    code = f"""
import asyncio, os
from eyechart.providers.base import ModelSettings, Request
from eyechart.providers.tiny.provider import open_provider
provider = open_provider(ModelSettings({str(folder)!r}))
reply = asyncio.run(provider.complete(Request("a", 3)))
print(os.environ.get("OPENBLAS_NUM_THREADS"), reply.usage.output_tokens > 0)
asyncio.run(provider.aclose())
if os.fork() == 0:
    os._exit(0)
os.wait()
"""
    assert run_python(code, **given) == f"{given.get('OPENBLAS_NUM_THREADS')} True"


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")  # theirs, not ours
def test_same_ids_as_transformers(folder: Path) -> None:
    """The chat template and the tokenizer give the ids that transformers gives."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    from eyechart.providers.tiny.chat import Chat

    prompts = ["ab 0,1?\n", "", " a  b\n\n", "x é 7", "<eos>a<assistant>", "ab" * 200]
    beside = "  {% for m in messages %}\n  {%- if loop.first %}{{ bos_token }}{% continue %}"
    beside += "{% endif %}{% endfor %}\n {{ messages | tojson }}{{ eos_token }}"
    for template in (None, beside):
        if template is not None:
            (folder / "chat_template.jinja").write_text(template)
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        expected = [
            theirs.apply_chat_template(
                [{"role": "user", "content": prompt}],
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
            for prompt in prompts
        ]
        assert Chat(folder).ids(prompts, "chat", None) == expected
