"""Reads a row of a recorded file by named columns: the reply and what belongs to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from eyechart.harness.errors import UsageError
from eyechart.harness.journal.files import MAX_LINE
from eyechart.harness.spec import exact_json
from eyechart.harness.spec.token_counts import token_count
from eyechart.providers.base import TransientError
from eyechart.providers.close_match import did_you_mean
from eyechart.providers.finish import finish_of, is_ending, word_to_show
from eyechart.providers.secrets import A_KEY, holds_key

Row: TypeAlias = Mapping[str, Any]

MAX_DOCUMENT = 8 * MAX_LINE
"""Bytes of what is read at once besides lines: a JSON array, or a member of a log of Inspect."""
DRAW = "draw"
"""The field that numbers several replies to one prompt."""
SAMPLE_FIELDS = ("id", "item", "prompt", "target", "length", "line", "index", DRAW)
"""Fields that say which sample a reply belongs to."""
REPLY_FIELDS = (
    "reply",
    "finish_reason",
    "cut_off",
    "refusal",
    "reasoning",
    "error",
    "model",
    "prompt_tokens",
    "output_tokens",
    "thought_tokens",
    "latency_s",
    "verdict",
)
"""Fields that say what was replied, and whether its author counted it as right."""
_REPLY_NAMES = (
    *("answer", "completion", "content", "generated_text", "generation", "model_output", "output"),
    *("prediction", "response", "said", "text"),
)
"""Names that others give to a column of replies."""
_ENDING_NAMES = ("stop_reason", "done_reason", "finish", "finishReason", "stopReason")
"""Names that others give to the reason why a reply ended."""
_INTEGER = re.compile(r"[+-]?[0-9]+(\.0*)?")
"""Writers of CSV add a point where a column has empty cells."""
_SHOWN = 30
"""Most columns that a message names."""
_NO_ERROR = ("", "none", "nan", "null", "nil", "n/a", "false", "0", "no", "ok", "{}", "[]")
"""Texts in a column of errors that mean "no error", in lower case."""
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")
_RIGHT = (*_TRUE, "1.0", "correct", "right", "c", "pass", "passed")
_WRONG = (*_FALSE, "0.0", "incorrect", "wrong", "i", "fail", "failed")


class RowError(Exception):
    """A row that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One row of a file."""

    number: int
    """Its line in the file, from 1; of a CSV file the line on which it ends; of an Inspect log or a
    JSON array, the number of the sample or object."""
    row: Row | None
    """The row; `None` if it cannot be read."""
    why: str = ""
    """Why the row cannot be read."""


@dataclass(frozen=True, slots=True)
class RowMark:
    """Identifies a row when its file is imported again."""

    file: int
    """Place of its file in the import, from 0."""
    row: str
    """Hash of the row's content, and its number among equal rows of the file."""
    values: str
    """Hash of the values that were read from the row."""


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """One reply, with what its row says about the sample. A value that the row lacks is `None`."""

    mark: RowMark
    reply: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    error: str | None = None
    """Why there is no reply."""
    is_left_out: bool = False
    """Whether the row has a reply beside its error, or one that its server broke off."""
    model: str | None = None
    """The model that answered, by the row."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    thought_tokens: int | None = None
    latency_s: float | None = None
    verdict: Literal["correct", "incorrect"] | None = None
    """Whether the row says that the reply is right."""
    id: str | None = None
    item: str | None = None
    """Number of the item in the items file, from 0, or the `id` in its metadata."""
    prompt: str | None = None
    target: object = None
    length: int | None = None
    line: int | None = None
    """Nominal length of the line."""
    index: int | None = None
    draw: str | None = None
    """What numbers the reply among those to its prompt."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """Axis -> what the row gives as its value."""


@dataclass(frozen=True)
class Columns:
    """The column of each field in a row; by default it has the field's name."""

    axes: tuple[str, ...]
    """The axes of the task; these are fields as well."""
    named: Mapping[str, str] = field(default_factory=dict)
    """Field -> its column; "" for no column. Dots lead into objects and lists: `choices.0.text`."""

    @classmethod
    def read(cls, given: Iterable[str], axes: Iterable[str]) -> Columns:
        """The columns of `--field FIELD=COLUMN[,…]`.

        Raises:
            UsageError: an option has another form, or there is no such field.
        """
        axes = tuple(axes)
        known = [*REPLY_FIELDS, *SAMPLE_FIELDS, *axes]
        named: dict[str, str] = {}
        for part in (part for option in given for part in option.split(",")):
            name, equals, column = (text.strip() for text in part.partition("="))
            if not (name and equals):
                raise UsageError(f"--field is FIELD=COLUMN[,FIELD=COLUMN], not {part!r}")
            if name not in known:
                raise UsageError(f"--field has no field {name!r}; {did_you_mean(name, known)}")
            if name in named:
                raise UsageError(f"--field names {name!r} twice; keep one")
            named[name] = column
        return cls(axes, named)

    def of(self, name: str) -> str:
        return self.named.get(name) or name

    def values(self, row: Row, by_form: Row) -> dict[str, Any]:
        """Field -> its value: from the column that an option names, else from the form of the file
        (`by_form`), else from the column with the field's name. Empty values are left out.

        Raises:
            RowError: the row lacks a column that an option names, or has neither a reply nor an
                error.
        """
        values: dict[str, Any] = {}
        for name in (*REPLY_FIELDS, *SAMPLE_FIELDS, *self.axes):
            if self.named.get(name) == "":
                continue
            if name in self.named:
                value = value_at(row, self.named[name])
            elif by_form:
                value = None if name in self.axes else by_form.get(name)
            else:
                value = row.get(name)
                if name == "finish_reason" and value is None:
                    value = _ending(row)
            if value is not None and (value != "" or name == "reply" or name in self.axes):
                values[name] = value
        if not values.keys() & {"reply", "error"}:
            raise RowError(_no_reply(row))
        return values


def value_at(row: Row, column: str) -> Any:
    """The value in a column; dots go into objects and lists, as in `choices.0.text`.

    Raises:
        RowError: the row lacks the column.
    """
    if column in row:
        return row[column]
    value: Any = row
    for part in column.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (LookupError, TypeError, ValueError):
            raise RowError(f"no column {column!r}; {_columns(column, row)}") from None
    return value


def recorded_reply(values: Mapping[str, Any], axes: Iterable[str], mark: RowMark) -> RecordedReply:
    """The reply of a row.

    Raises:
        RowError: there is neither a reply nor an error, or a value cannot be read.
    """
    error, reply = _error(values), values.get("reply")
    try:
        finish = _finish(values)
    except TransientError as broken_off:
        finish, error = None, error or str(broken_off)
    is_left_out = error is not None and reply not in (None, "")
    if error is not None:
        reply = None
    elif reply is None:
        raise RowError("the row has neither a reply nor an error")
    return RecordedReply(
        mark=mark,
        reply=None if reply is None else _reply_text(reply),
        finish_reason=finish,
        refusal=_optional(values, "refusal", _text)
        or (word_to_show(values["finish_reason"]) if finish == "content_filter" else None),
        reasoning=_optional(values, "reasoning", _text),
        error=error,
        is_left_out=is_left_out,
        model=_optional(values, "model", _model),
        prompt_tokens=_if_sound(values, "prompt_tokens", _tokens),
        output_tokens=_if_sound(values, "output_tokens", _tokens),
        thought_tokens=_if_sound(values, "thought_tokens", _tokens),
        latency_s=_if_sound(values, "latency_s", _number),
        verdict=_verdict(values),
        id=_optional(values, "id", _text),
        item=_optional(values, "item", _text),
        prompt=_optional(values, "prompt", prompt_text),
        target=values.get("target"),
        length=_whole(values, "length"),
        line=_whole(values, "line"),
        index=_whole(values, "index"),
        draw=_optional(values, DRAW, _draw),
        axes={axis: _text(values[axis]) for axis in axes if axis in values},
    )


def _optional(values: Mapping[str, Any], name: str, read: Callable[[Any], str]) -> str | None:
    return read(values[name]) if name in values else None


def _whole(values: Mapping[str, Any], name: str) -> int | None:
    try:
        return whole(values[name]) if name in values else None
    except ValueError:
        why = "no whole number from 0 on"
        raise RowError(f"{name} is {_shown(values[name])}, {why}") from None


def _if_sound(values: Mapping[str, Any], name: str, read: Callable[[Any], Any]) -> Any:
    """A number about a reply; `None` if it cannot be true. The reply is kept all the same."""
    try:
        return read(values[name]) if name in values else None
    except ValueError:
        return None


def _error(values: Mapping[str, Any]) -> str | None:
    """Why there is no reply. Tables have many ways to say that there is no error."""
    given = values.get("error")
    if not given or (isinstance(given, str) and given.strip().lower() in _NO_ERROR):
        return None
    if isinstance(given, float) and given != given:  # noqa: PLR0124  NaN
        return None
    return _text(given)


def _reply_text(reply: object) -> str:
    """The text of a reply; raises `RowError` for a list or an object."""
    if isinstance(reply, list | dict):
        kind, part = ("a list", "0") if isinstance(reply, list) else ("an object", _first(reply))
        raise RowError(f"reply is {kind}, no text; name its text as --field reply=reply.{part}")
    return _text(reply)


def _first(given: dict[str, Any]) -> str:
    """The key of the first text in an object."""
    return next((str(name) for name, value in given.items() if isinstance(value, str)), "text")


def _finish(values: Mapping[str, Any]) -> str | None:
    """Why the reply ended; raises `TransientError` where the server broke it off."""
    if "cut_off" in values:
        said = str(values["cut_off"]).strip().lower()
        if said not in (*_TRUE, *_FALSE):
            raise RowError(f"cut_off is {_shown(values['cut_off'])}, neither true nor false")
        if said in _TRUE:
            return "length"
    if "finish_reason" not in values:
        return None
    given = values["finish_reason"]
    finish = finish_of(given)
    return _text(given) if finish == "other" else finish


def _ending(row: Row) -> Any:
    """Why the reply of a row ended, by the word of a server in a column of another name."""
    return next((row[name] for name in _ENDING_NAMES if is_ending(row.get(name))), None)


def _verdict(values: Mapping[str, Any]) -> Literal["correct", "incorrect"] | None:
    """The verdict of the row's author; raises `RowError` for one between right and wrong."""
    if "verdict" not in values:
        return None
    said = str(values["verdict"]).strip().lower()
    if said in _RIGHT:
        return "correct"
    if said in _WRONG:
        return "incorrect"
    raise RowError(
        f"verdict is {_shown(values['verdict'])}, neither right nor wrong, which are true, 1, "
        "correct or pass, and false, 0, incorrect or fail; to take no verdicts, import with "
        "--field verdict="
    )


def _text(value: object) -> str:
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int | float):
        return str(value)
    return exact_json.dumps(value).decode()


def _model(value: object) -> str:
    name = _text(value)
    if holds_key(name):
        raise RowError(f"the row's model {A_KEY}")
    return name


def _draw(value: object) -> str:
    """The text of a draw; CSV files may write a whole number with a point."""
    try:
        return str(integer(value))
    except ValueError:
        return _text(value)


def _no_reply(row: Row) -> str:
    if "reply" in row:
        return "the row has no reply, and no error that says why"
    usual = next((name for name in row if str(name).lower() in ("reply", *_REPLY_NAMES)), None)
    remedy = (
        "name the column of the replies with --field reply=COLUMN"
        if usual is None
        else f"did you mean --field reply={usual}?"
    )
    return f"the row has no column 'reply'; {remedy}{';' if usual is None else ''} {_listed(row)}"


def _columns(column: str, row: Row) -> str:
    """The columns of a row, after one that is spelled like `column` if there is one."""
    return f"{did_you_mean(column, map(str, row), '')} {_listed(row)}".lstrip()


def _listed(row: Row) -> str:
    names = [*map(str, row)]
    shown = ", ".join(names[:_SHOWN]) + (", …" if names[_SHOWN:] else "")
    return f"the columns are {shown or 'none'}"


def cell_text(value: object) -> str:
    """The text of a value, as somebody writes it on a command line."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return _text(value)


def prompt_text(value: object) -> str:
    """The text of a prompt. Of a list of messages it is the last message whose role is `user`."""
    messages = value
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        try:
            messages = exact_json.loads(value)
        except ValueError:
            return value
    if isinstance(messages, list):
        texts = [
            _joined(one.get("content"))
            for one in messages
            if isinstance(one, dict) and one.get("role") == "user"
        ]
        if texts and isinstance(texts[-1], str):
            return _text(texts[-1])
    return _text(value)


def _joined(content: object) -> object:
    """The content of a message; of a list of parts, all of which are texts, the texts joined."""
    if isinstance(content, list) and content:
        texts = [part.get("text") if isinstance(part, dict) else None for part in content]
        if all(isinstance(text, str) for text in texts):
            return "".join(map(str, texts))
    return content


def integer(value: object) -> int:
    """An integer, also as a text and with zeros behind the point; raises `ValueError`."""
    if isinstance(value, str):
        text = value.strip().replace("\N{MINUS SIGN}", "-")
        if not _INTEGER.fullmatch(text):
            raise ValueError("no integer")
        return int(text.partition(".")[0])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("no integer")  # noqa: TRY004  the row's fault
    return value


def whole(value: object) -> int:
    """An integer that is not below 0; raises `ValueError`."""
    if (number := integer(value)) < 0:
        raise ValueError("below 0")
    return number


def _tokens(value: object) -> int:
    count = token_count(whole(value))
    if count is None:
        raise ValueError("no number of tokens")
    return count


def _number(value: object) -> float:
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        raise ValueError("no number")  # noqa: TRY004  the row's fault
    return float(value)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:39]}…"  # noqa: PLR2004  a line's worth


def values_hash(values: Mapping[str, Any]) -> str:
    """A hash of values, whatever their order."""
    content = exact_json.dumps({name: values[name] for name in sorted(values)})
    return hashlib.sha256(content).hexdigest()[:24]
