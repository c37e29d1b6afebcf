"""Checkpoints written by torch, of which only tensors and plain values are read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from torch import serialization

from regard.errors import RegardError


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What a checkpoint holds: tensors, numbers, texts, lists. Anything else is refused.

    Such files may hold code, which torch's own restricted reader never runs. Beside tensors and
    plain values it is told of one class, `argparse.Namespace`, in which OpenNMT-py and fairseq keep
    settings: making one sets attributes of a new object to plain values and calls nothing.
    """
    allowed: list[Any] = [argparse.Namespace]
    try:
        with serialization.safe_globals(allowed):
            found = serialization.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a file from anywhere fails in any way
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else "no reason"
        raise RegardError(
            f"{path} cannot be read safely ({type(error).__name__}: {reason}). It holds more than"
            " tensors and plain values, or is damaged. Save the weights alone where it was made."
        ) from None
    if not isinstance(found, dict):
        raise RegardError(f"{path} holds a {type(found).__name__}, not named tensors.")
    return found
