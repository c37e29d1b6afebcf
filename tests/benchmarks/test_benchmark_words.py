from __future__ import annotations

import pytest

from benchmarks import growth, words, words_process


def test_words_are_counted_and_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_process, "BLOCK", 30)
    made = words_process.Made(70)
    assert len(list(made)) == 70 and made.seconds > 0
    counted = words_process.measure("cooccurrence", 70, 1)
    learned = words_process.measure("ibm1", 70, 1)
    assert counted["cells"] == learned["cells"] > 70
    assert learned["iterations"] == 1 and learned["megabytes"] >= learned["megabytes_before"] > 50


def test_the_ratios_of_words_are_of_what_was_measured() -> None:
    part = {"pairs": 10, "processor_seconds": 2.0, "megabytes": 500.0}
    whole = {"pairs": 100, "processor_seconds": 40.0, "megabytes": 1024.0}
    found = words.judge({"ibm1": [part, whole]})
    assert {name: row[0] for name, row in found.ratios.items()} == {
        "ibm1_memory": 2.0, "ibm1_linear": 0.5,
    }  # fmt: skip


def test_growth_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    times = growth.measure_updates("chapter36", (3, 4), rounds=1)
    assert [*times] == [3, 4] and min(times.values()) > 0
    assert growth.measure_breakdown(20, 5) > 0
    found = growth.judge(
        {"aed": {10: 1.0, 20: 2.0, 40: 3.0, 80: 16.0}}, {10: 1.0, 40: 2.0}, {10: 1.0}
    )
    assert found.ratios["aed_update"][0] == 0.5 and found.ratios["breakdown_samples"][0] == 2.0
