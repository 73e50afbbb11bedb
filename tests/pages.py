"""The text of a page of `bench report`, with the data that it unpacks."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

_DATA = re.compile(r'<script type="text/plain" id="data">(.*?)</script>', re.DOTALL)


def unpack(text: str) -> Any:
    """The value that `packed_samples.pack` has packed."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def data_of(page: str) -> dict[str, Any]:
    """What the page's script reads."""
    match = _DATA.search(page)
    assert match is not None
    read: dict[str, Any] = unpack(match[1])
    return read


def text_of(page: Path) -> str:
    """The page's own text, and its data as JSON."""
    text = page.read_text(encoding="utf-8")
    data = json.dumps(data_of(text), ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n{data}"
