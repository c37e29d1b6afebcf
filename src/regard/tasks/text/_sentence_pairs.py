"""Pairs of sentences, whatever their units are: where they come from, and what is left of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from regard.errors import RegardError
from regard.tasks.task import TaskConfig
from regard.tasks.text_files import EMPTY, Faults, load, split_lines

Pair = tuple[str, str]

SHIPPED = Path(__file__).parent / "data" / "english-french.tsv"
NO_TAB = "lines without a tab"
NO_PARTNER = "lines without a partner"


class PairsConfig(TaskConfig):
    """Where the sentences are, and what is done with lines that are none."""

    parts: ClassVar[dict[str, str]] = {"train": ""}  # and how the settings of their files begin

    source: str | None = Field(
        None,
        description="file of sentences, plain or gzipped; with no target, two columns parted by a"
        " tab",
    )
    target: str | None = Field(None, description="file of their translations, line by line")
    bad_lines: Literal["stop", "skip"] = Field(
        "stop", description="stop: tell the faults and stop; skip: leave such lines out"
    )

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        for start in self.parts.values():
            if getattr(self, f"{start}target") and not getattr(self, f"{start}source"):
                raise ValueError(f"{start}target is set without {start}source: name both")
        return self

    def paths(self, part: str) -> list[Path]:
        """The files of one part, such as `train`: one of two columns, or two."""
        sides = (getattr(self, f"{self.parts[part]}{side}") for side in ("source", "target"))
        return [Path(name) for name in sides if name is not None]

    def files(self) -> tuple[Path, ...]:
        """The files that were named; the shipped corpus belongs to the program."""
        return tuple(path for part in self.parts for path in self.paths(part))


def read_parts(config: PairsConfig) -> tuple[dict[str, list[Pair]], Counter[str]]:
    """The pairs of each part that has files, and how many lines were left out, by reason."""
    faults, found = Faults(), {}
    for part, start in config.parts.items():
        if paths := config.paths(part) or [SHIPPED] * (part == "train"):
            found[part] = _read_pairs(paths, faults, f"task.{start}source and task.{start}target")
    if config.bad_lines == "stop":
        faults.stop()
    return found, faults.counts


def _read_pairs(paths: Sequence[Path], faults: Faults, named_by: str) -> list[Pair]:
    """The pairs in one file of two columns, or line by line in two files."""
    contents, names = load(*paths, named_by=named_by), [str(path) for path in paths]
    sides = [split_lines(c, name, faults) for c, name in zip(contents, names, strict=True)]
    if len(sides) == 1:
        return _split_columns(sides[0], names[0], faults)
    return _pair_lines(sides[0], sides[1], (names[0], names[1]), faults)


def _split_columns(rows: list[str | None], name: str, faults: Faults) -> list[Pair]:
    """The first two tab-separated columns of each line; further columns do not matter."""
    pairs = []
    for number, row in enumerate(rows, start=1):
        if row is None:
            continue
        source, *rest = row.split("\t", 2)
        if not rest:
            faults.add(NO_TAB, name, number, "there is no tab between two sentences")
        elif not (source.strip() and rest[0].strip()):
            faults.add(EMPTY, name, number, "one of the two sentences is empty")
        else:
            pairs.append((source, rest[0]))
    return pairs


def _pair_lines(
    sources: list[str | None], targets: list[str | None], names: Pair, faults: Faults
) -> list[Pair]:
    """Line by line, a sentence of one file with that of the other; both must be good."""
    extra = abs(len(sources) - len(targets))
    if extra:
        longer, other = names if len(sources) > len(targets) else names[::-1]
        after = f", nor do the {extra - 1} after it" if extra > 1 else ""
        what, first = f"the line has no partner in {other}{after}", min(len(sources), len(targets))
        faults.add(NO_PARTNER, longer, first + 1, what, times=extra)
    both = zip(sources, targets, strict=False)
    return [(source, target) for source, target in both if source and target]


def check_left(pairs: Sized, file: Path | str, skipped: Counter[str]) -> None:
    """Refuse a part of which no pair is left, and say why."""
    if not len(pairs):
        why = ", ".join(f"{count} {reason}" for reason, count in skipped.items() if count)
        raise RegardError(
            f"No pair of sentences is left of {file} ({why or 'the file is empty'})."
            " Name another file, or raise task.longest."
        )
