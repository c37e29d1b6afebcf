"""What passes the named places of a module, and its attentions and cells, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.subjects.modules._found import Packed
from regard.subjects.modules._layout import choose_tensor
from regard.subjects.modules.at import Place

CELLS = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell)


class Heard:
    """All that was heard in one pass."""

    def __init__(self) -> None:
        self.calls: dict[str, list[Tensor]] = {}
        self.sites: dict[str, Any] = {}
        self.asked: dict[str, tuple[int, int, Any]] = {}  # attention -> lengths, and its output
        self.again: set[str] = set()  # attentions that were called more than once
        self.cells: dict[str, list[tuple[Any, Any]]] = {}  # module -> inputs and outputs


class Ears:
    """Hooks on a module's places, on its `nn.MultiheadAttention`s, and on its cells."""

    def __init__(self, module: nn.Module, places: dict[str, Place], packed: Mapping[str, Packed]):
        self.module, self.places, self.packed = module, places, packed
        self.known = dict(module.named_modules())
        self.replace: dict[str, Callable[[Tensor], Tensor]] = {}  # place -> what is put back

    @contextmanager
    def listening(self, cells: bool = False) -> Iterator[Heard]:
        """While it lasts, everything is heard; torch's shortcuts, which skip modules, are off."""
        heard = Heard()
        was = torch.backends.mha.get_fastpath_enabled()
        with ExitStack() as stack:
            torch.backends.mha.set_fastpath_enabled(False)
            stack.callback(torch.backends.mha.set_fastpath_enabled, was)
            for name, place in self.places.items():
                self._listen(stack, heard, name, place)
            for name, packed in self.packed.items():
                hook = packed.module.register_forward_hook(
                    self._attend(heard, name, packed), with_kwargs=True
                )
                stack.callback(hook.remove)
            if cells:
                for name, module in self.known.items():
                    if isinstance(module, CELLS):
                        hook = module.register_forward_hook(
                            self._keep(heard, name), with_kwargs=True
                        )
                        stack.callback(hook.remove)
            yield heard

    def _listen(self, stack: ExitStack, heard: Heard, name: str, place: Place) -> None:
        heard.calls[name] = []
        module = self.known[place.name]

        def before(_module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
            key = place.input or "0"
            given = {**{str(n): value for n, value in enumerate(args)}, **kwargs}
            if key not in given:
                raise RegardError(
                    f"'{place.name}' is not given an input '{key}'. It is given:"
                    f" {', '.join(given) or 'nothing'}."
                )
            bare = Place(place.text, place.name, None, None)
            heard.calls[name].append(choose_tensor(given[key], bare, name))

        def after(_module: nn.Module, _args: Any, out: Any) -> Any:
            heard.calls[name].append(choose_tensor(out, place, name))
            change = self.replace.get(name)
            return None if change is None else change(out)

        if place.input is not None:
            hook = module.register_forward_pre_hook(before, with_kwargs=True)
        else:
            hook = module.register_forward_hook(after)
        stack.callback(hook.remove)

    def _attend(self, heard: Heard, name: str, packed: Packed) -> Callable[..., Any]:
        def hook(_module: nn.Module, args: Any, kwargs: dict[str, Any], out: Any) -> Any:
            site, own = packed.attend(args, kwargs)
            if name in heard.asked:
                heard.again.add(name)
            heard.sites[name] = site
            heard.asked[name] = (site.queries.shape[2], site.keys.shape[2], (own, out[0], out[1]))
            return (own, out[1]) if packed.points.watched else None

        return hook

    def _keep(self, heard: Heard, name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, args: Any, kwargs: dict[str, Any], out: Any) -> None:
            given = (*args, *kwargs.values())
            heard.cells.setdefault(name, []).append((given, out))

        return hook
