"""What a timelapse goes over: the checkpoints of runs, or subjects by the update they are of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.errors import RegardError
from regard.instruments.registry import Instrument
from regard.instruments.result import Result
from regard.instruments.sources import Runs
from regard.runs import Run
from regard.subjects.subject import Subject

BY_UPDATE = (
    "Say which update each subject is of: {1000: subject, 2000: subject}; several such mappings in"
    " a list are seeds."
)


class Checkpoints(ABC):
    """Some seeds, each at some updates."""

    count: int  # of seeds

    @abstractmethod
    def kept(self) -> dict[str, list[int]]:
        """The updates that each seed has, by the seed's name."""

    @abstractmethod
    def measure(self, found: Instrument[Any, Any], seed: int, update: int, asked: Any) -> Any:
        """What an instrument says of one seed at one update."""

    @abstractmethod
    def ask(self, found: Instrument[Any, Any], n: int) -> dict[str, Any]:
        """What is asked of it besides; one that cannot be asked is refused."""

    def choose(self, wanted: Sequence[int] | None) -> list[int]:
        """The checkpoints to look at, in order: all that every seed has, or those wanted."""
        kept = self.kept()
        if wanted is None:
            shared = sorted(set.intersection(*map(set, kept.values())))
            if not shared:
                known = "; ".join(f"{name}: {_list(one)}" for name, one in kept.items())
                raise RegardError(f"There is no checkpoint that all runs kept ({known}).")
            return shared
        faults = [
            f"{name} has no checkpoint {update}. Kept: {_list(one)}."
            for name, one in kept.items()
            for update in wanted
            if update not in one
        ]
        if faults or not wanted:
            raise RegardError(*faults or ["Name a checkpoint or more, or none for all."])
        return sorted(set(wanted))


def _list(updates: Sequence[int]) -> str:
    return ", ".join(map(str, updates)) or "none"


class OfRuns(Checkpoints):
    """The checkpoints that runs kept."""

    def __init__(self, runs: Sequence[Run]):
        self.runs, self.count = runs, len(runs)

    def kept(self) -> dict[str, list[int]]:
        """Those in each run's folder."""
        return {str(run.folder): run.checkpoints() for run in self.runs}

    def ask(self, found: Instrument[Any, Any], n: int) -> dict[str, Any]:
        """How many samples, where it is asked of."""
        accepted = {*found.parameters, *found.takes.options}
        if "checkpoint" not in accepted:
            raise RegardError(
                f"'{found.result.name}' cannot be asked at a checkpoint, so there is no timelapse."
            )
        return {"n": n} if "n" in accepted else {}

    def measure(
        self, found: Instrument[Any, Any], seed: int, update: int, asked: Any
    ) -> Result[Any]:
        """Of the run at that checkpoint."""
        result: Result[Any] = found(self.runs[seed], checkpoint=update, **asked)
        return result


class OfSubjects(Checkpoints):
    """Subjects by update; a function that gives one is called when it is its turn."""

    def __init__(self, seeds: Sequence[Mapping[int, Subject | Callable[[], Subject]]]):
        self.seeds, self.count = seeds, len(seeds)
        faults = [
            f"{update!r} is no update: a whole number, 0 or more."
            for seed in seeds
            for update in seed
            if isinstance(update, bool) or not isinstance(update, int) or update < 0
        ]
        strange = [
            one
            for s in seeds
            for one in s.values()
            if not (isinstance(one, Subject) or callable(one))
        ]
        if strange:
            faults.append(f"A {type(strange[0]).__name__} is no subject. {BY_UPDATE}")
        if faults or not all(seeds):
            raise RegardError(*faults or [f"There is no subject to look at. {BY_UPDATE}"])

    def kept(self) -> dict[str, list[int]]:
        """The updates of each mapping."""
        return {f"Seed {number}": sorted(seed) for number, seed in enumerate(self.seeds, start=1)}

    def ask(self, found: Instrument[Any, Any], n: int) -> dict[str, Any]:
        """Nothing: samples are the pairs that are given."""
        return {}

    def measure(
        self, found: Instrument[Any, Any], seed: int, update: int, asked: Any
    ) -> Result[Any]:
        """Of the subject, loaded now where a function gives it."""
        one = self.seeds[seed][update]
        result: Result[Any] = found(one if isinstance(one, Subject) else one(), **asked)
        return result


def open_checkpoints(things: Any, pool: bool) -> Checkpoints:
    """Runs, which must be seeds of one configuration unless `pool`; or mappings of subjects."""
    if isinstance(things, Mapping):
        return OfSubjects([things])
    several = list(things) if isinstance(things, (list, tuple)) else [things]
    if several and all(isinstance(one, Mapping) for one in several):
        return OfSubjects(several)
    if any(isinstance(one, Subject) for one in several):
        raise RegardError(f"A subject has no checkpoints of its own. {BY_UPDATE}")
    takes = Runs()
    runs = [takes.open(run, {}, {}) for run in takes.gather(things)]
    if not pool:
        takes.check_seeds(runs)
    return OfRuns(runs)
