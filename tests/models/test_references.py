"""Constants and normalisations, held against numpy by hand: nothing is shared with the code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from regard.models import MODELS
from regard.models.decoding import beam, greedy
from regard.models.layers.attention import ATTENTIONS
from regard.models.layers.cells import CELLS
from regard.models.layers.readout import Readout
from regard.models.seq2seq import Memory
from regard.tasks.vocabulary import EOS, SOS

BATCH, TARGET, SOURCE, HIDDEN, MEMORY, SIZE, HEADS = 2, 3, 4, 5, 6, 7, 3


def softmax(x: np.ndarray, mask: np.ndarray) -> np.ndarray:
    raised = np.where(mask, np.exp(x - x.max(axis=-1, keepdims=True)), 0.0)
    return raised / raised.sum(axis=-1, keepdims=True)


def run(name: str, heads: int, merge: str, size: int | None = SIZE) -> dict[str, Any]:
    """An attention with random weights, on random states of two sizes."""
    torch.manual_seed(3)
    attention = ATTENTIONS[name](HIDDEN, heads, size, merge, MEMORY).double()  # type: ignore[arg-type]
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    states = torch.randn(BATCH, TARGET, HIDDEN, dtype=torch.float64)
    memory = torch.randn(BATCH, SOURCE, MEMORY, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    context, site = attention(states, *attention.remember(memory), mask)
    found = {n: p.detach().numpy() for n, p in attention.named_parameters()}
    return {
        "weights": found, "states": states.numpy(), "memory": memory.numpy(), "mask": mask.numpy(),
        "context": context.detach().numpy(), "alpha": site.weights.detach().numpy(),
    }  # fmt: skip


def merge_heads(heads: list[np.ndarray], merge: str) -> np.ndarray:
    if merge == "concatenate":
        return np.concatenate(heads, axis=-1)
    total = np.zeros_like(heads[0])
    for head in heads:
        total = total + head
    return total / len(heads) if merge == "mean" else total


@pytest.mark.parametrize("merge", ["sum", "mean", "concatenate"])
@pytest.mark.parametrize("heads", [1, HEADS])
def test_scaled_attention(heads: int, merge: str) -> None:
    """√ of the size of a key, not of the state; V mixes; each head by its own rows of Q, K, V."""
    got = run("scaled", heads, merge)
    w, contexts = got["weights"], []
    for head in range(heads):
        query, key = (
            w[f"{kind}.weight"][head * SIZE : (head + 1) * SIZE] for kind in ("query", "key")
        )
        value = w["value.weight"][head * MEMORY : (head + 1) * MEMORY]
        scores = np.einsum("btf,bsf->bts", got["states"] @ query.T, got["memory"] @ key.T)
        alpha = softmax(scores / math.sqrt(7), got["mask"][:, None])
        np.testing.assert_allclose(got["alpha"][:, head], alpha, atol=1e-10)
        contexts.append(alpha @ (got["memory"] @ value.T))
    np.testing.assert_allclose(got["context"], merge_heads(contexts, merge), atol=1e-9)


@pytest.mark.parametrize("merge", ["sum", "mean", "concatenate"])
@pytest.mark.parametrize("name", ["additive", "additive-relu"])
def test_additive_attention(name: str, merge: str) -> None:
    got = run(name, HEADS, merge)
    w, contexts = got["weights"], []
    for head in range(HEADS):
        rows = slice(head * SIZE, (head + 1) * SIZE)
        scores = np.zeros((BATCH, TARGET, SOURCE))
        for b, t, s in np.ndindex(scores.shape):
            inner = w["query.weight"][rows] @ got["states"][b, t] + w["query.bias"][rows]
            inner = inner + w["key.weight"][rows] @ got["memory"][b, s]
            bent = np.tanh(inner) if name == "additive" else np.where(inner > 0, inner, 0)
            scores[b, t, s] = w["v"][head] @ bent
        alpha = softmax(scores, got["mask"][:, None])
        np.testing.assert_allclose(got["alpha"][:, head], alpha, atol=1e-10)
        contexts.append(alpha @ got["memory"])
    np.testing.assert_allclose(got["context"], merge_heads(contexts, merge), atol=1e-9)


@pytest.mark.parametrize("merge", ["sum", "mean"])
def test_bilinear_attention(merge: str) -> None:
    got = run("bilinear", HEADS, merge)
    w, contexts = got["weights"], []
    for head in range(HEADS):
        rows = slice(head * MEMORY, (head + 1) * MEMORY)
        asked = got["states"] @ w["query.weight"][rows].T + w["query.bias"][rows]
        alpha = softmax(np.einsum("btf,bsf->bts", asked, got["memory"]), got["mask"][:, None])
        np.testing.assert_allclose(got["alpha"][:, head], alpha, atol=1e-10)
        contexts.append(alpha @ got["memory"])
    np.testing.assert_allclose(got["context"], merge_heads(contexts, merge), atol=1e-9)


def test_heads_of_a_transformer_scale_by_their_own_size() -> None:
    """√(hidden / heads), as torch's own attention does it."""
    from regard.models.transformer import Heads

    torch.manual_seed(0)
    heads = Heads(12, 3, 0, "decoder", "encoder").double()
    x = torch.randn(2, 4, 12, dtype=torch.float64)
    y = torch.randn(2, 5, 12, dtype=torch.float64)
    allowed = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    keys, values = heads.remember(y)
    context, site = heads(x, keys, values, allowed)
    query = heads.split(heads.query(x))
    wanted = torch.nn.functional.scaled_dot_product_attention(query, keys, values)
    joined = heads.merge(wanted.transpose(1, 2).flatten(2))
    torch.testing.assert_close(context, joined)
    by_hand = (query @ keys.transpose(-1, -2) / math.sqrt(4)).softmax(dim=-1)
    torch.testing.assert_close(site.weights, by_hand)


def test_first_weights_of_the_programs_cells() -> None:
    """N(0, 1/fan_in), biases 0, but the forget gate's 1 (aitken2021's program)."""
    torch.manual_seed(0)
    cell = CELLS["lstm-renn"](40, 60)
    hidden = 60
    for name, parameter in cell.named_parameters():
        values = parameter.detach().numpy()
        if "bias" in name:
            blocks = values.reshape(4, hidden)
            assert set(np.unique(blocks[[0, 2, 3]])) == {0.0}
        else:
            fan_in = values.shape[1]
            assert values.std() == pytest.approx(fan_in**-0.5, rel=0.05)
            assert abs(values.mean()) < 3 * values.std() / math.sqrt(values.size)
    biases = [p.detach().numpy() for n, p in cell.named_parameters() if "bias" in n]
    forget = sum(bias.reshape(4, hidden)[1] for bias in biases)
    assert np.all(forget == 1.0)  # once, although torch has two biases


class Scripted:
    """A model whose word probabilities are written down: by the words said so far."""

    def __init__(self, table: dict[tuple[int, ...], dict[int, float]], words: int):
        self.table, self.words = table, words

    def step(self, memory: Memory, words: torch.Tensor, state: tuple[torch.Tensor, ...]) -> Any:
        said = torch.cat([state[0], words[:, None]], dim=1)
        logits = torch.full((len(words), self.words), -40.0)
        for row, history in enumerate(said.tolist()):
            key = tuple(w for w in history if w not in (0, SOS))
            for word, share in self.table.get(key, {EOS: 1.0}).items():
                logits[row, word] = math.log(share)
        return logits, (said,)


def script() -> Scripted:
    """A short sentence of one word with .5, and a long one whose words are surer: 3 4 4 4."""
    table: dict[tuple[int, ...], dict[int, float]] = {
        (): {3: 0.55, 5: 0.45},
        (3,): {4: 1.0},
        (3, 4): {4: 1.0},
        (3, 4, 4): {4: 0.7, 5: 0.3},
        (3, 4, 4, 4): {EOS: 1.0},
        (5,): {EOS: 0.95, 4: 0.05},
    }
    return Scripted(table, 6)


def remember(rows: int) -> Memory:
    states = torch.zeros(rows, 1, 1)
    mask = torch.ones(rows, 1, dtype=torch.bool)
    nothing = torch.zeros(rows, 0, dtype=torch.long)
    return Memory(states=states, mask=mask, initial=(nothing,))


def test_a_beam_compares_by_word() -> None:
    """Total probability: .45 · .95 = .4275 against .55 · .7 = .385, so the short one is likelier;
    per word it is .4275^(1/2) = .654 against .385^(1/5) = .826, so the long one wins."""
    found = beam(script(), remember(2), limit=6, width=3)  # type: ignore[arg-type]
    assert found.tolist() == [[3, 4, 4, 4, EOS, 0]] * 2


def test_what_is_fed_and_forced_step_by_step() -> None:
    """Greedy says 3 4 4 4 </s>; with 5 forced at first it says 5 </s>."""
    fed: list[list[list[int]]] = []
    told = lambda words: fed.append(words.tolist())  # noqa: E731
    found = greedy(script(), remember(2), 6, feeding=told)  # type: ignore[arg-type]
    assert found.tolist() == [[3, 4, 4, 4, EOS]] * 2
    whole = [SOS, 3, 4, 4, 4]
    assert fed == [[whole[: n + 1]] * 2 for n in range(5)]
    forced = torch.tensor([[5, -1], [-1, -1]])
    found = greedy(script(), remember(2), 6, forced=forced)  # type: ignore[arg-type]
    assert found.tolist() == [[5, EOS, 0, 0, 0], [3, 4, 4, 4, EOS]]
    found = greedy(script(), remember(1), 2)  # type: ignore[arg-type]
    assert found.tolist() == [[3, 4]]
    fed.clear()
    found = greedy(script(), remember(1), 3, end=None, feeding=told, start=7)  # type: ignore[arg-type]
    assert fed[0] == [[7]] and len(fed) == 3
    assert greedy(script(), remember(2), 0).shape == (2, 0)  # type: ignore[arg-type]


def test_what_a_beam_is_fed_and_holds() -> None:
    fed: list[list[list[int]]] = []
    held: list[tuple[Any, ...]] = []
    found = beam(
        script(), remember(1), 6, 2,  # type: ignore[arg-type]
        feeding=lambda words: fed.append(words.tolist()),
        growing=lambda *parts: held.append(tuple(part.tolist() for part in parts)),
    )  # fmt: skip
    assert found.tolist() == [[3, 4, 4, 4, EOS, 0]]
    assert fed[0] == [[SOS], [SOS]] and fed[1] == [[SOS, 3], [SOS, 5]]
    words, scores, ending = held[0]
    assert words == [[[3], [5]]] and ending == [[False, False]]
    assert scores[0] == pytest.approx([math.log(0.55), math.log(0.45)], abs=1e-5)
    words, scores, ending = held[1]
    assert words == [[[3, 4], [5, EOS]]] and ending == [[False, True]]
    assert scores[0] == pytest.approx([math.log(0.55), math.log(0.45 * 0.95)], abs=1e-5)
    _, _, ending = held[-1]
    assert ending[0][0] is True


def test_dropout_is_for_training_only() -> None:
    config, model = MODELS["encoder-decoder"]
    torch.manual_seed(0)
    built = model(config(hidden=16, layers=2, dropout=0.5, attention="dot"), 9, 9)  # type: ignore[call-arg]
    source = torch.randint(3, 9, (4, 5))
    lengths = torch.tensor([5, 5, 4, 3])
    inputs = torch.randint(3, 9, (4, 6))
    first, second = (built.train()(source, lengths, inputs).logits for _ in range(2))
    assert not torch.equal(first, second)
    first, second = (built.eval()(source, lengths, inputs).logits for _ in range(2))
    assert torch.equal(first, second)


def test_a_context_layer_is_there_whatever_the_sizes() -> None:
    for context in (6, 9):
        readout = Readout(6, context, 4, hidden=6, context_layer=True)
        assert readout.context is not None and readout.context.weight.shape == (6, context)
        assert readout.sizes == (6, 6)
    assert Readout(6, 9, 4, hidden=6).context is None
