"""Where files may be written: regular files inside of the folder that was named, and nothing else.

A file is written under a name of its own first (`.NAME.HOST-PROCESS.part`). What a process that
died has left under such a name is removed by the next one that writes the same file.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

from regard.errors import RegardError

PART = re.compile(r"\.(.+)\.(?:([0-9a-f]{8})-)?(\d+)\.part")
HOST = f"{crc32(platform.node().encode()):08x}"  # a process of another machine cannot be asked for


def require_regular(path: Path) -> Path:
    """The path, if a regular file is there or nothing; a link may not lead out of its folder."""
    if path.is_symlink() and not path.resolve().is_relative_to(path.parent.resolve()):
        raise RegardError(
            f"{path} is a link that leads out of its folder, so nothing was written."
            " Name the file itself, or remove the link."
        )
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise RegardError(f"{path} is {kind}, so nothing was written. Name a file.")
    return path


def require_inside(folder: Path, path: Path) -> Path:
    """The path, if no link on the way leads out of a folder."""
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise RegardError(f"{path.parent} leads out of {folder}, so nothing was written.")
    return path


def require_name(name: str) -> str:
    """A name for a file, if it is one: it cannot lead into another folder."""
    if name in ("", ".", "..") or re.search(r"[/\\\x00-\x1f\x7f]", name):
        raise RegardError(f"{name!r} is no name for a file, so nothing was written.")
    return name


def name_part(path: Path) -> Path:
    """Where a file is written before it is whole; what dead processes left for it is removed."""
    for part in find_parts(path.parent, path.name):
        with suppress(OSError):
            part.unlink()
    return path.with_name(f".{path.name}.{HOST}-{os.getpid()}.part")


def find_parts(folder: Path, name: str | None = None) -> list[Path]:
    """What writers that died have left in a folder: of one file, or of all."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            match = PART.fullmatch(path.name)
            if match and name in (None, match[1]) and not may_be_at_work(match[2], int(match[3])):
                found.append(path)
    return sorted(found)


def may_be_at_work(host: str | None, process: int) -> bool:
    """Whether the process that began a file may still be at it."""
    if host not in (None, HOST):
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # there is one, of somebody else
        return True
    return True


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What the operating system refuses, it says without a name where a file is open: name it."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
        raise
