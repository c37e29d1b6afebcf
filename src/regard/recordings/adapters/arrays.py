"""The adapter for plain arrays: states and words that a user has from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.recordings.derived import clear_padding, compute_scores, compute_weights
from regard.recordings.recording import AXES, Metadata, Recording, as_array, axes_of
from regard.recordings.site import PARTS, Site
from regard.recordings.storage import Array
from regard.recordings.writer import Sizes, require_numbers, write_recording

SITE = "attention"
MOST_WORDS = 10_000_000  # before names are made for all of them
NUMBERS = ("encoder.words", "decoder.words", "targets", "predictions")  # they hold word numbers


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
    `decoder.states` and `decoder.words` likewise for the decoder. Masks default to all true; what
    lies where a mask is false becomes zero. `queries` and `keys`, with or without a head axis, make
    an attention site; where they are not given but both sides' states have one size, the states
    are queries and keys, as in aitken2021 (`scorer="none"`: the model has no attention). Scores and
    weights follow from them unless they are given, for `scorer="additive"` with a `vector`.
    `readout` names the columns of the array `readout` that meet the `state` and the `context`.
    Words may be given by number only.
    """
    names = {"encoder": source_words, "decoder": target_words}
    given, sites = _check(arrays, names, scorer)
    words = [tuple(w) if w is not None else _number_words(given, side) for side, w in names.items()]
    columns = dict(readout or {})
    if "readout" in given and not columns:
        columns = {"state": (0, given["readout"].shape[1])}
    origin = {"adapter": "arrays", **(origin or {})}
    metadata = Metadata(words[0], words[1], sites, columns, origin)
    _clear(given, sites)
    fixed = {n: a for n, a in given.items() if _axes(n, sites)[0] != "sample"}
    piece = {name: array for name, array in given.items() if name not in fixed}
    rows, source = given["encoder.words"].shape
    target = given["decoder.words"].shape[1] if "decoder.words" in given else 0
    return write_recording(iter([piece]), fixed, Sizes(rows, source, target), metadata, out)


def _check(
    arrays: Mapping[str, Any], words: Mapping[str, Sequence[str] | None], scorer: str
) -> tuple[dict[str, Array], dict[str, Site]]:
    """All arrays by their full names, with those that follow, and the sites; or all faults."""
    named = {_full(name): as_array(values) for name, values in arrays.items()}
    faults = [*_missing(named), *_unknown(named), *_half(named, scorer)]
    given = {name: array for name, array in named.items() if _known(name)}
    _masks(given)
    site = _site(given, scorer)
    sites = {} if site is None else {SITE: site}
    faults += [*_disagreements(given, sites), *_whole(given)]
    for side, known in words.items():
        faults += _too_few(given, side, known)
    if faults:
        raise RegardError(*faults)
    _clear(given, sites)
    for name, array in given.items():
        require_numbers(name, array, None if _axes(name, sites)[0] != "sample" else 0)
    if site is not None:
        _derive(given, site)
    return given, sites


def _clear(given: dict[str, Array], sites: Mapping[str, Site]) -> None:
    """Zeros where a mask is false, whatever stood there."""
    masks = {"source": given["encoder.mask"], "target": given.get("decoder.mask")}
    for name, array in given.items():
        given[name] = clear_padding(name, array, _axes(name, sites), masks)


def _full(name: str) -> str:
    return f"{SITE}.{name}" if name in PARTS else name


def _known(name: str) -> bool:
    site, _, part = name.rpartition(".")
    gate = name.startswith(("encoder.gates.", "decoder.gates."))
    return name in AXES or (site == SITE and part in PARTS) or gate


def _axes(name: str, sites: Mapping[str, Site]) -> tuple[str, ...]:
    return axes_of(name, {SITE: Site(), **sites})


def _missing(given: Mapping[str, Array]) -> list[str]:
    needed = ["encoder.states", "encoder.words"]
    if any(name.startswith(("decoder.", SITE)) for name in given):
        needed += ["decoder.states", "decoder.words"]
    return [
        f"The array '{name}' is missing. Give {' and '.join(needed)}."
        for name in needed
        if name not in given
    ]


def _unknown(given: Mapping[str, Array]) -> list[str]:
    known = sorted({*AXES, *(f"{SITE}.{part}" for part in PARTS)})
    return [
        f"Unknown array '{name}'. Known: {', '.join(known)}, and encoder.gates.… or decoder.gates.…"
        for name in given
        if not _known(name)
    ]


def _half(given: Mapping[str, Array], scorer: str) -> list[str]:
    parts = [part for part in PARTS if f"{SITE}.{part}" in given]
    if parts and scorer == "none":
        return [f"scorer='none' means no attention, but there are {' and '.join(parts)}."]
    if not parts or {"queries", "keys"} <= set(parts):
        return []
    return [f"There are {' and '.join(parts)}. Give both queries and keys, or none of these."]


def _masks(given: dict[str, Array]) -> None:
    for side in ("encoder", "decoder"):
        if f"{side}.words" in given:
            everything = np.ones(given[f"{side}.words"].shape, dtype=np.bool_)
            given[f"{side}.mask"] = given.get(f"{side}.mask", everything).astype(np.bool_)


def _site(given: dict[str, Array], scorer: str) -> Site | None:
    """The attention site there is; its arrays get a head axis where there are several heads."""
    queries, keys = f"{SITE}.queries", f"{SITE}.keys"
    if scorer == "none" or not {"encoder.states", "decoder.states"} <= set(given):
        return None
    plain = not any(f"{SITE}.{part}" in given for part in PARTS)
    if plain:
        encoder, decoder = given["encoder.states"], given["decoder.states"]
        if encoder.ndim != 3 or decoder.ndim != 3 or encoder.shape[2] != decoder.shape[2]:
            return None
        given[queries], given[keys] = decoder, encoder
    for part in PARTS[:-1]:  # one head need not have an axis of its own
        array = given.get(f"{SITE}.{part}", np.zeros((0,) * 4))
        if array.ndim == 3:
            given[f"{SITE}.{part}"] = array[:, None]
    heads = given[queries].shape[1] if queries in given and given[queries].ndim == 4 else 1
    if keys in given and heads > given[keys].shape[1] == 1:  # all heads have the same keys
        given[keys] = np.repeat(given[keys], heads, axis=1)
    if f"{SITE}.vector" in given and given[f"{SITE}.vector"].ndim == 1:
        given[f"{SITE}.vector"] = given[f"{SITE}.vector"][None]
    return Site(heads=heads, score=scorer, plain=plain)


def _derive(given: dict[str, Array], site: Site) -> None:
    """Scores and weights, where they are not given."""
    queries, keys = given[f"{SITE}.queries"], given[f"{SITE}.keys"]
    scores, vector = given.get(f"{SITE}.scores"), given.get(f"{SITE}.vector")
    if scores is None:
        scores = given[f"{SITE}.scores"] = compute_scores(site.score, queries, keys, vector)
    if f"{SITE}.weights" not in given:
        given[f"{SITE}.weights"] = compute_weights(scores, given["encoder.mask"])


def _number_words(given: Mapping[str, Array], side: str) -> tuple[str, ...]:
    """Numbers for words."""
    used = given.get(f"{side}.words", np.zeros(1, dtype=np.int64))
    return tuple(str(number) for number in range(int(used.max(initial=0)) + 1))


def _whole(given: Mapping[str, Array]) -> list[str]:
    faults = [
        f"'{name}' holds {given[name].dtype}, but words are numbered by whole numbers from 0."
        for name in NUMBERS
        if name in given and (given[name].dtype.kind not in "iu" or given[name].min(initial=0) < 0)
    ]
    if faults:
        return faults
    return [
        f"'{name}' has the number {largest}, and so many words cannot be: {MOST_WORDS} at most."
        for name in NUMBERS
        if name in given and (largest := int(given[name].max(initial=0))) >= MOST_WORDS
    ]


def _too_few(given: Mapping[str, Array], side: str, words: Sequence[str] | None) -> list[str]:
    if words is None or f"{side}.words" not in given:
        return []
    most = given[f"{side}.words"].max(initial=0)
    if most < len(words):
        return []
    return [
        f"There are {len(words)} words, but '{side}.words' has the number {most}."
        " Give every word, in the order of the numbers."
    ]


def _disagreements(given: Mapping[str, Array], sites: Mapping[str, Site]) -> list[str]:
    """Every axis has one length in all arrays that have it."""
    lengths: dict[str, tuple[int, str]] = {}
    faults = []
    for name, array in given.items():
        axes = _axes(name, sites)
        if len(axes) != array.ndim:
            faults.append(f"'{name}' has the shape {array.shape}, but its axes are {axes}.")
            continue
        for axis, length in zip(axes, array.shape, strict=True):
            key = f"{SITE}.{axis}" if name.startswith(SITE) and axis == "features" else axis
            if key in ("hidden", "features", "vocab"):  # these may differ from array to array
                continue
            size, other = lengths.setdefault(key, (length, name))
            if size != length:
                faults.append(
                    f"'{name}' has {length} along {axis}, but '{other}' has {size}: {array.shape}."
                )
    return faults
