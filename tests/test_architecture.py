"""The shape of the system: imports go one way, and nothing is read or written as code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import regard

SOURCE = Path(regard.__file__).parent

# From left to right; a part may import what stands left of it.
ORDER = [
    "errors", "registry", "config", "statistics", "display", "tasks", "models", "training", "runs",
    "recordings", "instruments", "papers", "report", "bench", "cli",
]  # fmt: skip


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("regard."):
            found.add(node.module.split(".")[1])
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("regard.")}
    return found


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_left(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part == "__init__":
        return
    for target in imports(path):
        assert ORDER.index(target) <= ORDER.index(part), f"{path} imports {target}"


def test_every_part_has_its_place() -> None:
    parts = {p.name for p in SOURCE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert parts <= set(ORDER)


def test_nothing_is_stored_as_code() -> None:
    forbidden = {"pickle", "dill", "joblib", "shelve", "marshal"}
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not forbidden & {name.split(".")[0] for name in names}, path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in {("torch", "load"), ("torch", "save")}


def test_public_names_are_there() -> None:
    for name in regard.__all__:
        assert hasattr(regard, name)
