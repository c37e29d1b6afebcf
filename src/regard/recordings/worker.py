"""A worker process that records shards and maps them; see `regard.runs.worker`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.recordings.adding import Part, find_shards
from regard.recordings.mapping import find_pass, make_partial, name_partial
from regard.recordings.of_run import read_plan
from regard.recordings.recording import Recording, load_recording
from regard.recordings.sharding import Plan
from regard.runs.worker import Order, Watch, serve


def work(order: Order, watch: Watch) -> dict[str, Any]:
    """Record one shard, or map one part."""
    return record_shard(order, watch) if order["do"] == "record" else map_one(order)


def map_one(order: Order) -> dict[str, Any]:
    """The statistics of some samples, kept where the order says."""
    whole = _open(order["recording"], order["rows"], order["digest"])
    shards = find_shards(whole)
    assert shards is not None
    what, part = find_pass(order["pass"], order["settings"]), Part(*order["part"])
    path = Path(order["folder"]) / name_partial(what, whole, shards, part)
    make_partial(what, whole, part, path)
    return {"part": order["part"]}


@lru_cache(maxsize=1)  # so that its means are found once
def _open(folder: str, rows: int, digest: str) -> Recording:
    opened = replace(load_recording(folder), rows=rows, jobs=1, on="local").compact
    shards = find_shards(opened)
    if shards is None or shards.manifest.digest != digest:
        raise RegardError(f"{folder} is not the recording that it was a moment ago. Ask again.")
    return opened


def record_shard(order: Order, watch: Watch) -> dict[str, Any]:
    """One shard of what a run does."""
    number = order["number"]
    said = json.dumps({key: value for key, value in order.items() if key != "number"})
    return {"number": number, "sha256": _plan(said).make(number, watch)}


@lru_cache(maxsize=1)  # so that a corpus is read and a model is loaded once
def _plan(order: str) -> Plan:
    return read_plan(json.loads(order))


if __name__ == "__main__":
    serve(work)
