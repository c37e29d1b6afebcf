"""Multinomial logistic regression: as scikit-learn fits it, and for units added one by one.

Both minimise mean cross-entropy + ‖W‖² / (2·C·steps), the intercepts without a penalty, until no
entry of the gradient exceeds `TOLERANCE`, which is scikit-learn's own. Two classes are one
logistic function there, which is a softmax with half the C.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from regard.errors import RegardError
from regard.recordings.storage import Array

TOLERANCE = 1e-4
ITERATIONS = 10_000
MEMORY = 10  # pairs that the quasi-Newton method remembers
ROUNDING = 1e-7  # a loss that rises by less has not risen, in float32
Regularisation = Literal["l2", "none"]


def inverse_penalty(C: float, regularisation: Regularisation) -> float:
    """C, or infinity for none."""
    if not C > 0:
        raise RegardError(f"C={C:g} does not fit: it is above 0, and larger means less penalty.")
    return float("inf") if regularisation == "none" else C


@dataclass(frozen=True)
class Linear:
    """A linear classifier: the class with the largest weights · (1, vector)."""

    classes: Array  # (class,): their numbers
    weights: Array  # (class, 1 + unit), the intercept first

    def accuracy(self, vectors: Array, labels: Array) -> float:
        """The share of vectors (step, unit) that it gives their label (step,)."""
        return float(np.mean(self.predict(vectors) == labels))

    def predict(self, vectors: Array) -> Array:
        """(step, unit) -> (step,): numbers of classes."""
        scores = vectors @ self.weights[:, 1:].T + self.weights[:, 0]
        return np.asarray(self.classes[scores.argmax(axis=1)])


def fit(vectors: Array, labels: Array, C: float) -> Linear:
    """Scikit-learn's classifier of vectors (step, unit); labels of one class need no fitting."""
    from sklearn.exceptions import ConvergenceWarning  # takes a second to import
    from sklearn.linear_model import LogisticRegression

    classes = np.unique(labels)
    if len(classes) == 1:
        return Linear(classes, np.zeros((1, 1 + vectors.shape[1])))
    with warnings.catch_warnings():  # float32 may end a line search early, at the optimum
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, tol=TOLERANCE, max_iter=ITERATIONS).fit(vectors, labels)
    weights = np.concatenate([model.intercept_[:, None], model.coef_], axis=1)
    if len(classes) == 2:
        weights = np.concatenate([-weights, weights]) / 2
    return Linear(classes, weights)


class Growing:
    """The classifier of a set of units to which units are added.

    Each fit starts at the last one's optimum with a zero weight for the new unit, and is an
    L-BFGS method whose first guess of the Hessian H is S ⊗ I over classes, S = Σ_i w_i x_i x_iᵀ /
    n + 1 / (C·n) with w_i = (1 − Σ_c p_ic²) / (classes − 1), the mean of H's eigenvalues at step i.
    """

    def __init__(self, labels: Array, most: int, C: float):
        self.classes, own = np.unique(labels, return_inverse=True)
        self.steps, count = len(labels), len(self.classes)
        self.penalty = np.float32(1 / (C / 2 if count == 2 else C) / self.steps)
        self.columns = np.empty((1 + most, self.steps), dtype=np.float32)  # (unit, step)
        self.columns[0] = 1
        self.weights = np.zeros((count, 1), dtype=np.float32)
        self.shares = np.empty((count, self.steps), dtype=np.float32)  # p (class, step)
        self.right = own * self.steps + np.arange(self.steps)  # of each step's class, in p

    def add(self, column: Array, tolerance: float = TOLERANCE) -> Linear:
        """The classifier with one more unit (step,)."""
        units = self.weights.shape[1]
        self.columns[units] = column
        self.weights = np.pad(self.weights, ((0, 0), (0, 1)))
        return self.refined(tolerance)

    def refined(self, tolerance: float = TOLERANCE) -> Linear:
        """The classifier of the units that are there, until the gradient is this small."""
        self._descend(self.columns[: self.weights.shape[1]], tolerance)
        return Linear(self.classes, self.weights)

    def _descend(self, x: Array, tolerance: float) -> None:
        loss, slope = self._loss(self.weights, x)
        inverse = self._inverse(x)
        pairs: list[tuple[Array, Array, float]] = []
        for _ in range(ITERATIONS):
            if np.abs(slope).max() <= tolerance:
                return
            way = -_newton(slope, pairs, inverse)
            fall = float(np.vdot(slope, way))
            length = np.float32(1)
            while True:
                new, turned = self._loss(self.weights + length * way, x)
                if new <= loss + 1e-4 * float(length) * fall + ROUNDING:
                    break
                length /= 2
                if length < 1e-6:
                    return  # as low as float32 can tell
            step, change = length * way, turned - slope
            curvature = float(np.vdot(step, change))
            if curvature > 1e-12:
                pairs = [*pairs, (step, change, 1 / curvature)][-MEMORY:]
            self.weights = self.weights + step
            loss, slope = new, turned

    def _loss(self, weights: Array, x: Array) -> tuple[float, Array]:
        """The loss and its gradient (class, 1 + unit); leaves p in `shares`."""
        p, flat = self.shares, self.shares.reshape(-1)
        np.matmul(weights, x, out=p)
        p -= p.max(axis=0)
        own = flat[self.right].sum(dtype=np.float64)
        np.exp(p, out=p)
        total = p.sum(axis=0)
        loss = float(np.log(total).sum(dtype=np.float64) - own) / self.steps
        p *= 1 / total
        flat[self.right] -= 1
        slope = p @ x.T
        slope *= np.float32(1 / self.steps)
        flat[self.right] += 1
        free = weights[:, 1:]
        slope[:, 1:] += self.penalty * free
        return loss + 0.5 * float(self.penalty) * float(np.vdot(free, free)), slope

    def _inverse(self, x: Array) -> Array:
        """S⁻¹ at the p that is there; never quite singular. (1 + unit, 1 + unit)"""
        w = (1 - np.square(self.shares).sum(axis=0)) / max(len(self.classes) - 1, 1)
        s = ((x * (np.maximum(w, 1e-4) / self.steps)) @ x.T).astype(np.float64)
        places = np.arange(1, len(s))
        s[places, places] += self.penalty
        s += np.eye(len(s)) * (1e-6 * np.trace(s) / len(s))
        return np.asarray(np.linalg.inv(s).astype(np.float32))


def _newton(slope: Array, pairs: list[tuple[Array, Array, float]], inverse: Array) -> Array:
    """H⁻¹ · slope by L-BFGS's two loops (Nocedal 1980), from the first guess of H⁻¹."""
    q, factors = slope.copy(), []
    for step, change, r in reversed(pairs):
        factors.append(r * float(np.vdot(step, q)))
        q -= np.float32(factors[-1]) * change
    q = q @ inverse
    for (step, change, r), factor in zip(pairs, reversed(factors), strict=True):
        q += np.float32(factor - r * float(np.vdot(change, q))) * step
    return np.asarray(q)
