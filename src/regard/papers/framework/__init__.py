"""What every paper needs: experiments, claims, rules, and the way to reproduce them."""

from regard.papers.framework.experiment import (
    EXPERIMENTS,
    Experiment,
    Findings,
    Measures,
    Plan,
    Runs,
    Scale,
)

__all__ = ["EXPERIMENTS", "Experiment", "Findings", "Measures", "Plan", "Runs", "Scale"]
