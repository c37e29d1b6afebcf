"""A beam search as a tree, as the search itself told it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from regard.explorer import questions as ask
from regard.explorer.changing import find_reference, make_changes
from regard.explorer.speaking import Alive, read_batch
from regard.explorer.views import Views
from regard.instruments.interventions._steering import Sentence, steer
from regard.models.decoding import beam
from regard.subjects.lexicon import Lexicon, strip

Path = tuple[int, ...]


def grow_tree(views: Views, question: ask.BeamQuestion, alive: Alive) -> dict[str, Any]:
    """Every sequence that the beam held: its words, its log-probability, and the one that won."""
    live = views.things.live(question.thing)
    scores: dict[Path, float] = {}
    ended: set[Path] = set()
    with live.lock, torch.no_grad():
        model = live.model(question.checkpoint)
        changes = make_changes(live, question, alive)
        batch = read_batch(live, question.model_copy(update={"feed": "own"}))
        sentence = Sentence(batch.source, reference=find_reference(live, question))

        def feeding(fed: Tensor) -> None:
            alive()
            sentence.feed(fed)

        def growing(words: Tensor, totals: Tensor, ending: Tensor) -> None:
            rows = zip(words[0].tolist(), totals[0].tolist(), ending[0].tolist(), strict=True)
            for row, total, ends in rows:
                if total > -torch.inf:
                    scores[tuple(row)] = total
                    ended.update({tuple(row)} if ends else ())

        with steer(model, changes, sentence):
            sentence.begin()
            memory = model.encode(batch.source, batch.source_lengths)
            limit, ends = live.limit(batch.source.shape[1])
            end = live.end if ends else None
            best = beam(
                model, memory, min(limit, 120), question.width, end, feeding, growing, live.start
            )
    won = max((p for p in ended if list(p) == best[0, : len(p)].tolist()), key=len, default=())
    return {"tree": _to_nodes(scores, ended, won, live.lexicon(1))}


def _to_nodes(
    scores: dict[Path, float], ended: set[Path], won: Path, lexicon: Lexicon
) -> list[dict[str, Any]]:
    """A node for every prefix of what was held; those that died out early are there, too."""
    numbers: dict[Path, int] = {(): -1}
    nodes: list[dict[str, Any]] = []
    words = lexicon.words
    for path in sorted(scores, key=lambda p: (len(p), -scores[p])):
        if path[:-1] not in numbers:
            continue
        numbers[path] = len(nodes)
        before = scores.get(path[:-1], 0.0)
        nodes.append({
            "id": numbers[path], "parent": numbers[path[:-1]], "step": len(path) - 1,
            "word": words[path[-1]], "path": [words[n] for n in path], "score": scores[path],
            "shown": strip(words[path[-1]], lexicon.marker) or words[path[-1]],
            "log_p": scores[path] - before, "ended": path in ended,
            "best": path == won[: len(path)],
        })  # fmt: skip
    return nodes
