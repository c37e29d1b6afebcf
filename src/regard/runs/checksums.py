"""The hash of every file of a run, in a list beside them: damage is told, not computed with.

The list has the form that `sha256sum --check SHA256SUMS` reads. While a run is under way a line is
added before a file is replaced, so that a reader finds the hash of the old file and of the new one;
when the run is done, the last line of each file is kept. Runs of before have no list, and open.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path

from regard.errors import RegardError
from regard.runs.places import require_regular

SUMS = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  (.+)")
STARTS = "starts"  # files in a folder of this name are called by their hash


def note(folder: Path, path: Path, digest: str) -> None:
    """Say which hash a file of a run's folder is about to have."""
    line = f"{digest}  {path.relative_to(folder).as_posix()}"
    text = _text(folder)
    if line in text.split("\n")[:-1]:  # what follows the last line break was torn
        return
    folder.mkdir(parents=True, exist_ok=True)
    with require_regular(folder / SUMS).open("a", encoding="utf-8") as file:
        file.write(("" if text.endswith("\n") or not text else "\n") + line + "\n")
        file.flush()
        os.fsync(file.fileno())


def final_list(folder: Path) -> bytes:
    """The list with one hash for each file, as it is when a run is at its end."""
    last = {name: _final(folder / name, found) for name, found in read_sums(folder).items()}
    return "".join(f"{last[name]}  {name}\n" for name in sorted(last)).encode()


def _final(path: Path, hashes: list[str]) -> str:
    """Of several hashes the one that the file has; of a damaged file the newest."""
    if len(hashes) == 1 or not path.is_file():
        return hashes[-1]
    own = sha256(path.read_bytes()).hexdigest()
    return own if own in hashes else hashes[-1]


def read_sums(folder: Path) -> dict[str, list[str]]:
    """The hashes that each file of a folder may have, the newest last; none where no list is."""
    found: dict[str, list[str]] = {}
    for line in _text(folder).split("\n"):
        if match := LINE.fullmatch(line):
            found.setdefault(match[2], []).append(match[1])
    return found


def known_hashes(path: Path) -> list[str]:
    """The hashes that a file may have, by the list of its run or by its own name; often none."""
    if path.parent.name == STARTS:
        return [path.stem] if re.fullmatch(r"[0-9a-f]{12}", path.stem) else []
    for folder in (path.parent, path.parent.parent):
        if found := read_sums(folder).get(path.relative_to(folder).as_posix()):
            return found
    return []


def check(path: Path, content: bytes) -> bytes:
    """The content of a file, if it is what was written; a file without a known hash passes."""
    known = known_hashes(path)
    if known and not any(sha256(content).hexdigest().startswith(one) for one in known):
        raise RegardError(
            f"{path} is damaged: its content is not what was written ({len(content)} bytes, and"
            f" another SHA-256 than {_place(path)} says). Restore it from a copy, or delete the"
            " run's folder and ask again."
        )
    return content


def read_checked(path: Path) -> bytes:
    """What is in a file, checked."""
    return check(path, path.read_bytes())


def _place(path: Path) -> str:
    return "its name" if path.parent.name == STARTS else SUMS


def _text(folder: Path) -> str:
    path = folder / SUMS
    try:
        return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    except OSError:
        return ""
