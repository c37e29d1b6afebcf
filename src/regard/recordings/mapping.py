"""The parts of a recording in shards, mapped: read where that was done, by processes where not.

What came of a part is kept in the folder `sums` beside the shards (or, where nobody may write
there, in the cache folder), named by the pass, its settings, its code, and the samples.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.cache import cache_folder
from regard.code import MAIN, hash_code, join_hashes
from regard.errors import RegardError
from regard.plugins import worker_environment
from regard.recordings.adding import Part, Stats, Summed, map_part, read_covered
from regard.recordings.manifest import MANIFEST
from regard.recordings.recording import Recording
from regard.recordings.shards import Shards
from regard.runs.files import read_tensors, write_tensors
from regard.runs.pool import Needs, Pool, cores
from regard.runs.where import LOCAL, choose_place

FOLDER = "sums"
COUNTED = ("regard.instruments", "regard.recordings", "regard.models.layers")  # whose code counts
SMALL = 2**28  # bytes up to which nobody starts processes unless told to


def map_parts(
    what: Summed, recording: Recording, shards: Shards, parts: Sequence[Part]
) -> Iterator[Stats]:
    """The statistics of each part, in order."""
    folder = choose_folder(shards)
    paths = {part: folder / name_partial(what, recording, shards, part) for part in parts}
    missing = [part for part in parts if not paths[part].is_file()]
    place = choose_place(recording.on)
    away = place != LOCAL and bool(missing)
    jobs = recording.jobs if away else _count_jobs(recording, shards, missing)
    if _is_portable(what) and (away or jobs != 1):
        mappers = _Mappers(what, recording, shards, missing, folder)
        files = [shards.manifest.folder / MANIFEST]
        mappers.work_at(
            place, jobs, Needs(folder, files, [type(what).__module__]),
            lambda part: make_partial(what, recording, part, paths[part]),
        )  # fmt: skip
    for number, part in enumerate(parts, start=1):
        found = read_partial(paths[part])
        yield make_partial(what, recording, part, paths[part]) if found is None else found
        if recording.watch:
            recording.watch(number, len(parts))


def make_partial(what: Summed, recording: Recording, part: Part, path: Path) -> Stats:
    """Map a part, and keep what came of it where that can be written."""
    found = {name: np.array(value) for name, value in map_part(what, recording, part).items()}
    tensors = {name: torch.from_numpy(value) for name, value in found.items()}
    with suppress(OSError):
        write_tensors(path, tensors)
    return found


def read_partial(path: Path) -> Stats | None:
    """What was kept of a part; None where nothing was, or what is there is damaged."""
    if not path.is_file():
        return None
    with suppress(RegardError, OSError):
        return {name: value.numpy() for name, value in read_tensors(path).items()}
    return None


def choose_folder(shards: Shards) -> Path:
    """Where partial results are kept."""
    beside = shards.manifest.folder
    return beside / FOLDER if os.access(beside, os.W_OK) else cache_folder() / FOLDER


def name_partial(what: Summed, recording: Recording, shards: Shards, part: Part) -> str:
    """The name of a partial result: another pass, setting, code or sample gives another one."""
    kind = type(what)
    # The numbers of words in a compact view, and means, follow from all samples.
    whole = what.needs_means or recording.metadata.compact
    widths = [recording.shape(f"{side}.words")[1] for side in ("encoder", "decoder")
              if f"{side}.words" in recording]  # fmt: skip
    said = {
        "pass": name_pass(what), "settings": asdict(what),  # type: ignore[call-overload]
        "code": _hash_pass(kind), "samples": list(read_covered(shards, part)),
        "rows": recording.rows, "widths": widths, "all": shards.manifest.digest if whole else "",
        "versions": [str(torch.__version__), np.__version__],
    }  # fmt: skip
    text = json.dumps(said, sort_keys=True, default=repr)
    return f"{kind.__name__}-{sha256(text.encode()).hexdigest()[:32]}.safetensors"


@lru_cache(maxsize=256)
def _hash_pass(kind: type[Summed]) -> str:
    return join_hashes(hash_code([kind], COUNTED))


def name_pass(what: Summed) -> str:
    """Where a pass is found: module and class."""
    return f"{type(what).__module__}:{type(what).__qualname__}"


def find_pass(name: str, settings: Mapping[str, Any]) -> Summed:
    """The pass of a name, with its settings."""
    module, _, kind = name.partition(":")
    found: Summed = getattr(import_module(module), kind)(**settings)
    return found


def _is_portable(what: Summed) -> bool:
    """Whether another process can do it: what a notebook or script defines, it cannot."""
    try:
        return type(what).__module__ != MAIN and bool(json.dumps(asdict(what)))  # type: ignore[call-overload]
    except TypeError:
        return False


def _count_jobs(recording: Recording, shards: Shards, missing: Sequence[Part]) -> int:
    """How many processes of this machine are to map; 1 is this one."""
    size = sum(shard.size for shard in shards.manifest.shards) / len(shards.starts) * len(missing)
    if recording.jobs is None and size < SMALL:
        return 1
    return max(1, min(recording.jobs or cores(), len(missing)))


class _Mappers(Pool[Part]):
    """Worker processes that map parts."""

    module = "regard.recordings.worker"

    def __init__(
        self,
        what: Summed,
        recording: Recording,
        shards: Shards,
        parts: Sequence[Part],
        folder: Path,
    ):
        super().__init__(parts, worker_environment([type(what).__module__]))
        self.recording, self.done, self.count = recording, 0, len(parts)
        self.said = {
            "do": "map", "recording": str(shards.manifest.folder.absolute()),
            "rows": recording.rows, "digest": shards.manifest.digest,
            "pass": name_pass(what), "settings": asdict(what),  # type: ignore[call-overload]
            "folder": str(folder.absolute()),
        }  # fmt: skip

    def order(self, thing: Part) -> Mapping[str, Any]:
        """A part by its samples."""
        return {**self.said, "part": [thing.start, thing.stop]}

    def hear(self, thing: Part, news: Mapping[str, Any]) -> None:
        """Count the parts that are done."""
        if news["event"] == "done":
            self.done += 1
            if self.recording.watch:
                self.recording.watch(self.done, self.count)

    def explain_death(self, thing: Part, code: int | str) -> str:
        """What was done is kept."""
        return (
            f"The process that read samples {thing.start} to {thing.stop - 1} ended with code"
            f" {code}. Ask again: parts that are done are not read again."
        )
