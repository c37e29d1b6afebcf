"""A run's files on their way between machines that share no folder.

A node sends what has changed whenever the run has a new state; the receiver writes it in the order
in which a run writes its own folder, so that it can be cut anywhere and gone on with. Paths of the
node stay there: `config.json` and the list of hashes are the receiver's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.runs.checksums import SUMS, final_list, note
from regard.runs.config import RunConfig
from regard.runs.files import as_json, hash_file, write_noted, write_whole
from regard.runs.places import naming, require_regular

Piece = tuple[str, int | None, bytes]  # a file's name in the folder, where in it (else all of it)

STATE, METRICS, DONE = "state.safetensors", "metrics.jsonl", "DONE"
OWN = {"config.json", SUMS, "LOCK", STATE, METRICS, DONE}  # not sent as they are
NAME = re.compile(r"(checkpoints/)?[A-Za-z0-9]+(\.[a-z]+)?")


class Sender:
    """Finds what is new in the folder of a run that another process fills."""

    def __init__(self, folder: Path):
        self.folder, self.size = folder, 0  # bytes of the metrics that were sent
        self.seen: dict[str, tuple[int, int]] = {}

    def find_new(self, last: bool = False) -> list[Piece]:
        """What has changed, if there is a new state or it is the `last` time; the state last."""
        key = DONE if last else STATE
        if not (self.folder / key).is_file() or not self._is_new(self.folder / key):
            return []
        end: Piece = (key, None, (self.folder / key).read_bytes())  # what it needs is there by now
        return [*self._metrics(), *self._others(), end]

    def _metrics(self) -> Iterator[Piece]:
        with (self.folder / METRICS).open("rb") as file:
            file.seek(self.size)
            content = file.read()
        yield METRICS, self.size, content
        self.size += len(content)

    def _others(self) -> Iterator[Piece]:
        for path in sorted([*self.folder.glob("*"), *self.folder.glob("checkpoints/*")]):
            name = path.relative_to(self.folder).as_posix()
            if name not in OWN and NAME.fullmatch(name) and path.is_file() and self._is_new(path):
                yield name, None, path.read_bytes()

    def _is_new(self, path: Path) -> bool:
        about = path.stat()
        now, before = (about.st_mtime_ns, about.st_ino), self.seen.get(str(path))
        self.seen[str(path)] = now
        return now != before


def receive(folder: Path, config: RunConfig, pieces: Iterable[Piece]) -> None:
    """Write what a node has sent into the run's own folder."""
    if not (folder / "config.json").is_file():
        write_noted(folder, folder / "config.json", as_json(config.to_json()))
    for name, at, content in pieces:
        if not NAME.fullmatch(name) or name in ("config.json", SUMS, "LOCK"):
            raise RegardError(f"A node sent {name!r}, which no run has, so it was not kept.")
        if at is not None:
            _write_at(folder / name, at, content)
        elif name == STATE:
            write_whole(folder / name, content)
        elif name == DONE:
            _finish(folder, content)
        else:
            write_noted(folder, folder / name, content)


def _write_at(path: Path, at: int, content: bytes) -> None:
    """The file's first `at` bytes, and then `content`."""
    with naming(path), require_regular(path).open("ab+") as file:
        kept = os.fstat(file.fileno()).st_size
        if kept < at:
            raise RegardError(f"{path} has {kept} bytes and {at} are known. Delete its folder.")
        file.truncate(at)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _finish(folder: Path, done: bytes) -> None:
    """As a run ends its own folder: the list of hashes is settled, then it is done."""
    note(folder, folder / METRICS, hash_file(folder / METRICS))
    note(folder, folder / DONE, sha256(done).hexdigest())
    write_whole(folder / SUMS, final_list(folder))
    write_whole(folder / DONE, done)
    (folder / STATE).unlink(missing_ok=True)


def pack(folder: Path) -> list[Piece]:
    """All that a node needs in order to go on with a run that was cut; nothing of a new one."""
    return Sender(folder).find_new()


def move_files(config: RunConfig, places: Mapping[Path, Path]) -> dict[str, Any]:
    """The settings of a run whose files lie elsewhere: old paths and folders to new ones."""
    settings = config.to_json()
    known = {str(old): str(new) for old, new in places.items()}
    for section in ("task", "model", "training"):
        for key, value in settings[section].items():
            parts = value.split(",") if isinstance(value, str) else []
            if parts and all(str(Path(part)) in known for part in parts):
                settings[section][key] = ",".join(known[str(Path(part))] for part in parts)
    return settings


def files_of(config: RunConfig) -> list[Path]:
    """The files that a run reads, of those that are there."""
    more = (config.training.start, getattr(config.model, "vectors", None))
    named = [*config.task.files(), *(Path(file) for file in more if file is not None)]
    return [path for path in dict.fromkeys(named) if path.is_file()]


def spell_out(config: RunConfig) -> dict[str, Any]:
    """The settings of a run with whole paths, which another process finds from anywhere."""
    named = (place for path in files_of(config) for place in (path, path.parent))
    return move_files(config, {place: place.absolute() for place in named})
