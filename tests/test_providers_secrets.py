"""Keys and passwords leave every text that is shown or kept, and nothing else does."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eyechart.providers import secrets
from eyechart.providers.base import environment_key
from eyechart.providers.secrets import (
    holds_key,
    keep_address,
    keep_secret,
    mask,
    masked,
    masked_fields,
    may_hold_secret,
    redact,
    redact_address,
    scrub,
    watch_environment,
)

KEY = "sk-planted-0123456789abcdef"
AWKWARD = "pa'ss \"w\\\\o/r+d é"
MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def fresh() -> None:
    """Forgets what examples before this one planted."""
    secrets._KNOWN = secrets._KnownSecrets()


@pytest.mark.parametrize("secret", [KEY, AWKWARD])
def test_a_secret_goes(secret: str) -> None:
    """Out of messages and out of replies, also where they are written as JSON later."""
    keep_secret(secret)
    text = f"before {secret} after"
    assert may_hold_secret(json.dumps({"reply": text}).encode())
    assert redact(text) == mask(text) == "before *** after"


@MANY
@given(st.text(), st.lists(st.sampled_from([KEY, AWKWARD, "none", "0101", "tea", "1234567890"])))
def test_a_reply_without_a_secret_stays_as_it_is(text: str, planted: list[str]) -> None:
    """Also where keys are known, and where a word of a reply is somebody's key."""
    fresh()
    for one in planted:
        keep_secret(one)
    for said in (text, f"Final answer: 1234567890 tea 0101 none {text}"):
        if not {KEY, AWKWARD} & {one for one in planted if one in said}:
            assert mask(said) == said
            assert masked({"a": [said, 1, None]}) == {"a": [said, 1, None]}


@pytest.mark.parametrize(
    ("secret", "stays"),
    [
        ("dummy", True),
        ("EMPTY", True),
        ("11111111", True),
        ("123456789012", True),
        ("changeme", True),
        ("1,1,0,1,0,1", True),
        ("token-abc123", False),
        ("pa'ss", False),
        ("sesamsesamöffnedich", False),
        ("93847561029384756", False),
    ],
)
def test_what_may_be_an_answer_stays_in_replies(secret: str, stays: bool) -> None:
    """A key that is a word or a row of digits goes from messages only."""
    keep_secret(secret)
    assert (mask(f"Final answer: {secret}") == f"Final answer: {secret}") == stays
    assert redact(f"bad key: {secret}") == "bad key: ***"


@pytest.mark.parametrize(
    "word", ["local", "none", "EMPTY", "Test", "placeholder", "lm-studio", "not-needed", "no_key"]
)
def test_a_key_that_is_an_ordinary_word_hides_nothing(
    monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """Servers that need no key are given one; the same word as a password is still hidden."""
    fresh()
    monkeypatch.setenv("OPENAI_API_KEY", word)
    assert environment_key("OPENAI_API_KEY") == word
    said = f"{word}/m is asked; {word}-{word}: 3 of 5 replies"
    assert redact(said) == mask(said) == said
    keep_address(f"http://me:{word}@host")
    assert redact(f"a {word} b") == "a *** b"
    monkeypatch.setenv("OPENAI_API_KEY", "tea4two-and-two4tea")
    environment_key("OPENAI_API_KEY")
    assert "tea4two" not in redact("tea4two-and-two4tea is asked")


def test_a_short_key_is_none_within_a_word() -> None:
    """A key `none` leaves `nonetheless` alone."""
    keep_secret("none")
    assert redact("none, nonetheless") == "***, nonetheless"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("at http://user:secret@host/v1", "at http://***@host/v1"),
        ('{"url":"http://host","mail":"x@y"}', '{"url":"http://host","mail":"x@y"}'),
        ("http://h/v1?a=1&auth=K3&b=2#c x", "http://h/v1?a=1&auth=***&b=2#c x"),
        ("http://h/?to=http://g?token=K", "http://h/?to=http://g?token=***"),
        ("http://h/v1?api-version=2024-10-21", "http://h/v1?api-version=2024-10-21"),
        ("see docs#rate-limits", "see docs#rate-limits"),
        ("got Basic dXNlcjpwYXNz, sorry", "got Basic ***, sorry"),
        ("got 'bearer sk-1234'", "got 'bearer ***'"),
        ("Basic authentication required", "Basic authentication required"),
        ("Bearer token is missing", "Bearer token is missing"),
    ],
)
def test_what_looks_like_a_key_goes_from_messages(text: str, clean: str) -> None:
    """In addresses and after the names of the schemes; ordinary words and links stay."""
    assert redact(text) == clean


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:8000/v1", "http://host:8000/v1"),
        ("http://user:pa'ss@host/v1", "http://***@host/v1"),
        ("http://user:p@ss@host/v1", "http://***@host/v1"),
        ("http://user:pa/ss@host/v1", "http://***@host/v1"),
        ("http://user:pa#ss@host/v1", "http://***@host/v1"),
        ("http://host/v1?auth=K3K3", "http://host/v1?***"),
        ("http://host/v1#K3K3", "http://host/v1#***"),
        ("user:K3K3@host/v1", "***@host/v1"),
        ("http://[::1/", "http://[::1/"),
        ("", ""),
    ],
)
def test_what_is_shown_of_an_address(url: str, shown: str) -> None:
    """Whether it is one or not."""
    assert redact_address(url) == shown


def test_an_address_gives_its_password_away_in_no_form() -> None:
    """As it is written there, and decoded."""
    keep_address("http://user:pa%27ss@host/v1")
    said = "pa'ss, pa%27ss"
    assert redact(said) == mask(said) == "***, ***"


def test_keys_of_a_query_are_known() -> None:
    """So that nobody says them back."""
    keep_address(f"http://host/v1?version=2024-10&api_key={quote(KEY)}#{KEY}2")
    assert redact(f"{KEY} of 2024-10, {KEY}2") == "*** of 2024-10, ***"


@pytest.mark.parametrize("value", [f"Bearer {KEY}", f" {KEY}\n", f"basic {KEY}"])
def test_a_header_is_its_key(value: str) -> None:
    """Without the scheme before it."""
    keep_secret(value)
    assert mask(f"I was sent {KEY}") == "I was sent ***"


def test_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables by their names, and passwords of proxies; paths are no keys."""
    monkeypatch.setenv("MY_API_KEY", KEY)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:pr0xy-pass@127.0.0.1:3128")
    monkeypatch.setenv("SOME_KEY_FILE", "/home/somebody/key.json")
    watch_environment()
    said = f"{KEY} by way of http://me:pr0xy-pass@127.0.0.1:3128, from /home/somebody/key.json"
    shown = "*** by way of http://me:***@127.0.0.1:3128, from /home/somebody/key.json"
    assert mask(said) == shown
    assert KEY not in redact(said)
    monkeypatch.delenv("MY_API_KEY")
    watch_environment()
    assert mask(KEY) == KEY


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("sk-proj-AbC0123456789defghij", True),
        ("openai/sk-ant-api03-abcdefghijklmnop", True),
        ("gsk_abcdefghijklmnopqrst0123", True),
        ("tiny@planted.key.of.ours.1", True),
        ("sk-learn-text-classifier", False),
        ("vllm/meta-llama/Llama-3.1-8B-Instruct-AWQ-INT4-2024-10-22", False),
        ("./hf_models/gpt2", False),
        ("task-abcdefghijklmnopqrstuvw-0123456789", False),
    ],
)
def test_a_name_that_has_a_key(name: str, is_one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the environment, or what begins as vendors' keys do; names of models are none."""
    monkeypatch.setenv("OUR_API_KEY", "planted.key.of.ours.1")
    assert holds_key(name) == is_one


def test_only_the_named_fields_are_touched() -> None:
    """What makes a record resumable stays, and a record without keys is the same object."""
    keep_secret(KEY)
    record = {"id": KEY, "prompt_hash": "00", "reply": f"x {KEY}", "failure": {"message": KEY}}
    clean = masked_fields(record, ("reply", "failure", "model"))
    assert clean == {**record, "reply": "x ***", "failure": {"message": "***"}}
    assert masked_fields(clean, ("reply", "failure", "model")) is clean


def test_tokens_of_a_key_go_together() -> None:
    """Each alone tells little, and all in a row everything."""
    keep_secret(KEY)
    tokens = ["The", " key", f" {KEY[:5]}", KEY[5:20], f"{KEY[20:]}.", " Bye"]
    record = {"logprobs": tuple((token, -0.5) for token in tokens)}
    clean = masked_fields(record, ("logprobs",))
    expected = ["The", " key", "***", "***", "***", " Bye"]
    assert [token for token, _ in clean["logprobs"]] == expected


def test_tokens_of_a_key_go_together_among_the_most_probable_ones() -> None:
    """As the token of the reply, and as its rival at each place."""
    keep_secret(KEY)
    tokens = ["The", f" {KEY[:5]}", KEY[5:20], f"{KEY[20:]}.", " Bye"]
    rivals = ["a", "b", "c", "d", "e"]
    for chosen, others in ((tokens, rivals), (rivals, tokens)):
        pairs = [((one, -0.5), (two, -2.0)) for one, two in zip(chosen, others, strict=True)]
        record = {"logprobs": tuple((one, -0.5) for one in rivals), "top_logprobs": tuple(pairs)}
        clean = masked_fields(record, ("logprobs", "top_logprobs"))
        assert clean["top_logprobs"][0] == pairs[0]
        assert clean["top_logprobs"][2] == (("***", -0.5), ("***", -2.0))
        assert KEY not in "".join(top[0][0] for top in clean["top_logprobs"])


def test_a_log_is_scrubbed_from_where_it_began(tmp_path: Path) -> None:
    """Other bytes stay as they are, also those that are no UTF-8."""
    keep_secret(KEY)
    log = tmp_path / "server.log"
    before = f"an earlier {KEY}\n".encode()
    log.write_bytes(before + b"\xff starts\n" + f"key {KEY} \xe9\n".encode("latin-1") + b"ends")
    scrub(log, len(before))
    assert log.read_bytes() == before + b"\xff starts\nkey *** \xe9\nends"


@pytest.mark.parametrize("piece", ["?key", "://a", "\\", "basic ", "&a=", "pa\\\\", "sk-planted-"])
def test_long_texts_take_no_time(piece: str) -> None:
    """Whatever they repeat: 64 KiB are what an error may have."""
    keep_secret(KEY)
    keep_address("http://user:pa\\\\'\"ss@host")
    text = (piece * 65_536)[:65_536]
    began_s = time.process_time()
    redact(text)
    mask(text)
    assert time.process_time() - began_s < 1
