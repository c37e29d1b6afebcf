"""What an additive score function does to the sum of a query and a key.

scores = vector · activation(query + key). The same names for arrays and for tensors, because
models score with torch and recordings with numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor


def tanh(x: Any) -> Any:
    """tanh(x), of an array or a tensor."""
    return torch.tanh(x) if isinstance(x, Tensor) else np.tanh(x)


def relu(x: Any) -> Any:
    """max(0, x), of an array or a tensor."""
    return torch.relu(x) if isinstance(x, Tensor) else np.maximum(x, 0)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"additive": tanh, "additive-relu": relu}
