"""`python -m benchmarks snell`: copying, the lexical probe, IBM Model 1, and translation.

Times are processor seconds of one thread, which rise little when others use the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.benchmark import BENCHMARKS, Benchmark, Measured, agree, medians_in_turns
from benchmarks.ibm import ibm_ratio
from benchmarks.plain_copying import copying
from benchmarks.probing import probe_ratio
from benchmarks.translating import peak_share
from regard.training import one_thread

CLOSE = 1e-5  # how far the first losses may lie apart

Measure = Callable[[], Measured]


def copying_ratio(rounds: int = 6, calls: int = 6, **settings: Any) -> Measured:
    """Processor seconds of an update of the plain loop over ours, in turns."""
    ours, loop = copying(**settings)
    agree("The first loss of snell-copying", ours.step(), loop.step(), CLOSE)
    taken, plain = medians_in_turns(
        ours.step, loop.step, rounds=rounds, calls=calls, cold=1, clock=time.process_time
    )
    return {"ratio": plain / taken, "seconds": taken, "plain_seconds": plain}


@BENCHMARKS.register("snell")
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
