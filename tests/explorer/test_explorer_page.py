"""The page in a real browser: features clicked, numbers read off it, held against Python."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.instruments.units._readout import learn_to_read
from regard.tasks.typed import read_typed

SOURCE, TARGET = "A B C A B", "1 2 3 1 2"
Open = Callable[..., Any]
PATIENCE = 120.0  # seconds: machines may be busy with other work


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Open]:
    """Opens the page at a state; no error on its console, and no request to anybody else."""
    faults: list[str] = []
    pages: list[Any] = []

    def visit(width: int = 1280, height: int = 720, scheme: str = "light", **state: Any) -> Any:
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        pages.append(page)
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        host = urlsplit(address).netloc
        page.on("request", lambda r: None if _is_own(r.url, host) else faults.append(r.url))
        fragment = "&".join(f"{name}={quote(str(value))}" for name, value in state.items())
        page.goto(f"{address}#{fragment}")
        page.wait_for_selector("body[data-ready=yes]", timeout=1000 * PATIENCE)
        return page

    yield visit
    for page in pages:
        page.close()
    assert not faults


def until(page: Any, condition: str, seconds: float = PATIENCE) -> None:
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


def test_a_sentence_is_typed_said_and_forced(
    open_page: Open, names: dict[str, str], runs: Path
) -> None:
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
    said = words(page, "output")
    kept = said[: said.index("<EOS>")] if "<EOS>" in said else said
    run = regard.load_run(runs / names["aed 0"])
    batch = read_typed(run.task(), SOURCE, " ".join(kept))
    with torch.no_grad():
        logits = run.model()(batch.source, batch.source_lengths, batch.inputs).logits
    chances = logits[0].log_softmax(dim=1).gather(1, batch.target[0][:, None])[:, 0].exp()
    shown = page.locator("#strip-output .word").evaluate_all("all => all.map(x => +x.dataset.p)")
    assert shown[: len(kept)] == pytest.approx(chances[: len(kept)].tolist(), abs=1e-5)
    page.click("#unforce")
    until(page, "!document.querySelector('.word.forced')")


def test_a_beam_shows_the_attention_of_each_hypothesis(
    open_page: Open, names: dict[str, str], runs: Path
) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE)
    page.click("#beam")
    until(page, "document.querySelectorAll('#hypotheses .frame').length > 1")
    until(page, "[...document.querySelectorAll('#hypotheses canvas')].every(c => c.width != 300)")
    second = page.locator("#hypotheses .frame").nth(1)
    path, score = second.get_attribute("title").split(), float(second.get_attribute("data-score"))
    second.click()
    until(page, "document.querySelectorAll('#strip-output .word.forced').length > 1")
    assert words(page, "output")[: len(path)] == path
    shown = page.locator("#strip-output .word").evaluate_all("all => all.map(x => +x.dataset.p)")
    assert sum(np.log(shown[: len(path)])) == pytest.approx(score, abs=1e-3)
    go_to(page, 1, 2)
    said = path[: path.index("<EOS>")] if "<EOS>" in path else path
    pairs = [(SOURCE.split(), said)]
    rec = regard.load_run(runs / names["aed 0"]).record(pairs=pairs, inputs="teacher")
    assert value(page, "#cell-alpha") == pytest.approx(rec["weights"][0, 0, 1, 2], abs=1e-6)


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


def test_what_if_shows_what_became_of_it(open_page: Open, names: dict[str, str]) -> None:
    page = open_page(
        thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target", view="whatif"
    )
    page.locator("form", has_text="Without a component").get_by_role("button").click()
    until(page, "document.querySelector('#changes .chip')")
    assert "no μ in the alignment" in page.locator("#changes").inner_text()
    page.fill("#other", "C C C")
    page.press("#other", "Enter")
    until(page, "document.querySelectorAll('[data-other]').length == 4")
    page.locator("[data-other='1']").drag_to(page.locator("[data-onto='2']"))
    until(page, "document.querySelectorAll('#changes .chip').length == 2")
    assert "encoder state 3 from" in page.locator("#changes").inner_text()
    page.locator("#changes .chip button").first.click()
    until(page, "document.querySelectorAll('#changes .chip').length == 1")


def test_all_weight_is_put_on_a_cell(open_page: Open, names: dict[str, str]) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target")
    go_to(page, 1, 3)
    page.click("#force-here")
    until(page, "document.querySelector('#cell-alpha')?.dataset.value == '1'")


def test_spaces_lead_to_neighbours(open_page: Open, names: dict[str, str], runs: Path) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, view="spaces")
    until(page, "document.querySelectorAll('#neighbours tbody tr').length == 8")
    page.select_option("#near-step", "2")
    until(page, "document.querySelector('#neighbours tbody tr b')?.textContent == 'C'")
    rec, run = record(runs, names["aed 0"]), regard.load_run(runs / names["aed 0"])
    whole = run.record(n=40)
    away = np.linalg.norm(whole["encoder.states"] - rec["encoder.states"][0, 2], axis=2)
    nearest = np.sort(away[whole["encoder.mask"]])[:8]
    shown = page.locator("#neighbours tbody td:first-child").all_inner_texts()
    assert [float(text) for text in shown] == pytest.approx(nearest.tolist(), rel=6e-3)
    page.get_by_role("button", name="3-D").first.click()


def test_training_time_is_scrubbed(open_page: Open, names: dict[str, str], runs: Path) -> None:
    page = open_page(
        thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target", view="training"
    )
    until(page, "document.querySelectorAll('#film small').length == 8")  # two for each of four
    page.locator("#film button").nth(1).click()
    until(page, "location.hash.includes('checkpoint=20')")
    page.click("#tab-attention")
    go_to(page, 2, 1)
    until(page, "document.querySelector('#cell-alpha')?.dataset.value")
    early = record(runs, names["aed 0"], checkpoint=20)["weights"][0, 0, 2, 1]
    until(page, f"Math.abs(document.querySelector('#cell-alpha').dataset.value - {early}) < 1e-5")


def test_two_are_compared_on_one_scale(open_page: Open, names: dict[str, str], runs: Path) -> None:
    page = open_page(
        thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target", view="compare"
    )
    page.click("#pin")
    until(page, "document.querySelector('#moved')?.dataset.value === '0'")
    slider = page.locator("#checkpoint")
    slider.evaluate("node => { node.value = 1; node.dispatchEvent(new Event('input')); }")
    until(page, "document.querySelector('#moved')?.dataset.value > 0")
    weights = [record(runs, names["aed 0"], checkpoint=c)["weights"][0, 0] for c in (60, 0)]
    moved = np.abs(weights[0] - weights[1]).sum() / 2 / len(weights[0])
    assert value(page, "#moved") == pytest.approx(moved, abs=1e-5)


def test_all_seeds_are_drawn_at_once(open_page: Open, names: dict[str, str], runs: Path) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target")
    until(page, "document.querySelector('.sample')?.textContent == 'one run of 2 seeds'")
    page.check("#over-seeds")
    until(page, "document.querySelector('.sample')?.textContent.startsWith('mean of 2 seeds')")
    go_to(page, 2, 1)
    both = [record(runs, names[f"aed {s}"])["weights"][0, 0, 2, 1] for s in (0, 1)]
    until(page, "document.querySelector('#cell-alpha + .over')?.dataset.interval")
    assert value(page, "#cell-alpha") == pytest.approx(float(np.mean(both)), abs=1e-6)
    low, high = page.locator("#cell-alpha + .over").get_attribute("data-interval").split(" to ")
    assert float(low) <= np.mean(both) <= float(high)
    terms = sum(value(page, f"#term-{n}") for n in range(9))
    assert terms == pytest.approx(value(page, "#cell-score"), abs=1e-4)


@pytest.mark.parametrize("view", ["words", "whatif", "spaces", "units", "training", "finders"])
def test_every_view_says_what_it_is_a_picture_of(
    open_page: Open, names: dict[str, str], view: str
) -> None:
    asked = {"thing": names["aed 0"], "source": SOURCE, "target": TARGET, "view": view}
    page = open_page(**asked)
    until(page, "/one run/.test(document.querySelector('#view').textContent)")
    page.check("#over-seeds")
    if view == "units":
        page.select_option("#probe", "position")
    until(page, "/mean of 2 seeds, 95 % intervals/.test(document.querySelector('#view').innerText)")


def test_finders_lead_to_the_sentence_and_the_head(
    open_page: Open, names: dict[str, str], runs: Path
) -> None:
    page = open_page(thing=names["transformer"], view="finders")
    until(page, "document.querySelectorAll('tbody tr').length == 40")
    sentence = page.locator("tbody tr td").nth(1).inner_text()
    page.locator("tbody tr").first.click()
    until(page, "location.hash.includes('source=') && !location.hash.includes('finders')")
    assert page.input_value("#source") == sentence
    page.click("#tab-finders")
    until(page, "document.querySelectorAll('tbody tr').length == 40")
    axis = page.locator("#view svg.plot rect").first.bounding_box()  # the number of words
    x, y, height = axis["x"] + axis["width"] / 2, axis["y"], axis["height"]
    page.mouse.move(x, y + 1)
    page.mouse.down()
    page.mouse.move(x, y + height / 2)
    page.mouse.up()
    until(page, "document.querySelectorAll('tbody tr').length < 40")
    kept = page.locator("td[data-name=length]").evaluate_all(
        "all => all.map(x => +x.dataset.value)"
    )
    rec = regard.load_run(runs / names["transformer"]).record(n=40)
    lengths = rec["encoder.mask"].sum(axis=1)
    assert len(kept) == int((lengths >= min(kept)).sum()) and max(kept) == lengths.max()
    page.click("#tab-finders")
    page.select_option("#finder", "heads")
    until(page, "document.querySelectorAll('tbody tr').length == 12")
    page.get_by_role("button", name="entropy").click()
    values = [float(v) for v in page.locator("td[data-name=entropy]").evaluate_all(
        "cells => cells.map(cell => cell.dataset.value)")]  # fmt: skip
    assert values == sorted(values, reverse=True)
    page.locator("tbody tr").first.click()
    until(page, "document.querySelector('.view-title h2')")


def test_units_gates_and_a_probe(open_page: Open, names: dict[str, str], runs: Path) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, view="units")
    until(page, "document.querySelectorAll('#units-array option').length > 1")
    page.select_option("#probe", "word")
    until(page, "document.querySelector('#probe-accuracy')?.dataset.value")
    whole = regard.load_run(runs / names["aed 0"]).record(n=40)
    reader = learn_to_read(whole, "encoder.states", "word")
    assert value(page, "#probe-accuracy") == pytest.approx(reader.accuracy)
    read = reader.read(record(runs, names["aed 0"])["encoder.states"][0])
    assert page.locator("#readings small").all_inner_texts() == read


def test_an_instrument_is_put_on_all_seeds(
    open_page: Open, names: dict[str, str], runs: Path
) -> None:
    page = open_page(thing=names["aed 0"], view="instruments", instrument="sizes")
    page.wait_for_selector("#measure")
    page.click("#measure")
    page.wait_for_selector("#measured", timeout=1000 * PATIENCE)
    both = [regard.load_run(runs / names[f"aed {s}"]) for s in (0, 1)]
    table = regard.inspect(both, "sizes").table().cells()
    assert page.locator("#measured tbody tr").first.locator("td").all_inner_texts() == table[0]


def test_the_ledger_leads_into_views(open_page: Open, names: dict[str, str]) -> None:
    page = open_page(thing=names["aed 0"], view="ledger")
    page.wait_for_selector("#claims tbody tr")
    assert page.locator("#claims tbody tr").count() == len(list(regard.claims()))
    page.get_by_role("button", name="Show what ait.temporal-aed is about").click()
    until(page, "location.hash.includes('view=spaces')")


def test_the_address_holds_it_all_and_files_are_saved(
    open_page: Open, names: dict[str, str]
) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target")
    go_to(page, 2, 1)
    alpha = value(page, "#cell-alpha")
    fragment = page.url.split("#")[1]
    from urllib.parse import parse_qsl

    again = open_page(**dict(parse_qsl(fragment)))
    assert value(again, "#cell-alpha") == alpha
    for form in ("csv", "svg", "python", "html"):
        again.click("#save")
        with again.expect_download() as waiting:
            again.click(f"#save-{form}")
        saved = Path(waiting.value.path()).read_text(encoding="utf-8")
        assert len(saved) > 100
        if form == "python":
            scope: dict[str, Any] = {}
            exec(saved, scope)  # what a person would paste
            assert float(scope["weights"][2, 1]) == pytest.approx(alpha, abs=1e-6)
        if form == "csv":
            row = next(r for r in csv.DictReader(io.StringIO(saved)) if r["row"] == "2")
            assert row["column"] == "0" and float(row["weight"]) <= 1


def test_a_classifier_has_its_own_view(open_page: Open, names: dict[str, str], runs: Path) -> None:
    page = open_page(thing=names["classifier"])
    page.wait_for_selector("#row-weights .reading")
    found = page.locator("#row-weights .reading").evaluate_all(
        "all => all.map(x => +x.dataset.value)"
    )
    source = page.input_value("#source").split()
    run = regard.load_run(runs / names["classifier"])
    label = page.locator("#answer").inner_text()
    rec = run.record(pairs=[(source, [label])], also=("saliency",))
    np.testing.assert_allclose(found, rec["weights"][0, 0, 0], atol=1e-6)
    page.wait_for_selector("#row-saliency .reading")
    found = page.locator("#row-saliency .reading").evaluate_all(
        "all => all.map(x => +x.dataset.value)"
    )
    np.testing.assert_allclose(found, rec["saliency"][0, 0], atol=1e-6)


def test_the_page_is_used_by_keys_alone(open_page: Open, names: dict[str, str]) -> None:
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "source"
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("C C A")
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('source=C+C+A')")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("4")
    until(page, "location.hash.includes('view=spaces')")
    for _ in range(12):  # everything that takes the focus has a name
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(n => n.getAttribute('aria-label') || n.textContent || n.labels?.length)"
            "(document.activeElement)"
        )
        assert name


@pytest.mark.parametrize(("width", "height", "scheme"), [
    (1280, 720, "light"), (1280, 720, "dark"), (820, 1180, "light"),
])  # fmt: skip
def test_every_view_fits_and_is_not_blank(
    open_page: Open, names: dict[str, str], width: int, height: int, scheme: str
) -> None:
    """Nothing hangs over the edge, and the picture has more than one colour."""
    page = open_page(width, height, scheme, thing=names["aed 0"], source=SOURCE, target=TARGET)
    ground = {"light": (246, 245, 242), "dark": (16, 18, 22)}[scheme]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == f"rgb{ground}"
    for key in page.locator(".tab").evaluate_all("tabs => tabs.map(tab => tab.id)"):
        page.click(f"#{key}")
        until(page, "document.querySelector('#view').textContent.length > 20")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), key
        view = page.locator("#view")
        assert view.evaluate("node => node.scrollWidth <= node.clientWidth + 1"), key


PICTURES = Path(__file__).parent / "pictures.json"


@pytest.mark.parametrize("view", ["attention", "words", "whatif", "spaces", "units"])
def test_main_views_look_as_they_did(open_page: Open, names: dict[str, str], view: str) -> None:
    """Brightness in 32 by 18 fields, against what was kept: gross changes only, as fonts differ.

    REGARD_KEEP_PICTURES=yes keeps what is there now.
    """
    page = open_page(thing=names["aed 0"], source=SOURCE, target=TARGET, feed="target", view=view)
    page.wait_for_timeout(1500)
    until(page, "document.querySelector('#view').textContent.length > 20")
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("L").resize((32, 18), Image.BOX)
    now = np.asarray(picture, dtype=np.int64)
    kept = json.loads(PICTURES.read_text()) if PICTURES.exists() else {}
    if os.environ.get("REGARD_KEEP_PICTURES"):
        PICTURES.write_text(json.dumps({**kept, view: now.tolist()}) + "\n")
        return
    apart = np.abs(now - np.array(kept[view]))
    assert apart.mean() < 8, f"{view} looks otherwise: {apart.mean():.1f} of 255 on average"
