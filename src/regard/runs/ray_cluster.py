"""A Ray cluster: how to reach it, and what its nodes are asked before anything starts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from regard.errors import RegardError
from regard.runs.files import write_whole
from regard.runs.ray_node import MARK, PATIENCE, describe_node, own_versions

DEATHS = 10  # of workers or nodes under one piece of work, after which it is given up


@contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """Ray, connected; a connection that was there before stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what later versions of Ray will do
        try:
            ray: Any = import_module("ray")
        except ImportError:
            raise RegardError(
                "Working on Ray needs the package. Install it: pip install 'regard[ray]'."
            ) from None
        known = ray.is_initialized()
        if not known:
            _init(ray, address)
    try:
        yield ray
    finally:
        if not known:
            ray.shutdown()


def _init(ray: Any, address: str | None) -> None:
    settings = {} if address else {"include_dashboard": False}  # open ports are open doors
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR", **settings)
    except (ValueError, RuntimeError, ImportError, OSError) as error:
        where = address or os.environ.get("RAY_ADDRESS") or "a cluster of its own"
        raise RegardError(
            f"Ray could not connect to {where} ({str(error).splitlines()[0]})."
            " Start it (`ray start --head`), or check --on, REGARD_ON and RAY_ADDRESS."
        ) from None


@dataclass(frozen=True)
class Place:
    """A folder that nodes may share, how they can tell, and the files that they need besides."""

    root: Path
    mark: str
    hashes: Mapping[str, str]  # by paths


def stay_on(node: str, soft: bool = False) -> dict[str, Any]:
    """The options of a task that is to be done by one node, or `soft`, elsewhere if it is gone."""
    strategies = import_module("ray.util.scheduling_strategies")
    return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(node, soft=soft)}


def find_nodes(ray: Any) -> dict[str, dict[str, Any]]:
    """The nodes that are alive, by their numbers: some may have one name."""
    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def ask_nodes(
    ray: Any, nodes: Sequence[Mapping[str, Any]], place: Place, modules: Sequence[str], path: str
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What each of some nodes says of itself, by its number, and why nodes cannot be used.

    `modules` are those of the user's own, which may be in folders of `path`. A node that died or
    is too busy to answer says nothing.
    """
    ask = ray.remote(num_cpus=0, max_retries=0)(describe_node)
    given = (str(place.root), place.mark, modules, path, place.hashes)
    asked = [ask.options(**stay_on(node["NodeID"])).remote(*given) for node in nodes]
    answers, faults = {}, []
    for node, ref in zip(nodes, asked, strict=True):
        name = node["NodeName"]
        try:
            answers[node["NodeID"]] = ray.get(ref, timeout=PATIENCE)
            faults += _find_faults(name, answers[node["NodeID"]])
        except ray.exceptions.RayTaskError as error:
            reason = str(error.cause).splitlines()[0] if error.cause else "no reason given"
            faults.append(f"The node {name} cannot use Regard ({reason}). Install it there, too.")
        except ray.exceptions.RayError:
            continue
    return answers, faults


def mark_folder(root: Path) -> str:
    """What is written into a folder, so that a node can tell whether it shares it."""
    path = root / MARK
    if not path.is_file():
        write_whole(path, uuid4().hex.encode())
    return path.read_text()


def _find_faults(name: str, answer: dict[str, Any]) -> list[str]:
    """Why a node cannot be used: it would give other numbers, or lacks the user's own modules."""
    ours, theirs = own_versions(), answer["versions"]
    other = [
        f"The node {name} has {what} {theirs.get(what)}, and here is {version}: the numbers might"
        " differ. Install the same version there."
        for what, version in ours.items()
        if theirs.get(what) != version
    ]
    return other + [
        f"The node {name} does not have the module '{module}', which a run needs. Install it"
        " there, or put it into a folder that all nodes share."
        for module in answer["missing"]
    ]
