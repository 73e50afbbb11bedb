"""How one choice of a field of a variant is written and read.

The choices are in `eyechart_lab.variants.choices`.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from eyechart.providers.close_match import did_you_mean


class Mechanism(BaseModel):
    """One choice of a field of a variant, written as its name or as `{name: …}` with what it takes:
    one number or word (`short` names the field), or a mapping of fields.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: ClassVar[str]
    short: ClassVar[str | None] = None
    """The field that is meant where one number or word is given instead of a mapping."""
    flat: ClassVar[bool] = False
    """Whether the name is the first field, and the others stand beside it."""
    example: ClassVar[int | None] = None
    """The number of a remedy, for a choice that is nothing without one."""
    source: ClassVar[str] = ""
    """The paper, with its number at arXiv where it has one."""
    differs: ClassVar[str] = ""
    """In what it differs from the paper; empty if in nothing that is known."""

    @model_validator(mode="before")
    @classmethod
    def _from_written(cls, given: Any) -> Any:
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            return {}
        if cls.flat or cls.name not in given:  # its fields
            return given
        if others := [str(key) for key in given if key != cls.name]:
            raise wrong(f"{cls.name!r} and {others[0]!r} stand together; choose one of them")
        inside = given[cls.name]
        if inside is None or isinstance(inside, dict):
            return inside or {}
        if cls.short is None:
            known = ", ".join(f"{field}: …" for field in cls.model_fields)
            remedy = f"{{{cls.name}: {{{known}}}}}" if known else cls.name
            raise wrong(f"{cls.name!r} takes no {inside!r}; write {remedy}")
        return {cls.short: inside}

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> Any:
        fields = handler(self)
        if not fields or self.flat:
            return fields or self.name
        return {self.name: fields[self.short] if list(fields) == [self.short] else fields}


class MechanismField:
    """Makes pydantic read a field as one of these mechanisms."""

    def __init__(self, *kinds: type[Mechanism]) -> None:
        self.kinds = kinds

    def __get_pydantic_core_schema__(
        self, _source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        union = reduce(or_, (Annotated[kind, Tag(kind.name)] for kind in self.kinds))
        return handler.generate_schema(
            Annotated[union, Discriminator(self._named), BeforeValidator(self._known)]
        )

    def _named(self, given: object) -> str | None:
        """The name of a choice as it is written."""
        if isinstance(given, Mechanism):
            return given.name
        if isinstance(given, dict) and given:
            flat = (kind.name for kind in self.kinds if kind.flat and kind.name in given)
            given = next(flat, next(iter(given)))
        return given if isinstance(given, str) else None

    def _known(self, given: Any) -> Any:
        """Refuses what has none of the names, or lacks its number."""
        names = [kind.name for kind in self.kinds]
        known = f"known: {', '.join(names)}"
        name = self._named(given)
        if name is None:
            problem = "is empty" if given in (None, {}) else f"{given!r} names no mechanism"
            raise wrong(f"{problem}; {known}")
        if name not in names:
            raise wrong(f"no {name!r}; {did_you_mean(name, names, known)}")
        example = next(kind.example for kind in self.kinds if kind.name == name)
        is_bare = isinstance(given, str) or (isinstance(given, dict) and given[name] in (None, {}))
        if example is not None and is_bare:
            raise wrong(f"{name!r} needs a number; write {{{name}: {example}}}")
        return given


def wrong(message: str) -> PydanticCustomError:
    """The error of a field whose value cannot be used."""
    return PydanticCustomError("setting", "{problem}", {"problem": message})
