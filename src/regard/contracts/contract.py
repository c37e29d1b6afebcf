"""What a contract is: checks, each a sentence that has to be true of a member."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Check = Callable[[Any], None]
CLOSE = 1e-5


class ContractError(AssertionError):
    """A member does not keep its contract."""


@dataclass(frozen=True)
class Outcome:
    """What came of one check: `fault` is None where the member keeps it."""

    check: str
    fault: str | None


def require(holds: Any, fault: str) -> None:
    """Refuse a member of which something does not hold."""
    if not bool(holds):
        raise ContractError(fault)


def require_close(found: Any, wanted: Any, fault: str) -> None:
    """Refuse numbers that differ by more than rounding."""
    try:
        torch.testing.assert_close(found, wanted, atol=CLOSE, rtol=CLOSE)
    except AssertionError as error:
        raise ContractError(f"{fault} {error}") from None


def require_plain(settings: Mapping[str, Any], whose: str) -> None:
    """Refuse settings that JSON does not give back as they were: they would be lost in a file."""
    for key, value in settings.items():
        try:
            back = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            raise ContractError(
                f"{whose} {key}={value!r} is not JSON: use numbers, texts, booleans, lists."
            ) from None
        require(
            back == _as_lists(value), f"{whose} {key}={value!r} comes back from JSON as {back!r}."
        )


def _as_lists(value: Any) -> Any:
    """JSON has lists only."""
    return [_as_lists(part) for part in value] if isinstance(value, (tuple, list)) else value


def require_docs(thing: Any, what: str) -> None:
    """Refuse what does not say what it is."""
    text = (getattr(thing, "__doc__", None) or "").strip()
    require(text, f"{what} has no docstring: its first line is what `regard ls` shows.")


def describe(check: Check) -> str:
    """What a check is about: the first line of its docstring."""
    return (check.__doc__ or check.__name__).strip().splitlines()[0].rstrip(".")


def examine(checks: Sequence[Check], subject: Any) -> list[Outcome]:
    """The outcome of every check. What goes wrong in a member is its fault, whatever it is."""
    return [Outcome(describe(check), _try(check, subject)) for check in checks]


def _try(check: Check, subject: Any) -> str | None:
    state = torch.get_rng_state()
    torch.manual_seed(0)
    try:
        check(subject)
    except ContractError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        torch.set_rng_state(state)
    return None


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors agree in shape and content."""
    return a.shape == b.shape and torch.equal(a, b)
