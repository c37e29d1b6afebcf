"""From logits to words: greedy and beam decoding, and feeding a model a mixture of words."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from regard.models.seq2seq import Memory, Seq2Seq
from regard.tasks.vocabulary import EOS, PAD, SOS

Feeding = Callable[[Tensor], None]  # told what is fed before each step, (batch, so far)
Growing = Callable[[Tensor, Tensor, Tensor], None]  # told what a beam holds after each step


@torch.no_grad()
def greedy(
    model: Seq2Seq,
    memory: Memory,
    limit: int,
    end: int | None = EOS,
    forced: Tensor | None = None,
    feeding: Feeding | None = None,
    start: int = SOS,
) -> Tensor:
    """The likeliest word at each step, each row until its `end` or `limit` words.

    With `end=None` no word ends a row: each gets `limit` words. Where `forced` (batch, steps) is
    not -1, that word is said instead of the likeliest. `feeding` is told what is fed before each
    step, `start` first, which is `<SOS>` in models of Regard's.

    memory: what `encode` gave -> words (batch, at most limit), `<PAD>` after the end
    """
    rows, state = len(memory.states), memory.initial
    words = torch.full((rows,), start, device=memory.states.device)
    ended = torch.zeros_like(words, dtype=torch.bool)
    first = words
    chosen: list[Tensor] = []
    for step in range(limit):
        if feeding is not None:
            feeding(torch.stack([first, *chosen], dim=1))
        logits, state = model.step(memory, words, state)
        words = logits.argmax(dim=1)
        if forced is not None and step < forced.shape[1]:
            words = torch.where(forced[:, step] >= 0, forced[:, step], words)
        words = words.masked_fill(ended, PAD)
        chosen.append(words)
        if end is not None:
            ended = ended | (words == end)
            if bool(ended.all()):
                break
    return torch.stack(chosen, dim=1) if chosen else words[:, None][:, :0]


@torch.no_grad()
def beam(
    model: Seq2Seq,
    memory: Memory,
    limit: int,
    width: int = 5,
    end: int | None = EOS,
    feeding: Feeding | None = None,
    growing: Growing | None = None,
    start: int = SOS,
) -> Tensor:
    """The likeliest sequence that a beam of `width` finds, per row; `width=1` is greedy.

    Sequences are compared by log-probability per word, `<EOS>` counted, so that longer ones are
    not at a disadvantage. Each row stops when nothing in its beam can still win, and costs nothing
    from then on. With `end=None` no word ends a sequence: all have `limit` words.

    `feeding` is told what is fed before each step, a row per sequence in the beam; `growing` what
    the beam holds after it: words (row, width, steps), their log-probabilities (row, width), −∞
    where there is none, and which of them end here (row, width). `start` is fed first.
    """
    rows, device = len(memory.states), memory.states.device
    memory = memory.select(torch.arange(rows, device=device).repeat_interleave(width))
    state = memory.initial
    words = torch.full((rows * width,), start, device=device)
    scores = torch.full((rows, width), float("-inf"), device=device)
    scores[:, 0] = 0.0  # all beams start alike: only the first counts
    history = torch.full((rows, width, 0), PAD, device=device)
    best = torch.full((rows, limit), PAD, device=device)
    best_score = torch.full((rows,), float("-inf"), device=device)
    alive = torch.arange(rows, device=device)  # the rows that go on
    for step in range(limit):
        if feeding is not None:
            first = history.new_full((*history.shape[:2], 1), start)
            feeding(torch.cat([first, history], dim=2).flatten(0, 1))
        logits, state = model.step(memory, words, state)
        likely, words = logits.topk(min(width, logits.shape[1]), dim=1)  # no others can be chosen
        likely = likely - logits.logsumexp(dim=1, keepdim=True)
        options = scores[:, :, None] + likely.view(len(alive), width, -1)
        scores, index = options.flatten(1).topk(width, dim=1)  # (rows, width)
        parent, word = index // options.shape[2], words.view(len(alive), -1).gather(1, index)
        history = torch.cat(
            [history.gather(1, parent[:, :, None].expand_as(history)), word[:, :, None]], dim=2
        )
        ending = (word == (-1 if end is None else end)) | (step == limit - 1)
        if growing is not None:
            growing(history, scores, ending)
        finished = torch.where(ending, scores / (step + 1), float("-inf"))
        top, beam_index = finished.max(dim=1)
        better = top > best_score[alive]
        best[alive[better], : step + 1] = history[better, beam_index[better]]
        best_score[alive[better]] = top[better]
        scores = scores.masked_fill(ending, float("-inf"))
        going = (scores.max(dim=1).values / limit > best_score[alive]).nonzero()[:, 0]
        if not len(going):
            break
        flat = (going[:, None] * width + parent[going]).flatten()
        words, state = word[going].flatten(), tuple(s[flat] for s in state)
        if len(going) < len(alive):
            alive, scores, history = alive[going], scores[going], history[going]
            memory = memory.select(flat)
    return best
