"""How fast it is: ratios, measured within one run on the machine at hand."""

from benchmarks import corpora as corpora
from benchmarks import explorer as explorer
from benchmarks import growth as growth
from benchmarks import instruments as instruments
from benchmarks import lookup as lookup
from benchmarks import models as models
from benchmarks import recurrences as recurrences
from benchmarks import shards as shards
from benchmarks import snell as snell
from benchmarks import training as training
from benchmarks import words as words
from benchmarks.benchmark import BENCHMARKS, Benchmark

__all__ = ["BENCHMARKS", "Benchmark"]
