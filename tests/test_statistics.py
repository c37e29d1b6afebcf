from __future__ import annotations

import pytest
from scipy import stats

from regard.statistics import Estimate


def test_interval_is_students() -> None:
    values = [0.1, 0.4, 0.35, 0.8]
    low, high = stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=stats.sem(values))
    assert Estimate.of(values).interval == pytest.approx((low, high))


def test_one_seed_has_no_interval() -> None:
    one = Estimate.of([0.5])
    assert one.interval is None
    assert (one.low, one.high, one.n) == (0.5, 0.5, 1)
    assert one.to_json()["interval"] is None


def test_a_share_stays_a_share() -> None:
    share = Estimate.share([0.9, 1.0])
    assert share.interval is not None
    assert share.interval[1] == 1.0
    assert share.interval[0] < 0.9
    assert Estimate.from_json(share.to_json()) == share
