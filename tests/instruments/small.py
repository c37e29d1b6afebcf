"""Models with random weights, phrases to read, and recordings of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from regard.models import EncoderDecoder, Seq2Seq, Transformer
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.layers.attention import ATTENTIONS
from regard.models.transformer import TransformerConfig
from regard.recordings import Recording, record
from regard.tasks import Batch, Vocabulary, collate

WORDS = Vocabulary.of("abcde")


def phrases(samples: int = 9, seed: int = 0) -> Batch:
    """Random phrases of two to four words and `<EOS>`; `e` never occurs."""
    rng = np.random.default_rng(seed)
    rows = [
        [[*rng.integers(3, 7, size=n), 2] for n in rng.integers(2, 5, size=samples)]
        for _ in range(2)
    ]
    return collate(*rows)


def recurrent(attention: str, heads: int = 1, seed: int = 0, **more: Any) -> Seq2Seq:
    """A GRU with an attention."""
    torch.manual_seed(seed)
    size = {"attention_size": 3} if ATTENTIONS[attention].sized else {}
    settings = {"cell": "gru", "hidden": 6, "embedding": 4, **size, **more}
    config = EncoderDecoderConfig(attention=attention, heads=heads, **settings)
    return EncoderDecoder(config, len(WORDS), len(WORDS)).eval()


def transformer(seed: int = 0) -> Seq2Seq:
    """One block on each side, two heads."""
    torch.manual_seed(seed)
    config = TransformerConfig(hidden=8, layers=1, heads=2, feedforward=8)
    return Transformer(config, len(WORDS), len(WORDS)).eval()


def recorded(model: Seq2Seq, samples: int = 9) -> Recording:
    """What the model does when the teacher feeds it."""
    batches = [phrases(samples)]
    return record(model, vocabularies=(WORDS, WORDS), batches=batches, inputs="teacher")
