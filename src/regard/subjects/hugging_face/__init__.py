"""Encoder-decoders of `transformers`, recorded as they are."""
