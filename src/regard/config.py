"""Configuration: frozen, unknown keys refused, all faults reported at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError

from regard.errors import RegardError, unknown

C = TypeVar("C", bound="Config")
T = TypeVar("T")


class Config(BaseModel):
    """The base of every configuration. Text values such as `"64"` or `"true"` are converted."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )
    later: ClassVar[frozenset[str]] = frozenset()  # settings that came when there were runs

    def as_settings(self) -> dict[str, Any]:
        """Every setting, as a run's configuration has it and its name is the hash of.

        Those that came later are left out while they have their defaults: what there was before
        keeps its name.
        """
        fields = type(self).model_fields
        new = {name for name in self.later if getattr(self, name) == fields[name].get_default()}
        return self.model_dump(exclude=new)


def _split(values: Any) -> Any:
    return tuple(filter(None, values.split(","))) if isinstance(values, str) else values


# Several values in one field; on the command line they are one word, with commas.
Listed = Annotated[tuple[T, ...], BeforeValidator(_split)]


def member_of(
    what: str, names: Collection[str], also: Collection[str] = (), **older: str
) -> AfterValidator:
    """The check of a field that names one of several; `older` names become those of now."""

    def check(name: str) -> str:
        name = older.get(name, name)
        if name not in also and name not in names:
            raise ValueError(unknown(what, name, [*also, *names]).rstrip("."))
        return name

    return AfterValidator(check)


def validated(kind: type[C], values: Mapping[str, Any], where: str) -> C:
    """`values` as a `kind`, or a `RegardError` with all the faults in them, a sentence each.

    `where` is the dotted prefix of the keys.
    """
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise RegardError(*(_sentence(kind, fault, where) for fault in error.errors())) from None


def _sentence(kind: type[Config], fault: Any, where: str) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return unknown("key", f"{where}.{key}", (f"{where}.{name}" for name in kind.model_fields))
    reason = fault["msg"].removeprefix("Value error, ")
    reason = f"{reason[:1].lower()}{reason[1:]}."
    if not key:  # several keys that do not go together: the reason names them
        return f"The settings of {where} do not fit: {reason}"
    return f"{where}.{key}={fault['input']!r} does not fit: {reason}"
