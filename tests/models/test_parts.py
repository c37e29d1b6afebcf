"""Every kind of model and every preset names its parts, and the names are true."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models import MODELS, Memory, Output, Seq2Seq
from regard.models.layers.cells import Cell, RecurrentCell
from regard.models.layers.encoder import FeedForward
from regard.models.layers.hook_point import HookPoint
from regard.runs.presets import PRESETS, preset_for
from regard.tasks import Batch, collate
from regard.training.losses import crossing

SMALL = {"hidden": 8, "embedding": 5, "decoder_embedding": None, "attention_size": None,
         "one_hot_size": None, "feedforward": 7}  # fmt: skip
TWO_WAY = {"bidirectional": True, "layers": 2}
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "no recurrence": ("encoder-decoder", {"attention": "dot", "recurrent": False, "layers": 2}),
    "two ways": ("encoder-decoder", {"attention": "dot", "cell": "gru", **TWO_WAY}),
    "their mean": ("encoder-decoder", {"attention": "dot", "bridge": "mean", **TWO_WAY}),
    "learned start": ("encoder-decoder", {"attention": "bilinear", "initial_state": "trainable",
                                          "cell": "ugrnn", **TWO_WAY}),
    "wide memory": ("encoder-decoder", {"attention": "scaled", "heads": 2, "merge": "concatenate",
                                        "project_memory": False, **TWO_WAY}),
    "old queries": ("encoder-decoder", {"attention": "dot", "attend": "before", "focus": "full"}),
    "two layers before": ("encoder-decoder", {"attention": "additive", "attend": "before",
                                              "focus": "concatenate", "layers": 2}),
    "hidden layer": ("encoder-decoder", {"attention": "dot", "readout_layer": "relu"}),
    "nothing asks": ("encoder-decoder", {"attention": "unasked"}),
    "uniform": ("encoder-decoder", {"attention": "uniform", "cell": "tanh"}),
    "sum": ("encoder-decoder", {"attention": "bilinear", "readout": "sum"}),
    "context": ("encoder-decoder", {"attention": "bilinear", "readout": "context"}),
    "shared": ("encoder-decoder", {"attention": "dot", "shared_embedding": True}),
    "words": ("reader", {"outputs": "words", "cell": "gru"}),
}  # fmt: skip
BATCH: Batch = collate([[3, 4, 5, 2], [6, 2], [7, 8, 2]], [[3, 4, 5, 6, 2], [8, 2], [7, 8, 2]])


def preset(name: str) -> tuple[str, dict[str, Any]]:
    values = preset_for(name, "one-to-one")
    kind = values.pop("model.kind")
    return kind, {k.removeprefix("model."): v for k, v in values.items() if k.startswith("model.")}


KINDS = {**{name: preset(name) for name in PRESETS}, **MORE}


def build(name: str) -> Seq2Seq:
    kind, settings = KINDS[name]
    config, model = MODELS[kind]
    small = {key: value for key, value in SMALL.items() if key in config.model_fields}
    if kind == "reader":
        small["attention_size"] = 4
    torch.manual_seed(0)
    built: Any = model
    made: Seq2Seq = built(config(**{**settings, **small}), 9, 9).eval().double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return build(request.param)


def test_every_kind_of_model_is_among_them() -> None:
    assert {kind for kind, _ in KINDS.values()} == set(MODELS)


@torch.no_grad()
def run(model: Seq2Seq) -> Output:
    output: Output = model(BATCH.source, BATCH.source_lengths, BATCH.inputs)
    return output


@torch.no_grad()
def run_steps(model: Seq2Seq) -> Tensor:
    memory = model.encode(BATCH.source, BATCH.source_lengths)
    state, logits = memory.initial, []
    for words in BATCH.inputs.unbind(1):
        step, state = model.step(memory, words, state)
        logits.append(step)
    return torch.stack(logits, dim=1)


@contextmanager
def hooked(point: HookPoint, hook: Any) -> Iterator[None]:
    handle = point.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def test_sites_are_where_the_hook_points_say(model: Seq2Seq) -> None:
    points, sites = model.hook_points(), run(model).sites
    assert {point.site for point in points.values()} - {None} == set(sites)
    assert model.crossing_sites() == list(crossing(sites))
    for name, site in sites.items():
        sides = {"queries": site.query_side, "keys": site.key_side, "values": site.key_side,
                 "scores": site.query_side, "weights": site.query_side}  # fmt: skip
        for part, side in sides.items():
            point = points[f"{name}.{part}"]
            assert (point.name, point.side, point.site) == (f"{name}.{part}", side, name)
            seen: list[Tensor] = []
            with hooked(point, lambda _module, _inputs, x, seen=seen: seen.append(x)):
                run(model)
            passed = torch.cat(seen, dim=2 if len(seen) > 1 else 0)
            if part != "values":
                rows = passed if part == "keys" else passed.expand_as(getattr(site, part))
                assert torch.equal(rows, getattr(site, part)), (name, part)
    parts = ("queries", "keys", "values", "scores", "weights")
    for name in set(points) - {f"{site}.{part}" for site in sites for part in parts}:
        side, _, what = name.partition(".")
        assert points[name].name == name and points[name].side == side
        assert what in ("embedding", "states")
    assert {"encoder.embedding", "encoder.states", "decoder.states"} <= set(points)


def test_what_a_hook_puts_there_counts_on_every_path(model: Seq2Seq) -> None:
    """Other words' vectors, queries, keys and values: at once, step by step, and with gates."""
    plain = run(model)
    for name, point in model.hook_points().items():
        with hooked(point, lambda _module, _inputs, x: x * 0.5):
            output = run(model)
            steps = run_steps(model)
            traced = model.trace(BATCH.source, BATCH.source_lengths, BATCH.inputs)
        torch.testing.assert_close(steps, output.logits, msg=name)
        torch.testing.assert_close(traced.logits, output.logits, msg=name)
        if point.side == "decoder":
            assert torch.equal(output.encoder_states, plain.encoder_states)
        site = plain.sites.get(point.site or "")
        idle = site is not None and not name.endswith("values") and not bool(site.keys.any())
        if name.endswith("queries") and site is not None:
            idle |= not bool(site.queries.any())  # nothing asks
        idle |= name == "encoder.states" and not plain.sites  # nothing looks at the source
        if not idle:
            assert not torch.equal(output.logits, plain.logits), name


def test_a_hook_is_seen_where_gradients_go_by_hand() -> None:
    """A large model and a small batch would take a pass of their own, which passes no point."""
    config, kind = MODELS["encoder-decoder"]
    made: Any = kind
    settings = {"cell": "gru", "attention": "additive-relu", "attend": "before", "focus": "full"}
    model: Seq2Seq = made(config(hidden=60, **settings), 9, 9)
    one = BATCH[:1]
    plain = model(one.source, one.source_lengths, one.inputs).logits
    names = ("decoder.embedding", "decoder.states", "attention.queries", "attention.values",
             "attention.scores", "attention.weights")  # fmt: skip
    for name in names:
        with hooked(model.hook_points()[name], lambda _module, _inputs, x: x * 0):
            changed = model(one.source, one.source_lengths, one.inputs).logits
        assert not torch.equal(changed, plain), name


def test_blocks_are_all_matrices_once(model: Seq2Seq) -> None:
    idle = {
        cell.weight_hh
        for module in model.modules() if isinstance(module, FeedForward)
        for cell in module.modules() if isinstance(cell, Cell)
    }  # fmt: skip
    matrices = [p for p in model.parameters() if p.ndim == 2 and p not in idle]
    blocks = model.blocks()
    assert sum(block.numel() for block in blocks.values()) == sum(p.numel() for p in matrices)
    with torch.no_grad():
        for block in blocks.values():
            block.zero_()
    assert not any(p.any() for p in matrices), "blocks are the parameters themselves"
    assert "readout" in blocks


def test_components_are_all_parameters(model: Seq2Seq) -> None:
    parts, names = model.components(), [name for name, _ in model.named_parameters()]
    assert sorted(parts["encoder"] + parts["decoder"]) == sorted(names)
    for component, held in parts.items():
        assert held == model.parameters_of([component])
        assert held == [name for name in names if name in held], "in the order of the model"
        side = "encoder" if component.startswith("encoder") else "decoder"
        assert set(held) <= set(parts[side])
    assert model.parameters_of([]) == []
    with pytest.raises(RegardError) as caught:
        model.parameters_of(["encodr", "output", "outptu"])
    assert len(caught.value.faults) == 2


def test_cells_have_the_units_that_are_recorded(model: Seq2Seq) -> None:
    cells = model.cells()
    output = model.trace(BATCH.source, BATCH.source_lengths, BATCH.inputs)
    if any(isinstance(module, FeedForward) for module in model.modules()):
        assert cells == {}
        return
    every = {module for module in model.modules() if isinstance(module, Cell)}
    assert {one.cell for one in cells.values()} == every
    gates = [name for one in cells.values() for name in one.recorded if ".gates." in name]
    assert sorted(gates) == sorted(output.gates)
    for name, one in cells.items():
        assert name in one.shares or not one.shares
        assert all(columns.shape[1] == one.cell.hidden for columns in one.columns)
    if any(name.startswith("decoder") for name in cells):
        found = [one.cell.hidden for one in cells.values() if "decoder.states" in one.recorded]
        assert found == [output.decoder_states.shape[2]]


@torch.no_grad()
def silence(one: RecurrentCell, unit: int) -> None:
    for parameter in one.cell.parameters():
        parameter.view(one.cell.blocks, one.cell.hidden, -1)[:, unit] = 0
    for columns in one.columns:
        columns[:, unit] = 0


def readers(model: Seq2Seq, name: str, unit: int) -> list[Tensor]:
    """What reads a unit of the encoder inside of the encoder."""
    cells = model.cells()
    layer, back = int(name.split(".")[1]), name.endswith("back")
    shift = cells[name].cell.hidden if back else 0
    above = [cells[n].cell for n in (f"encoder.{layer + 1}", f"encoder.{layer + 1}.back")
             if n in cells]  # fmt: skip
    return [cells[name].cell.weight_hh[:, unit], *(c.weight_ih[:, unit + shift] for c in above)]


@pytest.mark.parametrize("unit", [0, 4])
@torch.no_grad()
def test_a_unit_with_nothing_in_its_columns_is_not_read(model: Seq2Seq, unit: int) -> None:
    for name in model.cells():
        fresh = copy.deepcopy(model)
        cells = fresh.cells()
        for other in cells[name].shares or [name]:
            silence(cells[other], unit)
        plain = run(fresh).logits
        if name.startswith("encoder"):
            for column in readers(fresh, name, unit):
                column.normal_()
            assert torch.equal(run(fresh).logits, plain), name
            continue
        memory = fresh.encode(BATCH.source, BATCH.source_lengths)
        noisy = _noise(memory, cells, name, unit)
        assert torch.equal(fresh.decode(noisy, BATCH.inputs).logits, plain), name


def _noise(memory: Memory, cells: dict[str, RecurrentCell], name: str, unit: int) -> Memory:
    """Noise in a silenced unit's first state; where it starts from zero, there is none to add."""
    before = [n for n in cells if n.startswith("decoder") and n < name]
    start = sum(len(cells[n].cell.state_names) for n in before)
    initial = list(memory.initial)
    for member in range(start, start + len(cells[name].cell.state_names)):
        if initial[member][:, unit].any():
            initial[member] = initial[member].clone()
            initial[member][:, unit] += torch.randn(len(BATCH))
    return memory._replace(initial=tuple(initial))


def test_a_kept_unit_is_read(model: Seq2Seq) -> None:
    """The test above would pass, too, were nothing read at all."""
    cells = model.cells()
    if "decoder.0" not in cells:
        return
    with torch.no_grad():
        memory = model.encode(BATCH.source, BATCH.source_lengths)
        plain = model.decode(memory, BATCH.inputs).logits
        noisy = _noise(memory, cells, "decoder.0", 0)
        assert not torch.equal(model.decode(noisy, BATCH.inputs).logits, plain)


def test_a_bag_of_words_says_so(model: Seq2Seq) -> None:
    settings: Any = model.config  # type: ignore[union-attr]
    assert model.is_bag_of_words == (getattr(settings, "cell", "") == "none")


def test_a_model_of_somebody_else_has_some_parts() -> None:
    """What `Seq2Seq` says of a model that says nothing of itself."""
    names = {"encoder": nn.Linear(2, 3), "decoder": nn.Linear(3, 3), "readout": nn.Linear(3, 4)}
    other = type("Other", (Seq2Seq,), dict.fromkeys(("encode", "decode", "step", "trace")))()
    for name, part in names.items():
        setattr(other, name, part)
    assert list(other.blocks()) == ["encoder", "decoder", "readout"]
    assert other.components() == {
        "encoder": ["encoder.weight", "encoder.bias"],
        "decoder": ["decoder.weight", "decoder.bias", "readout.weight", "readout.bias"],
    }
    assert other.hook_points() == {} and other.cells() == {} and other.crossing_sites() == []
    assert not other.is_bag_of_words
