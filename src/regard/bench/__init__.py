"""How fast it is: ratios, measured within one run on the machine at hand."""

from regard.bench import instruments as instruments
from regard.bench import lookup as lookup
from regard.bench import snell as snell
from regard.bench import training as training
from regard.bench.benchmark import Benchmark, benchmarks

__all__ = ["Benchmark", "benchmarks"]
