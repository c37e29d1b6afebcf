"""Marian's recurrent models: what the door makes of a file, against plain numpy (`nematus`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from nematus import CASES, HIDDEN, NEMATUS, WORDS, Marian

import regard
from regard import RegardError
from regard.tasks import Batch

PAIRS = [(["w1", "w2", "w5"], ["v3", "v4"]), ("w9", "v1 v2 v3"), ("w3 w3 w8 w7", "v7 v2")]


@pytest.mark.parametrize("case", CASES)
def test_the_door_gives_the_numbers_of_the_equations(case: str, tmp_path: Path) -> None:
    """Logits and weights at several lengths in a padded batch, and the words chosen greedily."""
    program = Marian(**CASES[case])
    subject = regard.marian(program.write(tmp_path))
    drawn = torch.Generator().manual_seed(1)
    lengths = torch.tensor([33, 9, 1, 60])
    source = torch.randint(WORDS[0], (4, 60), generator=drawn)
    fed = torch.randint(WORDS[1], (4, 21), generator=drawn)
    with torch.no_grad():
        output = subject.decode(subject.encode(source, lengths), fed)
        for row, length in enumerate(lengths.tolist()):
            logits, weights = program.say(source[row, :length].tolist(), fed[row].tolist())
            np.testing.assert_allclose(output.logits[row], logits, atol=5e-5, rtol=1e-4)
            ours = output.sites["attention"].weights[row, 0]
            np.testing.assert_allclose(ours[:, :length], weights, atol=1e-5, rtol=1e-4)
            assert (ours[:, length:] == 0).all()
        nothing = source[1:2, :0]
        asked = Batch(source[1:2, :9], lengths[1:2], nothing, nothing.sum(1))
        batch = subject.generate(asked, 12)
        said = [0]
        for _ in range(batch.target.shape[1]):
            said.append(int(program.say(source[1, :9].tolist(), said)[0][-1].argmax()))
        assert said[1:] == batch.target[0].tolist()
    assert subject.parity["a sentence alone and padded"] < 1e-5
    assert subject.parity["steps and a whole pass"] < 1e-5
    unread = {"decoder_c_tt"}
    assert subject.parity["arrays used"] == len(set(program.arrays) - unread)


def test_gates_are_those_of_every_cell(tmp_path: Path) -> None:
    """With the first cell's update gate held open, its state is what it was before."""
    program = Marian(**CASES["s2s-deep"])
    program.arrays["decoder_cell1_b"][0, HIDDEN:] = 60  # z keeps
    program.arrays["decoder_cell3_b"][0, HIDDEN:] = -60
    subject = regard.marian(program.write(tmp_path))
    recording = regard.record(subject, pairs=PAIRS, gates=True)
    names = {n for n in recording.names() if ".gates." in n}
    both = {f"{place}.{gate}" for gate in ("reset", "update") for place in (
        "encoder.gates.0.ahead", "encoder.gates.0.ahead.cell2", "encoder.gates.0.back",
        "encoder.gates.0.back.cell2", "decoder.gates.0", "decoder.gates.0.cell2",
        "decoder.gates.0.cell3", "decoder.gates.0.cell4", "decoder.gates.1",
        "decoder.gates.1.cell2")}  # fmt: skip
    assert names == both
    mask = recording["decoder.mask"]
    np.testing.assert_allclose(recording["decoder.gates.0.update"][mask], 1, atol=1e-5)
    np.testing.assert_allclose(recording["decoder.gates.0.cell3.update"][mask], 0, atol=1e-5)
    assert 0.01 < recording["decoder.gates.0.cell2.update"][mask].mean() < 0.99
    assert set(subject.model.cells()) >= {"decoder.0", "decoder.0.cell4", "encoder.0.back.cell2"}
    found = regard.inspect(subject, "gates", pairs=PAIRS).first
    assert found.gates["decoder.0.update"].right.min() == 1  # open at every word
    assert found.gates["decoder.0.cell3.update"].left.min() == 1


def test_matrices_go_by_their_names(tmp_path: Path) -> None:
    program = Marian(**CASES["nematus-normed"])
    blocks = regard.marian(program.write(tmp_path)).blocks()
    arrays = program.arrays
    for name, array in (
        ("encoder.0.W_ih.reset", arrays["encoder_bi_W"][:, :HIDDEN]),
        ("encoder.0.back.W_hh.update", arrays["encoder_bi_r_U"][:, HIDDEN:]),
        ("encoder.0.cell3.W_hh.candidate", arrays["encoder_bi_cell3_Ux"]),
        ("decoder.0.W_ih.candidate", arrays["decoder_cell1_Wx"]),
        ("decoder.0.cell2.W_ih.update", arrays["decoder_cell2_W"][:, HIDDEN:]),
        ("decoder.0.cell4.W_hh.reset", arrays["decoder_cell4_U"][:, :HIDDEN]),
        ("attention.query", arrays["decoder_W_comb_att"]),
        ("readout.context", arrays["decoder_ff_logit_l1_W2"]),
    ):
        np.testing.assert_array_equal(blocks[name].detach(), array.T)
    assert all(block.numel() for block in blocks.values())


def test_instruments(tmp_path: Path) -> None:
    subject = regard.marian(Marian(**CASES["s2s-normed"]).write(tmp_path))
    recording = regard.record(subject, pairs=PAIRS, sites="cross")
    assert recording.metadata.sites["attention"].score == "additive"
    assert max(recording.check().values()) < 1e-5
    assert recording.inspect("breakdown").estimates()
    assert regard.inspect(subject, "saliency", pairs=PAIRS).estimates()
    with pytest.raises(RegardError, match="is fed what it attended to"):
        regard.ablate(subject, pairs=PAIRS)
    assert regard.lexical_probe(subject, pairs=PAIRS).estimates()


def test_attention_can_be_forced(tmp_path: Path) -> None:
    subject = regard.marian(Marian().write(tmp_path))
    (batch,) = subject.read(PAIRS)
    with torch.no_grad():
        memory = subject.encode(batch.source, batch.source_lengths)
        wanted = torch.tensor([0, 1, 0, -1]).expand(3, 4)
        output = subject.decode(subject.model.force_alignment(memory, wanted), batch.inputs)
        free = subject.decode(memory, batch.inputs)
    weights = output.sites["attention"].weights[:, 0]
    assert (weights[0, :2].argmax(1) == wanted[0, :2]).all()
    assert not torch.equal(output.logits, free.logits)


@pytest.mark.parametrize(
    ("said", "message"),
    [({"type": "char-s2s"}, "of the type 'char-s2s', which is not known here"),
     ({"type": "multi-s2s"}, "of the type 'multi-s2s'"),
     ({"enc-cell": "lstm"}, "has enc-cell='lstm', which is not known here"),
     ({"dec-cell": "mlstm"}, "has dec-cell='mlstm'"),
     ({"right-left": True}, "has right-left='true'"),
     ({"enc-type": "unidirectional"}, "has enc-type='unidirectional'"),
     ({"dec-attention-heads": 4}, "has dec-attention-heads='4'"),
     ({"dec-cell-base-depth": 1}, "a decoder that does not attend"),
     ({"enc-depth": 2}, "lacks 'encoder_bi_l2_cell1_U'"),
     ({**NEMATUS, "dec-cell-high-depth": 2, "dec-depth": 2}, "Marian itself does not run")],
)  # fmt: skip
def test_what_is_not_read_is_refused_by_name(
    said: dict[str, Any], message: str, tmp_path: Path
) -> None:
    program = Marian()
    program.said |= said
    with pytest.raises(RegardError, match=message):
        regard.marian(program.write(tmp_path))


def test_what_is_left_over_or_does_not_fit_is_told(tmp_path: Path) -> None:
    program = Marian()
    program.add("decoder_U_att_1", 9, 1)
    with pytest.raises(RegardError, match="'decoder_U_att_1', which this reader does not know"):
        regard.marian(program.write(tmp_path))
    program = Marian()
    program.add("decoder_cell2_W", 3, 2 * HIDDEN)
    with pytest.raises(RegardError, match="does not fit together"):
        regard.marian(program.write(tmp_path))
    program = Marian()
    program.add("decoder_Wemb", 5, 10)
    program.arrays.pop("decoder_ff_logit_l2_W")
    with pytest.raises(RegardError, match=r"'decoder_ff_logit_l2_b' has the shape \(32,\)"):
        regard.marian(program.write(tmp_path))
