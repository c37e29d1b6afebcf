"""Flipped bits and torn ends, in every kind of file that numbers come from."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regard.papers.framework.result import Result
from regard.runs import Run, execute
from regard.runs.files import as_json, read_tensors, write_noted
from regard.statistics import Estimate
from torture.made import cut_run, read_recording, small_config, small_recording
from torture.tally import Tally

Reader = Callable[[], Any]


def make_targets(root: Path) -> dict[str, tuple[Path, Reader]]:
    """A file of every kind, and how it is read."""
    run = execute(small_config(), root / "done")
    cut = cut_run(root / "cut")
    recording = root / "recording.safetensors"
    small_recording(recording)
    result = root / "results" / "result.json"
    write_noted(result.parent, result, as_json(_result()))

    def weights(checkpoint: Any) -> list[bytes]:
        return [p.detach().numpy().tobytes() for p in run.model(checkpoint).parameters()]

    def state() -> dict[str, bytes]:
        tensors = read_tensors(cut / "state.safetensors")
        return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}

    folder = run.folder
    return {
        "checkpoint": (folder / "checkpoints/00000020.safetensors", lambda: weights("last")),
        "best checkpoint": (folder / "checkpoints/best.safetensors", lambda: weights("best")),
        "state": (cut / "state.safetensors", state),
        "metrics.jsonl": (folder / "metrics.jsonl", run.rows),
        "DONE": (folder / "DONE", lambda: run.summary),
        "config.json": (folder / "config.json", lambda: Run.open(folder).config.to_json()),
        "sizes.json": (folder / "sizes.json", lambda: weights("last")),
        "list of hashes": (folder / "SHA256SUMS", lambda: (weights("best"), run.summary)),
        "recording": (recording, lambda: read_recording(recording)),
        "result": (result, lambda: Result.read(result).to_json()),
    }


def _result() -> dict[str, Any]:
    measures = {"share": Estimate.of((0.25, 0.5)).to_json()}
    row = {"id": "none", "scale": "quick", "measures": measures, "verdict": "partly"}
    return Result(
        "x/y", "quick", "title", "about", ("found",), (), (), (row,), {}, {}, "plan"
    ).to_json()


def flip_bits(root: Path, flips: int, rng: random.Random) -> list[Tally]:
    """A row for each kind of file: single bits, runs of bytes, and torn ends."""
    targets = make_targets(root)
    rows = []
    for name, (path, read) in targets.items():
        tally = Tally(f"flips and truncations: {name}")
        whole, right = path.read_bytes(), read()
        for _ in range(-(-flips // len(targets))):
            path.write_bytes(_damage(whole, rng))
            tally.attempt(name, lambda read=read, right=right: _compare(read(), right))  # type: ignore[misc]
            path.write_bytes(whole)
        rows.append(tally)
    return rows


def _damage(whole: bytes, rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.15:
        return whole[: rng.randrange(len(whole))]
    content, place = bytearray(whole), rng.randrange(len(whole))
    if kind < 0.8:
        content[place] ^= 1 << rng.randrange(8)
    else:
        for at in range(place, min(len(whole), place + rng.randrange(1, 64))):
            content[at] = rng.randrange(256)
    return bytes(content)


def _compare(found: Any, right: Any) -> str:
    assert found == right, "other numbers"
    return "nothing that counts was hit"
