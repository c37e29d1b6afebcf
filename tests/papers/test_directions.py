"""The direction of every measure: made runs whose verdict is known, in both directions.

Each experiment's `measure` is given runs with numbers that say whose they are. What should come out
is written down here, by hand: which condition is taken from which. A difference with the wrong
sign, or two conditions that have changed places, gives other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import made
import numpy as np
import pytest
from made import SEEDS, Everything, MadeResult, MadeRun, instrument, make_runs, number, values

from regard.papers import EXPERIMENTS, ledger
from regard.papers.aitken2021 import _attention, orders, translation, twice, variants
from regard.papers.aitken2021 import features as features_module
from regard.papers.aitken2021 import one_to_one as one_module
from regard.papers.baan2019 import accuracy, changes, structure, units
from regard.papers.chapter36 import _lengths, addition, attention, exercises, forcing, reading
from regard.papers.chapter36 import _runs as chapter_runs
from regard.papers.chapter36 import reversal as reversal_module
from regard.recordings import Recording
from regard.recordings.recording import Metadata
from regard.recordings.site import Site
from regard.recordings.storage import InMemory
from regard.statistics import Estimate

Patch = pytest.MonkeyPatch


def measure(name: str, runs: Mapping[str, Any], scale: Any = "quick") -> dict[str, Any]:
    """What an experiment measures, by claim."""
    return made.measure(name, runs, scale).measures


def same(found: Estimate, wanted: Any) -> None:
    assert list(found.values) == pytest.approx(list(np.atleast_1d(wanted)), abs=1e-6)


def array(condition: str, key: object) -> np.ndarray:
    return np.array(values(condition, key))


# The chapter.


@pytest.fixture
def by_length(monkeypatch: Patch) -> None:
    """Exact match by length is a made number, whatever the model."""

    def curve(runs: Any, lengths: Any) -> dict[int, Estimate]:
        return {n: Estimate.share(number(r.condition, n, r.seed) for r in runs) for n in lengths}

    for module in (reading, reversal_module, attention):
        monkeypatch.setattr(module, "measure_by_length", curve)


@pytest.fixture
def by_digits(monkeypatch: Patch) -> None:
    def grid(runs: Any, sizes: Any) -> dict[str, Estimate]:
        names = [f"{a}+{b}" for a, b in sizes]
        return {n: Estimate.share(number(r.condition, n, r.seed) for r in runs) for n in names}

    def places(runs: Any) -> dict[str, Estimate]:
        names = ("units", "tens", "hundreds", "exact match")
        return {n: Estimate.share(number(r.condition, n, r.seed) for r in runs) for n in names}

    for module in (addition, exercises):
        monkeypatch.setattr(module, "measure_digits", grid)
    monkeypatch.setattr(addition, "measure_places", places)


def losses(level: float, count: int = 300) -> dict[str, Any]:
    updates = list(range(1, count + 1))
    return {"loss": (updates, [3.0] * 100 + [level] * (count - 100))}


def test_forcing() -> None:
    def curves(condition: str, seed: int) -> dict[str, Any]:
        late = {"always": 300, "never": 100}.get(condition, 200)
        return {"accuracy": ([100, 200, 300], [float(u >= late) for u in (100, 200, 300)])}

    runs = make_runs(forcing.STRATEGIES, curves)
    found = measure("chapter36/forcing", runs)["c36.forcing"]
    gaps = {
        name: array(name, "forced_token_accuracy") - array(name, "token_accuracy")
        for name in forcing.STRATEGIES
    }
    for name in forcing.STRATEGIES:
        same(found[f"{name}_gap"], gaps[name])
        same(found[f"{name}_accuracy"], array(name, "accuracy"))
        same(found[f"{name}_half"], [{"always": 300, "never": 100}.get(name, 200)] * SEEDS)
    for name in forcing.STRATEGIES[1:]:
        same(found[f"gap_over_{name}"], gaps["always"] - gaps[name])


def test_half_of_the_strings() -> None:
    at = MadeRun("x", 0, {"accuracy": ([10, 20, 30], [0.2, 0.5, 0.9])})
    never = MadeRun("x", 0, {"accuracy": ([10, 20, 30], [0.2, 0.4, 0.49])})
    assert forcing.count_to_half(at) == 20  # type: ignore[arg-type]
    assert forcing.count_to_half(never) == 60  # type: ignore[arg-type]


def test_reversed_input() -> None:
    runs = make_runs(["copying", "copying-reversed", "addition", "addition-reversed"])
    found = measure("chapter36/reversed-input", runs)["c36.reversed-input"]
    for task in ("copying", "addition"):
        gain = array(f"{task}-reversed", "accuracy") - array(task, "accuracy")
        same(found[f"{task}_gain"], gain)


@pytest.mark.usefixtures("by_length")
def test_bidirectional() -> None:
    level = {"uni-read": 0.5, "bi-read": 0.25, "uni-masked": 0.1, "bi-masked": 0.4}
    runs = make_runs(level, lambda name, seed: losses(level[name] + seed / 100))
    found = measure("chapter36/bidirectional", runs)["c36.bidirectional"]
    same(found["loss_difference"], [-0.25] * SEEDS)
    same(found["loss_difference_masked"], [0.3] * SEEDS)
    inside = {n: np.mean([array(n, length) for length in range(5, 11)], axis=0) for n in level}
    same(found["accuracy_difference"], inside["bi-read"] - inside["uni-read"])
    same(found["accuracy_difference_masked"], inside["bi-masked"] - inside["uni-masked"])
    assert all(abs(x) < 5 for x in found["updates_difference"].values)


def test_the_loss_by_hand() -> None:
    run: Any = MadeRun("x", 0, losses(0.5))
    # The mean over 20 updates falls below 1 when more than 16 of them are at .5.
    first = next(n for n in range(1, 21) if (3.0 * (20 - n) + 0.5 * n) / 20 < 1)
    assert chapter_runs.find_first_below(run, 1) == 100 + first
    assert chapter_runs.find_first_below(run, 0.1) == 600
    assert chapter_runs.average_final_loss(run) == pytest.approx(0.5)
    found = measure("chapter36/loss", {"read": [run, run]})["c36.loss"]
    same(found["below_point_one"], [600, 600])
    same(found["final_loss"], [0.5, 0.5])


@pytest.mark.usefixtures("by_length")
def test_length() -> None:
    found = measure("chapter36/length", make_runs(["read", "masked"]))

    def mean(name: str, first: int, last: int) -> Any:
        return np.mean([array(name, n) for n in range(first, last + 1)], axis=0)

    for a, b in ((5, 7), (9, 10), (13, 20)):
        same(found["c36.length"][f"accuracy_{a}_{b}"], mean("read", a, b))
    for a, b in ((5, 10), (11, 12), (13, 20)):
        same(found["c36.length-masked"][f"accuracy_{a}_{b}"], mean("masked", a, b))


@pytest.mark.usefixtures("by_digits")
def test_addition() -> None:
    found = measure("chapter36/addition", make_runs(["read", "masked"]))
    for size in ("2+2", "3+3", "3+2", "4+4", "1+1"):
        name = size.replace("+", "_")
        same(found["c36.addition"][f"accuracy_{name}"], array("read", size))
    sizes = [f"{a}+{b}" for a in range(1, 5) for b in range(1, 5) if max(a, b) > 2]
    beyond = np.mean([array("read", size) for size in sizes], axis=0)
    same(found["c36.addition-grid"]["accuracy_beyond"], beyond)
    same(found["c36.addition-grid"]["accuracy_2_2"], array("read", "2+2"))
    for place in ("units", "tens", "hundreds"):
        same(found["c36.addition-digits"][place], array("read", place))


@pytest.mark.usefixtures("by_digits")
def test_scratchpad_and_mixture() -> None:
    found = measure("chapter36/scratchpad", make_runs(["plain", "scratchpad"]))["c36.scratchpad"]
    for size in ("1+1", "2+2", "3+3", "4+4"):
        gain = array("scratchpad", size) - array("plain", size)
        same(found[f"gain_{size.replace('+', '_')}"], gain)
    same(found["scratchpad_2_2"], array("scratchpad", "2+2"))
    found = measure("chapter36/mixture", make_runs(["mixture"]))["c36.mixture"]
    same(found["accuracy_5_5"], array("mixture", "5+5"))


@pytest.mark.parametrize(
    ("given", "wanted", "places"),
    [
        ("345", "345", [True, True, True, True]),
        ("145", "345", [True, True, False, False]),
        ("1345", "345", [True, True, True, False]),
        ("45", "1045", [True, True, True, False]),
        ("5", "315", [True, False, False, False]),
        ("", "315", [False] * 4),
        ("3x5", "315", [False] * 4),
    ],
)
def test_places_from_the_right(given: str, wanted: str, places: list[bool]) -> None:
    assert addition.compare_places(given, wanted) == places


@pytest.mark.usefixtures("by_length")
def test_attention_against_the_fixed_vector(monkeypatch: Patch) -> None:
    power = {"fixed": 0.0, "attention": 1.0, "transformer": 2.0}
    monkeypatch.setattr(
        attention, "time_steps", lambda name, places: [
            tuple(slow * p ** power[name] for p in places) for slow in (1.0, 3.0)
        ]
    )  # fmt: skip
    names = [*power, *(f"{name}-long" for name in power)]
    found = measure("chapter36/attention", make_runs(names))

    def mean(name: str, first: int, last: int) -> Any:
        return np.mean([array(name, n) for n in range(first, last + 1)], axis=0)

    own = found["c36.attention"]
    same(own["accuracy_gain_long"], mean("attention-long", 16, 25) - mean("fixed-long", 16, 25))
    same(own["attention_inside"], mean("attention-long", 5, 25))
    same(own["fixed_inside"], mean("fixed-long", 5, 25))
    same(own["fixed_growth"], [0.0, 0.0])
    same(own["attention_growth"], [1.0, 1.0])
    same(found["c36.transformer"]["transformer_inside"], mean("transformer-long", 5, 25))
    same(found["c36.transformer"]["transformer_growth"], [2.0, 2.0])


def test_a_step_is_timed_and_of_a_transformer_a_pass(monkeypatch: Patch) -> None:
    calls: list[tuple[str, Any]] = []

    class Model:
        def encode(self, source: Any, lengths: Any) -> Any:
            calls.append(("encode", tuple(source.shape)))
            return SimpleNamespace(initial=())

        def step(self, memory: Any, words: Any, state: Any) -> None:
            calls.append(("step", tuple(words.shape)))

        def __call__(self, source: Any, lengths: Any, inputs: Any) -> None:
            calls.append(("pass", tuple(source.shape)))

    clock = iter(range(10_000))
    monkeypatch.setattr(attention.time, "perf_counter", lambda: next(clock) ** 2)
    best = attention._time_pass(Model(), "fixed", 7, 5)  # type: ignore[arg-type]
    assert best == 1000.0 * (1**2 - 0**2), "the fastest of all, in milliseconds"
    assert calls == [("encode", (5, 7)), *[("step", (5,))] * 20]
    calls.clear()
    attention._time_pass(Model(), "transformer", 7, 2)  # type: ignore[arg-type]
    assert calls == [("encode", (2, 7)), *[("pass", (2, 7))] * 3]
    asked: list[tuple[str, int, int]] = []
    monkeypatch.setattr(
        attention, "_time_pass", lambda model, *about: float(asked.append(about) or about[1])
    )
    assert attention.time_steps("fixed", (8, 16)) == ((8.0, 16.0),) * 5
    assert attention.time_steps("transformer", (4,)) == ((4.0,),) * 5
    assert asked == [*[("fixed", 8, 64), ("fixed", 16, 64)] * 5, *[("transformer", 4, 2)] * 5]


def test_capacity_by_hand() -> None:
    """Lengths 4, 7, 10 and sizes 8, 32, 64; one seed solves them with 8, 32, 64, one needs more."""
    solved = {(4, 8): (1, 0), (4, 32): (1, 1), (4, 64): (1, 1), (7, 8): (0, 0), (7, 32): (1, 0),
              (7, 64): (1, 1), (10, 8): (0, 0), (10, 32): (0, 0), (10, 64): (1, 0)}  # fmt: skip
    runs = {}
    for (length, size), seeds in solved.items():
        made: list[Any] = [MadeRun("x", seed) for seed in range(2)]
        for run, right in zip(made, seeds, strict=True):
            run.metrics = {"accuracy": 0.9 if right else 0.89, "token_accuracy": 0.5}
        runs[f"{length}x{size}"] = made
    found = measure("chapter36/capacity", runs)["c36.capacity"]
    bits = np.log2(26)
    # First seed: 4/8, 7/32, 10/64 letters a dimension; second: 4/32, 7/64, and 10 not at all.
    same(found["bits_per_dimension"], [4 * bits / 8, 4 * bits / 32])
    same(found["growth"], [64 - 8, 128 - 32])


def test_capacity_goes_on_while_a_length_is_reversed() -> None:
    """A longer length is tried when one model reversed the last; what was not tried is said."""
    made = EXPERIMENTS["chapter36/capacity"]()

    def train(length: int, *right: float) -> dict[str, list[Any]]:
        cells = {f"{length}x{size}": [MadeRun("x", 0), MadeRun("x", 1)] for size in (8, 32, 64)}
        for runs in cells.values():
            for run in runs:
                run.metrics = {"accuracy": 0.0, "token_accuracy": 0.5}
        for run, share in zip(cells[f"{length}x32"], right, strict=False):
            run.metrics = {"accuracy": share, "token_accuracy": 0.5}
        return cells

    assert list(made.plan("quick")) == ["4x8", "4x32", "4x64"]
    runs = train(4, 0.0, 0.9)
    assert list(made.then(runs, "quick")) == ["7x8", "7x32", "7x64"]
    runs |= train(7, 0.89, 0.89)
    assert made.then(runs, "quick") == {}
    found = made.measure(runs, "quick")
    bits = found.measures["c36.capacity"]["bits_per_dimension"]
    same(bits, [0, 4 * np.log2(26) / 32])
    same(found.measures["c36.capacity"]["growth"], [0, 128 - 32])
    assert [row[2] for row in found.tables[0].rows] == [
        "32 (1 of 2 seeds)", "none of those tried", "not tried",
    ]  # fmt: skip
    covers = made.coverage("quick", {cell: [] for cell in runs})
    assert covers == "6 of 9 pairs of length and size; 1 longer lengths were not tried"
    assert made.coverage("quick") == "9 of 9 pairs of length and size"
    runs |= train(7, 0.9) | train(10, 1.0)
    assert made.find_further(runs, "quick") == {}


def test_lengths_are_averaged_seed_by_seed() -> None:
    curve = {n: Estimate.share([n / 10, n / 20]) for n in (1, 2, 3)}
    same(_lengths.average_lengths(curve, (1, 3)), [0.2, 0.1])


# Guidance.


def test_accuracy_of_guided_models(monkeypatch: Patch) -> None:
    monkeypatch.setattr(accuracy, "compare_times", lambda fast, paper: 0.25)
    found = measure("baan2019/accuracy", make_runs(["guided", "baseline", "fast"]))
    for name in ("guided", "baseline"):
        for split in ("HI", "HC", "HT", "NC"):
            same(found["baan.accuracy"][f"{name}_{split}"], array(name, split))
        for part in ("seen", "incremental", "new"):
            same(found["baan.longer"][f"{name}_{part}"], array(name, f"longer_{part}"))
    for split in ("HI", "HC", "HT", "NC"):
        same(found["baan.fast"][f"fast_{split}"], array("fast", split))
        same(found["baan.fast"][f"worst_{split}"], [array("fast", split).min()])
    same(found["baan.fast"]["time_share"], [0.25])


def test_cells_of_guided_models() -> None:
    runs = make_runs(["guided", "baseline", "lstm", "lstm baseline"])
    found = measure("baan2019/lstm", runs)["baan.lstm"]
    for split in ("HI", "HC", "HT", "NC"):
        same(found[f"gru_{split}"], array("guided", split))
        same(found[f"lstm_{split}"], array("lstm", split))


def test_weights_of_guided_models(monkeypatch: Patch) -> None:
    for tool in ("connectivity", "polarity", "heatmaps"):
        monkeypatch.setattr(structure, tool, instrument(tool))
    monkeypatch.setattr(
        structure,
        "measure_rows",
        lambda run: tuple(number(run.condition, what, run.seed) for what in ("words", "start")),
    )
    monkeypatch.setattr(structure, "share_strong", lambda run: number(run.condition, "s", run.seed))
    found = measure("baan2019/weights", make_runs(["guided", "baseline"]))
    rows = found["baan.embedding-heatmap"]
    for what in ("words", "start"):
        same(rows[f"ratio_{what}"], array("guided", what) / array("baseline", what))
        same(rows[f"{what}_guided"], array("guided", what))
    graph = found["baan.graph"]
    blocks = {
        "encoder": ("encoder.0.W_hh.update", "in"), "decoder": ("decoder.0.W_ih.update", "out"),
    }  # fmt: skip
    for side, (block, end) in blocks.items():
        gini = {
            n: array(n, (f"connectivity {block}", f"gini {end}")) for n in ("guided", "baseline")
        }
        same(graph[f"gini_{side}_more"], gini["guided"] - gini["baseline"])
        same(graph[f"gini_{side}_guided"], gini["guided"])
        for key, what in (("polar", f"polarity {end}"), ("modularity", "modularity")):
            wanted = array("baseline", (f"connectivity {block}", what))
            same(graph[f"{key}_{side}_baseline"], wanted)
    matrices = ("encoder.0.W_hh", "decoder.0.W_ih")
    for name in ("guided", "baseline"):
        wanted = np.mean(
            [array(name, ("polarity", (matrix, "strong pearson"))) for matrix in matrices], axis=0
        )
        same(found["baan.polarity"][name], wanted)


def test_units_of_guided_models(monkeypatch: Patch) -> None:
    monkeypatch.setattr(units, "record_runs", lambda runs, gates: runs)
    for tool in ("activations", "gates"):
        monkeypatch.setattr(units, tool, instrument(tool))
    found = measure("baan2019/units", make_runs(["guided", "baseline"]))
    for side in ("encoder", "decoder"):
        key = ("activations", f"{side} narrow")
        wanted = array("guided", key) - array("baseline", key)
        same(found["baan.activations"][f"more_{side}"], wanted)
        same(found["baan.activations"][f"narrow_{side}_baseline"], array("baseline", key))
    names = [f"{side}.0.{gate}" for side in ("encoder", "decoder") for gate in ("update", "reset")]

    def mean(condition: str, what: str, some: list[str]) -> Any:
        return np.mean([array(condition, ("gates", (name, what))) for name in some], axis=0)

    gates = found["baan.gates"]
    wanted = mean("guided", "on an axis", names) - mean("baseline", "on an axis", names)
    same(gates["axis_more"], wanted)
    updates = [name for name in names if name.endswith("update")]
    for name in ("guided", "baseline"):
        for way in ("left", "right"):
            same(gates[f"{name}_{way}"], mean(name, way, updates))


def test_groups_of_guided_models(monkeypatch: Patch) -> None:
    monkeypatch.setattr(units, "record_runs", lambda runs, gates: runs)

    def groups(seen: Any, quantity: str, label: str, only: Any, **more: Any) -> MadeResult:
        return MadeResult(f"{quantity} {label} {only}", seen)

    monkeypatch.setattr(units, "groups", groups)
    monkeypatch.setattr(units, "probe", groups)
    monkeypatch.setattr(units, "strength", instrument("strength"))
    found = measure("baan2019/groups", make_runs(["guided", "baseline"]))
    probed = {
        "encoder": "encoder.states word t[0-9]*",
        "update": "decoder.gates.update source t[0-9]*",
        "reset": "decoder.gates.reset source t[0-9]*",
    }
    keys = {"group": "first-class: accuracy", "full": "first-class: full accuracy",
            "units": "first-class: units", "units_all": "aggregate: units"}  # fmt: skip
    for name in ("guided", "baseline"):
        for key, what in keys.items():
            for part, tool in probed.items():
                same(found["baan.probe-table"][f"{key}_{part}_{name}"], array(name, (tool, what)))
            time = array(name, ("encoder.states position None", what))
            same(found["baan.probe-time"][f"{key}_{name}"], time)
    strong = found["baan.group-strength"]
    same(strong["share"], array("guided", ("strength", "share")))
    same(strong["share_baseline"], array("baseline", ("strength", "share")))
    same(strong["chance"], array("guided", ("strength", "chance")))


def test_swapped_components() -> None:
    into = [f"guided with {part}" for part in changes.COMPONENTS]
    into += [f"baseline with {part}" for part in changes.INTO_BASELINE["quick"]]
    runs = make_runs(["guided", "baseline", *into])
    found = measure("baan2019/swap", runs)["baan.swap"]
    same(found["reference"], array("guided", "NC"))
    same(found["reference_baseline"], array("baseline", "NC"))
    for part in changes.COMPONENTS:
        same(found[part.replace(".", "_")], array(f"guided with {part}", "NC"))
    for part in changes.INTO_BASELINE["quick"]:
        wanted = array(f"baseline with {part}", "NC")
        same(found[f"baseline_{part.replace('.', '_')}"], wanted)


def test_pruned_models(monkeypatch: Patch) -> None:
    class Cut:
        def __init__(self, run: Any):
            self.run = run

        def metrics(self) -> Mapping[str, float]:
            return Everything(lambda key: number("cut", key, self.run.seed))

    monkeypatch.setattr(changes, "cut_down", lambda run, keep, what: Cut(run))
    found = measure("baan2019/prune", make_runs(["guided", "mask free", "mask held"]))["baan.prune"]
    for key, condition in {
        "full": "guided", "pruned": "cut", "free": "mask free", "held": "mask held",
    }.items():  # fmt: skip
        same(found[key], array(condition, "NC"))


# Components.


@pytest.fixture
def recorded(monkeypatch: Patch) -> None:
    """A recording is its run; untrained ones are of another condition."""

    def record(runs: Any, n: int = 0, checkpoint: Any = "last") -> list[Any]:
        end = "" if checkpoint == "last" else " untrained"
        return [MadeRun(run.condition + end, run.seed) for run in runs]

    for module in (variants, orders, one_module, features_module, translation, twice):
        monkeypatch.setattr(module, "record_runs", record)


@pytest.mark.usefixtures("recorded")
def test_variants(monkeypatch: Patch) -> None:
    for tool in ("breakdown", "trajectories"):
        monkeypatch.setattr(variants, tool, instrument(tool))
    found = measure("aitken2021/variants", make_runs(variants.VARIANTS))["ait.variants"]
    for name in variants.VARIANTS:
        same(found[f"accuracy_{name}"], array(name, "token_accuracy"))
        same(found[f"temporal_{name}"], array(name, ("breakdown", "temporal-temporal")))
        same(found[f"diagonal_{name}"], array(name, ("trajectories", "diagonal")))


def test_causal(monkeypatch: Patch) -> None:
    monkeypatch.setattr(variants, "ablate", instrument("ablate"))
    names = ["one_to_one_aed", "one_to_one_ao", "escan_aed", "sorting_aed"]
    found = measure("aitken2021/causal", make_runs(names))["ait.causal"]
    for name in names:
        same(found[f"{name}_baseline"], array(name, ("ablate", "baseline")))
        for part in ("temporal", "input", "delta"):
            wanted = array(name, ("ablate", f"remove {part} from alignment"))
            same(found[f"{name}_without_{part}"], wanted)
            wanted = array(name, ("ablate", f"swap {part} in alignment"))
            same(found[f"{name}_wrong_{part}"], wanted)


def attending(weights: Any, alignment: Any, words: Any = None, names: Any = None) -> Recording:
    """A recording with given attention. weights (sample, target, source)"""
    weights = np.asarray(weights, dtype=np.float32)
    samples, target, source = weights.shape
    arrays = {
        "encoder.words": np.zeros((samples, source), int) if words is None else np.asarray(words),
        "encoder.mask": np.ones((samples, source), bool),
        "decoder.words": np.zeros((samples, target), int),
        "decoder.mask": np.ones((samples, target), bool),
        "alignment": np.asarray(alignment),
        "attention.weights": weights[:, None],
    }
    known = tuple(names or ("<PAD>", "<SOS>", "<EOS>"))
    return Recording(InMemory(arrays), Metadata(known, known, {"attention": Site()}))


def put(places: list[int], source: int) -> np.ndarray:
    return np.eye(source)[places]


def test_shares_of_attention_by_hand() -> None:
    right = attending([put([0, 1, 2, 3], 5)], [[0, 1, 4, -1]])
    assert _attention.share_right(right) == pytest.approx(2 / 3)  # the last step has no source
    ahead = attending([put([0, 1, 2, 4, 0], 5)], [[-1] * 5])
    back = attending([put([4, 2, 1, 0, 4], 5)], [[-1] * 5])
    assert _attention.correlate_order(ahead) == pytest.approx(1.0)  # the end's step does not count
    assert _attention.correlate_order(back) == pytest.approx(-1.0)


def test_attention_at_twice_and_at_ends() -> None:
    from regard.papers.aitken2021 import escan

    names = ("<PAD>", "<SOS>", "<EOS>", "run", "walk", "left", "twice", "and")
    words = [[3, 6, 7, 4, 5]]  # run twice and walk left
    alignment = [[0, 1, 3, 4]]  # RUN RUN WALK LTURN
    looks_back = attending([put([0, 0, 3, 4], 5)], alignment, words, names)
    at_ends = attending([put([1, 1, 4, 4], 5)], alignment, words, names)
    assert escan.share_before_twice(looks_back) == 1.0
    assert escan.share_before_twice(at_ends) == 0.0
    assert escan.share_at_ends(at_ends) == 1.0
    assert escan.share_at_ends(looks_back) == pytest.approx(1 / 4)


@pytest.mark.usefixtures("recorded")
def test_reversed(monkeypatch: Patch) -> None:
    monkeypatch.setattr(orders, "trajectories", instrument("trajectories"))
    for name in ("correlate_path", "correlate_order", "share_right"):
        monkeypatch.setattr(
            orders,
            name,
            lambda thing, name=name: number(
                getattr(thing, "of", thing).condition, name, getattr(thing, "of", thing).seed
            ),
        )
    found = measure("aitken2021/reversed", make_runs(["aed", "ao"]))["ait.reversed"]
    for model in ("aed", "ao"):
        for key, what in {
            "direction": "correlate_path",
            "follows": "correlate_order",
            "exact": "share_right",
            "accuracy": "token_accuracy",
        }.items():
            same(found[f"{key}_{model}"], array(model, what))


def test_a_path_that_runs_backwards() -> None:
    class Path:
        best = np.array([4, 3, 2, 1, 9])  # the end token's step does not count

    assert orders.correlate_path(Path()) == pytest.approx(-1.0)  # type: ignore[arg-type]


def test_early_against_late(monkeypatch: Patch) -> None:
    class Path:
        class first:
            attention = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0], [0.5, 0.5, 0, 0], [1, 0, 0, 0]])

    monkeypatch.setattr(translation, "trajectories", lambda source, reach: Path)
    # Steps 0 and 1 lie on the diagonal, step 2 half on its neighbour, step 3 nowhere near.
    assert translation.compare_halves(None) == pytest.approx(1.0 - 0.25)  # type: ignore[arg-type]


# Every rule of the ledger turns when what it is about turns.


def test_every_claim_of_these_papers_is_decided_by_its_measures() -> None:
    """A rule that holds for no numbers, or for all, decides nothing."""
    rng = np.random.default_rng(0)
    papers = ("chapter36", "baan2019", "aitken2021", "snell2021")
    for claim in (c for c in ledger().values() if c.paper in papers):
        verdicts = set()
        for _ in range(3000):
            sizes = rng.choice([0.01, 0.2, 1.0, 1.0, 1.0, 10.0, 1000.0], len(claim.names))
            drawn = sizes * (rng.random(len(sizes)) + rng.choice([0.0, -1.0, -0.5], len(sizes)))
            made = {n: Estimate.of([x, x]) for n, x in zip(claim.names, drawn, strict=True)}
            verdicts.add(claim.verdict(made))
            if len(verdicts) > 1:
                break
        assert len(verdicts) > 1, f"{claim.id}: {verdicts}"
