"""The nine terms against loops: shares, signs, steps, samples, heads, pairs, and substitution."""

from __future__ import annotations

import brute
import numpy as np
import pytest
import torch
from small import recorded, recurrent, transformer

from regard import RegardError, decompose
from regard.instruments.components import breakdown
from regard.instruments.components._terms import substituted_terms
from regard.recordings import Recording

WORDS = (5, 6)


def plain_rows(given: dict[str, brute.Array], top: int, words: tuple[int, int]) -> list[brute.Row]:
    heads = [(brute.of(given, "decoder", words[1]), brute.of(given, "encoder", words[0]))]
    return brute.rows(
        heads,
        (given["decoder.words"], given["encoder.words"]),
        (given["decoder.mask"], given["encoder.mask"]),
        top,
    )


def site_rows(
    kept: Recording, site: str, top: int, words: int = 8, vector: brute.Array | None = None
) -> list[brute.Row]:
    info = kept.metadata.sites[site]
    numbers = kept[f"{info.query_side}.words"], kept[f"{info.key_side}.words"]
    masks = kept[f"{info.query_side}.mask"], kept[f"{info.key_side}.mask"]
    heads = [
        (
            brute.split(kept[f"{site}.queries"][:, n], numbers[0], masks[0], words),
            brute.split(kept[f"{site}.keys"][:, n], numbers[1], masks[1], words),
        )
        for n in range(info.heads)
    ]
    scores = None if vector is None else [brute.additive(v.astype(float)) for v in vector]
    causal = info.query_side == info.key_side == "decoder"
    return brute.rows(heads, numbers, masks, top, scores, causal)


@pytest.mark.parametrize("words", [WORDS, (300, 280)], ids=["few words", "many words"])
@pytest.mark.parametrize("top", [1, 3, 5, 50])
def test_shares_are_those_of_the_paper(top: int, words: tuple[int, int]) -> None:
    made = brute.arrays(4, words=words)
    wanted = plain_rows(made, top, words)
    found = breakdown(brute.recording(made, words), top=top, per_sample=True)
    seed = found.first
    np.testing.assert_allclose(seed.absolute, brute.share(wanted), atol=1e-5)
    np.testing.assert_allclose(seed.signed, brute.share(wanted, signed=True), atol=1e-5)
    for s in range(made["decoder.mask"].shape[1]):
        at = brute.share([row for row in wanted if row.step == s])
        np.testing.assert_allclose(seed.by_step[:, s], at, atol=1e-5)
    for a in range(len(made["decoder.mask"])):
        at = brute.share([row for row in wanted if row.sample == a])
        np.testing.assert_allclose(seed.by_sample[a], at, atol=1e-5)
    if words == WORDS:  # of many words, only the most frequent pairs are kept
        for pair in {row.pair for row in wanted}:
            same = [row for row in wanted if row.pair == pair]
            values = seed.by_pair[f"d{pair[0]}", f"e{pair[1]}"]
            np.testing.assert_allclose(values[:-1], brute.share(same), atol=1e-5)
            assert values[-1] == len(same)
        assert len(seed.by_pair) == len({row.pair for row in wanted})
    assert sum(found.shares.values()) == pytest.approx(1)
    assert seed.exact


def test_the_names_say_the_decoder_first() -> None:
    made = brute.arrays(5)
    made["decoder.states"][:] = made["decoder.states"].mean(axis=(0, 1))  # the decoder is all μ
    made["decoder.mask"][:] = True
    found = breakdown(brute.recording(made))
    assert list(found.shares) == list(found.signed) == brute.TERMS
    ours = sum(value for name, value in found.shares.items() if name.startswith("temporal-"))
    assert ours == pytest.approx(1, abs=1e-4)
    assert found.shares["temporal-input"] > 0.05 > found.shares["input-temporal"]


def test_terms_add_up_to_the_score() -> None:
    made = brute.arrays(6)
    for row in plain_rows(made, 3, WORDS):
        assert row.terms.sum() == pytest.approx(row.score, abs=1e-9)
        q, k = made["decoder.states"][row.sample, row.step], made["encoder.states"][row.sample]
        assert row.score == pytest.approx(float(q @ k[row.place]), abs=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_result_does_not_depend_on_the_chunks(rows: int) -> None:
    kept = recorded(recurrent("scaled", 2))
    whole = breakdown(kept, per_sample=True).first
    parts = breakdown(decompose(kept, rows), per_sample=True).first
    for name in ("absolute", "signed", "by_step", "by_head", "by_sample"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-5)
    assert parts.by_pair.keys() == whole.by_pair.keys()


@pytest.mark.parametrize("top", [2, 9])
def test_heads(top: int) -> None:
    kept = recorded(recurrent("scaled", 2, seed=1))
    wanted = site_rows(kept, "attention", top)
    seed = breakdown(kept, top=top, per_sample=True).first
    np.testing.assert_allclose(seed.absolute, brute.share(wanted), atol=1e-4)
    for head in range(2):
        at = brute.share([row for row in wanted if row.head == head])
        np.testing.assert_allclose(seed.by_head[head], at, atol=1e-4)
    assert seed.by_sample.shape == (len(kept), 9)
    for a in range(len(kept)):
        at = brute.share([row for row in wanted if row.sample == a])
        np.testing.assert_allclose(seed.by_sample[a], at, atol=1e-4)


@pytest.mark.parametrize("site", ["decoder.0.cross", "decoder.0.self", "encoder.0.self"])
def test_every_site_of_a_transformer(site: str) -> None:
    """A decoder's self-attention never looks ahead, so no position ahead is among the top."""
    kept = recorded(transformer())
    wanted = site_rows(kept, site, 3)
    found = breakdown(kept, top=3, site=site)
    np.testing.assert_allclose(found.first.absolute, brute.share(wanted), atol=1e-4)
    np.testing.assert_allclose(found.first.signed, brute.share(wanted, True), atol=1e-4)
    assert found.first.site == site


@pytest.mark.parametrize("heads", [1, 2])
def test_an_additive_score_is_taken_apart_by_substitution(heads: int) -> None:
    kept = recorded(recurrent("additive", heads, seed=2))
    wanted = site_rows(kept, "attention", 3, vector=kept["attention.vector"])
    found = breakdown(kept, top=3)
    np.testing.assert_allclose(found.first.absolute, brute.share(wanted), atol=2e-4)
    np.testing.assert_allclose(found.first.signed, brute.share(wanted, True), atol=2e-4)
    assert not found.first.exact and "substitution" in found.figure().caption


def test_substitution_in_a_product_gives_the_exact_terms() -> None:
    made = brute.arrays(7)
    for row in plain_rows(made, 2, WORDS):
        parts = [
            brute.three(brute.of(made, name, count), made[f"{name}.words"], row.sample, place)
            for name, count, place in (("decoder", 6, row.step), ("encoder", 5, row.place))
        ]
        terms = brute.substituted(brute.product, *parts)
        np.testing.assert_allclose(terms, row.terms, atol=1e-9)


def test_substituted_terms_one_by_one() -> None:
    made = brute.arrays(8)
    source = decompose(brute.recording(made))
    queries, keys = (torch.from_numpy(made[f"{n}.states"]) for n in ("decoder", "encoder"))
    words = [torch.from_numpy(made[f"{n}.words"]).long() for n in ("decoder", "encoder")]
    vector = torch.tensor([0.3, -1.0, 0.5, 2.0])
    top = torch.zeros(*queries.shape[:2], 1, dtype=torch.long)
    found = substituted_terms(
        queries, keys, *words, source.decoding, source.encoder, vector, top, "additive"
    )
    score = brute.additive(vector.double().numpy())
    asked, answered = brute.of(made, "decoder", 6), brute.of(made, "encoder", 5)
    for a, s in zip(*np.nonzero(made["decoder.mask"]), strict=True):
        ours = brute.three(asked, made["decoder.words"], a, s)
        theirs = brute.three(answered, made["encoder.words"], a, 0)
        wanted = brute.substituted(score, ours, theirs)
        np.testing.assert_allclose(found[:, a, s, 0], wanted, atol=1e-4)


def test_without_delta_there_are_no_terms_of_delta() -> None:
    rng = np.random.default_rng(0)
    made = brute.arrays(9)
    # Every word stands once at every step, so that time and word are independent and Δ is zero.
    grid = np.array([[(row + step) % 4 for step in range(5)] for row in range(4)])
    for name, count in (("encoder", 5), ("decoder", 6)):
        temporal, inputs = rng.normal(size=(5, 4)), rng.normal(size=(count, 4))
        made[f"{name}.words"] = grid
        made[f"{name}.states"] = (temporal + inputs[grid]).astype(np.float32)
        made[f"{name}.mask"] = np.ones(grid.shape, dtype=bool)
    made["targets"] = grid
    found = breakdown(brute.recording(made)).shares
    for name, value in found.items():
        if "delta" in name:
            assert value == pytest.approx(0, abs=1e-5)


def test_seeds_of_other_lengths_are_compared_step_by_step() -> None:
    short, long = brute.arrays(1, target=4), brute.arrays(2, target=6)
    found = breakdown([brute.recording(short), brute.recording(long)])
    assert found.n == 2
    assert len(found.to_json()["by_step"]["temporal-temporal"]) == 6
    (heads,) = [found.to_json()["by_head"]]
    wanted = np.mean([seed.by_head for seed in found.seeds], axis=0)
    assert len(found.seeds) > 1 and [[*head.values()] for head in heads] == wanted.tolist()
    assert sum(heads[0].values()) == pytest.approx(1)
    assert found.figure().interactive()["data"]


def test_intervals_of_shares_stay_within_0_and_1() -> None:
    found = breakdown([brute.recording(brute.arrays(n)) for n in range(2)])
    for value in found.estimates().values():
        assert 0 <= value.low <= value.high <= 1


def test_refused() -> None:
    kept = brute.recording(brute.arrays())
    with pytest.raises(RegardError, match="top=0 does not fit breakdown: it is 1 or more"):
        breakdown(kept, top=0)
    with pytest.raises(RegardError, match="attention site"):
        breakdown(kept, site="atention")
    with pytest.raises(RegardError, match="nothing was given"):
        breakdown([])
    made = brute.arrays()
    made["decoder.states"] = made["decoder.states"][:, :, :3]  # no product with the encoder's
    made.pop("readout")
    with pytest.raises(RegardError, match="no attention site"):
        breakdown(brute.recording(made))
