"""probe: against scikit-learn, loops by hand, and planted answers."""

from __future__ import annotations

from typing import Any

import brute
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from small import WORDS, phrases, recurrent

from regard import RegardError
from regard.instruments.units import groups, probe
from regard.instruments.units._classifier import fit
from regard.instruments.units._steps import Reading, Splitting, Steps, find_quantity
from regard.recordings import Recording, record

Array = brute.Array


def kept(seed: int = 0, samples: int = 60, **more: Any) -> tuple[dict[str, Array], Recording]:
    """Arrays with an alignment and predictions, and the recording of them."""
    made = brute.arrays(seed, samples=samples, **more)
    rng = np.random.default_rng(seed)
    made["predictions"] = rng.integers(0, 6, made["targets"].shape) * made["decoder.mask"]
    lengths = made["encoder.mask"].sum(axis=1, keepdims=True)
    places = rng.integers(0, lengths, made["targets"].shape)
    places[:, 0] = -1  # aligned with nothing
    made["alignment"] = np.where(made["decoder.mask"], places, -1)
    return made, brute.recording(made)


def by_hand(made: dict[str, Array], side: str, label: str) -> list[tuple[int, int, str]]:
    """(sample, time, label) of every step that has a label."""
    found = []
    for a, t in zip(*np.nonzero(made[f"{side}.mask"]), strict=True):
        place = int(made["alignment"][a, t]) if label == "attended" else int(t)
        if label in ("source", "attended"):
            if (
                not 0 <= place < made["encoder.words"].shape[1]
                or not made["encoder.mask"][a, place]
            ):
                continue
            name = f"e{made['encoder.words'][a, place]}"
        elif label == "position":
            name = str(t)
        elif label == "word":
            name = f"{side[0]}{made[f'{side}.words'][a, t]}"
        else:
            name = f"d{made[label + 's'][a, t]}"
        found.append((int(a), int(t), name))
    return found


@pytest.mark.parametrize(
    ("side", "label"),
    [("encoder", "word"), ("encoder", "position"), ("encoder", "source")]
    + [("decoder", x) for x in ("word", "position", "target", "prediction", "source", "attended")],
)
def test_labels_by_hand(side: str, label: Any) -> None:
    made, recording = kept(source=5, target=7)
    steps = Steps.of(recording, Reading(f"{side}.states", label))
    wanted = by_hand(made, side, label)
    assert [steps.classes[n] for n in steps.labels] == [name for _, _, name in wanted]
    assert list(steps.samples) == [a for a, _, _ in wanted]
    vectors = [made[f"{side}.states"][a, t] for a, t, _ in wanted]
    np.testing.assert_array_equal(steps.vectors, np.array(vectors))
    words = made[f"{side}.words"]
    for row, (a, t, _) in zip(steps.words, wanted, strict=True):
        assert list(row) == [int(words[a, t - k]) if t >= k else -1 for k in range(4)]
    some = Steps.of(
        recording,
        Reading(f"{side}.states", label, only="[!02]" if label == "position" else "?[!02]"),
    )
    assert len(some) == sum(name[-1] not in "02" for _, _, name in wanted)
    assert not {"e0", "e2", "d0", "d2", "0", "2"} & set(some.classes)
    few = Steps.of(recording, Reading(f"{side}.states", label, limit=11))
    assert len(few) == 11


def test_positions_are_in_the_order_of_time() -> None:
    _, recording = kept(source=12)
    steps = Steps.of(recording, Reading(label="position"))
    assert steps.classes == tuple(str(n) for n in range(12))


@pytest.mark.parametrize("by", ["sample", "step", "distinct"])
def test_splits(by: Any) -> None:
    made, _ = kept(samples=40)
    made["encoder.states"][1] = made["encoder.states"][0]  # copies, in another sample
    made["encoder.words"][1], made["encoder.mask"][1] = 0, made["encoder.mask"][0]
    steps = Steps.of(brute.recording(made), Reading())
    parts = {"sample": steps.samples, "step": np.arange(len(steps)), "distinct": steps.copies}[by]
    assert len(np.unique(steps.copies)) < len(steps)
    tests = []
    for train, test in steps.split(Splitting(3, 0.2, by, seed=4)):
        assert sorted([*train, *test]) == list(range(len(steps)))
        assert not set(parts[train]) & set(parts[test])
        assert len(set(parts[test])) == np.ceil(0.2 * len(set(parts)))
        tests.append(tuple(test))
    assert len(set(tests)) == 3
    again = [tuple(test) for _, test in steps.split(Splitting(3, 0.2, by, seed=4))]
    assert again == tests
    other = [tuple(test) for _, test in steps.split(Splitting(3, 0.2, by, seed=5))]
    assert other != tests


def test_probe_by_hand() -> None:
    _, recording = kept(noise=1.5)
    reading, how = Reading("decoder.states", "target", "d[1-4]"), Splitting(3, 0.2, "step", 7)
    found = probe(
        recording, "decoder.states", "target", "d[1-4]", splits=3, test_share=0.2, by="step",
        seed=7, C=0.5,
    )  # fmt: skip
    steps = Steps.of(recording, reading)
    numbers: dict[str, list[float]] = {"accuracy": [], "training": [], "majority": []}
    for train, test in steps.split(how):
        model = LogisticRegression(C=0.5, max_iter=1000)
        model.fit(steps.vectors[train], steps.labels[train])
        numbers["accuracy"].append(model.score(steps.vectors[test], steps.labels[test]))
        numbers["training"].append(model.score(steps.vectors[train], steps.labels[train]))
        most = np.bincount(steps.labels[train]).argmax()
        numbers["majority"].append(np.mean(steps.labels[test] == most))
    values = found.first.values()
    for name, wanted in numbers.items():
        assert found.first.shares[name] == pytest.approx(wanted, abs=1e-9)
        assert values[name] == pytest.approx(np.mean(wanted))
    assert values["selectivity"] == pytest.approx(values["accuracy"] - values["control"])
    assert found.first.classes == ("d1", "d2", "d3", "d4")
    again = probe(
        recording, "decoder.states", "target", "d[1-4]", splits=3, test_share=0.2, by="step",
        seed=7, C=0.5, control=False,
    )  # fmt: skip
    assert "control" not in again.first.values() and "selectivity" not in again.first.values()
    assert again.first.values()["accuracy"] == values["accuracy"]


def test_no_regularisation_is_scikit_learns() -> None:
    _, recording = kept(noise=2.0, samples=200)
    steps = Steps.of(recording, Reading())
    free = fit(steps.vectors, steps.labels, np.inf)
    model = LogisticRegression(C=1e9, max_iter=5000).fit(steps.vectors, steps.labels)
    ours = free.weights[:, 1:] - free.weights[:, 1:].mean(axis=0)
    np.testing.assert_allclose(ours, model.coef_ - model.coef_.mean(axis=0), atol=0.02)
    plain = probe(recording, regularisation="none", control=False).first.values()
    assert plain == probe(recording, C=np.inf, control=False).first.values()
    assert plain["training"] != probe(recording, C=1e-4, control=False).first.values()["training"]


def test_a_word_that_is_there_is_found_and_noise_is_not() -> None:
    made, _ = kept(noise=0.1, samples=80, hidden=8)
    values = probe(brute.recording(made), control=True).first.values()
    assert values["accuracy"] == 1 and values["repeated"] == 0
    made["encoder.states"] = np.random.default_rng(0).normal(size=made["encoder.states"].shape)
    noise = probe(brute.recording(made)).first.values()
    assert noise["accuracy"] < noise["majority"] + 0.1


def test_the_control_task_is_not_the_task_again() -> None:
    """A word's own label is a renaming; so the types are words with the words before them."""
    _, recording = kept(noise=0.1, samples=300, hidden=8)
    steps = Steps.of(recording, Reading())
    types = steps.types()
    for row, number in zip(steps.words, types, strict=True):
        assert (steps.words[types == number][:, :2] == row[:2]).all()
    assert types.max() + 1 >= 10 * len(steps.classes)
    one = steps.types(1)
    assert one.max() + 1 == len(steps.classes)
    values = probe(recording).first.values()
    assert values["accuracy"] == 1 and values["control"] < 0.8
    same = probe(recording, history=1).first.values()
    assert same["control"] == 1 and same["selectivity"] == 0, "a renaming is as easy"
    with pytest.raises(RegardError, match="1 to 4"):
        probe(recording, history=5)


def test_control_labels_belong_to_types() -> None:
    """Where every type has vectors of its own, the random labels are learnt to the last."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 60, (200, 3))
    made = {"encoder.words": words, "encoder.states": 20 * np.eye(60, dtype=np.float32)[words]}
    kinds = [f"e{n}" for n in range(60)]
    recording = record(made, source_words=kinds, scorer="none")
    values = probe(recording, label="position", C=1e4).first.values()
    assert values["control"] == pytest.approx(values["control known"], abs=0.02)
    assert values["accuracy"] < 0.6 and values["repeated"] > 0.9


def test_two_classes_and_one_in_training() -> None:
    _, recording = kept(samples=100)
    values = probe(recording, only="e[01]").first.values()
    assert values["accuracy"] > values["majority"]
    found = groups(recording, only="e[01]", ranking="both").first
    assert set(found.groups) == {"aggregate", "first-class"}
    one = fit(np.ones((3, 2)), np.array([4, 4, 4]), 1.0)
    assert one.accuracy(np.ones((2, 2)), np.array([4, 0])) == 0.5


def test_quantities_are_found_by_parts_of_their_names() -> None:
    batches = [phrases(40)]
    settings = {"vocabularies": (WORDS, WORDS), "batches": batches, "inputs": "teacher"}
    one = record(recurrent("dot"), gates=True, **settings)
    assert find_quantity(one, "decoder.gates.update") == "decoder.gates.0.update"
    assert find_quantity(one, "encoder.gates.reset") == "encoder.gates.0.ahead.reset"
    assert find_quantity(one, "keys") == "attention.keys"
    assert probe(one, "decoder.gates.update", "target").first.quantity == "decoder.gates.0.update"
    assert probe(one, "queries", "position", control=False).first.quantity == "attention.queries"
    with pytest.raises(RegardError, match=r"may be any of .*decoder\.gates\.0\.reset"):
        probe(one, "decoder.gates")
    with pytest.raises(RegardError, match=r"Did you mean 'encoder\.states'"):
        probe(one, "encoder.state")
    with pytest.raises(RegardError, match="There is no quantity 'weights'"):
        probe(one, "weights")
    two = record(recurrent("dot", layers=2), gates=True, **settings)
    with pytest.raises(RegardError, match=r"decoder\.gates\.1\.update"):
        groups(two, "decoder.gates.update")
    bare = record(recurrent("dot"), **settings)
    with pytest.raises(RegardError, match="--also gates"):
        probe(bare, "decoder.gates.update")
    heads = record(recurrent("scaled", 2), **settings)
    first, second = (Steps.of(heads, Reading("keys", head=n)).vectors for n in (0, 1))
    assert (first != second).any() and first.shape == second.shape
    with pytest.raises(RegardError, match="heads 0 to 1"):
        probe(heads, "keys", head=2)


def test_what_cannot_be_probed_is_refused() -> None:
    made, recording = kept()
    with pytest.raises(RegardError, match="decoder's steps"):
        probe(recording, label="target")
    with pytest.raises(RegardError, match="none at all"):
        probe(recording, only="t?*")
    with pytest.raises(RegardError, match="all have the label 'e1'"):
        groups(recording, only="e1")
    with pytest.raises(RegardError, match="larger means less penalty"):
        probe(recording, C=0)
    with pytest.raises(RegardError, match="test_share"):
        groups(recording, test_share=1.0)
    with pytest.raises(RegardError, match="share="):
        groups(recording, share=0)
    del made["alignment"]
    with pytest.raises(RegardError, match="label=source"):
        probe(brute.recording(made), "decoder.states", "attended")
