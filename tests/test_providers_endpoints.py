"""Servers of the user's own: a file that `EYECHART_ENDPOINTS` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyechart.providers.base import SetupError
from eyechart.providers.catalog.endpoints import USER_FILE
from eyechart.providers.registry.model_name import parse_model
from eyechart.providers.registry.registry import needs
from eyechart.providers.secrets import redact


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file."""
    path = tmp_path / "own.yaml"
    monkeypatch.setenv(USER_FILE, str(path))
    return path


def test_a_server_of_ones_own(own: Path) -> None:
    """It can be named and is listed."""
    own.write_text("lab:\n  title: Ours\n  base_url: http://me:secret@gpu1:8000/v1\n")
    assert parse_model("lab/llama").provider == "lab"
    assert ("lab", "Ours", "http://***@gpu1:8000/v1") in needs()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vllm:\n  base_url: http://x/v1\n", "'vllm' in .* is a provider of its own; rename it"),
        ("a/b:\n  base_url: http://x/v1\n", "'a/b' in .* has a slash; rename it"),
        (
            "a:\n  base_url: ftp://x\n",
            r"yaml:2: entry 'a': field 'base_url': 'ftp://x' does not begin with http://",
        ),
        (
            "a:\n  base_url: http://\n",
            r"yaml:2: entry 'a': field 'base_url': 'http://' is no address",
        ),
        (
            "a:\n  base_url: http://x/v1?key=planted\n",
            r"yaml:2: entry 'a': field 'base_url': 'http://x/v1\?\*\*\*' has a query",
        ),
        (
            "a:\n  base_url: http://x/v1?\n",
            r"yaml:2: entry 'a': field 'base_url': 'http://x/v1\?\*\*\*' has a query",
        ),
        (
            "a:\n  base_url: 'http://x/v1#planted'\n",
            r"yaml:2: entry 'a': field 'base_url': .* has a fragment",
        ),
        (
            "a:\n  base_url: 'http://u:planted#1@x/v1'\n",
            r"yaml:2: entry 'a': field 'base_url': .* has a # before its @",
        ),
        (
            "a:\n  base_url: http://u:planted/1@x/v1\n",
            r"yaml:2: entry 'a': field 'base_url': 'http://\*\*\*@x/v1' is no address",
        ),
        (
            "a:\n  base_url: http://x\n  keys: K\n",
            r"yaml:3: entry 'a': field 'keys' is unknown; did you mean 'key'",
        ),
        (
            "a:\n  base_url: htp://u:p@ss@x\n",
            r"yaml:2: entry 'a': field 'base_url': 'htp://\*\*\*@x' does not begin",
        ),
        (
            "a:\n  base_url: http://x\n  key: sk-planted-1\n",
            r"entry 'a': field 'key': name the environment var",
        ),
        ("a:\n  base_url: 2025-02-30\n", "not YAML: day is out of range.*; a date is written as"),
        ("a:\n  title: A\n", r"yaml:1: entry 'a': field 'base_url' is missing"),
        ("- a\n", "yaml:1: the file must be names with their fields"),
        ("a: [\n", "yaml:2:1: not YAML: .*; is a quote or bracket missing"),
        (
            "a:\n  title: A\nb:\n  title: B\na:\n  title: C\n",
            r":5: key 'a' is here twice \(first on l",
        ),
        ("a:\n  base_url: http://x\n  base_url: http://y\n", r":3: key 'base_url' is here twice"),
    ],
)
def test_a_mistake_is_one_line(own: Path, text: str, said: str) -> None:
    """Wherever a provider's name is looked up."""
    own.write_text(text)
    with pytest.raises(SetupError, match=said) as wrong:
        parse_model("lab/llama")
    assert "\n" not in str(wrong.value)
    assert "planted" not in str(wrong.value)
    with pytest.raises(SetupError, match=said):
        needs()


def test_the_password_of_an_own_server_is_known_from_then_on(own: Path) -> None:
    """So that no message has it, as it is typed and as it is read."""
    own.write_text("lab:\n  base_url: http://me:planted%20pa'ss@gpu1:8000/v1\n")
    parse_model("lab/llama")
    assert redact("sent planted pa'ss, planted%20pa'ss") == "sent ***, ***"
