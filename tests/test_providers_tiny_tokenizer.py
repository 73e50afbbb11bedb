"""The embedded model's tokenizer, and the package that tokenizers of other models need."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from eyechart.harness.plan.plan import plan
from eyechart.harness.task.catalogue import built_in_files, open_task
from eyechart.providers.base import SetupError
from eyechart.providers.tiny.chat import Chat
from eyechart.providers.tiny.folder import SHIPPED
from eyechart.providers.tiny.tokenizer import PieceTokenizer

CONTENT = (SHIPPED / "tokenizer.json").read_bytes()
THEIRS = Tokenizer.from_buffer(CONTENT)
PARTS = st.sampled_from(["<user>", "<eos>", " ", "  ", "\n", "count", " the", "Zebra", "é", "\x1c"])
TEXTS = st.lists(st.one_of(PARTS, st.text(max_size=5)), max_size=8).map("".join)


def ours() -> PieceTokenizer:
    found = PieceTokenizer.read(CONTENT)
    assert found is not None
    return found


def check(text: str) -> None:
    mine, theirs = ours().encode(text), THEIRS.encode(text)
    assert (mine.ids, mine.offsets) == (theirs.ids, theirs.offsets)
    for skip in (True, False):
        assert ours().decode(mine.ids, skip_special_tokens=skip) == THEIRS.decode(
            theirs.ids, skip_special_tokens=skip
        )


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_any_text_has_the_tokens_of_the_package(text: str) -> None:
    """With the same characters, and the same text again."""
    check(text)


@pytest.mark.parametrize("name", sorted(built_in_files()))
def test_prompts_have_the_tokens_of_the_package(name: str) -> None:
    """Those of every task."""
    planned = plan(open_task(name, built_in_files()[name], trial=False), samples=1)
    for condition, line in planned.sizes:
        check(planned.sample(condition, line, 0).prompt)


def spoilt(**more: Any) -> bytes:
    return json.dumps(json.loads(CONTENT) | more).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"[" * 10_000,
        spoilt(decoder=None),
        spoilt(added_tokens=[]),
        spoilt(added_tokens=[{"content": "<unk>", "id": 0}]),
        spoilt(model={"type": "WordPiece"}),
        spoilt(model=json.loads(CONTENT)["model"] | {"vocab": {"<unk>": "0"}}),
        spoilt(pre_tokenizer={"type": "Whitespace"}),
        spoilt(more="x" * 100_000),
    ],
    ids=range(10),
)
def test_a_tokenizer_of_another_form_is_not_read(content: bytes) -> None:
    """It is the package's, or a mistake."""
    assert PieceTokenizer.read(content) is None


def test_another_tokenizer_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is one line with the extra; the embedded model needs none."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert Chat(SHIPPED).text([7]) == "0"
    for path in SHIPPED.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "tokenizer.json").write_bytes(spoilt(normalizer={"type": "NFC"}))
    with pytest.raises(SetupError, match=r"needs the package tokenizers: .*\[tokenizers\]"):
        Chat(tmp_path)
