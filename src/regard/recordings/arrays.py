"""The adapter for plain arrays: states and words that a user has from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.recordings.gather import Sizes, gather
from regard.recordings.recording import AXES, PARTS, Metadata, Recording, SiteInfo, numbers
from regard.recordings.storage import Array

SITE = "attention"


def record_arrays(
    arrays: Mapping[str, Any],
    source_words: Sequence[str] | None = None,
    target_words: Sequence[str] | None = None,
    readout: Mapping[str, tuple[int, int]] | None = None,
    scorer: str = "dot",
    out: Path | None = None,
    origin: dict[str, Any] | None = None,
) -> Recording:
    """A recording from named arrays (numpy or tensors), checked against each other.

    Needed are `encoder.states` (sample, source, hidden) and `encoder.words` (sample, source);
    `decoder.states` and `decoder.words` likewise for the decoder. Masks default to all true.
    `queries` and `keys`, with or without a head axis, make an attention site; where they are not
    given but both sides' states have one size, `attention="dot"` is assumed and the states are
    queries and keys, as in aitken2021. `readout` names the columns of the array `readout` that
    meet the `state` and the `context`. Words may be given by number only.
    """
    given = {_full(name): numbers(values) for name, values in arrays.items()}
    faults = [*_missing(given), *_unknown(given)]
    if faults:
        raise RegardError(*faults)
    for side in _sides(given):
        words = given[f"{side}.words"]
        given.setdefault(f"{side}.mask", np.ones(words.shape, dtype=np.bool_))
        given[f"{side}.mask"] = given[f"{side}.mask"].astype(np.bool_)
    plain = not any(f"{SITE}.{part}" in given for part in PARTS)
    _site(given)
    heads = given[f"{SITE}.queries"].shape[1] if f"{SITE}.queries" in given else 0
    sites = {SITE: SiteInfo(scorer, heads, plain=plain)} if heads else {}
    for part in PARTS[:4]:
        if heads == 1 and f"{SITE}.{part}" in given and given[f"{SITE}.{part}"].ndim == 4:
            given[f"{SITE}.{part}"] = given[f"{SITE}.{part}"][:, 0]
    columns = dict(readout or {})
    if "readout" in given and not columns:
        columns = {"state": (0, given["readout"].shape[1])}
    metadata = Metadata(
        _words(source_words, given["encoder.words"]),
        _words(target_words, given.get("decoder.words", np.zeros(1, dtype=np.int64))),
        sites,
        columns,
        {"adapter": "arrays", **(origin or {})},
    )
    _agree(given, metadata)
    fixed = {n: a for n, a in given.items() if n.startswith("readout") or n.endswith(".vector")}
    piece = {name: array for name, array in given.items() if name not in fixed}
    target = given["decoder.words"].shape[1] if "decoder.words" in given else 0
    rows, source = given["encoder.words"].shape
    sizes = Sizes(rows, source, target)
    return gather(iter([piece]), fixed, sizes, metadata, out)


def _full(name: str) -> str:
    return f"{SITE}.{name}" if name in PARTS else name


def _sides(given: Mapping[str, Array]) -> list[str]:
    return [side for side in ("encoder", "decoder") if f"{side}.words" in given]


def _missing(given: Mapping[str, Array]) -> list[str]:
    needed = ["encoder.states", "encoder.words"]
    if any(name.startswith("decoder.") for name in given):
        needed += ["decoder.states", "decoder.words"]
    return [
        f"The array '{name}' is missing. Give {' and '.join(needed)}."
        for name in needed
        if name not in given
    ]


def _unknown(given: Mapping[str, Array]) -> list[str]:
    known = {*AXES, *(f"{SITE}.{part}" for part in PARTS)}
    return [
        f"Unknown array '{name}'. Known: {', '.join(sorted(known))}."
        for name in given
        if name not in known and ".gates." not in name
    ]


def _site(given: dict[str, Array]) -> None:
    """Queries and keys with a head axis; scores and weights where they follow from them."""
    if "decoder.states" not in given:
        return
    if f"{SITE}.queries" not in given and f"{SITE}.keys" not in given:
        encoder, decoder = given["encoder.states"], given["decoder.states"]
        if encoder.ndim != 3 or decoder.ndim != 3 or encoder.shape[2] != decoder.shape[2]:
            return
        given[f"{SITE}.queries"], given[f"{SITE}.keys"] = decoder, encoder
    for part in PARTS[:4]:
        name = f"{SITE}.{part}"
        if name in given and given[name].ndim == 3:
            given[name] = given[name][:, None]
    queries, keys = given.get(f"{SITE}.queries"), given.get(f"{SITE}.keys")
    if queries is None or keys is None:
        raise RegardError("Give both queries and keys, or neither.")
    if f"{SITE}.scores" not in given and f"{SITE}.vector" not in given:
        given[f"{SITE}.scores"] = queries @ np.swapaxes(keys, -1, -2)


def _words(words: Sequence[str] | None, used: Array) -> tuple[str, ...]:
    count = int(used.max(initial=0)) + 1
    if words is None:
        return tuple(str(number) for number in range(count))
    if len(words) < count:
        raise RegardError(
            f"There are {len(words)} words, but the number {count - 1} is used."
            " Give every word, in the order of the numbers."
        )
    return tuple(words)


def _agree(given: Mapping[str, Array], metadata: Metadata) -> None:
    """Every axis has one length in all arrays that have it."""
    lengths: dict[str, tuple[int, str]] = {}
    faults = []
    for name, array in given.items():
        site, _, part = name.rpartition(".")
        if site in metadata.sites and part in PARTS:
            axes = metadata.sites[site].axes(part)
        else:
            axes = AXES.get(name, ("sample", "source" if name[0] == "e" else "target", "hidden"))
        if len(axes) != array.ndim:
            faults.append(f"'{name}' has the shape {array.shape}, but its axes are {axes}.")
            continue
        for axis, length in zip(axes, array.shape, strict=True):
            if axis in ("hidden", "features", "vocab"):
                continue
            size, other = lengths.setdefault(axis, (length, name))
            if size != length:
                faults.append(
                    f"'{name}' has {length} along {axis}, but '{other}' has {size}: {array.shape}."
                )
    if faults:
        raise RegardError(*faults)
