"""Recordings that are damaged or made to mislead: one sentence, or the right numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import regard
from regard import load_recording
from regard.errors import RegardError
from regard.recordings import Recording, checks
from regard.recordings.storage import File

ROWS, SOURCE, TARGET, HIDDEN = 40, 5, 4, 6


def arrays(rows: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    mask = np.arange(SOURCE)[None] < rng.integers(2, SOURCE + 1, rows)[:, None]
    return {
        "encoder.states": rng.normal(size=(rows, SOURCE, HIDDEN)),
        "encoder.words": rng.integers(0, 7, (rows, SOURCE)),
        "encoder.mask": mask,
        "decoder.states": rng.normal(size=(rows, TARGET, HIDDEN)),
        "decoder.words": rng.integers(0, 7, (rows, TARGET)),
        "readout": rng.normal(size=(7, HIDDEN)),
    }


WORDS = {side: [f"{side}{n}" for n in range(7)] for side in ("source_words", "target_words")}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "whole.safetensors"
    regard.record(arrays(), out=path, **WORDS)
    return path


def digest(recording: Recording) -> dict[str, Any]:
    """All that an instrument could read."""
    found = {name: recording[name].tobytes() for name in recording.names()}
    return {**found, "metadata": recording.metadata}


# Flipped bits.


def test_every_flip_is_noticed_or_harmless(saved: Path, tmp_path: Path) -> None:
    whole, path = saved.read_bytes(), tmp_path / "flipped.safetensors"
    right = digest(load_recording(saved))
    rng = np.random.default_rng(3)
    begin = File(saved).begin
    places = [*rng.integers(begin, len(whole), 60), *rng.integers(0, begin, 120)]
    for place in map(int, places):
        content = bytearray(whole)
        content[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(content))
        try:
            found = digest(load_recording(path))
        except RegardError:
            continue
        assert place < begin, "a number changed and nobody said so"
        assert found == right


def test_a_chunk_is_checked_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "BLOCK", 10 * SOURCE * HIDDEN * 4)  # ten samples of the states
    path = tmp_path / "x.safetensors"
    regard.record(arrays(), out=path, **WORDS)
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
    assert digest(load_recording(path)) == digest(load_recording(saved))


# Values that are no numbers.


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_no_numbers_are_refused_at_the_door(value: float) -> None:
    given = arrays()
    given["encoder.states"][17, 1, 3] = value
    given["encoder.mask"][17, 1] = True
    with pytest.raises(RegardError, match=r"'encoder\.states' holds -?(nan|inf) at \(17, 1, 3\)"):
        regard.record(given, **WORDS)


def test_what_lies_in_the_padding_does_not_matter() -> None:
    given = arrays()
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


# Headers that lie. Each is a change of the header's JSON, with the rest of the file as it is.


def entry(name: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda header: header[name].update(changes)


def offsets(name: str, by: int, end: int | None = None) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        first, last = header[name]["data_offsets"]
        header[name]["data_offsets"] = [first + by, last + (by if end is None else end)]

    return change


def describe(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        data = json.loads(header["__metadata__"]["regard"])
        header["__metadata__"]["regard"] = json.dumps({**data, **changes})

    return change


def site(**changes: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        data = json.loads(header["__metadata__"]["regard"])
        data["sites"]["attention"].update(changes)
        header["__metadata__"]["regard"] = json.dumps(data)

    return change


def swap(a: str, b: str) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        header[a], header[b] = header[b], header[a]

    return change


S = "encoder.states"
LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "shifted": offsets(S, 4),
    "shifted back": offsets(S, -4),
    "negative": offsets("encoder.words", -(10**6)),
    "longer": offsets(S, 0, 4),
    "shorter": offsets(S, 0, -4),
    "backwards": entry(S, data_offsets=[100, 0]),
    "beyond": offsets(S, 10**15),
    "one offset": entry(S, data_offsets=[0]),
    "offsets of text": entry(S, data_offsets=["0", "4"]),
    "offsets of truth": entry(S, data_offsets=[False, True]),
    "no offsets": lambda header: header[S].pop("data_offsets"),
    "no shape": lambda header: header[S].pop("shape"),
    "no kind": lambda header: header[S].pop("dtype"),
    "huge shape": entry(S, shape=[2**40, 2**40, 2**40]),
    "shape over 64 bits": entry(S, shape=[2**70, 1, 1]),
    "negative shape": entry(S, shape=[-ROWS, -SOURCE, HIDDEN]),
    "shape of text": entry(S, shape=["40", 5, 6]),
    "shape of fractions": entry(S, shape=[40.0, 5, 6]),
    "turned shape": entry(S, shape=[HIDDEN, SOURCE, ROWS]),
    "flat": entry(S, shape=[ROWS * SOURCE * HIDDEN]),
    "many axes": entry(S, shape=[*([1] * 40), ROWS, SOURCE, HIDDEN]),
    "no rows": entry(S, shape=[0, 5, 6]),
    "other kind": entry(S, dtype="I32"),
    "unknown kind": entry(S, dtype="F8"),
    "kind is no text": entry(S, dtype=["F32"]),
    "words are numbers": entry("encoder.words", dtype="F32"),
    "entry is a list": lambda header: header.update({S: [1, 2]}),
    "entry is nothing": lambda header: header.update({S: None}),
    "two arrays in one place": lambda header: header.update({"targets": header["decoder.words"]}),
    "states are swapped": swap(S, "decoder.states"),
    "strange array": lambda header: header.update({"strange": header.pop(S)}),
    "metadata is a list": lambda header: header.update({"__metadata__": []}),
    "metadata are numbers": lambda header: header.update({"__metadata__": {"regard": 3}}),
    "no metadata": lambda header: header.pop("__metadata__"),
    "description is a list": lambda header: header["__metadata__"].update({"regard": "[]"}),
    "description is a number": lambda header: header["__metadata__"].update({"regard": "3"}),
    "deep description": lambda header: header["__metadata__"].update({"regard": "[" * 10**5}),
    "other format": describe(format=99),
    "format is true": describe(format=True),
    "format is a list": describe(format=[2]),
    "words are text": describe(source_words="abcdefg"),
    "words are numbers, too": describe(source_words=[1, 2, 3, 4, 5, 6, 7]),
    "no words": describe(source_words=None),
    "few words": describe(source_words=["a"]),
    "few target words": describe(target_words=["a", "b"]),
    "sites are a list": describe(sites=[1]),
    "a site is a list": describe(sites={"attention": [1]}),
    "a site of strange keys": describe(sites={"attention": {"colour": 3}}),
    "no sites": describe(sites={}),
    "origin is text": describe(origin="me"),
    "gates are lists": describe(gates={"encoder.gates.x": [1]}),
    "also is a list": describe(also=[1]),
    "readout is a list": describe(readout=[1]),
    "readout has one end": describe(readout={"state": [3]}),
    "readout is too long": describe(readout={"state": [0, 10**9]}),
    "readout is backwards": describe(readout={"state": [5, 2]}),
    "readout is negative": describe(readout={"state": [-3, 2]}),
    "readout of fractions": describe(readout={"state": [0.5, 2.5]}),
    "one end": describe(ends=[True]),
    "ends of text": describe(ends=["yes", "no"]),
    "heads": site(heads=10**9),
    "few heads more": site(heads=3),
    "no heads": site(heads=0),
    "negative heads": site(heads=-1),
    "heads of text": site(heads="1"),
    "heads of truth": site(heads=True),
    "a head and a half": site(heads=1.5),
    "a side": site(query_side="nowhere"),
    "sides are swapped": site(query_side="encoder", key_side="decoder"),
    "a side is a list": site(key_side=["encoder"]),
    "a lag": site(lag=10**9),
    "a negative lag": site(lag=-1),
    "a layer": site(layer=-5),
    "a layer of text": site(layer="x"),
    "a score": site(score=5),
    "plain": site(plain="yes"),
    "projected": site(projected=[1]),
}  # fmt: skip


def rewrite(saved: Path, path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The file with another header, and no checksums that would give it away."""
    content = saved.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    del header["__metadata__"]["checks"]
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[begin:])
    return path


def read_all(path: Path) -> None:
    recording = load_recording(path)
    for name in recording.names():
        _ = recording[name]


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_lies_is_refused(lie: str, saved: Path, tmp_path: Path) -> None:
    path = rewrite(saved, tmp_path / "hostile.safetensors", LIES[lie])
    with pytest.raises(RegardError, match=r"hostile\.safetensors") as caught:
        read_all(path)
    assert len(caught.value.faults) == 1 and len(str(caught.value)) < 600


RAW = {
    "a deep header": b"[" * 10**5,
    "a header of text": b'"abc"',
    "a header of numbers": b"12",
    "twice the same name": b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":1}',
    "half a header": b'{"a": {"dtype"',
    "bytes": b"\xff\xfe{}",
    "a number without end": b'{"a":' + b"9" * 10**5 + b"}",
    "not a number": b'{"a":NaN}',
}


@pytest.mark.parametrize("name", RAW)
def test_a_header_that_is_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "raw.safetensors"
    text = RAW[name]
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(RegardError, match=r"raw\.safetensors"):
        read_all(path)


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
        read_all(path)
