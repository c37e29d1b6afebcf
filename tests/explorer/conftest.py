"""Small runs to explore, an application without a network, and a browser where there is one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

TOKEN = "a-token-for-tests-only"
AED = {"task": "one-to-one", "model": "aed", "hidden": 16, "updates": 60, "checkpoint_every": 20}
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds with attention, a Transformer and a classifier, hardly trained."""
    import regard

    folder = tmp_path_factory.mktemp("explored")
    for seed in (0, 1):
        regard.train(**AED, seed=seed, out=folder)
    regard.train("one-to-one", model="transformer", hidden=16, heads=2, updates=20, out=folder)
    regard.train("keyword", model="snell-classifier", updates=5, hidden=8, out=folder,
                 embedding=8, attention_size=8)  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def names(runs: Path) -> dict[str, str]:
    """The runs by what they are."""
    import regard

    found = {}
    for run in regard.list_runs(runs):
        kind = {"transformer": "transformer", "reader": "classifier"}.get(run.config.model_kind)
        found[kind or f"aed {run.config.seed}"] = run.folder.name
    return found


@pytest.fixture(scope="session")
def app(runs: Path) -> Any:
    starlette = pytest.importorskip("starlette", reason="the extra `explorer` is not installed")
    assert starlette
    from regard.explorer import Things, make_app

    return make_app(Things([], runs, samples=40), TOKEN)


@pytest.fixture(scope="session")
def client(app: Any) -> Any:
    pytest.importorskip("httpx", reason="httpx is not installed, which asks the application")
    from starlette.testclient import TestClient

    return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def ask(client: Any) -> Callable[..., Any]:
    """Asks as the page does; arrays come unpacked."""
    from regard.explorer.packing import unpack

    def put(
        name: str, status: int = 200, headers: dict[str, str] | None = None, **question: Any
    ) -> Any:
        given = {"x-regard-token": TOKEN, **(headers or {})}
        if "ask_name" in question:  # `name` is what is asked here
            question["name"] = question.pop("ask_name")
        answer = client.post(f"/api/{name}", json=question, headers=given)
        assert answer.status_code == status, answer.text[:500]
        kind = answer.headers["content-type"]
        if "octet-stream" in kind:
            return unpack(answer.content)
        return answer.json() if "json" in kind else answer

    return put


@pytest.fixture(scope="session")
def address(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`regard explore` as a user starts it, ended by its process id."""
    pytest.importorskip("uvicorn", reason="the extra `explorer` is not installed")
    command = [sys.executable, "-m", "regard.cli.main", "explore", "--runs", str(runs), "--json",
               "--no-browser", "--samples", "40"]  # fmt: skip
    results = str(tmp_path_factory.mktemp("results"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "REGARD_RESULTS": results}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout is not None
        yield json.loads(server.stdout.readline())["url"]
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(20)
        if server.stdout is not None:
            server.stdout.close()
        assert code == 0


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's Chromium, or a plain reason why not."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip("there is no Chromium at /usr/bin/chromium")
    with api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield made
        made.close()
