"""The nine terms of an alignment at chosen positions (aitken2021, eq. 3).

a_st = (μ_s + χ_y + Δ_s) · (μ_t + χ_x + Δ_t), the decoder's part first. Five products with the
averages give all nine terms, because the parts are sums: μ·Δ = μ·k − μ·μ − μ·χ, and so on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from regard.instruments.decomposition import Components

PARTS = ("temporal", "input", "delta")
TERMS = tuple(f"{ours}-{theirs}" for ours in PARTS for theirs in PARTS)
FEW = 256  # vocabularies up to this size are multiplied as a whole


def products(
    queries: Tensor, words: Tensor, keys: Tensor, asked: Components, answered: Components
) -> tuple[Tensor, Tensor]:
    """What queries and keys have in common with the other side's averages.

    queries (sample, target, features), keys (sample, source, features); `words` are the query
    side's (sample, target). -> μ_s·k_t and χ_y·k_t, each (sample, target, source).
    """
    mu, chi = asked.tensors
    target = queries.shape[1]
    if len(chi) <= FEW:
        both = keys @ torch.cat([mu[:target], chi]).t()  # (sample, source, target + word)
        temporal = both[:, :, :target].transpose(1, 2)
        index = (words + target)[:, None, :].expand(-1, keys.shape[1], -1)
        return temporal, both.gather(2, index).transpose(1, 2)
    return mu[:target] @ keys.transpose(1, 2), chi[words] @ keys.transpose(1, 2)


def nine_terms(
    queries: Tensor,
    keys: Tensor,
    query_words: Tensor,
    key_words: Tensor,
    asked: Components,
    answered: Components,
    scores: Tensor,
    top: Tensor,
) -> Tensor:
    """The nine terms at the positions `top` (sample, target, k). -> (9, sample, target, k)

    queries (sample, target, features), keys (sample, source, features), scores their products.
    """
    (mu_d, chi_d), (mu_e, chi_e) = asked.tensors, answered.tensors
    target, source = queries.shape[1], keys.shape[1]
    mu_d, mu_e = mu_d[:target], mu_e[:source]
    steps = torch.arange(target)[None, :, None]
    theirs = key_words[:, None, :].expand(-1, target, -1).gather(2, top)  # words at `top`
    ours = query_words[:, :, None]
    # Tables of averages with averages.
    tt = (mu_d @ mu_e.t())[steps, top]
    ti = (mu_d @ chi_e.t())[steps, theirs]
    it = (chi_d @ mu_e.t())[ours, top]
    if len(chi_d) * len(chi_e) <= FEW**2:
        ii = (chi_d @ chi_e.t())[ours, theirs]
    else:
        ii = torch.einsum("ntf,ntkf->ntk", chi_d[query_words], chi_e[theirs])
    # Averages of one side with what the other side is.
    mu_k, chi_k = products(queries, query_words, keys, asked, answered)
    mu_q, chi_q = products(keys, key_words, queries, answered, asked)  # (sample, source, target)
    mu_k, chi_k = mu_k.gather(2, top), chi_k.gather(2, top)
    mu_q, chi_q = (x.transpose(1, 2).gather(2, top) for x in (mu_q, chi_q))
    td, id_, dt, di = mu_k - tt - ti, chi_k - it - ii, mu_q - tt - it, chi_q - ti - ii
    dd = scores.gather(2, top) - mu_k - chi_k - dt - di
    return torch.stack([tt, ti, td, it, ii, id_, dt, di, dd])


def substituted_terms(
    queries: Tensor,
    keys: Tensor,
    query_words: Tensor,
    key_words: Tensor,
    asked: Components,
    answered: Components,
    vector: Tensor,
    top: Tensor,
) -> Tensor:
    """The nine terms where scores = v · tanh(q + k), by taking parts out. -> as `nine_terms`

    The term of parts a and b is f(q,k) − f(q−a,k) − f(q,k−b) + f(q−a,k−b): what they add
    together that neither adds alone. Of a bilinear score that is a·b exactly.
    """
    ours = asked.parts(queries.numpy(), query_words.numpy())
    theirs = answered.parts(keys.numpy(), key_words.numpy())
    samples = torch.arange(len(keys))[:, None, None]

    def at(x: Tensor) -> Tensor:
        return x[samples, top]  # (sample, target, k, features)

    def score(q: Tensor, k: Tensor) -> Tensor:
        return torch.tanh(q[:, :, None] + k) @ vector

    here = at(keys)
    whole = score(queries, here)
    alone = [score(queries - a, here) for a in ours]
    there = [here - at(b) for b in theirs]
    other = [score(queries, k) for k in there]
    return torch.stack(
        [
            whole - alone[i] - other[j] + score(queries - a, k)
            for i, a in enumerate(ours)
            for j, k in enumerate(there)
        ]
    )
