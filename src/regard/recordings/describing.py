"""Whether what a file says of a recording can be: types, numbers, and the shapes of its arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from regard.recordings.site import AXIS_OF, PARTS, Site

MOST_HEADS = 4096
WORDS = {"encoder.words": "source", "decoder.words": "target", "targets": "target"}
WORDS["predictions"] = "target"
MASKS = ("encoder.mask", "decoder.mask")
TYPES: dict[str, type | tuple[type, ...]] = {
    "query_side": str, "key_side": str, "layer": int, "heads": int, "score": str, "lag": int,
    "plain": bool, "projected": bool,
}  # fmt: skip


def check_types(data: Any) -> None:
    """Refuse metadata whose parts are not what they should be, with a ValueError."""
    if not isinstance(data, dict):
        raise ValueError("its description is no table")
    for side in ("source_words", "target_words"):
        if not isinstance(data.get(side), list) or not _are(data[side], str):
            raise ValueError(f"{side} is no list of words")
    for key in ("sites", "readout", "origin", "gates", "also"):
        if not isinstance(data.get(key, {}), dict):
            raise ValueError(f"{key} is no table")
    if not _are(data.get("gates", {}).values(), str):
        raise ValueError("gates are not described by words")
    for part, columns in data.get("readout", {}).items():
        if not _are_numbers(columns, 2) or not 0 <= columns[0] <= columns[1]:
            raise ValueError(f"the columns of the readout's {part} are no range")
    ends = data.get("ends", (True, True))
    if not isinstance(ends, (list, tuple)) or len(ends) != 2 or not _are(ends, bool):
        raise ValueError("ends are not two times yes or no")


def check_site(name: str, site: Site) -> Site:
    """The site, if its fields can be."""
    for field, value in vars(site).items():
        wanted = TYPES.get(field)
        if wanted and (
            not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))
        ):
            raise ValueError(f"{field} of the site {name} is {str(value)[:40]!r}")
    if not {site.query_side, site.key_side} <= set(AXIS_OF):
        raise ValueError(f"the sides of the site {name} are neither encoder nor decoder")
    if not 1 <= site.heads <= MOST_HEADS or site.layer < 0 or site.lag not in (0, 1):
        raise ValueError(f"heads, layer or lag of the site {name} cannot be")
    return site


def check_shapes(
    shapes: Mapping[str, tuple[int, ...]],
    axes: Mapping[str, tuple[str, ...]],
    sites: Mapping[str, Site],
    readout: Mapping[str, tuple[int, int]],
) -> None:
    """Every array has its axes, and every shared axis one length; or a ValueError."""
    lengths: dict[str, tuple[int, str]] = {}
    for name, shape in shapes.items():
        if len(axes[name]) != len(shape):
            raise ValueError(f"'{name}' has the shape {shape}, but its axes are {axes[name]}")
        site = name.rpartition(".")[0]
        for axis, length in zip(axes[name], shape, strict=True):
            if axis in ("sample", "source", "target"):
                size, other = lengths.setdefault(axis, (length, name))
                if size != length:
                    raise ValueError(f"'{name}' has {length} along {axis}, '{other}' has {size}")
            if axis == "head" and length != sites[site].heads:
                raise ValueError(f"'{name}' has {length} heads, its site {sites[site].heads}")
    width = shapes["readout"][1] if "readout" in shapes else 0
    for part, (_, last) in readout.items():
        if "readout" in shapes and last > width:
            raise ValueError(f"the readout's {part} ends after column {width}")


def check_kinds(kinds: Mapping[str, np.dtype[Any]]) -> None:
    """Numbers of words are whole, masks are true or false, and all else are numbers."""
    for name, kind in kinds.items():
        whole = name in WORDS or name in ("alignment", "readout.words")
        wanted = "i" if whole else "b" if name in MASKS else "f"
        if kind.kind != wanted:
            raise ValueError(f"'{name}' holds {kind}")


def limits_of(
    words: tuple[int, int], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, int]]:
    """The numbers that arrays of numbers may hold: those of words, and of source positions."""
    limits = {name: (0, max(1, words[side == "target"])) for name, side in WORDS.items()}
    limits["readout.words"] = limits["targets"]
    limits["alignment"] = (-1, shapes.get("encoder.words", (0, 0))[1])
    return {name: limit for name, limit in limits.items() if name in shapes}


def is_known(name: str, sites: Iterable[str], axes: Iterable[str]) -> bool:
    """Whether a recording may have an array of this name."""
    site, _, part = name.rpartition(".")
    side, *rest = name.split(".")
    inside = side in AXIS_OF and rest[:1] in (["gates"], ["layers"])
    return name in axes or (site in sites and part in PARTS) or inside


def _are(values: Iterable[Any], kind: type) -> bool:
    return all(isinstance(value, kind) for value in values)


def _are_numbers(values: Any, count: int) -> bool:
    listed = isinstance(values, (list, tuple)) and len(values) == count
    return listed and all(type(value) is int for value in values)
