"""What every instrument does: one source or many, a table, a figure, files, plain data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import brute
import numpy as np
import pytest
from changed import here
from shown import hold

import regard
from regard import RegardError
from regard.contracts import instrument as instrument_contract
from regard.contracts.contract import examine
from regard.display import Figure
from regard.instruments import INSTRUMENTS, Recordings, Result
from regard.instruments.registry import OLD_NAMES
from regard.instruments.words.links import LinkFiles
from regard.recordings import Recording
from regard.runs import Run

Use = Callable[[str, int], Result[Any]]
SMALL: dict[str, Any] = {"updates": 0, "held_out": 10}
# Rows of tables that are rounding and nothing else: another processor, another number.
ROUNDING = ("finite differences",)
ALSO = ("gates", "values", "lexical", "saliency")


def takes_recordings(name: str) -> bool:
    return isinstance(INSTRUMENTS[name].takes, Recordings)


def compares(name: str) -> bool:
    """Whether sources are held against the first one."""
    return getattr(INSTRUMENTS[name].takes, "compares", False)


ALL = list(INSTRUMENTS)
OF_RECORDINGS = [name for name in ALL if takes_recordings(name)]
ALONE = [name for name in OF_RECORDINGS if not compares(name)]


def train(model: str, count: int, out: Path, **more: Any) -> list[Run]:
    return [regard.train("one-to-one", model, k, out, **SMALL, **more) for k in range(count)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return train("aed", 3, tmp_path_factory.mktemp("runs"), hidden=8)


@pytest.fixture(scope="module")
def recordings(runs: list[Run]) -> list[Recording]:
    return [run.record(n=60, inputs="teacher", also=ALSO) for run in runs]


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    """A proxy is the score of a bag of words."""
    made = train("snell-proxy", 3, tmp_path_factory.mktemp("bags"), embedding=8)
    return [run.record(n=20, inputs="teacher", also=("proxy",)) for run in made]


@pytest.fixture
def use(runs: list[Run], recordings: list[Recording], bags: list[Recording], tmp_path: Path) -> Use:
    """An instrument on as many sources as said, of the kind that it takes; one is given bare."""
    links = [tmp_path / f"{number}.links" for number in range(3)]
    for number, path in enumerate(links):
        path.write_text(f"0-0 1-1\n0-{number} 1p1\n")
    training = {"updates": 1, "out": tmp_path, "train": here}
    needed = {
        "ablate": {"n": 20},
        "cooccurrence": {"n": 20},
        "ibm1": {"n": 20},
        "links": {"gold": links[0]},
        "prune": training,
        "strength": {"n": 20},
        "swap": {"component": "encoder", **training},
    }

    def put(name: str, count: int) -> Result[Any]:
        takes, settings = INSTRUMENTS[name].takes, needed.get(name, {})
        sources: list[Any] = runs
        if isinstance(takes, Recordings):
            sources = bags if "proxy" in takes.describe({}) else recordings
        if isinstance(takes, LinkFiles):
            sources = links
        chosen = sources[:count]
        if "donors" in INSTRUMENTS[name].parameters:
            settings = {**settings, "donors": chosen[::-1]}
        if compares(name):
            return INSTRUMENTS[name]([sources[0], *chosen], **settings)
        return INSTRUMENTS[name](chosen[0] if count == 1 else chosen, **settings)

    return put


@pytest.fixture
def contract(
    use: Use, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], instrument_contract.Use]:
    """An instrument on the sources above, as its contract takes it."""
    return lambda name: instrument_contract.Use(
        INSTRUMENTS[name], lambda count: use(name, count), lambda model: train(model, 1, tmp_path)
    )


@pytest.mark.parametrize("name", ALL)
def test_contract(name: str, contract: Callable[[str], instrument_contract.Use]) -> None:
    faults = [o for o in examine(instrument_contract.CONTRACT[:-1], contract(name)) if o.fault]
    assert not faults


@pytest.mark.parametrize("name", ALL)
def test_tables_and_figures_show_what_they_did(name: str, use: Use) -> None:
    result = use(name, 1 if compares(name) else 2)
    path, table = Path(__file__).with_name("shown.json"), result.table()
    rows = tuple(row[:1] if row[0] in ROUNDING else row for row in table.rows)
    hold(path, name, {"table": replace(table, rows=rows), "figure": result.figure()})


@pytest.mark.parametrize("name", ALL)
def test_shown_in_a_notebook(name: str, use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Figure, "svg", lambda _: "<svg/>")  # drawing takes a second
    page = use(name, 1)._repr_html_()
    assert "<table" in page and "<svg" in page
    if name != "agreement":  # at the top that is what two scores have in common
        assert getattr(regard, name) is INSTRUMENTS[name]


@pytest.mark.parametrize("old", OLD_NAMES)
def test_old_names_work_and_are_not_listed(old: str) -> None:
    assert INSTRUMENTS[old] is INSTRUMENTS[OLD_NAMES[old]] and old not in ALL
    if old != "decompose":  # at the top that is what gives a decomposition
        assert getattr(regard, old) is INSTRUMENTS[old]


def scored(seed: int, **more: Any) -> dict[str, brute.Array]:
    """Arrays of somebody's own model, with all that an instrument may read."""
    made = brute.scored(brute.arrays(seed, **more), seed)
    made["readout"] = np.concatenate([made["readout"]] * 2, axis=1)
    return made


def recorded(made: dict[str, brute.Array]) -> Recording:
    return brute.recording(made, readout={"state": (0, 4), "context": (4, 8)})


@pytest.mark.parametrize("name", ALONE)
def test_seeds_need_not_have_the_same_phrases(name: str) -> None:
    """Other lengths, other words seen, a word that only one seed has."""
    one, two = scored(1, samples=60, source=6, target=5), scored(2, samples=60, source=8, target=7)
    one["encoder.words"][one["encoder.words"] == 3] = 2
    result = INSTRUMENTS[name]([recorded(one), recorded(two)])
    assert all(value.n == 2 for value in result.estimates().values())
    assert result.table().rows and result.figure().interactive()["data"]
    assert json.loads(
        json.dumps(result.to_json()), parse_constant=instrument_contract.refuse_constant
    )
    once = INSTRUMENTS[name](regard.decompose(recorded(one), rows=7))
    assert once.n == 1, "a decomposition is a source, too"
    means = {key: float(values) for key, values in result.first.values().items()}
    assert once.first.values() == pytest.approx(means, abs=1e-5), "pieces change nothing"


@pytest.mark.parametrize("name", ALONE)
def test_too_little_is_measured_or_refused(name: str) -> None:
    """One short phrase: a number where there is one, else a sentence that says what to do."""
    made = recorded(scored(0, samples=1, source=2, target=2))
    if name in ("dictionary", "variance", "clusters", "simplex", "probe", "groups"):
        with pytest.raises(RegardError, match="more"):
            INSTRUMENTS[name](made)
        return
    result = INSTRUMENTS[name](made)
    assert all(np.isfinite(value.mean) for value in result.estimates().values())
    assert result.figure().panels


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A model without attention."""
    (run,) = train("ved", 1, tmp_path_factory.mktemp("blind"), hidden=8)
    return run


@pytest.mark.parametrize("name", OF_RECORDINGS)
def test_without_attention(name: str, blind: Run) -> None:
    """States can be looked at without any attention; scores cannot."""
    found, reason = {}, ""
    try:
        found = INSTRUMENTS[name]([blind, blind] if compares(name) else blind, n=40).estimates()
    except RegardError as error:
        reason = str(error)
    assert all(np.isfinite(value.mean) for value in found.values())
    assert found or re.search(r"no attention|no lexical probe|no bag of words", reason)


def test_a_decomposition_shows_itself(recordings: list[Recording], tmp_path: Path) -> None:
    found = regard.decompose(recordings[0])
    assert found.table() and found.figure()
    found.save(str(tmp_path))
    assert (tmp_path / "sizes.svg").is_file()
