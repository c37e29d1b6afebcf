"""Removing a component through hooks is recomputing by hand without it; nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import brute
import numpy as np
import pytest
import torch
from small import WORDS, phrases, recurrent, transformer
from torch import Tensor

from regard import RegardError
from regard.instruments.interventions.ablate import Edit, ablate_model, decompose, record_site
from regard.models import EncoderDecoder, Seq2Seq, Transformer
from regard.tasks import Batch

PLACES = ("queries", "keys", "values")
WHERE = {
    "queries": ("queries",),
    "keys": ("keys",),
    "alignment": ("queries", "keys"),
    "context": ("values",),
}
MODELS: dict[str, tuple[Callable[[], Seq2Seq], str]] = {
    "dot": (lambda: recurrent("dot"), "attention"),
    "scaled": (lambda: recurrent("scaled", 2), "attention"),
    "additive": (lambda: recurrent("additive", 2), "attention"),
    "transformer": (transformer, "decoder.0.cross"),
}
BATCHES = [phrases(9), phrases(5, seed=1)]
BOTH = (WORDS, WORDS)


def attended(model: Seq2Seq, batch: Batch) -> tuple[list[Tensor], Callable[..., Tensor]]:
    """Queries, keys and values by the model's matrices, and logits as a function of them."""
    allowed = batch.source_mask[:, None, None]
    if isinstance(model, Transformer):
        block = model.decoder[0]
        memory = model.encode(batch.source, batch.source_lengths)
        x = model.target_embedding(batch.inputs) + model.positions(0, batch.inputs.shape[1])
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        y = block.self_norm(x)
        x = x + block.self_attention(y, *block.self_attention.remember(y), causal)[0]
        heads = block.cross_attention

        def split(z: Tensor) -> Tensor:
            return z.unflatten(2, (heads.heads, -1)).transpose(1, 2)

        queries = split(heads.query(block.cross_norm(x))) / 2  # √(8 / 2)
        keys, values = split(heads.key(memory.states)), split(heads.value(memory.states))

        def logits(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            weights = (q @ k.mT).masked_fill(~allowed, -torch.inf).softmax(dim=3)
            z = x + heads.merge((weights @ v).transpose(1, 2).flatten(2))
            return model.readout(model.decoder_norm(z + block.feedforward(block.norm(z))))

        return [queries, keys, values], logits
    assert isinstance(model, EncoderDecoder) and model.attention is not None
    output = model(batch.source, batch.source_lengths, batch.inputs)
    attention, h, m = model.attention, output.decoder_states, output.encoder_states
    kind = type(attention).__name__

    def heads_of(layer: Any, x: Tensor) -> Tensor:
        return layer(x).unflatten(2, (attention.heads, -1)).transpose(1, 2)

    queries, keys, values = h[:, None], m[:, None], m[:, None]
    if kind != "Dot":
        queries, keys = heads_of(attention.query, h), heads_of(attention.key, m)
    if kind == "Scaled":
        queries, values = queries / 3**0.5, heads_of(attention.value, m)

    def logits(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if kind == "Additive":
            both = torch.tanh(q[:, :, :, None] + k[:, :, None])
            scores = (both * attention.v[None, :, None, None]).sum(dim=4)
        else:
            scores = q @ k.mT
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=3)
        context = (weights @ v).sum(dim=1)
        return model.readout(torch.cat([h, context], dim=2))

    return [queries, keys, values], logits


def sides(what: str, batch: Batch) -> tuple[Tensor, Tensor]:
    """The words and the mask of the side that queries, keys or values are on."""
    if what == "queries":
        return batch.inputs, batch.target_mask
    return batch.source, batch.source_mask


def splits(vectors: list[list[Tensor]], what: str) -> list[list[list[Tensor]]]:
    """By batch and head, μ, χ and Δ over all batches together, by loops."""
    number = PLACES.index(what)
    width = max(v[number].shape[2] for v in vectors)

    def wide(x: np.ndarray) -> np.ndarray:
        return np.pad(x, ((0, 0), (0, width - x.shape[1]), *[(0, 0)] * (x.ndim - 2)))

    both = [sides(what, batch) for batch in BATCHES]
    words = np.concatenate([wide(w.numpy()) for w, _ in both])
    mask = np.concatenate([wide(m.numpy()) for _, m in both])
    edges = np.cumsum([0, *map(len, BATCHES)])
    found: list[list[list[Tensor]]] = [[] for _ in BATCHES]
    for head in range(vectors[0][number].shape[1]):
        states = np.concatenate([wide(v[number][:, head].numpy()) for v in vectors])
        parts = brute.split(states, words, mask, len(WORDS))
        mu = np.broadcast_to(parts.mu, states.shape)
        chi = parts.chi[words]
        for n, v in enumerate(vectors):
            rows, steps = slice(edges[n], edges[n + 1]), v[number].shape[2]
            cut = [p[rows, :steps] for p in (mu, chi, states - mu - chi)]
            found[n].append([torch.from_numpy(p.copy()).float() for p in cut])
    return found


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_remove_is_recomputing_without_the_part(name: str) -> None:
    make, site = MODELS[name]
    model = make()
    vectors, functions = zip(*(attended(model, batch) for batch in BATCHES), strict=True)
    here = {what: model.hook_points()[f"{site}.{what}"] for what in PLACES}
    components = decompose(record_site(model, BATCHES, BOTH, site, None), site)
    measured = ablate_model(model, BATCHES, BOTH)
    split = {what: splits(list(vectors), what) for what in PLACES}
    count = sum(int(batch.target_mask.sum()) for batch in BATCHES)
    assert measured.site == site
    for number, part in enumerate(brute.PARTS):
        for where, places in WHERE.items():
            right = 0
            for n, batch in enumerate(BATCHES):
                changed = list(vectors[n])
                for what in places:
                    own = torch.stack([head[number] for head in split[what][n]], dim=1)
                    changed[PLACES.index(what)] = changed[PLACES.index(what)] - own
                wanted = functions[n](*changed)
                edits = {what: Edit("remove", part, what, components[what], 0) for what in places}
                handles = [here[what].register_forward_hook(edit) for what, edit in edits.items()]
                for edit in edits.values():
                    edit.prepare(batch)
                found = model(batch.source, batch.source_lengths, batch.inputs).logits
                for handle in handles:
                    handle.remove()
                mask = batch.target_mask
                torch.testing.assert_close(found[mask], wanted[mask], atol=2e-5, rtol=1e-4)
                right += int(((wanted.argmax(dim=2) == batch.target) & mask).sum())
            assert measured.accuracy["remove", part, where] == pytest.approx(right / count)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_nothing_stays_behind(name: str) -> None:
    model = MODELS[name][0]().train()
    batch = BATCHES[0]
    before = model(batch.source, batch.source_lengths, batch.inputs).logits
    found = ablate_model(model, BATCHES, BOTH)
    after = model(batch.source, batch.source_lengths, batch.inputs).logits
    assert torch.equal(before, after)
    assert model.training, "the model is left as it was found"
    assert not any(place._forward_hooks for place in model.hook_points().values())
    assert len(found.values()) == 1 + 2 * 3 * 4
    again = ablate_model(model, BATCHES, BOTH)
    assert again.values() == found.values(), "the same seed, the same swaps"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("what", PLACES)
@torch.no_grad()
def test_swap_puts_a_wrong_part_and_leaves_the_others(name: str, what: str) -> None:
    make, site = MODELS[name]
    model = make()
    place = model.hook_points()[f"{site}.{what}"]
    components = decompose(record_site(model, BATCHES, BOTH, site, None), site)[what]
    vectors = [attended(model, batch)[0] for batch in BATCHES]
    split = splits(vectors, what)
    for number, part in enumerate(brute.PARTS):
        edit = Edit("swap", part, what, components, seed=3)
        for n, batch in enumerate(BATCHES):
            edit.prepare(batch)
            values = vectors[n][PLACES.index(what)]
            changed = edit(place, (), values)
            words, mask = sides(what, batch)
            for head, parts in enumerate(split[n]):
                own = parts[number]
                wrong = changed[:, head] - values[:, head] + own  # the others have cancelled
                for a, t in mask.nonzero().tolist():
                    steps = int(mask[a].sum())
                    if part == "temporal":
                        options = [parts[0][0, s] for s in range(steps) if s != t]
                    elif part == "input":
                        seen = components[head].seen.tolist()
                        others = [w for w in seen if w != int(words[a, t])]
                        chi = torch.from_numpy(components[head].input).float()
                        options = [chi[w] for w in others]
                    else:
                        other = (a - 1) % len(batch)
                        options = [own[other, t] * mask[other, t]]
                    gaps = [float((wrong[a, t] - option).abs().max()) for option in options]
                    assert min(gaps) < 2e-5, (part, a, t)


@torch.no_grad()
def test_delta_of_a_lone_sample_is_swapped_for_none() -> None:
    model, alone = recurrent("dot"), phrases(4)[:1]
    place = model.hook_points()["attention.keys"]
    components = decompose(record_site(model, BATCHES, BOTH, "attention", None), "attention")[
        "keys"
    ]
    values = attended(model, alone)[0][1]
    found = []
    for way in ("swap", "remove"):
        edit = Edit(way, "delta", "keys", components, seed=0)
        edit.prepare(alone)
        found.append(edit(place, (), values))
    torch.testing.assert_close(found[0], found[1])
    assert (found[0] - values).abs().max() > 1e-3


@pytest.mark.parametrize("what", PLACES)
@torch.no_grad()
def test_hooks_stay_on_the_device(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in a hook goes through numpy, and on another device all of it happens there."""
    model, batch = recurrent("scaled", 2), BATCHES[0]
    point = model.hook_points()[f"attention.{what}"]
    components = decompose(record_site(model, BATCHES, BOTH, "attention", None), "attention")[what]
    values = attended(model, batch)[0][PLACES.index(what)]
    monkeypatch.setattr(Tensor, "numpy", None)
    for way in ("remove", "swap"):
        for part in brute.PARTS:
            for device in ("cpu", "meta"):
                edit = Edit(way, part, what, components, seed=0)
                edit.prepare(batch.to(device))
                changed = edit(point, (), values.to(device))
                assert changed.device.type == device and changed.shape == values.shape


def test_refused() -> None:
    with pytest.raises(RegardError, match="no attention"):
        ablate_model(recurrent("none"), BATCHES, BOTH)
    with pytest.raises(RegardError, match="Did you mean"):
        ablate_model(transformer(), BATCHES, BOTH, site="decoder.0.cros")
    before = recurrent("additive", attend="before", focus="concatenate")
    with pytest.raises(RegardError, match="attends before each step"):
        ablate_model(before, BATCHES, BOTH)
