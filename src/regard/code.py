"""Whose code made something: hashes of modules, so that a change is noticed.

Comments, docstrings and layout do not count: what is hashed is what a module does.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from regard.plugins import is_outside

MAIN = "__main__"  # a script or a notebook
Hashes = dict[str, str]  # module -> hash


def hash_code(members: Iterable[Any], within: Sequence[str]) -> Hashes:
    """The hash of every module that members are in or import, by the module's name.

    Of Regard's own modules those count that begin with one of `within`; of others those of the
    same package or folder as a member. What a script or notebook defines counts by itself.
    """
    todo = []
    found: Hashes = {}
    for member in members:
        module = member if isinstance(member, str) else member.__module__
        if module == MAIN:
            found[f"{MAIN}.{member.__qualname__}"] = _hash(_describe_main(member))
        else:
            todo.append(module)
    near = {folder for module in todo if is_outside(module) and (folder := _folder(module))}
    while todo:
        module = todo.pop()
        if module in found or (path := _file(module)) is None:
            continue
        found[module], imported = _read(path, path.stat().st_mtime_ns)
        wanted = ((_absolute(module, front), names) for front, names in imported)
        near_by = [(front, names) for front, names in wanted if _counts(front, within, near)]
        following = (name for front, names in near_by for name in _resolve(front, names))
        todo += [name for name in following if _counts(name, within, near)]
    return dict(sorted(found.items()))


def find_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The modules that are not what they were."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def join_hashes(hashes: Mapping[str, str]) -> str:
    """One hash of them all."""
    return _hash(" ".join(f"{name}={value}" for name, value in sorted(hashes.items())))


def texts_in(member: type) -> set[str]:
    """Every text that stands in the module of a class, such as names of instruments."""
    path = _file(member.__module__)
    if path is None:
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def _counts(module: str, within: Sequence[str], near: set[Path]) -> bool:
    """Whether a module is near enough to be looked at; who is not, is not even searched for."""
    if is_outside(module):
        return _folder(module) in near
    return any(f"{module}.".startswith(f"{part}.") for part in within)


@lru_cache(maxsize=1024)
def _file(module: str) -> Path | None:
    """Where the source of a module is, if it has one."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    path = Path(spec.origin) if spec and spec.origin else None
    return path if path and path.suffix == ".py" and path.is_file() else None


def _folder(module: str) -> Path | None:
    """The folder that a module lies in; of one in a package, that of the outermost package."""
    path = _file(module.split(".")[0])
    return path.parent if path else None


Imports = tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=1024)
def _read(path: Path, _changed: int) -> tuple[str, Imports]:
    """The hash of a file, and what it imports: modules, with the names taken from them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = tuple(_imports(tree))
    return _hash(_plain(tree)), imported


def _imports(tree: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            front = "." * node.level + (node.module or "")
            yield front, tuple(alias.name for alias in node.names)


def _resolve(module: str, names: Sequence[str]) -> Iterator[str]:
    """The modules that an import means; a name that a package passes on is followed home."""
    if not names:
        yield module
    path = _file(module)
    homes = _passed_on(path, path.stat().st_mtime_ns) if path and path.stem == "__init__" else {}
    for name in names:
        if name in homes:
            yield homes[name]
        elif path and path.stem == "__init__" and _file(f"{module}.{name}"):
            yield f"{module}.{name}"
        else:
            yield module


def _absolute(importer: str, module: str) -> str:
    """`.words` as imported by `plug.tasks.echo` is `plug.tasks.words`."""
    if not module.startswith("."):
        return module
    level = len(module) - len(module.lstrip("."))
    path = _file(importer)
    parts = importer.split(".")
    package = parts if path and path.stem == "__init__" else parts[:-1]
    return ".".join([*package[: len(package) - level + 1], module.lstrip(".")]).rstrip(".")


@lru_cache(maxsize=256)
def _passed_on(path: Path, _changed: int) -> dict[str, str]:
    """Name -> module of what a package imports from modules of its own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        if not is_outside(node.module)
        for alias in node.names
        if _file(f"{node.module}.{alias.name}") is None
    }


def _plain(tree: ast.AST) -> str:
    """What a piece of source does, without its docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return ast.dump(tree)


def _describe_main(member: Any) -> str:
    """What a class or function of a script or notebook does, with all of its kind that it uses."""
    world, seen, todo = vars(sys.modules[MAIN]), {}, [member]
    while todo:
        thing = todo.pop()
        name = thing.__qualname__
        if name in seen:
            continue
        seen[name], used = _describe(thing)
        for other in (world.get(word) for word in used):
            own = getattr(other, "__module__", None) == MAIN
            if own and isinstance(other, (type, FunctionType)):
                todo.append(other)
    return str(sorted(seen.items()))


def _describe(thing: Any) -> tuple[str, set[str]]:
    """A class or function by its source, or by its code where there is no source; names it uses."""
    try:
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(thing)))
    except (OSError, TypeError, SyntaxError):
        parts = vars(thing).values() if isinstance(thing, type) else [thing]
        codes = [code for part in parts if (code := _code(part))]
        return str([_show(code) for code in codes]), {n for code in codes for n in code.co_names}
    return _plain(tree), {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _code(thing: Any) -> CodeType | None:
    found = getattr(getattr(thing, "__func__", thing), "__code__", None)
    return found if isinstance(found, CodeType) else None


def _show(code: CodeType) -> list[Any]:
    inner = [_show(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), inner, code.co_names]


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]
