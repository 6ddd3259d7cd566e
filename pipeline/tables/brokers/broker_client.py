"""Routes, offsets and commits for code without an event loop, over connections that live as long as the process.

Spark reuses its workers for many tasks and micro-batches. `shared_client` gives each process one `BrokerClient` for an
address and keys. Its event loop runs only during a call. Requests are retried while a broker cannot be reached, until a
time limit. Not thread-safe; a Spark worker is single-threaded.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from pocketmq.client.access import NO_ACCESS_KEYS, Access
from pocketmq.client.connections.connection import Connection
from pocketmq.client.connections.name_servers import NameServers
from pocketmq.client.connections.pool import ConnectionPool
from pocketmq.client.connections.route import MASTER_ID, Route
from pocketmq.client.errors import ClientError, NotReachable, RequestRefused, RouteNotFound, UnreadableReply
from pocketmq.protocol.bodies.client import CheckClientRequestBody, build_subscription
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.requests.group import UpdateAndCreateSubscriptionGroup
from pocketmq.protocol.requests.membership import CheckClientConfig
from pocketmq.protocol.requests.name_server import GetAllTopicListFromNameServer
from pocketmq.protocol.requests.offset import (
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    SearchOffsetByTimestamp,
    UpdateConsumerOffset,
)
from pocketmq.protocol.wire.response_codes import ResponseCode

from ...errors import OptionError, PipelineError, SourceUnreachable, TopicMissing
from ..planning.positions import Offsets, Queue
from ..planning.ranges import QueueBounds
from ..planning.topic_options import SourceOptions
from .wait_log import Waiting, WaitLog, span

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 2.0
REQUESTS_AT_ONCE: Final = 64
ROUTE_SECONDS: Final = 30.0
"""How long a route is used before it is requested again, as in official clients."""
BUSY: Final = (ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.GO_AWAY)
"""Refusals of a moment: the same request may succeed later."""

ResultT = TypeVar("ResultT")
SubjectT = TypeVar("SubjectT", str, Queue)

_clients: dict[tuple[int, str, Access], "BrokerClient"] = {}


def shared_client(namesrv_addr: str, access: Access = NO_ACCESS_KEYS) -> "BrokerClient":
    """The process's client to these name servers; created at first use, and again after a fork."""
    key = (os.getpid(), namesrv_addr, access)
    found = _clients.get(key)
    if found is None:
        found = _clients[key] = BrokerClient(namesrv_addr, access)
    return found


class BrokerClient:
    """Requests to name servers and brokers from ordinary functions. `retry_timeout_ms` limits every request."""

    def __init__(
        self,
        namesrv_addr: str,
        access: Access = NO_ACCESS_KEYS,
        *,
        clock: Callable[[], float] = time.monotonic,
        beside: "BrokerClient | None" = None,
    ) -> None:
        """`clock` gives seconds; it measures the age of routes. A client made `beside` another has its loop, so
        coroutines may use both."""
        self.namesrv_addr = namesrv_addr
        self.name_server = f"the name server {namesrv_addr}"
        """What does not answer if no name server does, for a person."""
        self._access = access
        self._addresses = access.addresses()
        self._clock = clock
        self.notes = WaitLog()
        self._loop: asyncio.AbstractEventLoop = _new_loop() if beside is None else beside._loop
        self._connections: ConnectionPool | None = None
        self._routes: NameServers | None = None
        self._known: dict[str, tuple[Route, float]] = {}
        """Each route with the second at which it was received."""

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a coroutine to its end on this client's loop. Ctrl-C cancels it, and is raised once it has ended."""
        task = self._loop.create_task(work)
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    self._loop.run_until_complete(task)
            raise

    def close(self) -> None:
        """Close the connections. The next request opens them again."""
        if self._connections is not None:
            self._connections.close()
            self.run(self._connections.until_lost())
            self._connections = self._routes = None

    @contextmanager
    def closing(self) -> "Iterator[BrokerClient]":
        """For a client that only the caller uses: closes it, and its loop, when the `with` ends."""
        try:
            yield self
        finally:
            self.close()
            self._loop.close()

    # -- for coroutines of this package

    async def route(self, topic: str, *, fresh: bool = False) -> Route:
        """The route of a topic: the known one if it is younger than `ROUTE_SECONDS`, unless `fresh`.

        If no name server gives a new one, an older known route stays in use.
        """
        known, received_at = self._known.get(topic, (None, 0.0))
        now = self._clock()
        if known is not None and not fresh and now - received_at < ROUTE_SECONDS:
            return known
        try:
            route = await self._ask_name_servers(lambda servers: servers.find(topic))
        except (NotReachable, RouteNotFound):
            if known is None or fresh:
                raise
            route = known
        self._known[topic] = route, now
        return route

    async def _ask_name_servers(self, ask: Callable[[NameServers], Awaitable[ResultT]]) -> ResultT:
        """Errors as `NameServers`; those of connections say that it is a name server that does not answer."""
        if self._routes is None:
            self._routes = NameServers(self._open(), self.namesrv_addr)
        try:
            return await ask(self._routes)
        except UnreadableReply:
            raise
        except NotReachable as error:
            raise NotReachable(f"{self.name_server} does not answer: {error}") from error

    def remember(self, topic: str, route: Route) -> None:
        """Use this route until a fresh one is requested: a topic that a send will create has none yet."""
        self._known[topic] = route, self._clock()

    async def broker(self, topic: str, broker_name: str, *, fresh: bool = False) -> Connection:
        """A connection to the broker's master, or to a slave while no master is registered."""
        return (await self.broker_or_slave(topic, broker_name, fresh=fresh))[0]

    async def broker_or_slave(
        self, topic: str, broker_name: str, *, fresh: bool = False
    ) -> tuple[Connection, bool]:
        """The connection of `broker`, and whether it is one to a slave."""
        route = await self.route(topic, fresh=fresh)
        addresses = route.addresses.get(broker_name)
        if not addresses:
            raise RouteNotFound(f"broker {broker_name} is not in the route of {topic}")
        broker_id = MASTER_ID if MASTER_ID in addresses else min(addresses)
        address = addresses[broker_id]
        address = self._addresses.get(address, address)
        return await self._open().get(address), broker_id != MASTER_ID

    def _open(self) -> ConnectionPool:
        if self._connections is None:
            self._connections = ConnectionPool(hooks=self._access.hooks(), tls=self._access.tls())
        return self._connections

    async def with_retries(
        self,
        what: str,
        ask: Callable[[bool], Awaitable[ResultT]],
        retry_timeout_ms: int,
        *,
        retries: int | None = None,
        said_as: str = "",
        waited_seconds: float = 0.0,
    ) -> ResultT:
        """Call `ask(fresh)` until it succeeds. From the second call on `fresh` is true: the route may have changed.

        `SourceUnreachable`, with the last reason, after `retry_timeout_ms` or after `retries` retries. Only the first
        call may take longer than that: as long as its own requests may. A refusal that a retry cannot change is raised
        at once. What is waited for is logged (`wait_log.py`), as `said_as` if several requests wait for the same.
        `waited_seconds` of the time were spent before.
        """
        deadline = time.monotonic() + retry_timeout_ms / 1000 - waited_seconds
        pause, calls = FIRST_PAUSE_SECONDS, 0
        with Waiting(self.notes, said_as or what, retry_timeout_ms) as waiting:
            while True:
                try:
                    if not calls:
                        return await ask(False)
                    async with asyncio.timeout(deadline - time.monotonic()):
                        return await ask(True)
                except (NotReachable, RouteNotFound, RequestRefused) as error:
                    if isinstance(error, RequestRefused) and error.code not in BUSY:
                        raise PipelineError(f"{what}: {error}") from error
                    if calls == retries:
                        raise SourceUnreachable(
                            f"{what}: {error}, given up after {retries} retries"
                        ) from error
                    if time.monotonic() + pause > deadline:
                        raise SourceUnreachable(
                            f"{what}: {error}, given up after {span(retry_timeout_ms)}"
                        ) from error
                    waiting.reason = str(error)
                except ClientError as error:
                    raise OptionError(what, f": {error}") from error
                except TimeoutError as error:
                    raise SourceUnreachable(
                        f"{what}: {waiting.reason}, given up after {span(retry_timeout_ms)}"
                    ) from error
                calls += 1
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    # -- requests

    def topics(self, retry_timeout_ms: int) -> list[str]:
        """All topics of the name servers."""

        async def ask(fresh: bool) -> list[str]:
            reply = await self._ask_name_servers(lambda servers: servers.ask(GetAllTopicListFromNameServer()))
            return reply.topic_list

        return self.run(self.with_retries("list of topics", ask, retry_timeout_ms, said_as=self.name_server))

    def queues(self, topic: str, retry_timeout_ms: int) -> list[Queue]:
        """The readable queues of a topic, sorted. `TopicMissing` for a topic without a route."""
        return self.queues_of([topic], retry_timeout_ms)[topic] or []

    def queues_of(
        self,
        topics: Iterable[str],
        retry_timeout_ms: int,
        *,
        known: Collection[str] = (),
        waits: bool = False,
    ) -> dict[str, list[Queue] | None]:
        """The readable queues of each topic, sorted, by fresh routes.

        A topic without a route is an error, `TopicMissing`, unless it is one of `known`: those existed before, and a
        broker that restarts takes its routes along. Such a topic has None here; if `waits` is true, its route is
        waited for, and `SourceUnreachable` is raised after `retry_timeout_ms`.
        """

        async def ask(topic: str, fresh: bool) -> list[Queue] | None:
            try:
                route = await self.route(topic, fresh=True)
            except RouteNotFound as error:
                if topic in known and not waits:
                    return None
                # At first, a starting broker may not have registered its topics yet.
                if fresh and topic not in known:
                    raise TopicMissing(f"topic {topic}", "does not exist on any broker") from error
                raise
            return sorted(Queue(topic, queue.broker_name, queue.queue_id) for queue in route.read_queues())

        return self.ask_each("route of", sorted(set(topics)), ask, retry_timeout_ms, said_as=self.name_server)

    def check_expression(self, options: SourceOptions, queues: Iterable[Queue]) -> None:
        """Let the brokers of these queues check the expression (official checkClientInBroker).

        `OptionError` if a broker cannot read it, or filters by tags only.
        """

        async def ask(queue: Queue, fresh: bool) -> None:
            connection = await self.broker(queue.topic, queue.broker_name, fresh=fresh)
            data = build_subscription(queue.topic, options.expression, options.filter_type, sub_version=0)
            body = CheckClientRequestBody(client_id="spark", group=options.group, subscription_data=data)
            try:
                await connection.call(CheckClientConfig(), body.encode())
            except RequestRefused as refusal:
                if refusal.code in BUSY:
                    raise
                raise OptionError(
                    "option subExpression",
                    f": {queue.broker_name} cannot filter by {options.expression!r}: {refusal}",
                ) from refusal

        self.ask_each("check of the expression,", queues, ask, options.plan_timeout_ms)

    def bounds(self, queues: Iterable[Queue], retry_timeout_ms: int) -> dict[Queue, QueueBounds]:
        """First offset and one past the last of each queue, and whether a slave reported them."""

        async def ask(queue: Queue, fresh: bool) -> QueueBounds:
            connection, is_slave = await self.broker_or_slave(queue.topic, queue.broker_name, fresh=fresh)
            low, high = _about(GetMinOffset, queue), _about(GetMaxOffset, queue)
            lowest, highest = await asyncio.gather(connection.call(low), connection.call(high))
            least = max(lowest.offset, 0)
            return QueueBounds(least, max(highest.offset, least), is_of_slave=is_slave)

        return self.ask_each("bounds,", queues, ask, retry_timeout_ms)

    def offsets_at(self, times: dict[Queue, int], retry_timeout_ms: int) -> Offsets:
        """The first message stored at or after a time (epoch ms), the end if there is none."""

        async def ask(queue: Queue, fresh: bool) -> int:
            connection = await self.broker(queue.topic, queue.broker_name, fresh=fresh)
            request = _about(SearchOffsetByTimestamp, queue, timestamp=times[queue], boundary_type="LOWER")
            return (await connection.call(request)).offset

        return self.ask_each("search by time,", times, ask, retry_timeout_ms)

    def committed(
        self, group: str, queues: Iterable[Queue], retry_timeout_ms: int
    ) -> dict[Queue, int | None]:
        """The offsets that a group has committed; None for a queue without one."""

        async def ask(queue: Queue, fresh: bool) -> int | None:
            connection = await self.broker(queue.topic, queue.broker_name, fresh=fresh)
            request = _about(QueryConsumerOffset, queue, consumer_group=group, set_zero_if_not_found=False)
            try:
                return (await connection.call(request)).offset
            except RequestRefused as refusal:
                if refusal.code == ResponseCode.QUERY_NOT_FOUND:
                    return None
                raise

        return self.ask_each(f"offsets of {group},", queues, ask, retry_timeout_ms)

    def commit(self, group: str, offsets: Offsets, retry_timeout_ms: int) -> None:
        """Commit a group's offsets: the next messages to read, as lag tools show them."""

        async def ask(queue: Queue, fresh: bool) -> None:
            connection = await self.broker(queue.topic, queue.broker_name, fresh=fresh)
            request = _about(UpdateConsumerOffset, queue, consumer_group=group, commit_offset=offsets[queue])
            try:
                await connection.call(request)
            except RequestRefused as refusal:
                if refusal.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                    raise
                # 5.x brokers create a group when it first pulls, and store no offset of an unknown group.
                config = SubscriptionGroupConfig(group_name=group)
                await connection.call(UpdateAndCreateSubscriptionGroup(), config.encode())
                await connection.call(request)

        self.ask_each(f"commit of {group},", offsets, ask, retry_timeout_ms)

    def ask_each(
        self,
        what: str,
        subjects: Iterable[SubjectT],
        ask: Callable[[SubjectT, bool], Awaitable[ResultT]],
        retry_timeout_ms: int,
        *,
        said_as: str = "",
    ) -> dict[SubjectT, ResultT]:
        """One answer for each topic or queue, `REQUESTS_AT_ONCE` requests at a time; none is left after a failure."""
        all_subjects = list(subjects)
        limit = asyncio.Semaphore(REQUESTS_AT_ONCE)

        async def ask_with_retries(subject: SubjectT) -> ResultT:
            async with limit:
                return await self.with_retries(
                    f"{what} {subject}",
                    lambda fresh: ask(subject, fresh),
                    retry_timeout_ms,
                    said_as=said_as or f"{what} {_place(subject)}",
                )

        found = self.run(gather_all(map(ask_with_retries, all_subjects)))
        return dict(zip(all_subjects, found, strict=True))


async def gather_all(work: Iterable[Coroutine[Any, Any, ResultT]]) -> list[ResultT]:
    """The results of coroutines that run together. After a failure the others are ended before it is raised: the loop
    is that of the process, and runs again."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _about(kind: Callable[..., ResultT], queue: Queue, **fields: Any) -> ResultT:
    """A request about a queue."""
    return kind(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name, **fields)


def _place(subject: str | Queue) -> str:
    """What does not answer if a request about a topic or a queue is not answered."""
    return subject if isinstance(subject, str) else f"{subject.topic} at {subject.broker_name}"


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
