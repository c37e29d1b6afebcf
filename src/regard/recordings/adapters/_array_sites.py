"""The attentions among given arrays: which there are, what they are, and what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.recordings.derived import compute_scores, compute_weights
from regard.recordings.recording import AXES
from regard.recordings.site import PARTS, Site
from regard.recordings.storage import Array
from regard.subjects.modules.at import At, read_layer

SITE = "attention"
PARTS_OF_FEATURES = ("queries", "keys", "values")
SETTINGS = ("heads", "scale", "lag", "masked", "query_side", "key_side", "layer", "score")


def name_fully(name: str) -> str:
    """`queries` alone is that of the one attention."""
    return f"{SITE}.{name}" if name in PARTS else name


def read_settings(sites: Any) -> Mapping[str, Any]:
    """What was said of each attention, or why that says nothing."""
    if sites is not None and not isinstance(sites, Mapping):
        raise RegardError(
            "Of arrays, sites= says what an attention is: {'decoder.0.cross': regard.at(heads=8)}."
        )
    return sites or {}


def make_sites(
    given: dict[str, Array], scorer: str, said: Mapping[str, Any]
) -> tuple[dict[str, Site], list[str]]:
    """The attentions there are, their arrays with a head axis, and what is wrong with them."""
    parts: dict[str, list[str]] = {}
    for name in given:
        site, _, part = name.rpartition(".")
        if site and part in PARTS and name not in AXES:
            parts.setdefault(site, []).append(part)
    faults = [f"sites has '{name}', but there is no array of it." for name in said
              if name not in parts]  # fmt: skip
    if scorer == "none":
        every = [part for found in parts.values() for part in found]
        told = f"scorer='none' means no attention, but there are {' and '.join(every)}."
        return {}, [*faults, *([told] if every else [])]
    if not parts:
        plain = _plain(given)
        return ({SITE: plain} if plain else {}), faults
    sites = {}
    for name, found in parts.items():
        both = {"queries", "keys"} & set(found)
        if len(both) == 1 or (not both and "weights" not in found):
            faults.append(
                f"There are {' and '.join(found)}. Give both queries and keys, or weights alone."
            )
            continue
        settings, wrong = _settings(name, said.get(name))
        wrong += _wrong_heads(given, name, settings.get("heads"))
        faults += wrong
        if wrong:
            continue
        sites[name] = _make(given, name, scorer if both else "given", settings)
    return sites, faults


def _plain(given: dict[str, Array]) -> Site | None:
    """States of one size are queries and keys, where nothing else is said."""
    encoder, decoder = given.get("encoder.states"), given.get("decoder.states")
    if encoder is None or decoder is None or encoder.ndim != 3 or decoder.ndim != 3:
        return None
    if encoder.shape[2] != decoder.shape[2]:
        return None
    given[f"{SITE}.queries"], given[f"{SITE}.keys"] = decoder[:, None], encoder[:, None]
    return Site(plain=True)


def _settings(name: str, said: Any) -> tuple[dict[str, Any], list[str]]:
    """What an attention is, by its name and by what was said of it."""
    first, kind = name.split(".")[0], name.split(".")[-1]
    sides = {"query_side": "encoder", "key_side": "encoder"} if first == "encoder" else {}
    if first == "decoder" and kind == "self":
        sides = {"key_side": "decoder"}
    given = asdict(said) if isinstance(said, At) else dict(said or {})
    wrong = [] if isinstance(said, At) else [
        f"'{key}' cannot be said of '{name}'. Known: {', '.join(SETTINGS)}."
        for key in given if key not in SETTINGS
    ]  # fmt: skip
    told = {key: value for key, value in given.items() if key in SETTINGS}
    if isinstance(said, At):  # its defaults are not what was said
        told = {key: value for key, value in told.items() if value != getattr(At(), key)}
    return {**sides, "layer": read_layer(name), **told}, wrong


def _wrong_heads(given: Mapping[str, Array], name: str, heads: int | None) -> list[str]:
    """Where so many heads were said to be, there have to be so many."""
    if heads is None:
        return []
    faults = []
    for part in ("queries", "keys", "values", "scores", "weights"):
        array = given.get(f"{name}.{part}")
        shared = part in ("keys", "values")  # all heads may have the same ones
        if array is None:
            continue
        if array.ndim == 4 and array.shape[1] not in ((1, heads) if shared else (heads,)):
            faults.append(f"'{name}.{part}' has {array.shape[1]} heads, but heads={heads}.")
        if array.ndim == 3 and part == "queries" and array.shape[2] % heads:
            faults.append(
                f"'{name}.{part}' has {array.shape[2]} features, which do not part into"
                f" heads={heads}."
            )
    return faults


def _make(given: dict[str, Array], name: str, score: str, settings: dict[str, Any]) -> Site:
    """One attention; its arrays get a head axis, and its queries the scale."""
    heads = settings.get("heads", 1)
    for part in PARTS[:-1]:
        full = f"{name}.{part}"
        if full in given and given[full].ndim == 3:
            flat = part in PARTS_OF_FEATURES and not given[full].shape[2] % heads
            given[full] = _split(given[full], heads if flat else 1)
    if f"{name}.vector" in given and given[f"{name}.vector"].ndim == 1:
        given[f"{name}.vector"] = given[f"{name}.vector"].reshape(heads, -1)
    lead = given.get(f"{name}.queries", given.get(f"{name}.weights"))
    count = lead.shape[1] if lead is not None and lead.ndim == 4 else 1
    for part in ("keys", "values"):  # all heads may have the same ones
        array = given.get(f"{name}.{part}")
        if array is not None and array.ndim == 4 and count > array.shape[1] == 1:
            given[f"{name}.{part}"] = np.repeat(array, count, axis=1)
    scale = settings.get("scale", 1.0)
    if scale != 1.0 and f"{name}.queries" in given:
        given[f"{name}.queries"] = given[f"{name}.queries"] * scale
    kept = {key: value for key, value in settings.items() if key not in ("heads", "score")}
    kind = settings.get("score", score)
    return Site(**kept, heads=count, score=kind if score != "given" else score)


def _split(array: Array, heads: int) -> Array:
    """(sample, time, head·size) -> (sample, head, time, size)"""
    parts = array.reshape(*array.shape[:2], heads, -1)
    return parts.transpose(0, 2, 1, 3)


def derive(given: dict[str, Array], name: str, site: Site) -> None:
    """Scores and weights, where they are not given."""
    if site.score == "given":
        return
    queries, keys = given[f"{name}.queries"], given[f"{name}.keys"]
    scores, vector = given.get(f"{name}.scores"), given.get(f"{name}.vector")
    if scores is None:
        scores = given[f"{name}.scores"] = compute_scores(site.score, queries, keys, vector)
    if f"{name}.weights" in given:
        return
    bias = given.get(f"{name}.bias")
    if bias is not None:
        scores = scores + bias
    mask = given[f"{site.key_side}.mask"]
    if not site.masked:
        mask = np.ones_like(mask)
    if site.causal:
        past = np.tril(np.ones(scores.shape[2:], np.bool_))
        scores = np.where(past, scores, -np.inf)
    given[f"{name}.weights"] = compute_weights(scores, mask)
