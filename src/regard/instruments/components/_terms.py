"""The nine terms of an alignment at chosen positions (aitken2021, eq. 3).

a_st = (μ_s + χ_y + Δ_s) · (μ_t + χ_x + Δ_t), the decoder's part first. Five products with the
averages give all nine terms, because the parts are sums: μ·Δ = μ·k − μ·μ − μ·χ, and so on.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding

from regard.models.layers.score_functions import ACTIVATIONS
from regard.recordings.decomposition import Components

PARTS = ("temporal", "input", "delta")
TERMS = tuple(f"{ours}-{theirs}" for ours in PARTS for theirs in PARTS)
FEW = 256  # vocabularies up to this size are multiplied as a whole


def nine_terms(
    queries: Tensor,
    keys: Tensor,
    query_words: Tensor,
    key_words: Tensor,
    query_parts: Components,
    key_parts: Components,
    scores: Tensor,
    top: Tensor,
) -> Tensor:
    """The nine terms at the positions `top` (sample, target, k). -> (9, sample, target, k)

    queries (sample, target, features), keys (sample, source, features), scores their products.
    """
    (mu_d, chi_d), (mu_e, chi_e) = query_parts.tensors, key_parts.tensors
    target, source = queries.shape[1], keys.shape[1]
    mu_d, mu_e = mu_d[:target], mu_e[:source]
    theirs = at(key_words[:, None, :].expand(-1, target, -1), top)  # words at `top`
    # Tables of averages with averages.
    tt = at(mu_d @ mu_e.t(), top)
    ti = at(mu_d @ chi_e.t(), theirs)
    it = at(embedding(query_words, chi_d @ mu_e.t()), top)
    if len(chi_d) * len(chi_e) <= FEW**2:
        ii = at(embedding(query_words, chi_d @ chi_e.t()), theirs)
    else:
        ii = torch.einsum("ntf,ntkf->ntk", chi_d[query_words], chi_e[theirs])
    # Averages of one side with what the other side is.
    mu_k, chi_k = with_keys(keys, mu_d, chi_d, query_words, top)
    mu_q, chi_q = with_queries(queries, mu_e, chi_e, key_words, top, theirs)
    td, id_, dt, di = mu_k - tt - ti, chi_k - it - ii, mu_q - tt - it, chi_q - ti - ii
    dd = at(scores, top) - mu_k - chi_k - dt - di
    return torch.stack([tt, ti, td, it, ii, id_, dt, di, dd])


def at(grid: Tensor, index: Tensor) -> Tensor:
    """A grid ([sample,] target, …) at some places of its last axis, (sample, target, k)."""
    return grid.expand(len(index), -1, -1).gather(2, index)


def with_keys(
    keys: Tensor, mu: Tensor, chi: Tensor, words: Tensor, top: Tensor
) -> tuple[Tensor, Tensor]:
    """μ_s·k_t and χ_y·k_t at `top`, of the query side's averages and words (sample, target)."""
    if len(chi) > FEW:
        turned = keys.transpose(1, 2)
        return at(mu @ turned, top), at(chi[words] @ turned, top)
    samples, source, _ = keys.shape
    # Of all averages at once, in one product over all samples: (target + word, sample, source).
    both = (torch.cat([mu, chi]) @ keys.flatten(0, 1).t()).view(-1, samples, source)
    rows = (len(mu) + words) * samples + torch.arange(samples)[:, None]  # one per query
    return at(both[: len(mu)].transpose(0, 1), top), at(embedding(rows, both.flatten(0, 1)), top)


def with_queries(
    queries: Tensor, mu: Tensor, chi: Tensor, words: Tensor, top: Tensor, theirs: Tensor
) -> tuple[Tensor, Tensor]:
    """q_s·μ_t and q_s·χ_x at `top`, of the key side's averages and words.

    words (sample, source); `theirs` (sample, target, k) are those at `top`.
    """
    if len(chi) > FEW:
        return at(queries @ mu.t(), top), at(queries @ chi[words].transpose(1, 2), top)
    both = queries @ torch.cat([mu, chi]).t()  # (sample, target, source + word)
    return at(both, top), at(both, len(mu) + theirs)


def substituted_terms(
    queries: Tensor,
    keys: Tensor,
    query_words: Tensor,
    key_words: Tensor,
    query_parts: Components,
    key_parts: Components,
    vector: Tensor,
    top: Tensor,
    score: str,
) -> Tensor:
    """The nine terms where scores = v · f(q + k), by taking parts out. -> as `nine_terms`

    The term of parts a and b is f(q,k) − f(q−a,k) − f(q,k−b) + f(q−a,k−b): what they add
    together that neither adds alone. Of a bilinear score that is a·b exactly.
    """
    ours = query_parts.parts(queries.numpy(), query_words.numpy())
    theirs = key_parts.parts(keys.numpy(), key_words.numpy())
    samples = torch.arange(len(keys))[:, None, None]
    activation = ACTIVATIONS[score]

    def at(x: Tensor) -> Tensor:
        return x[samples, top]  # (sample, target, k, features)

    def measure(q: Tensor, k: Tensor) -> Tensor:
        found: Tensor = activation(q[:, :, None] + k) @ vector
        return found

    here = at(keys)
    whole = measure(queries, here)
    alone = [measure(queries - a, here) for a in ours]
    without = [here - at(b) for b in theirs]
    other = [measure(queries, k) for k in without]
    return torch.stack(
        [
            whole - alone[i] - other[j] + measure(queries - a, k)
            for i, a in enumerate(ours)
            for j, k in enumerate(without)
        ]
    )
