"""The descriptor of a model that is a function or an object in a Python file of the user's."""

from __future__ import annotations

from pathlib import PurePath

from eyechart.providers.base import SetupError
from eyechart.providers.descriptor import Descriptor

_ENDING = ".py"


def parts_of(model: str) -> tuple[str, str]:
    """The file and the name in it: `agent.py` and `answer` of `agent.py:answer`. Of a function that
    a Python program gave the file is empty.

    Raises:
        SetupError: the name in the file is missing or is no name.
    """
    file, _, name = model.rpartition(":")
    if model.endswith(_ENDING):
        raise SetupError(f"{model} is a file; name the function in it: {model}:FUNCTION")
    if file.endswith(_ENDING) and not name.isidentifier():
        raise SetupError(f"{name!r} in {model!r} is no name of a function; write {file}:FUNCTION")
    return (file, name) if file.endswith(_ENDING) else ("", model)


def label(model: str) -> str:
    """`agent.answer` of `agents/agent.py:answer`."""
    file, name = parts_of(model)
    return f"{PurePath(file).stem}.{name}" if file else name


DESCRIPTOR = Descriptor(
    name="function",
    title="a function or an object in a Python file of yours",
    needs=lambda _environ: "the file",
    example="agent.py:answer",
    bare=r".+\.py(:.*)?",
    opens="eyechart.providers.function.provider:open_file",
    read_label=label,
    executes=lambda model: parts_of(model)[0],
    models_are_files=True,
    users_name_models=True,
    takes_address=False,
    takes_temperature=False,
    gives_logprobs=False,
    efforts="none",
    takes_turns=True,
    runs_here=True,
    is_free=True,
    has_tokenizer=False,
    in_cluster="",
)
