"""Pairs of sentences, whatever their units are: where they come from, and what is left of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from regard.errors import RegardError
from regard.tasks.task import TaskConfig
from regard.tasks.text_files import EMPTY, Faults, Meter, require_files, stream_lines

Pair = tuple[str, str]

SHIPPED = Path(__file__).parent / "data" / "english-french.tsv"
NO_TAB = "lines without a tab"
NO_PARTNER = "lines without a partner"
ENDED = "\n"  # in place of a line that a file does not have: no line is this


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
    faults = Faults()
    found = {part: list(stream_pairs(config, part, faults)) for part in find_parts(config)}
    if config.bad_lines == "stop":
        faults.stop()
    return found, faults.counts


def find_parts(config: PairsConfig) -> list[str]:
    """The parts that have files; the files are there."""
    found = [part for part in config.parts if config.paths(part) or part == "train"]
    for part in found:
        start = config.parts[part]
        require_files(config.paths(part), f"task.{start}source and task.{start}target")
    return found


def stream_pairs(
    config: PairsConfig, part: str, faults: Faults, meter: Meter | None = None
) -> Iterator[Pair]:
    """The pairs of one part: of one file of two columns, or line by line of two files."""
    paths = config.paths(part) or [SHIPPED]
    lines = [stream_lines(path, faults, meter=meter) for path in paths]
    if len(paths) == 1:
        return _split_columns(lines[0], str(paths[0]), faults)
    return _pair_lines(lines[0], lines[1], (str(paths[0]), str(paths[1])), faults)


def _split_columns(rows: Iterator[str | None], name: str, faults: Faults) -> Iterator[Pair]:
    """The first two tab-separated columns of each line; further columns do not matter."""
    for number, row in enumerate(rows, start=1):
        if row is None:
            continue
        source, *rest = row.split("\t", 2)
        if not rest:
            faults.add(NO_TAB, name, number, "there is no tab between two sentences")
        elif not (source.strip() and rest[0].strip()):
            faults.add(EMPTY, name, number, "one of the two sentences is empty")
        else:
            yield source, rest[0]


def _pair_lines(
    sources: Iterator[str | None], targets: Iterator[str | None], names: Pair, faults: Faults
) -> Iterator[Pair]:
    """Line by line, a sentence of one file with that of the other; both must be good."""
    sides = [0, 0]
    for source, target in zip_longest(sources, targets, fillvalue=ENDED):
        sides[0] += source is not ENDED
        sides[1] += target is not ENDED
        if source and target and ENDED not in (source, target):
            yield source, target
    if extra := abs(sides[0] - sides[1]):
        longer, other = names if sides[0] > sides[1] else names[::-1]
        after = f", nor do the {extra - 1} after it" if extra > 1 else ""
        what = f"the line has no partner in {other}{after}"
        faults.add(NO_PARTNER, longer, min(sides) + 1, what, times=extra)


def check_left(count: int, file: Path | str, skipped: Counter[str]) -> None:
    """Refuse a part of which no pair is left, and say why."""
    if not count:
        why = ", ".join(f"{count} {reason}" for reason, count in skipped.items() if count)
        raise RegardError(
            f"No pair of sentences is left of {file} ({why or 'the file is empty'})."
            " Name another file, or raise task.longest."
        )
