"""Record in shards: file after file, by several processes where a run is recorded.

Killed and started again, it goes on with the shards that are there. A shard is cut where its
samples end, but the model reads the same batches as for one file, so that the bits are the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from regard.errors import RegardError
from regard.recordings.manifest import MANIFEST, Manifest, Shard, name_shard
from regard.recordings.recorder import Recorder
from regard.recordings.recording import ROWS, Recording, load_file, load_recording
from regard.recordings.samples import Pieces
from regard.recordings.shards import describe_shard, require_alike
from regard.recordings.storage import File
from regard.recordings.writer import Watch
from regard.runs.files import hash_file, locked
from regard.runs.pool import Needs, Pool, cores
from regard.runs.where import LOCAL
from regard.training import one_thread


@dataclass(frozen=True)
class Plan:
    """What is recorded, of which samples, in how many shards, and where."""

    recorder: Recorder
    pieces: Pieces
    count: int
    folder: Path
    of: Mapping[str, Any]  # what tells this recording from others, in plain data

    def __post_init__(self) -> None:
        if not 1 <= self.count <= self.pieces.samples:
            raise RegardError(
                f"shards={self.count} does not fit: 1 or more, and at most one for each of the"
                f" {self.pieces.samples} samples."
            )

    @property
    def cuts(self) -> list[int]:
        """Where shards begin, and where the last ends: whole pieces of a recording if possible."""
        total = self.pieces.samples
        unit = ROWS if total >= ROWS * self.count else 1
        inner = [total * number // (self.count * unit) * unit for number in range(self.count)]
        return [*inner, total]

    @cached_property
    def digest(self) -> str:
        """Tells this recording from any other."""
        said = {**self.of, "cuts": self.cuts, "torch": str(torch.__version__)}
        text = json.dumps(said, sort_keys=True, default=str)
        return sha256(text.encode()).hexdigest()[:16]

    def path(self, number: int) -> Path:
        """The file of one shard."""
        return self.folder / name_shard(number, self.count)

    def make(self, number: int, watch: Watch | None = None) -> str:
        """Record one shard. -> the SHA-256 of its file"""
        first, stop = self.cuts[number : number + 2]
        batches, skip = self.pieces.cover(first, stop)
        about = {"number": number, "of": self.count, "first": first, "plan": self.digest}
        self.recorder.record(
            batches, self.path(number), watch, rows=(skip, stop - first), shard=about
        )
        return hash_file(self.path(number))

    def find(self, number: int) -> str | None:
        """The hash of a shard that is there and whole; None where it has to be made."""
        path = self.path(number)
        if not path.is_file():
            return None
        try:
            made = load_file(path)
            if isinstance(made.storage, File):
                made.storage.verify()
        except RegardError:  # it is made again
            return None
        said = made.metadata.origin.get("shard", {}).get("plan")
        if said != self.digest:
            raise RegardError(
                f"{path} is of another recording (another model, or other samples or settings)."
                " Write to another folder, or delete this one."
            )
        return hash_file(path)


@dataclass(frozen=True)
class Apart:
    """How other processes record shards: what they are told, and what has to be there."""

    order: Mapping[str, Any]
    environment: Mapping[str, str]
    needs: Needs
    place: str = LOCAL


def record_shards(
    plan: Plan,
    jobs: int | None = None,
    watch: Watch | None = None,
    apart: Apart | None = None,
) -> Recording:
    """Record what is not there yet, write the manifest, and open the whole.

    Without knowing how to have it done `apart`, this process makes all shards.
    """
    _refuse_strangers(plan)
    with locked(plan.folder), one_thread():
        hashes = {number: plan.find(number) for number in range(plan.count)}
        missing = [number for number, digest in hashes.items() if digest is None]
        bar = _Bar(plan, [n for n in hashes if n not in missing], watch)
        at_once = min(jobs or cores(), len(missing))
        if missing and apart and (at_once > 1 or apart.place != LOCAL):
            workers = _Recorders(missing, apart, bar)
            workers.work_at(apart.place, jobs if apart.place != LOCAL else at_once, apart.needs)
            hashes |= workers.hashes
        else:
            hashes |= {number: plan.make(number, bar.of(number)) for number in missing}
        files = {plan.path(number): str(hashes[number]) for number in range(plan.count)}
        _describe(plan.folder, files, plan.of).write()
    return load_recording(plan.folder)


def gather_shards(folder: str | Path, files: Sequence[str] | None = None) -> Recording:
    """Make one recording of those in a folder, by writing its manifest: the files stay as they are.

    `files` names them in their order, by default that of their names. They are of one model: the
    same words, sites and arrays. So arrays larger than memory become a recording.

    >>> for k, arrays in enumerate(pieces):                                   # doctest: +SKIP
    ...     regard.record(arrays, out=f"large/{k:05d}.safetensors")
    >>> regard.gather_shards("large").inspect("breakdown")                    # doctest: +SKIP
    """
    folder = Path(folder)
    names = sorted(p.name for p in folder.glob("*.safetensors")) if files is None else list(files)
    if not names:
        raise RegardError(f"There are no recordings in {folder} to gather.")
    paths = [folder / name for name in names]
    _describe(folder, {path: hash_file(path) for path in paths}, {}).write()
    return load_recording(folder)


def _describe(folder: Path, files: Mapping[Path, str], of: Mapping[str, Any]) -> Manifest:
    """The manifest of some files, given their hashes; all have to be of one kind."""
    shards: list[Shard] = []
    first = load_file(next(iter(files)))
    for path, digest in files.items():
        require_alike(first, path)
        shards.append(describe_shard(path, shards[-1].stop if shards else 0, digest))
    return Manifest(folder, tuple(shards), of or _without_shard(first.metadata.origin))


def _without_shard(origin: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in origin.items() if key != "shard"}


def _refuse_strangers(plan: Plan) -> None:
    """A folder that is something else stays as it is."""
    if (plan.folder / "config.json").is_file():
        raise RegardError(f"{plan.folder} is a run. Give a folder of its own for the shards.")
    known = {name_shard(number, plan.count) for number in range(plan.count)}
    there = {path.name for path in plan.folder.glob("recording-*-of-*.safetensors")}
    if strange := sorted(there - known):
        raise RegardError(
            f"{plan.folder} has shards of another split ({strange[0]}). Record with as many shards"
            " as before, or write to another folder."
        )
    if not there and (plan.folder / MANIFEST).is_file():
        (plan.folder / MANIFEST).unlink()


class _Bar:
    """How far all shards have come together."""

    def __init__(self, plan: Plan, done: Sequence[int], watch: Watch | None):
        cuts = plan.cuts
        self.watch, self.total = watch, cuts[-1]
        self.sizes = [stop - start for start, stop in pairwise(cuts)]
        self.rows = {number: self.sizes[number] for number in done}

    def of(self, number: int) -> Watch:
        """What the one who records a shard tells."""

        def tell(done: int, total: int) -> None:
            self.rows[number] = done
            if self.watch:
                self.watch(sum(self.rows.values()), self.total)

        return tell

    def finish(self, number: int) -> None:
        """A shard is there; whoever recorded it may have said nothing on the way."""
        if self.rows.get(number) != self.sizes[number]:
            self.of(number)(self.sizes[number], self.sizes[number])


class _Recorders(Pool[int]):
    """Worker processes that record shards of a run."""

    module = "regard.recordings.worker"

    def __init__(self, numbers: Sequence[int], apart: Apart, bar: _Bar):
        super().__init__(numbers, apart.environment)
        self.said, self.bar = apart.order, bar
        self.hashes: dict[int, str] = {}

    def order(self, thing: int) -> Mapping[str, Any]:
        """A shard by its number."""
        return {"do": "record", **self.said, "number": thing}

    def hear(self, thing: int, news: Mapping[str, Any]) -> None:
        """How many samples are there, or the hash of the file."""
        if news["event"] == "done":
            self.hashes[thing] = news["sha256"]
            self.bar.finish(thing)
        else:
            self.bar.of(thing)(*news["numbers"])

    def explain_death(self, thing: int, code: int | str) -> str:
        """What is there stays."""
        return (
            f"The process that recorded shard {thing} ended with code {code}. Ask again:"
            " shards that are there are not made again."
        )
