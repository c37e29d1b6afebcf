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
import json
import shutil
from dataclasses import asdict
from pathlib import Path

from charts import Map, measure
from faults import CORE, Mutant, draw, find_all
from trials import TESTS, Trial

ROOT = Path(__file__).resolve().parent.parent


def copy_tree(tree: Path) -> None:
    """A copy to put faults into."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT, tree, ignore=_leave_out)


def _leave_out(folder: str, names: list[str]) -> set[str]:
    """What was made here is left out at the top only: there are packages of these names, too."""
    made = {".git", ".venv", "runs", "results", "site", "demo", "mutants"}
    return {n for n in names if n == "__pycache__" or (Path(folder) == ROOT and n in made)}


def choose(tree: Path, options: argparse.Namespace) -> list[Mutant]:
    """What is tried, in order."""
    every = list(find_all(tree))
    if not options.again:
        print(f"{len(every)} faults are possible, {options.count} are tried", flush=True)
        return draw(tree, every, options.count, options.seed)
    rows = json.loads(options.again.read_text())
    wanted = {(m["path"], m["start"], m["after"]) for m in rows if m["outcome"] == "survived"}
    found = [m for m in every if (m.path, m.start, m.after) in wanted]
    print(f"{len(wanted)} were not noticed, {len(found)} are still there", flush=True)
    return found


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
    drawn = choose(tree, options)
    chart = Map(work)
    trial = Trial(tree, options.budget)
    tried: list[Mutant] = []
    if (work / name).is_file() and not options.again:  # go on where it stopped
        tried = [Mutant(**m) for m in json.loads((work / name).read_text())]
        keys = {(m.path, m.start, m.after) for m in tried}
        drawn = [m for m in drawn if (m.path, m.start, m.after) not in keys]
    for mutant in [m for m in drawn if m.path.split("/")[2] in options.folders]:
        some = [*options.tests, *chart.tests(mutant, options.budget, options.most)]
        mutant.by = trial.run(mutant, some)
        mutant.outcome = "noticed" if mutant.by else "survived"
        tried.append(mutant)
        (work / name).write_text(json.dumps([asdict(m) for m in tried], indent=1))
        _tell(tried)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path("mutants"))
    parser.add_argument(
        "--budget", type=float, default=40.0, help="seconds of tests for a fault, of the processor"
    )
    parser.add_argument("--most", type=int, default=60, help="tests for a fault")
    parser.add_argument("--folders", nargs="*", default=CORE, help="those of some folders only")
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
