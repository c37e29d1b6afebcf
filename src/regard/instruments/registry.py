"""What an instrument is: a function that measures one source, made to take one or many.

    @instrument(EntropyResult, Recordings())
    def entropy(recording: Recording, site: str | None = None) -> Entropy:
        \"\"\"One line that says what is measured.\"\"\"

`entropy(sources, site=…)` then takes a recording, a run, a path, or several of them as seeds,
checks its settings, and gives an `EntropyResult`. It is registered under its name, so that
`rec.inspect("entropy")` and `regard inspect RUN entropy` find it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_type_hints, overload

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from regard.errors import RegardError, nearest, together, unknown
from regard.instruments.result import Displayable, Result
from regard.instruments.sources import Recordings, Takes
from regard.plugins import RegardWarning, is_outside
from regard.recordings.adding import Summed, find_shards, steady
from regard.recordings.recording import Recording
from regard.registry import Registry

P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R", bound=Result[Any])
POOL = "pool"
LIMITS = {"ge": "{:g} or more", "gt": "more than {:g}", "le": "at most {:g}", "lt": "under {:g}"}


class Instrument(Generic[P, R]):
    """A measure of one source, as a function of one source or many."""

    def __init__(
        self,
        measure: Callable[Concatenate[Any, P], Any],
        result: type[R],
        takes: Takes,
        at_once: bool = False,
        renamed: Mapping[str, str] | None = None,
        sums: Sequence[type[Summed]] = (),
        not_sum: str = "",
    ):
        self.measure: Callable[..., Any] = measure
        self.result, self.takes, self.at_once = result, takes, at_once
        self.renamed = renamed or {}
        self.sums, self.not_sum = tuple(sums), not_sum
        update_wrapper(self, measure)
        every = list(signature(measure).parameters.values())
        source = every[0].replace(name="sources", annotation=Any)
        self.parameters = {p.name: p for p in every[1:]}
        self.__signature__ = Signature([source, *self.parameters.values()])

    __name__: str

    @overload
    def __call__(self, sources: Any, /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, sources: Any, /, *args: Any, **kwargs: Any) -> R: ...
    def __call__(self, sources: Any, /, *args: Any, **kwargs: Any) -> R:
        """Measure one source or several; several are seeds of one configuration."""
        first = dict(zip(self.parameters, args, strict=False))
        if len(first) < len(args) or first.keys() & kwargs.keys():
            raise RegardError(f"{self.result.name} takes {', '.join(self.parameters)}, each once.")
        pool, _ = self.read_pool(kwargs)
        parts: list[Callable[[], Any]] = [
            partial(self.takes.gather, sources),
            partial(self.read_settings, {**first, **kwargs}),
        ]
        things, (settings, options) = together(parts)
        opened = [self.takes.open(thing, settings, options) for thing in things]
        if not pool:
            self.takes.check_seeds(opened)
        self._warn_of_shards(opened)
        with steady(opened):
            if self.at_once:
                seeds = tuple(self.measure(opened, **settings))
            else:
                seeds = tuple(self.measure(source, **settings) for source in opened)
        return self.result(seeds, self.defaults | settings | _find_sample(opened))

    def _warn_of_shards(self, sources: Sequence[Any]) -> None:
        """What is no sum reads all shards in one process; whoever waits for it should know."""
        for source in sources:
            if self.not_sum and isinstance(source, Recording) and find_shards(source):
                text = (
                    f"{self.result.name} is not a sum over samples. {self.not_sum} It reads all"
                    f" {len(source)} samples in one process; sample=N takes N of them."
                )
                warnings.warn(text, RegardWarning, stacklevel=3)
                return

    @property
    def accepted(self) -> set[str]:
        """Every setting and option, by its name now or before."""
        return {POOL, *self.parameters, *self.takes.options, *self.renamed}

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The settings and their defaults."""
        return {name: p.default for name, p in self.parameters.items() if p.default is not p.empty}

    def read_settings(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The settings, converted to what the signature wants, and how sources are to be got.

        Texts are taken as the command line gives them. All faults come at once.
        """
        name, faults, read = self.result.name, [], {}
        _, values = self.read_pool(values)
        values = {self.renamed.get(key, key): value for key, value in values.items()}
        for key, value in values.items():
            if key not in self._adapters:
                known = [*self.parameters, *self.takes.options]
                faults.append(unknown(f"setting of {name}", key, known))
                continue
            if value is None and key in self.takes.options:
                continue
            try:
                adapter = self._adapters[key]
                read[key] = value if adapter is None else adapter.validate_python(value)
            except ValidationError as error:
                faults.append(f"{key}={value!r} does not fit {name}: {_explain(error)}")
            except RegardError as error:
                faults += error.faults
        needed = [key for key in self.parameters if key not in {**self.defaults, **values}]
        faults += [f"{name} needs {' and '.join(f'{key}=' for key in needed)}."] if needed else []
        if faults:
            raise RegardError(*faults)
        settings = {key: value for key, value in read.items() if key in self.parameters}
        return settings, {key: value for key, value in read.items() if key not in settings}

    def read_pool(self, values: Mapping[str, Any]) -> tuple[bool, Mapping[str, Any]]:
        """Whether to pool sources that are not seeds of one configuration, and all else."""
        try:
            pool = TypeAdapter(bool).validate_python(values.get(POOL, False))
        except ValidationError:
            if POOL in self.renamed:  # here it once was a setting
                return False, values
            raise RegardError(f"pool={values[POOL]!r} does not fit: it is true or false.") from None
        return pool, {key: value for key, value in values.items() if key != POOL}

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any] | None]:
        """How each is converted; of a type unknown to pydantic (None), it stays as it is."""
        hints = get_type_hints(self.measure, include_extras=True)
        found: dict[str, TypeAdapter[Any] | None] = {}
        for name, kind in {**self.takes.options, **{p: hints[p] for p in self.parameters}}.items():
            try:
                found[name] = TypeAdapter(kind)
            except PydanticSchemaGenerationError:
                found[name] = None
        return found

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.__doc__ or "").strip().splitlines()[0]


def _find_sample(sources: Sequence[Any]) -> dict[str, Any]:
    """The declared sample that was looked at instead of all samples, where there was one."""
    known = (source.metadata.origin for source in sources if isinstance(source, Recording))
    return next(({"sample": origin["sample"]} for origin in known if "sample" in origin), {})


def _explain(error: ValidationError) -> str:
    """Why a setting does not fit, and which of the texts that do was meant."""
    reason = error.errors()[0]
    context = reason.get("ctx", {})
    if limits := [words.format(context[kind]) for kind, words in LIMITS.items() if kind in context]:
        return f"it is {limits[0]}."
    options = re.findall("'(.*?)'", str(context.get("expected", "")))
    guess = nearest(str(reason["input"]), options)
    hint = f" Did you mean '{guess}'?" if guess else ""
    return f"{reason['msg'].lower()}.{hint}"


ROOMS = ("components", "scores", "units", "weights", "words", "interventions")
# Earlier names of instruments, which still work.
OLD_NAMES = {
    "agreements": "agreement",
    "decompose": "sizes",
    "inputs": "word_clouds",
    "lean": "pull",
    "paths": "trajectories",
    "readouts": "dictionary",
    "weights": "heatmaps",
}
INSTRUMENTS: Registry[Instrument[Any, Any]] = Registry(
    "instrument",
    rooms=[f"regard.instruments.{room}" for room in ROOMS],
    aliases=OLD_NAMES,
    short={"entropy": "attention_entropy"},
)


def instrument(
    result: type[R],
    takes: Takes | None = None,
    at_once: bool = False,
    renamed: Mapping[str, str] | None = None,
    sums: Sequence[type[Summed]] = (),
    not_sum: str = "",
) -> Callable[[Callable[Concatenate[S, P], Any]], Instrument[P, R]]:
    """Make an instrument of a function that measures one source, and register it.

    Its name is the function's, or in Regard's own rooms the file's. With `at_once`, the function
    gets all sources and gives as many measurements as it likes. `renamed` are earlier names of
    settings, which still work. `sums` are the passes over samples that it adds up by `add_up`;
    where it is no sum, `not_sum` says why in a sentence.
    """

    def make(measure: Callable[Concatenate[Any, P], Any]) -> Instrument[P, R]:
        made = Instrument(measure, result, takes or Recordings(), at_once, renamed, sums, not_sum)
        module = measure.__module__
        result.name = measure.__name__ if is_outside(module) else module.rpartition(".")[2]
        setattr(result, "__repr__", Displayable.__repr__)  # noqa: B010  # that of a dataclass is long
        return INSTRUMENTS.register(result.name)(made)

    return make


def inspect(what: Any, name: str, /, **settings: Any) -> Result[Any]:
    """Put an instrument on something: a recording, a run, a path, or several of them as seeds.

    `regard ls instruments` lists the names and settings; a run is recorded first where a recording
    is wanted, by `n`, `checkpoint`, `split`, `inputs` and `samples` (the seed of the samples).
    Several sources must be seeds of one configuration, unless `pool=True`.

    >>> regard.inspect([run0, run1, run2], "breakdown", top=5).table()     # doctest: +SKIP
    """
    found: Result[Any] = INSTRUMENTS[name](what, **settings)
    return found
