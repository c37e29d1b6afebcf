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
from typing import Any

from faults import Mutant, draw, find_all

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("models", "training", "tasks", "runs", "recordings", "instruments", "papers")
NOT_IN_A_FUNCTION = 77


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
        if not found:  # it runs when the module is imported
            found = {test for tests in lines.values() for test in tests}
        chosen, spent = [], 0.0
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


class Tests:
    """All tests, imported and collected once; a forked process has them at hand and runs some."""

    def __init__(self, tree: Path):
        from _pytest.config import _prepareconfig
        from _pytest.main import Session

        os.chdir(tree)
        sys.path[:0] = [str(tree / "src"), str(tree)]
        os.environ["PYTHONPATH"] = f"{tree / 'src'}:{tree}"
        words = ["-x", "-qq", "--capture=no", f"--basetemp={tree.parent / 'temporary'}", *OPTIONS]
        config = _prepareconfig([*words, *(f"tests/{name}" for name in TESTS)])
        config._do_configure()
        self.session = Session.from_config(config)
        config.hook.pytest_sessionstart(session=self.session)
        config.hook.pytest_collection(session=self.session)
        self.by_name: dict[str, list[Any]] = {}
        for item in self.session.items:
            self.by_name.setdefault(item.nodeid.split("[")[0], []).append(item)

    def run(self, names: list[str]) -> str:
        """The first that fails, or nothing."""
        failed: list[str] = []

        class Listener:
            def pytest_runtest_logreport(self, report: Any) -> None:
                if report.failed:
                    failed.append(report.nodeid)

        self.session.config.pluginmanager.register(Listener())
        self.session.items = [item for name in names for item in self.by_name.get(name, [])]
        try:
            self.session.config.hook.pytest_runtestloop(session=self.session)
        except BaseException as end:  # pytest stops like that, too
            failed.append(f"{type(end).__name__}: {end}")
        return failed[0] if failed else ""


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


def try_one(tests: Tests, tree: Path, mutant: Mutant, some: list[str], seconds: int) -> str:
    """Put a fault into a forked process and run tests there; else into a new one.

    -> what noticed it, or nothing
    """
    said = tree.parent / "said"
    code = _wait(_fork(tests, tree, mutant, some, seconds, said), seconds)
    if code == NOT_IN_A_FUNCTION:
        code = _wait(_start(tree, mutant, some, seconds, said), seconds)
    if code is None:
        return "it did not come to an end"
    lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return "" if code == 0 else (failed or [f"code {code}"])[-1][:160]


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


def _fork(
    tests: Tests, tree: Path, mutant: Mutant, some: list[str], seconds: int, said: Path
) -> int:
    process = os.fork()
    if process == 0:
        os.setsid()  # tests may kill their group
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        _run_tests(tests, tree, mutant, some, said)
    return process


def _run_tests(tests: Tests, tree: Path, mutant: Mutant, some: list[str], said: Path) -> None:
    """In the forked process: never returns."""
    code = 3
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if mutant.what and not put_in(tree, mutant):
            code = NOT_IN_A_FUNCTION
        elif failed := tests.run(some):
            print(f"\nFAILED {failed}", flush=True)
            code = 1
        else:
            code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _start(tree: Path, mutant: Mutant, some: list[str], seconds: int, said: Path) -> int:
    """A new process, with a copy of the package that has the fault."""
    copy = tree.parent / "changed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tree / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    text = (tree / mutant.path).read_text(encoding="utf-8")
    (copy / mutant.path).write_text(change(text, mutant), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{tree}"}
    with said.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-q", *OPTIONS, *some],
            cwd=tree, env=environment, stdout=out, stderr=out, start_new_session=True,
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


def measure(tree: Path, work: Path, tests: list[str]) -> None:
    """Which tests run over which lines: one pass over them, which may be stopped and gone on with.

    Those that start a cluster are left out: they take longer than all others.
    """
    number = len(list(work.glob("coverage-*")))
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--cov=regard", "-p"]
    words += [
        "mutants",
        "--cov-context=test",
        "--cov-report=",
        "--ignore=tests/runs/test_on_ray.py",
    ]
    environment = {**os.environ, "COVERAGE_FILE": str(work / f"coverage-{number}"),
                   "OMP_NUM_THREADS": "1", "MUTANTS_TIMES": str(work / "times"),
                   "PYTHONPATH": f"{tree / 'src'}:{tree}:{tree / 'tools'}"}  # fmt: skip
    with (work / f"measured-{number}.log").open("w") as log:
        subprocess.run([sys.executable, *words, *tests], cwd=tree, env=environment, stdout=log)


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
    if options.add:
        return measure(tree, work, options.add)
    if not list(work.glob("coverage-*")):
        measure(tree, work, [f"tests/{name}" for name in TESTS])
    drawn, count = choose(tree, options)
    chart = Map(work)
    tests = Tests(tree)
    tried: list[Mutant] = []
    if (work / name).is_file() and not options.again:  # go on where it stopped
        tried = [Mutant(**m) for m in json.loads((work / name).read_text())]
        keys = {(m.path, m.start, m.after) for m in tried}
        drawn = [m for m in drawn if (m.path, m.start, m.after) not in keys]
    for mutant in drawn[: count - len(tried)]:
        some = [*options.tests, *chart.tests(mutant, options.budget, options.most)]
        seconds = int(10 * options.budget) + 60
        mutant.by = try_one(tests, tree, mutant, some, seconds) if some else ""
        mutant.outcome = "noticed" if mutant.by else "survived"
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
