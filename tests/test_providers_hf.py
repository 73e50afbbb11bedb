"""Models of transformers behind the seam of providers, against transformers' own passes."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from eyechart.harness.journal.manifest import read_manifest
from eyechart.harness.satellites.export.model_identity import identify
from eyechart.providers.base import (
    ModelSettings,
    PromptOverflowError,
    Reply,
    Request,
    SetupError,
    StopRunError,
)
from eyechart.providers.hf.descriptor import file_name, folder_name
from eyechart.providers.hf.files import ModelFiles, files_in
from eyechart.providers.hf.provider import HfProvider
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import open_model
from eyechart.testing import check_provider
from tests.conftest import Lab, records
from tests.hf_models import MODELS, edit, write

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # theirs, not ours
ROWS = ["1", "1 0 1", "0 0 1 1 0 1 1", "1 1 1 1 1 1 1 1 1 0"]
PROMPTS = [f"How many ones are in this row?\nRow: {row}" for row in ROWS]
CLOSE = 2e-4
"""Largest difference of two log-probabilities in float32."""


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def opened(folder: Path, **settings: Any) -> Any:
    given: dict[str, Any] = {"api": "completions", "device": "cpu", **settings}
    return open_model(parse_model(f"hf/{folder}"), ModelSettings("", **given))


def asked(provider: Any, requests: Sequence[Request], *, at_once: bool = True) -> list[Reply]:
    """The replies, to all at once or to one after the other; then the provider is closed."""

    async def ask() -> list[Reply]:
        each = [provider.score if one.options else provider.complete for one in requests]
        try:
            if at_once:
                pairs = zip(each, requests, strict=True)
                return [*await asyncio.gather(*(send(one) for send, one in pairs))]
            return [await send(one) for send, one in zip(each, requests, strict=True)]
        finally:
            await provider.aclose()

    return asyncio.run(ask())


class Reference:
    """The model as transformers runs it by itself, on one prompt without a cache."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()

    def logprobs(self, ids: Sequence[int]) -> Any:
        """(T, V): of the token after each position."""
        import torch

        with torch.no_grad():
            logits = self.model(torch.tensor([list(ids)]), use_cache=False).logits
        return torch.log_softmax(logits[0].float(), dim=-1)

    def greedy(self, prompt: str, tokens: int) -> tuple[list[int], list[float]]:
        """The most probable tokens in turn, and their log-probabilities."""
        ids = list(self.tokenizer(f"{prompt}\nAnswer:")["input_ids"])
        values = []
        start = len(ids)
        while len(ids) - start < tokens:
            last = self.logprobs(ids)[-1]
            ids.append(int(last.argmax()))
            values.append(float(last.max()))
            if ids[-1] == 2:
                break
        return ids[start:], values


@pytest.mark.parametrize("name", MODELS)
def test_greedy_replies_are_those_of_single_passes(tmp_path: Path, name: str) -> None:
    """In one padded batch, with keys and values that are kept, whatever the architecture."""
    folder = write(tmp_path, name)
    reference = Reference(folder)
    replies = asked(opened(folder, logprobs=True), [Request(one, 12) for one in PROMPTS])
    for prompt, reply in zip(PROMPTS, replies, strict=True):
        ids, values = reference.greedy(prompt, 12)
        assert reply.text == reference.tokenizer.decode(ids, skip_special_tokens=True)
        assert reply.usage is not None
        assert reply.usage.output_tokens == len(ids)
        assert reply.finish_reason == ("stop" if ids[-1] == 2 else "length")
        assert reply.sure_stop
        assert [value for _, value in reply.logprobs or ()] == pytest.approx(values, abs=CLOSE)


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_of_single_passes(tmp_path: Path, name: str) -> None:
    """Options of one and of several tokens, of prompts of several lengths in one batch."""
    folder = write(tmp_path, name)
    reference = Reference(folder)
    options = ("7", "12", "one two three", "0")
    requests = [Request(one, 1, options=options, opening="Final answer:") for one in PROMPTS]
    for request, reply in zip(requests, asked(opened(folder), requests), strict=True):
        before = f"{request.prompt}\nFinal answer:"
        length = len(reference.tokenizer(before)["input_ids"])
        assert reply.options is not None
        for option in reply.options:
            ids = reference.tokenizer(f"{before} {option.text}")["input_ids"]
            values = reference.logprobs(ids)
            total = sum(float(values[at - 1, ids[at]]) for at in range(length, len(ids)))
            assert option.logprob == pytest.approx(total, abs=CLOSE), option.text
            assert option.tokens == len(ids) - length


def test_the_most_probable_tokens_are_kept(tmp_path: Path) -> None:
    """At each place, the most probable one first; greedy, that is the token of the reply."""
    folder = write(tmp_path, "llama")
    request = Request(PROMPTS[1], 5)
    (reply,) = asked(opened(folder, logprobs=True, top_logprobs=3), [request])
    assert reply.logprobs is not None
    assert reply.top_logprobs is not None
    assert [top[0] for top in reply.top_logprobs] == list(reply.logprobs)
    assert {len(top) for top in reply.top_logprobs} == {3}
    reference = Reference(folder)
    ids = reference.tokenizer(f"{request.prompt}\nAnswer:")["input_ids"]
    best = reference.logprobs(ids)[-1].topk(3).values.tolist()
    assert [value for _, value in reply.top_logprobs[0]] == pytest.approx(best, abs=CLOSE)


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return write(tmp_path / "small-llama", "llama")


def test_the_order_of_prompts_changes_no_reply(llama: Path) -> None:
    """Greedy and drawn, all at once, in another order, and one after the other."""
    for temperature in (0.0, 1.0):
        requests = [Request(one, 12, temperature, seed=3) for one in PROMPTS]
        first = [one.text for one in asked(opened(llama), requests)]
        alone = [one.text for one in asked(opened(llama), requests, at_once=False)]
        assert first == alone
        order = [2, 0, 3, 1]
        mixed = asked(opened(llama), [requests[place] for place in order])
        assert [one.text for one in mixed] == [first[place] for place in order]


def test_draws_go_by_the_seed_and_the_probabilities(llama: Path) -> None:
    """The share of a token among many draws is its probability."""
    reference = Reference(llama)
    ids = reference.tokenizer(f"{PROMPTS[0]}\nAnswer:")["input_ids"]
    best = reference.logprobs(ids)[-1]
    text = reference.tokenizer.decode([int(best.argmax())])
    requests = [Request(PROMPTS[0], 1, 1.0, seed=seed) for seed in range(400)]
    drawn = [reply.text for reply in asked(opened(llama), requests)]
    share = float(best.max().exp())
    assert abs(drawn.count(text) / 400 - share) < 4 * (share * (1 - share) / 400) ** 0.5
    assert len(set(drawn)) > 1


def test_it_keeps_the_rules_of_providers(llama: Path) -> None:
    """A chat, a window that is too short, odd prompts, cancelled requests, a second opening."""
    given = ModelSettings(str(llama), device="cpu")
    check_provider(lambda settings: open_model(parse_model(f"hf/{llama}"), settings), given)


def test_what_it_says_of_itself(llama: Path) -> None:
    """The facts tell models apart; tokens are counted without the weights."""
    provider = opened(llama, api="chat")

    async def look() -> tuple[Any, Any, bool]:
        counts = await provider.count_tokens(PROMPTS)
        is_loaded = provider._model is not None
        return await provider.facts(), counts, is_loaded

    facts, counts, is_loaded = asyncio.run(look())
    assert not is_loaded
    assert facts["max_model_len"] == 256
    assert facts["dtype"] == "float32"
    assert len(facts["weights_sha256"]) == len(facts["chat_template_sha256"]) == 16
    replies = asked(provider, [Request(one, 2) for one in PROMPTS])
    assert [one.usage.prompt_tokens for one in replies if one.usage] == counts


def test_models_with_the_same_weights_are_told_apart(llama: Path) -> None:
    """By the config, which says for example how positions are stretched."""
    before = asyncio.run(opened(llama).facts())
    edit(
        llama / "config.json",
        rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 10_000.0},
    )
    after = asyncio.run(opened(llama).facts())
    different = {name for name in before if before[name] != after[name]}
    assert different == {"config_sha256"}


def test_a_reply_ends_with_the_window(llama: Path) -> None:
    """And a prompt that fills it is an overflow."""
    row = "How many?\nRow: " + "1 " * 120
    provider = opened(llama)
    (count,) = asyncio.run(provider.count_tokens([row])) or []
    reply, *_ = asked(provider, [Request(row, 500)])
    assert reply.usage is not None
    assert (reply.finish_reason, reply.usage.output_tokens) in (
        ("length", 256 - count),
        ("stop", reply.usage.output_tokens),
    )
    with pytest.raises(PromptOverflowError, match="the window of small-llama takes 255 and one"):
        asked(opened(llama), [Request(row * 3, 5)])
    with pytest.raises(PromptOverflowError, match="shorter lengths"):
        asked(opened(llama), [Request(row * 3, 5, options=("1", "2"), opening="A:")])


def test_short_memory_makes_smaller_batches(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every prompt has its reply, and the user is told once a size."""
    from eyechart.providers.hf import model

    requests = [Request(one, 6) for one in PROMPTS]
    requests += [Request(one, 6, options=("1", "2 3")) for one in PROMPTS]
    expected = asked(opened(llama), requests)
    for name in ("generate", "score"):
        real = getattr(model, name)

        def short(computing: Any, work: Any, *args: Any, real: Any = real, **kwargs: Any) -> Any:
            if len(work) > 1:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
            return real(computing, work, *args, **kwargs)

        monkeypatch.setattr(model, name, short)
    said: list[str] = []
    got = asked(opened(llama, notify=said.append), requests)
    assert [one.text for one in got] == [one.text for one in expected]
    assert said[:1] == ["memory is short: batches of 2 prompts from now on"]


def test_many_options_go_in_parts(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same probabilities."""
    from eyechart.providers.hf.computing import LoadedModel

    options = tuple(f"{number} and more" for number in range(20))
    request = Request(PROMPTS[1], 1, options=options, opening="Final answer:")
    (whole,) = asked(opened(llama), [request])
    monkeypatch.setattr(LoadedModel, "options_at_once", lambda *_: 3)
    (parts,) = asked(opened(llama), [request])
    for one, other in zip(whole.options or (), parts.options or (), strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=CLOSE)


def test_a_folder_without_a_template_continues_texts(llama: Path) -> None:
    """Which is said; a system prompt has no place there."""
    (llama / "chat_template.jinja").unlink(missing_ok=True)
    config = llama / "tokenizer_config.json"
    edit(config, chat_template=None)
    said: list[str] = []
    requests = [Request(one, 6) for one in PROMPTS]
    texts = [one.text for one in asked(opened(llama, api="chat", notify=said.append), requests)]
    assert texts == [one.text for one in asked(opened(llama), requests)]
    (line,) = said
    assert line.startswith("small-llama has no chat template, so its prompts are texts")
    with pytest.raises(SetupError, match="takes no system"):
        asked(opened(llama, api="chat", system="Be brief."), requests)


def test_closing_stops_before_the_next_token(llama: Path) -> None:
    """Requests without a reply get an error of the run."""
    provider = opened(llama)

    async def close() -> list[object]:
        waiting = [
            asyncio.create_task(provider.complete(Request(one, 200, 1.0, seed=1)))
            for one in PROMPTS * 20
        ]
        await asyncio.sleep(0)
        await provider.aclose()
        return [*await asyncio.gather(*waiting, return_exceptions=True)]

    ended = asyncio.run(close())
    assert any(isinstance(one, StopRunError) for one in ended)
    assert all(isinstance(one, Reply | StopRunError) for one in ended)


class TestNames:
    """Of files: the last part of the path, and the weights tell two of one name apart."""

    def test_last_parts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        cached = "hub/models--HuggingFaceTB--SmolLM2-135M/snapshots/0123456789abcdef"
        assert folder_name("/a/b/smollm2/") == folder_name("smollm2") == "smollm2"
        assert folder_name(".") == tmp_path.name
        assert folder_name(cached) == "HuggingFaceTB/SmolLM2-135M"
        assert file_name("/a/b/SmolLM2.Q4_1.gguf") == "SmolLM2.Q4_1"
        name = parse_model("hf//a/b/smollm2")
        assert (name.label, name.asked_as) == ("hf/smollm2", "hf//a/b/smollm2")
        assert parse_model("gguf/~/m.gguf").label == "gguf/m"

    def test_runs(self, lab: Lab, llama: Path) -> None:
        """A moved folder goes on; another one of the same name is refused, and has `--name`."""
        given = ("--api", "completions", "--keep-going", "--samples", "2")
        done = lab.bench_run("--model", f"hf/{llama}", *given)
        assert done.code == 0, done.err
        folder = lab.the_run()
        assert folder.is_relative_to(lab.out / "runs" / "hf" / "small-llama")
        manifest = read_manifest(folder)
        assert (manifest.model, manifest.served_as) == ("hf/small-llama", f"hf/{llama}")
        assert identify(manifest).id == "unknown/small-llama"
        assert all(record["finish_reason"] for record in records(folder))
        moved = llama.parent / "elsewhere" / llama.name
        moved.parent.mkdir()
        llama.rename(moved)
        more = (*given[:4], "3")
        done = lab.bench_run("--model", f"hf/{moved}", *more)
        assert done.code == 0, done.err
        assert read_manifest(folder).served_as == f"hf/{moved}"
        other = write(llama, "gpt2")
        done = lab.bench_run("--model", f"hf/{other}", *given[:4], "4")
        done.one_line(1, "(architecture was 'LlamaForCausalLM'", "use another --name for these")
        named = ("--name", "my/gpt2")
        assert lab.bench_ask("--model", f"hf/{other}", *given, *named).code == 0
        assert (lab.out / "runs" / "my" / "gpt2").is_dir()

    def test_a_forced_choice(self, lab: Lab, llama: Path) -> None:
        given = ("--model", f"hf/{llama}", "--read", "likelihood", "--samples", "1")
        done = lab.bench_run(*given)
        assert done.code == 0, done.err
        for record in records(lab.the_run()):
            assert len(record["options"]) > 1


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("hf/nowhere", "no model in 'nowhere': there is no such folder"),
        ("hf/empty", "no model in 'empty': it has no config.json"),
        ("hf/adapter", "'adapter' is an adapter and no whole model; merge it"),
        (
            "hf/model.gguf",
            "'model.gguf' is a file, and hf/ takes a model's folder; gguf/",
        ),
        ("gguf/nowhere.gguf", "no GGUF file 'nowhere.gguf'; give the path of the file"),
        ("gguf/text.gguf", "'text.gguf' is no GGUF file: it does not begin with GGUF"),
        ("gguf/with", "no GGUF file 'with'; gguf/with/m.gguf"),
        ("gguf/model.gguf", "'model.gguf' cannot be loaded|models of gguf/ need"),
    ],
)
def test_what_is_no_model(lab: Lab, model: str, said: str) -> None:
    """Is one line, before anything is asked."""
    lab.monkeypatch.chdir(lab.folder)
    for name in ("empty", "adapter", "with"):
        Path(name).mkdir()
    Path("adapter/adapter_config.json").write_text("{}")
    Path("model.gguf").write_bytes(b"GGUF" + random.Random(0).randbytes(64))
    Path("with/m.gguf").write_bytes(b"GGUF")
    Path("text.gguf").write_text("a text")
    done = lab.bench_run("--model", model)
    assert done.code == 2, done
    assert any(one in done.err for one in said.split("|")), done.err
    assert "Traceback" not in done.err


def test_code_of_a_folder_is_not_executed(lab: Lab, llama: Path) -> None:
    """And no option of a run would."""
    edit(llama / "config.json", auto_map={"AutoModelForCausalLM": "code.Model"})
    done = lab.bench_run("--model", f"hf/{llama}")
    done.one_line(2, "Python code of its own (auto_map in config.json); it is never executed here")


def test_too_little_memory(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eyechart.providers.hf import loading

    monkeypatch.setattr(loading, "free_bytes", lambda: 1000)
    with pytest.raises(SetupError, match=r"needs 0\.0 GiB of memory in float32, and 0\.0 GiB are"):
        asked(opened(llama), [Request("1", 1)])


def test_a_provider_that_loads_its_model_itself(tmp_path: Path) -> None:
    """As a package of somebody else would: the prompts and the batches are those of `hf/`."""
    import torch

    from eyechart.providers.hf.loading import load_model

    folder = write(tmp_path, "llama")

    def load(files: ModelFiles, settings: ModelSettings) -> Any:
        model = load_model(files, settings)
        torch.nn.init.zeros_(model.get_output_embeddings().weight)
        return model

    settings = ModelSettings(str(folder), device="cpu", logprobs=True)
    (reply,) = asked(HfProvider(files_in(str(folder)), "own", settings, load), [Request("1", 2)])
    assert reply.model == "own"
    values = [value for _, value in reply.logprobs or ()]
    assert values == pytest.approx([-math.log(346)] * 2, abs=CLOSE)
