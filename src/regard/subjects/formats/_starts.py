"""Where a decoder starts, of the encoder's last states: the ways of other programs.

Last states come layer by layer (h, c, h, c, …), those of both directions joined: (batch, size).
"""

from __future__ import annotations

import torch
from torch import nn

from regard.models.layers.cells import State


class Start(nn.Module):
    """The last states as they are, layer by layer: fairseq, and OpenNMT-py without a bridge."""

    def forward(self, finals: State) -> State:
        """The decoder's first state, layer by layer."""
        return finals


class FromZeros(Start):
    """Zeros: attention alone tells the decoder of the source."""

    def __init__(self, size: int, count: int):
        super().__init__()
        self.size, self.count = size, count

    def forward(self, finals: State) -> State:
        """See `Start`."""
        return (finals[0].new_zeros(len(finals[0]), self.size),) * self.count


class FromTop(Start):
    """The last layer's h for all layers and for c too: JoeyNMT, by tanh(W h + b) or cut to size."""

    def __init__(self, inputs: int, size: int, count: int, members: int, projected: bool):
        super().__init__()
        self.size, self.count, self.members = size, count, members
        self.map = nn.Linear(inputs, size) if projected else None

    def forward(self, finals: State) -> State:
        """See `Start`."""
        top = finals[-self.members]
        top = top[:, : self.size] if self.map is None else torch.tanh(self.map(top))
        return (top,) * self.count


class Projected(Start):
    """W h + b and V c + d, the same of all layers: fairseq where the sizes differ."""

    def __init__(self, inputs: int, size: int, members: int):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(inputs, size) for _ in range(members))

    def forward(self, finals: State) -> State:
        """See `Start`."""
        return tuple(self.maps[n % len(self.maps)](x) for n, x in enumerate(finals))


class Bridged(Start):
    """max(0, W x + b) of all layers of one direction at once: OpenNMT-py with a bridge."""

    def __init__(self, total: int, members: int):
        super().__init__()
        self.total = total
        self.maps = nn.ModuleList(nn.Linear(total, total) for _ in range(members))

    def forward(self, finals: State) -> State:
        """See `Start`."""
        members, found = len(self.maps), []
        for member, bridge in enumerate(self.maps):
            all_layers = torch.stack(finals[member::members], dim=1)  # (batch, layer, size)
            moved = torch.relu(bridge(all_layers.reshape(-1, self.total)))
            found.append(moved.view(all_layers.shape).unbind(1))
        return tuple(x for layer in zip(*found, strict=True) for x in layer)
