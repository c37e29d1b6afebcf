"""Configuration: frozen, unknown keys refused, all faults reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from regard.errors import RegardError, unknown

C = TypeVar("C", bound="Config")


class Config(BaseModel):
    """The base of every configuration. Text values such as `"64"` or `"true"` are converted."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )


def faults_in(kind: type[Config], values: Mapping[str, Any], where: str) -> list[str]:
    """Every fault that `values` has as a `kind`, a sentence each; `where` is the dotted prefix."""
    try:
        kind.model_validate(dict(values))
    except ValidationError as error:
        return [_sentence(kind, fault, where) for fault in error.errors()]
    return []


def validated(kind: type[C], values: Mapping[str, Any], where: str) -> C:
    """`values` as a `kind`, or a `RegardError` with all the faults in them."""
    faults = faults_in(kind, values, where)
    if faults:
        raise RegardError(*faults)
    return kind.model_validate(dict(values))


def _sentence(kind: type[Config], fault: Any, where: str) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return unknown("key", f"{where}.{key}", (f"{where}.{name}" for name in kind.model_fields))
    reason = fault["msg"].removeprefix("Value error, ")
    reason = f"{reason[:1].lower()}{reason[1:]}."
    if not key:  # several keys that do not go together: the reason names them
        return f"The settings of {where} do not fit: {reason}"
    return f"{where}.{key}={fault['input']!r} does not fit: {reason}"
