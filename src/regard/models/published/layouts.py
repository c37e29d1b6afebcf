"""What the file of each published model holds, and how its words map to Regard's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from regard.models.published.attentive import WRAPPER, AttentiveSpeller
from regard.models.published.fixed_vector import FixedVectorSpeller
from regard.models.published.numbering import Numbering
from regard.models.published.speller import Published, Weights

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Side:
    """Which of their words are Regard's special ones, and how others are called here."""

    special: dict[str, str]
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Layout:
    """One published model: its words, the arrays of its file, and what it becomes."""

    name: str
    letters: Side
    phonemes: Side
    sizes: dict[str, str]  # a size, and the array whose last axis has it
    shapes: Callable[..., Shapes]  # the sizes, letters and phonemes -> every array's shape
    model: Callable[[Weights, Numbering, Numbering], Published]

    @property
    def names(self) -> set[str]:
        """The arrays that the file holds."""
        return set(self.shapes(**dict.fromkeys(self.sizes, 1), letters=1, phonemes=1))


ATTENTION = f"{WRAPPER}bahdanau_attention."


def attentive(hidden: int, size: int, width: int, letters: int, phonemes: int) -> Shapes:
    """The shapes of g2p_en 1.0.1; `size` is that of a key, `width` of the attention vector."""
    shapes: Shapes = {
        "dense.bias": (phonemes,),
        "dense.kernel": (width, phonemes),
        "memory_layer.kernel": (2 * hidden, size),
        f"{WRAPPER}attention_layer.kernel": (3 * hidden, width),
        f"{ATTENTION}attention_v": (size,),
        f"{ATTENTION}query_layer.kernel": (hidden, size),
    }
    inputs = {"bidirectional_rnn.fw.": letters, "bidirectional_rnn.bw.": letters}
    for place, count in {**inputs, WRAPPER: phonemes + width}.items():
        for part, blocks in (("gates", 2), ("candidate", 1)):
            shapes[f"{place}gru_cell.{part}.kernel"] = (count + hidden, blocks * hidden)
            shapes[f"{place}gru_cell.{part}.bias"] = (blocks * hidden,)
    return shapes


def fixed_vector(hidden: int, size: int, letters: int, phonemes: int) -> Shapes:
    """The shapes of g2p_en 2.1.0; `size` is that of an embedding."""
    shapes: Shapes = {"fc_w": (phonemes, hidden), "fc_b": (phonemes,)}
    for side, words in (("enc", letters), ("dec", phonemes)):
        shapes[f"{side}_emb"] = (words, size)
        shapes[f"{side}_w_ih"] = (3 * hidden, size)
        shapes[f"{side}_w_hh"] = (3 * hidden, hidden)
        shapes[f"{side}_b_ih"] = shapes[f"{side}_b_hh"] = (3 * hidden,)
    return shapes


LAYOUTS = (
    Layout(
        "g2p_en 1.0.1",
        Side({"<PAD>": "P", "<EOS>": "E"}, {"U": "<unk>"}),
        Side({"<SOS>": "<PAD>", "<EOS>": "<EOS>"}),
        {
            "hidden": "bidirectional_rnn.fw.gru_cell.candidate.bias",
            "size": f"{ATTENTION}attention_v",
            "width": f"{WRAPPER}attention_layer.kernel",
        },
        attentive,
        AttentiveSpeller,
    ),
    Layout(
        "g2p_en 2.1.0",
        Side({"<PAD>": "<pad>", "<EOS>": "</s>"}),
        Side({"<PAD>": "<pad>", "<SOS>": "<s>", "<EOS>": "</s>"}),
        {"hidden": "enc_w_hh", "size": "enc_emb"},
        fixed_vector,
        FixedVectorSpeller,
    ),
)
