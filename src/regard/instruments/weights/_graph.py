"""Graphs of two rows of nodes: who is busy, who is polar, and whether groups keep to themselves."""

from __future__ import annotations

import numpy as np

from regard.recordings.storage import Array

CHANCE = 3  # graphs drawn at random, for a modularity to compare with


def strongest(weights: Array, threshold: float | None, top: float) -> Array:
    """Which weights become edges: those with |w| > threshold, or the strongest share. (to, from)"""
    sizes = np.abs(weights)
    if threshold is not None:
        return np.asarray(sizes > threshold)
    count = max(1, round(top * sizes.size))
    kept = np.zeros(sizes.size, dtype=np.bool_)
    kept[np.argsort(-sizes, axis=None, kind="stable")[:count]] = True
    return kept.reshape(sizes.shape) & (sizes > 0)


def gini(degrees: Array) -> float:
    """0: all nodes have as many edges; near 1: one has them all; 0 without edges."""
    ordered = np.sort(degrees.astype(np.float64))
    total, n = ordered.sum(), len(ordered)
    if total == 0:
        return 0.0
    return float(2 * (np.arange(1, n + 1) * ordered).sum() / (n * total) - (n + 1) / n)


def busiest(degrees: Array, share: float = 0.05) -> Array:
    """The nodes with the most edges: a share of all, rounded up."""
    count = int(np.ceil(share * len(degrees)))
    return np.argsort(-degrees, kind="stable")[:count]


def polarities(weights: Array, axis: int) -> Array:
    """Σ w / Σ |w| along an axis: −1 all negative, 1 all positive, NaN where there is nothing."""
    sums = weights.sum(axis=axis, dtype=np.float64)
    sizes = np.abs(weights).sum(axis=axis, dtype=np.float64)
    return np.asarray(np.where(sizes > 0, sums / np.where(sizes > 0, sizes, 1), np.nan))


def modularity(edges: Array, rows: Array, columns: Array) -> float:
    """Barber's: the share of edges within modules, less what the degrees alone would give.

    Q = Σ_ij (A_ij − k_i d_j / m) δ(g_i, h_j) / m; edges (row, column), a module per row and column.
    """
    m = float(edges.sum())
    return _quality(_excess(edges), rows, columns) / m if m else 0.0


def modules(edges: Array) -> tuple[Array, Array]:
    """Modules of the rows and of the columns, found from the edges alone; always the same.

    Every column begins as a module of its own. Rows and columns in turn join the module that
    serves Q best (Barber's BRIM), then the two modules whose union gains most become one, until
    neither helps. A local optimum: the true Q may be higher.
    """
    excess = _excess(edges)
    columns = np.arange(edges.shape[1])
    rows = np.zeros(edges.shape[0], dtype=np.int64)
    best = -np.inf
    while True:
        rows, columns = _settle(excess, columns)
        rows, columns = _merge(excess, rows, columns)
        reached = _quality(excess, rows, columns)
        if reached <= best + 1e-9:
            break
        best = reached
    return _number_modules(rows, columns)


def by_chance(edges: Array, seed: int = 0) -> float:
    """The mean modularity of random graphs in which every node has about as many edges."""
    rng = np.random.default_rng(seed)
    starts, ends = np.nonzero(edges)
    found = []
    for _ in range(CHANCE):
        drawn = np.zeros(edges.shape, dtype=np.bool_)
        drawn[starts, rng.permutation(ends)] = True  # two edges may fall together
        found.append(modularity(drawn, *modules(drawn)))
    return float(np.mean(found))


def _excess(edges: Array) -> Array:
    """A_ij − k_i d_j / m"""
    a = edges.astype(np.float64)
    return np.asarray(a - np.outer(a.sum(axis=1), a.sum(axis=0)) / max(a.sum(), 1))


def _quality(excess: Array, rows: Array, columns: Array) -> float:
    """Q · m"""
    return float((excess * (rows[:, None] == columns[None])).sum())


def _number_modules(rows: Array, columns: Array) -> tuple[Array, Array]:
    """The same modules by numbers from 0 on, none left out."""
    _, numbers = np.unique(np.concatenate([rows, columns]), return_inverse=True)
    return numbers[: len(rows)], numbers[len(rows) :]


def _settle(excess: Array, columns: Array) -> tuple[Array, Array]:
    """Rows and columns in turn go where it is best for them, until Q stays."""
    _, columns = np.unique(columns, return_inverse=True)
    best, found = -np.inf, (np.zeros(len(excess), dtype=np.int64), columns)
    while True:
        one_hot = np.eye(int(columns.max()) + 1)
        rows = (excess @ one_hot[columns]).argmax(axis=1)
        columns = (excess.T @ one_hot[rows]).argmax(axis=1)
        reached = _quality(excess, rows, columns)
        if reached <= best + 1e-9:
            return found
        best, found = reached, (rows, columns)


def _merge(excess: Array, rows: Array, columns: Array) -> tuple[Array, Array]:
    """Unite the pair of modules that gains most, as long as one gains."""
    rows, columns = _number_modules(rows, columns)
    one_hot = np.eye(int(max(rows.max(), columns.max())) + 1)
    between = one_hot[rows].T @ excess @ one_hot[columns]
    gains = between + between.T
    np.fill_diagonal(gains, -np.inf)
    while True:
        one, other = np.unravel_index(int(gains.argmax()), gains.shape)
        if not gains[one, other] > 1e-9:
            return rows, columns
        rows, columns = (np.where(part == other, one, part) for part in (rows, columns))
        gains[one] += gains[other]
        gains[:, one] += gains[:, other]
        gains[other] = gains[:, other] = -np.inf
        gains[one, one] = -np.inf
