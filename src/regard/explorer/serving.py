"""Starting and stopping the server, and telling where it is."""

from __future__ import annotations

import json
import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

from regard.errors import RegardError
from regard.explorer import LOCAL

NEEDED = ("starlette", "uvicorn")
SHORTEST = 16  # characters of a token that others may try to guess


def serve(
    paths: Sequence[Path],
    runs: Path | None,
    host: str,
    port: int,
    token: str | None,
    browser: bool,
    samples: int,
    as_json: bool,
    sentences: Path | None = None,
) -> None:
    """Serve until interrupted or ended."""
    check_packages()
    token = check_token(host, token)
    for number in (signal.SIGTERM, signal.SIGINT):  # the server stops first, then raises it again
        signal.signal(number, _end)
    import uvicorn

    from regard.explorer.server import make_app
    from regard.explorer.things import Things
    from regard.runs.run import runs_folder

    folder = None if paths and runs is None else (runs or runs_folder())
    things = Things(paths, folder, samples, sentences)
    if not list(things):
        raise RegardError(
            f"There is nothing to explore in {folder}. Train something:"
            " `regard train one-to-one --model aed`."
        )
    listener = open_socket(host, port)
    port = listener.getsockname()[1]
    names = (*LOCAL, host) if host not in ("0.0.0.0", "::") else (*LOCAL, *own_addresses())
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}/?token={quote(token, safe='')}"
    config = uvicorn.Config(
        make_app(things, token, names), log_level="warning", access_log=False, lifespan="off",
        server_header=False, timeout_keep_alive=30, limit_concurrency=200, proxy_headers=False,
    )  # fmt: skip

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            """Tell where it is when it is ready, and not before."""
            await super().startup(sockets)
            tell(url, host, len(list(things)), as_json)
            if browser:
                webbrowser.open(url)

    try:
        Server(config).run(sockets=[listener])
    finally:
        listener.close()


def _end(number: int, frame: object) -> None:
    raise SystemExit(0)


def check_packages() -> None:
    """Refuse at once where the server's packages are missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise RegardError(
            f"The explorer needs {' and '.join(missing)}. Install them:"
            " `pip install 'regard[explorer]'`."
        )


def check_token(host: str, token: str | None) -> str:
    """A token; on an interface that others reach, one that was given, and long enough."""
    if is_loopback(host):
        return token or secrets.token_urlsafe(24)
    if token is None or len(token) < SHORTEST:
        raise RegardError(
            f"{host} can be reached from other machines. Give --token with {SHORTEST} characters or"
            " more, or stay on 127.0.0.1 and forward the port (ssh -L)."
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        raise RegardError(f"'{host}' is no address. Give one such as 127.0.0.1.") from None


def own_addresses() -> list[str]:
    """The addresses that this machine is known by."""
    try:
        name = socket.gethostname()
        found = [str(info[4][0]) for info in socket.getaddrinfo(name, None)]
    except OSError:
        return []
    return [name, *dict.fromkeys(found)]


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once instead of waiting 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise RegardError(
            f"{host}:{port} cannot be listened on ({error.strerror}). Take another --port; 0 is any"
            " that is free."
        ) from None
    listener.listen(128)
    listener.set_inheritable(True)
    return listener


def tell(url: str, host: str, count: int, as_json: bool) -> None:
    """Where it is; for programs as one line of JSON."""
    if as_json:
        print(json.dumps({"url": url, "things": count}), flush=True)
    else:
        print(f"The explorer: {url}\nStop it with Ctrl-C.", flush=True)
    if not is_loopback(host):
        print(
            f"regard: warning: {host} is open to other machines. Whoever has the address with its"
            " token can read these runs; it is sent unencrypted.",
            file=sys.stderr,
        )
