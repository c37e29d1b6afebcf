"""Positional encodings."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Sinusoidal(nn.Module):
    """sin and cos, interleaved, at falling frequencies (Vaswani et al. 2017, section 3.5).

    `time_scale` is the base of the frequencies (10,000 there; 20 and 100 in aitken2021),
    `amplitude` a factor, and with `rotation` every encoding is turned by one random rotation,
    so that positions and one-hot words do not share axes.
    """

    def __init__(
        self,
        features: int,
        time_scale: float = 10_000.0,
        amplitude: float = 1.0,
        rotation: bool = False,
    ):
        super().__init__()
        frequencies = time_scale ** (-torch.arange(0, features, 2) / features)
        self.register_buffer("frequencies", frequencies, persistent=False)
        turned = torch.linalg.qr(torch.randn(features, features))[0] if rotation else None
        self.register_buffer("rotation", turned)  # drawn once, so it is kept with the weights
        self.features, self.amplitude = features, amplitude

    def forward(self, start: int, stop: int) -> Tensor:
        """The encodings of positions start..stop-1. (stop - start, features)"""
        assert isinstance(self.frequencies, Tensor)
        places = torch.arange(start, stop, device=self.frequencies.device)
        angles = places[:, None] * self.frequencies  # (time, features / 2)
        waves = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, : self.features]
        waves = self.amplitude * waves
        return waves @ self.rotation if isinstance(self.rotation, Tensor) else waves
