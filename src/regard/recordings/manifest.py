"""The manifest of a recording in shards: which files there are, how long, and what is in them.

A folder with `manifest.json` and ordinary recording files, in the order of their samples. The
manifest has the hash of every shard and its own, so that what is missing, exchanged or edited is
told by name. A shard's header has a checksum of every block of its rows, so that the header's hash
stands for the whole file, and opening a recording of any size reads no row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.runs.files import write_json

MANIFEST = "manifest.json"
KIND = "a recording in shards"
FORMAT = 1


@dataclass(frozen=True)
class Shard:
    """One file: its samples from `first` on, and what it has to be."""

    file: str
    first: int
    rows: int
    source: int  # widths of the axes that pad
    target: int
    size: int  # bytes
    header: str  # SHA-256 of the file's header, which has a checksum of every block
    sha256: str  # of the whole file, as `sha256sum` has it

    @property
    def stop(self) -> int:
        """The sample after its last."""
        return self.first + self.rows


@dataclass(frozen=True)
class Manifest:
    """What is in a folder of shards."""

    folder: Path
    shards: tuple[Shard, ...]
    of: Mapping[str, Any]  # what was recorded, and how

    @property
    def samples(self) -> int:
        """How many there are in all."""
        return self.shards[-1].stop

    @cached_property
    def digest(self) -> str:
        """The hash of the content of all shards."""
        return sha256(" ".join(shard.header for shard in self.shards).encode()).hexdigest()

    def write(self) -> None:
        """Into its folder, with its own hash; from now on the folder is a recording."""
        said = {
            "regard": KIND, "format": FORMAT, "samples": self.samples, "of": dict(self.of),
            "shards": [asdict(shard) for shard in self.shards],
        }  # fmt: skip
        write_json(self.folder / MANIFEST, {**said, "sha256": _seal(said)})

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in a folder, if it is what was written and all of its files are there."""
        path = folder / MANIFEST
        try:
            said = json.loads(path.read_bytes())
            seal = said.pop("sha256")
            if said["regard"] != KIND or said["format"] != FORMAT:
                raise ValueError("it is of another kind, or of another version of Regard")
            if _seal(said) != seal:
                raise ValueError("it is not what was written: its own hash is another")
            found = cls(folder, tuple(Shard(**one) for one in said["shards"]), said["of"])
            _check_order(found.shards)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RegardError(
                f"{path} is no manifest of a recording in shards ({error}). Restore it, or delete"
                " it and record again into the same folder: shards that are there stay."
            ) from None
        faults = [fault for shard in found.shards if (fault := _missing(folder, shard))]
        if faults:
            raise RegardError(*faults)
        return found


def is_sharded(path: str | Path) -> bool:
    """Whether a recording in shards is there; a run's folder is a run."""
    path = Path(path)
    return (path / MANIFEST).is_file() and not (path / "config.json").is_file()


def refuse_unfinished(path: Path) -> None:
    """Tell of a folder whose shards are not all there yet."""
    if not path.is_dir() or not (shards := sorted(path.glob("recording-*-of-*.safetensors"))):
        return
    count = int(shards[0].stem.rpartition("-")[2])
    raise RegardError(
        f"{path} is a recording in shards that was not finished: {len(shards)} of {count} are"
        " there. Record again into the same folder, and it goes on."
    )


def name_shard(number: int, count: int) -> str:
    """What the file of one of several shards is called."""
    return f"recording-{number:05d}-of-{count:05d}.safetensors"


def _seal(said: Mapping[str, Any]) -> str:
    return sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _check_order(shards: Iterable[Shard]) -> None:
    stop = 0
    for shard in shards:
        if Path(shard.file).name != shard.file or shard.first != stop or shard.rows < 1:
            raise ValueError(f"{shard.file} does not begin where the shard before it ends")
        stop = shard.stop
    if not stop:
        raise ValueError("it names no shards")


def _missing(folder: Path, shard: Shard) -> str | None:
    """The sentence for a shard that is not there, or not in its length."""
    path = folder / shard.file
    mend = "Restore it, or record again into the same folder: only what is missing is made."
    if not path.is_file():
        return f"{path} is missing: samples {shard.first} to {shard.stop - 1}. {mend}"
    if path.stat().st_size != shard.size:
        return f"{path} is damaged: it has not the {shard.size} bytes that it had. {mend}"
    return None
