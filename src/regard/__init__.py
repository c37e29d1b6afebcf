"""Regard: a laboratory for understanding how encoder-decoder networks attend, learn, generalise.

>>> import regard
>>> run = regard.train("reversal", model="chapter36", seed=0)   # doctest: +SKIP
>>> run.metrics["accuracy"]                                     # doctest: +SKIP

Nothing is imported before it is used: `import regard` takes milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regard.lazy import attach

if TYPE_CHECKING:  # the front: train, record, look, check the papers
    from regard.errors import RegardError as RegardError
    from regard.instruments.registry import inspect as inspect
    from regard.instruments.result import Result as Result
    from regard.papers.framework.reproduce import reproduce as reproduce
    from regard.papers.framework.result import claims as claims
    from regard.recordings.record import record as record
    from regard.recordings.recording import Recording as Recording
    from regard.recordings.recording import load_recording as load_recording
    from regard.recordings.sharding import gather_shards as gather_shards
    from regard.runs.execution import train as train
    from regard.runs.executor import run_all as run_all
    from regard.runs.run import Run as Run
    from regard.runs.run import list_runs as list_runs
    from regard.runs.run import load_run as load_run
    from regard.statistics import Estimate as Estimate
    from regard.subjects.formats.ctranslate2 import ctranslate2 as ctranslate2
    from regard.subjects.formats.eole import eole as eole
    from regard.subjects.formats.fairseq import fairseq as fairseq
    from regard.subjects.formats.joeynmt import joeynmt as joeynmt
    from regard.subjects.formats.marian import marian as marian
    from regard.subjects.formats.onnx import onnx as onnx
    from regard.subjects.formats.opennmt import opennmt as opennmt
    from regard.subjects.hugging_face.door import hugging_face as hugging_face
    from regard.subjects.modules.at import at as at
    from regard.subjects.modules.door import module as module
    from regard.version import __version__ as __version__
if TYPE_CHECKING:  # instruments as functions, by their names now and before, and what programs need
    from regard.instruments.components import breakdown as breakdown
    from regard.instruments.components import clusters as clusters
    from regard.instruments.components import dictionary as dictionary
    from regard.instruments.components import dictionary as readouts
    from regard.instruments.components import heads as heads
    from regard.instruments.components import layers as layers
    from regard.instruments.components import offset as offset
    from regard.instruments.components import orthogonality as orthogonality
    from regard.instruments.components import pull as lean
    from regard.instruments.components import pull as pull
    from regard.instruments.components import simplex as simplex
    from regard.instruments.components import sizes as sizes
    from regard.instruments.components import trajectories as paths
    from regard.instruments.components import trajectories as trajectories
    from regard.instruments.components import variance as variance
    from regard.instruments.components import word_clouds as inputs
    from regard.instruments.components import word_clouds as word_clouds
    from regard.instruments.interventions import ablate as ablate
    from regard.instruments.interventions import ablate_heads as ablate_heads
    from regard.instruments.interventions import cumulative_ablation as cumulative_ablation
    from regard.instruments.interventions import prune as prune
    from regard.instruments.interventions import swap as swap
    from regard.instruments.scores import Scores as Scores
    from regard.instruments.scores import agreement as agreement
    from regard.instruments.scores import agreements as agreements
    from regard.instruments.scores import attention_entropy as attention_entropy
    from regard.instruments.scores import contextualised as contextualised
    from regard.instruments.scores import lexical_probe as lexical_probe
    from regard.instruments.scores import optimal_attention as optimal_attention
    from regard.instruments.scores import proxy_probe as proxy_probe
    from regard.instruments.scores import saliency as saliency
    from regard.instruments.timelapse import timelapse as timelapse
    from regard.instruments.units import activations as activations
    from regard.instruments.units import gates as gates
    from regard.instruments.units import groups as groups
    from regard.instruments.units import probe as probe
    from regard.instruments.weights import connectivity as connectivity
    from regard.instruments.weights import heatmaps as heatmaps
    from regard.instruments.weights import heatmaps as weights
    from regard.instruments.weights import polarity as polarity
    from regard.instruments.weights import strength as strength
    from regard.instruments.words import aer as aer
    from regard.instruments.words import alignment_error_rate as alignment_error_rate
    from regard.instruments.words import cooccurrence as cooccurrence
    from regard.instruments.words import ibm1 as ibm1
    from regard.instruments.words import links as links
    from regard.instruments.words import read_alignments as read_alignments
    from regard.recordings.decomposition import Decomposition as Decomposition
    from regard.recordings.decomposition import decompose as decompose
    from regard.runs.evaluation import evaluate as evaluate
    from regard.runs.evaluation import predict as predict
    from regard.subjects.formats.spelling import load_published as load_published
else:
    __getattr__, __dir__, __all__ = attach(__name__)
