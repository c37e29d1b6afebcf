"""`python -m benchmarks explorer`: how long a person waits for the live page.

`regard explore` runs as a user starts it, with a model of 256 units and sentences of 20 words, and
is asked over the loopback: one client, and twenty at once. Times are the wall's, because a person
waits by it; the machine's load stands beside them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import regard
from benchmarks.benchmark import BENCHMARKS, Benchmark, Measured

WORDS = 20
LONG, HEADS = 511, 16  # words of a long sentence, with an end of its own; heads that look at it
CLIENTS = 20
STATIC = Path(regard.__file__).parent / "explorer" / "static"


class Client:
    """One page's connection."""

    def __init__(self, url: str):
        parts = urlsplit(url)
        self.host, self.token = parts.netloc, parse_qs(parts.query)["token"][0]
        self.line = HTTPConnection(self.host, timeout=120)

    def get(self, path: str) -> bytes:
        """A file."""
        self.line.request("GET", path)
        return self.read()

    def ask(self, name: str, **question: Any) -> bytes:
        """A question, as the page puts it."""
        headers = {"x-regard-token": self.token, "content-type": "application/json"}
        self.line.request("POST", f"/api/{name}", json.dumps(question), headers)
        return self.read()

    def read(self) -> bytes:
        """The answer, which must be one."""
        answer = self.line.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {data[:200]!r}")
        return data


@contextmanager
def serve(runs: Path) -> Iterator[str]:
    """The server in a process of its own; yields its address."""
    command = [sys.executable, "-m", "regard.cli.main", "explore", "--runs", str(runs), "--json",
               "--no-browser", "--samples", "200"]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.send_signal(signal.SIGTERM)


def draw(rng: random.Random, thing: str) -> dict[str, Any]:
    """A sentence nobody has asked yet, whose output has as many words."""
    source = " ".join(rng.choices("ABC", k=WORDS - 1))
    return {"thing": thing, "source": source, "forced": {str(WORDS - 1): "<EOS>"}}


def time_each(count: int, work: Callable[[], object]) -> list[float]:
    """Wall seconds of some calls."""
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def summarise(seconds: list[float]) -> Measured:
    """p50 and p95 in milliseconds."""
    ordered = sorted(seconds)
    last = min(len(ordered) - 1, int(0.95 * len(ordered)))
    return {
        "p50_ms": 1000 * statistics.median(ordered),
        "p95_ms": 1000 * ordered[last],
        "count": len(ordered),
    }


def measure(url: str, thing: str, rounds: int) -> Measured:
    """All figures."""
    rng, client = random.Random(0), Client(url)
    client.ask("describe", thing=thing)
    sentence = draw(rng, thing)
    head = {"site": "attention", "head": 0}
    client.ask("terms", **sentence, **head)  # the reference recording is made once

    def say() -> None:
        client.ask("say", **draw(rng, thing))

    def slide() -> None:
        factors = [rng.random(), *[1.0] * 8]
        change = {"kind": "terms", **head, "factors": factors}
        client.ask("say", **sentence, changes=[change])

    def open_page() -> None:
        fresh = Client(url)
        fresh.get("/")
        for path in sorted(STATIC.iterdir()):
            if path.suffix in (".js", ".css"):
                fresh.get(f"/static/{path.name}")
        fresh.ask("things")
        fresh.ask("describe", thing=thing)
        fresh.ask("say", **draw(rng, thing))

    def crowd() -> list[float]:
        def one(number: int) -> list[float]:
            mine, own = Client(url), random.Random(1000 + number)
            return time_each(5, lambda: mine.ask("say", **draw(own, thing)))

        with ThreadPoolExecutor(CLIENTS) as pool:
            return [t for times in pool.map(one, range(CLIENTS)) for t in times]

    for warm in (say, slide, open_page):
        warm()
    return {
        "sentence": summarise(time_each(rounds, say)),
        "slider": summarise(time_each(rounds, slide)),
        "first_page": summarise(time_each(max(3, rounds // 4), open_page)),
        "sentence_20_clients": summarise(crowd()),
        "load": os.getloadavg()[0],
        "cores": os.cpu_count(),
    }


def measure_long(url: str, thing: str, rounds: int) -> Measured:
    """A sentence of 512 words through 16 heads: all of them small, and one in full."""
    client, rng = Client(url), random.Random(0)
    source = " ".join(rng.choices("ABC", k=LONG))
    target = " ".join(rng.choices("123", k=LONG))
    asked = {"thing": thing, "source": source, "target": target, "feed": "target"}
    site = {"site": "decoder.0.cross"}
    first = time_each(1, lambda: client.ask("thumbnails", **asked))
    heads = iter(range(10**6))
    sizes: list[int] = []

    def take_head() -> None:
        sizes.append(len(client.ask("head", **asked, **site, head=next(heads) % HEADS)))

    return {
        "first_look": summarise(first),
        "thumbnails": summarise(time_each(rounds, lambda: client.ask("thumbnails", **asked))),
        "one_head": {**summarise(time_each(rounds, take_head)), "bytes": sizes[0]},
    }


@BENCHMARKS.register("explorer")
def explorer(rounds: int = 40, hidden: int = 256) -> Benchmark:
    """How many times faster than the goal the median is."""
    with tempfile.TemporaryDirectory() as folder:
        run = regard.train("one-to-one", model="aed", hidden=hidden, updates=1, out=folder)
        wide = regard.train(
            "one-to-one", model="transformer", hidden=64, layers=1, heads=HEADS, updates=1,
            batch=8, held_out=8, out=folder,
        )  # fmt: skip
        with serve(Path(folder)) as url:
            raw = measure(url, run.folder.name, rounds)
            raw["long"] = measure_long(url, wide.folder.name, rounds)
    goals = {"sentence": 150.0, "slider": 80.0, "first_page": 1000.0}
    ratios = {
        name: (goal / raw[name]["p50_ms"], 1.0, f"{goal:g} ms over the median of {name}")
        for name, goal in goals.items()
    }
    return Benchmark("explorer", ratios, raw)
