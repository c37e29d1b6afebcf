"""Reproduce a paper: train what is missing, measure, judge, keep the result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import process_time

from regard.code import hash_code, join_hashes, texts_in
from regard.errors import RegardError, unknown
from regard.instruments import INSTRUMENTS
from regard.papers.framework.cost import add_hours, count_conditions
from regard.papers.framework.experiment import EXPERIMENTS, Experiment, Plan, Scale
from regard.papers.framework.result import Result, load, read_parts, result_path, results_folder
from regard.runs.config import RunConfig
from regard.runs.execution import forget
from regard.runs.executor import Monitor, run_all
from regard.runs.files import BUSY, as_json, content_hash, wait_for, write_noted, write_whole
from regard.runs.members import changed_code, made_by, warn_of_changes
from regard.runs.places import require_name
from regard.runs.progress import make_monitor
from regard.runs.provenance import provenance
from regard.runs.run import Run, runs_folder

MEASURED_BY = ("regard.papers", "regard.instruments", "regard.recordings")  # of Regard's own
# Raised whenever a change to an experiment changes what it measures on the same runs.
MEASURING = 1


def names_of(target: str) -> list[str]:
    """The experiments that `paper` or `paper/experiment` stands for."""
    group = EXPERIMENTS.group(target.split("/")[0])
    names = [name for name in group if target in (name, name.split("/")[0])]
    if not names:
        options = [*papers(), *EXPERIMENTS]
        raise RegardError(unknown("paper or experiment", target, options))
    return names


def papers() -> list[str]:
    """The papers that have experiments, in order."""
    return list(dict.fromkeys(name.split("/")[0] for name in EXPERIMENTS))


def reproduce(
    target: str,
    scale: Scale = "quick",
    runs: Path | None = None,
    results: Path | None = None,
    jobs: int | None = None,
    monitor: Monitor | None = None,
    say: Callable[[str], None] = lambda text: None,
    data: Mapping[str, str] | None = None,
    again: bool = False,
    progress: bool | None = None,
    on: str | None = None,
) -> list[Result]:
    """All experiments of a paper, or one. What is on disk already is not done again.

    A result is measured again when its rules, its files, or the code of its experiment or of the
    instruments in it have changed. With `again`, all are, and runs of other code are trained anew.
    A notebook shows how far it is; a script does with `progress=True`.

    `data` names files for experiments that want some, such as a corpus: {"english-french": path}.
    `on` says where runs are trained, as in `run_all`.

    All runs are trained first, side by side, so that no core waits; then each experiment is
    measured and written down.
    """
    results = results or results_folder()
    monitor = monitor or make_monitor(progress)
    made = make_possible(target, scale, data or {}, say)
    names = list(made)
    for name in names:
        made[name].earlier = read_parts(results, name, scale)
    plans = {name: made[name].plan(scale) for name in names}
    if again:
        _forget_changed(plans.values(), runs)
    hashes = {name: _hash(made[name], plans[name], scale, runs) for name in names}
    kept = [name for name in names if not again and _load_valid(results, name, scale, hashes[name])]
    todo = [name for name in names if name not in kept]
    warn_of_changes(run for name in kept for run in _there(plans[name], runs))
    faults: list[str] = []

    def train(wanted: Iterable[Plan]) -> None:
        configs = [config for plan in wanted for group in plan.values() for config in group]
        while configs:
            try:
                run_all(configs, runs, jobs, monitor, on=on)
                return
            except RegardError as error:  # what can be measured is measured all the same
                busy = [fault for fault in error.faults if _is_elsewhere(fault)]
                faults.extend(fault for fault in error.faults if fault not in [*busy, *faults])
                configs = _await_others(configs, busy, runs or runs_folder())

    train(plans[name] for name in todo)
    conditions = {name: _runs_of(plans[name], runs) for name in todo}
    first = dict(plans)
    done = [name for name in todo if _all_done(conditions[name])]
    going_on = done
    while going_on:  # with what follows from the runs so far
        further = {name: made[name].find_further(conditions[name], scale) for name in going_on}
        train(further.values())
        for name in going_on:
            plans[name] = {**plans[name], **further[name]}
            conditions[name] = _runs_of(plans[name], runs)
        done = [name for name in done if _all_done(conditions[name])]
        going_on = [name for name in going_on if further[name] and name in done]
    for name in done:
        say(f"measuring {name}")
        rests_on = _hash(made[name], first[name], scale, runs)
        _measure(name, made[name], scale, plans[name], conditions[name], results, rests_on)
    if faults:
        raise RegardError(*faults)
    return [result for name in names if (result := load(results, name, scale))]


def _forget_changed(plans: Iterable[Plan], root: Path | None) -> None:
    """Remove the runs that other code made."""
    for run in [run for plan in plans for run in _there(plan, root) if changed_code(run)]:
        if run.folder.is_dir():  # conditions share runs
            forget(run.config, root)


def _there(plan: Plan, root: Path | None) -> list[Run]:
    """The runs of a plan that are done."""
    return [run for runs in _runs_of(plan, root).values() for run in runs if run.done]


def _is_elsewhere(fault: str) -> bool:
    """Whether another process is at the run; one that waited for itself would wait for ever."""
    return BUSY in fault and f"(id {os.getpid()})" not in fault


def _await_others(configs: Sequence[RunConfig], busy: Sequence[str], root: Path) -> list[RunConfig]:
    """The runs that other processes were at, once they are not: done by then, mostly."""
    others = [config for config in configs if any(config.name in fault for fault in busy)]
    for config in others:
        wait_for(root / config.name)
    return others


def _runs_of(plan: Plan, root: Path | None) -> dict[str, list[Run]]:
    """The runs of a plan, trained or not, by condition."""
    return {
        condition: [Run((root or runs_folder()) / config.name, config) for config in configs]
        for condition, configs in plan.items()
    }


def _all_done(conditions: Mapping[str, Sequence[Run]]) -> bool:
    return all(run.done for runs in conditions.values() for run in runs)


def _make(names: Sequence[str], data: Mapping[str, str]) -> dict[str, Experiment]:
    """The experiments, told which data there is.

    A name that none of them wants is a fault, and so is a file that is not there: the runs that
    read it may come after hours of others.
    """
    wanted = sorted({want for name in names for want in EXPERIMENTS[name].wants})
    faults = [unknown("data", name, wanted) for name in data if name not in wanted]
    faults += [
        f"There is no file or folder {file}. Check --data {name}={file}."
        for name, file in data.items()
        if name in wanted and not Path(file).exists()
    ]
    if faults:
        raise RegardError(*faults)
    return {name: EXPERIMENTS[name](data) for name in names}


def make_possible(
    target: str, scale: Scale, data: Mapping[str, str], say: Callable[[str], None]
) -> dict[str, Experiment]:
    """The experiments that have what they need; the others are told of, and stay `not run`."""
    names = names_of(target)
    made = _make(names, data)
    lacking = {name: lack for name in names if (lack := made[name].lacks(scale))}
    told = [f"{name} needs {lack}" for name, lack in lacking.items()]
    if lacking and (names == [target] or len(lacking) == len(names)):
        raise RegardError(*told)
    for line in told:
        say(f"not run: {line}")
    return {name: made[name] for name in names if name not in lacking}


def _measure(
    name: str,
    experiment: Experiment,
    scale: Scale,
    plan: Plan,
    conditions: dict[str, list[Run]],
    results: Path,
    rests_on: str,
) -> None:
    started = process_time()
    findings = experiment.measure(conditions, scale)
    hours = add_hours(conditions, process_time() - started) + findings.hours_before
    coverage = experiment.coverage(scale, plan) or count_conditions(plan)
    rows = []
    for claim in experiment.rows():
        if claim.id not in findings.measures and not experiment.partial:
            raise RegardError(f"{name} gives no measures for its claim '{claim.id}'.")
        measures = findings.measures.get(claim.id, {})
        claim.check_measures(measures, experiment.partial)
        rows.append(claim.row(scale, measures, coverage, hours))
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
        coverage,
        hours,
        findings.parts,
    )
    folder = results / name.split("/")[0] / scale
    for figure in findings.figures:
        write_whole(folder / "figures" / require_name(f"{figure.name}.svg"), figure.svg().encode())
    write_noted(folder, result_path(results, name, scale), as_json(result.to_json()))


def _hash(experiment: Experiment, plan: Plan, scale: Scale, root: Path | None) -> str:
    """What a result rests on: rules, runs, code, and the files that are read besides."""
    rules = [str(MEASURING), *(claim.rule for claim in experiment.rows())]
    runs = [run for group in _runs_of(plan, root).values() for run in group]
    made = [f"{run.folder.name} {join_hashes(made_by(run))}" for run in runs]
    code = join_hashes(_code_of(experiment))
    files = [content_hash(path) for path in experiment.reads(scale)]
    return sha256("\n".join([*rules, *made, code, *files]).encode()).hexdigest()[:12]


def _code_of(experiment: Experiment) -> dict[str, str]:
    """The code of an experiment, of what it imports, and of the instruments that it names."""
    kind = type(experiment)
    named = [INSTRUMENTS[name] for name in INSTRUMENTS if name in texts_in(kind)]
    return hash_code([kind, *named], MEASURED_BY)


def _load_valid(results: Path, name: str, scale: Scale, rests_on: str) -> Result | None:
    try:
        result = load(results, name, scale)
    except RegardError:  # damaged or of another version: it is made again
        return None
    if result is None or result.plan != rests_on:
        return None
    judged = all(row["verdict"] != "not run" for row in result.claims)
    return result if judged else None  # a measure that a rule needs was not taken: take it
