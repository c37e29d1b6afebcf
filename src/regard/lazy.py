"""Packages whose names are imported when they are used, so that `import regard` is quick."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package (PEP 562).

    What there is stands once, as imports under `if TYPE_CHECKING:`, where type checkers and
    editors read it; so does this function. The package's modules are found by their names, too.
    """
    module = sys.modules[package]
    homes = _deferred(Path(str(module.__file__)))

    def get(name: str) -> Any:
        if name in homes:
            home, original = homes[name]
            value = getattr(import_module(home), original)
        elif name.startswith("__") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        else:
            value = import_module(f"{package}.{name}")
        setattr(module, name, value)  # nobody asks a second time
        return value

    return get, lambda: sorted({*vars(module), *homes}), list(homes)


def _deferred(path: Path) -> dict[str, tuple[str, str]]:
    """Name -> module and name there, of the imports that only a type checker makes."""
    return {
        alias.asname or alias.name: (str(line.module), alias.name)
        for block in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
