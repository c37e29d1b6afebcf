"""What the sources say: their experiments, and their claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

PAPERS = ("chapter36", "baan2019", "aitken2021", "snell2021", "across")  # each with a claims.toml

if TYPE_CHECKING:
    from regard.papers.framework.claims import LEDGERS as LEDGERS
    from regard.papers.framework.claims import Claim as Claim
    from regard.papers.framework.claims import ledger as ledger
    from regard.papers.framework.experiment import EXPERIMENTS as EXPERIMENTS
    from regard.papers.framework.experiment import Experiment as Experiment
    from regard.papers.framework.experiment import Findings as Findings
    from regard.papers.framework.reproduce import papers as papers
    from regard.papers.framework.reproduce import reproduce as reproduce
    from regard.papers.framework.result import Result as Result
    from regard.papers.framework.result import claims as claims
    from regard.papers.framework.result import load_folder as load_folder
else:
    __getattr__, __dir__, __all__ = attach(__name__)
