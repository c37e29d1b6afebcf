"""g2p_en 2.1.0: spelling to phonemes through a vector of fixed size."""

from __future__ import annotations

from torch import nn

from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_decoder_config import EncoderDecoderConfig
from regard.models.layers.cells import TorchCell
from regard.models.layers.encoder import Encoder
from regard.models.published.numbering import Numbering, Renumbered
from regard.models.published.speller import NEVER, Published, Weights, fill


class FixedVectorSpeller(Published, EncoderDecoder):
    """g2p_en 2.1.0: a GRU reads the letters, its last state is where a second GRU starts.

    The equations are those of `torch.nn.GRU` (`gru-torch`). Words: their `<pad>`, `<s>`, `</s>` are
    `<PAD>`, `<SOS>`, `<EOS>`; `<unk>` stays. Only `<SOS>` among the letters they do not have: it
    enters as zeros.
    """

    def __init__(self, weights: Weights, letters: Numbering, phonemes: Numbering):
        hidden, size = weights["enc_w_hh"].shape[1], weights["enc_emb"].shape[1]
        config = EncoderDecoderConfig(cell="gru-torch", hidden=hidden, embedding=size)
        EncoderDecoder.__init__(self, config, len(letters.vocabulary), len(phonemes.vocabulary))
        self.source_vocabulary, self.target_vocabulary = letters.vocabulary, phonemes.vocabulary
        self.source_embedding = Renumbered(weights["enc_emb"], letters)
        fill(self.target_embedding.weight, phonemes.ours(weights["dec_emb"], 0.0))
        assert isinstance(self.encoder, Encoder) and isinstance(self.decoder, nn.ModuleList)
        for side, cell in (("enc", self.encoder.ahead[0]), ("dec", self.decoder[0])):
            assert isinstance(cell, TorchCell)
            for parameter, part in zip(cell.weights, ("w_ih", "w_hh", "b_ih", "b_hh"), strict=True):
                fill(parameter, weights[f"{side}_{part}"])
        fill(self.readout.weight, phonemes.ours(weights["fc_w"], 0.0))
        fill(self.readout.bias, phonemes.ours(weights["fc_b"], NEVER))
