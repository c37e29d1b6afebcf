"""What tables and figures show, kept beside the tests: marks, colours, labels, and their numbers.

Numbers are held against references elsewhere; this is for what stands between a number and an eye.
After a change that is meant, write the files anew: `REGARD_SHOWN=write pytest ...`, and read what
has changed in them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from regard.statistics import Estimate

FEW = 6  # numbers that are kept one by one; of more, what they add up to


def describe(value: Any) -> Any:
    """As plain data, long rows of numbers in short."""
    if isinstance(value, Estimate):
        return {"estimate": [describe(x) for x in (value.mean, value.low, value.high)]}
    if is_dataclass(value):
        named = {field.name: describe(getattr(value, field.name)) for field in fields(value)}
        return {"kind": type(value).__name__, **named}
    if isinstance(value, dict):
        return {str(key): describe(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return _describe_row(value)
    if isinstance(value, str):
        return re.sub(r"[\d.]+", "#", value)  # numbers in sentences are rounded
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(f"{float(value):.5g}")
    if value is None or isinstance(value, bool):
        return value
    return getattr(value, "__name__", type(value).__name__)  # where it is in memory says nothing


def _describe_row(row: Sequence[Any]) -> Any:
    if len(row) > FEW and all(isinstance(x, Real) and not isinstance(x, bool) for x in row):
        values = np.array(row, float)
        known = values[np.isfinite(values)]
        weighed = float((known * np.arange(1, len(known) + 1)).mean()) if len(known) else 0.0
        return {"numbers": [len(row), len(known), describe(float(known.sum())), describe(weighed)]}
    if len(row) > FEW and all(isinstance(x, str) for x in row):
        return {"texts": [len(row), describe(row[0]), describe(row[-1])]}
    return [describe(x) for x in row]


def compare(found: Any, kept: Any, at: str = "") -> Iterator[str]:
    """Where two descriptions differ by more than rounding, or than an axis that is turned."""
    if isinstance(kept, dict) and isinstance(found, dict):
        for key in sorted(set(kept) | set(found)):
            if key not in kept or key not in found:
                yield f"{at}/{key}: {'new' if key in found else 'gone'}"
            else:
                yield from compare(found[key], kept[key], f"{at}/{key}")
    elif isinstance(kept, list) and isinstance(found, list):
        if len(kept) != len(found):
            yield f"{at}: {len(found)} instead of {len(kept)}"
        elif not (_near(found, kept) or _near(found, [_turn(x) for x in kept])):
            for number, (a, b) in enumerate(zip(found, kept, strict=True)):
                yield from compare(a, b, f"{at}/{number}")
    elif not _near([found], [kept]):
        yield f"{at}: {found!r} instead of {kept!r}"


def _turn(value: Any) -> Any:
    return -value if isinstance(value, float) else value


def _near(found: Sequence[Any], kept: Sequence[Any]) -> bool:
    return all(
        (a != a and b != b) or abs(a - b) <= 2e-3 + 0.01 * abs(b)
        if isinstance(a, float) and isinstance(b, float)
        else type(a) is type(b) and a == b
        for a, b in zip(found, kept, strict=True)
    )


def hold(path: Path, name: str, value: Any, exact: bool = False) -> None:
    """Compare with what is kept under a name; with REGARD_SHOWN=write, keep it."""
    found = json.loads(json.dumps(describe(value)))
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if os.environ.get("REGARD_SHOWN") == "write":
        kept[name] = found
        text = json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
    assert name in kept, f"{path.name} has no {name}: write it with REGARD_SHOWN=write"
    differences = list(compare(found, kept[name]))
    assert not exact or differences or found == kept[name], f"{found} instead of {kept[name]}"
    assert not differences, "\n".join(differences[:20])
