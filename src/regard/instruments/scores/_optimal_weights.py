"""The attention weights that minimise the loss of an additive model (snell2021, A.1).

p = softmax(Σ_l α_l γ_l + γ_s), eq. 27. With G(α) = log Σ_{o≠y} exp(α·(γ_o − γ_y) + …), the log of
g of eq. 36, the loss of word y is log(1 + exp G). G is convex and the loss grows with it, so both
have the same minimum; but where a word is easy and the loss is near 0 everywhere, G still tells
good weights from bad ones. So G is what is minimised, over the simplex.

The way is a primal-dual interior point (Boyd and Vandenberghe 2004, section 11.7): Newton's steps
are cheap because a source is short, however large the vocabulary. Its end is proved by the
Frank-Wolfe gap, max_l ⟨∇f(α), α − e_l⟩ ≥ f(α) − min f, which holds for any convex f.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from regard.errors import RegardError

AT_ONCE = 128 * 2**20  # bytes of γ, and of its products, that are in memory at a time
STEPS = 80  # of Newton; ten to twenty are usual
HALVINGS = 30
CENTRING = 0.1  # the share of the surrogate gap that a step aims at
NEGLIGIBLE = 1e-4  # weights below this are set to zero where the certificate allows it


class Optimum(NamedTuple):
    """The best weights, what they cost, and how far from the minimum that can be at most."""

    weights: Tensor  # (…, source), zero where there is no word
    loss: Tensor  # (…,)
    gap: Tensor  # (…,), ≥ loss − the smallest loss there is


def optimal_weights(
    gamma: Tensor, gamma_s: Tensor, targets: Tensor, mask: Tensor, tolerance: float = 1e-6
) -> Optimum:
    """α^opt = argmin over the simplex of −log softmax(Σ_l α_l γ_l + γ_s)_y, row by row.

    gamma (rows, source, vocab), gamma_s (rows, vocab), targets (rows,), mask (rows, source).
    Everything is done in float64; `tolerance` bounds the gap of the loss, and of its logit G.
    """
    found = optimal_for_sentences(
        gamma, gamma_s[:, None], targets[:, None], mask, tolerance=tolerance
    )
    return Optimum(*(values[:, 0] for values in found))


def optimal_for_sentences(
    gamma: Tensor,
    gamma_s: Tensor,
    targets: Tensor,
    mask: Tensor,
    steps: Tensor | None = None,
    tolerance: float = 1e-6,
) -> Optimum:
    """The same where all target steps of a sentence share their γ.

    gamma (batch, source, vocab), gamma_s (batch, target, vocab), targets (batch, target), mask
    (batch, source), steps (batch, target): those that are wanted; the others are left uniform
    and say so by their gap. -> weights (batch, target, source), loss and gap (batch, target)
    """
    _check(gamma, gamma_s, targets, mask, tolerance)
    steps = torch.ones_like(targets, dtype=torch.bool) if steps is None else steps
    batch, source, vocab = gamma.shape
    floats = vocab * (source * (source + 3) // 2 + 8 * targets.shape[1])
    size = max(1, AT_ONCE // (8 * floats))
    with torch.no_grad():
        pieces = [
            _solve(
                Problem(gamma[part].double(), gamma_s[part].double(), targets[part], mask[part]),
                steps[part],
                tolerance,
            )
            for part in (slice(start, start + size) for start in range(0, batch, size))
        ]
    return Optimum(*(torch.cat(values) for values in zip(*pieces, strict=True)))


def _check(gamma: Tensor, gamma_s: Tensor, targets: Tensor, mask: Tensor, tolerance: float) -> None:
    batch, source, vocab = gamma.shape
    faults = []
    if vocab < 2:
        faults.append(f"A vocabulary of {vocab} words leaves nothing to choose: it has 2 or more.")
    if gamma_s.shape != (batch, targets.shape[1], vocab) or mask.shape != (batch, source):
        faults.append(
            f"γ is {tuple(gamma.shape)}, γ_s {tuple(gamma_s.shape)}, targets"
            f" {tuple(targets.shape)} and mask {tuple(mask.shape)}: they do not fit together."
        )
    if not bool(mask.any(dim=1).all()):
        faults.append("A source without any word has no weights to choose: leave it out.")
    if not (bool(gamma.isfinite().all()) and bool(gamma_s.isfinite().all())):
        faults.append("γ has numbers that are not finite, so there is no loss to minimise.")
    if tolerance <= 0:
        faults.append(f"tolerance={tolerance:g} does not fit: it is more than 0.")
    if faults:
        raise RegardError(*faults)


class Problem:
    """G, its gradient and its Hessian, for all target steps of some sentences."""

    def __init__(self, gamma: Tensor, gamma_s: Tensor, targets: Tensor, mask: Tensor):
        self.mask = mask[:, None]  # (batch, 1, source)
        self.gamma = gamma * mask[:, :, None]
        self.gamma_s, self.targets = gamma_s, targets[:, :, None]
        places = self.targets.expand(-1, -1, gamma.shape[1])  # (batch, target, source)
        self.right = self.gamma.mT.gather(1, places)  # γ_l of the right word
        self.pairs = torch.triu_indices(gamma.shape[1], gamma.shape[1])
        one, other = self.pairs
        self.products = self.gamma[:, one] * self.gamma[:, other]  # (batch, pair, vocab)

    def others(self, weights: Tensor) -> Tensor:
        """Logits of the wrong words minus that of the right one. (batch, target, vocab)"""
        logits = weights @ self.gamma + self.gamma_s
        return (logits - logits.gather(2, self.targets)).scatter(2, self.targets, -torch.inf)

    def gradient(self, others: Tensor) -> tuple[Tensor, Tensor]:
        """∇G (batch, target, source), and the probabilities among the wrong words."""
        among = others.softmax(dim=2)
        return (among @ self.gamma.mT - self.right) * self.mask, among

    def hessian(self, among: Tensor) -> Tensor:
        """Γ (diag q − q qᵀ) Γᵀ, (batch, target, source, source)."""
        one, other = self.pairs
        means = among @ self.gamma.mT
        found = means.new_zeros(*means.shape, means.shape[2])
        found[:, :, one, other] = among @ self.products.mT
        found[:, :, other, one] = found[:, :, one, other]
        return found - means[:, :, :, None] * means[:, :, None]

    def judge(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The loss, its gap, and the gap of G. (batch, target) each"""
        others = self.others(weights)
        logit = others.logsumexp(dim=2)
        gradient = self.gradient(others)[0]
        lowest = gradient.masked_fill(~self.mask, torch.inf).amin(dim=2)
        gap = ((gradient * weights).sum(dim=2) - lowest).clamp(min=0)
        return softplus(logit), logit.sigmoid() * gap, gap


class State(NamedTuple):
    """A point inside: weights α, multipliers z of α ≥ 0 and ν of Σα = 1, and ∇G there."""

    alpha: Tensor  # (batch, target, source)
    z: Tensor  # the same
    nu: Tensor  # (batch, target, 1)
    gradient: Tensor
    among: Tensor


def _solve(problem: Problem, steps: Tensor, tolerance: float) -> Optimum:
    state = _start(problem, steps.shape[1])
    for _ in range(STEPS):
        open_ = steps & (problem.judge(state.alpha)[2] > tolerance)
        if not bool(open_.any()):
            break
        state = _step(problem, state, open_[:, :, None])
    weights = _snap(problem, state.alpha, tolerance)
    loss, gap, _ = problem.judge(weights)
    return Optimum(weights, loss, gap)


def _start(problem: Problem, steps: int) -> State:
    mask = problem.mask.expand(-1, steps, -1)
    alpha = mask / mask.sum(dim=2, keepdim=True, dtype=torch.float64)
    gradient, among = problem.gradient(problem.others(alpha))
    scale = 1 + gradient.abs().amax(dim=2, keepdim=True)
    return State(alpha, mask * scale, torch.zeros_like(scale), gradient, among)


def _step(problem: Problem, state: State, open_: Tensor) -> State:
    """One Newton step towards the central path, cut until the residual falls."""
    mask, count = problem.mask, problem.mask.sum(dim=2, keepdim=True)
    aim = CENTRING * (state.alpha * state.z).sum(dim=2, keepdim=True) / count
    moves = _direction(problem, state, aim)
    size = _inside(state.alpha, moves[0]).minimum(_inside(state.z, moves[1]))
    size = torch.where(open_, size, 0.0)
    now = _residual(state, aim, mask)
    for _ in range(HALVINGS):
        after = _move(problem, state, moves, size)
        fails = _residual(after, aim, mask) > (1 - 0.01 * size) * now
        if not bool((fails & (size > 0)).any()):
            break
        size = torch.where(fails, size / 2, size)
    return after


def _direction(problem: Problem, state: State, aim: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Newton's direction for α, z and ν."""
    mask = problem.mask
    inverse = torch.where(mask, 1 / state.alpha.clamp(min=1e-300), 0.0)
    diagonal = torch.where(mask, state.z * inverse, 1.0)
    matrix = problem.hessian(state.among) + torch.diag_embed(diagonal)
    slope = (state.gradient + state.nu - aim * inverse) * mask
    ones = mask.expand_as(slope).double()
    # Unchecked: a row whose matrix is singular stays where it is, and its gap says so.
    solved = torch.linalg.solve_ex(matrix, torch.stack([-slope, ones], dim=3))[0]
    free, along = solved.unbind(dim=3)
    missing = state.alpha.sum(dim=2, keepdim=True) - 1
    nu = (free.sum(dim=2, keepdim=True) + missing) / along.sum(dim=2, keepdim=True)
    alpha = (free - along * nu) * mask
    z = (aim * inverse - state.z - state.z * inverse * alpha) * mask
    good = (alpha + z + nu).isfinite().all(dim=2, keepdim=True)
    return torch.where(good, alpha, 0.0), torch.where(good, z, 0.0), torch.where(good, nu, 0.0)


def _inside(x: Tensor, move: Tensor) -> Tensor:
    """The largest step, at most 1, that keeps x positive. (batch, target, 1)"""
    ratio = torch.where(move < 0, -x / move, torch.inf)
    return (0.99 * ratio.amin(dim=2, keepdim=True)).clamp(max=1.0)


def _move(
    problem: Problem, state: State, moves: tuple[Tensor, Tensor, Tensor], size: Tensor
) -> State:
    alpha, z, nu = (x + size * move for x, move in zip(state[:3], moves, strict=True))
    return State(alpha, z, nu, *problem.gradient(problem.others(alpha)))


def _residual(state: State, aim: Tensor, mask: Tensor) -> Tensor:
    """How far from the conditions of the central path. (batch, target, 1)"""
    dual = (state.gradient - state.z + state.nu) * mask
    central = (state.alpha * state.z - aim) * mask
    primal = state.alpha.sum(dim=2, keepdim=True) - 1
    found: Tensor = torch.cat([dual, central, primal], dim=2).square().sum(dim=2, keepdim=True)
    return found.sqrt()


def _snap(problem: Problem, weights: Tensor, tolerance: float) -> Tensor:
    """Negligible weights as exact zeros, where the certificate stays good or gets no worse."""
    weights = weights / weights.sum(dim=2, keepdim=True)
    bare = torch.where(weights < NEGLIGIBLE, 0.0, weights)
    bare = bare / bare.sum(dim=2, keepdim=True)
    before, after = problem.judge(weights)[2], problem.judge(bare)[2]
    good = (after <= tolerance) | (after <= before)
    return torch.where(good[:, :, None], bare, weights)
