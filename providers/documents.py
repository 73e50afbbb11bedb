"""A prompt as a text to continue, for base models: `api` is `completions`."""

from __future__ import annotations

CUE = "\nAnswer:"
"""Added after a prompt that does not end with a colon, so that the continuation is an answer."""
_WORDS = 3


def as_document(prompt: str) -> str:
    """The text to continue."""
    ends = prompt.rstrip().endswith(":") or _has_examples(prompt)
    return prompt if ends else f"{prompt}{CUE}"


def _has_examples(prompt: str) -> bool:
    """Whether the prompt has worked examples: its last line begins another line, with an answer
    after it and an empty line before the next question.
    """
    before, _, last = prompt.rpartition("\n")
    _, begins, answered = before.partition(f"\n{last} ")
    return bool(last.strip() and begins) and "\n\n" in answered


def opened(prompt: str, opening: str) -> str:
    """The text to continue with an option: the prompt, and the opening on a line of its own."""
    return f"{prompt.rstrip()}\n{opening}" if opening else prompt


def stops(prompt: str) -> list[str]:
    """Stop sequences, which show that a model has begun another question after its answer: the
    prompt's first words, the label of its last line, the cue, and after worked examples an empty
    line.
    """
    lines = prompt.split("\n")
    label = lines[-1].partition(":")[0].split(" ")[0]
    beginnings = (" ".join(lines[0].split(" ")[:_WORDS]), label, CUE.strip())
    found = dict.fromkeys(f"\n{beginning}" for beginning in beginnings if beginning)
    return [*found, *(["\n\n"] if _has_examples(prompt) else [])]


def until_stop(text: str, prompt: str) -> str | None:
    """`text` up to the first of the prompt's stop sequences; `None` if it has none."""
    places = [place for stop in stops(prompt) if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else None
