"""The built wheel works in an environment of its own, outside of the clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TRAINED = {"updates": 2, "hidden": 8, "held_out": 10}
PROGRAM = f"""
import regard
assert "site-packages" in regard.__file__, regard.__file__
run = regard.train("one-to-one", model="aed", **{TRAINED!r})
rec = run.record(n=20)
print(rec.inspect("breakdown").shares["temporal-temporal"], regard.__version__)
"""


def call(words: list[str | Path], cwd: Path) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "REGARD"))}
    done: Any = subprocess.run(
        list(map(str, words)), cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; its dependencies are those of this one."""
    pytest.importorskip("setuptools", reason="setuptools builds the wheel")
    place = tmp_path_factory.mktemp("wheel")
    shutil.copytree(
        ROOT / "src", place / "clone" / "src", ignore=shutil.ignore_patterns("*.egg-info")
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place / "clone" / name)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    call([*pip, "wheel", *offline, "--wheel-dir", place, place / "clone"], place)
    (wheel,) = place.glob("regard-*.whl")
    call([sys.executable, "-m", "venv", "--without-pip", place / "env"], place)
    bin_folder = place / "env" / ("Scripts" if os.name == "nt" else "bin")
    found = bin_folder / "python"
    inside = Path(
        call([found, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], place).strip()
    )
    call([*pip, "install", "--no-deps", "--no-index", "--target", inside, wheel], place)
    (inside / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return found


def test_it_trains_records_and_inspects(python: Path, tmp_path: Path) -> None:
    share, version = call([python, "-P", "-c", PROGRAM], tmp_path).split()
    assert 0 <= float(share) <= 1 and version == "0.2.0"


def test_it_has_the_published_ledger(python: Path, tmp_path: Path) -> None:
    rows = json.loads(call([python, "-P", "-m", "regard", "claims", "--json"], tmp_path))
    published = [row for row in rows if row["source"] == "published"]
    assert len(published) > 40 and {"reproduced", "partly"} <= {r["verdict"] for r in published}


def test_it_has_its_templates(python: Path, tmp_path: Path) -> None:
    call([python, "-P", "-m", "regard", "new", "plugin", "mylab"], tmp_path)
    assert (tmp_path / "mylab" / "mylab" / "mylab_study_claims.toml").is_file()
