"""Adam is torch's, but for the compiler that torch would import with it."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import torch

from regard.training.adam import Adam

ALONE = """
import sys, tempfile, regard
regard.train("reversal", out=tempfile.mkdtemp(), updates=2, hidden=8, held_out=4, batch=2)
assert "torch._dynamo" not in sys.modules, "the compiler was imported"
"""


def test_updates_are_those_of_torch() -> None:
    torch.manual_seed(0)
    ours = torch.nn.Linear(7, 5)
    theirs = copy.deepcopy(ours)
    settings: dict[str, Any] = {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-7, "fused": True}
    both = Adam(ours.parameters(), **settings), torch.optim.Adam(theirs.parameters(), **settings)
    for update in range(6):
        rows = torch.randn(3, 7)
        for model, optimizer in zip((ours, theirs), both, strict=True):
            optimizer.zero_grad()
            model(rows).square().sum().backward()
            optimizer.step()
        if update == 2:  # as when a run was cut and goes on
            both[0].load_state_dict(copy.deepcopy(both[1].state_dict()))
        assert all(map(torch.equal, ours.parameters(), theirs.parameters()))
    assert all(parameter.grad is not None for parameter in ours.parameters())
    both[0].zero_grad()
    assert all(parameter.grad is None for parameter in ours.parameters())


def test_training_does_not_import_the_compiler() -> None:
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=300)
