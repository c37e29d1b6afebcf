"""`timelapse`: any instrument at every checkpoint that a run kept, or over several subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regard.display import Figure, Table
from regard.display.film import film_page
from regard.errors import RegardError, unknown
from regard.instruments._checkpoints import open_checkpoints
from regard.instruments._course import Courses
from regard.instruments.registry import INSTRUMENTS, Instrument
from regard.instruments.result import Measured, Result
from regard.recordings.writer import Watch
from regard.statistics import Estimate

COLUMNS = 8  # numbers that a table for people has; files have all


@dataclass(frozen=True)
class Moment:
    """What an instrument found at one checkpoint, over all runs."""

    update: int
    estimates: dict[str, Estimate]
    figure: Figure


@dataclass(frozen=True)
class Course(Measured):
    """One run's numbers at each checkpoint."""

    at: dict[int, dict[str, float]]  # update -> name -> number

    def values(self) -> dict[str, float]:
        """`NAME at UPDATE`, in the order of the updates."""
        return {
            f"{name} at {update}": value
            for update, found in self.at.items()
            for name, value in found.items()
        }


@dataclass(frozen=True, repr=False)
class TimelapseResult(Result[Course]):
    """An instrument's numbers and figure at each checkpoint that all runs kept."""

    of: str = ""  # the instrument
    moments: tuple[Moment, ...] = ()
    left_out: dict[int, str] = field(default_factory=dict)  # update -> why nothing is to be seen
    name = "timelapse"

    @property
    def stem(self) -> str:
        """timelapse-INSTRUMENT"""
        return f"{self.name}-{self.of}"

    @property
    def updates(self) -> list[int]:
        """The checkpoints that are shown."""
        return [moment.update for moment in self.moments]

    @property
    def courses(self) -> Courses:
        """Every number over the updates where it is there."""
        found: Courses = Courses()
        for moment in self.moments:
            for name, value in moment.estimates.items():
                found.setdefault(name, {})[moment.update] = value
        return found

    def estimates(self) -> dict[str, Estimate]:
        """`NAME at UPDATE`, over seeds."""
        return {
            f"{name} at {moment.update}": value
            for moment in self.moments
            for name, value in moment.estimates.items()
        }

    def table(self, names: Sequence[str] | None = None) -> Table:
        """A row per checkpoint; the columns are the numbers named, or those that change most."""
        courses = self.courses
        chosen = list(names) if names is not None else courses.liveliest(COLUMNS)
        if wrong := [unknown("number", name, courses) for name in chosen if name not in courses]:
            raise RegardError(*wrong)
        rows = tuple(
            (update, *(_shorten(courses[name].get(update)) for name in chosen))
            for update in self.updates
        )
        few = f"; {len(chosen)} of {len(courses)} numbers, those that change most"
        title = f"{self.of} over training, {self.over_seeds}"
        if names is None and len(chosen) < len(courses):
            title += few
        if self.left_out:
            title += f"; nothing at {', '.join(map(str, self.left_out))}"
        return Table(title, ("update", *chosen), rows)

    def plain_table(self) -> Table:
        """The long form: a row per checkpoint and number."""
        rows = tuple(
            (update, name, *(f"{x:.9g}" for x in (value.mean, value.low, value.high)), value.n)
            for name, course in self.courses.items()
            for update, value in course.items()
        )
        return Table(self.stem, ("update", "number", "mean", "low", "high", "seeds"), rows)

    def figure(self) -> Figure:
        """The numbers that change most over updates, panels by what can be compared."""
        panels, shown, every = self.courses.panels()
        few = f" Shown are the {shown} of {every} that change most." if shown < every else ""
        band = f" Bands are 95 % intervals over {self.over_seeds}." if self.n > 1 else ""
        return Figure(
            self.stem,
            f"What `{self.of}` finds at each of {len(self.moments)} checkpoints.{few}{band}"
            f"{self._missing()}",
            panels,
        )

    def _missing(self) -> str:
        return "".join(f" Nothing at update {u}: {why}" for u, why in self.left_out.items())

    def page(self) -> str:
        """The instrument's own figure at each checkpoint, with a slider and a play button."""
        about = f"{self.over_seeds}.{self._missing()}"
        moments = [(f"update {moment.update}", moment.figure) for moment in self.moments]
        return film_page(f"{self.of} over training", moments, about)

    def to_json(self) -> dict[str, Any]:
        """The long form: every number at every checkpoint, with its interval and its values."""
        rows = [
            {"update": update, "number": name, **value.to_json()}
            for name, course in self.courses.items()
            for update, value in course.items()
        ]
        left_out = {str(update): why for update, why in self.left_out.items()}
        about = {"instrument": self.name, "of": self.of, "seeds": self.n}
        return {**about, "checkpoints": self.updates, "left_out": left_out, "rows": rows}


def timelapse(
    runs: Any,
    instrument: str,
    n: int = 1000,
    checkpoints: Sequence[int] | None = None,
    watch: Watch | None = None,
    **settings: Any,
) -> TimelapseResult:
    """An instrument at every kept checkpoint of a run, of several seeds' runs, or of subjects.

    Instruments of recordings get a fresh one of `n` samples, the same samples at each checkpoint;
    those of runs are asked for the checkpoint. One recording is in memory at a time. With several
    runs, every number is an estimate over them at the checkpoints that all have kept; they must
    be seeds of one configuration, unless `pool=True`. A checkpoint where the instrument has
    nothing to measure is left out, with its reason in `left_out`; the last one must be measured.
    `watch` is told how many measurements are done, and of how many.

    Of subjects, `runs` is a mapping from updates to subjects, or to functions that load one when
    it is its turn; they read the `pairs` that are given. A list of such mappings are seeds.

    >>> regard.timelapse(run, "breakdown", n=500, top=3).table()         # doctest: +SKIP
    >>> models = {n: lambda n=n: regard.hugging_face(f"checkpoint-{n}") for n in (500, 1000)}
    >>> regard.timelapse(models, "layers", pairs=pairs).table()          # doctest: +SKIP
    """
    found = _find(instrument, settings)
    pool, asking = found.read_pool(settings)
    many = open_checkpoints(runs, pool)
    asked = {**many.ask(found, n), **asking}
    found.read_settings(settings)
    updates = many.choose(checkpoints)
    moments: list[Moment] = []
    left_out: dict[int, str] = {}
    # The last first: what cannot be measured there is wrongly asked, and is said at once.
    for number, update in enumerate([updates[-1], *updates[:-1]]):
        try:
            seeds = []
            for place in range(many.count):
                seeds.append(many.measure(found, place, update, asked))
                if watch is not None:
                    watch(number * many.count + place + 1, len(updates) * many.count)
        except RegardError as error:
            if not number:
                raise
            left_out[update] = " ".join(error.faults)
            continue
        whole = replace(seeds[0], seeds=tuple(m for seed in seeds for m in seed.seeds))
        moments.append(Moment(update, whole.estimates(), whole.figure()))
    moments.sort(key=lambda moment: moment.update)
    courses = [
        Course({m.update: {k: v.values[seed] for k, v in m.estimates.items()} for m in moments})
        for seed in range(many.count)
    ]
    of = found.result.name
    return TimelapseResult(tuple(courses), settings, of, tuple(moments), left_out)


def _find(name: str, settings: Mapping[str, Any]) -> Instrument[Any, Any]:
    if "checkpoint" in settings:
        raise RegardError(
            "A timelapse goes over checkpoints: give checkpoints instead of checkpoint."
        )
    return INSTRUMENTS[name]


def _shorten(value: Estimate | None) -> Estimate | float | None:
    """With one seed there is no interval to show."""
    return value.mean if value is not None and value.n == 1 else value
