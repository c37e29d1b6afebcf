"""What a recording can hold besides: scores of every pair of words, made by asking the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.errors import RegardError, unknown
from regard.models.seq2seq import NO_LEXICAL_PROBE, NO_LOGITS, Memory, Output, Seq2Seq
from regard.recordings.adapters import _saliency
from regard.recordings.adapters._layers import NO_LAYERS
from regard.recordings.adapters._moved import can_be_moved, probe_by_moving
from regard.tasks.batch import Batch

Also = Mapping[str, Mapping[str, Any]]  # what -> how


class Pass(NamedTuple):
    """One pass of a model over a batch."""

    model: Seq2Seq
    batch: Batch
    memory: Memory
    fed: Tensor  # (batch, target): what the decoder was fed
    output: Output
    layers: Mapping[str, Tensor] = {}  # the states of every layer, where wanted

    @property
    def pairs(self) -> Tensor:
        """Where both a target and a source word are. (batch, target, source)"""
        return self.batch.target_mask[:, :, None] & self.batch.source_mask[:, None]

    def log_probability(self, words: Tensor, bias: bool = True) -> Tensor:
        """log p of some target words (batch, target), were all attention at one source word."""
        states = self.output.decoder_states
        return self.model.lexical(self.memory, states, words, self.pairs, bias)


def compute_lexical(done: Pass) -> Tensor:
    """log β_{t,l} = log N([h_l, s_t])_{y_t} (snell2021, eq. 4 and 9).

    At once where the output network can be asked; otherwise attention is moved, pair by pair.
    """
    if done.model.has_lexical_probe:
        return done.log_probability(done.batch.target)
    words = done.output.logits.shape[2]
    return probe_by_moving(done.model, done.memory, done.fed, done.batch.target, done.pairs, words)


def compute_proxy(done: Pass) -> Tensor:
    """log β^px_{t,l} = log softmax(W e_{x_l})_{y_t} (snell2021, eq. 6): no bias."""
    return done.log_probability(done.batch.target, bias=False)


def compute_log_odds(done: Pass, word: int) -> Tensor:
    """γ_l, the log-odds of one target word if position l had all weight (snell2021, eq. 22).

    log(1 − p) from p loses everything where p is near 1, so the other words are added up instead.
    """
    words = done.output.logits.shape[2]
    if not 0 <= word < words:
        raise RegardError(f"word={word} does not fit: target words are numbered 0 to {words - 1}.")
    chances = [
        done.log_probability(torch.full_like(done.batch.target, number)) for number in range(words)
    ]
    own = chances.pop(word)
    return (own - torch.stack(chances).logsumexp(dim=0)).where(done.pairs, 0.0)


def compute_saliency(done: Pass, method: str = "gradient", steps: int = 32) -> Tensor:
    """How much each source word bears on each target word, by gradients (snell2021, 5.1)."""
    if method == "gradient":
        return _saliency.differentiate(done.model, done.batch, done.fed) * done.pairs
    return _saliency.integrate(done.model, done.batch, done.fed, steps) * done.pairs


FURTHER: dict[str, Callable[..., Tensor]] = {
    "lexical": compute_lexical,
    "proxy": compute_proxy,
    "log_odds": compute_log_odds,
    "saliency": compute_saliency,
}
PLAIN = ("gates", "values", "states")  # more of what a pass holds anyway
KNOWN = (*PLAIN, *FURTHER)


def read_also(also: Also | Sequence[str] | None, gates: bool = False) -> Also:
    """What is to be recorded besides, as a mapping from what to how, whatever form it was given."""
    if isinstance(also, str):
        also = tuple(filter(None, also.split(",")))
    wanted = dict(also) if isinstance(also, Mapping) else {what: {} for what in also or ()}
    faults = [
        unknown("array to record besides", what, KNOWN) for what in wanted if what not in KNOWN
    ]
    for what, how in wanted.items():
        faults += _check_settings(what, how)
    if faults:
        raise RegardError(*faults)
    return {**wanted, **({"gates": {}} if gates else {})}


def _check_settings(what: str, how: Mapping[str, Any]) -> list[str]:
    """What is wrong with the settings of one further array."""
    _, *known = signature(FURTHER[what]).parameters.values() if what in FURTHER else (None,)
    names = [setting.name for setting in known]
    faults = [unknown(f"setting of {what}", name, names) for name in how if name not in names]
    faults += [
        f"{what} needs a setting: also={{'{what}': {{'{setting.name}': …}}}}."
        for setting in known
        if setting.default is setting.empty and setting.name not in how
    ]
    if how.get("method", "gradient") not in _saliency.METHODS:
        faults.append(unknown("method of saliency", how["method"], _saliency.METHODS))
    if how.get("steps", 1) < 1:
        faults.append(f"steps={how['steps']} does not fit: take 1 or more.")
    return faults


def check_also(model: Seq2Seq, also: Also) -> None:
    """Refuse what this model cannot give, before anything runs."""
    points, faults = model.hook_points(), []
    if "proxy" in also and not model.is_bag_of_words:
        faults.append(
            "This model is no bag of words, so it has no proxy scores. Train one with the same task"
            " settings: `regard train TASK --model snell-proxy`."
        )
    asked = {"log_odds"} if can_be_moved(model) else {"lexical", "log_odds"}
    if asked & also.keys() and not model.has_lexical_probe:
        faults.append(NO_LEXICAL_PROBE)
    if "values" in also and not any(point.site for point in points.values()):
        faults.append("This model has no attention, so there are no values to record.")
    if "states" in also and not model.layers():
        faults.append(NO_LAYERS)
    if "saliency" in also and "encoder.embedding" not in points:
        faults.append("This model has no embedding of source words to take a gradient at.")
    if faults:
        raise RegardError(*faults)


def further_arrays(done: Pass, also: Also) -> dict[str, Tensor]:
    """The arrays that were asked for, (batch, target, source) each."""
    if not done.output.logits.shape[2] and FURTHER.keys() & also.keys():
        raise RegardError(NO_LOGITS)
    return {what: FURTHER[what](done, **how) for what, how in also.items() if what in FURTHER}


def describe_also(model: Seq2Seq, batch: Batch, also: Also) -> dict[str, Any]:
    """How each further array is made; of saliency, how well its numbers can be trusted."""
    found = {what: dict(how) for what, how in also.items()}
    if "saliency" in also:
        found["saliency"] |= _saliency.check(model, batch[: _saliency.CHECKED], **also["saliency"])
    return found
