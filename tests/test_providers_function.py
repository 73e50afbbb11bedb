"""A function or an object of the user's as a model, from Python and from the command line."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import eyechart
from eyechart.harness.errors import EyechartError, JournalError, UsageError
from eyechart.harness.face.asking import own_models
from eyechart.harness.journal.manifest import read_manifest
from eyechart.providers.base import (
    ModelSettings,
    ProviderError,
    RateLimitError,
    Reply,
    Request,
    SampleError,
    SetupError,
    StopRunError,
    TransientError,
    Usage,
)
from eyechart.providers.function.fingerprint import fingerprint
from eyechart.providers.function.provider import FunctionProvider, open_function
from eyechart.providers.registry.model_name import parse_model
from tests.conftest import Lab, records

ASKED = Request("11", max_tokens=9)


def ones(prompt: str) -> str:
    """Right on the tasks of `Lab`."""
    return f"Final answer: {prompt.splitlines()[-1].count('1')}"


async def later(prompt: str) -> str:
    await asyncio.sleep(0)
    return ones(prompt)


class Agent:
    """With all that a provider may have."""

    def __init__(self, name: str = "a") -> None:
        self.name = name
        self.asked = 0
        self.closed = 0

    async def complete(self, request: Request) -> Reply:
        self.asked += 1
        return Reply(ones(request.prompt), usage=Usage(7, 3))

    def facts(self) -> Mapping[str, object]:
        return {"weights": self.name}

    async def aclose(self) -> None:
        self.closed += 1


class Short:
    """With nothing but the method, which is not `async def`."""

    def complete(self, request: Request) -> str:
        return ones(request.prompt)


def ask(lab: Lab, model: Any, **options: Any) -> eyechart.Run:
    said: list[str] = []
    run = eyechart.run(lab.plain, model, out=lab.out, warn=said.append, **options)
    assert said == []
    return run


def answer(model: object, request: Request = ASKED) -> Reply:
    return asyncio.run(FunctionProvider(model, "it", {}).complete(request))


class TestInPython:
    """`eyechart.run(task, model)`."""

    @pytest.mark.parametrize(
        ("model", "name"),
        [
            (ones, "function/ones"),
            (later, "function/later"),
            (lambda prompt: f"{ones(prompt)}", "function/lambda"),
            (lambda prompt: later(f"{prompt}"), "function/lambda"),
            (lambda prompt: Reply(ones(prompt)), "function/lambda"),
            (functools.partial(ones), "function/ones"),
            (Agent(), "function/Agent"),
            (Agent, "function/Agent"),
            (Short(), "function/Short"),
        ],
    )
    def test_it_is_asked_and_has_a_name(self, lab: Lab, model: Any, name: str) -> None:
        """A function or an object, `async def` or not, with a text or a `Reply`."""
        run = ask(lab, model)
        assert (run.model, run.missing) == (name, 0)
        assert set(run.samples["outcome"]) == {"correct"}

    def test_an_object_is_closed_after_each_run_and_says_what_it_is(self, lab: Lab) -> None:
        """Its facts and the tokens of its replies are kept."""
        agent = Agent()
        run = ask(lab, agent, name="my-lab/m8")
        assert (agent.asked, agent.closed, run.model) == (3, 1, "my-lab/m8")
        manifest = read_manifest(run.folder)
        assert (manifest.served_as, manifest.server["weights"]) == ("function/Agent", "a")
        assert {one["prompt_tokens"] for one in records(run.folder)} == {7}

    def test_the_manifest_says_that_it_cannot_be_repeated(self, lab: Lab) -> None:
        """Neither its name nor its call does; and no temperature is claimed."""
        manifest = read_manifest(ask(lab, lambda prompt: f"{ones(prompt)}").folder)
        assert manifest.server["repeatable"] is False
        assert "<function/lambda>" in manifest.commands[0]
        assert manifest.settings.temperature is None

    def test_other_code_of_the_same_name_is_refused(self, lab: Lab) -> None:
        """Also where all is answered; the same code goes on."""
        folder = ask(lab, lambda prompt: f"{ones(prompt)}").folder
        assert ask(lab, lambda prompt: f"{ones(prompt)}", samples=5).folder == folder
        with pytest.raises(JournalError) as raised:
            ask(lab, lambda _prompt: "Final answer: 1")
        assert str(raised.value) == (
            f"{folder} has replies of other code with the name function/lambda; give this code a "
            "name of its own (name='…'), or use another out or fresh=True"
        )
        assert ask(lab, lambda _prompt: "Final answer: 1", name="one").folder != folder

    def test_an_adaptive_run(self, lab: Lab) -> None:
        """Asks wave after wave."""
        lab.with_bands()
        run = eyechart.run(lab.ones, later, out=lab.out, adaptive=True, warn=lambda _line: None)
        assert len(run.samples) > 4

    def test_a_comparison_asks_more(self, lab: Lab) -> None:
        """Of the functions that this program has asked, and of no others."""
        first = ask(lab, ones)
        second = ask(lab, lambda _prompt: "Final answer: 9", samples=2)
        compared = eyechart.compare(first, second, ask=True, max_requests=1, tasks=lab.plain)
        assert len(records(second.folder)) == 3
        assert compared.comparison.second == "function/lambda"
        with pytest.raises(JournalError, match="replies of other code"):
            ask(lab, lambda _prompt: "Final answer: 8")
        eyechart.compare(first, second, ask=True, max_requests=1, tasks=lab.plain)
        elsewhere = second.folder.rename(lab.folder / "elsewhere")
        with pytest.raises(EyechartError, match="cannot be asked again"):
            eyechart.compare(first, elsewhere, ask=True, tasks=lab.plain)

    @pytest.mark.parametrize(
        ("model", "problem"),
        [
            (42, "model must be a name, a function that takes a prompt, or an object"),
            (object(), "model must be a name, a function"),
            (None, "model must be a text"),
        ],
    )
    def test_what_is_no_model(self, lab: Lab, model: Any, problem: str) -> None:
        """Is refused before anything else."""
        with pytest.raises(UsageError, match=problem):
            ask(lab, model)

    @pytest.mark.parametrize(
        ("model", "problem"),
        [
            (
                lambda one, other: one + other,
                r"lambda takes \(one, other\), and is called with the prompt alone; give the other",
            ),
            (
                lambda: "",
                r"lambda takes \(\), and is called with the prompt alone; give it a parameter for",
            ),
            (
                lambda *, prompt: prompt,
                r"alone; give it a parameter for the prompt, before the \*$",
            ),
            (int, r"int is a class without complete\(request\)"),
        ],
    )
    def test_what_cannot_be_called(self, lab: Lab, model: Any, problem: str) -> None:
        """Is refused before a folder is made."""
        with pytest.raises(SetupError, match=problem):
            ask(lab, model)
        assert not lab.out.exists()

    def test_a_function_that_yields_parts(self, lab: Lab) -> None:
        """Is named as such."""

        async def parts(prompt: str) -> AsyncIterator[str]:
            yield prompt

        with pytest.raises(SetupError, match="parts yields parts; let it return the whole text"):
            ask(lab, parts)

    def test_what_it_does_not_take(self, lab: Lab) -> None:
        """A system prompt, which a text in does not have; a temperature is not sent."""
        with pytest.raises(SetupError, match="ones is given the prompt alone, without system"):
            ask(lab, ones, system="Be short.")
        said: list[str] = []
        eyechart.run(lab.plain, ones, out=lab.out, temperature=0.5, warn=said.append)
        assert said == ["function/ones takes no temperature, so none is sent"]


class TestMistakes:
    """An exception costs its sample; nothing that was answered is lost."""

    def test_an_exception_at_the_third_sample(self, lab: Lab) -> None:
        """One line; the same call asks that sample again."""
        asked: list[str] = []

        def third(prompt: str) -> str:
            asked.append(prompt)
            if len(asked) == 3:
                raise KeyError("no\nkey")
            return ones(prompt)

        said: list[str] = []
        run = eyechart.run(lab.ones, third, out=lab.out, warn=said.append, max_connections=1)
        assert said == ["1 samples have no reply; the same call asks them again"]
        (failure,) = (one["failure"] for one in records(run.folder) if one.get("failure"))
        assert failure["message"].startswith("third raised KeyError: 'no\\nkey' (line ")
        assert eyechart.run(lab.ones, third, out=lab.out, max_connections=1).missing == 0
        assert len(asked) == 17

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (ValueError("x"), SampleError),
            (SystemExit(1), SampleError),
            (StopIteration(), SampleError),
            (asyncio.CancelledError(), SampleError),
            (ConnectionResetError(), TransientError),
            (TimeoutError(), TransientError),
            (RateLimitError("later"), RateLimitError),
        ],
    )
    def test_each_exception_is_one_of_ours(
        self, error: BaseException, kind: type[ProviderError]
    ) -> None:
        """In a thread and in the event loop; those of a provider stay what they are."""

        def fails(_prompt: str) -> str:
            raise error

        async def fails_later(_prompt: str) -> str:
            raise error

        models: list[Callable[[str], object]] = [fails]
        if not isinstance(error, StopIteration):  # a coroutine cannot raise it
            models.append(fails_later)
        for model in models:
            with pytest.raises(kind) as caught:
                answer(model)
            assert type(caught.value) is kind

    @pytest.mark.parametrize(
        ("returned", "shown"), [(None, "None"), (3, "a value of the type int")]
    )
    def test_what_is_no_text(self, returned: object, shown: str) -> None:
        """Stops the run."""
        with pytest.raises(StopRunError, match=f"it returned {shown}; let it return a text"):
            answer(lambda _prompt: returned)

    def test_answers_before_it_are_kept(self, lab: Lab) -> None:
        """And are not asked again."""
        asked: list[str] = []

        def nothing(prompt: str) -> Any:
            asked.append(prompt)
            return None if len(asked) == 9 else ones(prompt)

        with pytest.raises(StopRunError, match="nothing returned None"):
            eyechart.run(lab.ones, nothing, out=lab.out, max_connections=1)
        assert len(records(lab.the_run())) == 8
        eyechart.run(lab.ones, nothing, out=lab.out, max_connections=1)
        assert len(asked) == 17

    def test_facts_that_are_none(self) -> None:
        """Of an object."""

        class Odd(Short):
            def facts(self) -> object:
                return 3

        opened = open_function(Odd(), ModelSettings("Odd"))
        with pytest.raises(StopRunError, match=r"Odd: facts\(\) returned 3, .*; correct it, and"):
            asyncio.run(opened.facts())

    def test_turns_need_an_object(self) -> None:
        """Since a function takes one text."""
        with pytest.raises(StopRunError, match="it takes one prompt"):
            answer(ones, Request("1", 9, history=(("a", "b"),)))
        assert answer(Short(), Request("1", 9, history=(("a", "b"),))).text == "Final answer: 1"


class TestThreads:
    """A function that is not `async def`."""

    def test_it_does_not_block_others(self) -> None:
        """Each call waits until all have begun."""
        barrier = threading.Barrier(40, timeout=60)

        def meets(prompt: str) -> str:
            barrier.wait()
            return prompt

        async def all_at_once() -> list[Reply]:
            asked = FunctionProvider(meets, "it", {})
            return await asyncio.gather(*(asked.complete(ASKED) for _ in range(40)))

        assert {one.text for one in asyncio.run(all_at_once())} == {"11"}

    def test_a_cancelled_request_does_not_wait_for_it(self) -> None:
        """Nor does the end of the loop; what it returns then is dropped."""
        begun, ends, threads = threading.Event(), threading.Event(), []

        def hangs(prompt: str) -> str:
            threads.append(threading.current_thread())
            begun.set()
            ends.wait(60)
            return prompt

        async def interrupted() -> None:
            task = asyncio.create_task(FunctionProvider(hangs, "it", {}).complete(ASKED))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(interrupted())
        (thread,) = threads
        assert thread.is_alive()
        assert thread.daemon
        ends.set()
        thread.join(60)


FILE = """\
import asyncio

from beside import WORD


def ones(prompt):
    print("asked")
    return f"{WORD}: {prompt.splitlines()[-1].count('1')}"


class Agent:
    def complete(self, request):
        return ones(request.prompt)


class Empty:
    pass


agent = Agent()
"""


class TestFile:
    """`bench run --model agent.py:ones`."""

    @pytest.fixture
    def file(self, lab: Lab) -> Path:
        lab.monkeypatch.chdir(lab.folder)
        (lab.folder / "beside.py").write_text('WORD = "Final answer"\n')
        path = lab.folder / "agent.py"
        path.write_text(FILE)
        return path

    @pytest.mark.usefixtures("file")
    @pytest.mark.parametrize("name", ["ones", "Agent", "agent"])
    def test_it_is_asked(self, lab: Lab, name: str) -> None:
        """What it prints is no result; the file's hash is kept, and Python continues the run."""
        done = lab.bench_run("--model", f"agent.py:{name}", "--json", task=lab.plain)
        assert (done.code, done.err.count("asked")) == (0, 3)
        assert "asked\n" not in done.out
        manifest = read_manifest(lab.the_run())
        assert manifest.model == f"function/agent.{name}"
        assert {*manifest.server} == {"engine", "file_sha256"}
        assert ask(lab, f"agent.py:{name}", samples=5).folder == lab.the_run()

    def test_an_edited_file_is_another_model(self, lab: Lab, file: Path) -> None:
        """Also where all is answered, and in the same process."""
        command = ("--model", "agent.py:ones")
        assert lab.bench_ask(*command, task=lab.plain).code == 0
        file.write_text(FILE.replace("count('1')", "count('0')"))
        done = lab.bench_run(*command, task=lab.plain)
        done.one_line(1, "replies of other code", "a name of its own (--name …)")
        done = lab.bench_run(*command, "--fresh", task=lab.plain)
        assert done.code == 0
        replies = {one["reply"] for one in records(lab.the_run())}
        assert replies != {"Final answer: 1"}

    @pytest.mark.usefixtures("file")
    @pytest.mark.parametrize(
        ("model", "problem"),
        [
            ("agent.py:", "'' in 'agent.py:' is no name of a function"),
            ("agent.py", "agent.py is a file; name the function in it: agent.py:FUNCTION"),
            ("agent.py:other", "agent.py has no 'other'; it has ones, Agent, agent"),
            ("agent.py:Empty", "agent.Empty is a class without complete(request)"),
            ("agent.py:WORD", "agent.WORD is no model: it is a str"),
            ("none.py:ones", "none.py cannot be read: No such file"),
            ("broken.py:ones", "executing broken.py raised ZeroDivisionError: "),
            ("function/ones", "'ones' is a function of a Python program, which alone can ask it"),
        ],
    )
    def test_mistakes_are_one_line(self, lab: Lab, model: str, problem: str) -> None:
        """Before anything is asked."""
        (lab.folder / "broken.py").write_text("ones = 1\n1 / 0\n")
        line = lab.bench_run("--model", model, task=lab.plain).one_line(2, problem)
        assert "broken" not in line or "(line 2)" in line

    @pytest.mark.usefixtures("file")
    def test_files_of_others_name_code_only_with_trust(self, lab: Lab) -> None:
        """A study and `bench.toml`."""
        study = lab.folder / "study.yaml"
        study.write_text(
            "name: mine\ntitle: Mine\nmodels: ['agent.py:ones']\ntasks: [{task: counting/ones, "
            "lengths: [5], samples: 2, axes: {separator: none}}]\n"
        )
        done = lab.bench("run", study, "--out", lab.out)
        assert done.code == 2
        assert "'agent.py:ones' executes the code in agent.py" in done.err
        assert lab.bench("run", study, "--out", lab.out, "--trust").code == 0
        (lab.folder / "bench.toml").write_text('model = "agent.py:ones"\n')
        done = lab.bench("run", "--task", lab.plain, "--out", lab.out)
        done.one_line(2, "executes the code in agent.py", "--trust")

    def test_a_run_loads_its_file_again_where_it_was_asked_from_here(
        self, lab: Lab, file: Path
    ) -> None:
        """As it was: the folder of a run may come from a stranger."""
        lab.monkeypatch.setattr(own_models, "cache_folder", lambda: lab.folder)
        first = ask(lab, "agent.py:ones")
        second = ask(lab, "agent.py:Agent", samples=2)
        eyechart.compare(first, second, ask=True, max_requests=1, tasks=lab.plain)
        assert len(records(second.folder)) == 3
        file.write_text(f"{FILE}# changed\n")
        with pytest.raises(UsageError, match=r"agent\.py was never asked from here as it is now"):
            eyechart.compare(first, second, ask=True, tasks=lab.plain)

    def test_names(self) -> None:
        """A path before the colon; the folder of a provider is that provider's."""
        assert parse_model("a/agent.py:ones").label == "function/agent.ones"
        assert parse_model("/a/agent.py:ones").executes == "/a/agent.py"
        assert parse_model("scripted/agent.py:ones").provider == "scripted"
        assert parse_model("tiny").executes == ""


class TestFingerprint:
    """What counts as the same code."""

    @staticmethod
    def made(source: str, name: str = "f") -> object:
        space: dict[str, Any] = {"__name__": "made"}
        exec(source, space)  # noqa: S102  ours
        return space[name]

    BASE = """
WORD, calls, log = "a", 0, []
def helper(x): return x + WORD
def make(k, log):
    total = 0
    def inner(x):
        nonlocal total
        total += 1
        return helper(x) * k
    return inner
class Agent:
    def __init__(self, name="n"): self.name, self.count = name, 0
    def complete(self, request):
        self.count += 1
        return [helper(part) for part in request if part in {"x", "y", "z"}]
def f(x, extra=1):
    global calls
    calls += 1
    log.append(x)
    return helper(x)
g, agent = make(2, log), Agent()
"""

    @pytest.mark.parametrize("name", ["f", "g", "agent", "Agent"])
    @pytest.mark.parametrize(
        "edit",
        [("WORD, calls", "WORD,  calls"), ('calls, log = "a", 0', 'calls, log = "a", 5')],
    )
    def test_the_same(self, name: str, edit: tuple[str, str]) -> None:
        """Blanks, and what the code itself counts."""
        assert edit[0] in self.BASE
        before, after = (self.made(text, name) for text in (self.BASE, self.BASE.replace(*edit)))
        assert fingerprint(before) == fingerprint(after)

    @pytest.mark.parametrize(
        ("name", "edit"),
        [
            *((name, ('"a"', '"b"')) for name in ("f", "g", "agent", "Agent")),
            *((name, ("x + WORD", "WORD + x")) for name in ("f", "g", "agent", "Agent")),
            ("f", ("extra=1", "extra=2")),
            ("g", ("make(2", "make(3")),
            ("agent", ("Agent()", 'Agent("other")')),
            ("agent", ('"z"', '"w"')),
        ],
    )
    def test_another(self, name: str, edit: tuple[str, str]) -> None:
        """Its code, what it calls in its module, and the texts and numbers that it uses."""
        assert edit[0] in self.BASE
        before, after = (self.made(text, name) for text in (self.BASE, self.BASE.replace(*edit)))
        assert fingerprint(before) != fingerprint(after)

    def test_being_asked_changes_nothing(self) -> None:
        """Counters of the function, of its closure and of its object."""
        for name, given in (("f", "x"), ("g", "x")):
            function: Any = self.made(self.BASE, name)
            before = fingerprint(function)
            function(given)
            assert fingerprint(function) == before
        agent: Any = self.made(self.BASE, "agent")
        before = fingerprint(agent)
        agent.complete("xyz")
        assert (fingerprint(agent), agent.count) == (before, 1)


def test_providers_of_functions_are_closed_with_their_errors_as_messages() -> None:
    """As those of plugins are."""

    class Odd(Short):
        def aclose(self) -> None:
            raise ValueError("no end")

    said: list[str] = []
    opened = open_function(Odd(), ModelSettings("Odd", notify=said.append))
    asyncio.run(opened.aclose())
    assert said == [
        "Odd: aclose() raised ValueError: no end; correct it, and the same command goes on"
    ]
