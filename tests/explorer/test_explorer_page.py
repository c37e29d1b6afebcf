"""The page in a real browser: features clicked, numbers read off it, held against Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

import regard

SOURCE, TARGET = "A B C A B", "1 2 3 1 2"
Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Open]:
    """Opens the page at a state; no error on its console, and no request to anybody else."""
    faults: list[str] = []
    pages: list[Any] = []

    def visit(width: int = 1280, height: int = 720, scheme: str = "light", **state: Any) -> Any:
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        pages.append(page)
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        host = urlsplit(address).netloc
        page.on("request", lambda r: None if _is_own(r.url, host) else faults.append(r.url))
        fragment = "&".join(f"{name}={quote(str(value))}" for name, value in state.items())
        page.goto(f"{address}#{fragment}")
        page.wait_for_selector("body[data-ready=yes]", timeout=60_000)
        return page

    yield visit
    for page in pages:
        page.close()
    assert not faults


def until(page: Any, condition: str, seconds: float = 30) -> None:
    """Wait until an expression holds; asked from outside, as the page's policy allows no eval."""
    last = monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        assert monotonic() < last, f"never came: {condition}"
        page.wait_for_timeout(50)


def _is_own(url: str, host: str) -> bool:
    return urlsplit(url).netloc == host or url.startswith(("blob:", "data:"))


def words(page: Any, strip: str) -> list[str]:
    found: list[str] = page.locator(f"#strip-{strip} .word > span").all_inner_texts()
    return found


def value(page: Any, where: str) -> float:
    """The number of an output, unrounded."""
    until(page, f"document.querySelector('{where}')?.dataset.value")
    return float(page.locator(where).get_attribute("data-value"))


def go_to(page: Any, row: int, column: int) -> None:
    """A cell of the large heat map, by keys alone."""
    until(page, "document.querySelector('#cell-name')?.textContent")
    page.focus("canvas.heat")
    page.keyboard.press("Escape")
    for _ in range(row):
        page.keyboard.press("ArrowDown")
    for _ in range(column):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    until(page, f"location.hash.includes('cell=%5B{row}%2C{column}%5D')")


def record(runs: Path, name: str, **options: Any) -> regard.Recording:
    pairs = [(SOURCE.split(), TARGET.split())]
    return regard.load_run(runs / name).record(pairs=pairs, inputs="teacher", **options)


def test_a_sentence_is_typed_said_and_forced(open_page: Open, names: dict[str, str]) -> None:
    page = open_page(thing=names["aed 0"])
    page.fill("#source", SOURCE)
    page.fill("#target", TARGET)
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#strip-forced .word').length == 6")
    assert words(page, "forced") == [*TARGET.split(), "<EOS>"]
    page.locator("#strip-output .word").nth(1).click()
    other = page.locator(".pop .candidate").nth(2)
    chosen = other.locator("span").first.inner_text()
    other.click()
    page.wait_for_selector("#strip-output .word.forced")
    assert words(page, "output")[1] == chosen
    page.click("#unforce")
    until(page, "!document.querySelector('.word.forced')")


def test_a_cell_shows_its_numbers(open_page: Open, names: dict[str, str], runs: Path) -> None:
    rec = record(runs, names["aed 0"], also=("lexical", "saliency"))
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target")
    go_to(page, 2, 1)
    until(page, "document.querySelector('#cell-saliency')?.dataset.value")
    assert value(page, "#cell-alpha") == pytest.approx(rec["weights"][0, 0, 2, 1], abs=1e-6)
    score = float(rec["scores"][0, 0, 2, 1])
    assert value(page, "#cell-score") == pytest.approx(score, abs=1e-5)
    assert value(page, "#cell-beta") == pytest.approx(np.exp(rec["lexical"][0, 2, 1]), abs=1e-5)
    assert value(page, "#cell-saliency") == pytest.approx(rec["saliency"][0, 2, 1], abs=1e-5)
    terms = [value(page, f"#term-{n}") for n in range(9)]
    assert sum(terms) == pytest.approx(score, abs=1e-4)
    assert value(page, "#term-sum") == pytest.approx(score, abs=1e-4)
    parts = regard.load_run(runs / names["aed 0"]).record(n=40).decomposition
    assert terms[0] == pytest.approx(
        float(parts.decoding.temporal[2] @ parts.encoder.temporal[1]), abs=1e-4
    )


def test_a_slider_scales_a_term_and_decodes_anew(open_page: Open, names: dict[str, str]) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target")
    go_to(page, 2, 1)
    whole, term = value(page, "#cell-score"), value(page, "#term-0")
    page.focus("#factor-0")
    page.keyboard.press("Home")
    until(
        page,
        f"Math.abs(document.querySelector('#cell-score').dataset.value - {whole - term}) < 1e-3",
    )
    page.wait_for_selector("#scale option[value=difference]", state="attached")
    assert "changes=" in page.url
    page.click("#reset-terms")
    until(page, f"Math.abs(document.querySelector('#cell-score').dataset.value - {whole}) < 1e-6")


def test_every_head_has_a_thumbnail(open_page: Open, names: dict[str, str], runs: Path) -> None:
    page = open_page(thing=names["transformer"], source=SOURCE, target=TARGET, feed="target")
    until(page, "document.querySelectorAll('.thumb').length == 12")
    page.click(".thumb[data-site='decoder.0.cross'][data-head='1']")
    until(page, "location.hash.includes('head=1')")
    until(page, "document.querySelector('.view-title h2')?.textContent.includes('head 1')")
    go_to(page, 3, 2)
    weights = record(runs, names["transformer"])["decoder.0.cross.weights"]
    until(page, "document.querySelector('#cell-alpha')?.dataset.value")
    assert value(page, "#cell-alpha") == pytest.approx(weights[0, 1, 3, 2], abs=1e-6)
