"""Parity of a recording: does what is in it belong together, and to what its source gave?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.recordings.recording import Recording, as_array
from regard.recordings.site import Site
from regard.recordings.storage import Array

TOLERANCE = 1e-3
COARSE = {"bfloat16": 2e-2, "float16": 5e-3}  # of models that compute in half precision


def check_recording(
    recording: Recording,
    logits: Any = None,
    weights: Any = None,
    tolerance: float | None = None,
) -> dict[str, float]:
    """How far a recording is from what follows, and from what is given; too far is an error.

    Of every attention, softmax(scores + bias) against the recorded weights, which must add up to
    1; `weights` (of the default site, or by site) against the recorded ones; `logits` (sample,
    target, vocab) against readout · state, with the context where the readout reads one. The
    `tolerance` is 1e-3 by default, and more for models that compute in half precision.
    """
    if tolerance is None:
        tolerance = COARSE.get(str(recording.metadata.origin.get("precision")), TOLERANCE)
    found: dict[str, float] = {}
    for name, site in recording.metadata.sites.items():
        if f"{name}.weights" in recording:
            found |= _check_site(recording, name, site)
    for name, given in _by_site(recording, weights).items():
        recorded = recording[f"{name}.weights"]
        theirs = as_array(given)
        theirs = theirs[:, None] if theirs.ndim == 3 else theirs
        if theirs.shape != recorded.shape:
            raise RegardError(
                f"The weights given for '{name}' are {theirs.shape}, the recorded ones"
                f" {recorded.shape}: (sample, head, target, source)."
            )
        site = recording.metadata.sites[name]
        rows = _mask(recording, site)
        found[f"{name}.weights, given"] = _apart(theirs * rows, recorded * rows)
    if logits is not None:
        found["logits"] = _check_logits(recording, as_array(logits))
    wrong = {what: worst for what, worst in found.items() if not worst <= tolerance}
    if wrong:
        raise RegardError(
            *(f"{what}: off by {worst:.2g}, more than {tolerance:g}. {_advise(what)}"
              for what, worst in wrong.items())
        )  # fmt: skip
    return found


def _advise(what: str) -> str:
    if what == "logits":
        return "The readout does not give the logits: is a bias, a scale or a layer missing?"
    if what.endswith("rows"):
        return (
            "Weights are 0 or more, and their rows add up to 1: does the model attend to padding"
            " (masked=False)?"
        )
    return "Check the scale, the position bias, the heads, and the mask."


def _by_site(recording: Recording, weights: Any) -> Mapping[str, Any]:
    if weights is None:
        return {}
    if isinstance(weights, Mapping):
        return {recording.site(name): given for name, given in weights.items()}
    return {recording.site(): weights}


def _mask(recording: Recording, site: Site) -> Array:
    """Where a query and a key are, or with attention to padding, a query. (sample, 1, t, s)"""
    queries = recording[f"{site.query_side}.mask"][:, None, :, None]
    keys = recording[f"{site.key_side}.mask"][:, None, None, :]
    found: Array = queries & keys if site.masked else queries & np.ones_like(keys)
    if site.causal:
        found = found & np.tril(np.ones(found.shape[2:], np.bool_))
    return found


def _check_site(recording: Recording, name: str, site: Site) -> dict[str, float]:
    weights, mask = recording[f"{name}.weights"].astype(np.float64), _mask(recording, site)
    rows = recording[f"{site.query_side}.mask"][:, None, :]
    sums = np.where(rows, weights.sum(axis=-1), 1.0)
    below = -float(weights.min(initial=0.0))  # a row may add up to 1 with weights that are none
    found = {f"{name}, rows": max(below, float(np.abs(sums - 1).max(initial=0.0)))}
    if f"{name}.scores" in recording and site.score != "given" and site.masked:
        scores = recording[f"{name}.scores"].astype(np.float64)
        if f"{name}.bias" in recording:
            scores = scores + recording[f"{name}.bias"]
        top = np.where(mask, scores, -np.inf).max(-1, keepdims=True, initial=-1e30)
        raised = np.exp(np.where(mask, scores - top, -np.inf))
        wanted = raised / np.maximum(raised.sum(axis=-1, keepdims=True), 1e-30)
        found[f"{name}.weights"] = _apart(weights * mask, wanted)
    return found


def _check_logits(recording: Recording, logits: Array) -> float:
    """How far readout · features is from given logits, relative to their size."""
    meta, mask = recording.metadata, recording["decoder.mask"]
    if "readout" not in recording:
        raise RegardError("This recording has no readout, so logits do not follow from it.")
    if "readout.words" in recording:
        logits = logits[..., recording["readout.words"]]
    found = np.zeros((*mask.shape, recording.shape("readout")[0]))
    for part in meta.readout:
        features = recording["decoder.states"] if part == "state" else _context(recording)
        found = found + features @ recording.readout(part).T
    if "readout.bias" in recording:
        found = found + recording["readout.bias"]
    if logits.shape != found.shape:
        raise RegardError(f"The logits are {logits.shape}, the readout gives {found.shape}.")
    size = max(1.0, float(np.abs(logits[mask]).max(initial=0.0)))
    return _apart(found[mask], logits[mask]) / size


def _context(recording: Recording) -> Array:
    """What attention gives the readout: weights · values, or · states."""
    name = recording.site()
    values = f"{name}.values"
    mixed = recording[values] if values in recording else recording["encoder.states"][:, None]
    context: Array = recording[f"{name}.weights"] @ mixed
    return context.transpose(0, 2, 1, 3).reshape(*context.shape[::2][:1], context.shape[2], -1)


def _apart(ours: Array, theirs: Array) -> float:
    return float(np.abs(ours - theirs).max(initial=0.0))
