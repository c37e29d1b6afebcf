"""Positional encodings."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Sinusoidal(nn.Module):
    """sin and cos, interleaved, at falling frequencies (Vaswani et al. 2017, section 3.5)."""

    def __init__(self, features: int, time_scale: float = 10_000.0):
        super().__init__()
        frequencies = time_scale ** (-torch.arange(0, features, 2) / features)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.features = features

    def forward(self, start: int, stop: int) -> Tensor:
        """The encodings of positions start..stop-1. (stop - start, features)"""
        assert isinstance(self.frequencies, Tensor)
        places = torch.arange(start, stop, device=self.frequencies.device)
        angles = places[:, None] * self.frequencies  # (time, features / 2)
        return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, : self.features]
