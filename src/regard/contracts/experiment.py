"""What every experiment and its claims keep."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.contracts.contract import Check, require, require_docs
from regard.papers.framework.claims import ledger
from regard.papers.framework.experiment import EXPERIMENTS, Experiment, Findings, Plan
from regard.runs import Run, RunConfig, execute

SHORT = {"updates": 2, "evaluate_every": 1, "checkpoint_every": 1, "milestones": ()}


@dataclass(frozen=True)
class Trial:
    """An experiment, tried on networks that are hardly trained."""

    name: str
    made: Experiment
    folder: Path

    @cached_property
    def plan(self) -> Plan:
        """Its runs at quick scale."""
        return self.made.plan("quick")

    @cached_property
    def findings(self) -> Findings:
        """What it finds on its own runs after two updates."""
        runs = {name: self.train(configs) for name, configs in self.plan.items()}
        while further := self.made.find_further(runs, "quick"):
            runs |= {name: self.train(configs) for name, configs in further.items()}
        return self.made.measure(runs, "quick")

    def train(self, configs: Sequence[RunConfig]) -> list[Run]:
        """The runs of some configurations, cut short."""
        short = []
        for config in configs:
            data = config.to_json()
            known = {key: value for key, value in SHORT.items() if key in data["training"]}
            data["training"] = {**data["training"], **known}
            short.append(RunConfig.from_json(data))
        return [execute(config, self.folder) for config in short]


def make_trial(name: str, data: dict[str, str]) -> Trial:
    """An experiment that is told which data there is."""
    return Trial(name, EXPERIMENTS[name](data), Path(tempfile.mkdtemp(prefix="regard-check-")))


def check_description(trial: Trial) -> None:
    """It is called PAPER/NAME, and says what it is."""
    require(trial.name.count("/") == 1, "An experiment is registered as PAPER/NAME.")
    require_docs(type(trial.made), "The experiment")
    require(trial.made.title and trial.made.about, "It has a title, and says what it is about.")


def check_claims(trial: Trial) -> None:
    """Its claims are in the ledger, and the ledger's claims of it are its own."""
    known = ledger()
    for claim in trial.made.claims:
        require(claim in known, f"The claim '{claim}' is in no ledger.")
        owner = known[claim].experiment
        require(owner == trial.name, f"The claim '{claim}' is of {owner} in the ledger.")
    for claim, row in known.items():
        own = row.experiment == trial.name
        require(not own or claim in trial.made.claims, f"`claims` does not have '{claim}'.")


def check_plan(trial: Trial) -> None:
    """Its plan is the same each time, with one configuration for each seed of a condition."""
    again = trial.made.plan("quick")
    names = {k: [config.name for config in v] for k, v in trial.plan.items()}
    require(names == {k: [config.name for config in v] for k, v in again.items()}, "Plans differ.")
    for condition, configs in trial.plan.items():
        one = len({config.name for config in configs}) == len(configs)
        require(one, f"The condition '{condition}' has a run twice.")


def check_findings(trial: Trial) -> None:
    """On networks that are hardly trained it measures all that its claims' rules speak of."""
    measures = trial.findings.measures
    for claim in trial.made.rows():
        require(claim.id in measures, f"`measure` gives nothing for '{claim.id}'.")
        missing = sorted(claim.names - set(measures[claim.id]))
        require(not missing, f"'{claim.id}' needs {missing}, which `measure` does not give.")
        require(claim.verdict(measures[claim.id]), f"'{claim.id}' cannot be judged.")
    for figure in trial.findings.figures:
        require(figure.caption.endswith("."), f"The caption of {figure.name} is a sentence.")


DECLARED: tuple[Check, ...] = (check_description, check_claims)
CONTRACT: tuple[Check, ...] = (*DECLARED, check_plan, check_findings)
