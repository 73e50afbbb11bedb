"""A prompt as a text to be continued: what base models are asked under `--api completions`."""

from __future__ import annotations

CUE = "\nAnswer:"
"""Follows the prompt, so that a model that continues texts continues with an answer."""
_WORDS = 3


def as_document(prompt: str) -> str:
    """The text to continue."""
    return f"{prompt}{CUE}"


def stops(prompt: str) -> list[str]:
    """Where a model that runs on begins the next question: its first words, its row, its cue."""
    lines = prompt.split("\n")
    label = lines[-1].partition(":")[0].split(" ")[0]
    begins = (" ".join(lines[0].split(" ")[:_WORDS]), label, CUE.strip())
    return list(dict.fromkeys(f"\n{begin}" for begin in begins if begin))


def until_stop(text: str, prompt: str) -> str | None:
    """`text` up to the first of the prompt's stops; `None` where it has none."""
    places = [place for stop in stops(prompt) if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else None
