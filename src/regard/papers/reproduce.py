"""Reproduce a paper: train what is missing, measure, judge, keep the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from regard.display import Figure, Table
from regard.errors import RegardError, unknown
from regard.papers.claims import Claim, ledger
from regard.papers.experiment import Experiment, Measures, Plan, Scale, experiments
from regard.runs import Monitor, Run, run_all, runs_folder
from regard.runs.config import content_hash
from regard.runs.files import read_json, write_json, write_whole
from regard.runs.provenance import provenance
from regard.statistics import Estimate

# Raised whenever a change to an experiment changes what it measures on the same runs.
MEASURING = 1


def results_folder() -> Path:
    """Where results go unless told otherwise: $REGARD_RESULTS, or `results` here."""
    return Path(os.environ.get("REGARD_RESULTS", "results"))


@dataclass(frozen=True)
class Result:
    """What one experiment found at one scale, as kept on disk."""

    experiment: str
    scale: str
    title: str
    about: str
    found: tuple[str, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    claims: tuple[dict[str, Any], ...]  # rows of the ledger with what was measured
    settings: dict[str, Any]  # condition -> configuration of its first seed, seeds
    provenance: dict[str, Any]
    plan: str  # hash of the runs and rules that this result rests on

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            **self.__dict__,
            "tables": [table.to_json() for table in self.tables],
            "figures": [figure.to_json() for figure in self.figures],
        }

    @classmethod
    def read(cls, path: Path) -> Result:
        """From a file that `to_json` went into; verdicts are those of the ledger as it is now."""
        data = read_json(path)
        try:
            return cls(
                **{
                    **data,
                    "found": tuple(data["found"]),
                    "claims": tuple(_judged(row) for row in data["claims"]),
                    "tables": tuple(map(Table.from_json, data["tables"])),
                    "figures": tuple(map(Figure.from_json, data["figures"])),
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RegardError(
                f"{path} is not a result that this version of Regard can read"
                f" ({type(error).__name__}: {error}). Delete this file and reproduce again."
            ) from None


def _judged(row: dict[str, Any]) -> dict[str, Any]:
    """A stored row by the rule that is in the ledger now; as it was if the claim is gone."""
    claim = ledger().get(row["id"])
    if claim is None:
        return row
    measures = {name: Estimate.from_json(value) for name, value in row["measures"].items()}
    if not claim.names <= set(measures):
        return claim.row(None, None)
    return claim.row(row["scale"], measures)


def names_of(target: str) -> list[str]:
    """The experiments that `paper` or `paper/experiment` stands for."""
    names = [name for name in experiments if target in (name, name.split("/")[0])]
    if not names:
        options = [*papers(), *experiments]
        raise RegardError(unknown("paper or experiment", target, options))
    return names


def papers() -> list[str]:
    """The papers that have experiments, in order."""
    return list(dict.fromkeys(name.split("/")[0] for name in experiments))


def reproduce(
    target: str,
    scale: Scale = "quick",
    runs: Path | None = None,
    results: Path | None = None,
    jobs: int | None = None,
    monitor: Monitor | None = None,
    say: Callable[[str], None] = lambda text: None,
    data: Mapping[str, str] | None = None,
) -> list[Result]:
    """All experiments of a paper, or one. What is on disk already is not done again.

    `data` names files for experiments that want some, such as a corpus: {"english-french": path}.

    All runs are trained first, side by side, so that no core waits; then each experiment is
    measured and written down.
    """
    names = names_of(target)
    results = results or results_folder()
    made = _made(names, data or {})
    names = _possible(names, made, scale, say, alone=names == [target])
    plans = {name: made[name].plan(scale) for name in names}
    hashes = {name: _hash(made[name], plans[name], scale) for name in names}
    todo = [name for name in names if _kept(results, name, scale, hashes[name]) is None]
    faults: list[str] = []

    def train(wanted: Iterable[Plan]) -> None:
        configs = [config for plan in wanted for group in plan.values() for config in group]
        try:
            run_all(configs, runs, jobs, monitor)
        except RegardError as error:  # what can be measured is measured all the same
            faults.extend(fault for fault in error.faults if fault not in faults)

    train(plans[name] for name in todo)
    conditions = {name: _runs(plans[name], runs) for name in todo}
    further = {}  # what begins where the first runs ended
    for name in [name for name in todo if _done(conditions[name])]:
        further[name] = made[name].then(conditions[name], scale)
        plans[name] = {**plans[name], **further[name]}
        conditions[name] = _runs(plans[name], runs)
    train(further.values())
    for name in [name for name in todo if _done(conditions[name])]:
        say(f"measuring {name}")
        _measure(name, made[name], scale, plans[name], conditions[name], results, hashes[name])
    if faults:
        raise RegardError(*faults)
    return [result for name in names if (result := load(results, name, scale))]


def _runs(plan: Plan, root: Path | None) -> dict[str, list[Run]]:
    """The runs of a plan, trained or not, by condition."""
    return {
        condition: [Run((root or runs_folder()) / config.name, config) for config in configs]
        for condition, configs in plan.items()
    }


def _done(conditions: Mapping[str, Sequence[Run]]) -> bool:
    return all(run.done for runs in conditions.values() for run in runs)


def _made(names: Sequence[str], data: Mapping[str, str]) -> dict[str, Experiment]:
    """The experiments, told which data there is.

    A name that none of them wants is a fault, and so is a file that is not there: the runs that
    read it may come after hours of others.
    """
    wanted = sorted({want for name in names for want in experiments[name].wants})
    faults = [unknown("data", name, wanted) for name in data if name not in wanted]
    faults += [
        f"There is no file or folder {file}. Check --data {name}={file}."
        for name, file in data.items()
        if name in wanted and not Path(file).exists()
    ]
    if faults:
        raise RegardError(*faults)
    return {name: experiments[name](data) for name in names}


def _possible(
    names: list[str],
    made: Mapping[str, Experiment],
    scale: Scale,
    say: Callable[[str], None],
    alone: bool,
) -> list[str]:
    """The experiments that have what they need; the others are told of, and stay `not run`."""
    lacking = {name: lack for name in names if (lack := made[name].lacks(scale))}
    told = [f"{name} needs {lack}" for name, lack in lacking.items()]
    if lacking and (alone or len(lacking) == len(names)):
        raise RegardError(*told)
    for line in told:
        say(f"not run: {line}")
    return [name for name in names if name not in lacking]


def _measure(
    name: str,
    experiment: Experiment,
    scale: Scale,
    plan: Plan,
    conditions: dict[str, list[Run]],
    results: Path,
    rests_on: str,
) -> None:
    findings = experiment.measure(conditions, scale)
    rows = [_ruled(claim, scale, findings.measures[claim.id]) for claim in experiment.rows()]
    result = Result(
        name,
        scale,
        experiment.title,
        experiment.about,
        findings.found,
        findings.tables,
        findings.figures,
        tuple(rows),
        {
            condition: {"seeds": [c.seed for c in configs], **configs[0].placeless()}
            for condition, configs in plan.items()
        },
        provenance(),
        rests_on,
    )
    folder = results / name.split("/")[0] / scale
    for figure in findings.figures:
        write_whole(folder / "figures" / f"{figure.name}.svg", figure.svg().encode())
    write_json(_path(results, name, scale), result.to_json())


def _ruled(claim: Claim, scale: Scale, measures: Measures) -> dict[str, Any]:
    """The claim's row; where a measure that its rule needs could not be taken, `not run`."""
    return claim.row(scale, measures) if claim.names <= set(measures) else claim.row(None, None)


def _path(results: Path, name: str, scale: str) -> Path:
    paper, experiment = name.split("/")
    return results / paper / scale / f"{experiment}.json"


def _hash(experiment: Experiment, plan: Plan, scale: Scale) -> str:
    """What a result rests on: the rules, the runs, and the files that are read besides."""
    rules = [str(MEASURING), *(claim.rule for claim in experiment.rows())]
    runs = [config.name for group in plan.values() for config in group]
    files = [content_hash(path) for path in experiment.reads(scale)]
    return sha256("\n".join([*rules, *runs, *files]).encode()).hexdigest()[:12]


def _kept(results: Path, name: str, scale: Scale, rests_on: str) -> Result | None:
    try:
        result = load(results, name, scale)
    except RegardError:  # damaged or of another version: it is made again
        return None
    if result is None or result.plan != rests_on:
        return None
    judged = all(row["verdict"] != "not run" for row in result.claims)
    return result if judged else None  # a measure that a rule needs was not taken: take it


def load(results: Path, name: str, scale: str) -> Result | None:
    """A result from disk, or None if there is none."""
    path = _path(results, name, scale)
    return Result.read(path) if path.is_file() else None


def load_folder(folder: Path) -> list[Result]:
    """All results in a folder and below, in the order of the experiments."""
    names = {f"{name.split('/')[1]}.json" for name in experiments}
    results = [Result.read(path) for path in sorted(folder.rglob("*.json")) if path.name in names]
    if not results:
        raise RegardError(
            f"{folder} holds no results. `regard reproduce chapter36 --out {folder}` makes some."
        )
    order = {name: index for index, name in enumerate(experiments)}
    return sorted(results, key=lambda r: (order.get(r.experiment, len(order)), r.scale))


def claims(paper: str | None = None, results: Path | None = None) -> Iterator[dict[str, Any]]:
    """Every row of the ledger with what was measured, at full scale where there is that."""
    results = results or results_folder()
    known = list(dict.fromkeys(claim.paper for claim in ledger().values()))
    if paper is not None and paper not in known:
        raise RegardError(unknown("paper with claims", paper, known))
    for claim in ledger().values():
        if paper in (None, claim.paper):
            yield _row(claim.id, claim.experiment, results) or claim.row(None, None)


def _row(claim: str, experiment: str, results: Path) -> dict[str, Any] | None:
    for scale in ("full", "quick"):
        result = load(results, experiment, scale)
        row = next((row for row in result.claims if row["id"] == claim), None) if result else None
        if row:
            return row
    return None


def estimate(row: dict[str, Any]) -> Estimate | None:
    """The headline number of a row of `claims`, or None where nothing was measured."""
    measured = row["measures"].get(row["headline"])
    return Estimate.from_json(measured) if measured else None
