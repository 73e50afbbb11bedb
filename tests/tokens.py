"""Runs of a scripted model whose usage, or tokenizer, has so many tokens a symbol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eyechart.harness.analysis.samples.judged_run import JudgedRun, read_run
from eyechart.providers.base import Reply, Request, StopRunError, Usage
from eyechart.providers.scripted import ScriptedProvider
from tests.conftest import Lab, right

LENGTHS = [2, 4, 8, 16, 32]
INSTRUCTIONS = 25


def fields_of(request: Request) -> dict[str, str]:
    """Axis or place -> its value, of the sample of a request."""
    parts = request.sample_id.replace("|", ",").split(",")[1:]
    return dict(part.split("=") for part in parts if "=" in part)


class Counting(ScriptedProvider):
    """A scripted model whose tokenizer has one token for each character."""

    def __init__(self, script: object, *, fails: bool = False) -> None:
        super().__init__(script)  # type: ignore[arg-type]
        self.counted: list[str] = []
        self._fails = fails

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:
        """The characters of each prompt."""
        if self._fails:
            raise StopRunError("no tokenizer today")
        self.counted += prompts
        return list(map(len, prompts))


def asked(
    lab: Lab,
    name: str,
    tokens: Mapping[str, float] | None,
    *,
    sees: int | Mapping[str, int] = 8,
    samples: int = 20,
    lengths: Sequence[int] = LENGTHS,
    provider: str = "scripted",
) -> JudgedRun:
    """A run that is right up to `sees` symbols, under a separator; `tokens` are those of a symbol
    by separator, or `None` for a server without usage.
    """

    def script(request: Request) -> Reply:
        fields = fields_of(request)
        length, separator = int(fields["length"]), fields["separator"]
        most = sees if isinstance(sees, int) else sees[separator]
        usage = None
        if tokens is not None:
            usage = Usage(INSTRUCTIONS + round(tokens[separator] * length), 3)
        text = "Final answer: 99" if length > most else right(request)
        return Reply(text, usage=usage)

    separators = ["none", "comma"] if tokens is None else list(tokens)
    wanted = lab.wanted(
        model=f"{provider}/{name}",
        lengths=lengths,
        samples=samples,
        axes={"separator": separators},
    )
    lab.run(wanted, ScriptedProvider(script))
    return read_run(wanted.folder)
