"""snell2021's lexical probe against one pass of the output network per source position."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from benchmarks.benchmark import Measured, agree, medians_in_turns
from benchmarks.captions import Captions
from regard.models import EncoderDecoder
from regard.runs.config import assemble, sizes_of

CLOSE = 1e-4  # how far two log-probabilities may lie apart


class Probe:
    """One batch, what snell2021's translator makes of it, and both ways to probe it."""

    def __init__(self, sentences: int = 64, words: int = 8000, **settings: Any):
        task = Captions(words)
        self.batch = task.fresh(sentences, seed=0)
        overrides = {"source": "captions", "device": "cpu", **settings}  # no file is opened
        config = assemble("translation", "snell-translation", 0, overrides)
        model = config.blank_model(sizes_of(task)).eval()
        assert isinstance(model, EncoderDecoder)
        self.model = model
        with torch.no_grad():
            self.memory = self.model.encode(self.batch.source, self.batch.source_lengths)
            self.states = self.model.decode(self.memory, self.batch.inputs).decoder_states
        self.mask = self.batch.target_mask[:, :, None] & self.batch.source_mask[:, None]

    @torch.no_grad()
    def ours(self) -> Tensor:
        """log β as the instrument finds it. (batch, target, source)"""
        return self.model.lexical(self.memory, self.states, self.batch.target, self.mask)

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
) -> Measured:
    """Processor seconds of the plain version over ours, in turns."""
    probe = Probe(sentences, words, **settings)
    agree("log β", probe.ours()[probe.mask], probe.plainly()[probe.mask], CLOSE)
    ours, plain = medians_in_turns(
        probe.ours, probe.plainly, rounds=rounds, calls=2, cold=1, clock=time.process_time
    )
    pairs = int(probe.mask.sum())
    return {
        "ratio": plain / ours,
        "seconds": ours,
        "plain_seconds": plain,
        "pairs": pairs,
        "padded_pairs": probe.mask.numel(),
        "gigaflops_per_second": 2 * pairs * probe.model.readout.weight.numel() / ours / 1e9,
    }
