"""A built-in model that knows the answers: right up to a length, wrong beyond it.

The right answers come with the settings, as a function of a sample's id that only this provider
gets. No request contains them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence

from eyechart.providers.base import ModelSettings, OracleAnswer, Reply, Request, SetupError
from eyechart.providers.descriptor import Descriptor, Service
from eyechart.providers.likelihood import choosing_reply

_FORM = re.compile(r"(?P<sees>[1-9]\d{0,8})(?:/(?P<accuracy>[01]|[01]?\.\d{1,9}))?")


def read_oracle(model: str) -> tuple[int, float]:
    """The last length at which the oracle is right, and the share of samples up to there that are
    right: `50` or `50/0.9`.

    Raises:
        SetupError: `model` is not of this form.
    """
    match = _FORM.fullmatch(model)
    accuracy = float(match["accuracy"] or 1) if match else 0.0
    if match is None or not 0 < accuracy <= 1:
        raise SetupError(
            f"no oracle {model!r}; oracle:50 is right up to length 50, and oracle:50/0.9 is right "
            "there with a probability of 0.9"
        )
    return int(match["sees"]), accuracy


def oracle_name(model: str) -> str:
    """`model` as in tables and folders; raises `SetupError` if it names no oracle."""
    sees, accuracy = read_oracle(model)
    return str(sees) if accuracy == 1 else f"{sees}/{accuracy:g}"


class OracleProvider:
    """Gives the right reply or a wrong one; the same sample always gets the same reply, and at a
    temperature each of its draws has one of its own. Of a sample in turns the earlier replies are
    right and the last one decides, where the correct answers of the turns are known.
    """

    def __init__(self, sees: int, accuracy: float, known: Callable[[str], OracleAnswer]) -> None:
        self._sees = sees
        self._accuracy = accuracy
        self._known = known

    async def complete(self, request: Request) -> Reply:
        known, turn = self._known(_asked(request)), len(request.history)
        if turn < len(known.earlier):
            return Reply(known.earlier[turn])
        return Reply(known.right if self._is_right(known, request) else known.wrong)

    async def score(self, request: Request) -> Reply:
        """Prefers the right option, or one of the others."""
        if self._is_right(self._known(_asked(request)), request):
            return choosing_reply(request, request.options[0])
        draw = random.Random(f"wrong|{_asked(request)}")
        return choosing_reply(request, draw.choice(request.options[1:]))

    def _is_right(self, known: OracleAnswer, request: Request) -> bool:
        lapse = random.Random(f"oracle|{_asked(request)}").random() >= self._accuracy
        return known.length <= self._sees and not lapse

    async def facts(self) -> Mapping[str, object]:
        return {"engine": "oracle"}

    async def count_tokens(self, prompts: Sequence[str]) -> list[int] | None:  # noqa: ARG002
        return None

    async def aclose(self) -> None:
        """Does nothing."""


def _asked(request: Request) -> str:
    """What the reply depends on: the sample, and at a temperature its draw."""
    return request.sample_id if request.temperature else request.sample_id.partition("|draw=")[0]


def open_provider(settings: ModelSettings) -> OracleProvider:
    """The oracle `settings.model`, which knows the samples of `settings.known`.

    Raises:
        SetupError: it has no samples.
    """
    if settings.known is None:
        raise SetupError("an oracle answers the samples of 'bench run' and eyechart.run alone")
    return OracleProvider(*read_oracle(settings.model), settings.known)


DESCRIPTOR = Descriptor(
    name="oracle",
    title="oracle:50 is right up to length 50, oracle:50/0.9 in 9 of 10",
    opens="eyechart.providers.oracle:open_provider",
    example="oracle:50",
    read_model=oracle_name,
    takes_address=False,
    gives_logprobs=False,
    efforts="none",
    likelihood=lambda _addresses: ("chat", "completions"),
    takes_turns=True,
    gets_answers=True,
    runs_here=True,
    is_free=True,
    has_tokenizer=False,
    in_cluster="",
    service=Service("ours", "eyechart"),
)
