"""μ, χ, Δ and counts against loops; sums that split and merge; queries and keys head by head."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path

import brute
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import recorded, recurrent, transformer

from regard import RegardError, decompose
from regard.instruments.components import sizes
from regard.models import Seq2Seq
from regard.recordings import Recording
from regard.recordings.decomposition import Components, Decomposition, Sums
from regard.recordings.storage import InMemory

TOLERANCE = 2e-5


def agrees(found: Components, wanted: brute.Split) -> None:
    np.testing.assert_allclose(found.temporal, wanted.mu, atol=TOLERANCE)
    np.testing.assert_allclose(found.input, wanted.chi, atol=TOLERANCE)
    np.testing.assert_array_equal(found.counts, wanted.counts)


@pytest.mark.parametrize("words", [(5, 6), (80, 300)], ids=["few words", "many words"])
@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("kept", ["memory", "file"])
def test_components_are_those_of_the_paper(
    words: tuple[int, int], rows: int, kept: str, tmp_path: Path
) -> None:
    made = brute.arrays(1, samples=8, words=words)
    out = tmp_path / "r.safetensors" if kept == "file" else None
    found = decompose(brute.recording(made, words, out), rows)
    agrees(found.encoder, brute.of(made, "encoder", words[0]))
    agrees(found.decoding, brute.of(made, "decoder", words[1]))
    wanted = brute.of(made, "encoder", words[0])
    delta = found.encoder.delta(made["encoder.states"], made["encoder.words"])
    mask = made["encoder.mask"]
    np.testing.assert_allclose(delta[mask], wanted.delta[mask], atol=TOLERANCE)
    unseen = words[0] - 1
    assert unseen not in found.encoder.seen and not found.encoder.input[unseen].any()
    assert found.encoder.steps == made["encoder.mask"].shape[1]


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), scale=st.floats(1e-3, 1e3), words=st.sampled_from([4, 90]))
def test_components_add_back_to_the_state(seed: int, scale: float, words: int) -> None:
    rng = np.random.default_rng(seed)
    states, numbers, mask = brute.side(rng, 5, 4, 3, words)
    states = (states * scale).astype(np.float32)
    sums = Sums(words, 4, 3)
    sums.update(states, numbers, mask)
    parts = sums.result().parts(states, numbers)
    whole = (parts.temporal + parts.input + parts.delta).numpy()
    np.testing.assert_allclose(whole, states, atol=4e-6 * scale, rtol=0)


@settings(deadline=None, max_examples=25)
@given(data=st.data(), seed=st.integers(0, 10_000), words=st.sampled_from([4, 90]))
def test_sums_split_and_merge_in_any_order(data: st.DataObject, seed: int, words: int) -> None:
    states, numbers, mask = brute.side(np.random.default_rng(seed), 9, 4, 3, words)
    whole = Sums(words, 4, 3)
    whole.update(states, numbers, mask)
    cuts = sorted(data.draw(st.lists(st.integers(0, 9), max_size=4)))
    edges = list(zip([0, *cuts], [*cuts, 9], strict=True))
    pieces = []
    for start, stop in data.draw(st.permutations(edges)):
        piece = Sums(words, 4, 3)
        piece.update(states[start:stop], numbers[start:stop], mask[start:stop])
        pieces.append(piece)
    merged = Sums(words, 4, 3)
    for piece in pieces:
        merged.merge(piece)
    np.testing.assert_allclose(merged.temporal, whole.temporal, atol=1e-5)
    np.testing.assert_allclose(merged.input, whole.input, atol=1e-5)
    np.testing.assert_array_equal(merged.counts, whole.counts)
    wanted = brute.split(states, numbers, mask, words)
    agrees(merged.result(), wanted)


@pytest.mark.parametrize("words", [4, 90])
def test_what_lies_in_the_padding_does_not_count(words: int) -> None:
    states, numbers, mask = brute.side(np.random.default_rng(0), 6, 5, 3, words)
    spoiled, strange = states.copy(), numbers.copy()
    spoiled[~mask], strange[~mask] = np.nan, 1
    clean, dirty = Sums(words, 5, 3), Sums(words, 5, 3)
    clean.update(states, numbers, mask)
    dirty.update(spoiled, strange, mask)
    np.testing.assert_array_equal(clean.result().temporal, dirty.result().temporal)
    np.testing.assert_array_equal(clean.result().input, dirty.result().input)


def test_sums_of_other_shapes_do_not_add_up() -> None:
    with pytest.raises(RegardError, match="do not add"):
        Sums(4, 5, 3).merge(Sums(4, 6, 3))


def test_a_step_that_nobody_reaches_has_a_zero_mean() -> None:
    made = brute.arrays(2)
    made["encoder.mask"][:, -1] = False
    for name in ("encoder.states", "encoder.words"):
        made[name][:, -1] = 0
    found = decompose(brute.recording(made))
    assert not found.encoder.temporal[-1].any()
    assert found.encoder.steps == made["encoder.mask"].shape[1] - 1


def test_the_first_step_may_be_missing() -> None:
    made = brute.arrays(2)
    made["encoder.mask"][:, 0] = False
    found = decompose(brute.recording(made)).encoder
    assert found.steps == 6, "the last step that occurred is the sixth"


def test_sizes_are_mean_squares() -> None:
    made = brute.arrays(3)
    found = sizes(brute.recording(made)).first.values()
    for name, words in (("encoder", 5), ("decoder", 6)):
        parts = brute.of(made, name, words)
        sums = np.zeros(4)
        for a, t in zip(*np.nonzero(made[f"{name}.mask"]), strict=True):
            three = brute.three(parts, made[f"{name}.words"], a, t)
            sums += [float(part @ part) for part in [*three, sum(three)]]
        for number, part in enumerate(brute.PARTS):
            assert found[name, part] == pytest.approx(sums[number] / sums[3], abs=1e-5)


@pytest.mark.parametrize(
    ("model", "site", "sides"),
    [
        (lambda: recurrent("scaled"), "attention", ("decoder", "encoder")),
        (lambda: recurrent("scaled", 2), "attention", ("decoder", "encoder")),
        (transformer, "decoder.0.cross", ("decoder", "encoder")),
        (transformer, "decoder.0.self", ("decoder", "decoder")),
        (transformer, "encoder.0.self", ("encoder", "encoder")),
    ],
    ids=["one head", "two heads", "cross", "decoder self", "encoder self"],
)
def test_queries_and_keys_head_by_head(
    model: Callable[[], Seq2Seq], site: str, sides: tuple[str, str]
) -> None:
    kept = recorded(model())
    heads = kept.metadata.sites[site].heads
    found = decompose(kept, rows=4).site(site)
    for part, where, name in zip(
        (found.queries, found.keys), sides, ("queries", "keys"), strict=True
    ):
        assert len(part) == heads
        for head, components in enumerate(part):
            states = kept[f"{site}.{name}"][:, head]
            agrees(
                components, brute.split(states, kept[f"{where}.words"], kept[f"{where}.mask"], 8)
            )
    mask = kept[f"{sides[0]}.mask"][:, :, None] & kept[f"{sides[1]}.mask"][:, None]
    queries, keys = kept[f"{site}.queries"], kept[f"{site}.keys"]
    scores = np.moveaxis(queries @ np.swapaxes(keys, -1, -2), 1, -1)
    wanted = np.moveaxis(kept[f"{site}.scores"], 1, -1)
    np.testing.assert_allclose(scores[mask], wanted[mask], atol=1e-5)


def test_a_head_that_is_not_there() -> None:
    with pytest.raises(RegardError, match="heads 0 to 0"):
        decompose(brute.recording(brute.arrays())).site().head(1)


def test_a_recording_keeps_its_decomposition_and_what_it_has_of_sites(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = recorded(transformer())
    made: list[str] = []
    heads = Decomposition.heads
    of = Decomposition.of.__func__  # type: ignore[attr-defined]

    def count_heads(self: Decomposition, array: str, *more: object) -> object:
        made.append(array)
        return heads(self, array, *more)  # type: ignore[arg-type]

    def count(cls: type[Decomposition], recording: Recording) -> Decomposition:
        made.append("states")
        return of(cls, recording)  # type: ignore[no-any-return]

    monkeypatch.setattr(Decomposition, "heads", count_heads)
    monkeypatch.setattr(Decomposition, "of", classmethod(count))
    for name in ("breakdown", "trajectories", "offset", "sizes"):
        kept.inspect(name)
    assert sorted(made) == ["decoder.0.cross.keys", "decoder.0.cross.queries", "states"]
    parts = kept.decomposition
    assert parts is kept.decomposition is decompose(kept) is parts.recording.decomposition
    assert parts.site() is parts.site("decoder.0.cross") is not parts.site("decoder.0.self")
    assert parts.recording == kept


def test_a_recording_that_is_left_leaves_memory() -> None:
    """Did it and its decomposition hold each other, it would stay until garbage is collected."""
    kept = brute.recording(brute.arrays())
    parts, gone = kept.decomposition, weakref.ref(kept)
    del kept
    assert gone() is None and parts.table().rows, "what was kept for itself is whole"


def test_pieces_are_as_large_as_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, sizes_seen = brute.recording(brute.arrays(samples=7)), set()
    read = InMemory.read

    def look(self: InMemory, name: str, start: int = 0, stop: int | None = None) -> brute.Array:
        sizes_seen.add(stop and stop - start)
        return read(self, name, start, stop)

    monkeypatch.setattr(InMemory, "read", look)
    for name in ("sizes", "breakdown", "word_clouds", "orthogonality", "variance", "pull"):
        decompose(kept, rows=3).recording.inspect(
            name, **({"least": 2} if name == "variance" else {})
        )
    assert sizes_seen - {None} == {3}


def test_where_no_step_occurred_there_are_none() -> None:
    nothing = np.zeros((4, 3))
    empty = Components(np.zeros((3, 2)), np.zeros((4, 2)), nothing)
    assert empty.steps == 0
    assert Components(np.zeros((3, 2)), np.zeros((4, 2)), np.eye(4, 3)).steps == 3
