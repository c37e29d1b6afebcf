"""What the sources say: their experiments, and the ledger of their claims."""

from regard.papers import aitken2021 as aitken2021
from regard.papers import baan2019 as baan2019
from regard.papers import chapter36 as chapter36
from regard.papers import demo as demo
from regard.papers import snell2021 as snell2021
from regard.papers.claims import Claim, ledger
from regard.papers.experiment import Experiment, Findings, experiments
from regard.papers.reproduce import Result, claims, load_folder, papers, reproduce

__all__ = [
    "Claim",
    "Experiment",
    "Findings",
    "Result",
    "claims",
    "experiments",
    "ledger",
    "load_folder",
    "papers",
    "reproduce",
]
