"""A gRPC producer. It sends a message once: a lost answer is a failed send."""

import asyncio
from typing import Any, Final

from pocketmq.client import SendStatus
from pocketmq.grpc_endpoint import messages as m
from pocketmq.protocol.message.topics import HALF_TOPIC

from simulation.books import commits, key_in
from simulation.grpc_channel import CallError
from simulation.grpc_program import GrpcProgram, ServerAt, server_of

_STATUSES: Final = {
    m.Code.OK: SendStatus.SEND_OK,
    m.Code.MASTER_PERSISTENCE_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    m.Code.SLAVE_PERSISTENCE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    m.Code.HA_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


MESSAGE_GROUPS: Final = "abc"


class GrpcProducer(GrpcProgram):
    """Sends to these topics: messages to the first, in transactions to the second, delayed ones to the third,
    and those of a message group one after another to the last."""

    def __init__(self, *client: Any, plain: str, paid: str, delayed: str | None, ordered: str | None) -> None:
        super().__init__(*client, role="producer")
        self._plain, self._paid, self._delayed, self._ordered = plain, paid, delayed, ordered
        self._turns = {group: asyncio.Lock() for group in MESSAGE_GROUPS}
        self._routes: dict[str, list[tuple[str, ServerAt]]] = {}

    @property
    def settings(self) -> m.Settings:
        topics = [self._plain, self._paid, *([self._ordered] if self._ordered else [])]
        return m.Settings(
            client_type=m.ClientType.PRODUCER,
            request_timeout=m.duration_of(3_000),
            publishing=m.Publishing(topics=[m.Resource(name=topic) for topic in topics]),
        )

    def heartbeat(self) -> m.HeartbeatRequest:
        return m.HeartbeatRequest(client_type=m.ClientType.PRODUCER)

    async def send(self) -> None:
        """One send, of a kind by chance."""
        if self._ordered is not None and self.chance.random() < 0.4:
            await self._send_in_order(self._ordered, self.chance.choice(MESSAGE_GROUPS))
            return
        draw = self.chance.random()
        if draw < 0.3:
            await self._pay()
        elif draw < 0.4 and self._delayed is not None:
            await self._send_delayed(self._delayed)
        else:
            keys = [self._new_key() for _ in range(3 if draw > 0.85 else 1)]
            sent = await self._stored(
                self._plain, [self._message(self._plain, key, **self._order()) for key in keys]
            )
            for key, (broker_name, _, entry) in zip(keys, sent, strict=False):
                self.books.stored(
                    key, _STATUSES[entry.status.code], (broker_name, self._plain, -1), entry.offset
                )

    def _new_key(self) -> str:
        return self.books.new_key(f"grpc-{self.machine.name}")

    def _order(self) -> dict[str, str]:
        """Some messages have a queue by their group."""
        return {"message_group": self.chance.choice(MESSAGE_GROUPS)} if self.chance.random() < 0.3 else {}

    def _message(self, topic: str, key: str, **system: Any) -> m.Message:
        now = m.timestamp_of(self.machine.clock.now_ms())
        return m.Message(
            topic=m.Resource(name=topic),
            system_properties=m.SystemProperties(
                message_id=key, keys=[key], born_timestamp=now, born_host=self.machine.name, **system
            ),
            body=f"{key} ".encode().ljust(self.chance.choice((20, 20, 300, 3000)), b"."),
        )

    async def _stored(
        self, topic: str, messages: list[m.Message], message_group: str = ""
    ) -> list[tuple[str, ServerAt, m.SendResultEntry]]:
        """Where and how each message is stored; empty if perhaps one is not. A message group has one broker."""
        try:
            route = await self._route(topic)
            if message_group:
                broker_name, server = sorted(route)[ord(message_group) % len(route)]
            else:
                broker_name, server = self.chance.choice(route)
            reply = await self.ask(server, m.SendMessageRequest(messages=messages))
            entries = reply.entries[:]
            if not entries or any(entry.status.code not in _STATUSES for entry in entries):
                raise CallError(f"refused with {reply.status.code}")
        except CallError as error:
            self._routes.pop(topic, None)
            self.books.counts["failed sends"] += len(messages)
            self.books.trace(f"not sent: {error}")
            return []
        self.use(server)
        return [(broker_name, server, entry) for entry in entries]

    async def _route(self, topic: str) -> list[tuple[str, ServerAt]]:
        """The masters with queues for it. Raises `CallError`."""
        if topic not in self._routes:
            reply = await self.ask_any(m.QueryRouteRequest(topic=m.Resource(name=topic)))
            queues = [queue for queue in reply.message_queues if queue.broker.id == 0]
            found = dict.fromkeys((queue.broker.name, server_of(queue)) for queue in queues)
            if not found:
                raise CallError(f"no route: {reply.status.code}")
            self._routes[topic] = list(found)
        return self._routes[topic]

    async def _send_in_order(self, topic: str, message_group: str) -> None:
        async with self._turns[message_group]:
            key, named = self._new_key(), f"{self.machine.name} {message_group}"
            message = self._message(topic, key, message_group=named)
            for broker_name, _, entry in await self._stored(topic, [message], message_group):
                status = _STATUSES[entry.status.code]
                self.books.stored(key, status, (broker_name, topic, -1), entry.offset)
                if status is SendStatus.SEND_OK:
                    self.books.stored_in_order(key, named, broker_name, entry.offset)

    async def _send_delayed(self, topic: str) -> None:
        seconds, key = self.chance.randrange(2, 30), self._new_key()
        due = m.timestamp_of(self.machine.clock.now_ms() + seconds * 1000)
        self.books.delayed(key, seconds - 1)
        for broker_name, server, entry in await self._stored(
            topic, [self._message(topic, key, delivery_timestamp=due)]
        ):
            self.books.promised_at(key, _STATUSES[entry.status.code], (broker_name, topic, -1), None)
            if "recalls" in self.plan.uses and entry.recall_handle and self.chance.random() < 0.5:
                await asyncio.sleep(self.chance.random() * seconds)
                await self._recall(server, topic, key, broker_name, entry.recall_handle)

    async def _recall(
        self, server: ServerAt, topic: str, key: str, broker_name: str, recall_handle: str
    ) -> None:
        request = m.RecallMessageRequest(topic=m.Resource(name=topic), recall_handle=recall_handle)
        recalls = self.books.recalls
        recalls.about_to_recall(key)
        try:
            reply = await self.ask(server, request)
        except CallError:
            self.books.counts["failed recalls"] += 1
            return
        if reply.status.code == m.Code.OK:
            self.books.recalled(key, broker_name, reply.message_id)
        else:
            self.books.counts["refused recalls"] += 1
            recalls.refused(key)

    async def _pay(self) -> None:
        """The producer ends the transaction, or is asked about it later."""
        key, knows = self._new_key(), self.chance.random() < 0.7
        if not commits(key):
            self.books.rolled_back.add(key)
        half = self._message(self._paid, key, message_type=m.MessageType.TRANSACTION)
        for broker_name, server, entry in await self._stored(self._paid, [half]):
            if entry.status.code != m.Code.OK:
                continue  # its producer knows of no transaction
            self.books.counts["gRPC transactions"] += 1
            if commits(key):
                place = broker_name, HALF_TOPIC, 0
                self.books.promised_at(key, SendStatus.SEND_OK, place, entry.offset)
            await asyncio.sleep(self.chance.random() * 0.2)
            if knows:
                ids = entry.message_id, entry.transaction_id
                await self._end(server, key, *ids, m.TransactionSource.SOURCE_CLIENT)

    def on_command(self, server: ServerAt, command: m.TelemetryCommand) -> None:
        if command.HasField("recover_orphaned_transaction_command"):
            orphan = command.recover_orphaned_transaction_command
            key, message_id = key_in(orphan.message.body), orphan.message.system_properties.message_id
            ids = message_id, orphan.transaction_id
            self.spawn(self._end(server, key, *ids, m.TransactionSource.SOURCE_SERVER_CHECK))

    async def _end(
        self, server: ServerAt, key: str, message_id: str, transaction_id: str, source: m.TransactionSource
    ) -> None:
        verdict = m.TransactionResolution.COMMIT if commits(key) else m.TransactionResolution.ROLLBACK
        request = m.EndTransactionRequest(
            topic=m.Resource(name=self._paid),
            message_id=message_id,
            transaction_id=transaction_id,
            resolution=verdict,
            source=source,
        )
        try:
            await self.ask(server, request)
        except CallError:
            self.books.counts["failed ends"] += 1
