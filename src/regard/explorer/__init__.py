"""The explorer: a live page over runs and recordings, served on this machine alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

LOCAL = ("localhost", "127.0.0.1", "::1")  # what this machine calls itself

if TYPE_CHECKING:
    from regard.explorer.server import make_app as make_app
    from regard.explorer.things import Things as Things
else:
    __getattr__, __dir__, __all__ = attach(__name__)
