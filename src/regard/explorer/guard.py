"""Who may ask: this machine's own page, with the token of its address, and nobody else.

A server on loopback is reached by any page that a browser shows, directly or by a name that
suddenly means 127.0.0.1 (DNS rebinding). So the Host is checked, other origins are refused, no
CORS header is ever sent, and whatever computes wants a token that only the address has.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regard.explorer import LOCAL

LARGEST = 256 << 10  # bytes of a request
TOKEN = "x-regard-token"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


class Guard:
    """The middleware that everything passes."""

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str] = LOCAL):
        self.app, self.token, self.hosts = app, token, {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with headers put on the answer."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *more]}
            await send(message)

        fault = self.find_fault(scope)
        if fault is not None:
            await refuse(answer, *fault)
            return
        body = await read_body(receive)
        if body is None:
            await refuse(answer, 413, f"A request has at most {LARGEST >> 10} KiB.")
            return
        await self.app(scope, replay(body, receive), answer)

    def find_fault(self, scope: Scope) -> tuple[int, str] | None:
        """What is wrong with a request before anybody reads it."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or host_of(hosts[0]) not in self.hosts:
            return 403, "This server answers to its own address only. Open the address it printed."
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != hosts[0]:
            return 403, "Other pages may not ask this server."
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "Other pages may not ask this server."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET and POST are answered."
        if scope["path"].startswith("/api/"):
            given = headers.get(TOKEN, "")
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                return 401, "The token is missing or wrong. Open the address that was printed."
        if int_or(headers.get("content-length"), 0) > LARGEST:
            return 413, f"A request has at most {LARGEST >> 10} KiB."
        return None


def host_of(value: str) -> str:
    """`127.0.0.1:80` -> `127.0.0.1`, `[::1]:80` -> `::1`; what is none of that stays as it is."""
    try:
        return urlsplit(f"//{value}").hostname or ""
    except ValueError:
        return ""


def int_or(text: str | None, other: int) -> int:
    """A number in a header."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 18 else other


async def read_body(receive: Receive) -> bytes | None:
    """The whole body, or None where it is too large."""
    found: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return found
        found += message.get("body", b"")
        if len(found) > LARGEST:
            return None
        if not message.get("more_body", False):
            return found


def replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once more."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(send: Any, status: int, sentence: str) -> None:
    """An answer that says why not."""
    body = json.dumps({"error": [sentence]}).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
