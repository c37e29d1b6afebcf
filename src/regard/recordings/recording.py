"""The recording: what a model did, as named arrays with named axes. The waist of the system.

Instruments read recordings and know nothing of how they came about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.display import Table
from regard.errors import RegardError, kind_of, unknown
from regard.recordings.describing import (
    check_kinds,
    check_shapes,
    check_site,
    check_types,
    is_known,
    limits_of,
)
from regard.recordings.manifest import is_sharded, refuse_unfinished
from regard.recordings.site import AXIS_OF, PARTS, Site
from regard.recordings.storage import Array, File, Storage, WithHeads
from regard.tasks.vocabulary import Vocabulary

if TYPE_CHECKING:
    from regard.instruments.result import Result
    from regard.recordings.decomposition import Decomposition

FORMAT = 2
ROWS = 1000

Chunk = dict[str, Array]  # the arrays of some samples

# The axes of the arrays that every recording may have; those of sites and gates follow below.
AXES: dict[str, tuple[str, ...]] = {
    "encoder.states": ("sample", "source", "hidden"),
    "encoder.words": ("sample", "source"),
    "encoder.mask": ("sample", "source"),
    "decoder.states": ("sample", "target", "hidden"),
    "decoder.words": ("sample", "target"),
    "decoder.mask": ("sample", "target"),
    **dict.fromkeys(("targets", "predictions", "alignment"), ("sample", "target")),
    **dict.fromkeys(("lexical", "proxy", "saliency", "log_odds"), ("sample", "target", "source")),
    "readout": ("vocab", "features"),
    "readout.bias": ("vocab",),
    "readout.words": ("vocab",),
}


@dataclass(frozen=True)
class Metadata:
    """What a recording is of."""

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    sites: dict[str, Site] = field(default_factory=dict)
    readout: dict[str, tuple[int, int]] = field(default_factory=dict)  # part -> its columns
    origin: dict[str, Any] = field(default_factory=dict)  # run, weights, task, checkpoint, …
    ends: tuple[bool, bool] = (True, True)  # whether each side's vocabulary has an end token
    gates: dict[str, str] = field(default_factory=dict)  # gate -> what it does when it is open
    also: dict[str, dict[str, Any]] = field(default_factory=dict)  # how further arrays were made
    # Of each side whose words are numbered otherwise: pad, start, end, special, pieces.
    conventions: dict[str, dict[str, Any]] = field(default_factory=dict)
    further: tuple[str, ...] = ()  # words that mean nothing, beside the usual three
    compact: bool = False  # words are numbered by what was seen, see `Recording.compact`

    def to_json(self) -> str:
        """As it stands in the file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Metadata:
        """The inverse of `to_json`; also of what files of format 1 have."""
        data = json.loads(text)
        check_types(data)
        version = data.pop("format")
        if type(version) is not int or version not in (1, FORMAT):
            raise ValueError("it is of another version of Regard")
        for name in {"source_words", "target_words", "ends", "further"} & set(data):
            data[name] = tuple(data[name])
        data["readout"] = {name: (int(a), int(b)) for name, (a, b) in data["readout"].items()}
        data["sites"] = {
            name: check_site(
                name, Site(**site) if version == FORMAT else Site.from_format_1(name, site)
            )
            for name, site in data["sites"].items()
        }
        return cls(**data)


@dataclass(frozen=True)
class Recording:
    """What a model did with some samples.

    >>> recording = regard.load_recording("aed.safetensors")          # doctest: +SKIP
    >>> recording["encoder.states"].shape                             # doctest: +SKIP
    (1000, 20, 128)
    >>> recording.inspect("breakdown", top=5).table()                 # doctest: +SKIP
    """

    storage: Storage
    metadata: Metadata
    rows: int = ROWS  # samples in a piece: what is in memory at a time
    # Over shards: how many processes add up (None: as many as there are cores), and who sees it.
    jobs: int | None = None
    on: str | None = None  # where: `local`, `ray` or `ray://HOST:PORT`; None: as $REGARD_ON says
    watch: Callable[[int, int], None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("encoder.words", "encoder.mask"):
            if name not in self.storage.names():
                raise RegardError(f"A recording needs '{name}'. See docs/recordings.md.")

    def __len__(self) -> int:
        return self.storage.shape("encoder.words")[0]

    def __contains__(self, name: object) -> bool:
        return name in self.storage.names()

    def __iter__(self) -> Iterator[str]:
        """The names of its arrays, as `in` knows them; `len` counts samples."""
        return iter(self.names())

    def __getitem__(self, name: str) -> Array:
        """One array as a whole. Of a large recording rather take `chunks`."""
        return self.storage.read(self._known(name))

    def __repr__(self) -> str:
        return f"<{self._title()}: {', '.join(self.names())}>"

    def _repr_html_(self) -> str:
        rows = tuple((name, " ".join(self.axes(name)), self.shape(name)) for name in self.names())
        return Table(self._title(), ("array", "axes", "shape"), rows).html()

    def _title(self) -> str:
        task = self.metadata.origin.get("task", "")
        return f"Recording of {len(self)} samples{' of ' + task if task else ''}"

    def names(self) -> list[str]:
        """The arrays that are there."""
        return self.storage.names()

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of one array."""
        return self.storage.shape(self._known(name))

    def axes(self, name: str) -> tuple[str, ...]:
        """The names of an array's axes."""
        return axes_of(self._known(name), self.metadata.sites)

    def chunks(
        self, names: Sequence[str] | None = None, rows: int | None = None
    ) -> Iterator[Chunk]:
        """All samples, some at a time, in order; only the arrays named, or all of them."""
        rows = self.rows if rows is None else rows
        if rows < 1:
            raise RegardError(f"rows={rows} does not fit: a chunk has 1 sample or more.")
        wanted = [
            name
            for name in (self.names() if names is None else map(self._known, names))
            if self.axes(name)[0] == "sample"
        ]
        for start in range(0, len(self), rows):
            yield {name: self.storage.read(name, start, start + rows) for name in wanted}

    def sample(self, number: int, names: Sequence[str]) -> Chunk:
        """Some arrays of one sample, without the sample axis."""
        known = map(self._known, names)
        return {name: self.storage.read(name, number, number + 1)[0] for name in known}

    def site(self, name: str | None = None, layer: int | None = None) -> str:
        """A site by its name, or the one there is: the last that looks from target to source.

        With `layer`, the one in that layer of the query side.
        """
        sites = self.metadata.sites
        if not sites:
            raise RegardError(
                "This recording has no attention site, so there are no scores to take apart."
                " Record a model with attention, or give queries and keys with your arrays."
            )
        if name is not None and name not in sites:
            raise RegardError(unknown("attention site", name, sites))
        known = [name] if name is not None else list(sites)
        fitting = [n for n in known if layer in (None, sites[n].layer)]
        if not fitting:
            layers = ", ".join(map(str, sorted({sites[n].layer for n in known})))
            where = "there are" if name is None else f"'{name}' is in"
            raise RegardError(f"layer={layer} does not fit: {where} {layers}.")
        return ([n for n in fitting if sites[n].crosses] or fitting)[-1]

    def readout(self, part: str) -> Array:
        """The readout vectors that a part of the features meets: `state` or `context`.

        -> (vocab, hidden); without the array, or the part, there is nothing to read.
        """
        if "readout" not in self or part not in self.metadata.readout:
            parts = ", ".join(self.metadata.readout) or "none"
            raise RegardError(
                f"This recording has no readout of the {part} (there is: {parts})."
                " Only models whose output layer reads it directly have one."
            )
        first, last = self.metadata.readout[part]
        return self["readout"][:, first:last]

    def words(self, side: str) -> tuple[str, ...]:
        """The words of one side's vocabulary, by number."""
        meta = self.metadata
        return meta.source_words if side == "encoder" else meta.target_words

    def vocabulary(self, side: str) -> Vocabulary:
        """One side's vocabulary."""
        ends, further = self.metadata.ends[side != "encoder"], self.metadata.further
        return Vocabulary(self.words(side), ends, frozenset(further))

    @property
    def compact(self) -> Recording:
        """The recording as instruments read it: its words are numbered by what was seen.

        That is the recording itself, unless its words are numbered as elsewhere, or are very many.
        """
        return self._renumbered or self

    @cached_property
    def _renumbered(self) -> Recording | None:
        from regard.recordings.compact import compact

        return None if self.metadata.compact else compact(self)

    @cached_property
    def decomposition(self) -> Decomposition:
        """h = μ + χ + Δ of both sides' states (aitken2021, eqs. 1-2): made once, and kept."""
        from regard.recordings.decomposition import Decomposition

        view = self.compact
        return Decomposition.of(self) if view is self else view.decomposition

    def check(
        self, logits: Any = None, weights: Any = None, tolerance: float | None = None
    ) -> dict[str, float]:
        """Refuse a recording that is not what its source gave; see `check_recording`.

        >>> rec.check(logits=logits, weights={"decoder.5.cross": attentions})   # doctest: +SKIP
        """
        from regard.recordings.check import check_recording

        return check_recording(self, logits, weights, tolerance)

    def inspect(self, instrument: str, **settings: Any) -> Result[Any]:
        """Put an instrument on this recording: the same names and settings as `regard inspect`."""
        from regard.instruments import inspect

        return inspect(self, instrument, **settings)

    def _known(self, name: str) -> str:
        if name not in self.storage.names():
            full = [f"{self.site()}.{name}"] if name in PARTS and self.metadata.sites else []
            if full and full[0] in self.storage.names():
                return full[0]
            raise RegardError(unknown("array", name, self.names()))
        return name


def axes_of(name: str, sites: dict[str, Site]) -> tuple[str, ...]:
    """The names of the axes of an array by its full name."""
    site, _, part = name.rpartition(".")
    if site in sites and part in PARTS:
        return sites[site].axes(part)
    if name.split(".")[1:2] in (["gates"], ["layers"]):
        return ("sample", AXIS_OF[name.split(".")[0]], "hidden")
    return AXES[name]


def open_recording(what: Any) -> Recording:
    """A recording as it is, or the one in a file."""
    if isinstance(what, (str, Path)):
        return load_recording(what)
    if not isinstance(what, Recording):
        raise RegardError(
            f"{kind_of(what)} is not a recording. Give one, or the path of its file; a run"
            " is recorded by run.record()."
        )
    return what


def load_recording(path: str | Path) -> Recording:
    """The recording in a file, or in a folder of shards, read lazily: nothing is in memory until
    it is asked for."""
    from regard.recordings.shards import load_shards

    if not isinstance(path, (str, Path)):
        raise RegardError(f"{kind_of(path)} is not the path of a recording.")
    path = Path(path)
    return load_shards(path) if is_sharded(path) else load_file(path)


def load_file(path: Path) -> Recording:
    """The recording in one file."""
    refuse_unfinished(path)
    if not path.is_file():
        raise RegardError(
            f"There is no recording {path}. `regard record RUN --out {path}` makes one."
        )
    file = File(path)
    try:
        if "regard" not in file.metadata:
            raise ValueError("nothing in it says that Regard wrote it")
        text = file.metadata["regard"]
        metadata = Metadata.from_json(text)
        storage: Storage = file
        if json.loads(text)["format"] == 1:
            storage = WithHeads(file, _headless(file, metadata))
        recording = Recording(storage, metadata)
        _check_arrays(recording, file)
        return recording
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, RegardError) as error:
        raise RegardError(
            f"{path} is a safetensors file, but not a recording that this version of Regard"
            f" can read ({error}). Record again: `regard record RUN`."
        ) from None


def _check_arrays(recording: Recording, file: File) -> None:
    """Hold what a file says of its arrays against the arrays, before any of them is read."""
    metadata, names = recording.metadata, recording.names()
    if strange := [name for name in names if not is_known(name, metadata.sites, AXES)]:
        raise ValueError(f"it has an array '{strange[0]}', which no recording has")
    shapes = {name: recording.shape(name) for name in names}
    axes = {name: recording.axes(name) for name in names}
    check_shapes(shapes, axes, metadata.sites, metadata.readout)
    check_kinds(file.kinds())
    words = len(metadata.source_words), len(metadata.target_words)
    file.limits.update(limits_of(words, shapes))


def _headless(file: File, metadata: Metadata) -> frozenset[str]:
    """The arrays of single-headed sites, which have no head axis in files of format 1."""
    return frozenset(
        f"{name}.{part}"
        for name, site in metadata.sites.items()
        if site.heads == 1
        for part in PARTS
        if part != "vector" and f"{name}.{part}" in file.names()
    )


def as_array(values: Any) -> Array:
    """Tensors or arrays as numpy; half precision becomes single."""
    if not hasattr(values, "detach"):
        found = np.asarray(values)
        return found.astype(np.float32) if found.dtype == np.float16 else found
    values = values.detach().cpu()
    short = values.is_floating_point() and values.element_size() < 4
    array: Array = (values.float() if short else values).numpy()
    return array
