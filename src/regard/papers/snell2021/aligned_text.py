"""Human word alignments, and text to learn a language pair from, for the experiment on them.

A user names the folders with `--data word_alignment=FOLDER` and so on, or the folder of all with
the environment variable REGARD_DATA.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from regard.errors import RegardError
from regard.instruments.alignments import Alignment, read_alignments
from regard.runs.files import write_whole
from regard.tasks.parallel import Parallel, read
from regard.tasks.parallel_text import EMPTY, Faults, lines, load
from regard.tasks.parallel_words import words
from regard.tasks.pieces import cache_folder

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


def folder_of(name: str, named: Mapping[str, str]) -> Path | None:
    """Where a folder of data is: as it was named, else in $REGARD_DATA; None where it is not."""
    base = os.environ.get("REGARD_DATA")
    place = named.get(name) or (str(Path(base) / name) if base and not named else None)
    return Path(place) if place and Path(place).is_dir() else None


def read_aligned(folder: Path, languages: str) -> Aligned:
    """The human alignments of one language pair, such as `enfr`."""
    programs = {
        name: read_alignments(folder / f"{start}.{languages}.{JOINED}", first=0)
        for name, start in PROGRAMS.items()
    }
    pairs = _pairs(folder / f"{languages}.src-tgt.gz")
    gold = read_alignments(folder / f"{languages}.gold.gz", first=1)
    for name, found in {"gold": gold, **programs}.items():
        if len(found) != len(pairs):
            raise RegardError(
                f"{folder}: {languages} has {len(pairs)} sentence pairs, but {len(found)} lines"
                f" of links ({name}). They must be of the same text."
            )
    return Aligned(pairs, gold, programs)


def _pairs(path: Path) -> list[Pair]:
    (content,) = load(path, named_by=f"--data {FOLDER}")
    faults, found = Faults(MEND), []
    for number, row in enumerate(lines(content, str(path), faults), 1):
        source, *rest = (row or "").split(BETWEEN)
        if len(rest) == 1:
            found.append((tuple(source.lower().split()), tuple(rest[0].lower().split())))
        elif row:
            faults.add(EMPTY, str(path), number, f"there is not one {BETWEEN} in it")
    faults.stop()
    return found


def texts(named: Mapping[str, str], most: int) -> tuple[list[Pair], list[str]]:
    """English-French pairs in small letters, at most `most` of each text, and what they are of.

    Where no text is at hand, they are of the corpus that comes with Regard.
    """
    there = {name: place for name in TEXTS if (place := folder_of(name, named))}
    files = {
        name: [str(place / file) for file in TEXTS[name]]
        for name, place in there.items()
        if all((place / file).is_file() for file in TEXTS[name])
    }
    configs = {
        name: Parallel.Config(source=paths[0], target=paths[1] if paths[1:] else None)
        for name, paths in files.items()
    } or {"the shipped corpus": Parallel.Config()}
    found = [pair for config in configs.values() for pair in _some(config, most)]
    return found, list(configs)


def _some(config: Parallel.Config, most: int) -> list[Pair]:
    """Pairs from all over a text, at equal steps: some are sorted by length."""
    pairs, _ = read(config.model_copy(update={"bad_lines": "skip"}))
    step = max(1, len(pairs) // most)
    return [(words(a, True), words(b, True)) for a, b in pairs[::step][:most]]


def kept(pairs: Sequence[Pair]) -> Path:
    """The pairs as a file of two columns, named by what is in it, in the cache."""
    rows = (f"{' '.join(source)}\t{' '.join(target)}\n" for source, target in pairs)
    content = gzip.compress("".join(rows).encode(), mtime=0)
    path = cache_folder() / "texts" / f"{sha256(content).hexdigest()[:16]}.tsv.gz"
    if not path.is_file():
        write_whole(path, content)
    return path
