"""Which tests run over which lines, and how long each takes: measured once, by coverage."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from faults import Mutant

CLUSTER = "tests/runs/test_on_ray.py"  # takes longer than all others
DECIDED = "tests/papers/test_decided.py::"  # its tests read modules and presets whole


def pytest_runtest_logreport(report: Any) -> None:
    """As a plugin of pytest: how long each test takes, written down as it ends."""
    if report.when != "teardown":
        with Path(os.environ["MUTANTS_TIMES"]).open("a") as log:
            log.write(f"{report.duration:.3f} {report.nodeid}\n")


class Map:
    """Which tests run over which lines, and how long each takes."""

    def __init__(self, work: Path):
        from coverage import CoverageData

        self.lines: dict[str, dict[int, set[str]]] = {}  # file -> line -> tests
        sizes: dict[str, int] = {}
        for path in sorted(work.glob("coverage-*")):
            data = CoverageData(str(path))
            data.read()
            for file in data.measured_files():
                found = self.lines.setdefault(file.split("/src/")[-1], {})
                for line, contexts in data.contexts_by_lineno(file).items():
                    tests = {re.split(r"[|\[]", name)[0] for name in contexts if name}
                    tests = {test for test in tests if CLUSTER not in test}
                    found.setdefault(line, set()).update(tests)
                    for test in tests:
                        sizes[test] = sizes.get(test, 0) + 1
        self.seconds = {test: count / 2000 for test, count in sizes.items()}  # else it is guessed
        self.seconds |= _read_times(work / "times")

    def tests(self, mutant: Mutant, budget: float, most: int) -> list[str]:
        """The tests that run over a fault's lines, quick ones first, until the budget is spent."""
        lines = self.lines.get(mutant.path.split("src/")[-1], {})
        inside = range(mutant.line, mutant.last + 1)
        found = {test for line in inside for test in lines.get(line, ())}
        chosen, spent = [], 0.0
        if mutant.imported or not found:
            found = {test for tests in lines.values() for test in tests}
            chosen = [test for test in self.seconds if test.startswith(DECIDED)]
        for test in sorted(found, key=lambda t: (self.seconds.get(t, 1.0), t)):
            if spent > budget or len(chosen) >= most:
                break
            chosen.append(test)
            spent += self.seconds.get(test, 1.0)
        return chosen


def _read_times(log: Path) -> dict[str, float]:
    """Seconds of all cases of each test: names of cases are not always names."""
    found: dict[str, float] = {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else []:
        seconds, name = line.split(" ", 1)
        name = name.split("[")[0]
        found[name] = found.get(name, 0.0) + float(seconds)
    return found


def measure(tree: Path, work: Path, tests: list[str]) -> None:
    """Which tests run over which lines: one pass over them, which may be stopped and gone on with.

    Those that start a cluster are left out.
    """
    number = len(list(work.glob("coverage-*")))
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--cov=regard", "-p"]
    words += [
        "charts",
        "--cov-context=test",
        "--cov-report=",
        f"--ignore={CLUSTER}",
    ]
    environment = {**os.environ, "COVERAGE_FILE": str(work / f"coverage-{number}"),
                   "OMP_NUM_THREADS": "1", "MUTANTS_TIMES": str(work / "times"),
                   "PYTHONPATH": f"{tree / 'src'}:{tree}:{tree / 'tools'}"}  # fmt: skip
    with (work / f"measured-{number}.log").open("w") as log:
        subprocess.run([sys.executable, *words, *tests], cwd=tree, env=environment, stdout=log)
