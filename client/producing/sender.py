"""One message to one of its topic's queues: choice of the queue, attempts, retries, and the broker's answer.

A producer sends with a `Sender`, and so does a consumer that sends a failed message back. What users call is in
`producer.py`; `send_retry.py` decides which failure is retried, `queue_choice.py` which queue is next. Mirrors
`DefaultMQProducerImpl.sendDefaultImpl` and `sendKernelImpl`.
"""

import asyncio
import functools
import itertools
import random
from collections.abc import Awaitable, Sequence

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import GetMaxOffset

from ..arguments import LONGEST_TIMEOUT_MS
from ..clock import steady_ms, wall_ms
from ..connections.connection import Connection
from ..connections.route import Route
from ..errors import (
    CallTimeout,
    ClientError,
    InvalidArgument,
    NotReachable,
    RouteNotFound,
    SendFailed,
    SendTimedOut,
)
from ..hooks.hooks import CommunicationMode, Hooks
from ..instance.groups import GroupProducer
from ..instance.instance import ClientInstance
from ..instance.route_book import UNUSED_ROUNDS
from ..settings.checks import OFF
from ..settings.producer_settings import ProducerSettings
from ..values.message import Message
from ..values.namespaces import Namespace
from ..values.results import SendResult, SendStatus
from .outgoing import Outgoing, OutgoingMaker
from .queue_choice import DETECTOR_PERIOD_MS, QueueTurn, invoke_selector, select_one_message_queue
from .send_arguments import Destination, queue_of_topic
from .send_hooks import SendHooks
from .send_retry import (
    NO_NAME_SERVER_EXCEPTION,
    NOT_FOUND_TOPIC_EXCEPTION,
    AttemptFailed,
    Failure,
    PostedSend,
    SendOutcomes,
    send_timed_out,
)


class Sender(GroupProducer):
    """The sending half of one group of one client instance."""

    def __init__(
        self, instance: ClientInstance, group: str, settings: ProducerSettings, hooks: Hooks | None = None
    ) -> None:
        super().__init__(group)
        self._instance = instance
        self.loop = instance.loop
        self._connections = instance.connections
        self._master, self._live = instance.routes.master, instance.connections.live
        self.settings = settings
        self.namespace = Namespace(settings.namespace)
        self.hooks: SendHooks | None = None
        if hooks is not None and (hooks.send or hooks.check_forbidden):
            self.hooks = SendHooks(instance, hooks, group, settings)
        self.retry_response_codes: set[int] = {*settings.retry_response_codes}
        self.outcomes = SendOutcomes(instance, settings, self.namespace)
        self._turns: dict[str, QueueTurn] = {}
        """Of the topics this group has sent to."""
        self._broker_turn = itertools.count(random.randrange(1 << 16))
        self._lasting = {self.namespace.wrap(topic) for topic in settings.topics}
        self.making = making = OutgoingMaker(group, settings, self.namespace, instance.ids)
        self.prepare, self.prepare_batch = making.prepare, making.prepare_batch
        self.prepare_message = making.prepare_message

    # -- the whole call

    def due_in(self, timeout_ms: float) -> float:
        """The loop time at which a call ends that begins now. Raises `InvalidArgument` for what is no time: a NaN among
        the timers of an event loop keeps others from being due."""
        try:
            if timeout_ms < LONGEST_TIMEOUT_MS:
                return self.loop.time() + timeout_ms / 1000
        except TypeError:
            pass
        raise InvalidArgument(f"timeout_ms must be milliseconds, fewer than 10^12, got {timeout_ms!r}")

    async def send(self, outgoing: Outgoing, due: float, *, attempts: int) -> SendResult:
        """Send to a queue of the sender's choice, at most `attempts` times, until `due` in loop time.

        Raises `SendFailed` if no attempt stored the message. A result whose status is not SEND_OK is a result too.
        """
        settings, loop = self.settings, self.loop
        began = loop.time()
        route = self.known_route(outgoing.topic) or await self.find_route(outgoing.topic, due)
        brokers_sent: list[str | None] = [None] * attempts
        last: AttemptFailed | None = None
        result: SendResult | None = None
        for attempt in range(attempts):
            now, limit = loop.time(), due
            if now >= due:
                last = AttemptFailed(Failure.TIMEOUT, CallTimeout(f"send to {outgoing.topic} is out of time"))
                break
            if attempt < attempts - 1 and settings.send_msg_max_timeout_per_request != OFF:
                limit = min(due, now + settings.send_msg_max_timeout_per_request / 1000)
            queue = self.choose(route, brokers_sent[attempt - 1] if attempt else None, restart=attempt > 0)
            brokers_sent[attempt] = queue.broker_name
            try:
                result = await self.attempt(outgoing, queue, limit)
            except AttemptFailed as failed:
                last = failed
                if not failed.is_retried(self.retry_response_codes):
                    break
                continue
            if result.status is SendStatus.SEND_OK or not settings.retry_another_broker_when_not_store_ok:
                return result
        if result is not None:
            return result
        assert last is not None
        tried = sum(name is not None for name in brokers_sent)
        brokers = ", ".join(name or "null" for name in brokers_sent)
        raise last.as_send_failed(
            f"Send [{tried}] times, still failed, cost [{int((loop.time() - began) * 1000)}]ms, "
            f"Topic: {outgoing.topic}, BrokersSent: [{brokers}]"
        )

    async def send_to(self, outgoing: Outgoing, queue: MessageQueue, due: float) -> SendResult:
        """One attempt to a given queue, or `SendFailed`."""
        try:
            return await self.attempt(outgoing, queue, due)
        except AttemptFailed as failed:
            failure = failed.as_send_failed()
        raise failure

    async def send_oneway(self, outgoing: Outgoing, queue: MessageQueue, due: float) -> None:
        """Write it without waiting for an answer; waits only while the connection accepts no more bytes."""
        address, context = await self._address_of(queue, due), None
        if self.hooks is not None:
            context = self.hooks.before(outgoing, queue, address, CommunicationMode.ONEWAY)
        connection = self._live(address) or await self._connections.get(address, due - self.loop.time())
        connection.notify(self.making.request(outgoing, queue), outgoing.body)
        await connection.drained()
        if self.hooks is not None and context is not None:
            self.hooks.after(context)

    # -- one attempt

    def attempt(
        self,
        outgoing: Outgoing,
        queue: MessageQueue,
        due: float,
        mode: CommunicationMode = CommunicationMode.SYNC,
    ) -> Awaitable[SendResult]:
        """Send once, note in the fault table how it went, and call the hooks. Raises `AttemptFailed`.

        Over a connection that exists, and without hooks, it is one write and a future.
        """
        connection = None if self.hooks is not None else self.live_connection(queue)
        if connection is None:
            return self._attempt_in_steps(outgoing, queue, due, mode)
        return self.post(PostedSend(self.outcomes, outgoing, queue, connection, due))

    async def _attempt_in_steps(
        self, outgoing: Outgoing, queue: MessageQueue, due: float, mode: CommunicationMode
    ) -> SendResult:
        context, began_ms, hooks = None, steady_ms(), self.hooks
        try:
            address = await self._address_of(queue, due)
            if hooks is not None:
                context = hooks.before(outgoing, queue, address, mode)
        except ClientError as error:
            raise self.outcomes.note_failure(Failure.CLIENT, error, queue, began_ms) from error
        after = None if hooks is None or context is None else functools.partial(hooks.after, context)
        if after is not None and mode is CommunicationMode.ASYNC:
            after()
        try:
            connection = self._live(address) or await self._connect(queue, address, due - self.loop.time())
            result = await self.post(PostedSend(self.outcomes, outgoing, queue, connection, due))
        except AttemptFailed as failed:
            if after is not None:
                after(error=failed.error)
            raise
        if after is not None:
            after(result=result)
        return result

    async def _connect(self, queue: MessageQueue, address: str, timeout_seconds: float | None) -> Connection:
        began_ms = steady_ms()
        try:
            return await self._connections.get(address, timeout_seconds)
        except CallTimeout as error:
            raise self.outcomes.note_failure(Failure.TIMEOUT, error, queue, began_ms) from error
        except NotReachable as error:
            raise self.outcomes.note_failure(Failure.CONNECT, error, queue, began_ms) from error

    async def reach(self, queue: MessageQueue) -> Connection:
        """The connection to a queue's master, for every send that waits for it; `AttemptFailed`."""
        began_ms = steady_ms()
        try:
            address = await self._address_of(queue, None)
        except ClientError as error:
            raise self.outcomes.note_failure(Failure.CLIENT, error, queue, began_ms) from error
        return await self._connect(queue, address, None)

    def live_connection(self, queue: MessageQueue) -> Connection | None:
        """The connection to a queue's master, if there is one."""
        address = self._master(queue.broker_name)
        return None if address is None else self._live(address)

    def post(self, send: PostedSend) -> asyncio.Future[SendResult]:
        """Write a send; `AttemptFailed` if the connection accepts no more."""
        outgoing, connection = send.outgoing, send.connection
        try:
            framed = self.making.framed(outgoing, send.chosen, connection)
            if framed is None:
                send.request = self.making.request(outgoing, send.chosen)
                connection.post_call(send, outgoing.body)
                return send.result
            opaque = connection.next_opaque()
        except NotReachable as error:
            raise self.outcomes.note_failure(Failure.SEND, error, send.chosen, send.began_ms) from error
        body = outgoing.body
        if body.__class__ is not bytes:
            body = bytes(body)  # the user may change it before the frame leaves
        send.request, template = framed
        head = template.head(opaque, outgoing.sys_flag, wall_ms(), outgoing.properties_text, len(body))
        connection.post_frame(send, opaque, head, body)
        return send.result

    # -- routes and queues

    def known_route(self, topic: str) -> Route | None:
        """The route of a topic, if it was found before and has queues."""
        route = self._instance.routes.publish_route(topic)
        return route if route is not None and route.queues else None

    async def _address_of(self, queue: MessageQueue, due: float | None) -> str:
        """The address of a queue's master; if it is unknown, a name server is asked, for the template too."""
        if self._master(queue.broker_name) is None:
            try:
                await self.find_route(queue.topic, due)
            except SendTimedOut:
                raise
            except SendFailed:
                pass  # `known_master` raises it in the official words
        return self._instance.routes.known_master(queue)

    async def find_route(self, topic: str, due: float | None = None) -> Route:
        """Ask a name server; `SendFailed` if neither the topic nor its template has a route: code 10005, or 10004 if no
        name server is configured; `SendTimedOut` if it does not answer until `due`."""
        if topic not in self._turns:
            self._turns[topic] = QueueTurn()
        settings, routes = self.settings, self._instance.routes
        try:
            async with asyncio.timeout_at(due):
                route = await routes.find_publish_route(
                    topic, settings.create_topic_key, settings.default_topic_queue_nums
                )
        except ClientError as error:
            code = NOT_FOUND_TOPIC_EXCEPTION if routes.name_servers.servers else NO_NAME_SERVER_EXCEPTION
            text = f"No route info of this topic: {topic}"
            if not isinstance(error, RouteNotFound):
                text = f"{text}; {error}"
            elif str(error).startswith(text):
                text = str(error)  # and the reason
            raise SendFailed(code, text, retriable=error.retriable) from error
        except TimeoutError as error:
            raise send_timed_out(
                f"No route info of this topic: {topic}; no name server answered in time"
            ) from error
        if not route.queues:
            raise SendFailed(NOT_FOUND_TOPIC_EXCEPTION, f"No queue to write to for topic {topic}")
        return route

    def published_topics(self) -> list[str]:
        return list(self._turns)

    def forget_unused_topics(self) -> None:
        """Called once a refresh of the routes: forget topics that were not sent to lately."""
        for topic, turn in [*self._turns.items()]:
            turn.unused_rounds += 1
            if turn.unused_rounds > UNUSED_ROUNDS and topic not in self._lasting:
                del self._turns[topic]

    def known_queue_for(self, destination: Destination, message: Message) -> MessageQueue | None:
        """The queue a user asks for; None if the topic's route must be asked for first."""
        needs_route = destination.queue is None
        route = self.known_route(self.namespace.wrap(message.topic)) if needs_route else None
        return self.resolve(destination, message, route)

    def resolve(self, destination: Destination, message: Message, route: Route | None) -> MessageQueue | None:
        """The queue a user asks for, as brokers know it; None if this needs the route of the topic.

        Raises `InvalidArgument` for a queue of another topic, `SendFailed` if no broker has the number, and
        `SelectionFailed`.
        """
        namespace, topic = self.namespace, message.topic
        if destination.queue is not None:
            return queue_of_topic(destination.queue, topic, namespace)
        if route is None:
            return None
        if destination.selector is not None:
            queues: Sequence[MessageQueue] = route.queues
            if namespace.name:
                queues = [namespace.unwrap_queue(queue) for queue in queues]
            chosen = invoke_selector(destination.selector, queues, message, destination.arg)
            return namespace.wrap_queue(chosen)
        numbered = [queue for queue in route.queues if queue.queue_id == destination.queue_id]
        if not numbered:
            text = f"topic {topic} has no queue {destination.queue_id} to write to"
            raise SendFailed(NOT_FOUND_TOPIC_EXCEPTION, text)
        return numbered[next(self._broker_turn) % len(numbered)]

    async def queue_for(self, destination: Destination, message: Message, due: float) -> MessageQueue:
        """The queue a user asks for. `SendFailed` if its topic has no route, or no queue of that number."""
        queue = self.known_queue_for(destination, message)
        if queue is None:
            route = await self.find_route(self.namespace.wrap(message.topic), due)
            queue = self.resolve(destination, message, route)
            assert queue is not None
        return queue

    def choose(self, route: Route, last_broker_name: str | None, *, restart: bool = False) -> MessageQueue:
        """The queue of the next attempt."""
        turn = self._turns.get(route.topic)
        if turn is None:
            turn = self._turns[route.topic] = QueueTurn()
        turn.unused_rounds = 0
        return select_one_message_queue(
            route.queues,
            turn,
            last_broker_name=last_broker_name,
            faults=self.outcomes.faults,
            restart=restart,
        )


async def detect_brokers(sender: Sender, instance: ClientInstance) -> None:
    """Ask brokers that failed whether they answer again (`start_detector_enable`), until cancelled.

    Mirrors `LatencyFaultToleranceImpl.detectByOneRound`.
    """
    faults, timeout_seconds = sender.outcomes.faults, sender.settings.detect_timeout / 1000
    while faults is not None:
        await asyncio.sleep(DETECTOR_PERIOD_MS / 1000)
        topic = next(iter(sender.published_topics()), None)
        for broker_name in faults.due_for_detection() if topic else ():
            address = instance.routes.master(broker_name, main_port=True)
            if address is None:
                faults.remove(broker_name)
                continue
            request = GetMaxOffset(topic=topic or "", queue_id=0, broker_name=broker_name)
            try:
                await instance.connections.call(address, request, timeout_seconds=timeout_seconds)
            except ClientError:
                continue
            faults.note_detected(broker_name)
