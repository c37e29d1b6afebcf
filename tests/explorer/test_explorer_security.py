"""Hostile input: wrong hosts, missing tokens, paths, markup, sizes, nonsense."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import regard
from regard.errors import RegardError

TOKEN = "a-token-for-tests-only"
GOOD = {"x-regard-token": TOKEN}


@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "169.254.1.1", "",
    "localhost@evil.example", "[::1", "0.0.0.0",
])  # fmt: skip
def test_other_hosts_are_refused(client: Any, host: str) -> None:
    for path in ("/", "/static/main.js"):
        assert client.get(path, headers={"host": host}).status_code == 403
    assert client.post("/api/things", json={}, headers={**GOOD, "host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000", "LOCALHOST"])
def test_own_names_are_answered(client: Any, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


def test_whatever_computes_wants_the_token(client: Any) -> None:
    from regard.explorer.answers import ANSWERS

    for name in ANSWERS:
        for headers in ({}, {"x-regard-token": "wrong"}, {"x-regard-token": TOKEN + "x"}):
            answer = client.post(f"/api/{name}?token={TOKEN}", json={}, headers=headers)
            assert answer.status_code == 401, name
            assert "token" in answer.json()["error"][0]


def test_other_pages_are_refused(client: Any) -> None:
    origins = ("https://evil.example", "null", "http://127.0.0.1:9")
    for headers in (*({"origin": o} for o in origins), {"sec-fetch-site": "cross-site"}):
        answer = client.post("/api/things", json={}, headers={**GOOD, **headers})
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control")]
    own = {**GOOD, "origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    assert client.post("/api/things", json={}, headers=own).status_code == 200


def test_every_answer_has_strict_headers(client: Any) -> None:
    for answer in (client.get("/"), client.get("/nothing"), client.post("/api/things", json={})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("path", [
    "/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/etc/passwd",
    "/static//etc/passwd", "/static/%00", "/../../etc/passwd", "/static/", "/api/../static/main.js",
    "/.git/config", "/static/main.js/..", "/static/....//server.py",
])  # fmt: skip
def test_no_other_file_is_served(client: Any, path: str) -> None:
    answer = client.get(path, headers=GOOD)
    text = answer.text
    assert answer.status_code in (404, 405) or (
        answer.status_code == 200 and "Asks; the" not in text
    )
    assert "def make_app" not in text and "root:" not in text


@pytest.mark.parametrize("name", ["../secret", "/etc", "..", "runs/../..", "\x00", "a" * 301, ""])
def test_things_are_names_and_never_paths(client: Any, name: str) -> None:
    for question in ("describe", "say"):
        answer = client.post(f"/api/{question}", json={"thing": name}, headers=GOOD)
        assert answer.status_code == 400 and answer.json()["error"]
        assert "Traceback" not in answer.text


@pytest.mark.parametrize("body", [
    b"", b"{", b"null", b"[]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"thing": 1}',
    b'{"thing": NaN}',
    b'{"thing": "x", "unknown": 1}', b'{"thing": {"$ne": null}}',
])  # fmt: skip
def test_malformed_bodies_get_a_sentence(client: Any, body: bytes) -> None:
    answer = client.post("/api/say", content=body, headers=GOOD)
    assert answer.status_code == 400
    assert answer.json()["error"] and "Traceback" not in answer.text


def test_huge_bodies_are_refused(client: Any) -> None:
    assert client.post("/api/say", content=b" " * (300 << 10), headers=GOOD).status_code == 413
    lying = {**GOOD, "content-length": "10"}
    assert client.post("/api/say", content=(b" " * 4096 for _ in range(100)),
                       headers=GOOD).status_code == 413  # fmt: skip
    assert client.post("/api/say", content=b" " * 10, headers=lying).status_code == 400


@pytest.mark.parametrize("more", [
    {"source": "A " * 700}, {"source": "nonsense"}, {"source": "   "}, {"checkpoint": 123456},
    {"checkpoint": "../best"}, {"checkpoint": -1}, {"forced": {"0": "nonsense"}},
    {"forced": {"-1": "1"}}, {"forced": {"100000": "1"}}, {"sample": -4},
    {"changes": [{"kind": "head", "site": "nowhere", "head": 0}]},
    {"changes": [{"kind": "head", "site": "attention", "head": 7}]},
    {"changes": [{"kind": "unit", "side": "encoder", "unit": 9999}]},
    {"changes": [{"kind": "terms", "site": "attention", "factors": [1, 2]}]},
    {"changes": [{"kind": "terms", "site": "attention", "factors": [1e99] * 9}]},
    {"changes": [{"kind": "state", "side": "encoder", "step": 0, "sentence": "A", "other": 99}]},
    {"changes": [{"kind": "weight", "site": "attention", "step": 0, "source": 0, "weight": 2}]},
    {"changes": [{"kind": "head", "site": "attention", "head": 0}] * 100},
    {"changes": [{"kind": "run", "code": "import os"}]},
])  # fmt: skip
def test_questions_that_do_not_fit_get_a_sentence(
    client: Any, names: dict[str, str], more: dict[str, Any]
) -> None:
    asked = {"thing": names["aed 0"], "source": "A B C", **more}
    answer = client.post("/api/say", json=asked, headers=GOOD)
    assert answer.status_code == 400, answer.text
    assert all(len(sentence) < 2000 for sentence in answer.json()["error"])
    assert "Traceback" not in answer.text


def test_nothing_is_left_behind_by_a_change_that_failed(
    ask: Callable[..., Any], names: dict[str, str]
) -> None:
    asked = {"thing": names["aed 0"], "source": "C B A"}
    ask("say", 400, **asked, changes=[{"kind": "unit", "side": "encoder", "unit": 9999}])
    first = ask("head", **asked, site="attention")[1]["weights"]
    ask("say", **asked, changes=[{"kind": "unit", "side": "encoder", "unit": 1}])
    asked["source"] = "C B A "  # not the answer that was kept
    assert (ask("head", **asked, site="attention")[1]["weights"] == first).all()


def test_other_methods_are_refused(client: Any) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert client.request(method, "/api/things", headers=GOOD).status_code == 405
    assert client.get("/api/things", headers=GOOD).status_code == 405


def test_other_interfaces_want_a_token_of_some_length() -> None:
    from regard.explorer.serving import check_token, is_loopback

    assert len(check_token("127.0.0.1", None)) > 20
    assert check_token("::1", "short") == "short"
    for token in (None, "short"):
        with pytest.raises(RegardError, match="--token with 16 characters"):
            check_token("0.0.0.0", token)
    assert check_token("0.0.0.0", "x" * 16) == "x" * 16
    with pytest.raises(RegardError, match="is no address"):
        is_loopback("evil.example")


def test_what_cannot_be_explored_is_said_before_anything_listens(tmp_path: Path) -> None:
    from regard.cli.main import app

    for arguments, message in (
        (["explore", str(tmp_path / "none")], "There is no run or recording"),
        (["explore", str(tmp_path)], "neither a run nor a folder of runs"),
        (["explore", "--runs", str(tmp_path)], "nothing to explore"),
        (["explore", "--host", "0.0.0.0"], "--token"),
    ):
        result = CliRunner().invoke(app, [*arguments, "--no-browser"])
        assert isinstance(result.exception, RegardError) and message in str(result.exception)


def test_markup_in_names_stays_text(tmp_path: Path, runs: Path, names: dict[str, str]) -> None:
    """A recording whose words and file name are markup comes out as data, escaped by JSON."""
    from starlette.testclient import TestClient

    from regard.explorer import Things, make_app

    nasty = "<img src=x onerror=alert(1)>\"'&.safetensors"
    arrays = {
        "encoder.words": [[3, 4]], "encoder.mask": [[True, True]],
        "encoder.states": [[[0.0], [1.0]]], "decoder.states": [[[0.0]]], "decoder.words": [[1]],
        "decoder.mask": [[True]],
    }  # fmt: skip
    words = ["<PAD>", "<SOS>", "<EOS>", "</script><script>alert(1)</script>", "&amp;"]
    import numpy as np

    plain = {name: np.array(values) for name, values in arrays.items()}
    regard.record(plain, source_words=words, target_words=words, out=tmp_path / nasty)
    page = TestClient(make_app(Things([tmp_path / nasty]), TOKEN), base_url="http://127.0.0.1")
    listed = page.post("/api/things", json={}, headers=GOOD)
    assert (
        listed.json()[0]["name"] == nasty and listed.headers["content-type"] == "application/json"
    )
    said = page.post("/api/say", json={"thing": nasty, "sample": 0}, headers=GOOD).json()
    assert said["source"][0]["word"] == words[3]
    assert json.dumps(said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly_as_soon_as_it_is_ready(runs: Path, number: int) -> None:
    pytest.importorskip("uvicorn", reason="the extra `explorer` is not installed")
    command = [sys.executable, "-m", "regard.cli.main", "explore", "--runs", str(runs), "--json",
               "--no-browser", "--port", "0"]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None and server.stderr is not None
        assert "token=" in json.loads(server.stdout.readline())["url"]
        server.send_signal(number)
        assert server.wait(20) == 0
        assert server.stdout.read() == server.stderr.read() == ""
