"""dictionary, offset, pull: numbers by hand, and planted cases with a known answer."""

from __future__ import annotations

import brute
import numpy as np
import pytest
from small import recorded, recurrent

from regard import RegardError
from regard.instruments.components import dictionary, offset, pull

CONTEXT = {"state": (0, 4), "context": (4, 8)}


def translated(seed: int = 0, samples: int = 40) -> dict[str, brute.Array]:
    """Each source word `e` is put out as the target word `d` = (e + 2) mod 4, in its place."""
    made = brute.arrays(seed, samples=samples, source=6, target=6, words=(5, 5))
    made["decoder.mask"] = made["encoder.mask"].copy()
    made["decoder.states"] *= made["decoder.mask"][:, :, None]
    made["decoder.words"] *= made["decoder.mask"]
    made["targets"] = (made["encoder.words"] + 2) % 4 * made["decoder.mask"]
    places = np.broadcast_to(np.arange(6), made["targets"].shape)
    made["alignment"] = np.where(made["decoder.mask"], places, -1)
    return made


def test_a_planted_dictionary_is_read() -> None:
    made = translated()
    chi = brute.of(made, "encoder", 5).chi
    made["readout"] = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    for word in range(4):
        made["readout"][(word + 2) % 4, 4:] = 3 * chi[word]
    kept = brute.recording(made, (5, 5), readout=CONTEXT)
    found = dictionary(kept).first
    assert found.known
    assert found.values()["dictionary"] == 1
    assert dict(zip(found.outputs, found.found, strict=True)) == {
        "d2": "e0", "d3": "e1", "d0": "e2", "d1": "e3"
    }  # fmt: skip
    assert found.maximal("e0") == 1 and found.maximal("e4") == 0
    for part, (first, last) in CONTEXT.items():
        size = np.mean([np.linalg.norm(made["readout"][n, first:last]) for n in range(4)])
        assert found.values()[f"length of {part} readout"] == pytest.approx(size, rel=1e-4)
    made["readout"][:4, 4:] *= -1
    assert (
        dictionary(brute.recording(made, (5, 5), readout=CONTEXT)).first.values()["dictionary"] < 1
    )


def test_dictionary_by_hand() -> None:
    made = translated(1)
    made["alignment"][made["targets"] == 1] = -1  # `d1` comes from nowhere
    found = dictionary(brute.recording(made, (5, 5)), least=3).first
    chi = brute.of(made, "encoder", 5).chi
    assert "d1" not in found.outputs, "what is aligned with nothing has no true input"
    for output, row in zip(found.outputs, found.dots, strict=True):
        for word, dot in zip(found.inputs, row, strict=True):
            wanted = float(made["readout"][int(output[1])] @ chi[int(word[1])])
            assert dot == pytest.approx(wanted, abs=1e-4)
    assert found.truth == tuple(f"e{(int(output[1]) + 2) % 4}" for output in found.outputs)
    right = [a == b for a, b in zip(found.found, found.truth, strict=True)]
    assert found.values()["dictionary"] == np.mean(right)


def test_without_alignments_the_truth_is_who_occurs_with_whom() -> None:
    made = brute.arrays(2, samples=30, source=3, target=3, words=(8, 8))
    made["targets"] = made["encoder.words"].copy()
    made["decoder.mask"] = made["encoder.mask"].copy()
    kept = brute.recording(made, (8, 8))
    found = dictionary(kept, least=3).first
    assert not found.known
    for output, truth in zip(found.outputs, found.truth, strict=True):
        dice = {}
        for word in range(8):
            both = ours = theirs = 0
            for a in range(30):
                mask = made["encoder.mask"][a]
                has = int(output[1]) in made["targets"][a][mask]
                read = word in made["encoder.words"][a][mask]
                both, ours, theirs = both + (has and read), ours + has, theirs + read
            dice[f"e{word}"] = 2 * both / max(ours + theirs, 1)
        assert dice[truth] == max(dice.values())
    assert found.truth == tuple(f"e{output[1]}" for output in found.outputs)


def test_dictionary_refused() -> None:
    made = translated(samples=2)
    with pytest.raises(RegardError, match="smaller least"):
        dictionary(brute.recording(made, (5, 5)), least=50)
    with pytest.raises(RegardError, match="no readout of the context"):
        dictionary(brute.recording(made, (5, 5)), part="context")
    half = brute.recording(made, (5, 5), readout={"state": (0, 3)})
    with pytest.raises(RegardError, match="not in one space"):
        dictionary(half)


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_planted_offsets_are_found(ahead: int) -> None:
    """The decoder's mean state at step s is the encoder's at step s + `ahead`."""
    made = translated(3, samples=60)
    temporal = 6 * np.eye(10)
    rng = np.random.default_rng(0)
    for name, shift in (("encoder", 0), ("decoder", ahead)):
        states = temporal[shift : shift + 6] + 0.1 * rng.normal(size=(60, 6, 10))
        made[f"{name}.states"] = (states * made[f"{name}.mask"][:, :, None]).astype(np.float32)
    made["alignment"] = np.where(made["decoder.mask"], np.minimum(made["alignment"] + ahead, 5), -1)
    found = offset(brute.recording(made, (5, 5))).first
    assert (found.best[: 6 - ahead] == ahead).all()
    assert (found.data[: 6 - ahead] == ahead).all()
    profile = found.profile[: 6 - ahead, 5 + ahead]
    np.testing.assert_allclose(profile, 1.0)
    if not ahead:
        assert found.values()["error"] == 0


def test_offset_by_hand() -> None:
    made = translated(4)
    made["alignment"] = np.where(made["alignment"] >= 0, (made["alignment"] * 3) % 5, -1)
    found = offset(brute.recording(made, (5, 5)), window=2).first
    encoder, decoder = brute.of(made, "encoder", 5).mu, brute.of(made, "decoder", 5).mu
    best, data = np.zeros(6), np.zeros(6)
    for s in range(6):
        row = brute.softmax(np.array([decoder[s] @ mu for mu in encoder]))
        scaled = (row - row.min()) / (row.max() - row.min())
        for t in range(6):
            if abs(t - s) <= 2:
                assert found.profile[s, t - s + 2] == pytest.approx(scaled[t], abs=1e-4)
        best[s] = row.argmax() - s
        aligned = [a for a in range(len(made["alignment"])) if made["alignment"][a, s] >= 0]
        data[s] = np.mean([made["alignment"][a, s] - s for a in aligned])
    assert np.isnan(found.profile[0, :2]).all(), "there is nothing before the first step"
    wanted = {
        "temporal offset": best.mean(),
        "data offset": data.mean(),
        "error": np.abs(best - data).mean(),
        "late minus early": best[3:].mean() - best[:3].mean(),
        "correlation": brute.correlation(best, data),
    }
    assert found.values() == pytest.approx(wanted, abs=1e-6)


def test_without_alignments_lengths_give_the_offset() -> None:
    made = brute.arrays(5, samples=30, source=4, target=8)
    found = offset(brute.recording(made)).first
    ratio = made["encoder.mask"].sum() / made["decoder.mask"].sum()
    np.testing.assert_allclose(found.data, [s * ratio - s for s in range(8)])
    assert not found.known
    made["alignment"] = np.full(made["targets"].shape, -1)
    assert not offset(brute.recording(made)).first.known, "alignments with nothing tell nothing"
    made["alignment"][:, 2] = 3  # of the third step alone something is known
    found = offset(brute.recording(made)).first
    assert found.known
    np.testing.assert_array_equal(found.data, [np.nan, np.nan, 1, *[np.nan] * 5])


def test_pull_by_hand() -> None:
    made = brute.arrays(6, samples=20, source=7, target=5)
    found = pull(brute.recording(made), window=3).first
    parts, mu = brute.of(made, "encoder", 5), brute.of(made, "decoder", 6).mu
    values = {}
    for word in range(4):
        row: list[float] = []
        for gap in range(-3, 4):
            dots = []
            for a, t in zip(*np.nonzero(made["encoder.mask"]), strict=True):
                if made["encoder.words"][a, t] == word and 0 <= t - gap < len(mu):
                    _, chi, delta = brute.three(parts, made["encoder.words"], a, t)
                    dots.append(float((chi + delta) @ mu[t - gap]))
            row.append(float(np.mean(dots)) if dots else np.nan)
            if gap == 0:
                place = found.words.index(f"e{word}")
                assert found.spread[place] == pytest.approx(np.std(dots), abs=1e-4)
        values[f"e{word}"] = row[3]
        x = np.arange(-3, 4)[np.isfinite(row)]
        y = np.array(row)[np.isfinite(row)]
        slope = ((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) @ (x - x.mean()))
        values[f"slope of e{word}"] = slope
    assert found.values() == pytest.approx(values, abs=1e-4)


def test_a_word_that_pulls_away() -> None:
    made = brute.arrays(7, samples=60, noise=0.01)
    mu = brute.of(made, "decoder", 6).mu.mean(axis=0)
    made["encoder.states"] -= (2 * (made["encoder.words"] == 2))[:, :, None] * mu.astype(np.float32)
    before = pull(brute.recording(brute.arrays(7, samples=60, noise=0.01))).first.values()["e2"]
    assert pull(brute.recording(made)).first.values()["e2"] < before - 1


def test_a_word_that_never_stands_at_its_step_has_no_number() -> None:
    """The word `e3` stands only where the decoder has no step any more."""
    made = brute.arrays(8, samples=20, source=9, target=3)
    words, mask = made["encoder.words"], made["encoder.mask"]
    words[words == 3] = 0
    words[:, 8] = 3 * mask[:, 8]
    found = pull(brute.recording(made), window=2)
    assert not any("e3" in name for name in found.estimates())
    assert all(np.isfinite(value.mean) for value in found.estimates().values())
    assert found.table().rows and found.figure().interactive()["data"]


def test_pull_and_offset_choose_sites_and_heads() -> None:
    kept = recorded(recurrent("scaled", 2))
    assert pull(kept, head=0).first.values() != pull(kept, head=1).first.values()
    assert (offset(kept, head=0).first.profile != offset(kept, head=1).first.profile).any()
    for instrument in (pull, offset):
        with pytest.raises(RegardError, match="heads 0 to 1"):
            instrument(kept, head=2)
        with pytest.raises(RegardError, match="1 "):
            instrument(kept, window=0)
    with pytest.raises(RegardError, match="not a product"):
        pull(recorded(recurrent("additive")))
