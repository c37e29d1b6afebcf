"""Tiny models of other people's families, made from configurations: nothing is fetched."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

SHARED: dict[str, Any] = {
    "vocab_size": 60, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32, "max_position_embeddings": 140, "pad_token_id": 1, "eos_token_id": 2,
    "bos_token_id": 0, "decoder_start_token_id": 2,
}  # fmt: skip
T5: dict[str, Any] = {
    "vocab_size": 60, "d_model": 16, "d_kv": 6, "d_ff": 32, "num_layers": 2, "num_heads": 2,
    "decoder_start_token_id": 0,
}  # fmt: skip
SHORT = {name: value for name, value in SHARED.items() if name != "max_position_embeddings"}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "Marian": ("MarianMTModel", {**SHARED, "pad_token_id": 59, "decoder_start_token_id": 59}),
    "Bart": ("BartForConditionalGeneration", SHARED),
    "MBart": ("MBartForConditionalGeneration", SHARED),
    "M2M100": ("M2M100ForConditionalGeneration", SHARED),
    "Pegasus": ("PegasusForConditionalGeneration", SHARED),
    "Blenderbot": ("BlenderbotForConditionalGeneration", SHARED),
    "T5": ("T5ForConditionalGeneration", T5),
    "MT5": ("MT5ForConditionalGeneration", {**T5, "tie_word_embeddings": False}),
    "UMT5": ("UMT5ForConditionalGeneration", T5),
    "Whisper": (
        "WhisperForConditionalGeneration",
        {**SHORT, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 140},
    ),
    "ProphetNet": (
        "ProphetNetForConditionalGeneration",
        {"vocab_size": 60, "hidden_size": 16, "encoder_ffn_dim": 32, "num_encoder_layers": 2,
         "num_encoder_attention_heads": 2, "decoder_ffn_dim": 32, "num_decoder_layers": 2,
         "num_decoder_attention_heads": 2, "max_position_embeddings": 140,
         "decoder_start_token_id": 1},
    ),
    "LED": (
        "LEDForConditionalGeneration",
        {**SHORT, "max_encoder_position_embeddings": 256, "max_decoder_position_embeddings": 140,
         "attention_window": [8, 8]},
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Any]:
    """A model of a family with random weights; the same each time."""
    transformers = pytest.importorskip("transformers", reason="the extra hf is not installed")

    def make(family: str, **changes: Any) -> Any:
        kind, settings = FAMILIES[family]
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the configuration's defaults
            config = getattr(transformers, f"{family}Config")(**{**settings, **changes})
            return getattr(transformers, kind)(config).eval()

    return make
