"""The adapter for plain arrays: states and words that a user has from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.recordings.adapters._array_sites import (
    SITE,
    derive,
    make_sites,
    name_fully,
    read_settings,
)
from regard.recordings.derived import clear_padding
from regard.recordings.recording import AXES, Metadata, Recording, as_array, axes_of
from regard.recordings.site import PARTS, Site
from regard.recordings.storage import Array
from regard.recordings.writer import Sizes, require_numbers, write_recording
from regard.subjects.lexicon import Lexicon, check_marker, find_marker

MOST_WORDS = 10_000_000  # before names are made for all of them
NUMBERS = ("encoder.words", "decoder.words", "targets", "predictions")  # they hold word numbers
SPECIALS = ("pad", "start", "end", "others")


def record_arrays(
    arrays: Mapping[str, Any],
    source_words: Sequence[str] | None = None,
    target_words: Sequence[str] | None = None,
    readout: Mapping[str, tuple[int, int]] | None = None,
    scorer: str = "dot",
    sites: Any = None,
    specials: Mapping[str, Any] | None = None,
    pieces: str | None = None,
    out: Path | None = None,
    origin: dict[str, Any] | None = None,
) -> Recording:
    """A recording from named arrays (numpy or tensors), checked against each other.

    Needed are `encoder.states` (sample, source, hidden) and `encoder.words` (sample, source);
    `decoder.states` and `decoder.words` likewise for the decoder. Masks default to all true; what
    lies where a mask is false becomes zero. An attention is `SITE.queries` and `SITE.keys`
    (`decoder.0.cross.queries`; `queries` alone is that of `attention`), with or without a head
    axis, or `SITE.weights` alone; `SITE.bias` is added to the scores. `sites` says what each is:
    `{"decoder.0.cross": regard.at(heads=8, scale=.125, lag=1, masked=False)}`. Weights that are
    given must be softmax of the scores. Where no attention is given but both sides' states have
    one size, the states are queries and keys, as in aitken2021 (`scorer="none"`: the model has no
    attention); for `scorer="additive"` scores follow with a `vector`.
    `readout` names the columns of the array `readout` that meet the `state` and the `context`.
    Words may be given by number only. `specials` (`{"pad": 1, "start": 2, "end": 2, "others":
    […]}`) says which numbers are no words, `pieces` how pieces of words are marked (`▁`).
    """
    names = {"encoder": source_words, "decoder": target_words}
    given, found = _check(arrays, names, scorer, read_settings(sites))
    least = _read_specials(specials, names)
    words = [
        tuple(w) if w is not None else _number_words(given, side, least)
        for side, w in names.items()
    ]
    columns = dict(readout or {})
    if "readout" in given and not columns:
        columns = {"state": (0, given["readout"].shape[1])}
    origin = {"adapter": "arrays", **(origin or {})}
    said = _conventions(words, specials, pieces)
    metadata = Metadata(words[0], words[1], found, columns, origin, conventions=said)
    fixed = {n: a for n, a in given.items() if axes_of(n, found)[0] != "sample"}
    piece = {name: array for name, array in given.items() if name not in fixed}
    rows, source = given["encoder.words"].shape
    target = given["decoder.words"].shape[1] if "decoder.words" in given else 0
    recording = write_recording(iter([piece]), fixed, Sizes(rows, source, target), metadata, out)
    if any(f"{name}.weights" in map(name_fully, arrays) for name in found):
        recording.check()
    return recording


def _clear(given: dict[str, Array], sites: dict[str, Site]) -> None:
    """Zeros where a mask is false, whatever stood there; weights on padding stay where the model
    attends to it."""
    masks = {"source": given["encoder.mask"], "target": given.get("decoder.mask")}
    for name, array in given.items():
        site, _, part = name.rpartition(".")
        open_ = part in PARTS and site in sites and not sites[site].masked
        known = {"target": masks["target"]} if open_ else masks
        given[name] = clear_padding(name, array, axes_of(name, sites), known)


def _conventions(
    words: Sequence[Sequence[str]], specials: Mapping[str, Any] | None, pieces: str | None
) -> dict[str, dict[str, Any]]:
    """How the words of both sides are numbered, where that was said."""
    if specials is None and pieces is None:
        return {}
    strange = [name for name in specials or {} if name not in SPECIALS]
    if strange:
        raise RegardError(f"specials has no '{strange[0]}'. It has: {', '.join(SPECIALS)}.")
    given = dict(specials or {"pad": 0, "start": 1, "end": 2})
    others = frozenset(given.pop("others", ()))
    numbers = {name: given.get(name) for name in ("pad", "start", "end")}
    found = {}
    for side, names in zip(("encoder", "decoder"), words, strict=True):
        marker = find_marker(names) if pieces is None else check_marker(pieces)
        lexicon = Lexicon(names, **numbers, special=others, marker=marker)
        found[side] = lexicon.conventions or {"pad": 0, "start": 1, "end": 2, "pieces": marker}
    return found


def _check(
    arrays: Mapping[str, Any],
    words: Mapping[str, Sequence[str] | None],
    scorer: str,
    said: Mapping[str, Any],
) -> tuple[dict[str, Array], dict[str, Site]]:
    """All arrays by their full names, with those that follow, and the sites; or all faults."""
    named = {name_fully(name): as_array(values) for name, values in arrays.items()}
    faults = [*_missing(named), *_unknown(named)]
    given = {name: array for name, array in named.items() if _known(name)}
    _masks(given)
    sites, wrong = make_sites(given, scorer, said)
    faults += [*(wrong or _disagreements(given, sites)), *_whole(given)]
    for side, known in words.items():
        faults += _too_few(given, side, known)
    if faults:
        raise RegardError(*faults)
    _clear(given, sites)
    for name, array in given.items():
        require_numbers(name, array, None if axes_of(name, sites)[0] != "sample" else 0)
    for name, site in sites.items():
        derive(given, name, site)
    _clear(given, sites)
    return given, sites


def _known(name: str) -> bool:
    gate = name.startswith(("encoder.gates.", "decoder.gates."))
    site, _, part = name.rpartition(".")
    return name in AXES or gate or (bool(site) and part in PARTS)


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


def _masks(given: dict[str, Array]) -> None:
    for side in ("encoder", "decoder"):
        if f"{side}.words" in given:
            everything = np.ones(given[f"{side}.words"].shape, dtype=np.bool_)
            given[f"{side}.mask"] = given.get(f"{side}.mask", everything).astype(np.bool_)


def _number_words(given: Mapping[str, Array], side: str, least: int) -> tuple[str, ...]:
    """Numbers for words, `least` at least."""
    names = ("encoder.words",) if side == "encoder" else NUMBERS[1:]
    most = max((int(given[n].max(initial=0)) for n in names if n in given), default=0)
    return tuple(str(number) for number in range(max(most + 1, least)))


def _read_specials(
    specials: Mapping[str, Any] | None, words: Mapping[str, Sequence[str] | None]
) -> int:
    """How many words there are at least, as special ones have their numbers, too; or a fault."""
    said = specials or {}
    numbers = {name: said[name] for name in SPECIALS[:3] if said.get(name) is not None}
    numbers |= {f"others[{k}]": number for k, number in enumerate(said.get("others", ()))}
    fewest = min((len(names) for names in words.values() if names is not None), default=MOST_WORDS)
    wrong = [
        f"specials has {name}={number!r}, which is no word's number: they are 0 to {fewest - 1}."
        for name, number in numbers.items()
        if isinstance(number, bool)
        or not isinstance(number, (int, np.integer))
        or not 0 <= number < fewest
    ]
    if wrong:
        raise RegardError(*wrong)
    return 1 + max((int(number) for number in numbers.values()), default=-1)


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
    names = ("encoder.words",) if side == "encoder" else NUMBERS[1:]
    if words is None:
        return []
    return [
        f"There are {len(words)} words, but '{name}' has the number {given[name].max()}."
        " Give every word, in the order of the numbers."
        for name in names
        if name in given and given[name].max(initial=0) >= len(words)
    ]


def _disagreements(given: Mapping[str, Array], sites: Mapping[str, Site]) -> list[str]:
    """Every axis has one length in all arrays that have it."""
    lengths: dict[str, tuple[int, str]] = {}
    faults = []
    for name, array in given.items():
        site, _, part = name.rpartition(".")
        attends = part in PARTS and site and name not in AXES
        axes = axes_of(name, {site: Site(), **sites} if attends else dict(sites))
        if len(axes) != array.ndim:
            faults.append(f"'{name}' has the shape {array.shape}, but its axes are {axes}.")
            continue
        for axis, length in zip(axes, array.shape, strict=True):
            own = site in sites and axis in ("features", "head") and part != "values"
            key = f"{site}.{axis}" if own else axis
            if key in ("hidden", "features", "vocab", "head"):  # may differ from array to array
                continue
            size, other = lengths.setdefault(key, (length, name))
            if size != length:
                faults.append(
                    f"'{name}' has {length} along {axis}, but '{other}' has {size}: {array.shape}."
                )
    return faults
