"""Recordings made to mislead: headers that lie, and headers changed at random."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.made import HIDDEN, ROWS, SOURCE, read_recording, small_recording
from torture.tally import Tally

Change = Callable[[dict[str, Any]], Any]


def entry(name: str, **changes: Any) -> Change:
    """Other words about an array."""
    return lambda header: header[name].update(changes)


def offsets(name: str, by: int, end: int | None = None) -> Change:
    """An array at another place."""

    def change(header: dict[str, Any]) -> None:
        first, last = header[name]["data_offsets"]
        header[name]["data_offsets"] = [first + by, last + (by if end is None else end)]

    return change


def describe(**changes: Any) -> Change:
    """Other words about the recording."""

    def change(header: dict[str, Any]) -> None:
        data = json.loads(header["__metadata__"]["regard"])
        header["__metadata__"]["regard"] = json.dumps({**data, **changes})

    return change


def site(**changes: Any) -> Change:
    """Other words about its attention."""

    def change(header: dict[str, Any]) -> None:
        data = json.loads(header["__metadata__"]["regard"])
        data["sites"]["attention"].update(changes)
        header["__metadata__"]["regard"] = json.dumps(data)

    return change


def swap(a: str, b: str) -> Change:
    """Two arrays in each other's place."""

    def change(header: dict[str, Any]) -> None:
        header[a], header[b] = header[b], header[a]

    return change


S = "encoder.states"
LIES: dict[str, Change] = {
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


def rewrite(saved: Path, path: Path, change: Change) -> Path:
    """The file with another header, and no checksums that would give it away."""
    content = saved.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    del header["__metadata__"]["checks"]
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[begin:])
    return path


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


JUNK: list[Any] = [
    None, True, -1, 0, 1, 3, 2**31, 2**63, 10**30, 0.5, -0.0, "", "x", "\x00", "encoder", [], [[]],
    {}, {"a": 1}, [0, 0], [-1, 5], ["F32"], "F64", "I64", "BOOL", [0], [40, 5, 6],
]  # fmt: skip


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a tree of JSON."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [path, *(place for key, inner in items for place in places_in(inner, (*path, key)))]


def scramble(header: dict[str, Any], rng: random.Random) -> None:
    """Put something else at a random place of a header, or take it away."""
    described = json.loads(header["__metadata__"]["regard"])
    tree = {**header, "__metadata__": {"regard": described}}
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.choice(places_in(tree)[1:])
        parent: Any = tree
        for key in place[:-1]:
            parent = parent[key]
        if rng.random() < 0.2:
            del parent[place[-1]]
        else:
            parent[place[-1]] = rng.choice(JUNK)
    metadata = tree.get("__metadata__")
    if isinstance(metadata, dict) and isinstance(metadata.get("regard"), (dict, list)):
        metadata["regard"] = json.dumps(metadata["regard"])
    header.clear()
    header.update(tree)


def read_hostile(root: Path, count: int, rng: random.Random) -> Tally:
    """All that was thought of, and as many again as are wanted."""
    tally = Tally("hostile recordings")
    saved = root / "whole.safetensors"
    small_recording(saved)
    right, path = read_recording(saved), root / "hostile.safetensors"

    def refuse() -> str:
        read_recording(path)
        raise AssertionError("it was believed")

    def same() -> str:
        found = read_recording(path)
        arrays = {name: value for name, value in found.items() if name != "metadata"}
        assert all(right.get(name) == value for name, value in arrays.items()), "other numbers"
        return "read, with the numbers it has"

    for name, change in LIES.items():
        rewrite(saved, path, change)
        tally.attempt(name, refuse)
    for name, text in RAW.items():
        path.write_bytes(len(text).to_bytes(8, "little") + text)
        tally.attempt(name, refuse)
    for number in range(count):
        rewrite(saved, path, lambda header: scramble(header, rng))
        tally.attempt(f"scrambled {number}", same)
    return tally
