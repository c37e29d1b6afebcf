"""`regard.load_published`: two networks that turn English spelling into phonemes (g2p_en)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.models.layers.cells import Cell
from regard.subjects.formats._fill import Arrays, read_npz
from regard.subjects.formats._recurrent import Plan, Recurrent, attend
from regard.subjects.formats._starts import FromZeros, Start
from regard.subjects.formats._subject import FormatSubject
from regard.subjects.lexicon import Lexicon
from regard.tasks.batch import Batch, pad

WRAPPER = "rnn.attention_wrapper."  # where 1.0.1 keeps the decoder's arrays
SHAPE_OF_WORDS = 'It should be {"graphemes": […], "phonemes": […]}, words by their numbers.'
AT_ONCE = 250  # words that are spelled together
# Padding, start and end of both sides. In 1.0.1 the decoder is fed `<PAD>` first.
SPECIALS: dict[str, tuple[tuple[str | None, ...], tuple[str | None, ...]]] = {
    "g2p_en 1.0.1": (("P", None, "E"), (None, "<PAD>", "<EOS>")),
    "g2p_en 2.1.0": (("<pad>", None, "</s>"), ("<pad>", "<s>", "</s>")),
}


class Speller(FormatSubject):
    """Letters on one side, phonemes on the other; a text is its letters."""

    def _numbers(self, said: Any, lexicon: Lexicon, ends: bool) -> list[int]:
        spelled = lexicon is self.lexicons["encoder"] and isinstance(said, str)
        return super()._numbers([*said.lower()] if spelled else said, lexicon, ends)

    def spell(self, words: Sequence[str], limit: int = 40) -> list[list[str]]:
        """The phonemes of each word, greedily, at most `limit` of them.

        Words are read in lower case; a letter that the model has no unit for is an error.

        >>> load_published("g2p_en_2.1.0").spell(["attention"])           # doctest: +SKIP
        [['AH0', 'T', 'EH1', 'N', 'SH', 'AH0', 'N']]
        """
        source, target = self.lexicons.values()
        rows = [self._numbers(word, source, True) for word in words]
        said: list[list[str]] = []
        for start in range(0, len(rows), AT_ONCE):
            numbers, lengths = (torch.from_numpy(x) for x in pad(rows[start : start + AT_ONCE]))
            nothing = numbers[:, :0]
            found = self.generate(Batch(numbers, lengths, nothing, nothing.sum(1)), limit)
            for row, length in zip(
                found.target.tolist(), found.target_lengths.tolist(), strict=True
            ):
                said.append(target.look_up(n for n in row[:length] if n != target.end))
        return said


def load_published(folder: str | Path) -> Speller:
    """The published model in a folder: `weights.npz` and `vocab.json`.

    `g2p_en` 1.0.1 (attention that is fed back) and 2.1.0 (a fixed vector) are told apart by the
    names in `weights.npz`.

    >>> subject = regard.load_published("pretrained/g2p_en_1.0.1_bahdanau")   # doctest: +SKIP
    >>> subject.spell(["attention"])                                          # doctest: +SKIP
    [['AE0', 'T', 'EH1', 'N', 'SH', 'AH0', 'N']]
    """
    folder = Path(folder)
    held = Arrays(read_npz(folder / "weights.npz"), str(folder / "weights.npz"))
    attentive = "memory_layer.kernel" in held
    if not attentive and "enc_w_ih" not in held:
        raise RegardError(f"{held.where} is none of {' and '.join(SPECIALS)}, the published models"
                          f" that Regard knows: it holds {', '.join(sorted(held.arrays)[:6])}."
                          )  # fmt: skip
    with held.building():
        model = _build_attentive(held) if attentive else _build_fixed(held)
    report, name = held.finish(), [*SPECIALS][not attentive]
    sides = zip(_read_words(folder / "vocab.json"), SPECIALS[name], strict=True)
    sizes = (len(model.source_embedding.weight), len(model.target_embedding.weight))
    lexicons = [_make_lexicon(*side, size, folder) for side, size in zip(sides, sizes, strict=True)]
    return Speller(
        model, (lexicons[0], lexicons[1]), {"adapter": "published", "model": name}, report
    )


def _read_words(path: Path) -> tuple[list[str], list[str]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        words = data["graphemes"], data["phonemes"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RegardError(f"{path} cannot be read ({error!r}). {SHAPE_OF_WORDS}") from None
    for side in words:
        if not isinstance(side, list) or not all(isinstance(word, str) for word in side):
            raise RegardError(f"{path} holds something that is not a word. {SHAPE_OF_WORDS}")
    return words


def _make_lexicon(
    words: list[str], special: tuple[str | None, ...], size: int, folder: Path
) -> Lexicon:
    lost = [word for word in special if word is not None and word not in words]
    if lost or len(words) != size or len({*words}) != size:
        raise RegardError(f"{folder / 'vocab.json'} does not fit the weights: {size} different"
                          f" words are wanted, {len({*words})} are there; missing: {lost}."
                          )  # fmt: skip
    first, start, end = (None if word is None else words.index(word) for word in special)
    return Lexicon(tuple(words), first, start, end)


def _build_attentive(held: Arrays) -> Recurrent:
    """1.0.1: a two-way GRU, and a decoder that attention alone tells of the source."""
    attention = f"{WRAPPER}bahdanau_attention."
    hidden, size = held.shape(f"{attention}query_layer.kernel")
    width, sounds = held.shape("dense.kernel")
    letters = held.shape("bidirectional_rnn.fw.gru_cell.gates.kernel")[0] - hidden
    plan = Plan("gru-renn", (letters, letters), (sounds, sounds), (hidden, 1, True), (hidden, 1),
                width, "linear", vector_bias=False, feeds=True)  # fmt: skip
    model = Recurrent(plan, attend("additive", plan, size=size), FromZeros(hidden, 1))
    for table in (model.source_embedding, model.target_embedding):  # words enter as units
        table.weight = nn.Parameter(torch.eye(table.size), requires_grad=False)
    _fill_gru(held, model.encoder.ahead[0], "bidirectional_rnn.fw.gru_cell")
    _fill_gru(held, model.encoder.back[0], "bidirectional_rnn.bw.gru_cell")
    _fill_gru(held, model.decoder[0], f"{WRAPPER}gru_cell")
    asks = model.attention
    assert asks is not None and asks.query is not None and asks.key is not None
    assert isinstance(asks.v, Tensor) and model.readout.hidden is not None
    held.fill(asks.query.weight, f"{attention}query_layer.kernel", turn=True)
    held.fill(asks.key.weight, "memory_layer.kernel", turn=True)
    held.fill(asks.v[0], f"{attention}attention_v")
    held.fill(model.readout.hidden.weight, f"{WRAPPER}attention_layer.kernel", turn=True)
    held.fill(model.readout.weight, "dense.kernel", turn=True)
    held.fill(model.readout.bias, "dense.bias")
    return model


def _fill_gru(held: Arrays, cell: nn.Module, name: str) -> None:
    """TensorFlow's GRUCell into `gru-renn`, whose equations are the same.

    There a kernel (inputs + hidden, blocks·hidden) meets [x; h] from the right, the gates [r, u] in
    one and the candidate in another; here W and U are apart, transposed, with r, u, c in turn.
    """
    assert isinstance(cell, Cell)
    kernel = torch.cat([held.take(f"{name}.{p}.kernel") for p in ("gates", "candidate")], dim=1)
    bias = torch.cat([held.take(f"{name}.{p}.bias") for p in ("gates", "candidate")])
    with torch.no_grad():
        cell.weight_ih.copy_(kernel[: -cell.hidden].T)
        cell.weight_hh.copy_(kernel[-cell.hidden :].T)
        cell.bias_ih.copy_(bias)


def _build_fixed(held: Arrays) -> Recurrent:
    """2.1.0: a GRU reads the letters, and its last state is where a second GRU starts."""
    letters, sounds = held.table("enc_emb"), held.table("dec_emb")
    hidden = held.shape("enc_w_hh")[-1]
    model = Recurrent(
        Plan("gru-torch", letters, sounds, (hidden, 1, False), (hidden, 1)),
        None,
        Start(),
    )
    held.fill(model.source_embedding.weight, "enc_emb")
    held.fill(model.target_embedding.weight, "dec_emb")
    for side, cell in (("enc", model.encoder.ahead[0]), ("dec", model.decoder[0])):
        for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            held.fill(getattr(cell, part), f"{side}_{part.replace('eight', '').replace('ias', '')}")
    held.fill(model.readout.weight, "fc_w")
    held.fill(model.readout.bias, "fc_b")
    return model
