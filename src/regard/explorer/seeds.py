"""Any answer over several seeds: the mean of every number, and the ends of its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from regard.errors import RegardError
from regard.explorer import questions as ask
from regard.explorer.look import spell
from regard.explorer.speaking import Alive
from regard.explorer.views import Views
from regard.statistics import Estimate, estimate_arrays

# What cannot leave 0 to 1, so that its interval does not either.
SHARES = frozenset(
    ("p", "first", "weights", "before", "ibm1", "accuracy", "right", "error", "diagonal", "peak",
     "alignment", "agreement")
)  # fmt: skip
ENDS = ("mean", "low", "high")
Compute = Callable[[Views, Any, Alive], Any]


def ask_seeds(
    views: Views, compute: Compute, question: Any, names: Sequence[str], alive: Alive
) -> Any:
    """The answers of all seeds as one: `mean`, `low` and `high`, each as one answer would be.

    All are fed the same words: the target where one is fed, else what the first one says.
    """
    check_seeds(views, names)
    found = []
    for asked in spread(views, question, names, alive):
        alive()
        found.append(compute(views, asked, alive))
    if not isinstance(found[0], tuple):
        return {"seeds": len(found), **{end: fold(found, end) for end in ENDS}}
    abouts, arrays = zip(*found, strict=True)
    about = {"seeds": len(found), **{end: fold(abouts, end) for end in ENDS}}
    return about, fold_arrays(arrays)


def check_seeds(views: Views, names: Sequence[str]) -> None:
    """Refuse what may not be averaged."""
    if len({views.things[name].summary()["group"] for name in names}) > 1:
        raise RegardError("These are not seeds of one configuration, so there is no mean.")
    if len({*names}) < len(names):
        raise RegardError("One run is named twice, so it would count twice.")


def spread(views: Views, question: Any, names: Sequence[str], alive: Alive) -> list[Any]:
    """The question, put to each of the seeds."""
    if isinstance(question, ask.ApartQuestion):
        both = [spread(views, one, names, alive) for one in (question.first, question.second)]
        return [ask.ApartQuestion(first=a, second=b) for a, b in zip(*both, strict=True)]
    change: dict[str, Any] = {}
    if isinstance(question, ask.Question) and question.feed == "own":
        first = views.look(question, alive)
        words = spell(views.things[question.thing].vocabularies[1].words, first.said)
        change["forced"] = dict(enumerate(words))
    return [question.model_copy(update={"thing": name, **change}) for name in names]


def fold(values: Sequence[Any], end: str, name: str = "") -> Any:
    """One of the ends over documents of one shape; texts that differ become nothing."""
    first = values[0]
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        within = (0.0, 1.0) if is_share(name) else None
        return getattr(Estimate.of(values, within), end)
    if all(isinstance(v, Mapping) for v in values):
        shared = [key for key in first if all(key in v for v in values)]
        return {key: fold([v[key] for v in values], end, str(key)) for key in shared}
    if all(isinstance(v, (list, tuple)) for v in values):
        return [fold(row, end, name) for row in zip(*values, strict=False)]
    return first if all(v == first for v in values) else None


def is_share(name: str) -> bool:
    """Whether a quantity lies in 0 to 1, by its name: `weights`, `validation accuracy`."""
    last = name.rpartition(" ")[2]
    return last in SHARES or last.endswith("accuracy")


def fold_arrays(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Arrays of one shape: `NAME` is the mean, `NAME low` and `NAME high` are the ends."""
    found: dict[str, Any] = {}
    for name in values[0]:
        every = [one[name] for one in values if name in one]
        if len(every) < len(values) or len({array.shape for array in every}) > 1:
            continue
        within = (0.0, 1.0) if is_share(name) else None
        ends = estimate_arrays(np.stack(every).astype(np.float64), within)
        names = (name, f"{name} low", f"{name} high")
        found |= {key: x.astype(np.float32) for key, x in zip(names, ends, strict=True)}
    return found
