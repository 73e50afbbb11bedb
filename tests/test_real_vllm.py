"""Against a real vLLM on the CPU; `.ci/vllm` makes the environment that these tests need.

vLLM and the embedded runtime are two engines for the same weights: greedy and in float32 they say
the same, word for word, whichever provider asks.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from eyechart import compare, load_run
from eyechart.harness.journal.manifest import MANIFEST
from eyechart.harness.journal.record import SAMPLES
from tests.conftest import Done, has_lines, records
from tests.real_server import (
    MODEL,
    ROOT,
    UNCOMPILED,
    USUAL,
    VLLM,
    WINDOW,
    Answers,
    Server,
    answers,
    assert_nobody_left,
    assert_same,
    bench,
    children,
    end,
    engines,
    patiently,
    runs,
    serving,
    start,
    the_run,
)

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not VLLM.exists(), reason="no vllm beside this Python; see .ci/vllm"),
]

_PLUGIN = ROOT / "tests" / "thinking_plugin.py"
THINKS = (
    *("--logits-processors", "tests.thinking_plugin:Thinks"),
    *("--reasoning-parser-plugin", str(_PLUGIN), "--reasoning-parser", "late"),
    *("--max-model-len", str(WINDOW)),
)
"""Arguments of a server whose model thinks for 400 to 2,213 tokens."""
SMALL = ("--exact", "--lengths", "5,10,20,50", "--samples", "4")
ONE_ROW = ("--task", "counting/ones", "--axis", "separator=none")
WAYS = {
    "chat": (),
    "completions": ("--api", "completions"),
    "system": ("--system", "Be brief."),
}
"""How a prompt can be put."""


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Answers]:
    """What the embedded runtime answers when asked in one of `WAYS`."""
    said: dict[str, Answers] = {}

    def ask(way: str) -> Answers:
        if way not in said:
            out = tmp_path_factory.mktemp(way)
            tasks = ("--task", "counting,copying/first_last", *SMALL)
            bench(out, *tasks, *WAYS[way], "--model", "tiny")
            said[way] = answers(out)
        return said[way]

    return ask


class TestSameAnswers:
    """Two engines, three providers, one model."""

    @pytest.mark.parametrize(
        ("model", "way"),
        [
            *(("vllm/tiny", way) for way in WAYS),
            *(("my-name", way) for way in WAYS),
            *(("anthropic/tiny", way) for way in WAYS if way != "completions"),
        ],
    )
    def test_vllm_says_what_the_embedded_runtime_says(
        self,
        server: Server,
        embedded: Callable[[str], Answers],
        tmp_path: Path,
        model: str,
        way: str,
    ) -> None:
        """Every sample has the same reply, with the same end and as many tokens."""
        asked = ("--task", "counting,copying/first_last", *SMALL, *WAYS[way], "--model", model)
        bench(tmp_path, *asked, "--base-url", server.base_url)
        assert_same(embedded(way), answers(tmp_path))

    def test_replicas_say_the_same(
        self, server: Server, embedded: Callable[[str], Answers], tmp_path: Path
    ) -> None:
        """Two addresses share the samples and change no answer."""
        tasks = ("--task", "counting,copying/first_last", *SMALL)
        other = server.base_url.replace("127.0.0.1", "localhost")
        urls = ("--base-url", server.base_url, "--base-url", other)
        bench(tmp_path, *tasks, "--model", "vllm/tiny", *urls)
        assert_same(embedded("chat"), answers(tmp_path))

    @pytest.mark.parametrize("way", ["chat", "completions"])
    @pytest.mark.parametrize("model", ["my-name", "vllm/tiny"])
    def test_log_probabilities_are_kept(
        self, server: Server, tmp_path: Path, model: str, way: str
    ) -> None:
        """With --logprobs the journal has each token of the reply and its log-probability."""
        asked = (*ONE_ROW, *SMALL, *WAYS[way], "--logprobs", "0")
        bench(tmp_path, *asked, "--model", model, "--base-url", server.base_url)
        for record in records(the_run(tmp_path)):
            assert "".join(token for token, _ in record["logprobs"]).startswith(record["reply"])
            assert all(value <= 0 for _, value in record["logprobs"])


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with another window and another chat template. Only tests of this file ask it."""
    folder = tmp_path_factory.mktemp("other")
    template = orjson.loads((MODEL / "tokenizer_config.json").read_bytes())["chat_template"]
    file = folder / "template.jinja"
    file.write_text(template.replace("'<user>' +", "'<user>1' +"))
    changes = ("--max-model-len", str(WINDOW // 2), "--chat-template", str(file))
    with serving(folder, *changes, "--block-size", "32") as server:
        yield server


class TestServer:
    """What a run has from its server."""

    def test_nested_rows_are_found_in_the_prefix_cache(self, other: Server, tmp_path: Path) -> None:
        """More than half of the tokens of nested rows need no computing."""
        names = ("prefix_cache_queries_total", "prefix_cache_hits_total")
        before = [other.counter(name) for name in names]
        asked = ("--task", "counting/bernoulli", "--axis", "separator=none", "--seed", "5")
        rows = (
            "--exact",
            "--lengths",
            "100,200,300,400,500",
            "--samples",
            "8",
            "--max-connections",
            "2",
        )
        bench(tmp_path, *asked, *rows, "--model", "vllm/tiny", "--base-url", other.base_url)
        queries, hits = (other.counter(name) - was for name, was in zip(names, before, strict=True))
        assert queries >= sum(record["prompt_tokens"] for record in records(the_run(tmp_path)))
        assert hits > 0.5 * queries

    @pytest.mark.parametrize(("model", "sent"), [("my-name", 1), ("vllm/tiny", 0)])
    def test_a_prompt_beyond_the_window_is_an_overflow(
        self, server: Server, tmp_path: Path, model: str, sent: int
    ) -> None:
        """By the server's own refusal; far beyond a window that is known, it is not even sent."""
        asked = (*ONE_ROW, "--exact", "--lengths", f"10,{WINDOW},{2 * WINDOW}", "--samples", "3")
        bench(tmp_path, *asked, "--model", model, "--base-url", server.base_url)
        assert {
            (record["length"], record.get("failure", {}).get("kind"), record["attempts"])
            for record in records(the_run(tmp_path))
        } == {(10, None, 1), (WINDOW, "overflow", 1), (2 * WINDOW, "overflow", sent)}

    def test_the_manifest_says_what_answered(self, server: Server, tmp_path: Path) -> None:
        """Model, folder, window and version are the server's own words."""
        asked = ("--task", "counting/sum", "--exact", "--lengths", "5", "--samples", "1")
        bench(tmp_path, *asked, "--model", "vllm/tiny", "--base-url", server.base_url)
        manifest = orjson.loads((the_run(tmp_path) / MANIFEST).read_bytes())
        facts: dict[str, Any] = manifest["server"]
        assert facts["model"] == "tiny"
        assert facts["root"] == str(MODEL)
        assert facts["max_model_len"] == WINDOW
        assert facts["version"] == orjson.loads(server.get("/version"))["version"]

    def test_another_server_does_not_continue_a_run(
        self, server: Server, other: Server, tmp_path: Path
    ) -> None:
        """A run of one window and chat template is not mixed with answers of another, whose facts
        say both.
        """
        task = ("--task", "counting/bernoulli", "--axis", "separator=none")
        asked = (*task, "--exact", "--lengths", "5", "--samples", "2")
        joining = ("--model", "vllm/tiny", "--base-url")
        one, elsewhere = tmp_path / "one", tmp_path / "elsewhere"
        one.mkdir()
        elsewhere.mkdir()
        bench(one, *asked, *joining, server.base_url)
        before = answers(one)
        more = (*asked[:-1], "4")  # a complete run asks nobody
        done = end(start(one, *more, *joining, other.base_url))
        bench(elsewhere, *asked, *joining, other.base_url)
        ours, theirs = (
            orjson.loads((the_run(out) / MANIFEST).read_bytes())["server"]
            for out in (one, elsewhere)
        )
        changed = ("chat_template_sha256", "max_model_len")
        assert all(ours[name] != theirs[name] for name in changed)
        done.one_line(1, "another", changed[0], "--fresh")
        assert answers(one) == before


def test_a_model_that_thinks_needs_no_limit(tmp_path: Path) -> None:
    """Asked with the defaults it sees as far as with ample room given by hand, for at most 1.3
    times the tokens. A later command pays for no reply that is cut off.
    """
    asked = ("--task", "counting/sum", "--exact", "--lengths", "5,10,20,40")
    with serving(tmp_path, *THINKS) as thinking:
        model = ("--model", "vllm/tiny", "--base-url", thinking.base_url, "--samples")
        spent, lengths = [], []
        for name, more in (("usual", ()), ("ample", ("--max-tokens", "3000"))):
            (tmp_path / name).mkdir()
            bench(tmp_path / name, *asked, *model, "4", *more)
            kept = records(the_run(tmp_path / name))
            assert {one["finish_reason"] for one in kept} == {"stop"}
            assert all(one["reasoning"] for one in kept)
            lengths.append(load_run(the_run(tmp_path / name)).effective_length)
            each = [one["output_tokens"] + one.get("cut_output_tokens", 0) for one in kept]
            spent.append(sum(each))
        assert str(lengths[0]) == str(lengths[1])
        assert spent[1] < spent[0] <= 1.3 * spent[1]
        bench(tmp_path / "usual", *asked, *model, "5")
        new = records(the_run(tmp_path / "usual"))[16:]
        assert len(new) == 4
        assert not any("cut_off" in one for one in new)


class TestVariants:
    """One model, served in several ways, is several runs that are compared."""

    asked = (
        *("--task", "counting/ones", "--axis", "separator=comma", "--samples", "20"),
        *("--exact", "--lengths", "5,10,20,30,40,50,60,80"),
    )

    def test_another_rotary_base(self, server: Server, tmp_path: Path) -> None:
        """Doubling the rotary base, as NTK scaling does, makes the model count worse."""
        bench(
            tmp_path,
            *(*self.asked, "--model", "vllm/tiny", "--name", "@float32"),
            *("--base-url", server.base_url),
        )
        base = '--hf-overrides={"rope_parameters":{"rope_type":"default","rope_theta":20000.0}}'
        served = ("--dtype=float32", base, UNCOMPILED, f"--max-model-len={WINDOW}")
        bench(
            tmp_path,
            *(*self.asked, "--model", f"vllm/{MODEL}", "--name", "@base-20000"),
            *(f"--model-arg={one}" for one in served),
        )
        by_label = {
            folder.parents[1].name.partition("@")[2]: load_run(folder) for folder in runs(tmp_path)
        }
        assert compare(by_label["float32"], by_label["base-20000"]).change == "worse"


class TestManagedServer:
    """Without --base-url, bench starts a server, and nothing of it is left afterwards."""

    command = (
        *ONE_ROW,
        *("--exact", "--lengths", "20,50", "--samples", "600", "--max-connections", "4"),
        *("--model", f"vllm/{MODEL}"),
        *("--model-arg", "--dtype=float32", "--model-arg", "--max-model-len=512"),
        *("--model-arg", UNCOMPILED),
    )
    size = 1200
    """Requests of that command: some seconds, the first of which a test interrupts."""

    def interrupted(self, out: Path, victim: str, number: signal.Signals) -> Done:
        """What is left of a run of which `victim` gets a signal once some answers are there."""
        process = start(out, *self.command, environment=USUAL)
        patiently(lambda: any(has_lines(folder / SAMPLES, 20) for folder in runs(out)), process)
        (served,) = children(out, process.pid)
        victims = {"bench": process.pid, "server": served, "engine": engines(out)[0]}
        os.kill(victims[victim], number)
        done = end(process)
        assert_nobody_left(out)
        assert 20 <= len(records(the_run(out))) < self.size
        return done

    def test_a_killed_server_ends_the_run_and_the_same_command_finishes_it(
        self, tmp_path: Path
    ) -> None:
        """The run ends with one line, which quotes the end of the server's log; its answers stay.
        The same command with more connections then asks the rest.
        """
        done = self.interrupted(tmp_path, "server", signal.SIGKILL)
        said = done.err.splitlines()[-1]
        log = (the_run(tmp_path) / "server.log").read_text().splitlines()[-20:]
        assert done.code == 1
        assert said.startswith("bench: vllm serve ended with code -9; ")
        assert any(" ".join(line.split()) in said for line in log if line)
        kept = answers(tmp_path)
        bench(tmp_path, *self.command, "--max-connections", "64")
        finished = answers(tmp_path)
        assert len(finished) == len(records(the_run(tmp_path))) == self.size
        assert finished.items() >= kept.items()
        assert_nobody_left(tmp_path)

    def test_a_killed_engine_ends_the_run_too(self, tmp_path: Path) -> None:
        """The process that kernels kill when memory is short is not the one bench started."""
        done = self.interrupted(tmp_path, "engine", signal.SIGKILL)
        assert done.code == 1
        assert "server.log" in done.err.splitlines()[-1]

    def test_an_interrupted_run_takes_its_server_along(self, tmp_path: Path) -> None:
        """SIGTERM: exit code 130, the answers so far, no process."""
        assert self.interrupted(tmp_path, "bench", signal.SIGTERM).code == 130

    def test_a_server_that_still_starts_is_ended_too(self, tmp_path: Path) -> None:
        """Ctrl-C before the first answer: exit code 130, no process."""
        process = start(tmp_path, *self.command, environment=USUAL)
        patiently(lambda: engines(tmp_path) != [], process)
        process.send_signal(signal.SIGINT)
        assert end(process).code == 130
        assert_nobody_left(tmp_path)

    def test_a_server_that_cannot_start_says_why(self, tmp_path: Path) -> None:
        """A wrong argument is one line with the log's last words."""
        done = end(start(tmp_path, *self.command, "--model-arg=--no-such-option"))
        assert done.code != 0
        assert "--no-such-option" in done.err.splitlines()[-1]
        assert_nobody_left(tmp_path)
