"""The states of every layer: what each layer of a model puts out in a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from regard.models.parts import Layer
from regard.models.seq2seq import Seq2Seq
from regard.tasks.batch import Batch

NO_LAYERS = (
    "This model has no layers whose states can be told apart: it is no Transformer, or does not"
    " say what its layers are. Leave `states` out of also; the last layer's are always recorded."
)


@contextmanager
def hear_layers(model: Seq2Seq, wanted: bool) -> Iterator[dict[str, Tensor]]:
    """While it lasts, each layer's last output is kept by name, `encoder.layers.0`."""
    heard: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for name, layer in model.layers().items() if wanted else ():
            side, _, number = name.partition(".")
            hook = layer.module.register_forward_hook(
                _keep(heard, f"{side}.layers.{number}", layer)
            )
            stack.callback(hook.remove)
        yield heard


def _keep(heard: dict[str, Tensor], name: str, layer: Layer) -> Callable[..., None]:
    def hook(_module: nn.Module, _args: Any, out: Any) -> None:
        states = out[0] if isinstance(out, (tuple, list)) else out
        heard[name] = states.transpose(0, 1) if layer.time_first else states

    return hook


def fit_layers(heard: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
    """The states at the positions of the batch. (batch, time, hidden), zero where no word is

    Some models fill a source up (LED), or have several streams of a target, of which the second
    says the next word (ProphetNet).
    """
    masks = {"encoder": batch.source_mask, "decoder": batch.target_mask}
    found = {}
    for name, states in heard.items():
        words = masks[name.partition(".")[0]]
        width = words.shape[1]
        several = name.startswith("decoder") and states.shape[1] > width
        start = width if several and states.shape[1] % width == 0 else 0
        found[name] = states[:, start : start + width] * words[:, :, None]
    return found
