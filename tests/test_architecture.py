"""The shape of the system: imports go one way, and nothing is read or written as code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import regard

SOURCE = Path(regard.__file__).parent

# From left to right; a part may import what stands left of it.
ORDER = [
    "errors", "memory", "cache", "lazy", "plugins", "code", "registry", "config", "statistics",
    "display", "tasks", "models", "training", "runs", "subjects", "recordings", "instruments",
    "papers", "report", "explorer", "contracts", "cli", "__main__",
]  # fmt: skip


# The front door: methods that call to the right, so that a user need not know the rooms.
FRONT = {
    "runs/run.py": {"record", "inspect", "timelapse"},
    "recordings/recording.py": {"inspect"},
}


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def code(path: Path) -> ast.Module:
    """A module without what only type checkers read, and without the methods of the front."""
    open_doors = FRONT.get(path.relative_to(SOURCE).as_posix(), set())

    class Reader(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            kept = node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else [node]
            return kept

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
            return None if node.name in open_doors else node

    return Reader().visit(ast.parse(path.read_text()))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(code(path)):
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
    forbidden = {"pickle", "dill", "shelve", "marshal"}
    readers = {
        (package, verb) for package in ("torch", "joblib") for verb in ("load", "save", "dump")
    }
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
                assert not readers & {(node.module, alias.name) for alias in node.names}, path
            assert not forbidden & {name.split(".")[0] for name in names}, path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in readers


def test_public_names_are_there() -> None:
    for name in regard.__all__:
        assert hasattr(regard, name)
