"""What learns: cells, attention, the encoder-decoder and its siblings, and named presets."""

from regard.models import reader as reader
from regard.models import transformer as transformer
from regard.models.attention import Attention, Site, attentions
from regard.models.cells import Cell, cells
from regard.models.decoding import beam, greedy
from regard.models.encoder_decoder import EncoderDecoder, models
from regard.models.outputs import Memory, Output, Seq2Seq
from regard.models.presets import preset_for, presets, recipes_of
from regard.models.transformer import Transformer

__all__ = [
    "Attention",
    "Cell",
    "EncoderDecoder",
    "Memory",
    "Output",
    "Seq2Seq",
    "Site",
    "Transformer",
    "attentions",
    "beam",
    "cells",
    "greedy",
    "models",
    "preset_for",
    "presets",
    "recipes_of",
]
