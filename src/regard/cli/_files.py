"""What `regard doctor` looks at on disk: damaged files, and what dead writers left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from regard.cache import cache_folder
from regard.errors import RegardError
from regard.papers.framework.result import Result
from regard.recordings.recording import load_recording
from regard.recordings.storage import File
from regard.runs.checksums import check, known_hashes
from regard.runs.places import find_parts
from regard.runs.run import Run
from regard.tasks.text._old import find_old, measure_sizes, remove_old

Watch = Callable[[int, int], None]  # (runs looked at, runs in all)
SHOWN = 10  # faults that are told


def check_runs(root: Path, watch: Watch | None = None) -> str:
    """How many files of all runs are what was written; those that are not are a problem."""
    faults: list[str] = []
    counts = {"intact": 0, "without a checksum": 0}
    folders = [path.parent for path in sorted(root.glob("*/config.json"))]
    for number, folder in enumerate(folders, start=1):
        if watch:
            watch(number, len(folders))
        try:
            Run.open(folder)
        except RegardError as error:
            faults += error.faults
        for path in _files(folder):
            try:
                counts["intact" if _check_file(path) else "without a checksum"] += 1
            except (RegardError, OSError) as error:
                faults.append(str(error))
    _tell(faults)
    found = ", ".join(f"{count} files {what}" for what, count in counts.items())
    return f"{len(folders)} runs in {root}: {found}"


def _files(folder: Path) -> Iterator[Path]:
    """What numbers come from in a run's folder."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".safetensors", ".json", ".jsonl") or path.name == "DONE":
            yield path


def _check_file(path: Path) -> bool:
    """Whether a file is known to be what was written; one that is not is a RegardError."""
    if known_hashes(path):
        check(path, path.read_bytes())
        return True
    if path.suffix != ".safetensors" or not path.name.startswith("recording"):
        return False
    storage = load_recording(path).storage
    if isinstance(storage, File):
        storage.verify()
        return storage.checks is not None
    return False


def check_results(root: Path) -> str:
    """How many results can be read."""
    faults: list[str] = []
    count = 0
    for path in sorted(root.glob("*/*/*.json")):
        try:
            Result.read(path)
            count += 1
        except RegardError as error:
            faults += error.faults
    _tell(faults)
    return f"{count} in {root}"


def check_leftovers(folders: Iterable[Path], remove: bool) -> str:
    """What processes that died while they wrote have left, removed where that is wanted."""
    every = {part for root in folders if root.is_dir() for part in _parts(root)}
    size = sum(part.stat().st_size for part in every)
    for part in every if remove else ():
        part.unlink(missing_ok=True)
    if not every:
        return "none"
    what = f"{len(every)} files of {size / 2**20:.1f} MiB that nobody finished"
    return f"{what}, removed" if remove else f"{what}; `regard doctor --remove` removes them"


def check_corpora(remove: bool) -> str:
    """Corpora in the cache that nobody will open again, removed where that is wanted."""
    old = find_old()
    if not old:
        return f"none that is old in {cache_folder()}"
    size = measure_sizes(old) / 2**20
    if remove:
        remove_old(old)
    what = f"{len(old)} corpora of {size:.1f} MiB, half-made or of texts or code that are gone"
    return f"{what}, removed" if remove else f"{what}; `regard doctor --remove` removes them"


def _parts(root: Path) -> Iterator[Path]:
    yield from find_parts(root)
    for folder in root.rglob("*"):
        if folder.is_dir() and not folder.is_symlink():
            yield from find_parts(folder)


def _tell(faults: list[str]) -> None:
    if faults:
        more = [f"{len(faults) - SHOWN} more."] if len(faults) > SHOWN else []
        raise RegardError(*faults[:SHOWN], *more)
