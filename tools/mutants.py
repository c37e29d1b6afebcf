"""Whether the tests can fail: small faults are put into the code one at a time, and counted.

    python tools/mutants.py --count 300 --seed 0          a copy of the tree, faults drawn at random
    python tools/mutants.py --add tests/models/test_x.py  new tests: they are measured, too
    python tools/mutants.py --again mutants/drawn-0.json  those that nobody noticed, once more

Each fault is one change in one expression or statement: a sign, a comparison, a constant, two
arguments, an argument left out, a call not made. The tests that run over its line are run until one
fails, quick ones first, in a process that is forked from one that has imported everything; a fault
that is in no function (a constant, a default) gets a process of its own. Which tests run over which
lines is measured once, by coverage, and kept beside the results. What was stopped goes on.
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
SAID = ".mutant"  # what the tests said of the last fault
NOT_IN_A_FUNCTION = 77


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
    old, new = (
        list(_codes(compile(content, str(path), "exec", dont_inherit=True)))
        for content in (text, change(text, mutant))
    )
    if len(old) != len(new):  # a function is gone: which of the others is which, nobody knows
        return 0
    changed = {
        (a.co_qualname, a.co_firstlineno): b for a, b in zip(old, new, strict=True) if a != b
    }
    count = 0
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == str(path):
            code = changed.get((thing.__code__.co_qualname, thing.__code__.co_firstlineno))
            if code and len(code.co_freevars) == len(thing.__code__.co_freevars):
                thing.__code__ = code
                count += 1
    return count


def change(text: str, mutant: Mutant) -> str:
    """A file's text with the fault in it."""
    assert text[mutant.start : mutant.stop] == mutant.before, f"{mutant.path} has changed"
    return text[: mutant.start] + mutant.after + text[mutant.stop :]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def try_one(tree: Path, mutant: Mutant, tests: list[str], seconds: int) -> tuple[str, str]:
    """Put a fault into a forked process and run tests there; else into a new one."""
    code = _wait(_fork(tree, mutant, tests, seconds), seconds)
    if code == NOT_IN_A_FUNCTION:
        code = _wait(_start(tree, mutant, tests, seconds), seconds)
    if code is None:
        return "noticed", "it did not come to an end"
    lines = (tree / SAID).read_text(encoding="utf-8", errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return ("survived" if code == 0 else "noticed"), (failed or [f"code {code}"])[0][:160]


def _wait(process: int, seconds: int) -> int | None:
    """How a process ended; None if it had to be killed. It may wait for a busy machine."""
    deadline = time.monotonic() + 20 * seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def _fork(tree: Path, mutant: Mutant, tests: list[str], seconds: int) -> int:
    process = os.fork()
    if process == 0:
        os.setsid()  # tests may kill their group
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        _run_tests(tree, mutant, tests)
    return process


def _run_tests(tree: Path, mutant: Mutant, tests: list[str]) -> None:
    """In the forked process: never returns."""
    code = 3
    try:
        out = os.open(tree / SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if put_in(tree, mutant):
            import pytest

            code = int(pytest.main(["-x", "-q", *OPTIONS, *tests]))
        else:
            code = NOT_IN_A_FUNCTION
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _start(tree: Path, mutant: Mutant, tests: list[str], seconds: int) -> int:
    """A new process, with a copy of the package that has the fault."""
    copy = tree.parent / "changed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tree / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    text = (tree / mutant.path).read_text(encoding="utf-8")
    (copy / mutant.path).write_text(change(text, mutant), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{tree}"}
    with (tree / SAID).open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-q", *OPTIONS, *tests],
            cwd=tree, env=environment, stdout=said, stderr=said, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
        )  # fmt: skip
    process.returncode = 0  # who waits for it is above
    return process.pid


def copy_tree(tree: Path) -> None:
    """A copy to put faults into."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, ignore=_leave_out)


def _leave_out(folder: str, names: list[str]) -> set[str]:
    """What was made here is left out at the top only: there are packages of these names, too."""
    made = {".git", ".venv", "runs", "results", "site", "demo", "mutants"}
    return {n for n in names if n == "__pycache__" or (Path(folder) == ROOT and n in made)}


def measure(tree: Path, work: Path, *tests: str) -> None:
    """Which tests run over which lines: one pass over all tests, or over some more of them."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--cov=regard"]
    words += ["--cov-context=test", "--cov-report=", "--durations=0", "--durations-min=0.0", "-vv"]
    environment = {**os.environ, "COVERAGE_FILE": str(work / "coverage"), "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{tree / 'src'}:{tree}"
    every = [*(["--cov-append"] if tests else []), *(tests or (f"tests/{name}" for name in TESTS))]
    with (work / "cov.log").open("a" if tests else "w") as log:
        subprocess.run([sys.executable, *words, *every], cwd=tree, env=environment, stdout=log)


def choose(tree: Path, options: argparse.Namespace) -> tuple[list[Mutant], int]:
    """What is tried, in order, and how many at most."""
    every = list(find_all(tree))
    if not options.again:
        print(f"{len(every)} faults are possible, {options.count} are tried", flush=True)
        return draw(tree, every, options.count, options.seed), options.count
    rows = json.loads(options.again.read_text())
    wanted = {(m["path"], m["start"], m["after"]) for m in rows if m["outcome"] == "survived"}
    found = [m for m in every if (m.path, m.start, m.after) in wanted]
    print(f"{len(wanted)} were not noticed, {len(found)} are still there", flush=True)
    return found, len(found)


def main() -> None:
    """Draw, try, count."""
    options = _read_options()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    tree = work / "tree"
    name = f"again-{options.again.name}" if options.again else f"drawn-{options.seed}.json"
    if options.again or options.add or not tree.is_dir():
        copy_tree(tree)
    if not (work / "coverage").is_file():
        measure(tree, work)
    elif options.add:
        measure(tree, work, *options.add)
    if options.add:
        return
    drawn, count = choose(tree, options)
    chart = Map(work / "coverage", work / "cov.log")
    preload(tree)
    tried: list[Mutant] = []
    if (work / name).is_file() and not options.again:  # go on where it stopped
        tried = [Mutant(**m) for m in json.loads((work / name).read_text())]
        keys = {(m.path, m.start, m.after) for m in tried}
        drawn = [m for m in drawn if (m.path, m.start, m.after) not in keys]
    for mutant in drawn[: count - len(tried)]:
        tests = [*options.tests, *chart.tests(mutant, options.budget, options.most)]
        mutant.outcome, mutant.by = (
            try_one(tree, mutant, tests, int(10 * options.budget) + 60)
            if tests
            else ("survived", "no test runs over it")
        )
        tried.append(mutant)
        (work / name).write_text(json.dumps([asdict(m) for m in tried], indent=1))
        _tell(tried)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path("mutants"))
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of tests for a fault")
    parser.add_argument("--most", type=int, default=60, help="tests for a fault")
    parser.add_argument("--add", nargs="*", default=[], help="new tests, which are measured")
    parser.add_argument("--again", type=Path, help="results whose survivors are tried once more")
    parser.add_argument("--tests", nargs="*", default=[], help="tests to run besides")
    return parser.parse_args()


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
