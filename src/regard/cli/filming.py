"""The command that looks at every checkpoint: timelapse."""

from __future__ import annotations

from pathlib import Path

from regard.cli.console import interruptible, out, parse, print_json
from regard.cli.looking import options_of, run_of, sample_bar
from regard.errors import RegardError
from regard.instruments import instruments, timelapse


def timelapse_command(
    places: list[Path],
    name: str,
    words: list[str],
    n: int,
    checkpoints: str | None,
    to: Path | None,
    as_json: bool,
) -> None:
    """`regard timelapse`."""
    values, faults = parse(words)
    options, wrong = options_of([name] if name in instruments else [], values)
    updates, unread = _updates(checkpoints)
    faults += wrong + unread
    if to is not None and to.exists() and not to.is_dir():
        faults.append(f"{to} is a file. Give --out a folder.")
    if faults:
        raise RegardError(*faults)
    runs = [run_of(name, place) for place in places]
    with interruptible(), sample_bar("looking") as watch:
        result = timelapse(runs, name, n, updates, watch, **options.get(name, {}))
    if to is not None:
        result.save(to)
    if as_json:
        print_json(result.to_json())
        return
    out.print(result.table().rich())
    if to is not None:
        out.print(f"Table, curves and film: {to}", markup=False, highlight=False, soft_wrap=True)


def _updates(words: str | None) -> tuple[list[int] | None, list[str]]:
    """`0,100,200` as numbers, and what is wrong with it."""
    if words is None:
        return None, []
    parts = [part.strip() for part in words.split(",")]
    if all(part.isdigit() for part in parts):
        return [int(part) for part in parts], []
    return None, [f"--checkpoints {words} does not fit: write updates with commas, e.g. 0,100."]
