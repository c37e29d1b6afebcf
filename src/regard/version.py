"""The version that is installed; looking it up takes a while, so nobody does before it is asked."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("regard")
