"""Checkpoints of other programs: what doors make of them, against references in plain torch."""

from __future__ import annotations

import os
import pickle
from argparse import Namespace
from pathlib import Path

import pytest
import torch
from programs import SOURCE, TARGET, Fairseq, JoeyNMT, OpenNMT
from written import CASES, WORDS, write_eole, write_fairseq, write_joeynmt, write_opennmt, yaml

import regard
from regard import RegardError
from regard.subjects.formats._yaml import read_yaml
from regard.subjects.formats.torch_files import read_checkpoint
from regard.tasks import Batch


@pytest.mark.parametrize("case", CASES)
def test_a_door_gives_the_programs_numbers(case: str, tmp_path: Path) -> None:
    """Logits and weights, at several lengths, in a padded batch; and the words chosen greedily."""
    subject, program = CASES[case](tmp_path)
    generator = torch.Generator().manual_seed(1)
    lengths = torch.tensor([33, 9, 1, 129])
    source = torch.randint(4, SOURCE, (4, 129), generator=generator)
    fed = torch.randint(4, TARGET, (4, 33), generator=generator)
    with torch.no_grad():
        output = subject.decode(subject.encode(source, lengths), fed)
        for row, length in enumerate(lengths.tolist()):
            logits, weights = program.say(source[row, :length], fed[row])
            torch.testing.assert_close(output.logits[row], logits, atol=2e-5, rtol=1e-4)
            if weights is None:
                assert not output.sites
                continue
            site = output.sites[subject.choose_sites("cross")[-1]]
            ours = site.weights[row]
            wanted = weights if weights.ndim == 3 else weights[None]
            torch.testing.assert_close(ours[..., :length], wanted, atol=1e-5, rtol=1e-4)
            assert (ours[..., length:] == 0).all()
        # What it says itself is what the program says, word by word.
        nothing = source[1:2, :0]
        asked = Batch(source[1:2, :9], lengths[1:2], nothing, nothing.sum(1))
        batch = subject.generate(asked, 12)
        said = [subject.lexicons["decoder"].start]
        for _ in range(batch.target.shape[1]):
            logits, _ = program.say(source[1, :9], torch.tensor(said))
            said.append(int(logits[-1].argmax()))
        assert said[1:] == batch.target[0].tolist()
    assert subject.parity["a sentence alone and padded"] < 1e-5
    assert subject.parity["steps and a whole pass"] < 1e-5
    assert subject.parity["arrays used"] > 10


def test_instruments_on_a_recurrent_model(tmp_path: Path) -> None:
    subject, _ = CASES["opennmt-lstm-general"](tmp_path)
    pairs = [(["w1", "w2", "w5"], ["v3", "v4"]), ("w9", "v1 v2 v3")]
    with pytest.raises(RegardError, match="There is no word 'q'"):
        regard.record(subject, pairs=[(["q"], ["v1"])])
    recording = regard.record(subject, pairs=pairs, sites="cross", gates=True)
    assert recording.words("encoder")[4:] == tuple(WORDS[0])
    assert recording["decoder.words"][1, :3].tolist() == [2, 5, 6]
    assert {f"decoder.gates.1.{g}" for g in ("input", "forget", "output")} <= {*recording.names()}
    assert max(recording.check().values()) < 1e-5
    assert recording.inspect("breakdown").estimates()
    assert regard.inspect(subject, "saliency", pairs=pairs).estimates()
    with pytest.raises(RegardError, match="is fed what it attended to"):
        regard.ablate(subject, pairs=pairs)
    plain, _ = CASES["opennmt-lstm-dot-bridge"](tmp_path)
    assert 0 <= regard.ablate(plain, pairs=pairs).estimates()["baseline"].mean <= 1
    assert subject.model.has_lexical_probe


class Harmful:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch harmed",)


@pytest.mark.parametrize("harm", [Harmful(), Namespace(a=Harmful())])
def test_code_in_a_file_is_never_run(
    harm: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.pt"
    torch.save({"model": {}, "opt": harm}, path)
    with pytest.raises(RegardError, match="cannot be read safely"):
        regard.opennmt(path)
    with pytest.raises(RegardError, match="cannot be read safely"):
        regard.fairseq(path)
    path.write_bytes(pickle.dumps({"opt": harm}))
    with pytest.raises(RegardError, match="cannot be read safely"):
        regard.opennmt(path)
    assert not (tmp_path / "harmed").exists()


def test_settings_of_a_checkpoint_are_plain_values(tmp_path: Path) -> None:
    """A namespace is filled, never called: not even a class in it changes what it is."""
    said = Namespace(heads=3)
    said.__dict__["__class__"] = "os.system"
    torch.save({"opt": said}, tmp_path / "a.pt")
    found = read_checkpoint(tmp_path / "a.pt")["opt"]
    assert type(found) is Namespace and vars(found) == {"heads": 3, "__class__": "os.system"}


def test_what_is_strange_missing_or_does_not_fit_is_told(tmp_path: Path) -> None:
    program = OpenNMT().draw()
    program.decoder.copy_attn = torch.nn.Linear(2, 2)
    with pytest.raises(RegardError, match=r"holds 'decoder\.copy_attn\.bias', .*does not know"):
        regard.opennmt(write_opennmt(tmp_path, program))
    program = OpenNMT().draw()
    del program.encoder.rnn.weight_hh_l0
    with pytest.raises(RegardError, match=r"lacks 'encoder\.rnn\.weight_hh_l0'"):
        regard.opennmt(write_opennmt(tmp_path, program))
    program = OpenNMT().draw()
    program.decoder.attn.linear_in = torch.nn.Linear(5, 5, bias=False)
    with pytest.raises(RegardError, match=r"'decoder\.attn\.linear_in\.weight' has the shape"):
        regard.opennmt(write_opennmt(tmp_path, program))
    program = OpenNMT().draw()
    program.decoder.attn.linear_out = torch.nn.Linear(5, 5, bias=False)
    with pytest.raises(RegardError, match=r"'decoder\.attn\.linear_out' has the shape"):
        regard.opennmt(write_opennmt(tmp_path, program))
    program.generator = torch.nn.Linear(12, TARGET + 1)
    with pytest.raises(RegardError, match="shape"):
        regard.opennmt(write_opennmt(tmp_path, program))


@pytest.mark.parametrize("said", [{"encoder_type": "cnn"}, {"copy_attn": True},
                                  {"global_attention_function": "sparsemax"},
                                  {"context_gate": "both"},
                                  {"max_relative_positions": 20}])  # fmt: skip
def test_settings_that_are_not_known_are_refused(said: dict[str, object], tmp_path: Path) -> None:
    (name, value), *_ = said.items()
    with pytest.raises(RegardError, match=f"has {name}={value!r}, which is not known"):
        regard.opennmt(write_opennmt(tmp_path, OpenNMT().draw(), **said))


def test_files_that_are_not_there_or_not_whole(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="cannot be read safely"):
        regard.opennmt(tmp_path / "none.pt")
    with pytest.raises(RegardError, match=r"no best\.ckpt"):
        regard.joeynmt(tmp_path)
    with pytest.raises(RegardError, match=r"none of checkpoint_best\.pt"):
        regard.fairseq(tmp_path)
    with pytest.raises(RegardError, match=r"config\.json cannot be read"):
        regard.eole(tmp_path)
    torch.save({"model": {}}, tmp_path / "m.pt")
    with pytest.raises(RegardError, match="lacks model, generator, vocab, opt"):
        regard.opennmt(tmp_path / "m.pt")
    with pytest.raises(RegardError, match="fairseq did not write it whole"):
        regard.fairseq(tmp_path / "m.pt")
    folder = write_joeynmt(tmp_path, JoeyNMT().draw(), yaml())
    with pytest.raises(RegardError, match="no 'model_state'"):
        regard.joeynmt(folder, "30.ckpt")
    (folder / "src_vocab.txt").write_text("one\n")
    with pytest.raises(RegardError, match="has 5 words, but the model has 30"):
        regard.joeynmt(folder)
    folder = write_fairseq(tmp_path, Fairseq().draw(), False)
    (folder / "dict.en.txt").unlink()
    with pytest.raises(RegardError, match=r"There is no .*dict\.en\.txt\. Give dictionaries"):
        regard.fairseq(folder)
    given = [folder / "dict.de.txt"] * 2
    with pytest.raises(RegardError, match="has 30 words, but the model has 32"):
        regard.fairseq(folder, given)
    folder = write_eole(tmp_path, OpenNMT().draw(), encoder={"encoder_type": "cnn"})
    with pytest.raises(RegardError, match="encoder_type='cnn'"):
        regard.eole(folder)


def test_too_long_a_sentence_is_refused(tmp_path: Path) -> None:
    subject, _ = CASES["opennmt-transformer"](tmp_path)
    with pytest.raises(RegardError, match=r"201 words.* for 200"):
        subject.encode(torch.zeros(1, 201, dtype=torch.long), torch.tensor([201]))


def test_yaml_of_settings(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1 # one\nb:\n  c: 'x # y'\n  d: [1, two, 3.5]\n  e:\n  - f\n  - 2\nz: ~\n")
    assert read_yaml(path) == {"a": 1, "b": {"c": "x # y", "d": [1, "two", 3.5], "e": ["f", 2]},
                               "z": None}  # fmt: skip
    path.write_text("a: 1\n????\n")
    with pytest.raises(RegardError, match="line 2 is not `key: value`"):
        read_yaml(path)
