"""What a run costs: tokens, estimated before a request is sent, and dollars under a budget."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import time
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from eyechart.harness.spec import Sample
from eyechart.harness.spec.token_counts import token_count
from eyechart.providers.base import Reply, Usage
from eyechart.providers.catalog.prices import LEAST_WRITTEN, PER, MostRates, Prices, rates_for

PHRASE_TOKENS = 8
"""Tokens that a reply may use for the phrase before its answer."""
_PIECE = re.compile(r"[^\W\d_]{1,5}|\d|[^\w\s]|_|\n\n \n|\n")
_NOTHING = Usage(0, 0)
_SHOWN_BITS = 64
"""Integers of at most this many bits are shown with all their digits."""


def estimate_tokens(text: str) -> int:
    """Estimated tokens of `text` without a tokenizer: one for each digit, sign and line end, one
    for every five letters of a word, rounded up, and one for each blank unit of a filler.
    """
    return len(_PIECE.findall(text))


def likely_answer(sample: Sample) -> int:
    """Estimated tokens of the shortest right reply: the phrase and the target."""
    return PHRASE_TOKENS + estimate_tokens(str(sample.target))


def most_tokens(text: str) -> int:
    """An upper bound of the tokens of `text`: its bytes, since a token has at least one."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


class TokenCounts(Protocol):
    """The token counts of an exchange, if known: a `Usage`, or a record of a journal."""

    @property
    def prompt_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int | None: ...
    @property
    def cache_read_tokens(self) -> int | None: ...
    @property
    def cache_write_tokens(self) -> int | None: ...
    @property
    def thought_tokens(self) -> int | None: ...
    @property
    def tier(self) -> str | None: ...


class PaidTurn(TokenCounts, Protocol):
    """A turn of a sample, with the tokens of its replies that were cut off."""

    @property
    def cut_prompt_tokens(self) -> int | None: ...
    @property
    def cut_output_tokens(self) -> int | None: ...


class PaidRecord(PaidTurn, Protocol):
    """A record of a journal: the last turn of its sample, and those before."""

    @property
    def at(self) -> float | None: ...
    @property
    def turns(self) -> Sequence[PaidTurn] | None: ...


def cost(prices: Prices, used: TokenCounts, at_s: float | None = None) -> float | None:
    """Dollars of an exchange at a time, in seconds since 1970; `None` without its tokens.

    Unknown details are priced at their dearest: the hour, and tokens that may have been written to
    a cache or spent on thinking, if these cost more than others.
    """
    prompt, output = used.prompt_tokens, used.output_tokens
    if prompt is None or output is None:
        return None
    rates = rates_for(prices.at(at_s, used.tier), prompt)
    read, write, thought = used.cache_read_tokens or 0, used.cache_write_tokens, used.thought_tokens
    if write is None:
        may_write = rates.cache_write > rates.fresh and prompt >= LEAST_WRITTEN
        write = prompt - read if may_write else 0
    if thought is None:
        thought = output if rates.thought > rates.said else 0
    return (
        (prompt - read - write) * rates.fresh
        + read * rates.cache_read
        + write * rates.cache_write
        + (output - thought) * rates.said
        + thought * rates.thought
        + rates.request
    ) / PER


class Spent(NamedTuple):
    """What one reply to a row cost."""

    length: int
    """Symbols of the row."""
    prompt: float
    """Dollars."""
    reply: float
    """Dollars, with those of thinking."""

    @classmethod
    def of(
        cls,
        length: int,
        prices: Prices,
        tokens: tuple[int, int, int | None],
        total: float | None = None,
    ) -> Spent:
        """The parts of the dollars in `total`, or else of what the tokens cost: those of the
        prompt, of the reply, and of its thinking.
        """
        prompt, output, thought = tokens
        whole = cost(prices, Usage(prompt, output, thought_tokens=thought)) or 0.0
        reply = whole - (cost(prices, Usage(prompt, 0, thought_tokens=0)) or 0.0)
        total = whole if total is None else total
        return cls(length, total - min(reply, total), min(reply, total))


def whole_cost(prices: Prices, record: PaidRecord) -> float | None:
    """Dollars for a sample: its recorded reply, its earlier turns, and replies that were cut off.
    `None` where no tokens are known.
    """
    each = [_turn_cost(prices, turn, record.at) for turn in (*(record.turns or ()), record)]
    known = [dollars for dollars in each if dollars is not None]
    return sum(known) if known else None


def _turn_cost(prices: Prices, turn: PaidTurn, at_s: float | None) -> float | None:
    dollars = cost(prices, turn, at_s)
    if dollars is None or turn.cut_output_tokens is None:
        return dollars
    return dollars + (cost(prices, cut_usage(turn), at_s) or 0.0)


def cut_usage(record: PaidTurn) -> Usage:
    """The tokens of the replies to a turn that were cut off before the last one."""
    return Usage(record.cut_prompt_tokens or 0, record.cut_output_tokens or 0, tier=record.tier)


def most_cost(rates: MostRates, prompt_tokens: float, output_tokens: int, n: int = 1) -> float:
    """Dollars of `n` requests; the tokens are the sums over all of them."""
    dollars = prompt_tokens * rates.prompt + output_tokens * rates.output + n * rates.request
    return dollars / PER


def sound_usage(usage: Usage | None, *, has_text: bool) -> Usage | None:
    """`usage` if it can be true, else `None`. `has_text`: whether the reply has a text.

    A figure cannot be true if it is not a whole number, is negative or is above 10^12, or if a
    reply with text has no tokens.
    """
    if usage is None or token_count(usage.prompt_tokens) is None:
        return None
    output = token_count(usage.output_tokens)
    return None if output is None or (has_text and not output) else usage


class MaxUsage(NamedTuple):
    """The most tokens that one request can take."""

    prompt: int
    output: int


@dataclass(slots=True)
class Budget:
    """Dollars spent so far, their limit, and what requests in flight may still cost.

    A request is sent only while the dollars spent plus the worst case of all requests in flight are
    below the limit. So at the end the limit is exceeded by less than one request's worst case. The
    cost of a request is known only with its reply, so a rule that sends more requests would break
    this promise. Far from the limit no request waits; near it fewer and fewer are in flight, and at
    the end a single one: this is intended.

    The worst case of a request takes the dearest hour, tier of length and kind of token that its
    prompt can meet. The promise does not cover a reply that costs more than its own maximum, nor
    one that is paid for and never arrives.
    """

    prices: Prices | None = None
    limit: float | None = None
    requests: int | None = None
    """Samples that may still be asked; `None` sets no limit. A sample counts once."""
    spent: float = 0.0
    estimated: int = 0
    """Replies whose cost is in `spent` by an estimate, since their tokens are not known."""
    full: bool = False
    """Whether the rest of the limit is too small for any further request."""
    prompt_scale: float = 1.0
    """Factor on the estimate of a prompt's most tokens: above 1 after a reply's usage has exceeded
    its estimate."""
    clock: Callable[[], float] = time
    """Seconds since 1970."""
    shared_with: list[Budget] = field(default_factory=list)
    """Budgets of other models that are asked at the same time, under the same limit."""
    _in_flight: Counter[MaxUsage] = field(default_factory=Counter)
    _totals: dict[MostRates, list[int]] = field(default_factory=dict)
    """Rates -> most tokens of prompts and of replies that the requests in flight with these rates
    take, and their number.
    """
    _waiting: deque[tuple[asyncio.Future[bool], MaxUsage]] = field(default_factory=deque)

    @property
    def exhausted(self) -> bool:
        """Whether the dollars are spent, so that no more requests may be sent."""
        return self.full or (self.limit is not None and self._all_spent >= self.limit)

    @property
    def _all_spent(self) -> float:
        return self.spent + sum(other.spent for other in self.shared_with)

    @property
    def has_requests(self) -> bool:
        return self.requests is None or self.requests > 0

    def take_request(self) -> bool:
        """Counts a sample as asked; `False` if no more may be asked."""
        if not self.has_requests:
            return False
        if self.requests is not None:
            self.requests -= 1
        return True

    def worst(self, max_usage: MaxUsage) -> float:
        """Most dollars that such a request can cost; 0 if no prices are known."""
        if self.prices is None:
            return 0.0
        prompt = max_usage.prompt * self.prompt_scale
        return most_cost(self.prices.most(prompt), prompt, max_usage.output)

    def charge(self, *usages: Usage, estimated: int = 0) -> None:
        """Adds the cost of exchanges, if prices are known; so many of them have an estimate."""
        self.estimated += estimated
        if self.prices is not None:
            self.spent += sum(cost(self.prices, one, self.clock()) or 0.0 for one in usages)

    def learn(self, prompt_tokens: int, estimate: int) -> None:
        """Increases `prompt_scale` if a prompt took more tokens than `estimate`, its maximum."""
        if prompt_tokens > estimate * self.prompt_scale and estimate:
            self.prompt_scale = prompt_tokens / estimate
            self._totals.clear()
            for max_usage, n in self._in_flight.items():
                self._count(max_usage, n)

    async def admit(self, max_usage: MaxUsage) -> bool:
        """Waits, first come first served, until such a request may be sent, and counts it as in
        flight. Returns `False` if the limit is spent.

        After `True` the caller must `release` it.
        """
        if self.exhausted:
            return False
        if not self._waiting and self._has_room():
            self._hold(max_usage)
            return True
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((turn, max_usage))
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.release(max_usage)
            raise

    def release(self, max_usage: MaxUsage) -> None:
        """Counts a request as no longer in flight; its cost was charged before."""
        self._hold(max_usage, -1)
        for budget in (self, *self.shared_with):
            budget._let_in()  # noqa: SLF001  a budget like this one

    def _let_in(self) -> None:
        """Lets waiting requests start, first come first served, as long as there is room."""
        while self._waiting and (self.exhausted or self._has_room()):
            turn, next_max_usage = self._waiting.popleft()
            if turn.done():  # it was cancelled
                continue
            if not self.exhausted:
                # counted before it runs, so that no other takes its place
                self._hold(next_max_usage)
            turn.set_result(not self.exhausted)

    def _hold(self, max_usage: MaxUsage, n: int = 1) -> None:
        """Counts `n` more requests in flight."""
        if self.limit is None or self.prices is None:
            return  # nothing waits
        self._in_flight[max_usage] += n
        if not self._in_flight[max_usage]:
            del self._in_flight[max_usage]
        self._count(max_usage, n)

    def _count(self, max_usage: MaxUsage, n: int) -> None:
        if self.prices is not None:
            rates = self.prices.most(max_usage.prompt * self.prompt_scale)
            total = self._totals.setdefault(rates, [0, 0, 0])
            for place, count in enumerate((*max_usage, 1)):
                total[place] += n * count

    def _has_room(self) -> bool:
        if self.limit is None:
            return True
        in_flight = sum(budget._most_in_flight() for budget in (self, *self.shared_with))  # noqa: SLF001
        return self._all_spent + in_flight < self.limit

    def _most_in_flight(self) -> float:
        """Most dollars that the requests in flight may cost."""
        return sum(
            most_cost(rates, prompt * self.prompt_scale, output, n)
            for rates, (prompt, output, n) in self._totals.items()
        )


@dataclass(slots=True)
class UsageMeter:
    """Computes the most tokens that a request can take, and charges what its reply took."""

    budget: Budget = field(default_factory=Budget)
    system: str = ""
    """Sent with every prompt."""
    is_counting: bool = False
    """Whether the tokens of replies are needed even if no prices are known: for a token rate, or
    for the budget of another process."""
    say: Callable[[str], None] = lambda _line: None
    """Takes a line that the user should see."""
    _has_warned: bool = False

    def asked(self, prompt: str) -> int:
        """Estimated tokens that are sent for `prompt`."""
        return estimate_tokens(self.system) + estimate_tokens(prompt)

    def max_usage(self, prompt: str, max_tokens: int) -> MaxUsage:
        sent = most_tokens(self.system) + most_tokens(prompt)
        return MaxUsage(sent, max_tokens)

    def settle(self, reply: Reply, prompt: str, max_tokens: int) -> tuple[Reply, Usage]:
        """Charges a reply by its own token counts, or else by an estimate. Returns the reply
        without counts that cannot be true, and the usage that was charged.
        """
        usage = self._sound(reply.usage, len(reply.text) + len(reply.reasoning or ""))
        if usage is not reply.usage:
            reply = replace(reply, usage=None)
        max_usage = MaxUsage(0, 0)
        if usage is None or self.budget.limit is not None:
            max_usage = self.max_usage(prompt, max_tokens)
        if usage is None:
            usage = self._estimate(reply, prompt, max_usage.output)
        elif self.budget.limit is not None:
            self.budget.learn(usage.prompt_tokens, max_usage.prompt)
        self.budget.charge(usage, estimated=reply.usage is None)
        return reply, usage

    def settle_nothing(self, usage: Usage | None) -> Usage:
        """Charges an exchange without a reply by its token counts, if any; returns the usage."""
        sound = self._sound(usage, 0)
        if sound is None:
            return _NOTHING
        self.budget.charge(sound)
        return sound

    def _estimate(self, reply: Reply, prompt: str, max_output: int) -> Usage:
        """Estimated usage of a reply without counts; a cut-off reply took its whole maximum."""
        if self.budget.prices is None and not self.is_counting:
            return _NOTHING  # not needed
        output = estimate_tokens(f"{reply.reasoning or ''} {reply.text}")
        cut = reply.finish_reason == "length"
        return Usage(self.asked(prompt), max_output if cut else min(output, max_output))

    def _sound(self, usage: Usage | None, characters: int) -> Usage | None:
        sound = sound_usage(usage, has_text=characters > 0)
        if sound is None and usage is not None and not self._has_warned:
            self._has_warned = True
            self.say(
                "the server's counts of tokens are ignored where they cannot be true; the first "
                f"such count is prompt_tokens {_figure(usage.prompt_tokens)} and output_tokens "
                f"{_figure(usage.output_tokens)} for a reply of {characters:,} characters"
            )
        return sound


def _figure(value: object) -> str:
    """A number as messages show it, shortened."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        digits = value.bit_length() * 30103 // 100_000 + 1
        return f"of about {digits:,} digits"
    return repr(value)
