"""torch's Adam, without its compiler: the same numbers, seconds and megabytes sooner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method as it is without what torch has wrapped around it for `torch.compile`.

    The wrapper imports the compiler when it is first called: three seconds and 80 MB, for which
    nobody here has a use.
    """
    found: Callable[..., Any] = getattr(method, "__wrapped__", method)
    return found


class Adam(torch.optim.Adam):
    """Adam (Kingma and Ba 2015), as torch computes it."""

    add_param_group = _plain(torch.optim.Adam.add_param_group)
    load_state_dict = _plain(torch.optim.Adam.load_state_dict)
    state_dict = _plain(torch.optim.Adam.state_dict)
    zero_grad = _plain(torch.optim.Adam.zero_grad)
    _step = _plain(torch.optim.Adam.step)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update by the gradients that are there."""
        self._step()
