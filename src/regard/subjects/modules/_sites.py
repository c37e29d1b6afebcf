"""One attention of a module, put together from what passed its places."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models.layers.attention import Site, masked_softmax
from regard.models.layers.score_functions import ACTIVATIONS
from regard.subjects.modules.at import At

TOLERANCE = 1e-3  # of weights
ROWS_OFF = 2e-2  # of sums of weights, which may be of half precision


def make_site(
    name: str, at: At, arrays: Mapping[str, Tensor], masks: Mapping[str, Tensor],
    vector: Tensor | None, changed: bool = False,
) -> Site:  # fmt: skip
    """Queries, keys, scores and weights of a site; given ones must be what follows from others.

    Where what passed was `changed` on its way, it need not; nor where no query is. `masks` say
    where the words of both sides are.
    """
    mask, asks = masks["encoder"], masks[at.query_side][:, None, :, None]
    heads = {part: _split(arrays[f"{name}.{part}"], at.heads)
             for part in ("queries", "keys", "values") if f"{name}.{part}" in arrays}  # fmt: skip
    given = {part: _square(arrays[f"{name}.{part}"], at.heads)
             for part in ("scores", "weights", "bias") if f"{name}.{part}" in arrays}  # fmt: skip
    bias = given.get("bias", at.bias if isinstance(at.bias, Tensor) else None)
    if "weights" in given and not changed:
        check_rows(name, at, given["weights"], mask, asks)
    if not heads:
        return _bare(name, at, given)
    queries, keys = heads["queries"], heads["keys"].expand(-1, at.heads, -1, -1)
    vectors = None if vector is None else vector.reshape(at.heads, -1)
    queries = queries * at.scale
    scores = score(at, queries, keys, vectors)
    if "scores" in given and not changed:
        words = mask if at.masked and at.key_side == "encoder" else None
        compare("scores", name, scores, given["scores"], asks, words)
    allowed = allow(at, scores, mask)
    weights = masked_softmax(scores if bias is None else scores + bias, allowed)
    if "weights" in given:
        if not changed:
            words = mask if at.key_side == "encoder" else None
            compare("weights", name, weights, given["weights"], asks, words)
        weights = given["weights"]
    none = keys.new_zeros(*keys.shape[:3], 0)  # what is mixed was not said
    return Site(
        queries=queries, keys=keys, values=heads.get("values", none), scores=scores,
        weights=weights, bias=bias, vector=vectors, score=at.score, query_side=at.query_side,
        key_side=at.key_side, layer=at.layer, heads=at.heads, lag=at.lag, scale=at.scale,
        masked=at.masked, projected=at.projected,
    )  # fmt: skip


def check_rows(name: str, at: At, weights: Tensor, mask: Tensor, asks: Tensor) -> None:
    """Refuse weights that lie where there is no word, or that are none."""
    if at.key_side == "encoder" and weights.shape[-1] != mask.shape[1]:
        raise RegardError(
            f"The weights of '{name}' are over {weights.shape[-1]} positions, but the source has"
            f" {mask.shape[1]} words: an attention that is recorded looks at one position a word."
        )
    if not at.masked or at.key_side != "encoder":
        return
    weights = weights.detach().float()
    sums = (weights * mask[:, None, None, :]).sum(-1, keepdim=True)
    worst = float(((sums - 1).abs() * asks).max())
    if not worst <= ROWS_OFF:
        raise RegardError(
            f"Rows of the weights of '{name}' are {worst:.2g} off 1 over the words of the source."
            " If the module attends to padding, say so: masked=False."
        )


def _bare(name: str, at: At, given: Mapping[str, Tensor]) -> Site:
    """Weights without queries and keys: instruments that need no more run."""
    weights = given["weights"] if "weights" in given else given["scores"].softmax(-1)
    none = weights.new_zeros(*weights.shape[:3], 0)
    keys = weights.new_zeros(*weights.shape[:2], weights.shape[3], 0)
    return Site(
        queries=none, keys=keys, values=keys, scores=given.get("scores", weights), weights=weights,
        score="given", query_side=at.query_side, key_side=at.key_side, layer=at.layer,
        heads=weights.shape[1], lag=at.lag, masked=at.masked,
    )  # fmt: skip


def _split(x: Tensor, heads: int) -> Tensor:
    """(batch, time, head·size) -> (batch, head, time, size); with a head axis as it is."""
    if x.ndim == 4:
        return x
    if x.shape[2] % heads:
        raise RegardError(f"{x.shape[2]} features do not part into heads={heads}.")
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def _square(x: Tensor, heads: int) -> Tensor:
    """Scores or weights with a head axis. -> (batch, head, target, source)"""
    return x[:, None] if x.ndim == 3 else x


def score(at: At, queries: Tensor, keys: Tensor, vector: Tensor | None) -> Tensor:
    """queries · keys, or vector · activation(queries + keys)."""
    if at.score == "dot":
        return queries @ keys.transpose(-1, -2)
    if at.score not in ACTIVATIONS or vector is None:
        raise RegardError(
            f"Scores do not follow from queries and keys with score='{at.score}'. Give score='dot',"
            f" or one of {', '.join(ACTIVATIONS)} with its vector."
        )
    both = queries[:, :, :, None] + keys[:, :, None]
    return torch.einsum("bhtsf,hf->bhts", ACTIVATIONS[at.score](both), vector)


def allow(at: At, scores: Tensor, mask: Tensor) -> Tensor:
    """Where weight may lie: on words, and in a decoder's own past."""
    if at.query_side == at.key_side == "decoder":
        return torch.ones_like(scores[0, 0], dtype=torch.bool).tril()
    if not at.masked:
        return torch.ones_like(scores[0, 0], dtype=torch.bool)
    return mask[:, None, None, :]


def compare(
    what: str, name: str, ours: Tensor, theirs: Tensor, asks: Tensor, mask: Tensor | None
) -> None:
    """Refuse an attention that is not what its places say, where there are queries (and keys)."""
    if ours.shape != theirs.shape:
        raise RegardError(
            f"The {what} of '{name}' are {tuple(theirs.shape)}, but queries and keys give"
            f" {tuple(ours.shape)}. Is heads= right?"
        )
    ours, theirs = ours.detach(), theirs.detach()
    apart = (ours - theirs).abs() * asks
    if mask is not None:
        apart = apart * mask[:, None, None, :]
    worst = float(apart.max())
    if not worst <= TOLERANCE * max(1.0, float(ours.abs().max())):
        raise RegardError(
            f"The {what} of '{name}' are {worst:.2g} off what queries and keys give. Check heads=,"
            " scale= (often size**-0.5), bias=, vector=, lag= and masked=."
        )
