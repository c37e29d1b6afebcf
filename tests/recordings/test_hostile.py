"""Recordings that are damaged or made to mislead: one sentence, or the right numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import regard
from regard import load_recording
from regard.errors import RegardError
from regard.recordings import checks
from regard.recordings.header import AXES, read_header
from regard.recordings.storage import File
from torture.hostile import LIES, RAW, rewrite
from torture.made import HIDDEN, SOURCE, read_recording, small_arrays, small_recording
from torture.made import VOCABULARIES as WORDS


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "whole.safetensors"
    small_recording(path)
    return path


# Flipped bits.


def test_every_flip_is_noticed_or_harmless(saved: Path, tmp_path: Path) -> None:
    whole, path = saved.read_bytes(), tmp_path / "flipped.safetensors"
    right = read_recording(saved)
    rng = np.random.default_rng(3)
    begin = File(saved).begin
    places = [*rng.integers(begin, len(whole), 60), *rng.integers(0, begin, 120)]
    for place in map(int, places):
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(content))
        try:
            found = read_recording(path)
        except RegardError:
            continue
        assert place < begin, "a number changed and nobody said so"
        assert found == right


def test_a_chunk_is_checked_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "BLOCK", 10 * SOURCE * HIDDEN * 4)  # ten samples of the states
    path = tmp_path / "x.safetensors"
    regard.record(small_arrays(), out=path, **WORDS)
    file = File(path)
    content = bytearray(path.read_bytes())
    offset = file.begin + file.header["encoder.states"]["data_offsets"][0]
    content[offset + 25 * SOURCE * HIDDEN * 4] ^= 1  # sample 25
    path.write_bytes(bytes(content))
    recording = load_recording(path)
    recording.storage.read("encoder.states", 0, 20)
    recording.storage.read("encoder.states", 30, 40)
    with pytest.raises(RegardError, match=r"'encoder\.states', rows 20 to 29: the checksum"):
        list(recording.chunks(["encoder.states"], rows=7))


@pytest.mark.parametrize("pieces", [1, 3, 7, 13])
def test_checksums_do_not_depend_on_the_pieces(
    pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against zlib over the rows of each block, by hand."""
    from zlib import crc32

    monkeypatch.setattr(checks, "BLOCK", 100)
    kinds = {
        "a": (np.dtype(np.float32), (50, 3)),
        "b": (np.dtype(np.int64), (20,)),
        "c": (np.dtype(np.float64), ()),
        "d": (np.dtype(np.float32), (0, 4)),
    }
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=shape).astype(kind) for name, (kind, shape) in kinds.items()}
    sums = checks.Sums(kinds)
    for name, array in values.items():
        for start in range(0, max(1, len(np.atleast_1d(array))), pieces):
            part = array[start : start + pieces] if array.ndim else array
            if array.ndim or start == 0:
                sums.add(name, start, np.ascontiguousarray(part))
    assert sums.missing == []
    assert sums.found["a"] == [crc32(values["a"][s : s + 8].tobytes()) for s in range(0, 50, 8)]
    assert sums.found["b"] == [crc32(values["b"][s : s + 12].tobytes()) for s in range(0, 20, 12)]
    assert sums.found["c"] == [crc32(values["c"].tobytes())]
    assert sums.found["d"] == []


def test_without_checksums_a_recording_opens(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "plain.safetensors"
    save_file(load_file(saved), path, {"regard": File(saved).metadata["regard"]})
    assert read_recording(path) == read_recording(saved)


# Values that are no numbers.


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_numbers_are_refused_at_the_door(value: float) -> None:
    given = small_arrays()
    given["encoder.states"][17, 1, 3] = value
    given["encoder.mask"][17, 1] = True
    with pytest.raises(RegardError, match=r"'encoder\.states' holds -?(nan|inf) at \(17, 1, 3\)"):
        regard.record(given, **WORDS)


def test_what_lies_in_the_padding_does_not_matter() -> None:
    given = small_arrays()
    given["encoder.mask"][3] = [True, True, False, False, False]
    given["encoder.states"][3, 4] = np.nan
    assert regard.record(given, **WORDS)["encoder.states"][3, 4].tolist() == [0.0] * HIDDEN


def test_a_file_with_no_numbers_is_refused_when_it_is_read(saved: Path, tmp_path: Path) -> None:
    tensors = load_file(saved)
    tensors["decoder.states"][5, 2, 1] = np.nan
    path = tmp_path / "nan.safetensors"
    save_file(tensors, path, {"regard": File(saved).metadata["regard"]})
    with pytest.raises(RegardError, match=r"'decoder\.states', rows 0 to 39: there is nan at"):
        load_recording(path).inspect("sizes")


# Headers that lie.


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused(lie: str, saved: Path, tmp_path: Path) -> None:
    path = rewrite(saved, tmp_path / "hostile.safetensors", LIES[lie])
    with pytest.raises(RegardError, match=r"hostile\.safetensors") as caught:
        read_recording(path)
    assert len(caught.value.faults) == 1 and len(str(caught.value)) < 600


def test_as_many_axes_as_there_may_be(tmp_path: Path) -> None:
    whole = {"x": np.zeros((1,) * AXES, np.float32)}
    save_file(whole, tmp_path / "x.safetensors")
    assert list(read_header(tmp_path / "x.safetensors")[0]) == ["x"]
    save_file({"x": np.zeros((1,) * (AXES + 1), np.float32)}, tmp_path / "y.safetensors")
    with pytest.raises(RegardError, match="impossible shape"):
        read_header(tmp_path / "y.safetensors")


@pytest.mark.parametrize("name", RAW)
def test_a_header_that_is_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "raw.safetensors"
    text = RAW[name]
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(RegardError, match=r"raw\.safetensors"):
        read_recording(path)


@pytest.mark.parametrize("size", [0, 1, 2**31, 2**63 - 1, 2**64 - 1])
def test_an_impossible_size_of_the_header(size: int, saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "size.safetensors"
    path.write_bytes(size.to_bytes(8, "little") + saved.read_bytes()[8:])
    with pytest.raises(RegardError, match=r"impossible size|not a whole recording"):
        load_recording(path)


@pytest.mark.parametrize("number", [-1, 7, 10**6, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("name", ["encoder.words", "decoder.words"])
def test_numbers_without_a_word(name: str, number: int, saved: Path, tmp_path: Path) -> None:
    tensors = load_file(saved)
    tensors[name][3, 1] = number
    path = tmp_path / "words.safetensors"
    save_file(tensors, path, {"regard": File(saved).metadata["regard"]})
    with pytest.raises(RegardError, match=rf"{name}.* there is {number}, but it holds numbers"):
        load_recording(path).inspect("sizes")


def test_masks_are_true_or_false(saved: Path, tmp_path: Path) -> None:
    file, content = File(saved), bytearray(saved.read_bytes())
    content[file.begin + file.header["encoder.mask"]["data_offsets"][0]] = 7
    path = tmp_path / "mask.safetensors"
    path.write_bytes(bytes(content))
    rewrite(path, path, lambda header: None)
    with pytest.raises(RegardError, match=r"'encoder\.mask'.*neither true nor false"):
        read_recording(path)
