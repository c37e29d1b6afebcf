"""Training of snell2021's translation model against the speed of a large matrix product."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.benchmark import Measured, matmul_peak, time_once
from benchmarks.captions import Captions
from benchmarks.profile import WARM, profile_updates
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.runs.config import assemble, sizes_of
from regard.tasks.batch import Batch
from regard.training import Trainer


def trainer(words: int = 8000, **settings: Any) -> Trainer:
    """At the paper's sizes: batch 16, hidden 256, two layers, 8,000 pieces."""
    overrides = {"source": "captions", "device": "cpu", **settings}  # no file is opened
    config = assemble("translation", "snell-translation", 0, overrides)
    task = Captions(words)
    return Trainer(config.blank_model(sizes_of(task)), task, config.training, 0)


def operations(batch: Batch, config: EncoderDecoderConfig, words: int) -> int:
    """Floating-point operations of the products that one update takes for the batch's words.

    Forward once and backward twice: inputs and states of both encoder directions and of the
    decoder, queries, scores, mixtures, the layers before the output, and the output. Products
    over padding, where some are taken, do not count, nor does what an encoder's first state,
    which is zero, would take.
    """
    size, embedding = config.hidden, config.embedding
    source, target = int(batch.source_lengths.sum()), int(batch.target_lengths.sum())
    deeper = config.layers - 1
    read = source * (embedding + deeper * 2 * size) + (source - len(batch)) * config.layers * size
    wrote = target * (embedding + deeper * size + config.layers * size)
    pairs = int((batch.source_lengths * batch.target_lengths).sum())
    attended = target * size * 2 * size + 2 * pairs * 2 * size
    said = target * (2 * size * size + 2 * size * size + size * words)
    return 3 * 2 * (2 * 4 * size * read + 4 * size * wrote + attended + said)


def peak_share(rounds: int = 5, updates: int = 20, words: int = 8000, **settings: Any) -> Measured:
    """Operations a second in pieces of so many updates, over those of a large matrix product.

    Processor seconds; the product is measured before each piece and counts at its best.
    """
    ours = trainer(words, **settings)
    for _ in range(WARM):
        ours.step()
    peaks, speeds, rates = [], [], []
    for _ in range(rounds):
        peaks.append(matmul_peak(clock=time.process_time))
        count = operations_of(ours, updates)
        taken = time_once(lambda: [ours.step() for _ in range(updates)])
        speeds.append(count / taken)
        rates.append(updates * ours.config.batch / taken)
    return {
        "share": statistics.median(speeds) / max(peaks),
        "sentences_per_second": statistics.median(rates),
        "gigaflops_per_second": [speed / 1e9 for speed in speeds],
        "matmul_peak_gflops": [peak / 1e9 for peak in peaks],
        "update": profile_updates(ours, updates),
    }


def operations_of(ours: Trainer, updates: int) -> int:
    """The operations of the updates that come next."""
    config: Any = ours.model.config
    words = len(ours.task.target_vocabulary)
    batches = (
        ours.task.train_batch(update, ours.config.batch, ours.seed)
        for update in range(ours.update, ours.update + updates)
    )
    return sum(operations(batch, config, words) for batch in batches)
