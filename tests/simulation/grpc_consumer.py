"""A gRPC consumer. It hides messages by its own time or lets the server renew them, changes the time, holds them for
long, acknowledges one or many, or gives them up.
"""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from pocketmq.grpc_endpoint import messages as m

from simulation.books import key_in
from simulation.grpc_channel import CallError
from simulation.grpc_program import CALL_SECONDS, PAUSE_SECONDS, GrpcProgram, ServerAt, server_of

ASSIGNMENT_SECONDS: Final = 5.0
POLLING_SECONDS: Final = 5
INVISIBLE_MS: Final = 10_000
"""The shortest time that brokers accept."""
RENEWED_MS: Final = 12_000
"""For how long the server hides a message that it renews, before it does so for the first time."""


class Received(NamedTuple):
    """One delivery."""

    key: str
    message_id: str
    handle: str
    asked_at: float
    """When the receive began."""
    is_first: bool
    is_renewed: bool
    queue_id: int
    offset: int


class GrpcConsumer(GrpcProgram):
    """A member of a group that consumes one topic. `is_sent_once`: a message of the topic has one copy."""

    def __init__(
        self, *client: Any, group: str, topic: str, is_sent_once: bool, slaves: list[ServerAt]
    ) -> None:
        super().__init__(*client, role=group)
        self._slaves = slaves
        self._name, self._topic, self._is_sent_once = group, topic, is_sent_once
        self._names = {"group": m.Resource(name=group), "topic": m.Resource(name=topic)}
        self._expression = m.FilterExpression(type=m.FilterType.TAG, expression="*")
        self._receiving: set[tuple[ServerAt, int]] = set()
        """Brokers and queues."""

    @property
    def settings(self) -> m.Settings:
        entry = m.SubscriptionEntry(topic=self._names["topic"], expression=self._expression)
        return m.Settings(
            client_type=m.ClientType.PUSH_CONSUMER,
            request_timeout=m.duration_of(3_000),
            subscription=m.Subscription(group=self._names["group"], subscriptions=[entry]),
        )

    def heartbeat(self) -> m.HeartbeatRequest:
        return m.HeartbeatRequest(group=self._names["group"], client_type=m.ClientType.PUSH_CONSUMER)

    def termination(self) -> m.NotifyClientTerminationRequest:
        return m.NotifyClientTerminationRequest(group=self._names["group"])

    def begin(self) -> None:
        self.spawn(self._follow_assignments())
        for server in self._slaves:
            self.spawn(self._read_slave(server))

    async def _follow_assignments(self) -> None:
        while True:
            with contextlib.suppress(CallError):
                reply = await self.ask_any(m.QueryAssignmentRequest(**self._names))
                for assignment in reply.assignments:
                    queue = assignment.message_queue
                    server = server_of(queue)
                    if (server, queue.id) not in self._receiving:
                        self._receiving.add((server, queue.id))
                        self.use(server)
                        self.spawn(self._receive(queue.broker.name, server, queue.id))
            await asyncio.sleep(ASSIGNMENT_SECONDS)

    async def _receive(self, broker_name: str, server: ServerAt, queue_id: int) -> None:
        attempts, attempt = 0, ""
        while True:
            if not attempt:
                attempts += 1
                attempt = f"{broker_name} {queue_id} {attempts}"
            is_renewed, asked_at = self.chance.random() < 0.5, self.now
            try:
                found = await self._received(server, queue_id, attempt, is_renewed=is_renewed)
            except CallError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue  # the same attempt once more
            attempt = ""
            if found:
                work = [self._note(broker_name, message, asked_at, is_renewed) for message in found]
                self._got(broker_name, server, work)
            else:
                await asyncio.sleep(self.chance.random() * PAUSE_SECONDS)

    async def _received(
        self, server: ServerAt, queue_id: int, attempt: str, *, is_renewed: bool
    ) -> list[m.Message]:
        """The messages of one receive. Raises `CallError`."""
        request = m.ReceiveMessageRequest(
            group=self._names["group"],
            message_queue=m.MessageQueue(topic=self._names["topic"], id=queue_id),
            filter_expression=self._expression,
            batch_size=self.chance.choice((1, 4, 32)),
            invisible_duration=m.duration_of(INVISIBLE_MS),
            auto_renew=is_renewed,
            long_polling_timeout=m.duration_of(POLLING_SECONDS * 1000),
            attempt_id=f"{self._metadata['x-mq-client-id']} {attempt}",
        )
        channel = await self.channel(server)
        replies = await channel.messages(request, POLLING_SECONDS + CALL_SECONDS)
        return [reply.message for reply in replies if reply.HasField("message")]

    async def _read_slave(self, server: ServerAt) -> None:
        """A slave keeps no receipts: what it delivered, its master would deliver too."""
        self.use(server)
        for number in itertools.count():
            await asyncio.sleep(self.chance.random() * 5 * PAUSE_SECONDS)
            self.books.counts["receives at slaves"] += 1
            with contextlib.suppress(CallError):
                for message in await self._received(server, 0, f"slave {number}", is_renewed=False):
                    self.books.violated(f"{self._name} got {key_in(message.body)} from a slave")

    def _got(self, broker_name: str, server: ServerAt, messages: list[Received]) -> None:
        """What one receive has brought."""
        self.spawn(self._work(broker_name, server, messages))

    def _note(self, broker_name: str, message: m.Message, asked_at: float, is_renewed: bool) -> Received:
        system, key = message.system_properties, key_in(message.body)
        self.books.shown(broker_name, int(system.receipt_handle.split(" ")[8]))
        self.books.popped(self._name, key)
        life = self.life if is_renewed and self._is_sent_once else None
        times = self.books.tried[key], asked_at
        self.books.receipts.received(self._name, key, broker_name, *times, life)
        self.books.trace(f"{self._name} receives {key}, delivery {system.delivery_attempt}")
        is_first = system.delivery_attempt == 1
        place = system.queue_id, system.queue_offset
        return Received(key, system.message_id, system.receipt_handle, asked_at, is_first, is_renewed, *place)

    async def _work(self, broker_name: str, server: ServerAt, messages: Iterable[Received]) -> None:
        """Decide about each message of a receive; those that are done soon are acknowledged together."""
        soon = []
        for one in messages:
            draw = self.chance.random()
            if draw < self.plan.share_failing:
                self.spawn(self._give_up(server, one))
            elif draw > 0.95 and one.is_renewed:
                self.spawn(self._hold(broker_name, server, one))
            elif draw > 0.9:
                self.spawn(self._postpone(broker_name, server, one))
            else:
                soon.append(one)
        await asyncio.sleep(self.chance.random() * 0.05)
        if soon:
            await self._acknowledge(broker_name, server, soon)

    async def _hold(self, broker_name: str, server: ServerAt, one: Received) -> None:
        """Work for longer than the message is hidden without being renewed."""
        self.books.counts["held messages"] += 1
        await asyncio.sleep(RENEWED_MS / 1000 + self.chance.random() * 10)
        await self._acknowledge(broker_name, server, [one])

    async def _postpone(self, broker_name: str, server: ServerAt, one: Received) -> None:
        """Hide it for another time, and acknowledge it with its new receipt."""
        self.books.counts["postponed messages"] += 1
        handle = await self._hide(server, one, INVISIBLE_MS)
        if handle is not None:
            await asyncio.sleep(self.chance.random() * INVISIBLE_MS / 2000)
            await self._acknowledge(broker_name, server, [one._replace(handle=handle, is_renewed=False)])

    async def _give_up(self, server: ServerAt, one: Received) -> None:
        """It comes again: soon, or when its time is over. What the server renews has to be given back."""
        self.books.counts["messages given up"] += 1
        if one.is_renewed or self.chance.random() < 0.5:
            await self._hide(server, one, self.chance.randrange(1000, 5000))

    async def _hide(self, server: ServerAt, one: Received, invisible_ms: int) -> str | None:
        """The new receipt; `None` if the broker refuses. Asked until it answers: it may then have changed the time
        more than once, and the message comes as often."""
        request = m.ChangeInvisibleDurationRequest(
            **self._names,
            receipt_handle=one.handle,
            message_id=one.message_id,
            invisible_duration=m.duration_of(invisible_ms),
        )
        self.books.receipts.let_go(self._name, one.key)
        while True:
            try:
                reply = await self.ask(server, request)
            except CallError:
                self.books.receipts.may_come_twice(self._name, one.key)
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if reply.status.code == m.Code.OK:
                return str(reply.receipt_handle)
            self.books.receipts.may_come_twice(self._name, one.key)
            return None

    async def _acknowledge(self, broker_name: str, server: ServerAt, messages: list[Received]) -> None:
        """They are consumed. If the answer is lost, they may come again."""
        for one in messages:
            self.books.listened(self._name, one.key)
            self.books.receipts.let_go(self._name, one.key)
        await self._send_acks(broker_name, server, messages)

    async def _send_acks(self, broker_name: str, server: ServerAt, messages: list[Received]) -> list[m.Code]:
        """What the broker says of each; nothing if its answer is lost."""
        receipts = self.books.receipts
        entries = [
            m.AckMessageEntry(message_id=one.message_id, receipt_handle=one.handle) for one in messages
        ]
        try:
            reply = await self.ask(server, m.AckMessageRequest(**self._names, entries=entries))
        except CallError:
            results: list[Any] = []
        else:
            results = reply.entries[:]
        codes = [m.Code(result.status.code) for result in results]
        for one, code in zip(messages, codes, strict=False):
            if code == m.Code.OK and self._is_sent_once:
                times = self.books.tried[one.key], one.asked_at
                marks = {"is_first": one.is_first, "is_renewed": one.is_renewed}
                receipts.acknowledged(self._name, one.key, broker_name, *times, **marks)
        counts = Counter(code.name for code in codes)
        self.books.trace(f"{self._name} acknowledges {len(messages)}: {dict(counts)}")
        return codes
