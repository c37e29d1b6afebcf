"""What a node of a Ray cluster does: trains a run, and tells the driver how it goes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from regard.errors import RegardError
from regard.runs.config import NUMERICS, RunConfig
from regard.runs.files import content_hash
from regard.runs.local import order_run
from regard.runs.parcels import Sender, move_files, receive
from regard.runs.pool import give_order, start_worker

MARK = ".regard-shared"  # a file in the folder of runs: who can read it shares the folder
ALONE = "REGARD_SHARED"  # set to `no` on a node that is to write nothing into a shared folder
PATIENCE = 60.0  # seconds that another process has to answer
BETWEEN = 0.2  # seconds between two looks


class Mailbox:
    """An actor beside the driver that keeps the news of all nodes until the driver has them.

    A connection may break when a call was carried out and not yet answered, so that it is made
    again: news that come twice are kept once, and are forgotten only when the driver says so.
    """

    def __init__(self) -> None:
        self.news: list[tuple[str, dict[str, Any]]] = []
        self.forgotten = 0
        self.last: dict[str, str] = {}

    def put(self, name: str, event: dict[str, Any], stamp: str) -> None:
        """Take news of the run `name`; `stamp` is another one for each news."""
        if self.last.get(name) != stamp:
            self.news.append((name, event))
            self.last[name] = stamp

    def take(self, heard: int) -> list[tuple[str, dict[str, Any]]]:
        """All news but the first `heard` that ever came, in order."""
        del self.news[: heard - self.forgotten]
        self.forgotten = heard
        return self.news


def shares_folder(root: str, mark: str, hashes: Mapping[str, str]) -> bool:
    """Whether this node writes to the folder of runs of the driver, and reads the same data."""
    path = Path(root, MARK)
    shared = os.environ.get(ALONE) != "no" and path.is_file() and path.read_text() == mark
    return shared and has_files(hashes)


def has_files(hashes: Mapping[str, str]) -> bool:
    """Whether the files of these paths are here, with this content."""
    return all(content_hash(Path(path)) == digest for path, digest in hashes.items())


def describe_node(
    root: str, mark: str, modules: Sequence[str], path: str, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """What the driver wants to know of a node before anything starts."""
    folders = [*sys.path, *path.split(os.pathsep)]
    found = (PathFinder.find_spec(name.split(".")[0], folders) for name in modules)
    return {
        "versions": own_versions(),
        "shared": shares_folder(root, mark, hashes),
        "missing": [name for name, spec in zip(modules, found, strict=True) if spec is None],
    }


def own_versions() -> dict[str, str]:
    """What numbers may depend on, besides the run and the kind of processor."""
    return {
        "Regard": f"{version('regard')} (numerics {NUMERICS})",
        "torch": str(import_module("torch").__version__),
        "Python": ".".join(map(str, sys.version_info[:2])),
    }


def train_on_node(
    order: dict[str, Any], contents: Mapping[str, Any], mailbox: Any
) -> dict[str, Any]:
    """Train one run to its end; its last news, or `died` if its process did.

    With a shared folder the run is trained there. Without one it is trained in a folder that is
    gone afterwards, and every state is sent to the driver as soon as it is there.
    """
    ray = import_module("ray")
    name, config = order["name"], RunConfig.from_json(order["config"])

    def tell(**event: Any) -> None:
        stamp, until = uuid4().hex, time.monotonic() + PATIENCE
        while True:
            try:
                ray.get(mailbox.put.remote(name, event, stamp))  # one waits for the answer
                return
            except ray.exceptions.ActorUnavailableError:
                if time.monotonic() > until:
                    raise
                time.sleep(BETWEEN)

    with ExitStack() as stack:
        if shares_folder(order["root"], order["mark"], order["hashes"]):
            return _follow(order["config"], order["root"], order, tell, None)
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="regard-")))
        folder = scratch / "runs" / name
        try:
            places = _place_files(order["hashes"], contents, scratch / "data")
        except RegardError as error:
            return {"event": "failed", "faults": list(error.faults)}
        receive(folder, config, order["parcel"])
        (folder / "config.json").unlink()  # it is written anew, with the paths of this node
        settings = move_files(config, places)
        last = _follow(settings, str(folder.parent), order, tell, Sender(folder))
        return _speak_of(last, places)


_kept: dict[tuple[str, str], subprocess.Popen[str]] = {}  # workers of this process of Ray's


def do_on_node(order: dict[str, Any], module: str, environment: dict[str, str]) -> dict[str, Any]:
    """Have a worker do one thing; its last news, or `died` if it did.

    The worker stays for what comes next, because starting one takes seconds. It ends with the
    process of Ray's that has started it, as its input does.
    """
    key = module, repr(sorted(environment.items()))
    if key not in _kept or _kept[key].poll() is not None:
        _kept[key] = start_worker(environment, module)
    for news in give_order(_kept[key], order):
        if news["event"] != "progress":
            return news
    return {"event": "died", "code": _kept.pop(key).wait()}


def _follow(
    config: Mapping[str, Any], root: str, order: Mapping[str, Any], tell: Any, sender: Sender | None
) -> dict[str, Any]:
    """Have a process train the run, and pass on its news and its states."""
    with start_worker(order["environment"]) as worker:
        try:
            for news in order_run(worker, config, root, order["preset"]):
                if sender and (new := sender.find_new(last=news["event"] == "done")):
                    tell(event="files", files=new)
                if news["event"] != "progress":
                    return news
                tell(**news)
            return {"event": "died", "code": worker.wait()}
        finally:
            worker.kill()


def _place_files(
    hashes: Mapping[str, str], contents: Mapping[str, Any], to: Path
) -> dict[Path, Path]:
    """Where the files of a run are on this node; those that are not here are written.

    Files of one folder stay together, and folders keep their names, as settings may name them.
    """
    ray, places = import_module("ray"), {}
    for number, folder in enumerate(dict.fromkeys(Path(path).parent for path in hashes)):
        names = {path: digest for path, digest in hashes.items() if Path(path).parent == folder}
        if os.environ.get(ALONE) != "no" and has_files(names):
            continue  # the node has the same files at the same place
        places[folder] = to / str(number) / folder.name
        places[folder].mkdir(parents=True)
        for path, digest in names.items():
            if digest not in contents:  # it came after all others were asked, which had the file
                raise RegardError(f"The node has no {path}, unlike the others. Ask again.")
            places[Path(path)] = places[folder] / Path(path).name
            places[Path(path)].write_bytes(ray.get(contents[digest]))
    return places


def _speak_of(news: dict[str, Any], places: Mapping[Path, Path]) -> dict[str, Any]:
    """Faults with the paths that the user knows."""
    if news["event"] != "failed":
        return news
    faults = list(news["faults"])
    for old, new in places.items():
        faults = [fault.replace(str(new), str(old)) for fault in faults]
    return {**news, "faults": faults}
