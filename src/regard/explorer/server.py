"""The application: pages, and questions that are answered off the event loop."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from regard.errors import RegardError, in_words
from regard.explorer import LOCAL
from regard.explorer import questions as ask
from regard.explorer.answers import ANSWERS, Answer
from regard.explorer.guard import Guard
from regard.explorer.jobs import Busy, Jobs, Superseded, TooLong
from regard.explorer.packing import pack
from regard.explorer.things import Things
from regard.explorer.views import Views

STATIC = Path(__file__).parent / "static"
# Every file that is served, by the address it has; there is no other way to a file.
FILES = {"/": "index.html"} | {
    f"/static/{path.relative_to(STATIC).as_posix()}": path.relative_to(STATIC).as_posix()
    for path in sorted(STATIC.rglob("*"))
    if path.suffix in (".js", ".css", ".svg", ".html")
}
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def make_app(
    things: Things, token: str, hosts: tuple[str, ...] = LOCAL, jobs: Jobs | None = None
) -> ASGIApp:
    """The explorer as an ASGI application."""
    views, jobs = Views(things), jobs or Jobs()
    routes = [
        Route(where, partial(_serve, (STATIC / name).read_bytes(), _type(name)), methods=["GET"])
        for where, name in FILES.items()
    ]
    routes += [
        Route(f"/api/{name}", partial(_answer, views, jobs, answer), methods=["POST"])
        for name, answer in ANSWERS.items()
    ]
    app = Starlette(routes=routes, exception_handlers={404: _missing, 405: _missing, 500: _broken})
    return Guard(app, token, hosts)


async def _serve(content: bytes, media_type: str, request: Request) -> Response:
    return Response(content, media_type=media_type)


async def _answer(views: Views, jobs: Jobs, answer: Answer, request: Request) -> Response:
    """One question: read, computed by a thread, and sent as JSON, as arrays, or as a file."""
    try:
        question = ask.read_question(answer.question, await request.body())
        view = request.headers.get("x-regard-view", "")[:100]
        work: Callable[[Any], Any] = partial(answer.compute, views, question)
        found = await jobs.run(view, work, answer.seconds)
    except RegardError as error:
        return fail(400, *error.faults)
    except Superseded:
        return Response(status_code=204)  # nobody waits for it: not an error on anybody's console
    except Busy:
        return fail(503, "Too many questions are waiting. Ask again in a moment.")
    except TooLong:
        return fail(504, f"This took longer than {answer.seconds:g} s and was given up.")
    except OSError as error:
        return fail(404, in_words(error))
    if isinstance(found, Response):
        return found
    if isinstance(found, tuple):
        about, arrays = found
        return Response(pack(plain(about), arrays), media_type="application/octet-stream")
    return JSONResponse(plain(found))


def _type(name: str) -> str:
    return TYPES.get(Path(name).suffix, "text/html")


def fail(status: int, *sentences: str) -> JSONResponse:
    """What is wrong, in sentences."""
    return JSONResponse({"error": list(sentences)}, status)


def plain(data: Any) -> Any:
    """Data in which every number is one: JSON knows neither NaN nor infinity."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {str(key): plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(value) for value in data]
    if isinstance(data, (str, int, bool)) or data is None:
        return data
    return json.loads(json.dumps(data, default=str))


async def _missing(request: Request, error: Exception) -> Response:
    return fail(getattr(error, "status_code", 404), "There is nothing at this address.")


async def _broken(request: Request, error: Exception) -> Response:
    return fail(500, "Something went wrong that should not; the terminal says what.")
