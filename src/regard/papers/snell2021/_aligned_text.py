"""Human word alignments, and text to learn a language pair from, for the experiment on them.

A user names the folders with `--data word_alignment=FOLDER` and so on, or the folder of all with
the environment variable REGARD_DATA.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from regard.cache import cache_folder
from regard.errors import RegardError
from regard.instruments.words.links import Alignment, read_alignments
from regard.papers.snell2021._data_sets import find_folder
from regard.runs.files import write_whole
from regard.tasks.text._sentence_pairs import read_parts
from regard.tasks.text._words import split_words
from regard.tasks.text.parallel import Parallel
from regard.tasks.text_files import EMPTY, Faults, read_lines

FOLDER = "word_alignment"
BETWEEN = "|||"  # parts the two sentences of a line
MEND = f"A line holds two sentences in words, parted by {BETWEEN}."
# Text in English and French that may be at hand: folder -> its files, one of them or two.
TEXTS = {
    "multi30k": ("raw/train.en.gz", "raw/train.fr.gz"),
    "tatoeba": ("eng-fra.tsv.gz",),
}
PROGRAMS = {"giza": "baseline_giza", "fast_align": "baseline_fastalign"}
JOINED = "grow-diagonal-final.talp.gz"  # both directions of a program as one

Sentence = tuple[str, ...]
Pair = tuple[Sentence, Sentence]


@dataclass(frozen=True)
class Aligned:
    """Sentence pairs in words, their human links, and those of two programs."""

    pairs: list[Pair]
    gold: list[Alignment]
    programs: dict[str, list[Alignment]]


def read_aligned(folder: Path, languages: str) -> Aligned:
    """The human alignments of one language pair, such as `enfr`."""
    programs = {
        name: read_alignments(folder / f"{start}.{languages}.{JOINED}", first=0)
        for name, start in PROGRAMS.items()
    }
    pairs = _read_pairs(folder / f"{languages}.src-tgt.gz")
    gold = read_alignments(folder / f"{languages}.gold.gz", first=1)
    for name, found in {"gold": gold, **programs}.items():
        if len(found) != len(pairs):
            raise RegardError(
                f"{folder}: {languages} has {len(pairs)} sentence pairs, but {len(found)} lines"
                f" of links ({name}). They must be of the same text."
            )
    return Aligned(pairs, gold, programs)


def _read_pairs(path: Path) -> list[Pair]:
    faults, found = Faults(MEND), []
    for number, row in enumerate(read_lines(path, faults, named_by=f"--data {FOLDER}"), 1):
        source, *rest = (row or "").split(BETWEEN)
        if len(rest) == 1:
            found.append((tuple(source.lower().split()), tuple(rest[0].lower().split())))
        elif row:
            faults.add(EMPTY, str(path), number, f"there is not one {BETWEEN} in it")
    faults.stop()
    return found


def read_texts(named: Mapping[str, str], most: int) -> tuple[list[Pair], list[str]]:
    """English-French pairs in small letters, at most `most` of each text, and what they are of.

    Where no text is at hand, they are of the corpus that comes with Regard.
    """
    folders = {name: folder for name in TEXTS if (folder := find_folder(name, named))}
    files = {
        name: [str(folder / file) for file in TEXTS[name]]
        for name, folder in folders.items()
        if all((folder / file).is_file() for file in TEXTS[name])
    }
    configs = {
        name: Parallel.Config(source=paths[0], target=paths[1] if paths[1:] else None)
        for name, paths in files.items()
    } or {"the shipped corpus": Parallel.Config()}
    found = [pair for config in configs.values() for pair in _take_some(config, most)]
    return found, list(configs)


def _take_some(config: Parallel.Config, most: int) -> list[Pair]:
    """Pairs from all over a text, at equal steps: some are sorted by length."""
    found, _ = read_parts(config.model_copy(update={"bad_lines": "skip"}))
    pairs = found["train"]
    step = max(1, len(pairs) // most)
    return [(split_words(a, True), split_words(b, True)) for a, b in pairs[::step][:most]]


def keep_pairs(pairs: Sequence[Pair]) -> Path:
    """The pairs as a file of two columns, named by what is in it, in the cache."""
    rows = (f"{' '.join(source)}\t{' '.join(target)}\n" for source, target in pairs)
    content = gzip.compress("".join(rows).encode(), mtime=0)
    path = cache_folder() / "texts" / f"{sha256(content).hexdigest()[:16]}.tsv.gz"
    if not path.is_file():
        write_whole(path, content)
    return path
