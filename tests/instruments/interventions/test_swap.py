"""`swap`: what is swapped is the donor's, stays so, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from changed import KINDS, here, trained, weights

import regard
from regard import RegardError, Run
from regard.instruments.interventions._retrain import choose_duration
from regard.instruments.interventions.swap import exchange, swaps
from regard.runs import RunConfig, execute, list_runs
from regard.runs.files import read_json, read_origin
from regard.training import loop
from regard.training.evaluation import UNBOUNDED


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("kind", KINDS)
def test_the_component_is_the_donors_and_the_rest_is_not(kind: str, root: Path) -> None:
    into, donor = trained(kind, root), trained(kind, root, seed=1)
    own, other = weights(into), weights(donor)
    known = into.model().components()
    assert sorted(known["encoder"] + known["decoder"]) == sorted(
        name for name, _ in into.model().named_parameters()
    )
    for component, names in known.items():
        changed = exchange(into, donor, component)
        found = changed.model().state_dict()
        assert found.keys() == own.keys()
        for name, tensor in found.items():
            assert torch.equal(tensor, (other if name in names else own)[name]), name
        assert changed.training == {"freeze": (component,), "updates": 12}


@pytest.mark.parametrize(
    ("kind", "component"),
    [("baan", "decoder.W_hh"), ("transformer", "attention"), ("ao", "encoder"),
     ("two-way", "encoder"), ("layers", "decoder.embedding")],
)  # fmt: skip
def test_what_is_frozen_stays_to_the_bit_and_the_rest_learns(
    kind: str, component: str, root: Path, tmp_path: Path
) -> None:
    into, donor = trained(kind, root), trained(kind, root, seed=1)
    result = regard.swap(into, donor, component, updates=6, out=tmp_path, train=here)
    new = Run.open(result.first.runs["retrained"])
    assert new.folder.parent == tmp_path and new.config.training.updates == 6
    model = into.model()
    given, found, start = weights(donor), weights(new, "last"), weights(new, 0)
    names = model.components()[component]
    learned = [name for name, p in model.named_parameters() if p.requires_grad]
    for name in names:
        assert torch.equal(found[name], given[name]), name
    moved = [n for n in learned if not torch.equal(found[n], start[n])]
    assert moved and not set(moved) & set(names)
    if kind != "ao":  # where an encoder is frozen, hardly anything is left there
        assert len(moved) > 0.7 * len(set(learned) - set(names))
    assert new.metrics.keys() == into.metrics.keys()
    stages = result.first.stages
    assert stages["as it was"]["accuracy"] == into.metrics["accuracy"]
    assert stages["retrained"]["token_accuracy"] == new.metrics["token_accuracy"]
    assert "loss" not in stages["swapped"]


def test_a_model_given_its_own_component_is_as_it_was(root: Path) -> None:
    run = trained("baan", root)
    changed = exchange(run, run, "decoder")
    assert changed.metrics() == {k: v for k, v in run.metrics.items() if k not in UNBOUNDED}


def test_the_new_run_is_an_ordinary_one_and_says_where_it_comes_from(
    root: Path, tmp_path: Path
) -> None:
    into, donor = trained("baan", root), trained("baan", root, seed=1)
    result = regard.swap(into.folder, str(donor.folder), "output", 5, out=tmp_path, train=here)
    new = Run.open(result.first.runs["retrained"])
    origin = {"by": "swap", "into": into.folder.name, "from": donor.folder.name,
              "component": "output"}  # fmt: skip
    assert read_json(new.folder / "provenance.json")["start"] == origin
    assert new.config.training.start is not None
    assert read_origin(Path(new.config.training.start)) == origin
    assert [run.folder for run in list_runs(tmp_path)] == [new.folder]
    (tmp_path / "starts").rename(tmp_path / "gone")
    again = Run.open(new.folder)
    assert again.metrics == new.metrics
    assert regard.record(again, n=4)
    further = exchange(again, donor, "focus", updates=1)
    assert further.training["freeze"] == ("output", "focus"), "what was frozen stays frozen"


def test_cut_it_goes_on_to_the_same_bits(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = exchange(trained("aed", root), trained("aed", root, seed=1), "encoder.W_ih")
    whole = execute(changed.config(tmp_path / "a"), tmp_path / "a")
    config = changed.config(tmp_path / "b")
    assert config.name == whole.config.name, "where the weights lie does not matter"
    real = loop.Trainer.step

    def step(self: loop.Trainer) -> float:
        if self.update == 7:
            raise KeyboardInterrupt
        return real(self)

    monkeypatch.setattr(loop.Trainer, "step", step)
    with pytest.raises(KeyboardInterrupt):
        execute(config, tmp_path / "b")
    monkeypatch.setattr(loop.Trainer, "step", real)
    assert config.training.start is not None
    Path(config.training.start).rename(tmp_path / "elsewhere")
    before = sorted((tmp_path / "b").rglob("*"))
    with pytest.raises(RegardError, match="no file of weights") as caught:
        execute(Run.open(tmp_path / "b" / whole.config.name).config, tmp_path / "b")
    assert len(caught.value.faults) == 1
    assert sorted((tmp_path / "b").rglob("*")) == before, "nothing is left behind"
    cut = execute(changed.config(tmp_path / "b"), tmp_path / "b")
    assert cut.folder.name == whole.folder.name
    assert cut.metrics == whole.metrics
    for checkpoint in (0, 5, 10, 12):
        assert cut.weights(checkpoint) == whole.weights(checkpoint)


def test_several_components_and_pairs(root: Path, tmp_path: Path) -> None:
    into, donors = ([trained("aed", root, seed) for seed in seeds] for seeds in ((0, 1), (1, 2)))
    asked: list[int] = []

    def train(configs: Sequence[RunConfig], root: Path) -> list[Run]:
        asked.append(len(configs))
        return here(configs, root)

    wanted = ["encoder", "output", "encoder"]
    results = swaps(into, donors, wanted, updates=2, out=tmp_path, train=train)
    assert [(found.component, found.n) for found in results] == [("encoder", 2), ("output", 2)]
    assert asked == [4], "all at once"
    plain = json.loads(json.dumps(results[0].to_json()))
    assert plain["values"]["accuracy retrained"]["seeds"] == 2
    assert plain["values"]["accuracy retrained"]["interval"] is not None
    assert plain["component"] == "encoder" and len(plain["runs"]) == 2
    table = results[0].table()
    assert table.columns == ("accuracy", "as it was", "swapped", "retrained")
    assert "2 pairs" in table.title
    files = results[0].save(tmp_path / "figures")
    assert [file.name for file in files] == ["swap.json", "swap.csv", "swap.svg", "swap.html"]


def test_all_faults_at_once(root: Path, tmp_path: Path) -> None:
    into, wide = trained("aed", root), trained("aed", root, hidden=6)
    with pytest.raises(RegardError) as caught:
        exchange(into, wide, "encoder.W_ih")
    (fault,) = caught.value.faults
    assert "24 x" in fault and "18 x" in fault and wide.folder.name in fault
    with pytest.raises(RegardError) as caught:
        swaps(into, wide, ["decoder", "encodr"], train=here)
    faults = caught.value.faults
    assert len(faults) == 5, "four parameters of the decoder, and the name"
    assert "Did you mean 'encoder'" in faults[-1] and "decoder.W_hh" in faults[-1]
    with pytest.raises(RegardError) as caught:
        regard.swap([into, tmp_path / "no"], tmp_path / "nowhere", "encoder")
    assert [fault.split(" is not")[0] for fault in caught.value.faults] == [
        str(tmp_path / "no"), str(tmp_path / "nowhere")
    ]  # fmt: skip
    with pytest.raises(RegardError, match="1 receiving run and 2 donors do not make pairs"):
        regard.swap(into, [into, into], "encoder")
    with pytest.raises(RegardError, match="nothing was given"):
        regard.swap([], into, "encoder")
    with pytest.raises(RegardError, match="not both"):
        exchange(into, into, "encoder", updates=3, epochs=2)
    with pytest.raises(RegardError, match="no epochs"):
        exchange(into, into, "encoder", epochs=2)


def test_equal_shapes_with_another_meaning_are_refused(root: Path) -> None:
    keeps, writes = trained("aed", root), trained("aed", root, cell="gru-cho")
    for component in ("encoder", "decoder.W_ih"):
        with pytest.raises(RegardError, match=r"model\.cell is gru-renn and gru-cho"):
            exchange(keeps, writes, component)
    assert exchange(keeps, writes, "output")
    two, four = trained("transformer", root), trained("transformer", root, heads=4)
    with pytest.raises(RegardError, match=r"model\.heads is 2 and 4"):
        exchange(two, four, "attention")
    assert exchange(two, four, "encoder.feedforward")


def test_epochs_are_updates(root: Path) -> None:
    run = trained("baan", root)
    rows = len(run.task().rows["train"])  # type: ignore[attr-defined]
    assert choose_duration(run, None, 3) == {"updates": round(3 * rows / 4)}
    assert choose_duration(run, None, None) == {"updates": 12}
    assert choose_duration(run, 7, None) == {"updates": 7}
