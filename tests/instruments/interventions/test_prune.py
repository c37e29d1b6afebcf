"""`prune`: what is gone is really gone, stays gone where it is held, and may grow back else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from changed import KINDS, here, trained, weights
from torch import Tensor

import regard
from regard import RegardError, Run
from regard.instruments.interventions.prune import cut_down, prune_units, prune_weights
from regard.models import EncoderDecoder
from regard.models.seq2seq import Memory
from regard.runs import assemble, execute
from regard.runs.files import read_json
from regard.tasks import Batch
from regard.training import loop

RECURRENT = ("baan", "aed", "ved", "layers", "two-way")
KEEP, KEPT = 0.25, 2  # of eight units


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def made(kind: str, **more: object) -> tuple[EncoderDecoder, Batch]:
    """A model of random weights, none of them zero, and phrases to read."""
    task, preset, settings = KINDS[kind]
    config = assemble(task, preset, 0, {**settings, **more})
    model = config.make_model(config.make_task()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    assert isinstance(model, EncoderDecoder)
    return model, config.make_task().split("validation")


def silent(states: Tensor) -> list[int]:
    """The units that are exactly zero at every step of every phrase."""
    return (states == 0).all(dim=0).all(dim=0).nonzero().flatten().tolist()


@torch.no_grad()
def encoder_states(model: EncoderDecoder, batch: Batch) -> Tensor:
    """The states of the last layer, before anything is made of them."""
    states, _ = model.encoder(
        model._enter(model.source_embedding(batch.source), model.source_vectors),
        batch.source_lengths,
    )
    return states


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("cell", ["gru-torch", "gru-renn", "gru-cho", "lstm", "tanh", "ugrnn"])
def test_a_silenced_unit_says_nothing(kind: str, cell: str) -> None:
    model, batch = made(kind, cell=cell)
    assert silent(encoder_states(model, batch)) == []
    kept = prune_units(model, KEEP)
    assert all(len(units) == KEPT for units in kept.values())
    last = model.config.layers - 1
    ways = [kept[name] for name in kept if name.startswith(f"encoder.{last}")]
    alive = [unit + 8 * way for way, units in enumerate(ways) for unit in units]
    gone = sorted(set(range(8 * len(ways))) - set(alive))
    assert silent(encoder_states(model, batch)) == gone
    names = [f"encoder.{n}" + w for n in range(last + 1) for w in ("", ".ahead", ".back")]
    assert sorted(name for name in kept if name.startswith("encoder")) == sorted(
        name for name in names if name in kept
    )
    assert len(kept) == (last + 1) * (len(ways) + 1)
    memory = model.encode(batch.source, batch.source_lengths)
    _check_decoder(model, memory, batch, kept)


@torch.no_grad()
def _check_decoder(
    model: EncoderDecoder, memory: Memory, batch: Batch, kept: dict[str, list[int]]
) -> None:
    """Put noise into the silenced units of a decoder's state: no logit moves, ever."""
    plain = model.decode(memory, batch.inputs).logits
    states = list(memory.initial)
    parts = model.per_layer
    for layer in range(model.config.layers):
        gone = sorted(set(range(8)) - set(kept[f"decoder.{layer}"]))
        if model.config.bidirectional and layer == model.config.layers - 1:
            assert all((state[:, gone] == 0).all() for state in states[layer * parts :][:parts])
            continue  # the state is the query, and starts from zero
        for part in range(parts):
            noisy = states[layer * parts + part].clone()
            noisy[:, gone] += torch.randn(len(noisy), len(gone))
            states[layer * parts + part] = noisy
    noisy_logits = model.decode(memory._replace(initial=tuple(states)), batch.inputs).logits
    assert torch.equal(noisy_logits, plain)
    kept_unit = kept["decoder.0"][0]
    states[0] = states[0].clone()
    states[0][:, kept_unit] += 1
    moved = model.decode(memory._replace(initial=tuple(states)), batch.inputs).logits
    assert not torch.equal(moved, plain), "a unit that was kept does matter"


def test_the_strongest_units_are_kept() -> None:
    model, _ = made("ved", cell="tanh")
    strong = {"encoder": [1, 6], "decoder": [0, 3]}
    with torch.no_grad():
        for chain, units in ((model.encoder.ahead, strong["encoder"]),
                             (model.decoder, strong["decoder"])):  # fmt: skip
            cell = chain[0]
            cell.weight_ih[units] *= 10
            cell.weight_hh[:, units] *= 10
    assert prune_units(model, KEEP) == {
        "encoder.0": strong["encoder"], "decoder.0": strong["decoder"]
    }  # fmt: skip


def test_units_that_meet_in_a_dot_product_go_together() -> None:
    model, _ = made("aed")
    kept = prune_units(model, KEEP)
    assert kept["encoder.0"] == kept["decoder.0"]


def test_to_keep_all_changes_nothing() -> None:
    for kind in RECURRENT:
        model, _ = made(kind)
        before = {name: t.clone() for name, t in model.state_dict().items()}
        prune_units(model, 1.0)
        prune_weights(model, 1.0)
        assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep", [0.05, 0.3])
def test_the_share_of_weights(kind: str, keep: float) -> None:
    task, preset, settings = KINDS[kind]
    config = assemble(task, preset, 0, settings)
    model = config.make_model(config.make_task())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    prune_weights(model, keep)
    matrices = 0
    for name, after in model.named_parameters():
        if name.rpartition(".")[2] in ("weight", "weight_ih", "weight_hh") and after.ndim == 2:
            matrices += 1
            left = after != 0
            assert int(left.sum()) == max(1, round(keep * after.numel())), name
            assert torch.equal(after[left], before[name][left])
            assert after[left].abs().min() >= before[name][~left].abs().max()
        else:
            assert torch.equal(after, before[name]), name
    assert matrices >= 5


@pytest.mark.parametrize(("kind", "what"), [("baan", "units"), ("two-way", "units"),
                                            ("transformer", "weights")])  # fmt: skip
def test_a_held_mask_holds_every_zero_and_a_free_one_does_not(
    kind: str, what: str, root: Path, tmp_path: Path
) -> None:
    run = trained(kind, root)
    result = regard.prune(run, KEEP, what, updates=10, out=tmp_path, train=here)  # type: ignore[arg-type]
    cut = cut_down(run, KEEP, what).weights  # type: ignore[arg-type]
    held, free = (Run.open(folder) for folder in result.first.runs.values())
    assert held.config.training.keep_zeros and not free.config.training.keep_zeros
    for checkpoint in held.checkpoints():
        for name, tensor in weights(held, checkpoint).items():
            assert (tensor[cut[name] == 0] == 0).all(), name
    grown = sum(int((t[cut[n] == 0] != 0).sum()) for n, t in weights(free, "last").items())
    assert grown > 0
    moved = [n for n, t in weights(held, "last").items() if not torch.equal(t, cut[n])]
    assert moved, "what was kept learns"
    origin = {"by": "prune", "from": run.folder.name, "keep": KEEP, "what": what}
    assert read_json(held.folder / "provenance.json")["start"] == origin
    assert held.config.training.start == free.config.training.start
    assert Run.open(held.folder).metrics == held.metrics
    stages = result.first.stages
    assert list(stages) == ["as it was", "pruned", "retrained, mask held", "retrained, mask free"]
    assert 0 < result.left < 1


@pytest.mark.parametrize("kind", RECURRENT)
def test_every_unit_can_grow_back(kind: str) -> None:
    """No unit is cut off on both sides so that no gradient would ever reach it."""
    model, batch = made(kind)
    prune_units(model, KEEP)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(6):
        optimizer.zero_grad()
        output = model(batch.source, batch.source_lengths, batch.inputs)
        output.logits.square().sum().backward()
        optimizer.step()
    assert silent(encoder_states(model, batch)) == []
    assert (model.decoder[-1].weight_hh != 0).any(dim=0).all()


def test_cut_it_goes_on_to_the_same_bits(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = cut_down(trained("baan", root), KEEP, updates=12).going_on(keep_zeros=True)
    config = changed.config(tmp_path)
    whole = execute(config, tmp_path / "whole")
    real = loop.Trainer.step
    for stop in (3, 7):

        def step(self: loop.Trainer, stop: int = stop) -> float:
            if self.update == stop:
                raise KeyboardInterrupt
            return real(self)

        monkeypatch.setattr(loop.Trainer, "step", step)
        with pytest.raises(KeyboardInterrupt):
            execute(config, tmp_path / "cut")
    monkeypatch.setattr(loop.Trainer, "step", real)
    cut = execute(config, tmp_path / "cut")
    assert [cut.weights(n) for n in (0, 5, 12)] == [whole.weights(n) for n in (0, 5, 12)]
    assert cut.metrics == whole.metrics


def test_without_retraining(root: Path) -> None:
    runs = [trained("aed", root, seed) for seed in (0, 1)]
    before = sorted(root.iterdir())
    result = regard.prune(runs, 0.5, mask="none")
    assert list(result.first.stages) == ["as it was", "pruned"]
    assert sorted(root.iterdir()) == before and result.first.runs == {}
    assert result.n == 2 and result.estimates()["accuracy pruned"].interval is not None
    assert "2 runs" in result.table().title
    assert np.isfinite(result.left)


def test_all_faults_at_once(root: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError) as caught:
        regard.prune(tmp_path / "no", keep=0, what="unit", mask="hold")  # type: ignore[arg-type]
    assert len(caught.value.faults) == 4
    assert "Did you mean 'units'" in str(caught.value)
    assert "Did you mean 'held'" in str(caught.value)
    assert "keep=0 does not fit" in str(caught.value)
    for kind in ("transformer", "ao"):
        with pytest.raises(RegardError, match="no recurrent units"):
            regard.prune(trained(kind, root))


def test_best_checkpoints_of_a_run_without_updates(tmp_path: Path) -> None:
    run = trained("baan", tmp_path, updates=0)
    assert run.config.training.report == "best" and run.model() and run.weights()
