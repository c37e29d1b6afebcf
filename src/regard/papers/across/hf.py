"""A Marian trained through `transformers` and recorded through its adapter: the same picture?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from regard.display import Bars, Figure, Panel, Table
from regard.instruments.components import breakdown
from regard.instruments.components._terms import TERMS
from regard.papers.across._transformers import CROSSING, HIDDEN, UPDATES, plan_transformer_escan
from regard.papers.framework import EXPERIMENTS, Experiment, Findings, Measures, Plan, Runs, Scale
from regard.papers.framework.measures import CHANGE, SIZE
from regard.recordings.record import draw_samples, record
from regard.recordings.recording import Recording
from regard.recordings.storage import Array
from regard.statistics import Estimate
from regard.tasks import Batch, Task
from regard.tasks.vocabulary import EOS, PAD, SOS
from regard.training import one_thread

SAMPLES = {"quick": 100, "full": 1000}
RATE, WARMUP, BATCH = 1e-3, 200, 64  # Marian normalises after each block, which wants a warm-up


@EXPERIMENTS.register("across/hf")
class HuggingFaceExperiment(Experiment):
    """Two Transformers that share no line of code, on the same task."""

    title = "A Marian trained through transformers, beside our own Transformer"
    about = (
        "Both have two layers, four heads and 64 units, and learn eSCAN. Marian is built, trained"
        " and run by `transformers`, with normalisation after each block and one table of words for"
        " both sides; it is recorded through `regard.hugging_face`. Compared are the shares of the"
        " nine terms in the attentions to the source."
    )
    claims = ("x.hf",)

    def lacks(self, scale: Scale) -> str | None:
        """The package that Marian comes from."""
        try:
            import transformers  # noqa: F401
        except ImportError:
            return "the package transformers: pip install 'regard[hf]'"
        return None

    def coverage(self, scale: Scale, plan: Plan | None = None) -> str:
        """One task."""
        return "1 task: eSCAN; Marian of the families that the adapter reads"

    def plan(self, scale: Scale) -> Plan:
        """Our own; Marian is no run of ours and is trained when it is measured."""
        return {"own": plan_transformer_escan(scale)}

    def measure(self, runs: Runs, scale: Scale) -> Findings:
        """Shares of both, seed by seed, and how alike their profiles are."""
        group = runs["own"]
        task = group[0].task()
        ours = [record(run, n=SAMPLES[scale], inputs="teacher", sites="cross") for run in group]
        theirs, right = [], []
        for run in group:
            net = train_marian(task, run.config.seed, UPDATES[scale])
            recording = record_marian(net, task, SAMPLES[scale])
            theirs.append(recording)
            right.append(share_right(recording))
        profiles = [profile(ours), profile(theirs)]  # each (seed, site and term)
        mean = profiles[0].mean(axis=0)  # a seed of Marian's is held against our mean
        alike = [float(np.corrcoef(seed, mean)[0, 1]) for seed in profiles[1]]
        apart = [float(np.abs(seed - mean).mean()) for seed in profiles[1]]
        spread = [float(np.abs(seed - mean).mean()) for seed in profiles[0]]
        own: Measures = {
            "alike": Estimate.of(alike, CHANGE),
            "apart": Estimate.of(apart, SIZE),
            "apart_ours": Estimate.of(spread, SIZE),
            "accuracy_marian": Estimate.share(right),
            "accuracy_own": Estimate.share(share_right(recording) for recording in ours),
        }
        shown = {"our own": profiles[0], "Marian": profiles[1]}
        return Findings.of({"x.hf": own}, Table.of("Marian and our own", own), draw_profiles(shown))


def train_marian(task: Task, seed: int, updates: int) -> Any:
    """A Marian of the size of our own, on fresh samples; the teacher's words are fed."""
    net = make_marian(task, seed)
    optimiser = torch.optim.Adam(net.parameters(), lr=RATE)
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda at: find_rate(at, updates))
    rng = np.random.default_rng([seed, 1])
    size = len(task.source_vocabulary)
    with one_thread():
        for _ in range(updates):
            batch = task.draw(rng, BATCH)
            target = shift(batch.target, size)
            loss = net(
                input_ids=batch.source,
                attention_mask=batch.source_mask.long(),
                labels=target.masked_fill(~batch.target_mask, -100),
            ).loss
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            rate.step()
    return net.eval()


def make_marian(task: Task, seed: int) -> Any:
    """An untrained one: numbers of words as the task has them, the target's behind the source's."""
    from transformers import MarianConfig, MarianMTModel

    size = len(task.source_vocabulary) + len(task.target_vocabulary)
    torch.manual_seed(seed)
    return MarianMTModel(
        MarianConfig(
            vocab_size=size, d_model=HIDDEN, encoder_layers=2,
            decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=4 * HIDDEN, decoder_ffn_dim=4 * HIDDEN, dropout=0.0,
            max_position_embeddings=160, pad_token_id=PAD, decoder_start_token_id=SOS,
            eos_token_id=EOS, bos_token_id=SOS, forced_eos_token_id=EOS, scale_embedding=True,
        )
    )  # fmt: skip


def shift(words: torch.Tensor, size: int) -> torch.Tensor:
    """Target words behind the source's; padding, start and end as they are."""
    return torch.where(words <= EOS, words, words + size)


def find_rate(at: int, updates: int) -> float:
    """It rises, then falls along a cosine to zero."""
    if at < WARMUP:
        return (at + 1) / WARMUP
    return float((1 + np.cos(np.pi * (at - WARMUP) / max(1, updates - WARMUP))) / 2)


def record_marian(net: Any, task: Task, n: int) -> Recording:
    """Through the adapter, on the samples that ours is recorded on; the teacher's words are fed."""
    from regard.subjects.hugging_face.door import hugging_face

    pairs = [pair for batch in draw_samples(task, n, 0) for pair in list_pairs(batch, task)]
    return record(hugging_face(net), pairs=pairs, sites="cross")


def list_pairs(batch: Batch, task: Task) -> list[tuple[list[int], list[int]]]:
    """A batch as lists of Marian's word numbers."""
    target = shift(batch.target, len(task.source_vocabulary))
    sides = (batch.source, batch.source_lengths), (target, batch.target_lengths)
    lists = [[row[:k].tolist() for row, k in zip(*side, strict=True)] for side in sides]
    return list(zip(*lists, strict=True))


def share_right(recording: Recording) -> float:
    """Of the target words, those that are the most probable."""
    mask = recording["decoder.mask"]
    return float((recording["predictions"] == recording["targets"])[mask].mean())


def profile(recordings: Sequence[Recording]) -> Array:
    """The nine shares of each attention to the source, seed by seed. -> (seed, site and term)"""
    found = [breakdown(recordings, site=site) for site in CROSSING]
    return np.array(
        [
            [float(one.seeds[k].absolute[t]) for one in found for t in range(len(TERMS))]
            for k in range(len(recordings))
        ]
    )


def draw_profiles(shown: dict[str, Array]) -> Figure:
    """Bars of all terms, a panel per layer, a colour per model."""
    panels = []
    for layer, site in enumerate(CROSSING):
        first = layer * len(TERMS)
        bars = (
            Bars.of(
                name,
                {t: Estimate.share(found[:, first + k]) for k, t in enumerate(TERMS)},
                colour,
            )
            for colour, (name, found) in enumerate(shown.items())
        )
        panels.append(Panel(site, "", "share", tuple(bars), (0, 1), wide=True))
    return Figure(
        "x-hf",
        "Shares of the nine terms in both layers' attention to the source, on eSCAN; means and"
        " 95 % intervals over seeds. The first name is the query's part.",
        tuple(panels),
    )
