"""The lexical probe by its definition, for models that cannot be asked at once.

`Seq2Seq.lexical` answers for all pairs of words where one attention follows the step and the output
network reads its context. Of other models, Transformers above all, the weights themselves are
moved: at one target step all heads of all layers look at one source position, everything else runs
as it does, and the probability of the right word is read off (snell2021, eq. 4).
"""

from __future__ import annotations

from contextlib import ExitStack

import torch
from torch import Tensor, nn

from regard.models.seq2seq import Memory, Seq2Seq

NUMBERS = 16 * 2**20  # logits that are in memory at a time


def can_be_moved(model: Seq2Seq) -> bool:
    """Whether the weights of all attentions to the source pass a hook point."""
    points, crossing = model.hook_points(), model.crossing_sites()
    return bool(crossing) and all(f"{site}.weights" in points for site in crossing)


class _Mover:
    """A hook that puts all weight of one step at given positions, one a row.

    A pass shows all steps at once, or one after the other.
    """

    def __init__(self, step: int, positions: Tensor):
        self.step, self.positions, self.seen = step, positions, 0

    def __call__(self, _point: nn.Module, _args: tuple[Tensor, ...], weights: Tensor) -> Tensor:
        """weights (batch, head, target, source), of the next steps."""
        at, self.seen = self.step - self.seen, self.seen + weights.shape[2]
        if not 0 <= at < weights.shape[2]:
            return weights
        moved = weights.clone()
        moved[:, :, at] = 0.0
        moved[torch.arange(len(moved)), :, at, self.positions] = 1.0
        return moved


@torch.no_grad()
def probe_by_moving(
    model: Seq2Seq, memory: Memory, inputs: Tensor, targets: Tensor, pairs: Tensor, words: int
) -> Tensor:
    """log β_{t,l}, the log-probability of target word y_t were all attention of step t at l.

    inputs and targets (batch, target); pairs (batch, target, source) says which are wanted; the
    model has so many target `words`. One decoder pass a pair. -> (batch, target, source), 0 where
    not wanted
    """
    found = torch.zeros(pairs.shape, dtype=torch.float32, device=inputs.device)
    size = max(1, NUMBERS // (inputs.shape[1] * max(1, words)))
    for step in range(inputs.shape[1]):
        rows, positions = pairs[:, step].nonzero(as_tuple=True)
        for start in range(0, len(rows), size):
            row, position = rows[start : start + size], positions[start : start + size]
            logits = _decode_moved(model, memory.select(row), inputs[row], step, position)
            said = logits.float().log_softmax(dim=1)
            found[row, step, position] = said.gather(1, targets[row, step, None])[:, 0]
    return found


def _decode_moved(
    model: Seq2Seq, memory: Memory, inputs: Tensor, step: int, positions: Tensor
) -> Tensor:
    """Logits of one step that looks at one position a row. -> (batch, vocab)"""
    points = model.hook_points()
    with ExitStack() as hooks, model.keep_sites(()):
        for site in model.crossing_sites():
            mover = _Mover(step, positions)
            hooks.callback(points[f"{site}.weights"].register_forward_hook(mover).remove)
        return model.decode(memory, inputs).logits[:, step]
