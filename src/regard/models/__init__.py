"""What learns: cells, attention, the encoder-decoder and its siblings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

if TYPE_CHECKING:
    from regard.models.decoding import beam as beam
    from regard.models.decoding import greedy as greedy
    from regard.models.encoder_decoder import MODELS as MODELS
    from regard.models.encoder_decoder import EncoderDecoder as EncoderDecoder
    from regard.models.layers.attention import ATTENTIONS as ATTENTIONS
    from regard.models.layers.attention import Attention as Attention
    from regard.models.layers.attention import Site as Site
    from regard.models.layers.cells import CELLS as CELLS
    from regard.models.layers.cells import Cell as Cell
    from regard.models.seq2seq import Memory as Memory
    from regard.models.seq2seq import Output as Output
    from regard.models.seq2seq import Seq2Seq as Seq2Seq
    from regard.models.transformer import Transformer as Transformer
else:
    __getattr__, __dir__, __all__ = attach(__name__)
