"""The paper's definitions as loops over samples and steps, and small recordings for them.

Nothing here uses the code under test but `record_arrays`, which only keeps what it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.recordings import Recording, record_arrays

Array = NDArray[Any]
PARTS = ("temporal", "input", "delta")
TERMS = [f"{ours}-{theirs}" for ours in PARTS for theirs in PARTS]


def side(
    rng: np.random.Generator, samples: int, time: int, hidden: int, words: int, noise: float = 0.5
) -> tuple[Array, Array, Array]:
    """States, words and a ragged mask; zero in the padding. The last word never occurs."""
    lengths = rng.integers(max(1, time - 3), time + 1, samples)
    lengths[0] = time
    mask = np.arange(time)[None] < lengths[:, None]
    numbers = rng.integers(0, max(1, words - 1), (samples, time)) * mask
    temporal, inputs = rng.normal(size=(time, hidden)), rng.normal(size=(words, hidden))
    states = temporal + inputs[numbers] + noise * rng.normal(size=(samples, time, hidden))
    return (states * mask[:, :, None]).astype(np.float32), numbers, mask


def arrays(
    seed: int = 0,
    samples: int = 7,
    source: int = 6,
    target: int = 5,
    hidden: int = 4,
    words: tuple[int, int] = (5, 6),
    noise: float = 0.5,
) -> dict[str, Array]:
    """What a model with plain dot attention might have done."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, time, count in (("encoder", source, words[0]), ("decoder", target, words[1])):
        values = side(rng, samples, time, hidden, count, noise)
        found |= dict(zip((f"{name}.states", f"{name}.words", f"{name}.mask"), values, strict=True))
    found["readout"] = rng.normal(size=(words[1], hidden)).astype(np.float32)
    found["targets"] = rng.integers(0, words[1], (samples, target)) * found["decoder.mask"]
    return found


def gated(given: dict[str, Array], seed: int = 0, hidden: int = 6) -> dict[str, Array]:
    """The same with random gates on both sides, also where there is no word."""
    rng = np.random.default_rng(seed)
    names = (
        "encoder.gates.0.ahead.update",
        "encoder.gates.0.ahead.reset",
        "decoder.gates.0.update",
    )
    shapes = {name: (*given[f"{name[:7]}.words"].shape, hidden) for name in names}
    return given | {n: rng.beta(0.4, 0.6, shape).astype(np.float32) for n, shape in shapes.items()}


def scored(given: dict[str, Array], seed: int = 0) -> dict[str, Array]:
    """The same with all that a recording can hold besides: gates, values, an alignment, scores."""
    rng = np.random.default_rng(seed)
    pairs = (*given["decoder.words"].shape, given["encoder.words"].shape[1])
    found = {what: np.log(rng.uniform(0.01, 1, pairs)) for what in ("lexical", "proxy")}
    found |= {"queries": given["decoder.states"], "saliency": rng.normal(size=pairs)}
    found |= dict.fromkeys(("keys", "values"), given["encoder.states"])
    lengths = given["encoder.mask"].sum(axis=1, keepdims=True)
    places = rng.integers(0, lengths, given["decoder.words"].shape)
    found["alignment"] = np.where(given["decoder.mask"], places, -1)
    return gated(given, seed) | found


def recording(
    given: dict[str, Array], words: tuple[int, int] = (5, 6), out: Path | None = None, **more: Any
) -> Recording:
    """As a recording whose words are named `e0`, `e1`, … and `d0`, `d1`, …"""
    names = [
        [f"{letter}{n}" for n in range(count)] for letter, count in zip("ed", words, strict=True)
    ]
    return record_arrays(given, names[0], names[1], out=out, **more)


class Split(NamedTuple):
    """μ (time, features), χ (word, features), Δ (sample, time, features), n (word, time)."""

    mu: Array
    chi: Array
    delta: Array
    counts: Array


def split(states: Array, words: Array, mask: Array, vocabulary: int) -> Split:
    """Equations 1 and 2 of aitken2021, as they stand there."""
    states = states.astype(np.float64)
    samples, time, features = states.shape
    mu, chi = np.zeros((time, features)), np.zeros((vocabulary, features))
    counts = np.zeros((vocabulary, time), dtype=int)
    for t in range(time):
        present = [states[a, t] for a in range(samples) if mask[a, t]]
        if present:
            mu[t] = sum(present) / len(present)
    for word in range(vocabulary):
        total, seen = np.zeros(features), 0
        for a in range(samples):
            for t in range(time):
                if mask[a, t] and words[a, t] == word:
                    total, seen = total + states[a, t] - mu[t], seen + 1
                    counts[word, t] += 1
        if seen:
            chi[word] = total / seen
    delta = np.zeros_like(states)
    for a in range(samples):
        for t in range(time):
            if mask[a, t]:
                delta[a, t] = states[a, t] - mu[t] - chi[words[a, t]]
    return Split(mu, chi, delta, counts)


def of(given: dict[str, Array], name: str, words: int) -> Split:
    """The split of one side's states."""
    return split(given[f"{name}.states"], given[f"{name}.words"], given[f"{name}.mask"], words)


def three(parts: Split, words: Array, sample: int, step: int) -> list[Array]:
    """μ, χ and Δ of one state."""
    return [parts.mu[step], parts.chi[words[sample, step]], parts.delta[sample, step]]


Score = Callable[[Array, Array], float]


def product(query: Array, key: Array) -> float:
    """The bilinear score."""
    return float(query @ key)


def additive(vector: Array) -> Score:
    """The score of an additive site."""
    return lambda query, key: float(vector @ np.tanh(query + key))


def bilinear_terms(ours: list[Array], theirs: list[Array]) -> Array:
    """Equation 3: nine products."""
    return np.array([a @ b for a in ours for b in theirs])


def substituted(score: Score, ours: list[Array], theirs: list[Array]) -> Array:
    """f(q,k) − f(q−a,k) − f(q,k−b) + f(q−a,k−b) for every pair of parts."""
    q, k = sum(ours), sum(theirs)
    return np.array(
        [
            score(q, k) - score(q - a, k) - score(q, k - b) + score(q - a, k - b)
            for a in ours
            for b in theirs
        ]
    )


class Row(NamedTuple):
    """The nine terms at one of the top positions."""

    sample: int
    head: int
    step: int
    place: int
    pair: tuple[int, int]
    terms: Array
    score: float


def rows(
    heads: list[tuple[Split, Split]],
    words: tuple[Array, Array],
    masks: tuple[Array, Array],
    top: int,
    scores: list[Score] | None = None,
    causal: bool = False,
) -> list[Row]:
    """All top positions of all heads, steps and samples. Scores default to products."""
    found = []
    for head, (asked, answered) in enumerate(heads):
        for a in range(len(words[0])):
            for s in np.flatnonzero(masks[0][a]):
                ours = three(asked, words[0], a, s)
                options = []
                for t in np.flatnonzero(masks[1][a]):
                    if causal and t > s:
                        continue
                    theirs = three(answered, words[1], a, t)
                    score = scores[head] if scores else product
                    terms = (
                        substituted(score, ours, theirs) if scores else bilinear_terms(ours, theirs)
                    )
                    pair = int(words[0][a, s]), int(words[1][a, t])
                    value = score(sum(ours), sum(theirs))
                    options.append(Row(a, head, int(s), int(t), pair, terms, value))
                found += sorted(options, key=lambda row: -row.score)[:top]
    return found


def share(chosen: list[Row], signed: bool = False) -> Array:
    """The mean over rows of |term| / Σ|terms|, or of term / Σ|terms|."""
    every = [(r.terms if signed else np.abs(r.terms)) / np.abs(r.terms).sum() for r in chosen]
    return np.mean(every, axis=0)


def cosine(a: Array, b: Array) -> float:
    """The cosine of two vectors."""
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def softmax(row: Array) -> Array:
    """Of one row of scores."""
    raised = np.exp(row - row.max())
    return raised / raised.sum()


def correlation(a: Array, b: Array) -> float:
    """Pearson's correlation of ranks, ties at their mean."""

    def ranks(values: Array) -> Array:
        return np.array([np.mean([(v > w) + 0.5 * (v == w) for w in values]) for v in values])

    x, y = ranks(a) - ranks(a).mean(), ranks(b) - ranks(b).mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size else 0.0
