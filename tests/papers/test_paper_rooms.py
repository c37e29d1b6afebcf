"""In a paper's folder a public file holds experiments; a helper begins with `_`."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard
from regard.papers import EXPERIMENTS, PAPERS

FOLDER = Path(regard.__file__).parent / "papers"
SOURCES = (*PAPERS, "demo")


def find_homes(source: str) -> set[str]:
    """The files of a source that register an experiment."""
    modules = [EXPERIMENTS[name].__module__ for name in EXPERIMENTS if name.startswith(source)]
    assert all(module.startswith(f"regard.papers.{source}.") for module in modules)
    return {module.rpartition(".")[2] for module in modules}


@pytest.mark.parametrize("source", SOURCES)
def test_public_files_hold_experiments_and_others_are_private(source: str) -> None:
    files = {path.stem for path in (FOLDER / source).glob("*.py")}
    assert {file for file in files if not file.startswith("_")} == find_homes(source)


def test_every_folder_is_a_source_or_what_all_need() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert folders == {*SOURCES, "framework"}
    assert [path.stem for path in FOLDER.glob("*.py")] == ["__init__"]


def test_a_source_with_claims_has_them_in_its_folder() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/claims.toml")} == set(PAPERS)
