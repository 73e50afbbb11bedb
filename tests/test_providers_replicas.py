"""Which of several servers a request goes to."""

from __future__ import annotations

import pytest

from eyechart.providers.base import (
    BadReplyError,
    BadRequestError,
    BrokenConnectionError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    ReplyTimeoutError,
    ServerFaultError,
)
from eyechart.providers.http.replicas import REST_S, Replicas


def test_the_least_busy_is_asked() -> None:
    """Each prefix goes to a server of its own while there is one."""
    replicas = Replicas(["a", "b", "c"])
    with replicas.use("1") as first, replicas.use("2") as second, replicas.use("3") as third:
        assert {first, second, third} == {"a", "b", "c"}


def test_what_begins_alike_stays_together() -> None:
    """Even where another server is free."""
    replicas = Replicas(["a", "b"])
    with replicas.use("row 1") as first, replicas.use("row 1") as again:
        assert first == again
    with replicas.use("row 2") as other, replicas.use("row 1") as later:
        assert (other, later) == ("a", first)


@pytest.mark.parametrize(
    ("error", "moves"),
    [
        (BrokenConnectionError("gone"), True),
        (OverloadedError("503"), True),
        (ReplyTimeoutError("600 s"), True),
        (BadRequestError("400"), False),
    ],
)
def test_a_server_that_broke_rests_for_a_while(error: ProviderError, *, moves: bool) -> None:
    """Its prefixes move to another, and a new one comes back to it afterwards."""
    now_s = 0.0
    replicas = Replicas(["a", "b"], clock=lambda: now_s)
    with pytest.raises(ProviderError), replicas.use("row 1"):
        raise error
    with replicas.use("row 1") as server:
        assert server == ("b" if moves else "a")
    now_s = REST_S
    with replicas.use("row 2") as server:
        assert server == "a"


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    """The others are asked meanwhile."""
    now_s = 0.0
    replicas = Replicas(["a", "b"], clock=lambda: now_s)

    def asked() -> str:
        with replicas.use("row 1") as server:
            return server

    with pytest.raises(RateLimitError), replicas.use("row 1"):
        raise RateLimitError("429", retry_after_s=3.0)
    assert asked() == "b"
    now_s = 2.9
    assert asked() == "b"
    with pytest.raises(RateLimitError), replicas.use("row 1"):
        raise RateLimitError("429")
    assert asked() == "b"
    now_s = 3.0
    with replicas.use("row 2") as server:
        assert server == "a"


@pytest.mark.parametrize("kind", [ServerFaultError, BadReplyError])
def test_one_fault_is_bad_luck_and_three_in_a_row_are_not(
    kind: type[ServerFaultError | BadReplyError],
) -> None:
    """A dead engine answers at once, so it is always the least busy one."""
    replicas = Replicas(["a", "b"], clock=lambda: 0.0)

    def failing() -> str:
        with pytest.raises(kind), replicas.use("row 1") as server:
            raise kind("500")
        return server

    assert [failing(), failing()] == ["a", "a"]
    with replicas.use("row 2") as server:
        assert server == "a"
    assert [failing(), failing(), failing(), failing()] == ["a", "a", "a", "b"]


def test_where_all_broke_all_are_tried() -> None:
    """A retry is the runner's decision."""
    replicas = Replicas(["a", "b"])
    for _ in range(4):
        with pytest.raises(BrokenConnectionError), replicas.use("row 1"):
            raise BrokenConnectionError("gone")
