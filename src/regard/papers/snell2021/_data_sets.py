"""The data sets of snell2021, as `data_sets.toml` lists them, and where their files are.

A user names the folder of a data set with `--data NAME=FOLDER`, or the folder of all of them with
the environment variable REGARD_DATA.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

# The columns of Tables 2, 3, 5 and 7, in the paper's order.
COLUMNS = ("A(α, β^uf)", "A(β^uf, β^px)", "A(Δ, β^uf)", "A(α, β)")
XI = ("ξ(α, β^uf)", "ξ(α, β)", "ξ*")
# ξ of the other columns, which the appendix has, and all of them in its order.
MORE_XI = ("ξ(β^uf, β^px)", "ξ(Δ, β^uf)")
EVERY_XI = (XI[0], *MORE_XI, *XI[1:])
OF_TAU = (XI[0], *MORE_XI, XI[2])  # where agreement is Kendall's τ, and for translation in BLEU
MOST = 4000  # held-out sentences, as in the paper


@dataclass(frozen=True)
class DataSet:
    """One row of Table 2."""

    title: str
    folder: str  # its name, which users give with --data
    kind: str  # classification or translation
    files: Mapping[str, str]  # setting -> file in the folder; several with commas
    settings: Mapping[str, Any] = field(default_factory=dict)
    held_out: Mapping[str, float] = field(default_factory=dict)  # Table 5, as shares
    trained: Mapping[str, float] = field(default_factory=dict)  # Table 7
    kendall: Mapping[str, float] = field(default_factory=dict)  # Table 3
    bleu: Mapping[str, float] = field(default_factory=dict)  # Table 6, in points
    bleu_kendall: Mapping[str, float] = field(default_factory=dict)  # Table 4
    bleu_trained: Mapping[str, float] = field(default_factory=dict)  # Table 8
    frozen: float | None = None  # Table 10, A(α, α^fr)
    other: str = ""  # how it differs from what the paper had
    stand_in: bool = False  # whether it is another set than the paper's
    sentences: int = MOST  # held-out ones that are looked at
    recipe: Mapping[str, Any] = field(default_factory=dict)  # of all models but the bag of words
    attending: Mapping[str, Any] = field(default_factory=dict)  # settings of runs that attend

    def fill_settings(self, folder: Path) -> dict[str, Any]:
        """The settings of its task, the files being in a folder."""
        named = {
            key: ",".join(str(folder / name) for name in names.split(","))
            for key, names in self.files.items()
        }
        return {**named, **self.settings}

    def is_complete(self, folder: Path) -> bool:
        """Whether all its files are in a folder."""
        names = ",".join(self.files.values()).split(",")
        return all((folder / name).is_file() for name in names)


# What the lists of `data_sets.toml` are of, in order.
LISTS = {
    "held_out": (*COLUMNS, "shuffled", *XI),
    "held_out_xi": MORE_XI,
    "trained": (*COLUMNS, "shuffled"),
    "trained_xi": EVERY_XI,
    "kendall": COLUMNS[:3],
    "kendall_xi": OF_TAU,
    "bleu": EVERY_XI,
    "bleu_kendall": OF_TAU,
    "bleu_trained": OF_TAU,
}


def _read_sets() -> dict[str, DataSet]:
    """As `data_sets.toml` has them; ξ stands beside the agreements that it belongs to."""
    text = files("regard.papers.snell2021").joinpath("data_sets.toml").read_text(encoding="utf-8")
    found = {}
    for name, row in tomllib.loads(text).items():
        tables: dict[str, Any] = {}
        for key in LISTS.keys() & row.keys():
            scale = 1 if key.startswith("bleu") else 100  # points of BLEU stay what they are
            said = {c: v / scale for c, v in zip(LISTS[key], row.pop(key), strict=True)}
            tables.setdefault(key.removesuffix("_xi"), {}).update(said)
        found[name] = DataSet(**row, **tables)
    return found


SETS = _read_sets()
WANTED = tuple(dict.fromkeys(data.folder for data in SETS.values()))
QUICK = ("sst2", "multi30k")


def name_differences(names: Iterable[str]) -> list[str]:
    """How data sets, and what is done with them, differ from what the paper had, in sentences."""
    return [SETS[name].other for name in names if SETS[name].other]


def find_folder(name: str, named: Mapping[str, str]) -> Path | None:
    """Where a folder of data is: as it was named, else in $REGARD_DATA; None where it is not."""
    base = os.environ.get("REGARD_DATA")
    place = named.get(name) or (str(Path(base) / name) if base and not named else None)
    return Path(place) if place and Path(place).is_dir() else None


def find_sets(named: Mapping[str, str], quick: bool = False) -> dict[str, Path]:
    """The data sets that are there, by name, and the folder of each.

    Those whose folder was named; where none was, those that $REGARD_DATA has.
    """
    places = {name: find_folder(data.folder, named) for name, data in SETS.items()}
    return {
        name: folder
        for name, folder in places.items()
        if folder and SETS[name].is_complete(folder)
        if not quick or name in QUICK or SETS[name].folder in named
    }
