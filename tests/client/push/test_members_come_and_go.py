"""Members of one group that join, leave and vanish at random; and members that do not agree on their subscription.

Every message is consumed in any case. An ordered queue has one listener at a time, and none of its messages is skipped.
If two members both believe that they own a queue, one of them corrects itself within the official window: the 20 s
after which every member rebalances.
"""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import MessageExt, MessageQueue, Producer, PushConsumer

from client_waits import Seen, consuming, send
from waiting import until

LONG = 30.0
MEMBERS = 10
QUEUES = 8
OFFICIAL_WINDOW_SECONDS = 20.0
SCHEDULING_SECONDS = 5.0
"""What a busy machine may add to it."""


class Group:
    """What all members see together."""

    def __init__(self, namesrv_addr: str, *, orderly: bool) -> None:
        self._namesrv_addr = namesrv_addr
        self._orderly = orderly
        self._choice = random.Random(11)
        self.seen: list[tuple[int, int]] = []
        self.bodies: set[bytes] = set()
        self.busy: set[int] = set()
        self.overlaps = 0
        self.owners: dict[MessageQueue, dict[str, float]] = defaultdict(dict)
        self.longest_double = 0.0

    async def listen(self, message: MessageExt) -> None:
        self.overlaps += message.queue_id in self.busy
        self.busy.add(message.queue_id)
        try:
            await asyncio.sleep(self._choice.random() * 0.004)
            self.seen.append((message.queue_id, message.queue_offset))
            self.bodies.add(message.body)
        finally:
            self.busy.discard(message.queue_id)

    def taken(self, name: str, queues: list[MessageQueue]) -> None:
        for queue in queues:
            self.owners[queue][name] = time.monotonic()

    def given_up(self, name: str, queues: list[MessageQueue]) -> None:
        for queue in queues:
            since = self.owners[queue].pop(name, None)
            if since is not None:
                others = self.owners[queue].values()
                both = [time.monotonic() - max(since, other) for other in others]
                self.longest_double = max([self.longest_double, *both])

    def agrees(self) -> bool:
        """Whether each queue has at most one member that believes it owns it."""
        return all(len(owners) <= 1 for owners in self.owners.values())

    @asynccontextmanager
    async def member(self, name: str) -> AsyncIterator[PushConsumer]:
        consumer = consuming(
            self._namesrv_addr,
            self.listen,
            orderly=self._orderly,
            pull_time_delay_mills_when_exception=50,
            on_assigned=lambda queues: self.taken(name, queues),
            on_revoked=lambda queues: self.given_up(name, queues),
        )
        try:
            async with consumer:
                yield consumer
        finally:
            self.given_up(name, [queue for queue, owners in self.owners.items() if name in owners])


async def live(group: Group, name: str, leave: asyncio.Event, *, vanishes: bool) -> None:
    """A member until the test ends it: cleanly, or after losing its connections."""
    async with group.member(name) as consumer:
        await leave.wait()
        if vanishes:
            consumer._running.connections.close()


@pytest.mark.parametrize(
    "seconds", [1.0, pytest.param(60.0, marks=[pytest.mark.soak, pytest.mark.timeout(300)])]
)
@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "ordered"])
async def test_members_come_and_go_and_every_message_is_consumed(
    node: Node, orderly: bool, seconds: float
) -> None:
    namesrv_addr = node.namesrv_address
    choice = random.Random(7)
    group = Group(namesrv_addr, orderly=orderly)
    members: dict[str, tuple[asyncio.Task[None], asyncio.Event]] = {}
    sent: set[bytes] = set()
    born = 0
    async with Producer("p", namesrv_addr=namesrv_addr, default_topic_queue_nums=QUEUES) as producer:

        async def send_some(count: int) -> None:
            for _ in range(count):
                body = b"%06d" % len(sent)
                await producer.send("T", body)
                sent.add(body)

        await send_some(1)
        ending: set[asyncio.Task[None]] = set()
        end = time.monotonic() + seconds
        while time.monotonic() < end or born <= 5:  # on a busy machine few are started in a second
            if len(members) < 2 or (len(members) < MEMBERS and choice.random() < 0.55):
                born += 1
                leave = asyncio.Event()
                # Without its connections an ordered member cannot give its locks back: they would expire in 60 s.
                vanishes = not orderly and choice.random() < 0.3
                work = live(group, f"m{born}", leave, vanishes=vanishes)
                members[f"m{born}"] = asyncio.create_task(work), leave
            else:
                task, leave = members.pop(choice.choice(list(members)))
                if choice.random() < 0.3:
                    task.cancel()
                leave.set()
                ending.add(task)
            await send_some(4)
            await asyncio.sleep(choice.random() * 0.2)
        await until(lambda: sent <= group.bodies, LONG, "every message is consumed")
        await until(group.agrees, OFFICIAL_WINDOW_SECONDS + SCHEDULING_SECONDS, "no queue has two owners")
        for task, leave in members.values():
            leave.set()
            ending.add(task)
        ends = await asyncio.gather(*ending, return_exceptions=True)
    assert not [one for one in ends if one is not None and not isinstance(one, asyncio.CancelledError)]
    if seconds > OFFICIAL_WINDOW_SECONDS:  # a shorter run cannot show it
        assert group.longest_double < OFFICIAL_WINDOW_SECONDS + SCHEDULING_SECONDS
    if orderly:
        assert group.overlaps == 0
        highest: defaultdict[int, int] = defaultdict(lambda: -1)
        for queue_id, offset in group.seen:
            assert offset <= highest[queue_id] + 1, "a message was skipped"
            highest[queue_id] = max(highest[queue_id], offset)


def of_one_group(namesrv_addr: str, seen: Seen, subscription: dict[str, str]) -> PushConsumer:
    return consuming(
        namesrv_addr,
        seen,
        subscription=subscription,
        pull_time_delay_mills_when_exception=50,
        heartbeat_broker_interval=200,
    )


async def test_members_of_different_topics_are_warned_and_consume_once_they_agree(
    namesrv_addr: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker keeps the subscription of the last heartbeat and refuses the others' pulls; the log says that."""
    await send(namesrv_addr, "T", 4)
    await send(namesrv_addr, "Other", 4)
    seen, others = Seen(), Seen()
    async with of_one_group(namesrv_addr, seen, {"T": "*"}) as consumer:
        await until(lambda: len(seen.messages) == 4, LONG)
        async with of_one_group(namesrv_addr, others, {"Other": "*"}):
            sent = 4
            async with asyncio.timeout(LONG):
                while "the consumer's subscription not exist" not in caplog.text:
                    await send(namesrv_addr, "T", 4)  # a held pull is checked when it is woken
                    sent += 4
        await until(lambda: len({message.message_id for message in seen.messages}) == sent, LONG)
        assert len(consumer.assignment()) == 4


async def test_members_of_different_tags_never_get_messages_of_other_tags(namesrv_addr: str) -> None:
    """The broker filters by the newest expression; each member filters its messages again."""
    await send(namesrv_addr, "T", 1, tags="a")
    seen, others = Seen(), Seen()
    async with (
        of_one_group(namesrv_addr, seen, {"T": "a"}) as one,
        of_one_group(namesrv_addr, others, {"T": "b"}) as two,
    ):
        await until(lambda: len(one.assignment()) == len(two.assignment()) == 2, LONG)
        for number in range(16):
            await send(namesrv_addr, "T", 1, tags="ab"[number % 2], queue_id=number % 4)
        await until(lambda: not any(state.count for state in one._queues.table.values()), LONG)
        await until(lambda: seen.messages or others.messages, LONG)
    assert {message.tags for message in seen.messages} <= {"a"}
    assert {message.tags for message in others.messages} <= {"b"}
