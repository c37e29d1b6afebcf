"""trajectories, word_clouds, orthogonality, variance, simplex, clusters: by hand, and planted."""

from __future__ import annotations

import math
from typing import Any

import brute
import numpy as np
import pytest
from small import recorded, recurrent, transformer

from regard import RegardError, decompose
from regard.instruments._geometry import softmax
from regard.instruments.components import (
    clusters,
    dictionary,
    offset,
    orthogonality,
    simplex,
    trajectories,
    variance,
    word_clouds,
)
from regard.instruments.components.trajectories import turns

WORDS = (5, 6)


def explained(vectors: brute.Array, count: int) -> float:
    """The share of the variance in the largest directions, by eigenvalues."""
    centred = vectors - vectors.mean(axis=0)
    values = np.sort(np.linalg.eigvalsh(centred.T @ centred))[::-1]
    return float(values[:count].sum() / values.sum())


def test_trajectories_by_hand() -> None:
    made = brute.arrays(1, source=7)
    encoder, decoder = brute.of(made, "encoder", 5).mu, brute.of(made, "decoder", 6).mu
    found = trajectories(brute.recording(made)).first
    attention = np.array([brute.softmax(np.array([d @ e for e in encoder])) for d in decoder])
    best = attention.argmax(axis=1)
    moves = [math.dist(p[n], p[n + 1]) for p in (encoder, decoder) for n in range(len(p) - 1)]

    def adjacent(points: brute.Array) -> float:
        near = []
        for n in range(len(points)):
            others = [m for m in range(len(points)) if m != n]
            nearest = min(others, key=lambda m: math.dist(points[n], points[m]))
            near.append(abs(nearest - n) == 1)
        return float(np.mean(near))

    np.testing.assert_allclose(found.attention, attention, atol=1e-5)
    wanted = {
        "explained 2": explained(np.concatenate([encoder, decoder]), 2),
        "explained 3": explained(np.concatenate([encoder, decoder]), 3),
        "diagonal": np.mean([best[s] == s for s in range(len(best))]),
        "direction": brute.correlation(np.arange(len(best)), best),
        "joint": math.dist(encoder[-1], decoder[0]) / np.mean(moves),
        "joint step": min(range(7), key=lambda t: math.dist(encoder[t], decoder[0])) / 6,
        "turns": found.values()["turns"],  # see the next test
        "adjacent": (adjacent(encoder) + adjacent(decoder)) / 2,
    }
    assert found.values() == pytest.approx(wanted, abs=1e-4)


def test_turns_of_a_path_and_steps_that_few_reach() -> None:
    """Two and a half turns on a circle; the last two steps belong to one sample alone."""
    angles = np.linspace(0, 5 * np.pi, 41)
    assert turns(np.stack([np.cos(angles), np.sin(angles)], axis=1)) == pytest.approx(2.5, abs=0.1)
    made = brute.arrays(0, source=6, target=6, samples=10)
    for side in ("encoder", "decoder"):
        made[f"{side}.mask"] = np.ones((10, 6), dtype=bool)
        made[f"{side}.mask"][1:, 4:] = False
    found = trajectories(brute.recording(made), reach=0.5).first
    assert found.attention.shape == (4, 4)
    assert len(offset(brute.recording(made), reach=0.5).first.best) == 4
    assert trajectories(brute.recording(made)).first.attention.shape == (6, 6)


@pytest.mark.parametrize(("turn", "direction"), [(1, 1.0), (-1, -1.0)])
def test_trajectories_that_run_alike_and_paths_that_are_turned(turn: int, direction: float) -> None:
    """A quarter of a circle on both sides, once the same way and once the other."""
    angles = np.linspace(0, np.pi / 2, 6)
    circle = 5 * np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    made = brute.arrays(0, source=6, target=6, hidden=3, samples=40, noise=0.01)
    rng = np.random.default_rng(0)
    for name, points in (("encoder", circle), ("decoder", circle[::turn])):
        noise = 0.01 * rng.normal(size=(40, 6, 3))
        made[f"{name}.states"] = (points + noise).astype(np.float32)
        made[f"{name}.mask"] = np.ones((40, 6), dtype=bool)
    found = trajectories(brute.recording(made)).first
    assert found.values()["direction"] == pytest.approx(direction)
    assert found.values()["diagonal"] == (1.0 if turn == 1 else 0.0)
    assert found.values()["explained 2"] > 0.99
    assert found.values()["adjacent"] == 1


def test_trajectories_of_an_additive_site_score_the_means_as_the_site_does() -> None:
    kept = recorded(recurrent("additive", 2))
    for head in range(2):
        found = trajectories(kept, head=head).first.attention
        sides = [
            brute.split(kept[f"attention.{n}"][:, head], kept[f"{s}.words"], kept[f"{s}.mask"], 8)
            for n, s in (("queries", "decoder"), ("keys", "encoder"))
        ]
        score = brute.additive(kept["attention.vector"][head].astype(float))
        for s, query in enumerate(sides[0].mu):
            row = np.array([score(query, key) for key in sides[1].mu])
            np.testing.assert_allclose(found[s], brute.softmax(row), atol=1e-5)


def test_trajectories_without_attention_in_two_spaces() -> None:
    made = brute.arrays()
    made["decoder.states"] = made["decoder.states"][:, :, :3]
    made.pop("readout")
    with pytest.raises(RegardError, match="two spaces"):
        trajectories(brute.recording(made))


def test_word_clouds_by_hand() -> None:
    made = brute.arrays(2)
    found = word_clouds(brute.recording(made)).first
    chi = brute.of(made, "encoder", 5).chi[:4]  # the fifth word never occurs
    wanted = {"explained 2": explained(chi, 2), "explained 3": explained(chi, 3)}
    for name, count in (("encoder", 5), ("decoder", 6)):
        parts, words = brute.of(made, name, count), made[f"{name}.words"]
        sums = np.zeros(3)
        for a, t in zip(*np.nonzero(made[f"{name}.mask"]), strict=True):
            three = brute.three(parts, words, a, t)
            vectors = three[2], three[1] + three[2], sum(three)
            sums += [float(vector @ vector) for vector in vectors]
        wanted[f"{name} delta share"] = sums[0] / sums[1]
        wanted[f"{name} input-delta size"] = sums[1] / sums[2]
    assert found.values() == pytest.approx(wanted, abs=1e-4)
    assert found.words == ("e0", "e1", "e2", "e3")
    np.testing.assert_allclose(found.chi, chi, atol=1e-5)
    assert sum(map(len, found.clouds)) == made["encoder.mask"].sum()


def test_orthogonality_by_hand() -> None:
    made = brute.arrays(3)
    found = orthogonality(brute.recording(made)).first
    parts = {n: brute.of(made, n, count) for n, count in (("encoder", 5), ("decoder", 6))}
    for ours, theirs in (("decoder", "encoder"), ("encoder", "encoder"), ("decoder", "decoder")):
        every = []
        for mu in parts[ours].mu:
            for a, t in zip(*np.nonzero(made[f"{theirs}.mask"]), strict=True):
                _, chi, delta = brute.three(parts[theirs], made[f"{theirs}.words"], a, t)
                if np.linalg.norm(chi + delta) > 1e-6:  # else it is the only state at its step
                    every.append(abs(brute.cosine(mu, chi + delta)))
        wanted = np.mean(every)
        assert found.values()[f"μ of {ours}, χ+Δ of {theirs}"] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("hidden", [2, 4, 64])
def test_chance_is_what_random_directions_give(hidden: int) -> None:
    made = brute.arrays(0, hidden=hidden)
    vectors = np.random.default_rng(0).normal(size=(20_000, hidden))
    drawn = np.abs(vectors[:, 0]) / np.linalg.norm(vectors, axis=1)
    found = orthogonality(brute.recording(made)).first.values()["chance"]
    assert found == pytest.approx(drawn.mean(), rel=0.03)


def test_time_and_input_in_directions_of_their_own() -> None:
    made = brute.arrays(0, samples=60)
    for name in ("encoder", "decoder"):
        words, mask = made[f"{name}.words"], made[f"{name}.mask"]
        states = np.zeros((*words.shape, 4))
        states[:, :, 0] = 1 + np.arange(words.shape[1])
        states[:, :, 1], states[:, :, 2] = words == 1, words == 2
        # without the words' own mean at each step, which would be part of μ
        for t in range(words.shape[1]):
            states[:, t, 1:] -= states[mask[:, t], t, 1:].mean(axis=0)
        made[f"{name}.states"] = (states * mask[:, :, None]).astype(np.float32)
    values = orthogonality(brute.recording(made)).first.values()
    assert values["μ of decoder, χ+Δ of encoder"] < 0.01 < values["chance"]


def test_variance_by_hand() -> None:
    made = brute.arrays(4, samples=20)
    found = variance(brute.recording(made), least=5).first
    mu, ratios = brute.of(made, "encoder", 5).mu, {}
    for word in range(5):
        at = np.argwhere(made["encoder.mask"] & (made["encoder.words"] == word))
        if len(at) >= 5:
            h = np.array([made["encoder.states"][a, t] for a, t in at], dtype=float)
            free = np.array([made["encoder.states"][a, t] - mu[t] for a, t in at])
            ratios[f"e{word}"] = np.trace(np.cov(free.T)) / np.trace(np.cov(h.T))
    assert dict(zip(found.words, found.ratios, strict=True)) == pytest.approx(ratios, abs=1e-4)
    left = float(np.mean(list(ratios.values())))
    assert found.values() == pytest.approx({"left": left, "drop": 1 - left}, abs=1e-4)


def test_variance_leaves_out_words_whose_states_do_not_vary() -> None:
    made = brute.arrays(4, samples=30)
    mask, words = made["encoder.mask"], made["encoder.words"]
    words[words == 3] = 2
    words[:, 0] = 3
    made["encoder.states"][:, 0] = 0.1 * np.arange(4)
    found = variance(brute.recording(made)).first
    assert "e3" not in found.words
    assert ((found.ratios > 0) & (found.ratios < 2)).all(), mask.sum()


def test_two_states_of_a_word_are_enough_for_its_variance() -> None:
    made = brute.arrays(4, samples=20)
    words = made["encoder.words"]
    words[words == 4] = 2
    at = np.argwhere(made["encoder.mask"] & (words == 2))
    for count, known in ((1, False), (2, True)):
        words[tuple(at[:count].T)] = 4
        for least in (1, 2):
            assert ("e4" in variance(brute.recording(made), least=least).first.words) is known


def test_variance_over_seeds_with_other_words() -> None:
    first, second = brute.arrays(4, samples=20), brute.arrays(5, samples=20)
    second["encoder.words"][second["encoder.words"] == 3] = 2
    found = variance([brute.recording(first), brute.recording(second)], least=3)
    shown = [row[0] for row in found.table().rows]
    assert shown[0] == "all words" and "e3" not in shown
    assert found.estimates()["left"].n == 2


def corners(points: brute.Array, samples: int = 12) -> Any:
    """A recording whose input components are the given points, up to a shift."""
    count = len(points)
    grid = np.array([[(a + t) % count for t in range(count)] for a in range(samples * count)])
    made = {
        "encoder.words": grid,
        "encoder.states": (np.arange(count)[None, :, None] + points[grid]).astype(np.float32),
    }
    return brute.recording(made, (count, 1))


def test_a_perfect_simplex() -> None:
    found = simplex(corners(3 * np.eye(5))).first.values()
    assert found["cosine"] == pytest.approx(-0.25) == found["cosine of a simplex"]
    assert found["worst cosine error"] == pytest.approx(0, abs=1e-5)
    assert found["unevenness of distances"] == pytest.approx(0, abs=1e-5)


def test_points_on_a_line_are_no_simplex_though_their_mean_cosine_may_be() -> None:
    """Centred vectors sum to zero, so that equal lengths alone give the mean −1/(N−1)."""
    points = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    found = simplex(corners(points)).first.values()
    assert found["cosine"] == pytest.approx(-1 / 3, abs=1e-5)
    assert found["worst cosine error"] > 0.5
    assert found["unevenness of distances"] > 0.5


def test_simplex_by_hand() -> None:
    made = brute.arrays(6)
    found = simplex(brute.recording(made), words="e0, e1, e3").first
    chi = brute.of(made, "encoder", 5).chi[[0, 1, 3]]
    centred = chi - chi.mean(axis=0)
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    angles = np.array([brute.cosine(centred[a], centred[b]) for a, b in pairs])
    gaps = np.array([math.dist(chi[a], chi[b]) for a, b in pairs])
    wanted = {
        "cosine": angles.mean(),
        "cosine of a simplex": -0.5,
        "worst cosine error": np.abs(angles + 0.5).max(),
        "unevenness of distances": gaps.std() / gaps.mean(),
    }
    assert found.values() == pytest.approx(wanted, abs=1e-4)
    with pytest.raises(RegardError, match="three words"):
        simplex(brute.recording(made), words="e0,e1")


def silhouette(states: brute.Array, group: brute.Array) -> float:
    """(b − a) / max(a, b): a the mean distance in the own group, b in the nearest other."""
    found = []
    for n in range(len(states)):
        mean = {}
        for g in set(group.tolist()):
            others = [m for m in range(len(states)) if group[m] == g and m != n]
            mean[g] = np.mean([math.dist(states[n], states[m]) for m in others])
        a = mean.pop(group[n])
        b = min(mean.values())
        found.append((b - a) / max(a, b))
    return float(np.mean(found))


def test_clusters_by_hand() -> None:
    made = brute.arrays(7, samples=30)
    found = clusters(brute.recording(made), word="e1", least=3).first
    mu, states, before = brute.of(made, "encoder", 5).mu, [], []
    for a in range(30):
        for t in range(1, 6):
            if made["encoder.mask"][a, t] and made["encoder.words"][a, t] == 1:
                states.append(made["encoder.states"][a, t] - mu[t])
                before.append(int(made["encoder.words"][a, t - 1]))
    kept = [n for n, word in enumerate(before) if before.count(word) >= 3]
    points, group = np.array(states)[kept], np.array(before)[kept]
    means = {g: points[group == g].mean(axis=0) for g in set(group.tolist())}
    within = sum(math.dist(p, means[g]) ** 2 for p, g in zip(points, group.tolist(), strict=True))
    total = sum(math.dist(p, points.mean(axis=0)) ** 2 for p in points)
    wanted = {
        "silhouette": silhouette(points, group),
        "between": 1 - within / total,
        "groups": len(means),
    }
    assert found.values() == pytest.approx(wanted, abs=1e-4)


def test_a_word_that_remembers_the_word_before() -> None:
    """`e1` takes over the state of what stood before it; `e2` does not."""
    made = brute.arrays(8, samples=80, noise=0.05)
    rng = np.random.default_rng(1)
    words = made["encoder.words"]
    inputs_ = 3 * rng.normal(size=(5, 4))
    states = inputs_[words] + 0.05 * rng.normal(size=(*words.shape, 4))
    remembers = words[:, 1:] == 1
    states[:, 1:][remembers] = inputs_[words[:, :-1]][remembers]
    made["encoder.states"] = (states * made["encoder.mask"][:, :, None]).astype(np.float32)
    kept = brute.recording(made)
    one = clusters(kept).first
    assert one.word == "e1", "the most restless word is found"
    other = clusters(kept, word="e2").first
    assert one.silhouette > 0.5 > 0.2 > other.silhouette
    assert one.between > 0.8 > 0.3 > other.between


def test_clusters_where_nothing_varies_and_where_nothing_is() -> None:
    made = brute.arrays(8, samples=40)
    made["encoder.states"][:] = 1.0
    found = clusters(brute.recording(made), word="e1", least=2).first.values()
    assert (found["silhouette"], found["between"]) == (0.0, 0.0)
    few = brute.recording(brute.arrays(8, samples=1))
    with pytest.raises(RegardError, match="Record more samples"):
        clusters(few)
    with pytest.raises(RegardError, match="Record more samples"):
        clusters(few, word="e1")
    with pytest.raises(RegardError, match="vocabulary"):
        clusters(few, word="twice")
    assert clusters(few, word="e1", least=1).first.silhouette == 0, "groups of one are no groups"


def test_clusters_look_at_one_word_in_all_seeds() -> None:
    kept = [brute.recording(brute.arrays(n, samples=40, noise=2)) for n in range(4)]
    found = clusters(kept, least=3)
    assert len({seed.word for seed in found.seeds}) == 1


def test_dictionary_and_word_clouds_refuse_contexts_in_another_space() -> None:
    """A context that mixes V·h is not in the space of h, even where the sizes agree."""
    kept = recorded(recurrent("scaled", readout="both"), samples=40)
    with pytest.raises(RegardError, match="V·h"):
        dictionary(kept)
    assert word_clouds(kept).first.readouts == {}
    assert word_clouds(recorded(recurrent("dot", readout="both"))).first.readouts
    with pytest.raises(RegardError, match="not in one space"):
        dictionary(recorded(transformer(), 40))  # its decoder's readouts are not the encoder's


def test_a_file_gives_what_memory_gives(tmp_path: Any) -> None:
    made = brute.arrays(9, samples=30)
    one = brute.recording(made)
    other = brute.recording(made, out=tmp_path / "r.safetensors")
    for instrument in (trajectories, word_clouds, orthogonality, variance, clusters, simplex):
        first = instrument(one).first.values()
        assert instrument(decompose(other, rows=7)).first.values() == pytest.approx(first, abs=1e-5)


def test_softmax_of_large_numbers() -> None:
    np.testing.assert_allclose(softmax(np.array([[1000.0, 999.0], [-1000.0, 0.0]])),
                               [[1 / (1 + np.exp(-1)), 1 / (1 + np.e)], [0, 1]])  # fmt: skip
