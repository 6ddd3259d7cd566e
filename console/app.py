"""What each request passes: the guard, the function of its address, and errors made to JSON."""

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pocketmq.broker.bounded_cache import SaidOnce
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from . import openapi  # noqa: F401  its views fill OPERATIONS
from .answers import OPERATIONS, Call, Operation, Problem, as_error, query_of
from .guard import Guard
from .server_access import NotRunning, ServerAccess

_log = logging.getLogger("pocketmq.console")

PAGE: Final = Path(__file__).parent / "page"
_PAGE_FILES: Final = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    **dict.fromkeys(
        ("page.js", "elements.js", "cluster.js", "messages.js", "stand_in.js"),
        "text/javascript; charset=utf-8",
    ),
}
_PAGE_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


class GuardMiddleware:
    """Refuses requests of foreign pages before anything else looks at them."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            refusal = self._guard.refusal(headers.get(b"host"), headers.get(b"origin"))
            if refusal is not None:
                await as_error(Problem(403, refusal))(scope, receive, send)
                return
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            return  # the port is closing; uvicorn's task, which ends here, would log a stack


async def page(request: Request) -> Response:
    """The page, its style and its script."""
    name = request.path_params.get("file", "index.html")
    if name not in _PAGE_FILES:
        raise Problem(404, f"there is no file {name:.60}")
    return Response((PAGE / name).read_bytes(), media_type=_PAGE_FILES[name], headers=_PAGE_HEADERS)


class OtherBrokers:
    """`/brokers/b1/api/topics`: the same addresses for each broker of a cluster."""

    def __init__(self, accesses: Callable[[], Mapping[str, ServerAccess]]) -> None:
        self._accesses = accesses
        self._apps: dict[str, Starlette] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["broker"]
        if name not in self._apps:
            accesses = self._accesses()
            if name not in accesses:
                problem = Problem(404, f"there is no broker {name:.60}", list(accesses))
                await as_error(problem)(scope, receive, send)
                return
            self._apps[name] = Starlette(routes=_routes(accesses[name]), exception_handlers=_HANDLERS)
        await self._apps[name](scope, receive, send)


def application(
    access: ServerAccess, guard: Guard, others: Callable[[], Mapping[str, ServerAccess]] | None = None
) -> Starlette:
    """The whole port as an ASGI application."""
    paths: list[BaseRoute] = [] if others is None else [Mount("/brokers/{broker}", app=OtherBrokers(others))]
    return Starlette(
        routes=paths + _routes(access),
        middleware=[Middleware(GuardMiddleware, guard=guard)],
        exception_handlers=_HANDLERS,
    )


def _routes(access: ServerAccess) -> list[BaseRoute]:
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    paths = [_resource(access, path, methods) for path, methods in by_path.items()]
    return [Route("/", page), *paths, Route("/{file}", page)]


def _resource(access: ServerAccess, path: str, methods: Mapping[str, Operation]) -> Route:
    """One route that chooses by method; any other method is answered with 405 and the names of the allowed ones."""

    async def answer(request: Request) -> Response:
        operation = methods.get("GET" if request.method == "HEAD" else request.method)
        if operation is None:
            raise Problem(405, f"{request.method} is not possible here", sorted(methods))
        given = query_of(request, operation.query) if operation.query else {}
        return await operation.answering(Call(access, request, given))

    return Route(path, answer, methods=["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])


async def _error(request: Request, error: Exception) -> Response:
    match error:
        case Problem():
            return as_error(error)
        case HTTPException(status_code=404):
            return as_error(Problem(404, f"there is nothing at {request.url.path:.100}"))
        case HTTPException():
            return as_error(Problem(error.status_code, error.detail))
        case ClientDisconnect():  # before the end of its body: no failure of ours, and nobody reads this answer
            return as_error(Problem(400, "the client has closed the connection"))
        case NotRunning():
            return as_error(Problem(409, str(error)))
    traces = traceback.extract_tb(error.__traceback__)
    is_new = _failures.first((type(error), traces[-1].filename, traces[-1].lineno))
    words = "%s %.200s: %s: %.200s"
    _log.error(
        words, request.method, request.url.path, type(error).__name__, error, exc_info=is_new and error
    )
    return as_error(Problem(500, f"{type(error).__name__}: {error!s:.200}"))


_failures: Final = SaidOnce()
"""Their stacks are logged once for each place."""
_HANDLERS: Final[dict[Any, Any]] = dict.fromkeys(
    (Problem, NotRunning, ClientDisconnect, HTTPException, Exception), _error
)
