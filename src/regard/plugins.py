"""Members from outside: modules of a user's own that register tasks, cells, instruments, claims.

A plugin is a Python module that registers something when it is imported. It is named by an entry
point (group `regard.plugins`) of an installed package, in `REGARD_PLUGINS=module,…`, or by `regard
--plugin module`; or a program imports it. Registries call `load_plugins` before they answer, so
plugins are there for every command, in every process, and whoever uses none waits for none.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

GROUP = "regard.plugins"  # of entry points
VARIABLE = "REGARD_PLUGINS"  # modules, with commas; worker processes inherit it

_asked: set[str] = set()  # by what is named: each is imported once, whether that goes well or not
_lock = RLock()


class RegardWarning(UserWarning):
    """Something that a person should know, though the work goes on."""


class PluginWarning(RegardWarning):
    """A plugin could not be imported."""


def name_plugins(modules: Iterable[str]) -> None:
    """Have these modules imported with all other plugins, here and in worker processes."""
    os.environ[VARIABLE] = ",".join(dict.fromkeys([*named_plugins(), *modules]))


def named_plugins() -> list[str]:
    """The modules in REGARD_PLUGINS."""
    words = os.environ.get(VARIABLE, "").split(",")
    return [word.strip() for word in words if word.strip()]


def load_plugins() -> None:
    """Import every plugin that has not been yet; one that fails is told by name."""
    for name, load in _plugins():
        with _lock:
            if name in _asked:
                continue
            _asked.add(name)
            try:
                load()
            except (Exception, SystemExit) as error:
                reason = f"{type(error).__name__}: {error}".replace("\n", " ")
                text = f"The plugin '{name}' could not be imported ({reason}). All else goes on."
                warnings.warn(text, PluginWarning, stacklevel=2)


def _plugins() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each plugin's name, and how it is imported."""
    yield from _installed()
    for name in named_plugins():
        yield name, partial(_import, name)


@cache  # reading what is installed takes a while, and does not change under way
def _installed() -> tuple[tuple[str, Callable[[], Any]], ...]:
    return tuple((point.value, point.load) for point in entry_points(group=GROUP))


def _import(name: str) -> None:
    """Import a module, from the current folder where it is nowhere else."""
    if name.endswith(".py"):
        raise ValueError(f"this is a file; name the module: {Path(name).stem}")
    if name.split(".")[0] not in sys.modules and find_spec(name.split(".")[0]) is None:
        sys.path.append(str(Path.cwd()))  # last, so that it hides nothing
    import_module(name)


def worker_environment(modules: Iterable[str]) -> dict[str, str]:
    """What a worker process needs to know in order to import these modules, too.

    They may have been imported by a program, from a folder that a worker does not look into.
    """
    outside = [name for name in modules if is_outside(name)]
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [str(folder) for name in outside if (folder := _folder(name))]
    return {
        VARIABLE: ",".join(dict.fromkeys([*named_plugins(), *outside])),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, [*known, *folders]))),
    }


def is_outside(module: str) -> bool:
    """Whether a module is not one of Regard's own."""
    return module.split(".")[0] != "regard"


def _folder(module: str) -> Path | None:
    """The folder that a module's first package or file lies in."""
    file = getattr(sys.modules.get(module.split(".")[0]), "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    return path.parents[1] if path.stem == "__init__" else path.parent
