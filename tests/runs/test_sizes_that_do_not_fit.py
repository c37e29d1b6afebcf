"""Absurd sizes are refused with the size they need, before anything is allocated."""

from __future__ import annotations

import gzip
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard import memory
from regard.errors import RegardError, out_of_memory
from regard.models.layers.word_vectors import read_vectors
from regard.runs import assemble, reckoning
from regard.tasks import text_files

ABSURD = [
    ("reversal", "chapter36", {"hidden": 10**9}),
    ("reversal", "chapter36", {"layers": 10**9}),
    ("reversal", "chapter36", {"embedding": 10**12}),
    ("reversal", "chapter36", {"batch": 10**12}),
    ("reversal", "chapter36", {"longest": 10**12}),
    ("reversal", "chapter36", {"held_out": 10**12}),
    ("reversal", "chapter36", {"attention": "additive", "heads": 10**12}),
    ("reversal", "transformer", {"feedforward": 10**12}),
    ("reversal", "transformer", {"layers": 10**9}),
    ("copying", "chapter36", {"vocabulary": 10**12}),
    ("keyword", "chapter36", {"length": 10**12}),
    ("lookup", "baan", {"tables": 10**12}),
]


@pytest.mark.parametrize(("task", "model", "settings"), ABSURD)
def test_absurd_settings(task: str, model: str, settings: dict[str, Any], tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(RegardError, match=r"takes at least .* GiB, and there are .* of memory"):
        regard.train(task, model, out=tmp_path, **settings)
    assert time.monotonic() - began < 30


def test_neither_task_nor_model_is_made_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = assemble("reversal", "chapter36", 0, {})
    task = config.make_task()
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(RegardError, match="of memory"):
        config.make_task()
    with pytest.raises(RegardError, match="of memory"):
        config.make_model(task)


def test_what_is_reckoned_is_a_lower_bound() -> None:
    """Against the weights of a model that is made: all that Adam needs for them."""
    for settings in (
        {"hidden": 64},
        {"hidden": 64, "layers": 3},
        {"attention": "dot", "hidden": 96},
    ):
        config = assemble("reversal", "chapter36", 0, settings)
        model = config.make_model(config.make_task())
        weights = sum(p.numel() for p in model.parameters())
        bound = reckoning.reckon(config.task, config.model, config.training.batch)
        rows = 8 * 500 * 10 + 4 * 64 * 10 * config.model.hidden  # type: ignore[attr-defined]
        assert bound - rows <= 16 * weights


def test_memory_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2**28 < memory.available_memory() < 2**50
    monkeypatch.setattr(memory, "available_memory", lambda: 3 * 2**30)
    memory.require_memory(3 * 2**30, "x", "y")
    with pytest.raises(RegardError, match=r"x takes at least 4\.0 GiB, and there are 3\.0 GiB.* y"):
        memory.require_memory(4 * 2**30, "x", "y")


def test_a_gzip_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MOST_BYTES", 2**20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a" * 2**24))
    with pytest.raises(RegardError, match="when it is unpacked, which is the limit"):
        text_files.read_lines(path, text_files.Faults(), named_by="x")
    path.write_bytes(gzip.compress(b"a\n" * 2**19))
    assert len(text_files.read_lines(path, text_files.Faults(), named_by="x")) == 2**19
    (tmp_path / "plain").write_bytes(b"a\n" * 2**20)
    lines = text_files.stream_lines(tmp_path / "plain", text_files.Faults())
    assert sum(1 for _ in lines) == 2**20, "a plain file may have any size"


def test_vectors_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vectors.gz"
    path.write_bytes(gzip.compress(b"word " + b"1 " * 2**20))
    with pytest.raises(RegardError, match="has a line of more than"):
        list(read_vectors(path))
    packed = tmp_path / "vectors.npz"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("vectors.npy", b"\0" * 2**22)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**20)
    with pytest.raises(RegardError, match=r"unpacks to takes at least"):
        list(read_vectors(packed))


def test_vectors_of_text(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", words=np.array(["a"]), vectors=np.array([["x", "y"]]))
    with pytest.raises(RegardError, match="cannot be read as word vectors"):
        list(read_vectors(tmp_path / "v.npz"))


@pytest.mark.parametrize("number", [2**40, 2**62, 10_000_000])
def test_a_word_number_beyond_all_words(number: int) -> None:
    words = np.array([[0, number]])
    with pytest.raises(RegardError, match="so many words cannot be"):
        regard.record({"encoder.states": np.zeros((1, 2, 3)), "encoder.words": words})


def test_a_recording_larger_than_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Free:
        free = 10

    monkeypatch.setattr("regard.recordings.writer.disk_usage", lambda _: Free)
    arrays = {"encoder.states": np.zeros((1, 2, 3)), "encoder.words": np.zeros((1, 2), int)}
    with pytest.raises(RegardError, match="are free at"):
        regard.record(arrays, out=tmp_path / "deep" / "x.safetensors")
    assert not list(tmp_path.iterdir())


def test_what_counts_as_out_of_memory() -> None:
    assert "not enough memory" in str(out_of_memory(MemoryError()))
    torch_says = "[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory"
    assert "alloc_cpu" in str(out_of_memory(RuntimeError(torch_says)))
    assert out_of_memory(RuntimeError("sizes do not match")) is None
