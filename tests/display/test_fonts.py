"""Labels in any script: fonts that the machine has, or one clear word."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

from regard.display import Figure, Heat, Panel, Table, fonts

WORDS = ("สวัสดี", "مرحبا", "你好", "नमस्ते")


def make(*words: str) -> Figure:
    heat = Heat(words, words, tuple((0.5,) * len(words) for _ in words), "share", numbers=False)
    return Figure("labels", "", (Panel("Words", "source", "target", (heat,)),))


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_missed", set())


def pretend(monkeypatch: pytest.MonkeyPatch, letters: dict[str, str]) -> None:
    """Families with these letters, whatever the machine has."""
    monkeypatch.setattr(fonts, "find_family", lambda letter: next(
        (family for family, own in letters.items() if letter in own), None))  # fmt: skip
    own = fonts.read_letters
    monkeypatch.setattr(fonts, "read_letters", lambda family: (
        frozenset(map(ord, letters[family])) if family in letters else own(family)))  # fmt: skip


def test_fonts_follow_from_the_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"Thai": WORDS[0], "Han": WORDS[2], "Deva": WORDS[3]})
    assert fonts.choose_fonts(make("plain", "äöü", "привет", "▁word")) == [fonts.FIRST]
    found = fonts.choose_fonts(make(*WORDS))
    assert found[0] == fonts.FIRST and set(found[1:]) == {"Thai", "Han", "Deva"}


def test_a_script_without_a_font_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, {})
    with pytest.warns(UserWarning, match="No font on this machine has Thai letters") as told:
        make(WORDS[0]).save(tmp_path / "a.png")
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(WORDS[0]).save(tmp_path / "b.png")


def test_words_keep_the_order_in_which_they_are_read() -> None:
    """A browser turns them; text that was turned already would be turned twice."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fonts that this machine may lack
        drawn = make(*WORDS).svg()
    assert all(f">{word}</text>" in drawn for word in WORDS)
    assert all(word in str(make(*WORDS).interactive()) for word in WORDS)
    assert 'dir="auto"' in Table("", ("word",), ((WORDS[1],),)).html()


def test_old_programs_that_cannot_turn_letters_are_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mpl, "__version__", "3.10.1")
    with pytest.warns(UserWarning, match=r"matplotlib 3\.10\.1 writes letters from left to right"):
        fonts.check_directions(make(WORDS[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fonts.check_directions(make("plain"))
        monkeypatch.setattr(mpl, "__version__", "3.11.2")
        fonts.check_directions(make(WORDS[1]))


def test_the_last_resort_is_no_font() -> None:
    assert not any("last resort" in font.name.lower() for font in fonts.list_regular())
