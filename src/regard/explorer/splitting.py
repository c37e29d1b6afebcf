"""The nine terms of every cell of a head."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from regard.explorer import questions as ask
from regard.explorer.heads import check_head
from regard.explorer.speaking import Alive
from regard.explorer.thing import to_array
from regard.explorer.views import Arrays, Views
from regard.instruments.components._terms import TERMS
from regard.instruments.interventions._changes import split_scores
from regard.instruments.interventions._steering import Passing, Sentence

WHOLE = 20_000  # cells of a head up to which all its terms are sent at once


def split_head(
    views: Views, question: ask.HeadQuestion, alive: Alive
) -> tuple[dict[str, Any], Arrays]:
    """The nine terms of every cell of a head, or of one decoder step. (9, target, source)"""
    found = views.look(question, alive)
    check_head(found, question)
    reference = views.things[question.thing].reference(question.checkpoint)
    parts = reference.decomposition.site(question.site)
    name, head = question.site, question.head
    queries, keys, scores = (
        torch.from_numpy(np.ascontiguousarray(found.arrays[f"{name}.{what}"][head]))[None]
        for what in ("queries", "keys", "scores")
    )
    step = question.step
    if step is None and scores.shape[1] * scores.shape[2] > WHOLE:
        step = 0
    start = 0 if step is None else min(step, scores.shape[1] - 1)
    if parts.vector is None:  # of the model as it is, also where changes are on
        scores = queries @ keys.transpose(1, 2)
    if step is not None:
        queries, scores = (x[:, start : start + 1] for x in (queries, scores))
    source, fed = (torch.from_numpy(numbers[None]) for numbers in (found.source, found.fed))
    sentence = Sentence(source, fed, reference=reference)
    at = Passing(f"{name}.scores", start, (), sentence)
    terms = split_scores(parts, head, queries, keys, scores, at)[:, 0]
    known = parts.head(head)
    about = {
        "terms": TERMS, "exact": parts.site.bilinear, "step": None if step is None else start,
        "samples": len(reference),
        "known": [known[0].steps, known[1].steps],  # steps that the averages know
    }  # fmt: skip
    return about, {"terms": to_array(terms).astype(np.float32)}
