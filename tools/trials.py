"""A fault put into a process that has imported everything, and the tests that are run there."""

from __future__ import annotations

import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from faults import Mutant

TESTS = ("models", "training", "tasks", "runs", "recordings", "instruments", "papers", "subjects")
TESTS += ("display", "report", "cli", "explorer", "test_kindness.py")
NOT_IN_A_FUNCTION, BROKEN = 77, 78  # codes of a forked process
OPTIONS = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


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

    def run(self, names: list[str], budget: float) -> str:
        """The first that fails, or nothing; none is begun once the processor was at it for long."""
        failed: list[str] = []
        session = self.session

        class Listener:
            def pytest_runtest_logreport(self, report: Any) -> None:
                if report.failed:
                    failed.append(report.nodeid)
                elif time.process_time() - began > budget:
                    session.shouldstop = "the budget is spent"

        began = time.process_time()
        self.session.config.pluginmanager.register(Listener())
        self.session.items = [item for name in names for item in self.by_name.get(name, [])]
        try:
            self.session.config.hook.pytest_runtestloop(session=self.session)
        except (session.Interrupted, session.Failed):
            pass
        except BaseException as end:
            failed.append(f"{type(end).__name__}: {end}")
        return failed[0] if failed else ""


class Trial:
    """Tries faults, one after the other. A test that fails without a fault as well says nothing."""

    def __init__(self, tree: Path, budget: float):
        self.tree, self.budget, self.tests = tree, budget, Tests(tree)
        self.seconds = int(3 * budget) + 60  # after which something goes on for ever
        self.said = tree.parent / "said"
        self.sound: dict[str, bool] = {}

    def run(self, mutant: Mutant, some: list[str]) -> str:
        """What noticed a fault, or nothing."""
        while some:
            by = self._try(mutant, some)
            test = by.removeprefix("FAILED ").split("[")[0].split(" ")[0]
            if test not in some or self.is_sound(test):
                return by
            some = [name for name in some if name != test]
        return ""

    def is_sound(self, test: str) -> bool:
        """Whether a test holds when there is no fault."""
        if test not in self.sound:
            self.sound[test] = not self._try(None, [test])
        return self.sound[test]

    def _try(self, mutant: Mutant | None, some: list[str]) -> str:
        """In a forked process; a fault that is in no function, in a new one."""
        code = _wait(_fork(self, mutant, some), self.seconds)
        if code == NOT_IN_A_FUNCTION and mutant:
            code = _wait(_start(self, mutant, some), self.seconds)
        if code is None:
            return "it did not come to an end"
        lines = self.said.read_text(encoding="utf-8", errors="replace").splitlines()
        assert code != BROKEN, "\n".join(lines[-20:])  # nothing was tried
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


def _fork(trial: Trial, mutant: Mutant | None, some: list[str]) -> int:
    process = os.fork()
    if process == 0:
        os.setsid()  # tests may kill their group
        resource.setrlimit(resource.RLIMIT_CPU, (trial.seconds, trial.seconds))
        _run_tests(trial, mutant, some)
    return process


def _run_tests(trial: Trial, mutant: Mutant | None, some: list[str]) -> None:
    """In the forked process: never returns."""
    code = BROKEN
    try:
        out = os.open(trial.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        if mutant and not put_in(trial.tree, mutant):
            code = NOT_IN_A_FUNCTION
        elif failed := trial.tests.run(some, trial.budget):
            print(f"\nFAILED {failed}", flush=True)
            code = 1
        else:
            code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _start(trial: Trial, mutant: Mutant, some: list[str]) -> int:
    """A new process, with a copy of the package that has the fault."""
    tree, copy = trial.tree, trial.tree.parent / "changed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(tree / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    text = (tree / mutant.path).read_text(encoding="utf-8")
    (copy / mutant.path).write_text(change(text, mutant), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{tree}"}
    limit = (trial.seconds, trial.seconds)
    with trial.said.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-x", "-q", *OPTIONS, *some],
            cwd=tree, env=environment, stdout=out, stderr=out, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
        )  # fmt: skip
    process.returncode = 0  # who waits for it is above
    return process.pid


def put_in(tree: Path, mutant: Mutant) -> int:
    """Give the functions that have the fault the code of the changed file; how many there are."""
    if mutant.imported:  # functions below it may have moved by a line, and are the same
        return 0
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
        if type(thing) is FunctionType and thing.__code__.co_filename == str(path):
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
