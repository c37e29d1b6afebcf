"""What every instrument does: one source or many, a table, a figure, files, plain data."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import brute
import numpy as np
import pytest

import regard
from regard import RegardError, instruments
from regard.display import Figure, Heat
from regard.instruments import Result
from regard.recordings import Recording
from regard.runs import Run

Runs = list[Run]
BAGS = ("proxy_probe",)  # they want a bag of words
PAIRED = ("agreements",)  # they compare recordings with a first one, of the same phrases
TAUGHT = ("aer",)  # they want to be told what is right, by the recording if nobody else does
SMALL = {"hidden": 8, "updates": 0, "held_out": 10}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    out = tmp_path_factory.mktemp("runs")
    return [regard.train("one-to-one", "aed", seed, out, **SMALL) for seed in range(3)]


@pytest.fixture(scope="module")
def recordings(runs: Runs) -> list[Recording]:
    return [regard.record(run, n=60, inputs="teacher", gates=True) for run in runs]


def of_runs(name: str) -> bool:
    return next(iter(settings(name))) == "runs"


def settings(name: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(instruments[name]).parameters


def used(name: str, runs: Runs, recordings: list[Recording], count: int) -> Result[Any]:
    """An instrument on one source, given as it is, or on several."""
    more = {"n": 20} if "n" in settings(name) else {}
    if name in PAIRED:
        return instruments[name]([recordings[0], *recordings[:count]])
    if name in BAGS:
        root = runs[0].folder.parent
        small = {"embedding": 8, "updates": 0, "held_out": 10}
        bags = [regard.train("one-to-one", "snell-proxy", k, root, **small) for k in range(count)]
        return instruments[name](bags, **more)
    sources: Any = runs[:count] if of_runs(name) else recordings[:count]
    return instruments[name](sources[0] if count == 1 else sources, **more)


def strict(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


@pytest.mark.parametrize("name", instruments)
@pytest.mark.parametrize("count", [1, 3])
def test_contract(
    name: str,
    count: int,
    runs: Runs,
    recordings: list[Recording],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = used(name, runs, recordings, count)
    assert result.name == name and result.n == count == len(result.seeds)
    estimates = result.estimates()
    assert estimates
    for value in estimates.values():
        assert value.n == count and np.isfinite(value.mean)
        assert (value.interval is not None) == (count > 1)
    table = result.table()
    assert table.rows and all(len(row) == len(table.columns) for row in table.rows)
    assert table.rich()
    plain = json.loads(json.dumps(result.to_json()), parse_constant=strict)
    assert (plain["instrument"], plain["seeds"]) == (name, count)
    assert plain["values"].keys() == estimates.keys()
    figure = result.figure()
    assert figure.caption.endswith(".") and figure.panels
    assert all(panel.x and panel.y and panel.title for panel in figure.panels)
    assert all(m.label for p in figure.panels for m in p.marks if isinstance(m, Heat))
    if count > 1:
        return  # drawing takes a second, and one seed shows all there is to draw
    assert figure.interactive()["data"]
    files = result.save(tmp_path / "new" / "folder")
    drawn = files[2].read_text()
    monkeypatch.setattr(Figure, "svg", lambda _: drawn)  # once is enough, and takes a second
    page = result._repr_html_()
    assert "<table>" in page and "<svg" in page
    assert [file.name for file in files] == [
        f"{name}.{end}" for end in ("json", "csv", "svg", "html")
    ]
    assert json.loads(files[0].read_text(), parse_constant=strict) == plain
    assert len(files[1].read_text().splitlines()) == 1 + len(table.rows)
    assert files[2].read_text().startswith("<?xml")
    assert "plotly" in files[3].read_text().lower()


@pytest.mark.parametrize("name", instruments)
def test_docstrings(name: str) -> None:
    function = instruments[name]
    assert function.__doc__ and function.__doc__.splitlines()[0].endswith(".")
    public = getattr(regard, name)
    assert public is function or name == "decompose"


def measuring_alone() -> list[str]:
    return [name for name in instruments if not of_runs(name) and name not in PAIRED + TAUGHT]


@pytest.mark.parametrize("name", measuring_alone())
def test_seeds_need_not_have_the_same_phrases(name: str) -> None:
    """Other lengths, other words seen, a word that only one seed has."""
    one = brute.gated(brute.arrays(1, samples=60, source=6, target=5))
    two = brute.gated(brute.arrays(2, samples=60, source=8, target=7))
    one["encoder.words"][one["encoder.words"] == 3] = 2
    result = instruments[name]([brute.recording(one), brute.recording(two)])
    assert all(value.n == 2 for value in result.estimates().values())
    assert result.table().rows and result.figure().interactive()["data"]
    assert json.loads(json.dumps(result.to_json()), parse_constant=strict)
    once = instruments[name](regard.decompose(brute.recording(one), rows=7))
    assert once.n == 1, "a decomposition is a source, too"


@pytest.mark.parametrize("name", measuring_alone())
def test_too_little_is_measured_or_refused(name: str) -> None:
    """One short phrase: a number where there is one, else a sentence that says what to do."""
    made = brute.gated(brute.arrays(0, samples=1, source=2, target=2))
    if name in ("readouts", "variance", "clusters", "simplex", "probe", "groups"):
        with pytest.raises(RegardError, match="more"):
            instruments[name](brute.recording(made))
        return
    result = instruments[name](brute.recording(made))
    assert all(np.isfinite(value.mean) for value in result.estimates().values())
    assert result.figure().panels


@pytest.mark.parametrize("name", [name for name in instruments if not of_runs(name)])
def test_without_attention(name: str, tmp_path: Path) -> None:
    """States can be looked at without any attention; scores cannot."""
    run = regard.train("one-to-one", "ved", 0, tmp_path, **SMALL)
    kept = regard.record(run, n=40, gates=True)
    if name in ("breakdown", "offset", "lean", *PAIRED, *TAUGHT):
        with pytest.raises(RegardError, match="no attention site"):
            instruments[name]([kept, kept] if name in PAIRED else kept)
    else:
        assert instruments[name](kept).estimates()


def test_a_decomposition_shows_itself(recordings: list[Recording], tmp_path: Path) -> None:
    found = regard.decompose(recordings[0])
    assert found.table() and found.figure()
    found.save(str(tmp_path))
    assert (tmp_path / "decompose.svg").is_file()
