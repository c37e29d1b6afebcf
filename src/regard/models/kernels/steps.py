"""The kernels: one step of each cell, forwards and backwards."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.models.kernels.recurrence import Kernel, Room, State


class UGRNNKernel(Kernel):
    """u = σ(p_u + W_u h), c = tanh(p_c + W_c h), h' = u∘h + (1−u)∘c."""

    blocks = 2

    def forward(self, weights: State, before: State, room: Room, fresh: bool) -> State:
        """See the class."""
        gate, u, c, h = room
        if not fresh:
            gate.addmm_(before[0], weights[0])
        return (torch.lerp(c.tanh_(), before[0], u.sigmoid_(), out=h),)

    def derive(self, gates: Tensor, after: State, before: State, spare: Room) -> Room:
        """d h'/d p_u = (h − c) u (1 − u); d h'/d p_c = (1 − u) (1 − c²)."""
        u, c = gates.chunk(2, dim=1)
        local = torch.cat([(before[0] - c) * u * (1 - u), (1 - u) * (1 - c * c)], dim=1)
        return local, local.view(len(local), 2, -1), u

    def backward(self, weights: State, flow: State, room: Room, fresh: bool) -> None:
        """Through both blocks, and past them by u."""
        local, both, u = room
        both.mul_(flow[0][:, None])
        torch.addmm(flow[0] * u, local, weights[0], out=flow[0])


class ResetFirstKernel(Kernel):
    """GRU that resets before the matrix: r, z = σ(…), n = tanh(p_n + W_n (r∘h)).

    h' = z∘h + (1−z)∘n where the update gate keeps, (1−z)∘h + z∘n where it writes.
    """

    blocks = 3
    spare = (1,)  # r∘h

    def __init__(self, update_keeps: bool):
        self.update_keeps = update_keeps

    def prepare(self, weights: State) -> State:
        """The gates' and the candidate's."""
        hidden = weights[0].shape[1]
        return weights[0][: 2 * hidden].t(), weights[0][2 * hidden :].t()

    def forward(self, weights: State, before: State, room: Room, fresh: bool) -> State:
        """See the class."""
        gate, r, z, n, h, reset = room
        gate[:, : 2 * len(h[0])].addmm_(before[0], weights[0]).sigmoid_()
        n.addmm_(torch.mul(r, before[0], out=reset), weights[1]).tanh_()
        start, end = (n, before[0]) if self.update_keeps else (before[0], n)
        return (torch.lerp(start, end, z, out=h),)

    def derive(self, gates: Tensor, after: State, before: State, spare: Room) -> Room:
        """The slopes of the gates, of the candidate, and what is kept."""
        r, z, n = gates.chunk(3, dim=1)
        keep, sign = (z, 1.0) if self.update_keeps else (1 - z, -1.0)
        d_update = sign * (before[0] - n) * z * (1 - z)
        local = torch.cat([before[0] * r * (1 - r), d_update, (1 - keep) * (1 - n * n)], dim=1)
        three = local.view(len(local), 3, -1)
        return local, local[:, : 2 * r.shape[1]], three[:, 1:], three[:, 0], three[:, 2], r, keep

    def backward(self, weights: State, flow: State, room: Room, fresh: bool) -> None:
        """The chain rule through the mixture, the candidate, and the two gates."""
        _, d_gates, d_mixed, d_r, d_n, r, keep = room
        (d_h,), hidden = flow, r.shape[1]
        d_mixed.mul_(d_h[:, None])
        through = d_n @ weights[0][2 * hidden :]  # d loss / d (r∘h)
        d_r.mul_(through)
        rest = (d_h * keep).addcmul_(through, r)
        torch.addmm(rest, d_gates, weights[0][: 2 * hidden], out=d_h)

    def gradients(self, derived: Room, before: Tensor, spare: Room, begin: int) -> State:
        """The candidate's weights met r∘h, the gates' h."""
        d_gates, d_n = derived[1], derived[4]
        return (torch.cat([d_gates.t() @ before, d_n.t() @ spare[0]]),)


class GRUKernel(Kernel):
    """r, z = σ(p + W h + b); n = tanh(p_n + r∘(W_n h + b_n)); h' = n + z∘(h − n)."""

    blocks = 3
    spare = (3,)  # W h + b
    weights = 2

    def forward(self, weights: State, before: State, room: Room, fresh: bool) -> State:
        """See the class."""
        gate, r, z, n, h, product = room
        gates = 2 * h.shape[1]
        torch.addmm(weights[1], before[0], weights[0], out=product)
        gate[:, :gates].add_(product[:, :gates]).sigmoid_()
        n.addcmul_(r, product[:, gates:]).tanh_()
        return (torch.lerp(n, before[0], z, out=h),)

    def derive(self, gates: Tensor, after: State, before: State, spare: Room) -> Room:
        """Slopes, and room for the gradients of both products."""
        both, (r, z, n) = gates[:, : 2 * after[0].shape[1]], gates.chunk(3, dim=1)
        d_x, d_h, raw = (
            torch.empty_like(gates),
            torch.empty_like(gates),
            spare[0].chunk(3, dim=1)[2],
        )
        views = (d_x[:, : both.shape[1]], *d_x.chunk(3, dim=1), d_h.chunk(3, dim=1)[2])
        return d_x, d_h, *views, r, z, raw, both * (1 - both), 1 - n * n, before[0] - n

    def backward(self, weights: State, flow: State, room: Room, fresh: bool) -> None:
        """The chain rule through the mixture, the candidate, and the gates."""
        d_x, d_h, d_both, d_r, d_z, d_n, d_raw, r, z, raw, slope, slope_n, apart = room
        (g,) = flow
        keep = g * z
        torch.mul(g - keep, slope_n, out=d_n)
        torch.mul(g, apart, out=d_z)
        torch.mul(d_n, raw, out=d_r)
        d_both.mul_(slope)
        d_h.copy_(d_x)
        d_raw.mul_(r)
        torch.addmm(keep, d_h, weights[0], out=g)

    def gradients(self, derived: Room, before: Tensor, spare: Room, begin: int) -> State:
        """Of the weight and of the bias."""
        return derived[1].t() @ before, derived[1].sum(dim=0)


class LSTMKernel(Kernel):
    """i, f, o = σ(…), g = tanh(…); c' = f∘c + i∘g; h' = o∘tanh(c'). Blocks i, f, g, o.

    tanh(x) = 2σ(2x) − 1, so that one σ serves all four blocks, which is much faster; what goes
    into g is doubled beforehand.
    """

    blocks = 4
    spare = (1,)  # tanh(c')

    def scale(self, x: Tensor) -> Tensor:
        """What goes into g doubled."""
        double = x.new_ones(4, x.shape[-1] // 4)
        double[2] = 2.0
        return x * double.flatten()

    def prepare(self, weights: State) -> State:
        """With −1 beside them, for 2σ − 1 in one operation."""
        return self.scale(weights[0].t()), weights[0].new_full((), -1.0)

    def forward(self, weights: State, before: State, room: Room, fresh: bool) -> State:
        """See the class."""
        gate, i, f, g, o, h, c, tanh = room
        weight, minus_one = weights
        if not fresh:
            gate.addmm_(before[0], weight)
        gate.sigmoid_()
        torch.add(minus_one, g, alpha=2.0, out=g)
        torch.mul(f, before[1], out=c).addcmul_(i, g)
        torch.add(c, c, out=tanh).sigmoid_()
        torch.add(minus_one, tanh, alpha=2.0, out=tanh)
        return torch.mul(o, tanh, out=h), c

    def derive(self, gates: Tensor, after: State, before: State, spare: Room) -> Room:
        """Through c: i, f, g; through h: o."""
        i, f, g, o = gates.chunk(4, dim=1)
        local = torch.addcmul(gates, gates, gates, value=-1.0)  # σ' for i, f, o
        four = local.view(len(local), 4, -1)
        d_i, d_f, d_g, d_o = four.unbind(1)
        torch.addcmul(local.new_ones(()), g, g, value=-1.0, out=d_g)  # tanh' for g
        for slope, factor in ((d_i, g), (d_f, before[1]), (d_g, i), (d_o, spare[0])):
            slope.mul_(factor)
        through = torch.addcmul(o, after[0], spare[0], value=-1.0)  # d h' / d c'
        return local, four[:, :3], d_o, through, f

    def backward(self, weights: State, flow: State, room: Room, fresh: bool) -> None:
        """The gradient of c flows along f; that of h through the product."""
        local, d_ifg, d_o, through, keep = room
        d_h, d_c = flow
        d_c.addcmul_(d_h, through)
        d_ifg.mul_(d_c[:, None])
        d_o.mul_(d_h)
        d_c.mul_(keep)
        if not fresh:
            torch.mm(local, weights[0], out=d_h)

    def gradients(self, derived: Room, before: Tensor, spare: Room, begin: int) -> State:
        """Without what only met zeros."""
        return (derived[0][begin:].t() @ before[begin:],)
