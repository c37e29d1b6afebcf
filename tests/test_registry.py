"""Registries know their members without importing them, and whose they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.registry import Registry

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules of a package `house` whose `base` has a registry; forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(path: str, text: str = "") -> None:
        file = tmp_path / "house" / path
        for folder in (file.parent, tmp_path / "house"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
        file.write_text(text)

    yield add
    for name in [name for name in sys.modules if name.split(".")[0] == "house"]:
        del sys.modules[name]


def member(*names: str, aliases: tuple[str, ...] = ()) -> str:
    """The text of a module that registers members by these names."""
    lines = [f"THINGS.register({name!r}, {aliases!r})({name!r} + '!')\n" for name in names]
    return "from house.base import THINGS\n" + "".join(lines)


def base(settings: str) -> str:
    return f"from regard.registry import Registry\nTHINGS = Registry('thing', {settings})\n"


def things() -> Registry[str]:
    from house.base import THINGS  # type: ignore[import-not-found]

    return THINGS  # type: ignore[no-any-return]


def imported() -> set[str]:
    return {name.removeprefix("house.") for name in sys.modules if name.startswith("house.")}


def test_members_by_file(write: Write) -> None:
    write("base.py", base("rooms=('house.red', 'house.blue'), dashes=True, aliases={'old': 'sea'}"))
    write("red/fire_engine.py", member("fire-engine"))
    write("blue/sea.py", member("sea"))
    write("blue/_helper.py", "raise ImportError('nobody asked')")
    known = things()
    assert list(known) == ["fire-engine", "sea"] and len(known) == 2
    assert "sea" in known and "old" in known and 3 not in known
    assert imported() == {"base"}, "a list of names imports no member"
    assert known["old"] == known["sea"] == "sea!"
    assert imported() == {"base", "blue", "blue.sea"}
    with pytest.raises(RegardError, match=r"no thing 'see'. Did you mean 'sea'\? Known: fire-eng"):
        known["see"]


def test_a_file_may_register_more_than_its_name(write: Write) -> None:
    write("base.py", base("rooms=('house.red',)"))
    write("red/apple.py", member("apple"))
    write("red/rose.py", member("rose") + member("tulip", aliases=("flower",)))
    assert things()["flower"] == things()["tulip"] == "tulip!"
    assert list(things()) == ["apple", "rose", "tulip"]


def test_members_by_module(write: Write) -> None:
    write("base.py", base("modules=('house.one', 'house.two')"))
    write("one.py", member("one/a", "one/b"))
    write("two.py", member("two/c"))
    known = things()
    assert imported() == {"base"}
    assert known.group("two") == ["two/c"] and known["two/c"] == "two/c!"
    assert imported() == {"base", "two"}, "a group needs its own module only"
    assert list(known) == ["one/a", "one/b", "two/c"], "whichever was imported first"
    assert known.group("three") == []


def test_a_name_has_one_owner() -> None:
    things: Registry[type] = Registry("thing")

    @things.register("a", aliases=("b",))
    class First: ...

    @things.register("a")
    class First: ...  # type: ignore[no-redef]  # noqa: F811

    assert things["a"] is things["b"] is First, "the same place may register again"
    with pytest.raises(RegardError) as caught:

        @things.register("a")
        class Second: ...

    (fault,) = caught.value.faults
    for place in ("test_a_name_has_one_owner.<locals>.First", "<locals>.Second"):
        assert place in fault


def test_who_registers_for_another_does_not_own_the_name(write: Write) -> None:
    write(
        "base.py", base("rooms=('house.red',)") + "def add(f):\n    THINGS.register('apple')(f)\n"
    )
    write("red/apple.py", "from house.base import add\n@add\ndef grow(): ...\n")
    assert things()["apple"].__name__ == "grow"


def test_a_file_owns_its_name_before_it_is_imported(write: Write) -> None:
    write("base.py", base("rooms=('house.red',)"))
    write("red/apple.py", member("apple"))
    with pytest.raises(RegardError, match=r"in house\.red\.apple and in test_registry\.apple"):
        things().register("apple")("mine")
    things().register("pear")("mine")
    assert list(things()) == ["apple", "pear"]


def test_a_short_name_gives_way_to_a_plugins_member() -> None:
    things = Registry[object]("thing", short={"old": "new"})
    here = {"__name__": "regard.somewhere", "things": things}
    exec("class New: ...\nthings.register('new')(New)", here)
    assert things["old"] is here["New"]
    mine = {"__name__": "mine", "things": things}
    exec("class Old: ...\nthings.register('old')(Old)", mine)
    assert things["old"] is mine["Old"] and things["new"] is here["New"]
    assert things.origin("old") == "mine"
