"""Disks that are full, folders that cannot be written, and two writers at once."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from regard.errors import RegardError
from regard.papers.framework.experiment import EXPERIMENTS, Experiment, Findings, Plan, Runs, Scale
from regard.papers.framework.reproduce import reproduce
from regard.runs import Run, execute
from torture.kills import fork
from torture.made import hash_run, small_config, small_recording
from torture.tally import Tally

NOBODY = 65534
SENTENCE, TRACEBACK = 2, 3


def told(action: Callable[[], object]) -> Callable[[], None]:
    """The exit code that the command line would give."""

    def run() -> None:
        try:
            action()
        except RegardError:
            os._exit(SENTENCE)
        except OSError as error:
            os._exit(SENTENCE if error.filename and error.strerror else TRACEBACK)
        except BaseException:
            os._exit(TRACEBACK)

    return run


def end_of(process: int) -> int:
    """How a process ended."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def fill_disk(root: Path, count: int, rng: random.Random) -> Tally:
    """Files may have so many bytes and no more; afterwards there is room, and all goes on."""
    tally = Tally("full disk (a limit on the size of files)")
    whole = hash_run(execute(small_config(), root / "whole"))
    size = max(p.stat().st_size for p in (root / "whole").rglob("*") if p.is_file())
    for _ in range(count):
        limit = rng.randrange(0, size)

        def limited(limit: int = limit) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            execute(small_config(), root / "full")

        code = end_of(fork(told(limited)))
        left = list((root / "full").rglob("*.part")) if (root / "full").exists() else []
        run = execute(small_config(), root / "full")
        if code in (0, SENTENCE) and not left and hash_run(run) == whole:
            tally.note("a sentence with the path, and the same bits when there is room")
        else:
            tally.fail(f"limit {limit}: code {code}, left {left}")
        shutil.rmtree(root / "full")
    return tally


def forbid(root: Path, count: int) -> Tally:
    """Folders that cannot be written, as another user."""
    tally = Tally("folders that cannot be written, as another user")
    if os.getuid() != 0:
        tally.note("left out: only root can become another user")
        return tally
    root.chmod(0o755)
    for number in range(count):
        folder = root / f"closed-{number}"
        folder.mkdir()
        folder.chmod(0o555)

        def refused(folder: Path = folder, number: int = number) -> None:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            if number % 2:
                small_recording(folder / "x.safetensors")
            else:
                execute(small_config(), folder)

        code = end_of(fork(told(refused)))
        empty = not list(folder.iterdir())
        tally.note("a sentence") if code == SENTENCE and empty else tally.fail(f"code {code}")
    return tally


def write_at_once(root: Path, count: int) -> Tally:
    """Several processes at one run: one does it, the others are told; the bits are the same."""
    tally = Tally("three writers at one run")
    whole = hash_run(execute(small_config(updates=60), root / "whole"))
    config = small_config(updates=60)
    for _ in range(count):
        processes = [fork(told(lambda: execute(config, root / "shared"))) for _ in range(3)]
        codes = [end_of(process) for process in processes]
        run = Run(root / "shared" / config.name, config)
        fine = 0 in codes and set(codes) <= {0, SENTENCE} and run.done and hash_run(run) == whole
        tally.note("one wrote, the others were told") if fine else tally.fail(f"codes {codes}")
        shutil.rmtree(run.folder)
    return tally


class SmallExperiment(Experiment):
    """Four runs of a moment, and how long they took."""

    title, about = "Torture", "Runs that several processes want at once."

    def plan(self, scale: Scale) -> Plan:
        """Two conditions with two seeds each."""
        return {
            str(size): [small_config(seed, updates=40, batch=size) for seed in range(2)]
            for size in (3, 5)
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Nothing but that they are done."""
        assert all(run.done for many in runs.values() for run in many)
        return Findings()


def reproduce_at_once(root: Path, count: int) -> Tally:
    """Three `reproduce` on one results folder: all succeed."""
    tally = Tally("three `reproduce` on one results folder")
    if "torture/small" not in EXPERIMENTS:
        EXPERIMENTS.register("torture/small")(SmallExperiment)
    for number in range(count):
        runs, results = root / f"runs-{number}", root / f"results-{number}"

        def one(runs: Path = runs, results: Path = results) -> None:
            reproduce("torture", runs=runs, results=results, jobs=1)

        codes = [end_of(process) for process in [fork(told(one)) for _ in range(3)]]
        tally.note("all succeed") if codes == [0, 0, 0] else tally.fail(f"codes {codes}")
        shutil.rmtree(runs, ignore_errors=True)
    return tally
