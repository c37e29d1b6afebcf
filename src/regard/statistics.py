"""Numbers over seeds: a mean, an interval, and how many there were.

Every table imports this, `regard ls` too, so numpy and scipy wait until there is a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Estimate:
    """A quantity measured once per seed.

    The interval is Student's 95 % confidence interval of the mean; with one seed there is none.
    Where the quantity cannot leave a range, such as a share 0..1, neither does the interval.
    """

    values: tuple[float, ...]
    within: tuple[float, float] | None = None

    @classmethod
    def of(cls, values: Iterable[float], within: tuple[float, float] | None = None) -> Estimate:
        """From one number per seed."""
        return cls(tuple(float(value) for value in values), within)

    @classmethod
    def share(cls, values: Iterable[float]) -> Estimate:
        """From one share per seed, each in 0..1."""
        return cls.of(values, (0.0, 1.0))

    @property
    def n(self) -> int:
        """How many seeds."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        import numpy as np

        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def interval(self) -> tuple[float, float] | None:
        """Low and high end of the 95 % interval, or None with fewer than two seeds."""
        if self.n < 2:
            return None
        import numpy as np
        from scipy.special import stdtrit  # Student's quantile

        error = float(np.std(self.values, ddof=1)) / math.sqrt(self.n)
        reach = float(stdtrit(self.n - 1, 0.975)) * error
        bottom, top = self.within or (-math.inf, math.inf)
        return max(bottom, self.mean - reach), min(top, self.mean + reach)

    @property
    def low(self) -> float:
        """The low end of the interval, or the mean where there is none."""
        return self.interval[0] if self.interval else self.mean

    @property
    def high(self) -> float:
        """The high end of the interval, or the mean where there is none."""
        return self.interval[1] if self.interval else self.mean

    def to_json(self) -> dict[str, Any]:
        """Mean, interval, number of seeds, and the values themselves."""
        return {
            "mean": self.mean,
            "interval": None if self.interval is None else list(self.interval),
            "seeds": self.n,
            "values": list(self.values),
            "within": None if self.within is None else list(self.within),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Estimate:
        """The inverse of `to_json`."""
        return cls.of(data["values"], tuple(data["within"]) if data["within"] else None)

    def __repr__(self) -> str:
        return f"<Estimate {self}>"

    def _repr_html_(self) -> str:
        return f"<code>{self}</code>"

    def __str__(self) -> str:
        text = significant(self.mean)
        if self.interval:
            text += f" [{significant(self.low)}, {significant(self.high)}]"
        return f"{text} (n = {self.n})"


def estimate_arrays(values: Any, within: tuple[float, float] | None = None) -> tuple[Any, Any, Any]:
    """`Estimate`'s mean, low and high of every cell at once. (seed, …) -> (…) each"""
    import numpy as np
    from scipy.special import stdtrit

    mean, n = np.mean(values, axis=0), len(values)
    if n < 2:
        return mean, mean, mean
    reach = stdtrit(n - 1, 0.975) * np.std(values, axis=0, ddof=1) / math.sqrt(n)
    bottom, top = within or (-math.inf, math.inf)
    return mean, np.maximum(bottom, mean - reach), np.minimum(top, mean + reach)


def significant(value: float) -> str:
    """A number as one would write it: three digits that matter."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
