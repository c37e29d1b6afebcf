"""The recording itself: its arrays, its file, and what is said when something is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import regard
from regard import RegardError, load_recording, record
from regard.models import MODELS, Seq2Seq
from regard.recordings import Recording, writer
from regard.recordings import recording as recordings
from regard.recordings.storage import File
from regard.tasks import EOS, SOS, TASKS, Task


@pytest.fixture(scope="module")
def task() -> Task:
    kind = TASKS["reversal"]
    return kind(kind.Config())


def build(task: Task, kind: str = "encoder-decoder", **changes: Any) -> Seq2Seq:
    torch.manual_seed(1)
    config, model = MODELS[kind]
    words = len(task.source_vocabulary), len(task.target_vocabulary)
    return model(config(**{"hidden": 8, **changes}), *words)


@pytest.fixture(scope="module")
def attending(task: Task) -> Seq2Seq:
    return build(task, attention="dot", cell="gru")


@pytest.fixture(scope="module")
def saved(task: Task, attending: Seq2Seq, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "deep" / "aed.safetensors"
    record(attending, task=task, n=300, out=path, gates=True)
    return path


def test_the_file_equals_the_memory(task: Task, attending: Seq2Seq, saved: Path) -> None:
    file, memory = load_recording(saved), record(attending, task=task, n=300, gates=True)
    assert file.names() == memory.names() and file.metadata == memory.metadata
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
    for name in file.names():
        assert file[name].dtype == memory[name].dtype
        assert file.axes(name) == memory.axes(name)
        assert len(file.axes(name)) == file[name].ndim
        np.testing.assert_array_equal(file[name], memory[name])


def test_any_safetensors_library_reads_it(saved: Path) -> None:
    arrays, recording = load_file(saved), load_recording(saved)
    assert set(arrays) == set(recording.names())
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, recording[name])


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(rows=st.integers(1, 400))
def test_chunks_of_any_size_join_to_the_whole(saved: Path, rows: int) -> None:
    recording = load_recording(saved)
    pieces = list(recording.chunks(["encoder.states", "weights", "readout"], rows))
    assert set(pieces[0]) == {"encoder.states", "attention.weights"}  # a readout has no samples
    assert all(len(piece["encoder.states"]) == rows for piece in pieces[:-1])
    for name in pieces[0]:
        np.testing.assert_array_equal(np.concatenate([p[name] for p in pieces]), recording[name])


@settings(deadline=None, max_examples=15)
@given(start=st.integers(0, 310), length=st.integers(0, 310))
def test_rows_are_read_from_their_place(saved: Path, start: int, length: int) -> None:
    file = File(saved)
    whole = load_file(saved)["encoder.states"]
    np.testing.assert_array_equal(
        file.read("encoder.states", start, start + length), whole[start : start + length]
    )


def test_only_the_rows_asked_for_are_read(
    task: Task, attending: Seq2Seq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.recordings.checks.BLOCK", 4000)  # a few rows
    saved = tmp_path / "small-blocks.safetensors"
    record(attending, task=task, n=300, out=saved)
    read: list[int] = []
    plain = np.fromfile

    def counting(*args: Any, **options: Any) -> np.ndarray:
        array = plain(*args, **options)
        read.append(array.nbytes)
        return array

    monkeypatch.setattr(np, "fromfile", counting)
    recording = load_recording(saved)
    assert read == []
    chunk = next(recording.chunks(["encoder.states"], rows=7))
    # Whole blocks when they are first read, so that they can be checked; then the rows alone.
    assert chunk["encoder.states"].nbytes <= read[0] < 3 * chunk["encoder.states"].nbytes
    next(recording.chunks(["encoder.states"], rows=7))
    assert read[1:] == [chunk["encoder.states"].nbytes]


def test_a_chunk_has_a_sample(saved: Path) -> None:
    with pytest.raises(RegardError, match="rows=0"):
        list(load_recording(saved).chunks(rows=0))


def test_names_and_sites(saved: Path) -> None:
    recording = load_recording(saved)
    assert len(recording) == 300 and "300 samples" in repr(recording)
    assert recording.site() == "attention" and recording.site("attention") == "attention"
    assert recording["scores"].shape == recording.shape("attention.scores")
    np.testing.assert_allclose(
        recording["scores"], recording["queries"] @ recording["keys"].swapaxes(2, 3), atol=1e-5
    )
    assert recording.vocabulary("encoder").words == recording.words("encoder")
    with pytest.raises(RegardError, match=r"Did you mean 'encoder\.states'"):
        recording["encoder.state"]
    with pytest.raises(RegardError, match="no attention site 'atention'"):
        recording.site("atention")
    with pytest.raises(RegardError, match=r"no readout of the memory \(there is: state, context\)"):
        recording.readout("memory")


def test_without_attention_there_is_no_site(task: Task) -> None:
    recording = record(build(task), task=task, n=3)
    assert not recording.metadata.sites
    with pytest.raises(RegardError, match="no attention site"):
        recording.site()
    assert recording.readout("state").shape == (len(task.target_vocabulary), 8)


# Files that are something else.


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"There is no recording .*nothing\.safetensors"):
        load_recording(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_torn_file_is_named(saved: Path, tmp_path: Path, keep: int) -> None:
    torn = tmp_path / "torn.safetensors"
    torn.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(RegardError, match=r"torn\.safetensors is not a whole recording"):
        load_recording(torn)


@pytest.mark.parametrize("content", [b"\x02" + bytes(7) + b"[]", b"\x04" + bytes(7) + b"\xff{}}"])
def test_a_file_with_another_header_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(RegardError, match=r"other\.bin is not a whole recording"):
        load_recording(path)


def rewritten(saved: Path, path: Path, **changes: Any) -> Path:
    """The recording with other metadata, as any library may write it."""
    metadata = {**json.loads(File(saved).metadata["regard"]), **changes}
    save_file(load_file(saved), path, {"regard": json.dumps(metadata)})
    return path


def test_other_safetensors_and_versions_are_named(saved: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.safetensors"
    save_file({"w": np.zeros(3, dtype=np.float32)}, weights)
    with pytest.raises(RegardError, match=r"weights\.safetensors is a safetensors file, but not"):
        load_recording(weights)
    newer = rewritten(saved, tmp_path / "newer.safetensors", format=recordings.FORMAT + 1)
    with pytest.raises(RegardError, match=r"newer\.safetensors .*another version"):
        load_recording(newer)
    bare = rewritten(saved, tmp_path / "bare.safetensors")
    save_file({"w": np.zeros(3, dtype=np.float32)}, bare, File(bare).metadata)
    with pytest.raises(RegardError, match=r"bare\.safetensors .*'encoder\.words'"):
        load_recording(bare)
    same = load_recording(rewritten(saved, tmp_path / "same.safetensors"))
    assert same.metadata == load_recording(saved).metadata


# Making one.


def test_an_interrupted_recording_leaves_nothing(
    task: Task, attending: Seq2Seq, tmp_path: Path
) -> None:
    def stop(done: int, of: int) -> None:
        assert of == 600
        if done >= 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(attending, task=task, n=600, out=tmp_path / "x.safetensors", watch=stop)
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_keeps_what_was_there(
    task: Task, attending: Seq2Seq, tmp_path: Path
) -> None:
    path = tmp_path / "x.safetensors"
    record(attending, task=task, n=3, out=path)
    before = path.read_bytes()

    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(attending, task=task, n=4, out=path, watch=stop)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_too_large_for_memory(
    task: Task, attending: Seq2Seq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.recordings.writer.IN_MEMORY", 1000)
    with pytest.raises(RegardError, match=r"too much for memory.*out=FILE"):
        record(attending, task=task, n=10)
    assert len(record(attending, task=task, n=10, out=tmp_path / "x.safetensors")) == 10


@pytest.mark.parametrize("inputs", ["own", "teacher"])
def test_padding_holds_zeros(task: Task, attending: Seq2Seq, inputs: Any) -> None:
    recording = record(attending, task=task, n=300, gates=True, inputs=inputs)
    seen, there = recording["encoder.mask"], recording["decoder.mask"]
    assert not seen.all() and not there.all()
    masks = {"source": seen, "target": there}
    for name in recording.names():
        axes, values = recording.axes(name), recording[name]
        for place, axis in enumerate(axes):
            if axis in masks and axes[0] == "sample":
                outside = np.moveaxis(values, place, 1)[~masks[axis]]
                assert (outside == (-1 if name == "alignment" else 0)).all(), name
    rows = recording["weights"][:, 0].sum(axis=2)
    np.testing.assert_allclose(rows, there, atol=1e-5)


def test_what_the_decoder_was_fed(task: Task, attending: Seq2Seq) -> None:
    own = record(attending, task=task, n=20, inputs="own")
    teacher = record(attending, task=task, n=20, inputs="teacher")
    for recording, said in ((own, own["predictions"]), (teacher, teacher["targets"])):
        there = recording["decoder.mask"][:, 1:]
        assert (recording["decoder.words"][:, 0] == SOS).all()
        np.testing.assert_array_equal(recording["decoder.words"][:, 1:], said[:, :-1] * there)
    assert (own["decoder.words"] != teacher["decoder.words"]).any()
    assert own.metadata.origin["inputs"] == "own"
    np.testing.assert_array_equal(own["encoder.states"], teacher["encoder.states"])


class Counting:
    """How often each sample was drawn, and how many rows went through each way of a model."""

    def __init__(self, task: Task, model: Seq2Seq, monkeypatch: pytest.MonkeyPatch):
        self.drawn, self.rows = 0, {"encode": 0, "decode": 0, "step": 0}
        draw = task.fresh

        def fresh(size: int, *args: Any) -> Any:
            self.drawn += size
            return draw(size, *args)

        monkeypatch.setattr(task, "fresh", fresh)
        for way in self.rows:
            monkeypatch.setattr(model, way, self._counted(way, getattr(model, way)))

    def _counted(self, way: str, call: Any) -> Any:
        def counting(given: Any, *args: Any, **options: Any) -> Any:
            self.rows[way] += len(given if way == "encode" else given.states)
            return call(given, *args, **options)

        return counting


@pytest.mark.parametrize("also", [(), ("gates", "values"), ("lexical",)])
@pytest.mark.parametrize("inputs", ["own", "teacher"])
def test_every_sample_is_drawn_and_read_once(
    inputs: Any, also: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = TASKS["reversal"]
    task = kind(kind.Config())
    model = build(task, attention="dot", cell="gru")
    counted = Counting(task, model, monkeypatch)
    recording = record(
        model, task=task, n=300, inputs=inputs, also=also, out=tmp_path / "x.safetensors"
    )
    assert counted.drawn == 300 == len(recording)
    assert counted.rows["encode"] == counted.rows["decode"] == 300
    assert bool(counted.rows["step"]) == (inputs == "own")


def test_gates_on_request(task: Task) -> None:
    model = build(task, cell="lstm", bidirectional=True)
    assert not any(".gates." in name for name in record(model, task=task, n=3).names())
    recording = record(model, task=task, n=3, gates=True)
    gate = recording["encoder.gates.0.back.forget"]
    assert recording.axes("encoder.gates.0.back.forget") == ("sample", "source", "hidden")
    assert gate.shape == (*recording["encoder.states"].shape[:2], 8)
    # The last word is the first that the backward cell reads: the same <EOS> in every row.
    last = recording["encoder.mask"].sum(axis=1) - 1
    firsts = gate[np.arange(3), last]
    np.testing.assert_allclose(firsts, firsts[:1].repeat(3, axis=0), atol=1e-6)


def test_a_transformer_has_sites_on_both_sides(task: Task, tmp_path: Path) -> None:
    model = build(task, "transformer", heads=2, layers=1, feedforward=8)
    recording = record(model, task=task, n=5, out=tmp_path / "t.safetensors")
    sites = recording.metadata.sites
    assert set(sites) == {"encoder.0.self", "decoder.0.self", "decoder.0.cross"}
    assert recording.site() == "decoder.0.cross"
    assert recording.axes("encoder.0.self.scores") == ("sample", "head", "source", "source")
    assert recording.axes("decoder.0.self.keys") == ("sample", "head", "target", "features")
    assert recording.axes("decoder.0.cross.weights") == ("sample", "head", "target", "source")
    source, target = recording.shape("encoder.words")[1], recording.shape("decoder.words")[1]
    assert recording.shape("queries") == (5, 2, target, 4)
    assert recording.shape("weights") == (5, 2, target, source)
    future = np.triu(np.ones((target, target), dtype=bool), 1)
    assert (recording["decoder.0.self.weights"][:, :, future] == 0).all()


def test_additive_attention_keeps_its_vector(task: Task) -> None:
    recording = record(build(task, attention="additive"), task=task, n=4)
    assert recording.axes("vector") == ("head", "features")
    sums = recording["queries"][:, 0, :, None] + recording["keys"][:, 0, None]
    mask = recording["decoder.mask"][:, :, None] & recording["encoder.mask"][:, None]
    scores = np.tanh(sums) @ recording["vector"][0] * mask
    np.testing.assert_allclose(recording["scores"][:, 0], scores, atol=1e-5)


def test_pairs_of_words(task: Task, attending: Seq2Seq) -> None:
    vocabularies = task.source_vocabulary, task.target_vocabulary
    recording = record(attending, vocabularies=vocabularies, pairs=[("ab", "ba"), ("c", "c")])
    assert recording["targets"].tolist()[1] == [*vocabularies[1].encode("c"), EOS, 0]
    with pytest.raises(RegardError, match=r"\['9'\] are not in the vocabulary"):
        record(attending, vocabularies=vocabularies, pairs=[("a9", "a")])
    for nothing in ({"pairs": []}, {"batches": []}):
        with pytest.raises(RegardError, match="nothing to record"):
            record(attending, vocabularies=vocabularies, **nothing)


def test_a_run_is_recorded_as_the_model_it_holds(tmp_path: Path) -> None:
    run = regard.train("reversal", hidden=8, updates=2, out=tmp_path / "runs")
    recording = record(run, n=4)
    origin = recording.metadata.origin
    assert (origin["run"], origin["weights"]) == (run.folder.name, run.summary["weights"])
    assert record(run, n=4, checkpoint=0).metadata.origin["weights"] != origin["weights"]
    again = record(run.model(), task=run.task(), n=4)
    np.testing.assert_array_equal(recording["decoder.states"], again["decoder.states"])
    np.testing.assert_array_equal(record(str(run.folder), n=4)["targets"], recording["targets"])
    assert "of reversal" in repr(recording)
    for wrong in ({"n": 0}, {"split": "nowhere"}, {"ot": "x"}):
        with pytest.raises(RegardError, match=r"n=0|no split 'nowhere'|no option .*'out'"):
            record(run, **wrong)


def test_what_cannot_be_recorded(task: Task, attending: Seq2Seq) -> None:
    with pytest.raises(RegardError, match="A model alone"):
        record(attending)
    with pytest.raises(RegardError, match=r"An int cannot be recorded"):
        record(3)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="Did you mean 'inputs'"):
        record(attending, task=task, input="teacher")


def test_pieces_may_differ_in_width() -> None:
    def pieces() -> Iterator[dict[str, np.ndarray]]:
        for rows, width in ((2, 3), (1, 5)):
            words = np.ones((rows, width), dtype=np.uint8)
            yield {"encoder.words": words, "encoder.mask": words > 0}

    sizes = writer.Sizes(3, 5, 0)
    metadata = recordings.Metadata(("a", "b"), ())
    recording: Recording = writer.write_recording(pieces(), {}, sizes, metadata)
    assert recording["encoder.words"].dtype == np.int32
    assert recording["encoder.words"].sum(axis=1).tolist() == [3, 3, 5]


def test_an_alignment_is_padded_with_none(tmp_path: Path) -> None:
    """Pieces of different widths: what is not there is attended to nowhere, not at the first."""
    kind = TASKS["one-to-one"]
    task = kind(kind.Config.model_validate({"shortest": 2, "longest": 7}))
    model = build(task, attention="dot", cell="gru")
    whole = task.fresh(300, 0)
    whole = whole[torch.argsort(whole.target_lengths)]
    batches = list(whole.pieces(250))
    assert batches[0].target.shape[1] < batches[1].target.shape[1]
    vocabularies = task.source_vocabulary, task.target_vocabulary
    given: dict[str, Any] = {"vocabularies": vocabularies, "inputs": "teacher"}
    file = tmp_path / "x.safetensors"
    recording = record(model, batches=batches, out=file, **given)
    mask = recording["decoder.mask"]
    assert (recording["alignment"][~mask] == -1).all() and (recording["alignment"][mask] >= 0).all()
    at_once = record(model, batches=[whole], **given)
    np.testing.assert_array_equal(recording["alignment"], at_once["alignment"])
    found = [regard.aer(r).first.match for r in (recording, at_once)]
    assert found[0] == found[1] and found[0].sure == mask.sum()


@pytest.mark.parametrize("name", ["copying", "keyword"])
def test_a_recording_knows_that_no_word_ends(name: str, tmp_path: Path) -> None:
    kind = TASKS[name]
    task = kind(kind.Config.model_validate({"vocabulary": 6, "length": 5}))
    config, made = MODELS["encoder-decoder"]
    model = made(config(hidden=8), len(task.source_vocabulary), len(task.target_vocabulary))
    record(model, n=4, task=task, out=tmp_path / "r.safetensors")
    read = recordings.load_recording(tmp_path / "r.safetensors")
    for side, vocabulary in (
        ("encoder", task.source_vocabulary), ("decoder", task.target_vocabulary)
    ):  # fmt: skip
        assert read.vocabulary(side) == vocabulary
        assert not read.vocabulary(side).ends
        assert vocabulary.words[2] not in read.vocabulary(side).special
    words = (["1", "2"], [task.target_vocabulary.words[2]])
    given = record(model, task=task, pairs=[words])
    assert given["encoder.words"].tolist() == [[2, 3]], "nothing is put behind the words"
    assert given["targets"].tolist() == [[2]]


def test_recordings_without_a_word_about_ends_have_them() -> None:
    text = recordings.Metadata(("a", "b", "."), ()).to_json().replace(', "ends": [true, true]', "")
    assert "ends" not in text
    assert recordings.Metadata.from_json(text).ends == (True, True)


def test_names_come_one_by_one_and_numbers_are_none(attending: Seq2Seq, task: Task) -> None:
    recording = record(attending, task=task, n=3)
    assert list(recording) == recording.names()
    assert all(name in recording for name in recording)
    with pytest.raises(RegardError, match="There is no array '5'"):
        recording[5]  # type: ignore[index]
