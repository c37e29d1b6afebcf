"""Fonts for labels in any script: what the machine has, and one clear word where it has none."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import matplotlib as mpl
from matplotlib import font_manager

from regard.display.figure import Figure

FIRST = "DejaVu Sans"  # matplotlib's own, always there
# What fonts call the scripts that Unicode names otherwise.
CALLED = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "HANGUL": "CJK", "IDEOGRAPHIC": "CJK"}
_missed: set[str] = set()  # scripts that were told of


def choose_fonts(figure: Figure) -> list[str]:
    """The families that a figure's texts need, in the order in which they are tried.

    Letters that no font of this machine has are told of once, by their script: they are boxes in a
    picture of points, while a browser draws the SVG and the pages with the fonts that it has.
    """
    wanted = sorted({c for text in read_texts(figure) for c in text if _needs_a_font(c)})
    found = [FIRST]
    for letter in wanted:
        if any(ord(letter) in read_letters(family) for family in found):
            continue
        family = find_family(letter)
        if family is None:
            _tell(letter)
        else:
            found.append(family)
    return found


def read_texts(thing: Any) -> Iterator[str]:
    """All texts in a figure, whatever they name."""
    if isinstance(thing, str):
        yield thing
    elif is_dataclass(thing):
        for field in fields(thing):
            yield from read_texts(getattr(thing, field.name))
    elif isinstance(thing, tuple) and thing and not isinstance(thing[0], (int, float)):
        for part in thing:
            yield from read_texts(part)


def _needs_a_font(letter: str) -> bool:
    """Letters that the first font may lack; marks that only steer are nobody's."""
    return ord(letter) > 0x24F and unicodedata.category(letter) not in ("Cc", "Cf", "Zs", "Mn")


def read_letters(family: str) -> frozenset[int]:
    """The letters of a family's regular font."""
    path = font_manager.findfont(
        font_manager.FontProperties(family=[family]), fallback_to_default=True
    )
    return _read_file(path)


@lru_cache(maxsize=256)
def _read_file(path: str) -> frozenset[int]:
    return frozenset(font_manager.get_font(path).get_charmap())


@lru_cache(maxsize=4096)
def find_family(letter: str) -> str | None:
    """A family of this machine that has a letter: one named after its script first."""
    script = name_script(letter)
    called = CALLED.get(script, script)

    def rank(font: font_manager.FontEntry) -> tuple[bool, bool, str]:
        name = font.name.upper()
        return called not in name, "SANS" not in name, name

    for font in sorted(list_regular(), key=rank):
        if ord(letter) in _read_file(font.fname):
            return font.name
    return None


@lru_cache(maxsize=1)
def list_regular() -> tuple[font_manager.FontEntry, ...]:
    """The regular fonts of this machine, with those that came after matplotlib last looked."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - known:
        with suppress(Exception):  # a file that is no font after all
            font_manager.fontManager.addfont(path)
    return tuple(
        font
        for font in font_manager.fontManager.ttflist
        if font.style == "normal"
        and font.weight in (400, "normal", "regular")
        and "last resort" not in font.name.lower()  # it has a box for every letter there is
    )


def name_script(letter: str) -> str:
    """The script of a letter, as its name begins: THAI, ARABIC, CJK, DEVANAGARI."""
    return unicodedata.name(letter, "UNKNOWN LETTER").split()[0]


def check_directions(figure: Figure) -> None:
    """Tell of letters that run from right to left where matplotlib cannot turn and join them."""
    shapes = tuple(map(int, mpl.__version__.split(".")[:2])) >= (3, 11)
    every = (c for text in read_texts(figure) for c in text)
    if not shapes and any(unicodedata.bidirectional(c) in ("R", "AL") for c in every):
        warnings.warn(
            f"matplotlib {mpl.__version__} writes letters from left to right only, and does not"
            " join them. Save as SVG, or take matplotlib 3.11 or newer.",
            stacklevel=3,
        )


def _tell(letter: str) -> None:
    script = name_script(letter)
    if script in _missed:
        return
    _missed.add(script)
    warnings.warn(
        f"No font on this machine has {script.title()} letters such as {letter!r}: they are boxes"
        " in PNG and PDF. Install one (Noto Sans has most scripts); SVG and pages are drawn with"
        " the fonts of whoever looks at them.",
        stacklevel=4,
    )
