"""What every instrument keeps: one source or many, a table, a figure, files, plain data."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from regard.contracts.contract import Check, ContractError, require, require_docs, require_plain
from regard.display import Heat
from regard.errors import RegardError
from regard.instruments import INSTRUMENTS, Instrument, Recordings, Result
from regard.runs import Run, train

SAMPLES = 60
MODEL: dict[str, Any] = {"updates": 0, "held_out": 10, "hidden": 8}


@dataclass(frozen=True)
class Use:
    """An instrument, and a way to put it on so many sources; one is given bare."""

    instrument: Instrument[Any, Any]
    put: Callable[[int], Result[Any]]
    runs: Callable[[str], list[Run]]  # untrained small runs of a model

    @cached_property
    def results(self) -> dict[int, Result[Any]]:
        """On one source, and on three."""
        return {count: self.put(count) for count in (1, 3)}

    @property
    def name(self) -> str:
        """What it is registered as."""
        return str(self.instrument.result.name)


def make_use(name: str, settings: dict[str, Any], on: Sequence[Path] = ()) -> Use:
    """An instrument on small untrained networks that attend, or on sources of the user's."""
    instrument = INSTRUMENTS[name]
    folder = Path(tempfile.mkdtemp(prefix="regard-check-"))

    def runs(model: str) -> list[Run]:
        return [train("one-to-one", model, seed, folder, **MODEL) for seed in range(3)]

    def put(count: int) -> Result[Any]:
        sources: list[Any] = list(on) or runs("aed")
        options = dict(settings)
        if not on and "n" in instrument.accepted:
            options.setdefault("n", SAMPLES)
        if len(sources) == 1:
            sources, options = sources * count, {**options, "pool": True}
        first: Result[Any] = instrument(sources[0] if count == 1 else sources[:count], **options)
        return first

    return Use(instrument, put, runs)


def check_docs(use: Use) -> None:
    """It says what it measures, in a sentence."""
    require_docs(use.instrument, "The instrument")
    first = (use.instrument.__doc__ or "").splitlines()[0]
    require(first.endswith("."), "The first line of the docstring is a sentence.")


def check_settings(use: Use) -> None:
    """Settings have types, and defaults that are plain."""
    hints = use.instrument.measure.__annotations__
    for setting in use.instrument.parameters:
        require(hints.get(setting), f"The setting {setting} has no type to be checked by.")
    plain = {k: v for k, v in use.instrument.defaults.items() if not callable(v)}
    require_plain(plain, "The setting")


def check_numbers(use: Use) -> None:
    """Numbers are finite, inside of their bounds, and over three seeds have an interval."""
    for count, result in use.results.items():
        require(result.n == count == len(result.seeds), "One measurement for each source.")
        known = use.instrument.parameters.keys()
        require(result.settings.keys() == known, "The result keeps the settings.")
        estimates = result.estimates()
        require(estimates, "There are no numbers.")
        for name, value in estimates.items():
            require(value.n == count, f"'{name}' is not there for every seed.")
            require(math.isfinite(value.mean), f"'{name}' is not a finite number.")
            require((value.interval is not None) == (count > 1), f"The interval of '{name}'?")
            low, high = value.within or (-math.inf, math.inf)
            require(low <= value.mean <= high, f"'{name}' is {value.mean}, outside of its range.")


def check_table(use: Use) -> None:
    """The table has a cell for each column, and can be printed."""
    for result in use.results.values():
        table = result.table()
        require(table.rows, "The table is empty.")
        require(all(len(row) == len(table.columns) for row in table.rows), "A cell per column.")
        require(table.rich(), "The table cannot be printed.")


def check_json(use: Use) -> None:
    """Its JSON is strict: no NaN, no infinity, nothing but plain data."""
    for count, result in use.results.items():
        plain = json.loads(json.dumps(result.to_json()), parse_constant=refuse_constant)
        head = (plain["instrument"], plain["seeds"])
        require(head == (use.name, count), "`to_json` names instrument and seeds.")
        require(plain["values"].keys() == result.estimates().keys(), "`to_json` has all numbers.")


def refuse_constant(constant: str) -> None:
    """For `json.loads`: NaN and infinities are not JSON."""
    raise ContractError(f"{constant} is not JSON.")


def check_figure(use: Use) -> None:
    """The figure has its name, a caption that is a sentence, titles and labelled axes."""
    for result in use.results.values():
        figure = result.figure()
        require(figure.name == use.name, f"The figure is called '{figure.name}'.")
        require(figure.caption.endswith("."), "The caption is a sentence.")
        require(figure.panels, "There is nothing in the figure.")
        labelled = all(panel.x and panel.y and panel.title for panel in figure.panels)
        require(labelled, "Each panel has a title and names for both axes.")
        heats = [mark for p in figure.panels for mark in p.marks if isinstance(mark, Heat)]
        require(all(heat.label for heat in heats), "A heat map says what its colours mean.")
        require(figure.interactive()["data"], "The interactive figure is empty.")


def check_files(use: Use) -> None:
    """`save` writes JSON, CSV, SVG and a page."""
    result = use.results[1]
    with tempfile.TemporaryDirectory() as folder:
        files = result.save(Path(folder) / "new" / "folder")
        texts = [file.read_text(encoding="utf-8") for file in files]
    names = [f"{use.name}.{ending}" for ending in ("json", "csv", "svg", "html")]
    require([file.name for file in files] == names, f"The files are {names}.")
    saved = json.loads(texts[0], parse_constant=refuse_constant)
    require(saved == json.loads(json.dumps(result.to_json())), "The JSON file is `to_json`.")
    rows = len(texts[1].splitlines())
    require(rows == 1 + len(result.plain_table().rows), "The CSV file has the rows of the table.")
    require(texts[2].startswith("<?xml"), "The SVG file is no SVG.")
    require("plotly" in texts[3].lower(), "The page has no interactive figure.")


def check_blindness(use: Use) -> None:
    """On a model without attention it measures, or says in a sentence that it cannot."""
    if not isinstance(use.instrument.takes, Recordings) or use.instrument.takes.compares:
        return
    needed = set(use.instrument.parameters) - set(use.instrument.defaults)
    if needed:
        return  # nobody knows what to give
    try:
        result = use.instrument(use.runs("ved")[0], n=SAMPLES)
    except RegardError as error:
        require(all(fault.strip().endswith(".") for fault in error.faults), "Say it in sentences.")
        return
    finite = all(math.isfinite(value.mean) for value in result.estimates().values())
    require(finite, "Without attention it gives numbers that are none.")


CONTRACT: tuple[Check, ...] = (
    check_docs, check_settings, check_numbers, check_table, check_json, check_figure, check_files,
    check_blindness,
)  # fmt: skip
