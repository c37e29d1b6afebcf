"""The tutorials run from top to bottom, in a folder of their own."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_five() -> None:
    assert len(NOTEBOOKS) == 5
    page = (FOLDER / "index.md").read_text()
    assert all(f"({notebook.name})" in page for notebook in NOTEBOOKS)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_runs(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the notebook programs, not ours
        nbclient = pytest.importorskip("nbclient", reason="nbclient runs notebooks")
        pytest.importorskip("ipykernel", reason="ipykernel runs notebooks")
        import nbformat

        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        book = nbformat.read(notebook, as_version=4)
        resources = {"metadata": {"path": str(tmp_path)}}
        nbclient.NotebookClient(book, timeout=600, resources=resources).execute()
    faults = [
        out for cell in book.cells for out in cell.get("outputs", []) if out.output_type == "error"
    ]
    assert not faults
