from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import BENCHMARKS
from benchmarks.captions import Captions
from benchmarks.ibm import ibm_ratio
from benchmarks.plain_copying import NAMES, copying
from benchmarks.plain_loop import rename
from benchmarks.probing import Probe, probe_ratio
from benchmarks.snell import copying_ratio, snell
from benchmarks.translating import operations, operations_of, peak_share, trainer
from regard.errors import RegardError
from regard.tasks.vocabulary import EOS, PAD, SOS
from regard.training.forcing import forward
from regard.training.losses import likelihood

SMALL: dict[str, Any] = {"hidden": 16, "embedding": 12}
SHORT: dict[str, Any] = {"vocabulary": 9, "length": 6, "batch": 7}


def test_copying_equals_the_plain_loop_update_by_update() -> None:
    """Same weights, same batches, same Adam: the loop over steps has the same losses."""
    ours, plain = copying(**SMALL, **SHORT)
    for _ in range(8):
        assert ours.step() == pytest.approx(plain.step(), abs=1e-5)


def test_copying_and_the_plain_loop_have_the_same_gradients() -> None:
    ours, loop = copying(**SMALL, **SHORT)
    model, plain = ours.model.double(), loop.model.double()
    plain.load_state_dict(rename(model.state_dict(), NAMES))
    batch = ours.task.train_batch(0, 7, 0)
    output = forward(model, batch, torch.ones(batch.target.shape[1], dtype=torch.bool))
    loss = likelihood(output.logits, batch.target, batch.target_mask)
    (theirs,) = plain(batch)
    torch.testing.assert_close(theirs, loss)
    loss.backward()  # type: ignore[no-untyped-call]
    theirs.backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    wanted = rename(found, NAMES)
    assert set(wanted) == {name for name, _ in plain.named_parameters()}
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name])


def test_the_model_has_the_size_of_the_paper() -> None:
    ours, plain = copying()
    count = sum(p.numel() for p in plain.model.parameters())
    assert ours.model.parameter_count == count == 1_337_130
    assert (ours.config.batch, ours.task.split("test").source.shape[1]) == (128, 40)


def test_the_probe_equals_one_pass_per_position(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe(6, words=300, **SMALL)
    wanted = probe.plainly()[probe.mask]
    torch.testing.assert_close(probe.ours()[probe.mask], wanted, atol=1e-5, rtol=0)
    monkeypatch.setattr(
        "regard.models.layers.readout.AT_ONCE", 7 * 300
    )  # many pieces, the last not full
    torch.testing.assert_close(probe.ours()[probe.mask], wanted, atol=1e-5, rtol=0)
    assert not probe.ours()[~probe.mask].any()
    monkeypatch.setattr("benchmarks.probing.CLOSE", -1.0)
    with pytest.raises(RegardError, match="nothing to"):
        probe_ratio(2, 50, rounds=1, **SMALL)


def test_captions_look_like_captions() -> None:
    task = Captions(500)
    batch = task.fresh(400, seed=0)
    for words, mask in ((batch.source, batch.source_mask), (batch.target, batch.target_mask)):
        lengths = mask.sum(dim=1)
        assert (words[torch.arange(400), lengths - 1] == EOS).all()
        assert ((words == PAD) == ~mask).all()
        assert int(words.max()) < 500
        assert 13 < float(lengths.float().mean()) < 18
        assert 4 < float(lengths.float().std()) < 6.5
    assert (batch.source[:, 0] == SOS).all()
    assert int((batch.source == SOS).sum()) == 400
    assert not (batch.target == SOS).any()
    together = np.corrcoef(batch.source_lengths, batch.target_lengths)[0, 1]
    assert 0.75 < together < 0.92
    assert torch.equal(batch.source, task.fresh(400, seed=0).source)


def test_operations_are_those_of_a_loop_over_words() -> None:
    """Counted one word, one product at a time, each (rows, in) by (in, out)."""
    ours = trainer(50, hidden=6, embedding=5, batch=3)
    config: Any = ours.model.config
    batch = ours.task.train_batch(0, 3, 0)
    h, e, count = 6, 5, 0
    lengths = zip(batch.source_lengths.tolist(), batch.target_lengths.tolist(), strict=True)
    for source, target in lengths:
        for place in range(source):
            for inputs in (e, 2 * h):
                count += 2 * (inputs * 4 * h + (h * 4 * h if place else 0))
        for _ in range(target):
            count += e * 4 * h + 3 * h * 4 * h  # two layers of the decoder
            count += h * 2 * h + source * 2 * h + source * 2 * h  # query, scores, mixture
            count += 2 * h * h + 2 * h * h + h * 50
    assert operations(batch, config, 50) == 6 * count
    again = ours.task.train_batch(1, 3, 0)
    assert operations_of(ours, 2) == 6 * count + operations(again, config, 50)


def test_the_benchmark_runs_small() -> None:
    found = snell(
        partial(copying_ratio, rounds=1, calls=2, **SMALL, **SHORT),
        partial(probe_ratio, 3, 60, rounds=1, **SMALL),
        partial(ibm_ratio, 300, iterations=2, rounds=1),
        partial(peak_share, rounds=1, updates=2, words=60, batch=3, **SMALL),
    )
    goals = {name: goal for name, (_, goal, _) in found.ratios.items()}
    assert goals == {"copying_update": 1.5, "lexical_probe": 3.0, "ibm1": 20.0, "peak_share": 0.4}
    assert all(measured > 0 for measured, _, _ in found.ratios.values())
    raw = json.loads(json.dumps(found.to_json()))["raw"]
    assert raw["translation"]["sentences_per_second"] > 0
    assert sum(raw["translation"]["update"]["shares"].values()) == pytest.approx(1)
    assert raw["probe"]["pairs"] < raw["probe"]["padded_pairs"]
    assert BENCHMARKS["snell"] is snell
