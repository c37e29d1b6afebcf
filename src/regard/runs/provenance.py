"""Where a run comes from: versions, commit, machine, time."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import torch


def provenance(**more: Any) -> dict[str, Any]:
    """What one should know to judge or repeat a run."""
    return {
        "regard": version("regard"),
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **more,
    }


@cache
def commit() -> str | None:
    """The git commit of the source tree, with `+` where it has changes; None outside of one."""
    folder = Path(__file__).parent

    def git(*words: str) -> str | None:
        try:
            answer = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return answer.stdout.strip() if answer.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    tracked = git("ls-files", "--error-unmatch", str(Path(__file__)))
    if not head or tracked is None:
        return None
    return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
