"""`regard bench snell`: copying, the lexical probe, IBM Model 1, and translation.

Times are processor seconds of one thread, which rise little when others use the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from regard.bench.benchmark import Benchmark, benchmarks, in_turns
from regard.bench.ibm import ibm_ratio
from regard.bench.plain_copying import Copying
from regard.bench.probing import probe_ratio
from regard.bench.translating import peak_share
from regard.errors import RegardError
from regard.training import one_thread

CLOSE = 1e-5  # how far the first losses may lie apart

Measure = Callable[[], dict[str, Any]]


def copying_ratio(rounds: int = 6, calls: int = 6, **settings: Any) -> dict[str, Any]:
    """Processor seconds of an update of the plain loop over ours, in turns."""
    both = Copying(**settings)
    agree(both.ours.step(), both.plain_step())
    turns = partial(in_turns, rounds=rounds, calls=calls, cold=1, clock=time.process_time)
    ours, plain = turns(both.ours.step, both.plain_step)
    return {"ratio": plain / ours, "seconds": ours, "plain_seconds": plain}


def agree(ours: float, plain: float) -> None:
    """Two programs that compute different things are not compared."""
    apart = abs(ours - plain)
    if not apart <= CLOSE:
        raise RegardError(
            f"The first losses of snell-copying and of the plain loop lie {apart:g} apart, so there"
            " is nothing to compare. One of the two is wrong: see bench/plain_copying.py."
        )


@benchmarks.register("snell")
def snell(
    copying: Measure = copying_ratio,
    probe: Measure = probe_ratio,
    ibm: Measure = ibm_ratio,
    translation: Measure = peak_share,
) -> Benchmark:
    """All four ratios, each as its measure says."""
    with one_thread():
        copied, probed, counted, translated = copying(), probe(), ibm(), translation()
    ratios = {
        "copying_update": (
            copied["ratio"],
            1.5,
            "seconds of an update of snell-copying, 40 of 40 words, batch 128, of a plain loop over"
            " steps, over ours",
        ),
        "lexical_probe": (
            probed["ratio"],
            3.0,
            "seconds to find β for captions and 8,000 words with one pass of the output network"
            " per source position, over ours",
        ),
        "ibm1": (
            counted["ratio"],
            20.0,
            "seconds of IBM Model 1 in dictionaries of dictionaries, over ours",
        ),
        "peak_share": (
            translated["share"],
            0.40,
            "share of matrix-multiply peak of an update of snell-translation, batch 16",
        ),
    }
    raw = {"copying": copied, "probe": probed, "ibm1": counted, "translation": translated}
    return Benchmark("snell", ratios, raw)
