"""All settings of a run.

Command line, `bench.toml`, environment, studies and Python build a `RunSettings`. Help texts,
files, variables and chapters follow from its fields; CONTRIBUTING.md says what else a new setting
needs.

It is a plain dataclass: `bench --help` needs all of it, and does not wait for pydantic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eyechart.harness.settings.checks import (
    COARSEST,
    FINEST,
    MAX_DRAWS,
    MAX_SAMPLES,
    Lengths,
    NumberRange,
    OneOf,
    OrWord,
    axes,
    headers,
    matching,
    names,
    params,
    path,
    public_name,
    text,
    texts,
    thinking,
)
from eyechart.harness.settings.conflicts import check_together
from eyechart.harness.settings.ray_options import RayOptions
from eyechart.harness.settings.setting import (
    Part,
    Setting,
    declared,
    on_or_off,
    read_each,
    setting,
)
from eyechart.harness.settings.shard import WHOLE, Shard
from eyechart.providers.naming import named
from eyechart.providers.secrets import has_secret

_POSITIVE = NumberRange(0, is_whole=False, is_above=True)
_ANY_TASK: tuple[Part, ...] = ("study", "task")
_LISTED = "with commas; in the file also a list"
_SEVERAL = "several with blanks between"


def _system(given: Any) -> str:
    if has_secret(text(given)):
        raise ValueError(
            "has a key or a password in it, which would be sent to the model and written to the "
            "manifest; leave it out"
        )
    return str(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run as they were given, and checked: `RunSettings.read` makes them.

    Several models and kinds of thinking are several runs.
    """

    task: tuple[str, ...] = setting(
        names,
        "Task, group, task file or folder of them.",
        "NAME[,NAME]",
        (),
        short="t",
        form=f"names {_LISTED}",
        repeats=True,
        begins="What is asked",
    )
    model: tuple[str, ...] = setting(
        names,
        f"provider/model, or a name that the server at {named('base_url')} has; 'tiny' and "
        "'oracle:50' are built in, and agent.py:answer is a function of yours.",
        "NAME[,NAME]",
        (),
        short="m",
        form=f"names {_LISTED}",
        identity="model",
        repeats=True,
    )
    name: str | None = setting(
        matching(
            r"[^@]*(@[A-Za-z0-9][A-Za-z0-9._=+-]{0,39})?",
            "must be NAME, NAME@VARIANT or @VARIANT, with a variant of letters, digits and "
            ". _ = + -, at most 40, that begins with a letter or digit",
            public_name,
        ),
        f"Name in tables, folders and pages: lab/m8 for the model at {named('base_url')} or in "
        "files; @bf16-fp8kv, or both, for a variant: how the model is served.",
        "NAME|@VARIANT",
        form="a name for the [model at `base-url`](models.md#a-server-of-your-own) or in files, a "
        "[variant](models.md#variants-of-one-model) after an @, or both",
        key="called",
        parts=("model",),
        identity="model",
    )
    lengths: tuple[int, ...] | None = setting(
        Lengths(),
        "Symbols in a row; default: the task's.",
        "N[,N]",
        form=f"numbers {_LISTED}",
        parts=_ANY_TASK,
    )
    exact: bool = on_or_off(
        "Rows of exactly these lengths, not of the lengths between them too.", parts=_ANY_TASK
    )
    axes: Mapping[str, tuple[str, ...]] = setting(
        axes,
        "Values to run; 'all' for all. Every task takes examples=0,2,4,8: worked examples before "
        "the question.",
        "AXIS=VALUE[,VALUE]",
        {},
        form=f"`AXIS=VALUE,VALUE`, {_SEVERAL}; in the file a list of them, or a table",
        option="axis",
        key="axes",
        parts=("task",),
        repeats=True,
    )
    samples: int | None = setting(
        NumberRange(1, MAX_SAMPLES), "Samples per cell.", "N", parts=_ANY_TASK, begins="How much"
    )
    draws: int = setting(
        NumberRange(1, MAX_DRAWS),
        "How often each sample is asked: at a temperature, or to see a server's noise.",
        "K",
        1,
        parts=("study",),
    )
    adaptive: bool = on_or_off(
        "Ask where a reply tells most, until the effective length is known; "
        f"{named('samples')} is then the most of a line.",
        parts=("study",),
    )
    precision: float | None = setting(
        NumberRange(FINEST, COARSEST, is_whole=False, unit=" octaves"),
        f"With {named('adaptive')}: width of the interval that is enough, 0.4 to 1; default: as "
        "wide as in a full run.",
        "OCTAVES",
        parts=("study",),
    )
    max_requests: int | None = setting(
        NumberRange(1, 999_999_999),
        f"With {named('adaptive')}: samples to ask of each model, at most.",
        "N",
        parts=("study",),
    )
    seed: int = setting(
        NumberRange(0, 2**63 - 1),  # vendors take whole seeds from 0 on, of 64 bits with a sign
        "Seed from which every sample is drawn.",
        "N",
        0,
        parts=("study",),
        identity="settings",
        begins="How it is asked",
    )
    temperature: float | None = setting(
        OrWord("none", NumberRange(0, is_whole=False)),
        "Temperature of the model; none: none is sent, so that of its server holds.",
        "T|none",
        0.0,
        parts=("study",),
        identity="settings",
    )
    """`None` is `none`."""
    max_tokens: int | None = setting(
        OrWord("auto", NumberRange(1, 999_999_999)),
        "Tokens a reply may have, with its thinking; auto: what the task and the model need.",
        "auto|N",
        says_default="auto",
        parts=("study",),
        identity="settings",
    )
    """`None` is `auto`."""
    api: Literal["chat", "completions"] = setting(
        OneOf("chat", "completions"),
        "completions: for base models.",
        "chat|completions",
        "chat",
        parts=("study",),
        identity="settings",
    )
    reading: Literal["reply", "likelihood"] = setting(
        OneOf("reply", "likelihood"),
        "likelihood: in place of a reply, how probable the right answer is among named others.",
        "reply|likelihood",
        "reply",
        option="read",
        parts=("model",),
        identity="settings",
    )
    system: str | None = setting(
        _system,
        "A system prompt; default: the task's.",
        "TEXT",
        form="a text",
        parts=("study",),
        identity="settings",
    )
    thinking: tuple[str, ...] = setting(
        thinking,
        "Whether, or how much, a model thinks first: at most so many tokens, or an effort such as "
        "low, medium, high; one run each.",
        "on|off|TOKENS|WORD",
        (),
        form=f"on, off, a number of tokens, or an effort, {_LISTED}",
        usual=("on", "off", "minimal", "low", "medium", "high"),
        parts=("model",),
        identity="settings",
    )
    params: Mapping[str, Any] = setting(
        params,
        "A further field of each request's body; the value is JSON, as top_p=0.95 or "
        'chat_template_kwargs={"mode": "fast"}.',
        "KEY=VALUE",
        {},
        form=f"`KEY=VALUE`, {_SEVERAL}; in the file a list of them, or a table",
        option="param",
        key="params",
        parts=("model",),
        identity="settings",
        repeats=True,
    )
    logprobs: int | None = setting(
        NumberRange(0, 20),
        "Keep the probabilities of the replies' tokens, and of the N most probable tokens at each "
        "place; 0: of the reply's tokens alone.",
        "N",
        parts=("model",),
    )
    base_url: tuple[str, ...] = setting(
        texts,
        "Server to ask; several are replicas.",
        "URL",
        (),
        form=f"an address, {_SEVERAL}",
        parts=("model",),
        doubt="names an address that requests and keys would be sent to",
        repeats=True,
        begins="Where it is asked",
    )
    header: tuple[str, ...] = setting(
        headers,
        "A further header of each request, as gateways need; $VARIABLE in the value is one of the "
        "environment. It is never stored.",
        "NAME=VALUE",
        (),
        form="`NAME=VALUE`; in the file a list of them",
        parts=("model",),
        doubt="can send any variable of the environment",
        repeats=True,
    )
    model_args: tuple[str, ...] = setting(
        texts,
        "Argument for the model that lm-eval/ loads, or for the server that vllm/ starts.",
        "KEY=VALUE",
        (),
        form=f"`KEY=VALUE`, {_SEVERAL}",
        option="model-arg",
        parts=("model",),
        doubt="can load code and send keys elsewhere",
        repeats=True,
    )
    max_connections: int = setting(
        NumberRange(1, 10_000),
        "Requests in flight, at most.",
        "N",
        64,
        parts=("model",),
        begins="Rates, prices and machines",
    )
    rpm: float | None = setting(_POSITIVE, "Requests a minute, at most.", "N", parts=("model",))
    tpm: float | None = setting(_POSITIVE, "Tokens a minute, at most.", "N", parts=("model",))
    budget: float | None = setting(
        _POSITIVE,
        "Dollars after which nothing more is sent.",
        "USD",
        form="dollars",
        parts=("study",),
    )
    tier: str | None = setting(
        OneOf("default", "flex", "batch"),
        "The vendor's tier: default, flex (cheap, slow), or batch: its Batch API, cheaper, but "
        "replies may take a day.",
        "TIER",
        parts=("model",),
    )
    shard: Shard = setting(
        Shard.read,
        "Ask only every N-th row, from row K on, beside commands that ask the others.",
        "K/N",
        WHOLE,
        once=True,
    )
    engine: RayOptions | None = setting(
        RayOptions.read,
        "Ask through a Ray cluster instead of from here: at ADDRESS, else at RAY_ADDRESS or one "
        "that starts on this machine; with N engines or workers, else as many as have room.",
        "ray[:ADDRESS][,workers=N]",
        form="`ray`, `ray:ADDRESS` or `ray:ADDRESS,workers=N`",
        doubt="can name a cluster that code and keys would be sent to",
    )
    out: Path = setting(
        path,
        "Folder that holds the runs.",
        "FOLDER",
        Path("results"),
        form="a folder",
        begins="Where it is kept, and how it goes on",
    )
    log_to: tuple[str, ...] = setting(
        matching(r"[a-z0-9][a-z0-9_-]*", "is a tracker such as mlflow, trackio or wandb", names),
        "Also log results and settings of each run to a tracker: mlflow, trackio, wandb.",
        "NAME[,NAME]",
        (),
        form=f"names of [trackers](publishing.md#trackers-of-experiments) {_LISTED}",
        usual=("mlflow", "trackio", "wandb"),
        parts=("study",),
    )
    keep_going: bool = on_or_off(
        "Ask on, even if none of the first replies can be used.", parts=("study",)
    )
    fresh: bool = on_or_off("Start over; the old run moves to OUT/replaced.", once=True)
    trust: bool = on_or_off(
        "Use what a study or bench.toml names and may be another's: addresses, code, files "
        "elsewhere; and a server that does not say whether it has the same model as the run's.",
        once=True,
    )

    @classmethod
    def read(cls, **given: Any) -> RunSettings:
        """The settings with these values, by name; those that are left out have their default.

        Raises:
            UsageError: a value that no run can have, or two that do not go together. The error has
                a line for each setting that is wrong, and the name and the value of the first.
        """
        values = read_each(SETTINGS, given)
        usual = {name: one.default for name, one in SETTINGS.items()}
        check_together({name: one for name, one in values.items() if one != usual[name]})
        return cls(**values)

    @property
    def kept(self) -> dict[str, Any]:
        """What a manifest keeps of the settings: those of `Setting.is_kept` that were given."""
        values = {name: getattr(self, name) for name, one in SETTINGS.items() if one.is_kept}
        return {name: one for name, one in values.items() if one != SETTINGS[name].default}

    @property
    def called(self) -> str:
        """The user's name for the model; empty where it has its own."""
        return (self.name or "").partition("@")[0]

    @property
    def variant(self) -> str:
        """How the model is served, in the user's word; empty where nothing is said of it."""
        return (self.name or "").partition("@")[2]

    @property
    def is_batch(self) -> bool:
        """Whether a Batch API is asked."""
        return self.tier == "batch"

    @property
    def request_tier(self) -> str | None:
        """The tier that single requests ask for; `None` leaves it to the vendor."""
        return None if self.is_batch else self.tier


SETTINGS: Mapping[str, Setting] = declared(RunSettings)
"""Name -> the setting, in the order of the help text."""
