"""Corpora in the cache that nobody will open again, or that nobody has finished."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.cache import cache_folder, content_hash, take_lock
from regard.tasks.task import TASKS
from regard.tasks.text._stored import ABOUT
from regard.tasks.text._text_task import CORPORA, hash_reader, name_class


def find_old() -> list[Path]:
    """The folders of corpora that are half-made and nobody is at, or whose text or code is gone.

    A corpus is named by the content of its files and by the code that reads them, so that one
    whose file has changed, or that another version has made, is not found any more.
    """
    try:
        folders = sorted(path for path in (cache_folder() / CORPORA).iterdir() if path.is_dir())
    except OSError:
        return []
    codes = {name_class(TASKS[name]): hash_reader(TASKS[name]) for name in TASKS}
    return [folder for folder in folders if _is_free(folder) and _is_old(folder, codes)]


def measure_sizes(folders: list[Path]) -> int:
    """The bytes in some folders."""
    return sum(size for folder in folders for size in _sizes(folder))


def remove_old(folders: list[Path]) -> None:
    """Remove corpora, and the locks that they had."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.with_suffix(".lock").unlink()


def _sizes(folder: Path) -> Iterator[int]:
    for path in folder.iterdir():
        with suppress(OSError):
            yield path.stat().st_size


def _is_free(folder: Path) -> bool:
    """Whether no process is making this corpus."""
    try:
        with folder.with_suffix(".lock").open("r+b") as file:
            return take_lock(file.fileno())
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_old(folder: Path, codes: dict[str, str]) -> bool:
    if folder.suffix == ".part":
        return True
    try:
        made_of: dict[str, Any] = json.loads((folder / ABOUT).read_bytes().split(b"\n", 1)[1])["of"]
        if made_of["task"] not in codes:  # a task of the user's own, which is not here now
            return False
        files = [content_hash(Path(path)) == digest for path, digest in made_of["files"].items()]
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return True  # damaged, or of a version that did not say what it is made of
    return codes[made_of["task"]] != made_of["code"] or not all(files)
