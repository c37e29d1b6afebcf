"""Whether the tests can fail: small faults are put into the code one at a time, and counted.

    python tools/mutants.py --count 300 --seed 0          a copy of the tree, faults drawn at random
    python tools/mutants.py --again mutants.json          those that nobody noticed, once more

Each fault is one change in one expression or statement: a sign, a comparison, a constant, two
arguments, an argument left out, a call not made. The tests that run over its line are run until one
fails. Which those are is measured once, by coverage, and kept beside the results.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import CodeType, FunctionType

from faults import Mutant, draw, find_all

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("models", "training", "tasks", "runs", "recordings", "instruments", "papers")


class Map:
    """Which tests run over which lines, and how long each takes."""

    def __init__(self, coverage_file: Path, log: Path):
        from coverage import CoverageData

        self.data = CoverageData(str(coverage_file))
        self.data.read()
        self.files = {name.split("/src/regard/")[-1]: name for name in self.data.measured_files()}
        self.seconds: dict[str, float] = {}
        for line in log.read_text(encoding="utf-8").splitlines():
            if match := re.match(r"([\d.]+)s (call|setup)\s+(\S.*)", line):
                name = match[3].strip().split("[")[0]  # names of cases are not always names
                self.seconds[name] = self.seconds.get(name, 0.0) + float(match[1])

    def tests(self, mutant: Mutant, budget: float, most: int) -> list[str]:
        """The tests that run over a fault's lines, quick ones first, until the budget is spent."""
        name = self.files.get(mutant.path.split("src/regard/")[-1])
        if name is None:
            return []
        contexts = self.data.contexts_by_lineno(name)
        lines = range(mutant.line, mutant.last + 1)
        found = {re.split(r"[|\[]", c)[0] for line in lines for c in contexts.get(line, []) if c}
        if not found:  # it runs when the module is imported
            found = {re.split(r"[|\[]", c)[0] for line in contexts.values() for c in line if c}
        chosen, spent = [], 0.0
        for test in sorted(found, key=lambda t: (self.seconds.get(t, 1.0), t)):
            if spent > budget or len(chosen) >= most:
                break
            chosen.append(test)
            spent += self.seconds.get(test, 1.0)
        return chosen


def preload(tree: Path) -> None:
    """Import all tests and all they test, so that a forked process has them at once."""
    import pytest

    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree)]
    os.environ["PYTHONPATH"] = f"{tree / 'src'}:{tree}"
    tests = [f"tests/{name}" for name in TESTS]
    code = pytest.main(["--collect-only", "-qq", *OPTIONS, *tests])
    assert code == 0, "the tests cannot be collected"


OPTIONS = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


def put_in(tree: Path, mutant: Mutant) -> int:
    """Give the functions that have the fault the code of the changed file; how many there are."""
    path = tree / mutant.path
    text = path.read_text(encoding="utf-8")
    assert text[mutant.start : mutant.stop] == mutant.before, f"{path} has changed"
    changed = text[: mutant.start] + mutant.after + text[mutant.stop :]
    new = {c.co_qualname: c for c in _codes(compile(changed, str(path), "exec", dont_inherit=True))}
    old = {c.co_qualname: c for c in _codes(compile(text, str(path), "exec", dont_inherit=True))}
    count = 0
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == str(path):
            name = thing.__code__.co_qualname
            free = len(thing.__code__.co_freevars)
            if name in new and new[name] != old.get(name) and len(new[name].co_freevars) == free:
                thing.__code__ = new[name]
                count += 1
    return count


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def try_one(tree: Path, mutant: Mutant, tests: list[str], seconds: int) -> tuple[str, str]:
    """Put a fault into a forked process and run tests there."""
    said = tree / ".mutant"
    process = os.fork()
    if process == 0:
        os.setsid()  # tests may kill their group
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # the machine may be busy
        _run_tests(tree, mutant, tests, said)
    deadline = time.monotonic() + 20 * seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == 77:
                return "skipped", "it is in no function"
            lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
            failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
            return ("survived" if code == 0 else "noticed"), (failed or [f"code {code}"])[0][:160]
        time.sleep(0.05)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "noticed", "it did not come to an end"


def _run_tests(tree: Path, mutant: Mutant, tests: list[str], said: Path) -> None:
    """In the forked process: never returns."""
    code = 3
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if mutant.before and not put_in(tree, mutant):
            code = 77
            return
        import pytest

        code = int(pytest.main(["-x", "-q", *OPTIONS, *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def copy_tree(tree: Path) -> None:
    """A copy to put faults into."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(
        ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "*.pyc", "runs", "site")
    )


def measure(tree: Path, work: Path) -> None:
    """Which tests run over which lines: one pass over the tests, with coverage."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--cov=regard"]
    words += ["--cov-context=test", "--cov-report=", "--durations=0", "--durations-min=0.0", "-vv"]
    environment = {**os.environ, "COVERAGE_FILE": str(work / "coverage"), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{tree / 'src'}:{tree}"
    with (work / "cov.log").open("w") as log:
        tests = [f"tests/{name}" for name in TESTS]
        subprocess.run([sys.executable, *words, *tests], cwd=tree, env=environment, stdout=log)


def main() -> None:
    """Draw, try, count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path("mutants"))
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of tests for a fault")
    parser.add_argument("--most", type=int, default=40, help="tests for a fault")
    parser.add_argument("--again", type=Path, help="results whose survivors are tried once more")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run with --again, besides")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    tree, results = work / "tree", work / "mutants.json"
    if options.again or not tree.is_dir():
        copy_tree(tree)
    if not (work / "coverage").is_file():
        measure(tree, work)
    chart = Map(work / "coverage", work / "cov.log")
    every = list(find_all(tree))
    if options.again:
        wanted = {
            (m["path"], m["before"], m["after"], m["what"])
            for m in json.loads(options.again.read_text())
            if m["outcome"] == "survived"
        }
        drawn = [m for m in every if (m.path, m.before, m.after, m.what) in wanted]
        results = work / "again.json"
    else:
        drawn = draw(tree, every, 2 * options.count, options.seed)
    print(f"{len(every)} faults are possible, {len(drawn)} are tried", flush=True)
    preload(tree)
    tried: list[Mutant] = []
    if results.is_file() and not options.again:  # go on where it stopped
        tried = [Mutant(**m) for m in json.loads(results.read_text())]
        keys = {(m.path, m.start, m.after) for m in tried}
        drawn = [m for m in drawn if (m.path, m.start, m.after) not in keys]
    for mutant in drawn:
        if not options.again and len(tried) == options.count:
            break

        tests = [*options.tests, *chart.tests(mutant, options.budget, options.most)]
        outcome = (
            ("survived", "no test runs over it")
            if not tests
            else try_one(tree, mutant, tests, int(10 * options.budget) + 60)
        )
        if outcome[0] == "skipped":
            continue
        mutant.outcome, mutant.by = outcome
        tried.append(mutant)
        results.write_text(json.dumps([asdict(m) for m in tried], indent=1))
        _tell(tried)


def _tell(tried: list[Mutant]) -> None:
    last, noticed = tried[-1], sum(m.outcome == "noticed" for m in tried)
    change = f"{last.what}: {last.before[:60]!r} -> {last.after[:60]!r}"
    print(
        f"{len(tried)} {last.outcome} ({noticed}/{len(tried)}) {last.path}:{last.line} {change}"
        f" [{last.by[:80]}]",
        flush=True,
    )


if __name__ == "__main__":
    main()
