"""What a run takes in memory at the least, reckoned from its settings alone."""

from __future__ import annotations

from typing import Any

from regard.config import Config
from regard.memory import require_memory

NUMBER = 4  # bytes
COPIES = 4  # of a weight: itself, its gradient, and Adam's two moments
WORD = 60  # bytes of a word in a vocabulary
MEND = "Lower the settings that are so large."


def refuse_absurd(task: Config, model: Config, batch: int) -> None:
    """Refuse settings whose run could not fit into this machine's memory."""
    require_memory(reckon(task, model, batch), "A run with these settings", MEND)


def reckon(task: Config, model: Config, batch: int) -> int:
    """Bytes: weights with their moments, words, held-out rows, and one layer over a batch."""
    settings, sizes = vars(task), vars(model)
    hidden, layers = _largest(sizes, "hidden"), _largest(sizes, "layers")
    inner = ("embedding", "decoder_embedding", "one_hot_size", "attention_size", "feedforward")
    widths = hidden + sum(_largest(sizes, name, 0) for name in inner) + _largest(sizes, "heads")
    vocabulary = 0 if settings.get("source") else _largest(settings, "vocabulary", 0)
    length = 1 if settings.get("source") or settings.get("data") else _longest(settings)
    tables = _largest(settings, "tables") << _largest(settings, "bits", 0)
    weights = NUMBER * COPIES * hidden * (widths * layers + _largest(sizes, "embedding"))
    rows = 8 * length * max(batch, _largest(settings, "held_out"))
    return weights + WORD * (vocabulary + tables) + rows + NUMBER * batch * length * hidden


def _longest(settings: dict[str, Any]) -> int:
    return max(_largest(settings, name) for name in ("longest", "length", "shortest"))


def _largest(settings: dict[str, Any], name: str, default: int = 1) -> int:
    value = settings.get(name)
    return value if isinstance(value, int) and value > default else default
