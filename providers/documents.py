"""A prompt as a text to continue, for base models with `--api completions`."""

from __future__ import annotations

CUE = "\nAnswer:"
"""Added after a prompt that does not end with a colon, so that the continuation is an answer."""
_WORDS = 3


def as_document(prompt: str) -> str:
    """The text to continue."""
    return prompt if prompt.rstrip().endswith(":") else f"{prompt}{CUE}"


def opened(prompt: str, opening: str) -> str:
    """The text to continue with an option: the prompt, and the opening on a line of its own."""
    return f"{prompt.rstrip()}\n{opening}" if opening else prompt


def stops(prompt: str) -> list[str]:
    """Stop sequences, which show that a model has begun another question after its answer: the
    prompt's first words, the label of its last line, and the cue.
    """
    lines = prompt.split("\n")
    label = lines[-1].partition(":")[0].split(" ")[0]
    beginnings = (" ".join(lines[0].split(" ")[:_WORDS]), label, CUE.strip())
    return list(dict.fromkeys(f"\n{beginning}" for beginning in beginnings if beginning))


def until_stop(text: str, prompt: str) -> str | None:
    """`text` up to the first of the prompt's stop sequences; `None` if it has none."""
    places = [place for stop in stops(prompt) if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else None
