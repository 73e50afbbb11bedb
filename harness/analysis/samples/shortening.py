"""Shortens long texts of samples, and says in the text how much is left out."""

from __future__ import annotations


def shortened(text: str, most: int, where: str = "") -> str:
    """`text`, its middle left out beyond `most` characters; `where` says where the whole is."""
    if len(text) <= most:
        return text
    head, tail = most - most // 2, most // 2
    left_out = len(text) - head - tail
    return f"{text[:head]}[… {left_out:,} characters{where} …]{text[len(text) - tail :]}"


def marked(
    reply: str, start: int, end: int, most: int | None, where: str = ""
) -> list[tuple[str, bool]]:
    """`reply` in parts; the part that is the answer `reply[start:end]` is marked true. Shortened to
    about `most` characters, without touching the answer.
    """
    if start == end:
        return [(reply if most is None else shortened(reply, most, where), False)]
    parts = [(reply[:start], False), (reply[start:end], True), (reply[end:], False)]
    if most is not None and len(reply) > most:
        room = [most // 4, most // 2, most // 4]
        parts = [
            (shortened(part, size, where), answer)
            for (part, answer), size in zip(parts, room, strict=True)
        ]
    return parts
