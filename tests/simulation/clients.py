"""The programs that clients run: the real producers and consumers, with listeners that keep the books."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple

from pocketmq.client import (
    ClientError,
    ConsumeFromWhere,
    LitePullConsumer,
    LocalTransactionState,
    Message,
    MessageExt,
    MessageModel,
    Producer,
    PushConsumer,
    Requester,
    RequestRefused,
    SendResult,
    TransactionProducer,
)

from simulation import dead_letters
from simulation.books import Books, Missing, Place, commits, key_in, key_of
from simulation.grpc_consumer import GrpcConsumer
from simulation.grpc_in_order import IN_ORDER, GrpcOrderedConsumer
from simulation.grpc_producer import GrpcProducer
from simulation.grpc_program import ServerAt
from simulation.machines import Machine
from simulation.plan import Plan

RETRY_SECONDS = 1.0
SHARDS = 3
TIMER_PRECISION_SECONDS = 1
POP_INVISIBLE_MS = 10_000
DELAY_SECONDS = {1: 1, 2: 5, 3: 10}
"""Of the first delay levels."""
NEVER_FAIL = ("broadcast", "refusing", "dead letters")
"""Listeners that do not fail by chance."""
SENT = {"batches", "delayed", "ordered", "transactions", "requests", "dead letters", "recalls"}
"""Uses with sends of their own."""


class Group(NamedTuple):
    """A group of consumers, on every machine that consumes."""

    name: str
    topic: str
    kind: str


ALL_GROUPS = (
    ("", Group("g-orders", "t-orders", "concurrent")),
    ("ordered", Group("g-ordered", "t-ordered", "ordered")),
    ("delayed", Group("g-delayed", "t-delayed", "concurrent")),
    ("transactions", Group("g-paid", "t-paid", "concurrent")),
    ("lite pull", Group("g-lite", "t-orders", "lite pull")),
    ("pop", Group("g-pop", "t-orders", "pop")),
    ("broadcast", Group("g-all", "t-orders", "broadcast")),
    ("requests", Group("g-asked", "t-asked", "requests")),
    ("grpc", Group("g-grpc", "t-grpc", "grpc")),
    ("grpc", Group("g-grpc-paid", "t-grpc-paid", "grpc")),
    ("grpc", Group("g-mixed", "t-grpc", "concurrent")),
    ("grpc in order", Group(IN_ORDER, "t-grpc-ordered", "grpc in order")),
    ("recalls", Group("g-recalled", "t-recalled", "concurrent")),
    ("dead letters", Group(dead_letters.GROUP, dead_letters.TOPIC, "refusing")),
    ("dead letters", Group("g-dead", dead_letters.DEAD_LETTERS, "dead letters")),
)
"""Each with the use that has it."""


def groups_of(plan: Plan) -> list[Group]:
    uses = plan.uses - ({"pop"} if plan.emulate != "5" else set())
    return [group for use, group in ALL_GROUPS if not use or use in uses]


def member_of(group: Group, machine: str) -> str:
    """Who gets all messages of the topic: the group, or each member of a broadcasting one."""
    return f"{group.name} {machine}" if group.kind == "broadcast" else group.name


def verdict_on(key: str) -> LocalTransactionState:
    commit, rollback = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE
    return commit if commits(key) else rollback


class Clients:
    """One program for each machine; a machine that starts again starts its program again."""

    def __init__(
        self,
        plan: Plan,
        machines: dict[str, Machine],
        books: Books,
        name_servers: str,
        grpc_servers: list[ServerAt],
        grpc_slaves: list[ServerAt],
    ) -> None:
        self._plan, self._machines, self._books = plan, machines, books
        self._name_servers, self._grpc_servers = name_servers, grpc_servers + grpc_slaves
        self._grpc_slaves = grpc_slaves
        self._groups = groups_of(plan)
        self.is_ending = False
        self._stopped = asyncio.Event()
        self._chances = {name: plan.random(f"program {name}") for name in machines}

    def work_of(self, name: str) -> Coroutine[Any, Any, None]:
        machine, chance = self._machines[name], self._chances[name]
        work = self._produce if name in self._plan.producers else self._consume
        return self._until_it_works(work, machine, chance)

    async def _until_it_works(self, work: Any, machine: Machine, chance: Random) -> None:
        """A client that cannot start is started again, as its supervisor would."""
        while True:
            try:
                await work(machine, chance)
                return
            except ClientError:
                await asyncio.sleep(RETRY_SECONDS)

    def _options(self, machine: Machine) -> dict[str, Any]:
        return {"namesrv_addr": self._name_servers, "client_ip": machine.ip}

    # -- producing

    async def _produce(self, machine: Machine, chance: Random) -> None:
        options = self._options(machine) | {"default_topic_queue_nums": self._plan.queues}

        async def check(message: MessageExt) -> LocalTransactionState:
            return verdict_on(key_in(message.body))

        uses = self._plan.uses
        shards = [asyncio.Lock() for _ in range(SHARDS)]

        def message(topic: str) -> Message:
            return self._message(machine, chance, topic)

        async with AsyncExitStack() as stack:
            producer = await stack.enter_async_context(Producer("p-orders", **options))
            sends: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
                "plain": lambda: self._send(producer, message("t-orders")),
                "batches": lambda: self._send_batch(producer, [message("t-orders") for _ in range(3)]),
                "delayed": lambda: self._send_delayed(producer, message("t-delayed"), chance),
                "ordered": lambda: self._send_ordered(
                    producer, machine, chance, chance.randrange(SHARDS), shards
                ),
                "dead letters": lambda: self._send(producer, message(dead_letters.TOPIC)),
            }
            if "requests" in uses:
                asker = await stack.enter_async_context(Requester("p-asks", **options))
                sends["requests"] = lambda: self._ask(asker, message("t-asked"))
            if "recalls" in uses:
                # A send that is tried again may be stored twice, and a recall is of one copy.
                once = options | {"retry_times_when_send_failed": 0}
                recaller = await stack.enter_async_context(Producer("p-recalls", **once))
                sends["recalls"] = lambda: self._send_and_recall(recaller, machine, chance)
            if "transactions" in uses:
                payer = await stack.enter_async_context(TransactionProducer("p-paid", check, **options))
                sends["transactions"] = lambda: self._pay(payer, message("t-paid"), chance)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            kinds = ["plain", "plain", *sorted(uses & SENT)]
            if "grpc" in uses:
                kinds += ["grpc", "grpc"]
                client = machine, chance, self._plan, self._books, self._grpc_servers
                delayed = "t-delayed" if "delayed" in uses else None
                ordered = "t-grpc-ordered" if "grpc in order" in uses else None
                caller = GrpcProducer(
                    *client, plain="t-grpc", paid="t-grpc-paid", delayed=delayed, ordered=ordered
                )
                sends["grpc"] = caller.send
                tasks.create_task(caller.run(self._stopped))
            while not self.is_ending:
                await asyncio.sleep(chance.expovariate(1 / self._plan.send_pause))
                tasks.create_task(sends[chance.choice(kinds)]())
            await self._stopped.wait()  # transactions are asked about

    def _message(self, machine: Machine, chance: Random, topic: str) -> Message:
        key = self._books.new_key(machine.name)
        return Message(topic, f"{key} ".encode().ljust(chance.choice((20, 20, 300, 3000)), b"."), keys=key)

    async def _sent(self, send: Coroutine[Any, Any, SendResult]) -> SendResult | None:
        try:
            return await send
        except ClientError:
            self._books.counts["failed sends"] += 1
            return None

    async def _send(self, producer: Producer, message: Message, **keywords: Any) -> None:
        result = await self._sent(producer.send(message, **keywords))
        if result is not None:
            self._books.acknowledged(message.keys, result)

    async def _send_batch(self, producer: Producer, messages: list[Message]) -> None:
        try:
            (result,) = await producer.send_batch(messages)
        except ClientError:
            self._books.counts["failed sends"] += 1
        else:
            for number, message in enumerate(messages):
                self._books.acknowledged(message.keys, result, number)

    async def _send_delayed(self, producer: Producer, message: Message, chance: Random) -> None:
        if self._plan.emulate == "5" and chance.random() < 0.5:
            seconds = float(chance.randrange(1, 30))
            message.delay = timedelta(seconds=seconds)
            seconds -= TIMER_PRECISION_SECONDS
        else:
            message.delay_level = chance.choice(sorted(DELAY_SECONDS))
            seconds = DELAY_SECONDS[message.delay_level]
        self._books.delayed(message.keys, seconds)
        result = await self._sent(producer.send(message))
        if result is not None:
            self._books.promised(message.keys, result)

    async def _send_and_recall(self, producer: Producer, machine: Machine, chance: Random) -> None:
        """A message for later, about which its producer changes its mind now and then."""
        message, seconds = self._message(machine, chance, "t-recalled"), chance.randrange(2, 20)
        message.delay = timedelta(seconds=seconds)
        self._books.delayed(message.keys, seconds - TIMER_PRECISION_SECONDS)
        result = await self._sent(producer.send(message))
        if result is None:
            return
        self._books.promised(message.keys, result)
        if chance.random() < 0.6:
            await asyncio.sleep(chance.random() * seconds)
            await self._recall(producer, message.keys, result)

    async def _recall(self, producer: Producer, key: str, sent: SendResult) -> None:
        if sent.recall_handle is None:
            return
        recalls, broker_name = self._books.recalls, sent.queue.broker_name
        recalls.about_to_recall(key)
        try:
            message_id = await producer.recall("t-recalled", sent.recall_handle)
        except RequestRefused:
            self._books.counts["refused recalls"] += 1
            recalls.refused(key)
        except ClientError:
            self._books.counts["failed recalls"] += 1
        else:
            self._books.recalled(key, broker_name, message_id)

    async def _send_ordered(
        self, producer: Producer, machine: Machine, chance: Random, shard: int, shards: list[asyncio.Lock]
    ) -> None:
        async with shards[shard]:
            await self._send(producer, self._message(machine, chance, "t-ordered"), sharding_key=str(shard))

    async def _ask(self, producer: Requester, question: Message) -> None:
        """Nobody promises that an answer comes; the one that comes is the answer to this question."""
        try:
            answer = await producer.request(question, timeout_ms=5_000)
        except ClientError:
            self._books.counts["failed requests"] += 1
        else:
            self._books.answered(question.keys, key_in(answer.body))

    async def _pay(self, payer: TransactionProducer, message: Message, chance: Random) -> None:
        """The verdict is lost now and then, and the broker has to ask."""
        knows = chance.random() < 0.7
        state = verdict_on(message.keys)
        if state is LocalTransactionState.ROLLBACK_MESSAGE:
            self._books.rolled_back.add(message.keys)

        async def execute(_: Message, __: Any) -> LocalTransactionState:
            await asyncio.sleep(chance.random() * 0.2)
            return state if knows else LocalTransactionState.UNKNOW

        try:
            sent = await payer.send_in_transaction(message, None, execute)
        except ClientError:
            self._books.counts["failed sends"] += 1
        else:
            # A half message that no slave has is rolled back at once: its program is not run.
            if sent.state in (state, LocalTransactionState.UNKNOW):
                self._books.counts[f"transactions {state.name}"] += 1
                if state is LocalTransactionState.COMMIT_MESSAGE:
                    self._books.promised(message.keys, sent.result)

    # -- consuming

    async def _consume(self, machine: Machine, chance: Random) -> None:
        async with AsyncExitStack() as stack:
            answerer = None
            if "requests" in self._plan.uses:
                answerer = await stack.enter_async_context(Producer("p-answers", **self._options(machine)))
            polling = await stack.enter_async_context(asyncio.TaskGroup())
            for group in self._groups:
                options = self._options(machine) | {
                    "poll_name_server_interval": 1_000,
                    "consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                    "subscription": {group.topic: "*"},
                }
                if group.kind == "lite pull":
                    del options["poll_name_server_interval"]
                    options["topic_metadata_check_interval_millis"] = 1_000
                    polling.create_task(self._poll(group, options))
                    continue
                if group.kind.startswith("grpc"):
                    member = self._grpc_consumer(group, machine, chance)
                    polling.create_task(member.run(self._stopped))
                    continue
                if group.kind == "refusing":
                    options["max_reconsume_times"] = dead_letters.MAX_RECONSUME_TIMES
                if group.kind == "pop":
                    options |= {"client_rebalance": False, "pop_invisible_time": POP_INVISIBLE_MS}
                if group.kind == "broadcast":
                    options["message_model"] = MessageModel.BROADCASTING
                consumer = PushConsumer(
                    group.name,
                    self._listener(group, machine, chance, answerer),
                    orderly=group.kind == "ordered",
                    **options,
                )
                await stack.enter_async_context(consumer)
            await self._stopped.wait()

    def _grpc_consumer(self, group: Group, machine: Machine, chance: Random) -> GrpcConsumer:
        client = machine, chance, self._plan, self._books, self._grpc_servers
        kind = GrpcOrderedConsumer if group.kind == "grpc in order" else GrpcConsumer
        is_sent_once = group.topic != "t-grpc-paid"
        return kind(
            *client, group=group.name, topic=group.topic, is_sent_once=is_sent_once, slaves=self._grpc_slaves
        )

    def _listener(self, group: Group, machine: Machine, chance: Random, answerer: Producer | None) -> Any:
        name = member_of(group, machine.name)

        async def answer(question: MessageExt) -> None:
            assert answerer is not None
            try:
                await answerer.reply(question, bytes(question.body))
            except ClientError:
                self._books.counts["failed answers"] += 1

        async def listen(message: MessageExt) -> None:
            if group.kind == "ordered":
                place = message.broker_name, message.record.topic, message.queue_id
                self._books.is_in_turn(group.name, place, message.queue_offset)
            elif group.kind == "refusing":
                self._books.dead_letters.delivered(message)
            await asyncio.sleep(chance.random() * 0.02)
            if group.kind == "requests":
                await answer(message)
            fails = chance.random() < self._plan.share_failing and group.kind not in NEVER_FAIL
            fails |= group.kind == "refusing" and dead_letters.is_refused(key_in(message.body))
            if not fails or group.kind != "ordered":
                self._books.returned(name, message)
            if fails:
                self._books.failed(name, message)
                raise RuntimeError("the listener fails")
            if group.kind == "dead letters":
                self._books.dead_letter_read(key_in(message.body))
            self._books.listened(name, key_in(message.body))

        return listen

    async def _poll(self, group: Group, options: dict[str, Any]) -> None:
        """What a poll brought may be committed by the next one."""
        async with LitePullConsumer(group.name, **options) as consumer:
            while not self._stopped.is_set():
                for message in await consumer.poll(1_000):
                    self._books.returned(group.name, message)
                    self._books.listened(group.name, key_in(message.body))

    # -- the end

    def unfinished(self, records: dict[Place, list[Any]]) -> list[Missing]:
        """What the groups have not got yet."""
        missing = [
            text
            for group in self._groups
            for name in self._members(group)
            for text in self._books.unconsumed(name, group.topic, records)
        ]
        return missing + self._books.unkept_promises(records)

    def check_dead_letters(self, records: dict[Place, list[Any]]) -> None:
        is_exact = not self._plan.events and len(self._plan.consumers) == 1
        self._books.dead_letters.check(records, key_of, is_exact=is_exact)

    def check_once(self) -> None:
        """Where nothing has failed, nobody gets a message twice."""
        if self._plan.events or self._plan.share_failing:
            return
        for group in self._groups:
            if group.kind.startswith(("ordered", "broadcast", "grpc")) or len(self._plan.consumers) == 1:
                for name in self._members(group):
                    self._books.check_once(name)

    def _members(self, group: Group) -> list[str]:
        return sorted({member_of(group, machine) for machine in self._plan.consumers})

    async def stop(self) -> None:
        """Every client ends cleanly."""
        self._stopped.set()
        lives = [self._machines[name].life for name in (*self._plan.producers, *self._plan.consumers)]
        for life in lives:
            while life is not None and life.tasks:  # noqa: ASYNC110 - it takes no time
                await asyncio.sleep(0.1)
