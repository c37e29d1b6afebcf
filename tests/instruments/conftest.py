"""Real data that some tests compare with; it is never part of the project."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def real() -> Callable[[str], Path]:
    """Finds a file under the folder REGARD_DATA; the test is skipped where it is not there."""

    def find(name: str) -> Path:
        folder = os.environ.get("REGARD_DATA")
        if not folder:
            pytest.skip("REGARD_DATA is not set: it names a folder of published data")
        if not Path(folder, name).exists():
            pytest.skip(f"REGARD_DATA has no {name}")
        return Path(folder, name)

    return find
