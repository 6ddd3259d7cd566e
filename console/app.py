"""What each request passes: the guard, the function of its address, and errors made to JSON."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pocketmq.broker.said_once import SaidOnce
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from . import cluster_views, message_views, stand_in_views
from .answers import (
    Problem,
    as_error,
    as_json,
    needed,
    number_of,
    query_of,
    read_body,
    read_fields,
    read_object,
)
from .guard import Guard
from .metrics import metrics_text
from .openapi import OPERATIONS, Operation, openapi
from .pages import Names, Page, Reading
from .server_access import NotRunning, ServerAccess
from .stand_in_views import Streams
from .values import Health, NewTopic, Step, TopicChanges

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
DEFAULT_NAMES: Final = 1000
MAX_NAMES: Final = 10_000
"""Topics or groups in one answer."""
Query = dict[str, str]
"""The parameters of an address, checked to have known names; empty ones are left out."""
Answering = Callable[[Request, Query], Awaitable[Response]]


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


class Api:
    """The methods that `openapi.OPERATIONS` names. Each returns the answer, or raises `Problem`."""

    def __init__(self, access: ServerAccess) -> None:
        self._access = access
        self._streams = Streams(access)
        self._reading = Reading()

    @property
    def _broker(self) -> Any:
        return self._access.broker

    # -- health, metrics, description

    async def health(self, request: Request, given: Query) -> Response:
        return as_json(Health("up"))

    async def metrics(self, request: Request, given: Query) -> Response:
        node = self._access.node
        async with self._reading as pause:
            text = await metrics_text(node, pause)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: Request, given: Query) -> Response:
        return as_json(openapi())

    # -- topics and messages

    async def topics(self, request: Request, given: Query) -> Response:
        names = _names_of(given)
        page, with_system = Page(names.limit), given.get("all") == "true"
        async with self._reading as pause:
            last = await cluster_views.topics(self._broker, page, names, pause, with_system=with_system)
        return page.response(request, **({} if last is None else {"after": last}))

    async def make_topic(self, request: Request, given: Query) -> Response:
        words = await read_object(request, NewTopic.__struct_fields__)
        return await self._topic_as_json(await cluster_views.make_topic(self._access, words), 201)

    async def topic(self, request: Request, given: Query) -> Response:
        return await self._topic_as_json(request.path_params["topic"])

    async def change_topic(self, request: Request, given: Query) -> Response:
        words = await read_object(request, TopicChanges.__struct_fields__)
        await cluster_views.change_topic(self._access, request.path_params["topic"], words)
        return await self._topic_as_json(request.path_params["topic"])

    async def _topic_as_json(self, name: str, status: int = 200) -> Response:
        async with self._reading as pause:
            return as_json(await cluster_views.topic(self._broker, name, pause), status)

    async def messages(self, request: Request, given: Query) -> Response:
        limit = number_of(given, "limit", 100, message_views.MAX_MESSAGES)
        page = Page(limit)
        async with self._reading as pause:
            topic = request.path_params["topic"]
            following = await message_views.messages(self._broker, topic, given, page, limit, pause)
        return page.response(request, **following)

    async def send_message(self, request: Request, given: Query) -> Response:
        sent = await read_fields(request, message_views.SentMessage)
        return as_json(
            await message_views.send_message(self._access, request.path_params["topic"], sent), 201
        )

    # -- groups

    async def groups(self, request: Request, given: Query) -> Response:
        names = _names_of(given)
        page = Page(names.limit)
        async with self._reading as pause:
            last = await cluster_views.groups(self._broker, page, names, pause)
        return page.response(request, **({} if last is None else {"after": last}))

    async def group(self, request: Request, given: Query) -> Response:
        broker, name = self._known_group(request)
        async with self._reading as pause:
            return as_json(await cluster_views.group(broker, name, pause))

    async def group_queues(self, request: Request, given: Query) -> Response:
        broker, name = self._known_group(request)
        holders = await cluster_views.holders(broker, name)
        async with self._reading as pause:
            return as_json(await cluster_views.group_queues(broker, name, holders, pause))

    async def lag(self, request: Request, given: Query) -> Response:
        broker, name = self._known_group(request)
        async with self._reading as pause:
            return as_json(await cluster_views.lag(broker, name, pause))

    def _known_group(self, request: Request) -> tuple[Any, str]:
        broker, name = self._broker, request.path_params["group"]
        cluster_views.check_group(broker, name)
        return broker, name

    async def explain(self, request: Request, given: Query) -> Response:
        group, topic = needed(given, "group"), needed(given, "topic")
        async with self._reading as pause:
            return as_json(await cluster_views.explained(self._broker, group, topic, pause))

    # -- faults, requests, time, state

    async def words(self, request: Request, given: Query) -> Response:
        return as_json(self._access.rules.words())

    async def faults(self, request: Request, given: Query) -> Response:
        page, following = await stand_in_views.faults(self._access, given, self._reading)
        return page.response(request, **following)

    async def add_fault(self, request: Request, given: Query) -> Response:
        return as_json(stand_in_views.add_fault(self._access, await read_object(request)), 201)

    async def remove_faults(self, request: Request, given: Query) -> Response:
        self._access.rules.clear()
        return as_json([])

    async def remove_fault(self, request: Request, given: Query) -> Response:
        stand_in_views.remove_fault(self._access, request.path_params["rule"])
        page, _ = await stand_in_views.faults(self._access, {}, self._reading)
        return page.response(request)

    async def requests(self, request: Request, given: Query) -> Response:
        page, following = await stand_in_views.list_requests(self._access, given, self._reading)
        return page.response(request, **following)

    async def request_stream(self, request: Request, given: Query) -> Response:
        self._streams.check(given)
        return StreamingResponse(
            self._streams.events(given), media_type="text/event-stream", headers={"cache-control": "no-cache"}
        )

    async def clock(self, request: Request, given: Query) -> Response:
        return as_json(stand_in_views.clock_value(self._access))

    async def advance(self, request: Request, given: Query) -> Response:
        words = await read_object(request, Step.__struct_fields__)
        return as_json(await stand_in_views.advance(self._access, words))

    async def ledger(self, request: Request, given: Query) -> Response:
        if "message" in given or ("topic" in given and "group" in given):
            return as_json(await stand_in_views.verdict(self._access, given, self._reading))
        page, following = await stand_in_views.verdicts(self._access, given, self._reading)
        return page.response(request, **following)

    async def reset(self, request: Request, given: Query) -> Response:
        await stand_in_views.reset(self._access)
        return as_json({})

    async def snapshot(self, request: Request, given: Query) -> Response:
        data = await stand_in_views.snapshots_of(self._access).take()
        return Response(data, media_type="application/octet-stream")

    async def restore(self, request: Request, given: Query) -> Response:
        stand_in_views.snapshots_of(self._access)
        data = await read_body(request, stand_in_views.SNAPSHOT_BYTES)
        await stand_in_views.restore(self._access, data)
        return as_json({})


def _names_of(given: Query) -> Names:
    """Which names are asked for."""
    limit = number_of(given, "limit", DEFAULT_NAMES, MAX_NAMES)
    return Names(given.get("filter", ""), given.get("after", ""), limit)


async def page(request: Request) -> Response:
    """The page, its style and its script."""
    name = request.path_params.get("file", "index.html")
    if name not in _PAGE_FILES:
        raise Problem(404, f"there is no file {name:.60}")
    return Response(
        (PAGE / name).read_bytes(),
        media_type=_PAGE_FILES[name],
        headers=_PAGE_HEADERS,
    )


class OtherBrokers:
    """`/brokers/b1/api/topics`: the same addresses for each broker of a cluster."""

    def __init__(self, accesses: Mapping[str, ServerAccess]) -> None:
        self._accesses = accesses
        self._apps: dict[str, Starlette] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"]["broker"]
        access = self._accesses.get(name)
        if access is None:
            problem = Problem(404, f"there is no broker {name:.60}", list(self._accesses))
            await as_error(problem)(scope, receive, send)
            return
        if name not in self._apps:
            self._apps[name] = Starlette(routes=_routes(access), exception_handlers=_HANDLERS)
        await self._apps[name](scope, receive, send)


def application(
    access: ServerAccess, guard: Guard, others: Mapping[str, ServerAccess] | None = None
) -> Starlette:
    """The whole port as an ASGI application."""
    paths: list[BaseRoute] = [] if others is None else [Mount("/brokers/{broker}", app=OtherBrokers(others))]
    return Starlette(
        routes=paths + _routes(access),
        middleware=[Middleware(GuardMiddleware, guard=guard)],
        exception_handlers=_HANDLERS,
    )


def _routes(access: ServerAccess) -> list[BaseRoute]:
    api = Api(access)
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    paths = [_resource(api, path, methods) for path, methods in by_path.items()]
    return [Route("/", page), *paths, Route("/{file}", page)]


def _resource(api: Api, path: str, methods: Mapping[str, Operation]) -> Route:
    """One route that chooses by method; any other method is answered with 405 and the names of the allowed ones."""

    async def answer(request: Request) -> Response:
        operation = methods.get("GET" if request.method == "HEAD" else request.method)
        if operation is None:
            raise Problem(405, f"{request.method} is not possible here", sorted(methods))
        given = query_of(request, operation.query) if operation.query else {}
        handler: Answering = getattr(api, operation.handler)
        return await handler(request, given)

    return Route(path, answer, methods=["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return as_error(error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = f"there is nothing at {request.url.path:.100}" if error.status_code == 404 else error.detail
    return as_error(Problem(error.status_code, text))


async def _gone(request: Request, error: Exception) -> Response:
    """Before the end of its body: no failure of ours, and nobody reads this answer."""
    return as_error(Problem(400, "the client has closed the connection"))


async def _not_running(request: Request, error: Exception) -> Response:
    return as_error(Problem(409, str(error)))


async def _failure(request: Request, error: Exception) -> Response:
    traces = traceback.extract_tb(error.__traceback__)
    is_new = _failures.first((type(error), traces[-1].filename, traces[-1].lineno))
    words = "%s %.200s: %s: %.200s"
    _log.error(
        words, request.method, request.url.path, type(error).__name__, error, exc_info=is_new and error
    )
    return as_error(Problem(500, f"{type(error).__name__}: {error!s:.200}"))


_failures: Final = SaidOnce()
"""Their stacks are logged once for each place."""
_HANDLERS: Final[dict[Any, Any]] = {
    Problem: _problem,
    NotRunning: _not_running,
    ClientDisconnect: _gone,
    HTTPException: _http_error,
    Exception: _failure,
}
