"""A run's folder is named by the hash of its settings: an edited configuration shows."""

from __future__ import annotations

import re
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.runs.config import NUMERICS, RunConfig, hash_settings
from regard.runs.files import read_json

NAMED = re.compile(r".+-s\d+-([0-9a-f]{12})")


def check_name(folder: Path, config: RunConfig, data: dict[str, Any]) -> None:
    """Refuse a folder whose name is the hash of other settings than its `config.json` has.

    Hashed is the file as it is, since settings that came later stand in no older file, and with
    the numerics of any version. Folders that were renamed say nothing, and neither do settings that
    name files which are no longer there.
    """
    match = NAMED.fullmatch(folder.resolve().name)
    if match is None or not _files_are_there(config):
        return
    settings, hashes = config.without_places(deepcopy(data)), known_data(folder)
    if not hashes and config.task.files():  # what the name also rests on was not noted
        return
    versions = range(1, NUMERICS + 1)
    if match[1] in (hash_settings(deepcopy(settings), hashes, version) for version in versions):
        return
    raise RegardError(
        f"{folder / 'config.json'} was changed: the folder's name is the hash of other settings."
        " Restore the file, or ask for the settings by `regard train`, which makes a new run."
    )


def known_data(folder: Path) -> dict[str, str]:
    """The hashes of the files that a run was trained on, as noted when it began."""
    path = folder / "provenance.json"
    data: Any = None
    with suppress(RegardError, AttributeError):
        data = read_json(path).get("data") if path.is_file() else None
    return data if isinstance(data, dict) else {}


def _files_are_there(config: RunConfig) -> bool:
    try:
        return all(path.is_file() for path in config.task.files())
    except RegardError:
        return False
