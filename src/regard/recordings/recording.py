"""The recording: what a model did, as named arrays with named axes. The waist of the system.

Instruments read recordings and know nothing of how they came about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import RegardError, unknown
from regard.recordings.storage import Array, File, Storage
from regard.tasks.vocabulary import PAD, Vocabulary

FORMAT = 1
ROWS = 1000  # samples in a piece, unless told otherwise

Chunk = dict[str, Array]  # the arrays of some samples

# The axes of the arrays that every recording may have; those of sites and gates follow below.
AXES: dict[str, tuple[str, ...]] = {
    "encoder.states": ("sample", "source", "hidden"),
    "encoder.words": ("sample", "source"),
    "encoder.mask": ("sample", "source"),
    "decoder.states": ("sample", "target", "hidden"),
    "decoder.words": ("sample", "target"),
    "decoder.mask": ("sample", "target"),
    "targets": ("sample", "target"),
    "predictions": ("sample", "target"),
    "alignment": ("sample", "target"),
    "readout": ("vocab", "features"),
    "readout.bias": ("vocab",),
}
SIDES = {"encoder": "source", "decoder": "target"}
PARTS = ("queries", "keys", "scores", "weights", "vector")


@dataclass(frozen=True)
class SiteInfo:
    """One attention site: who asks, who answers, how scores follow, and how many heads.

    The arrays `SITE.queries`, `SITE.keys`, `SITE.scores` and `SITE.weights` have a head axis
    after the sample axis where there are several heads.
    """

    scorer: str = "dot"
    heads: int = 1
    asks: str = "decoder"
    answers: str = "encoder"
    plain: bool = False  # queries and keys are the states themselves
    projected: bool = False  # weights mix V h, a learned map of the states, instead of the states
    lag: int = 0  # 1 where the query of a step is made before the step's word is read

    @property
    def bilinear(self) -> bool:
        """Whether scores = queries · keys, so that the decomposition is exact."""
        return self.scorer == "dot"

    def heard(self, words: Array) -> Array:
        """The last word that each query has heard, given the words fed. (sample, target)

        With a lag that is the word of the step before, and at the first step `<PAD>`: none yet.
        """
        if not self.lag:
            return words
        earlier = np.full_like(words, PAD)
        earlier[:, self.lag :] = words[:, : -self.lag]
        return earlier

    def axes(self, part: str) -> tuple[str, ...]:
        """The axes of one of the site's arrays."""
        head = ("head",) if self.heads > 1 else ()
        asks, answers = SIDES[self.asks], SIDES[self.answers]
        ends = {"queries": (asks, "features"), "keys": (answers, "features")}
        if part == "vector":
            return ("head", "features")
        return ("sample", *head, *ends.get(part, (asks, answers)))


@dataclass(frozen=True)
class Metadata:
    """What a recording is of."""

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    sites: dict[str, SiteInfo] = field(default_factory=dict)
    readout: dict[str, tuple[int, int]] = field(default_factory=dict)  # part -> its columns
    origin: dict[str, Any] = field(default_factory=dict)  # run, weights, task, checkpoint, …
    ends: tuple[bool, bool] = (True, True)  # whether each side's vocabulary has an end token

    def to_json(self) -> str:
        """As it stands in the file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Metadata:
        """The inverse of `to_json`."""
        data = json.loads(text)
        if data.pop("format") != FORMAT:
            raise ValueError("it is of another version of Regard")
        return cls(
            tuple(data["source_words"]),
            tuple(data["target_words"]),
            {name: SiteInfo(**site) for name, site in data["sites"].items()},
            {name: (int(a), int(b)) for name, (a, b) in data["readout"].items()},
            data["origin"],
            tuple(data.get("ends", (True, True))),
        )


@dataclass(frozen=True)
class Recording:
    """What a model did with some samples.

    >>> recording = regard.load_recording("aed.safetensors")          # doctest: +SKIP
    >>> recording["encoder.states"].shape                             # doctest: +SKIP
    (1000, 20, 128)
    """

    storage: Storage
    metadata: Metadata

    def __post_init__(self) -> None:
        for name in ("encoder.words", "encoder.mask"):
            if name not in self.storage.names():
                raise RegardError(f"A recording needs '{name}'. See docs/recordings.md.")

    def __len__(self) -> int:
        return self.storage.shape("encoder.words")[0]

    def __contains__(self, name: object) -> bool:
        return name in self.storage.names()

    def __getitem__(self, name: str) -> Array:
        """One array as a whole. Of a large recording rather take `chunks`."""
        return self.storage.read(self._known(name))

    def __repr__(self) -> str:
        task = self.metadata.origin.get("task", "")
        return f"Recording({len(self)} samples{' of ' + task if task else ''}: {self.names()})"

    def names(self) -> list[str]:
        """The arrays that are there."""
        return self.storage.names()

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of one array."""
        return self.storage.shape(self._known(name))

    def axes(self, name: str) -> tuple[str, ...]:
        """The names of an array's axes."""
        site, _, part = self._known(name).rpartition(".")
        if site in self.metadata.sites and part in PARTS:
            return self.metadata.sites[site].axes(part)
        if ".gates." in name:
            return ("sample", SIDES[name.split(".")[0]], "hidden")
        return AXES[name]

    def chunks(self, names: Sequence[str] | None = None, rows: int = ROWS) -> Iterator[Chunk]:
        """All samples, some at a time, in order; only the arrays named, or all of them."""
        if rows < 1:
            raise RegardError(f"rows={rows} does not fit: a chunk has 1 sample or more.")
        wanted = [
            name
            for name in (self.names() if names is None else map(self._known, names))
            if self.axes(name)[0] == "sample"
        ]
        for start in range(0, len(self), rows):
            yield {name: self.storage.read(name, start, start + rows) for name in wanted}

    def site(self, name: str | None = None) -> str:
        """A site by its name, or the one there is: the last that looks from target to source."""
        sites = self.metadata.sites
        if not sites:
            raise RegardError(
                "This recording has no attention site, so there are no scores to take apart."
                " Record a model with attention, or give queries and keys with your arrays."
            )
        if name is None:
            crossing = [
                n for n, s in sites.items() if (s.asks, s.answers) == ("decoder", "encoder")
            ]
            return (crossing or list(sites))[-1]
        if name not in sites:
            raise RegardError(unknown("attention site", name, sites))
        return name

    def readout(self, part: str) -> Array:
        """The readout vectors that a part of the features meets: `state` or `context`.

        -> (vocab, hidden); without the array, or the part, there is nothing to read.
        """
        if "readout" not in self or part not in self.metadata.readout:
            there = ", ".join(self.metadata.readout) or "none"
            raise RegardError(
                f"This recording has no readout of the {part} (there is: {there})."
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
        return Vocabulary(self.words(side), self.metadata.ends[side != "encoder"])

    def _known(self, name: str) -> str:
        if name not in self.storage.names():
            full = [f"{self.site()}.{name}"] if name in PARTS and self.metadata.sites else []
            if full and full[0] in self.storage.names():
                return full[0]
            raise RegardError(unknown("array", name, self.names()))
        return name


def load_recording(path: str | Path) -> Recording:
    """The recording in a file, read lazily: nothing is in memory until it is asked for."""
    path = Path(path)
    if not path.is_file():
        raise RegardError(
            f"There is no recording {path}. `regard record RUN --out {path}` makes one."
        )
    file = File(path)
    try:
        if "regard" not in file.metadata:
            raise ValueError("nothing in it says that Regard wrote it")
        return Recording(file, Metadata.from_json(file.metadata["regard"]))
    except (KeyError, TypeError, ValueError, AttributeError, RegardError) as error:
        raise RegardError(
            f"{path} is a safetensors file, but not a recording that this version of Regard"
            f" can read ({error}). Record again: `regard record RUN`."
        ) from None


def numbers(values: Any) -> Array:
    """Tensors or arrays as numpy."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
