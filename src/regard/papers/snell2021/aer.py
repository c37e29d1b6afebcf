"""Do attention, the lexical probe and IBM model 1 of snell2021 find human word alignments?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np

from regard.display import Bars, Figure, Table
from regard.instruments.scores import Scores
from regard.instruments.words._subwords import Pool, pool_pieces
from regard.instruments.words.aer import link_best
from regard.instruments.words.ibm1 import ibm1
from regard.instruments.words.links import Alignment, match_links, symmetrise
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import count_seeds, draw_shares, plan_seeds
from regard.papers.snell2021._aligned_text import (
    FOLDER,
    TEXTS,
    Aligned,
    Pair,
    keep_pairs,
    read_aligned,
    read_texts,
)
from regard.papers.snell2021._course import read_scores
from regard.papers.snell2021._data_sets import SETS, find_folder
from regard.recordings.storage import Array
from regard.runs import Run
from regard.statistics import Estimate
from regard.tasks import EOS, SOS, Batch
from regard.tasks.batch import collate
from regard.tasks.text.translation import Translation

LANGUAGES = {"enfr": "English-French", "roen": "Romanian-English"}
MOST = {"quick": 4000, "full": 200_000}  # pairs of each text
QUICK = {"hidden": 64, "embedding": 64, "updates": 500, "pieces": 3000, "longest": 25,
         "held_out": 100, "evaluate_every": 250, "checkpoint_every": 250,
         "milestones": ()}  # fmt: skip
RECIPE = {key: value for key, value in SETS["multi30k"].recipe.items() if key != "epochs"}
# As many sentences as the text at hand has.
FULL = {**RECIPE, "updates": 3000, "longest": 60, "held_out": 1000, "milestones": ()}
PROXY = {"quick": 1500, "full": 5000}  # updates
# Which look, and how scores of pieces become one of a word: a probability adds up over the pieces
# of a source word, but of β each is one of its own.
LOOKS: dict[str, tuple[str, Pool]] = {
    "attention": ("translation", "sum"),
    "lexical": ("translation", "max"),
    "proxy": ("proxy", "max"),
}
AT_ONCE = 64  # sentences in a batch
SYMBOLS = {"attention": "α", "lexical": "β", "proxy": "β^px", "ibm1": "α^IBM",
           "ibm1_both": "α^IBM, both directions", "giza": "GIZA++, both directions",
           "fast_align": "fast_align, both directions"}  # fmt: skip


def score_words(run: Run, what: str, pairs: Sequence[Pair], pool: Pool) -> Scores:
    """Scores of a model that reads pieces, as scores of the words of given sentences.

    -> (sample, target word, source word)
    """
    batch, sources, targets = spell(cast(Translation, run.task()), pairs)
    found = read_scores(run, list(batch.pieces(AT_ONCE)), what)
    return pool_pieces(found, sources, targets, pool)


def spell(task: Translation, pairs: Sequence[Pair]) -> tuple[Batch, Array, Array]:
    """Sentences in pieces, and the number of the word that each piece belongs to, −1 for none.

    Words are cut up one by one, so that none is lost or parted whatever signs it has. A piece
    never reaches over two words, so the pieces are those of the whole sentence.
    -> a batch, (sample, source), (sample, target)
    """
    cut = [[task.pieces.encode(list(side)) for side in pair] for pair in pairs]
    batch = collate(
        [[SOS, *chain(*source), EOS] for source, _ in cut],
        [[*chain(*target), EOS] for _, target in cut],
    )
    sources = _number_words((source for source, _ in cut), batch.source.shape[1], first=1)
    targets = _number_words((target for _, target in cut), batch.target.shape[1], first=0)
    return batch, sources, targets


def _number_words(sentences: Iterable[list[list[int]]], width: int, first: int) -> Array:
    """(sample, position), where a sentence begins at position `first`."""
    rows = []
    for sentence in sentences:
        row = np.full(width, -1, np.int64)
        inside = np.repeat(np.arange(len(sentence)), [len(pieces) for pieces in sentence])
        row[first : first + len(inside)] = inside
        rows.append(row)
    return np.stack(rows)


def align_by_counts(pairs: Sequence[Pair], aligned: Sequence[Pair]) -> dict[str, list[Alignment]]:
    """Links of IBM model 1: the best source word of each target word, and both ways joined."""
    back = [(target, source) for source, target in pairs]
    turned = [(target, source) for source, target in aligned]
    one = link_best(ibm1(pairs).alpha(aligned))
    other = [links.turned for links in link_best(ibm1(back).alpha(turned))]
    return {"ibm1": one, "ibm1_both": symmetrise(one, other)}


@EXPERIMENTS.register("snell2021/aer")
class AERExperiment(Experiment):
    """Soft alignments against those of people."""

    title = "Word alignments by people"
    about = (
        "Alignment error rate of attention, of both lexical probes and of IBM model 1 on human"
        " alignments of English and French, beside published output of GIZA++ and fast_align."
    )
    claims = ("snell.aer",)
    wants = (FOLDER, *TEXTS)
    partial = True

    @cached_property
    def _folder(self) -> Path | None:
        return find_folder(FOLDER, self.data)

    def lacks(self, scale: Scale) -> str | None:
        """The human alignments do not come with Regard."""
        return None if self._folder else f"human word alignments: --data {FOLDER}=FOLDER"

    def _read_aligned(self, languages: str) -> Aligned:
        assert self._folder is not None
        return read_aligned(self._folder, languages)

    def _read_text(self, scale: Scale) -> tuple[list[Pair], list[str]]:
        """What is learned from: text at hand and, as is usual, the aligned sentences themselves."""
        found, names = read_texts(self.data, MOST[scale])
        return [*found, *self._read_aligned("enfr").pairs], names

    def plan(self, scale: Scale) -> Plan:
        """A translation model and a bag of words, in pieces of words."""
        own = FULL if scale == "full" else QUICK
        source = {"source": str(keep_pairs(self._read_text(scale)[0])), "bad_lines": "skip"}
        count = count_seeds(scale, 1)
        plain = {k: v for k, v in own.items() if k in ("pieces", "longest", "held_out")}
        bag = {**plain, "updates": PROXY[scale]}
        return {
            "translation": plan_seeds(count, "translation", "snell-translation", **source, **own),
            "proxy": plan_seeds(count, "translation", "snell-proxy", **source, **bag),
        }

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """AER of everything on English-French; of what needs no training text on the other."""
        text, names = self._read_text(scale)
        aligned = self._read_aligned("enfr")
        found = {
            name: [link_best(score_words(run, name, aligned.pairs, pool)) for run in runs[kind]]
            for name, (kind, pool) in LOOKS.items()
        } | _link_without_seeds(text, aligned)
        measures: Measures = {
            name: Estimate.share(match_links(links, aligned.gold).error for links in several)
            for name, several in found.items()
        }
        other = self._read_aligned("roen")
        few = _link_without_seeds(other.pairs, other)
        words = int(np.sum([len(target) for _, target in aligned.pairs]))
        bars = Bars.of("", {SYMBOLS[name]: value for name, value in measures.items()})
        return Findings.of(
            {"snell.aer": measures},
            _list_links(LANGUAGES["enfr"], found, aligned.gold),
            _list_links(LANGUAGES["roen"], few, other.gold),
            Figure.of(
                "snell-aer",
                f"Alignment error rate on {len(aligned.pairs)} English-French sentence pairs that"
                f" people aligned ({words:,} target words): 0 is perfect. Each target word is"
                " linked to its best source word, except where two directions are joined; whiskers"
                " are 95 % intervals over seeds.",
                draw_shares("", "what", "alignment error rate", bars, wide=True),
            ),
            f"Everything was trained on {len(text):,} pairs: of {' and '.join(names)}, and the"
            f" {len(aligned.pairs)} aligned pairs themselves, without their links, as is usual"
            " for IBM models. What GIZA++ and fast_align give was published; they had far more"
            " text, and text of the same kind, so they are a mark and no rivals.",
            "For Romanian and English no text is at hand: IBM model 1 has seen the"
            f" {len(other.pairs)} aligned pairs alone.",
        )


def _link_without_seeds(
    pairs: Sequence[Pair], aligned: Aligned
) -> dict[str, list[list[Alignment]]]:
    """Links by counts and those of the programs, as if of one seed."""
    found = align_by_counts(pairs, aligned.pairs) | aligned.programs
    return {name: [links] for name, links in found.items()}


def _list_links(
    languages: str, found: dict[str, list[list[Alignment]]], gold: list[Alignment]
) -> Table:
    matches = {
        SYMBOLS[name]: [match_links(links, gold) for links in several]
        for name, several in found.items()
    }
    columns = {
        title: {
            name: Estimate.share(getattr(m, what) for m in several)
            for name, several in matches.items()
        }
        for title, what in (("AER", "error"), ("precision", "precision"), ("recall", "recall"))
    }
    return Table.of_columns(f"Links against those of people, {languages}", "what", columns)
