"""snell2021's lexical probe against one pass of the output network per source position."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from regard.bench.benchmark import in_turns
from regard.bench.captions import Captions
from regard.errors import RegardError
from regard.models import EncoderDecoder
from regard.models.outputs import Memory
from regard.runs import assemble
from regard.tasks.batch import Batch

CLOSE = 1e-4  # how far two log-probabilities may lie apart


def translator(task: Captions, **settings: Any) -> EncoderDecoder:
    """snell2021's model of translation for these captions, before training."""
    overrides = {"source": "captions", "device": "cpu", **settings}  # no file is opened
    model = assemble("translation", "snell-translation", 0, overrides).blank_model(task)
    assert isinstance(model, EncoderDecoder)
    return model


class Probe:
    """One batch, what the model makes of it, and both ways to probe it."""

    def __init__(self, sentences: int = 64, words: int = 8000, **settings: Any):
        task = Captions(words)
        self.batch: Batch = task.fresh(sentences, seed=0)
        self.model = translator(task, **settings).eval()
        with torch.no_grad():
            self.memory: Memory = self.model.encode(self.batch.source, self.batch.source_lengths)
            self.states = self.model.decode(self.memory, self.batch.inputs).decoder_states
        self.there = self.batch.target_mask[:, :, None] & self.batch.source_mask[:, None]

    @torch.no_grad()
    def ours(self) -> Tensor:
        """log β as the instrument finds it. (batch, target, source)"""
        return self.model.lexical(self.memory, self.states, self.batch.target, self.there)

    @torch.no_grad()
    def plainly(self) -> Tensor:
        """log β as eq. 4 says: the context is one h_l after the other. (batch, target, source)"""
        found = []
        for h in self.memory.states.unbind(1):
            context = h[:, None].expand(-1, self.states.shape[1], -1)
            said = self.model.readout(self.states, context).log_softmax(dim=2)
            found.append(said.gather(2, self.batch.target[:, :, None])[:, :, 0])
        return torch.stack(found, dim=2)


def probe_ratio(
    sentences: int = 64, words: int = 8000, rounds: int = 3, **settings: Any
) -> dict[str, Any]:
    """Processor seconds of the plain version over ours, in turns."""
    probe = Probe(sentences, words, **settings)
    there = probe.there
    apart = float((probe.ours() - probe.plainly())[there].abs().max())
    if not apart <= CLOSE:
        raise RegardError(
            f"log β by one pass per position and ours lie {apart:g} apart, so there is nothing to"
            " compare. One of the two is wrong: see models/readout.py."
        )
    works = probe.ours, probe.plainly
    ours, plain = in_turns(*works, rounds=rounds, calls=2, cold=1, clock=time.process_time)
    return {
        "ratio": plain / ours,
        "seconds": ours,
        "plain_seconds": plain,
        "pairs": int(there.sum()),
        "padded_pairs": there.numel(),
        "gigaflops_per_second": _operations(probe) / ours / 1e9,
    }


def _operations(probe: Probe) -> float:
    """Floating-point operations of the output layer over the pairs that are there."""
    return 2.0 * int(probe.there.sum()) * probe.model.readout.weight.numel()
