"""Named members of one kind: tasks, cells, attentions, models, instruments, experiments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Generic, TypeVar

from regard.errors import RegardError, unknown
from regard.plugins import is_outside, load_plugins

T = TypeVar("T")
M = TypeVar("M")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to members that answers a wrong name with the nearest right one.

    >>> cells = Registry[type]("cell")
    >>> @cells.register("lstm", aliases=["long-short"])
    ... class LSTM: ...
    >>> cells["lstm"] is cells["long-short"] is LSTM
    True
    >>> list(cells)
    ['lstm']

    It knows where members are and imports them when they are wanted:

    - `rooms` are packages in which each public file is a member of the file's name, with dashes
      for underscores where `dashes` says so. Who lists the names imports none of them.
    - `modules` register what they like. Who lists the names imports them all; who asks for
      `paper/experiment` imports the one called `paper` first.

    `aliases` are older names of members: accepted, not listed. `short` are other names, which a
    plugin's member may take. Plugins are imported before the first answer.
    """

    def __init__(
        self,
        what: str,
        *,
        rooms: Sequence[str] = (),
        modules: Sequence[str] = (),
        dashes: bool = False,
        aliases: Mapping[str, str] | None = None,
        short: Mapping[str, str] | None = None,
    ):
        self.what, self.rooms, self.modules, self.dashes = what, rooms, modules, dashes
        self.short = dict(short or {})
        self.aliases = {**(aliases or {}), **self.short}
        self._members: dict[str, T] = {}
        self._places: dict[str, str] = {}  # name -> module and qualified name of who has it
        self._modules: dict[str, str] = {}  # name -> module alone

    def register(self, name: str, aliases: Sequence[str] = ()) -> Callable[[M], M]:
        """A decorator that files its argument under `name`.

        The same place may do so again, as a module that is reloaded does; another may not. Classes
        and functions say themselves where they are from; others are from where they are registered.
        """
        here = sys._getframe(1).f_globals.get("__name__", "")

        def add(member: M) -> M:
            named = getattr(member, "__qualname__", None)
            module = member.__module__ if named else here
            place = f"{module}.{named or name}"
            known = self._owner(name, module) or place
            if known != place:
                raise RegardError(
                    f"The {self.what} '{name}' is registered twice: in {known} and in {place}."
                    " Give one of them another name."
                )
            self._places[name], self._modules[name] = place, module
            self._members[name] = member  # type: ignore[assignment]  # M is a kind of T
            self.aliases.pop(name, None)
            self.aliases |= dict.fromkeys(aliases, name)
            return member

        return add

    def forget(self, name: str) -> None:
        """Take a member out, so that its name is free again."""
        for table in (self._members, self._places, self._modules):
            table.pop(name, None)

    def _owner(self, name: str, module: str) -> str | None:
        """The place that has a name already; Regard's own members come before all others'."""
        if is_outside(module):
            for home in self._likely_modules(name):
                if not is_outside(home):
                    import_module(home)
        if self.aliases.get(name, name) != name:
            if name in self.short:
                return None
            return self._places.get(self.aliases[name]) or self._files.get(self.aliases[name])
        file = self._files.get(name, module)
        return self._places.get(name) if file == module else file

    def _likely_modules(self, name: str) -> Sequence[str]:
        """The modules that may register a name: those called like its group, or else all."""
        group = name.split("/")[0]
        own = [module for module in self.modules if module.split(".")[-1] == group]
        return own if "/" in name else self.modules

    @cached_property
    def _files(self) -> dict[str, str]:
        """Name -> module of the members that are known by their files."""
        return {
            file.name.replace("_", "-") if self.dashes else file.name: f"{room}.{file.name}"
            for room in self.rooms
            if (spec := find_spec(room))
            for file in iter_modules(spec.submodule_search_locations)
            if not file.ispkg and not file.name.startswith("_")
        }

    def _homes(self, name: str) -> Iterator[str]:
        """The modules that may register a name, the likeliest first."""
        if name in self._files:
            yield self._files[name]
        group = name.split("/")[0]
        yield from sorted(self.modules, key=lambda module: module.split(".")[-1] != group)
        yield from self._files.values()

    def _find(self, name: str) -> str | None:
        """The name under which a member is filed, once what may hold it has been imported."""
        load_plugins()
        homes = self._homes(self.aliases.get(name, name))
        while (known := self.aliases.get(name, name)) not in self._members:
            if (module := next(homes, None)) is None:
                return None
            import_module(module)
        return known

    def group(self, first: str) -> list[str]:
        """The names `first/…`. A module that is called `first` is all that is imported."""
        load_plugins()
        for module in self._likely_modules(f"{first}/") or self.modules:
            import_module(module)
        return [name for name in self._members if name.split("/")[0] == first]

    def __getitem__(self, name: str) -> T:
        found = self._find(name)
        if found is None:
            raise RegardError(self.describe_unknown(name))
        return self._members[found]

    def describe_unknown(self, name: str) -> str:
        """The fault of a name that nobody has; the nearest may be an older name."""
        return unknown(self.what, name, self, self.aliases)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return self.aliases.get(name, name) in self._files or self._find(name) is not None

    def origin(self, name: str) -> str:
        """Where a member comes from: `regard`, or the module of a plugin. It is not imported."""
        name = self.aliases.get(name, name)
        module = self._files.get(name) or self._modules.get(name, "")
        return module if is_outside(module) else "regard"

    def __iter__(self) -> Iterator[str]:
        load_plugins()
        for module in self.modules:
            import_module(module)
        return iter(dict.fromkeys([*self._files, *sorted(self._members, key=self._rank)]))

    def _rank(self, name: str) -> int:
        """Where the module of a member stands: the order of names is not that of imports."""
        place = self._places.get(name, "")
        inside = (i for i, module in enumerate(self.modules) if place.startswith(f"{module}."))
        return next(inside, len(self.modules))

    def __len__(self) -> int:
        return len(list(iter(self)))
