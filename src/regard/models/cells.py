"""The earlier place of `regard.models.layers.cells`: the same module."""

import sys

from regard.models.layers import cells

sys.modules[__name__] = cells
