"""What we measure: a room for each kind of source, in each room one file per instrument.

`inspect` is the door to all of them. Instruments are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

if TYPE_CHECKING:
    from regard.instruments.registry import INSTRUMENTS as INSTRUMENTS
    from regard.instruments.registry import Instrument as Instrument
    from regard.instruments.registry import inspect as inspect
    from regard.instruments.registry import instrument as instrument
    from regard.instruments.result import Measured as Measured
    from regard.instruments.result import Result as Result
    from regard.instruments.sources import Recordings as Recordings
    from regard.instruments.sources import Runs as Runs
    from regard.instruments.sources import Takes as Takes
else:
    __getattr__, __dir__, __all__ = attach(__name__)
