"""The plan of the house: a room's public files are instruments, and each has its page."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import regard
from regard.instruments import INSTRUMENTS, Instrument
from regard.instruments.registry import OLD_NAMES, ROOMS

FOLDER = Path(regard.__file__).parent / "instruments"
PAGES = Path(__file__).parents[2] / "docs" / "instruments"
FILES = [
    (room, path.stem)
    for room in ROOMS
    for path in sorted((FOLDER / room).glob("*.py"))
    if not path.stem.startswith("_")
]


def exported(room: str) -> dict[str, object]:
    module = import_module(f"regard.instruments.{room}")
    return {name: thing for name, thing in vars(module).items() if not name.startswith("_")}


def test_every_folder_is_a_room() -> None:
    found = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert found == set(ROOMS)
    assert all(import_module(f"regard.instruments.{room}").__doc__ for room in ROOMS)


@pytest.mark.parametrize(("room", "name"), FILES)
def test_a_public_file_is_one_instrument_of_its_name(room: str, name: str) -> None:
    module = import_module(f"regard.instruments.{room}.{name}")
    own = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, Instrument) and thing.__module__ == module.__name__
    ]
    assert own == [INSTRUMENTS[name]] and own[0].result.name == name
    assert module.__doc__ and module.__doc__.startswith(f"`{name}`: ")
    assert own[0] in exported(room).values(), "a room exports its instruments"


def test_the_registry_has_what_the_folders_have() -> None:
    assert list(INSTRUMENTS) == [name for _, name in FILES]
    assert len({name for _, name in FILES}) == len(FILES), "no name is in two rooms"
    assert set(OLD_NAMES.values()) <= set(INSTRUMENTS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_exports_no_more_than_it_has(room: str) -> None:
    own = {INSTRUMENTS[name] for place, name in FILES if place == room}
    assert {thing for thing in exported(room).values() if isinstance(thing, Instrument)} == own


@pytest.mark.parametrize(("room", "name"), FILES)
def test_every_instrument_has_a_page_in_its_room(room: str, name: str) -> None:
    assert name in (PAGES / room / f"{name}.md").read_text()


def test_every_page_is_of_an_instrument() -> None:
    pages = {(path.parent.name, path.stem) for path in PAGES.glob("*/*.md")}
    assert pages - {(room, "index") for room in ROOMS} == set(FILES)


def test_the_package_is_the_package() -> None:
    """What error messages and pages advise: `import regard` alone, then by full names."""
    code = """
import regard
made = regard.instruments.words.Alignment.of({(0, 0), (1, 2)})
assert made.sure == {(0, 0), (1, 2)}
assert regard.instruments.__name__ == "regard.instruments"
assert regard.instruments.INSTRUMENTS["paths"] is regard.paths is regard.trajectories
assert regard.instruments.components.breakdown is regard.breakdown
assert regard.instruments.scores.Scores is regard.Scores
assert regard.instruments.inspect is regard.inspect
"""
    subprocess.run([sys.executable, "-c", code], check=True)
