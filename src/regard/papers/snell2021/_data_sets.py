"""The data sets of snell2021: how their files are read, and what the paper found on them.

A user names the folder of a data set with `--data NAME=FOLDER`, or the folder of all of them with
the environment variable REGARD_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The columns of Tables 2, 3, 5 and 7, in the paper's order.
COLUMNS = ("A(α, β^uf)", "A(β^uf, β^px)", "A(Δ, β^uf)", "A(α, β)")
XI = ("ξ(α, β^uf)", "ξ(α, β)", "ξ*")


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
    frozen: float | None = None  # Table 10, A(α, α^fr)
    other: str = ""  # how it differs from what the paper had
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
        names = (name for names in self.files.values() for name in names.split(","))
        return all((folder / name).is_file() for name in names)


def _paper(*values: float) -> dict[str, float]:
    return dict(zip((*COLUMNS, "shuffled", *XI), (v / 100 for v in values), strict=False))


def _tau(*values: float) -> dict[str, float]:
    return dict(zip(COLUMNS, (v / 100 for v in values), strict=False))


DEBIAN = {"bad_lines": "skip", "pieces": 4000, "held_out": 200}

SETS: dict[str, DataSet] = {
    "imdb": DataSet(
        "IMDB",
        "imdb",
        "classification",
        {
            "data": "train_first5000_per_class.tsv.gz",
            "validation": "test_first2000_per_class.tsv.gz",
            "test": "test_first2000_per_class.tsv.gz",
        },
        {"label_column": "1", "text_column": "3"},
        _paper(52.55, 81.60, 61.55, 60.35, 5.30, 86.81, 86.81, 89.55),
        _paper(51.52, 80.10, 42.85, 64.88, 5.29),
        _tau(12.77, 33.31, 12.56),
        0.09,
        "IMDB: 10,000 of the paper's 25,000 training texts.",
    ),
    "yelp": DataSet(
        "Yelp",
        "yelp_sentences",
        "classification",
        {
            "data": "test.neg.first20000.txt.gz,test.pos.first20000.txt.gz",
            "validation": "dev.neg.txt.gz,dev.pos.txt.gz",
            "test": "dev.neg.txt.gz,dev.pos.txt.gz",
        },
        {"labels": "negative,positive", "tokens": "spaces", "format": "lines"},
        other="Yelp: sentences of reviews, where the paper has whole ones; no cell is compared.",
    ),
    "ag_news": DataSet(
        "AG News",
        "ag_news",
        "classification",
        {
            "data": "train_first3000_per_class.tsv.gz",
            "validation": "test.csv.gz",
            "test": "test.csv.gz",
        },
        {"text_column": "2-", "quoted": True, "keep": "1,3", "integers": "unknown"},
        _paper(39.24, 55.13, 43.08, 48.13, 6.20, 93.54, 94.50, 96.05),
        _paper(36.97, 53.95, 43.11, 46.89, 6.17),
        _tau(26.31, 36.65, 20.55),
        0.17,
        "AG News: 6,000 of the paper's 60,000 training texts.",
    ),
    "newsgroups": DataSet(
        "20 NG",
        "newsgroups20_baseball_hockey",
        "classification",
        {
            "data": "bydate_train.jsonl.gz",
            "validation": "bydate_test.jsonl.gz",
            "test": "bydate_test.jsonl.gz",
        },
        {"integers": "unknown", "underscores": "split"},
        _paper(65.08, 41.33, 64.82, 63.07, 5.11, 91.16, 84.57, 94.22),
        _paper(72.36, 38.69, 71.73, 69.47, 5.32),
        _tau(16.06, 22.03, 6.50),
        0.19,
    ),
    "sst2": DataSet(
        "SST",
        "sst2",
        "classification",
        {"data": "train.tsv.gz", "validation": "dev.tsv.gz", "test": "test.tsv.gz"},
        {"label_column": "2", "text_column": "1", "tokens": "spaces"},
        _paper(19.85, 33.57, 22.45, 25.33, 8.39, 78.16, 82.38, 83.53),
        _paper(21.82, 29.35, 20.48, 28.50, 8.48),
        _tau(11.68, 31.43, 15.01),
        0.14,
        "SST: 6,920 training sentences, where the paper has 5,130. Runs that attend have half of"
        " the paper's 4,000 updates: their accuracy is highest before 1,000.",
        {"updates": 2000},
    ),
    "amazon": DataSet(
        "Amazon",
        "amazon_multidomain",
        "classification",
        {"data": "reviews.tsv.gz"},
        {"label_column": "2", "text_column": "4,5", "longest": 400},
        _paper(52.02, 76.78, 49.68, 62.13, 5.80, 82.48, 88.07, 90.38),
        _paper(51.95, 77.18, 40.15, 61.78, 5.91),
        _tau(15.21, 35.84, 9.33),
        0.15,
    ),
    "multi30k": DataSet(
        "Multi30k",
        "multi30k",
        "translation",
        {
            "source": "raw/train.de.gz",
            "target": "raw/train.en.gz",
            "validation_source": "raw/val.de.gz",
            "validation_target": "raw/val.en.gz",
            "test_source": "raw/test_2016_flickr.de.gz",
            "test_target": "raw/test_2016_flickr.en.gz",
        },
        {},
        _paper(31.02, 34.43, 27.06, 48.78, 7.11, 43.45, 48.58, 66.29),
        _paper(32.89, 34.67, 28.36, 56.39, 7.21),
        _tau(7.89, 27.54, 3.93),
    ),
    "iwslt14": DataSet(
        "IWSLT14 (4,600 pairs)",
        "iwslt14_deen",
        "translation",
        {
            "source": "train_lowres_bpe10k.de.gz",
            "target": "train_lowres_bpe10k.en.gz",
            "validation_source": "valid.tok.lc.de.gz",
            "validation_target": "valid.tok.lc.en.gz",
            "test_source": "test.tok.lc.de.gz",
            "test_target": "test.tok.lc.en.gz",
        },
        {"bpe": "undo"},
        other="IWSLT14: 4,600 of the paper's 160,240 training pairs; no cell is compared.",
    ),
    "debian_it_pt": DataSet(
        "messages It-Pt", "debian_l10n", "translation", {"source": "it-pt.tsv.gz"}, DEBIAN
    ),
    "debian_en_nl": DataSet(
        "messages En-Nl", "debian_l10n", "translation", {"source": "en-nl.tsv.gz"}, DEBIAN
    ),
    "debian_en_pt": DataSet(
        "messages En-Pt", "debian_l10n", "translation", {"source": "en-pt.tsv.gz"}, DEBIAN
    ),
}

WANTED = tuple(dict.fromkeys(data.folder for data in SETS.values()))
QUICK = ("sst2", "multi30k")


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
