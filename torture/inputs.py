"""Made-up configurations and command lines: a sentence, or a run; never a traceback."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import regard
from regard.cli.main import COMMANDS, main
from regard.instruments import INSTRUMENTS
from regard.models.encoder_decoder import MODELS
from regard.runs import assemble
from regard.runs.presets import PRESETS
from regard.tasks.task import TASKS
from regard.training.config import TrainingConfig
from torture.tally import Tally

TINY = {"updates": 1, "batch": 2, "held_out": 4}
WRONG: list[Any] = [
    None, "", "x", "0", "1", "true", -1, 0, 1, 2, 3, 7, 0.5, 1.5, 1e400, float("nan"), "nan", True,
    False, [], [1], (), {}, {"a": 1}, b"x", 10**30, -(2**63), "none", "dot", "a,b", "\x1b[31m", "é",
    "/nowhere", "../..", object,
]  # fmt: skip
SAFE: list[Any] = [1, 2, 3, 4, 8, "1", "4", 0, 0.0, 0.5, 1.0, "0.5", True, False, "true", "none"]
TASKS_OF_ALL = sorted(TASKS)
FIELDS = {
    "task": {name: sorted(task.Config.model_fields) for name, task in TASKS.items()},
    "model": {name: sorted(config.model_fields) for name, (config, _) in MODELS.items()},
    "training": {"": sorted(TrainingConfig.model_fields)},
}


def choices(section: str) -> list[Any]:
    """Values that mean something to some key of a section: its literals."""
    found: set[Any] = set()
    kinds = [task.Config for task in TASKS.values()] if section == "task" else [TrainingConfig]
    for kind in kinds if section != "model" else [config for config, _ in MODELS.values()]:
        for field in kind.model_fields.values():
            found |= {a for a in getattr(field.annotation, "__args__", ()) if isinstance(a, str)}
    return sorted(found)


def keys() -> list[str]:
    """Every key, bare and dotted, and some that do not exist."""
    every = {key for kinds in FIELDS.values() for names in kinds.values() for key in names} | {
        f"{section}.{key}" for section, kinds in FIELDS.items() for n in kinds.values() for key in n
    }
    return sorted(every | {"", "model", "model.", ".hidden", "recipe", "hiden", "seed", "task.x"})


def values() -> st.SearchStrategy[Any]:
    """What a user might give: right, nearly right, and nonsense."""
    literals = sorted({word for section in FIELDS for word in choices(section)})
    return st.one_of(
        st.sampled_from(SAFE), st.sampled_from(literals or ["x"]), st.sampled_from(WRONG),
        st.integers(-3, 40), st.floats(), st.text(max_size=8),
    )  # fmt: skip


def configurations() -> st.SearchStrategy[tuple[Any, Any, Any, dict[str, Any]]]:
    """Task, model, seed and settings."""
    return st.tuples(
        st.one_of(st.sampled_from(TASKS_OF_ALL), st.sampled_from(WRONG)),
        st.one_of(st.sampled_from(sorted(PRESETS)), st.sampled_from(WRONG)),
        st.one_of(st.integers(0, 5), st.sampled_from(WRONG)),
        st.dictionaries(st.sampled_from(keys()), values(), max_size=4),
    )


def settings_of_models() -> st.SearchStrategy[tuple[str, str, dict[str, Any]]]:
    """Combinations that are mostly valid by themselves: what goes together is for Regard to say."""
    literals = choices("model")
    names = sorted({key for kind in FIELDS["model"].values() for key in kind} - {"vectors"})
    value = st.one_of(st.sampled_from(literals), st.integers(1, 6), st.booleans(), st.none())
    return st.tuples(
        st.sampled_from(["reversal", "one-to-one", "lookup", "copying"]),
        st.sampled_from(sorted(PRESETS)),
        st.dictionaries(st.sampled_from(names), value, max_size=4),
    )


def words() -> st.SearchStrategy[list[str]]:
    """A command line of known and unknown words."""
    known = [
        *COMMANDS, *TASKS_OF_ALL, *sorted(PRESETS), *sorted(INSTRUMENTS), "--json", "--seed", "-n",
        "--model", "--out", "--top", "--with", "--scale", "quick", "0", "-1", "1e9", "hidden=x",
        "hidden=", "=3", "learning_rate=inf", "/nowhere", "", "--checkpoint", "best", "--help",
        "--runs", "tasks", "runs", "papers", "updates=0", "--version", "\x1b[2J", "--jobs",
    ]  # fmt: skip
    heavy = {"demo", "reproduce", "bench", "doctor", "train", "swap", "prune", "new"}
    first = st.sampled_from([c for c in COMMANDS if c not in heavy] + ["", "--x", "trian"])
    rest = st.lists(st.one_of(st.sampled_from(known), st.text(max_size=6)), max_size=5)
    return st.builds(lambda a, b: [a, *b], first, rest)


def run_many(
    tally: Tally, count: int, number: int, given_by: Any, try_one: Callable[[Any], str]
) -> Tally:
    """As many examples as are wanted, each counted; `number` is the seed they follow from."""

    @seed(number)
    @settings(
        max_examples=max(1, count), database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(given_by)
    def examine(example: Any) -> None:
        tally.attempt(repr(example)[:300], lambda: try_one(example))

    examine()
    return tally


def try_configuration(example: tuple[Any, Any, Any, dict[str, Any]]) -> str:
    """Put a configuration together, as `regard.train` does."""
    task, model, seed, given_settings = example
    assemble(task, model, seed, given_settings)
    return "a configuration"


def try_training(root: Path) -> Callable[[tuple[str, str, dict[str, Any]]], str]:
    """Train one update with made-up settings of a model."""

    def train(example: tuple[str, str, dict[str, Any]]) -> str:
        task, model, given_settings = example
        tiny = {"hidden": 4, **TINY, **({"longest": 3, "shortest": 1} if task != "lookup" else {})}
        if task == "copying":
            tiny = {"hidden": 4, **TINY, "length": 3, "vocabulary": 6}
        if "hidden" not in MODELS[str(PRESETS[model]["model.kind"])][0].model_fields:
            tiny.pop("hidden")
        run = regard.train(task, model, 0, root, **{**tiny, **given_settings})
        assert run.done
        return "a run"

    return train


def try_command(command: list[str]) -> str:
    """A command in this process: it ends with 0, 1 or 2, and with words."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["regard", *command]
    code: Any = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    if code not in (0, 2) or "Traceback" in err.getvalue():
        raise RuntimeError(f"exit code {code}: {err.getvalue()[-300:]}")
    assert code == 0 or err.getvalue().strip(), "refused without a word"
    return "done" if code == 0 else "exit code 2 and a sentence"


def try_inputs(root: Path, count: int, number: int) -> list[Tally]:
    """Two thirds configurations, a quarter command lines, the rest trained."""
    kinds: dict[str, tuple[int, Any, Callable[[Any], str]]] = {
        "configurations": (count * 2 // 3, configurations(), try_configuration),
        "command lines": (count // 4, words(), try_command),
        "models, trained": (count // 12, settings_of_models(), try_training(root)),
    }
    return [
        run_many(Tally(f"generated {name}"), many, number, given_by, try_one)
        for name, (many, given_by, try_one) in kinds.items()
    ]
