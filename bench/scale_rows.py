"""The rows of `scale.py` that one server in this process answers: each gives its figures at growing sizes.

A row is a generator: it fills the server to the next size, measures (`scale_bench.py`), and yields the size with its
figures, by the name under which the page shows them.
"""

import http.client
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from typing import Final

from pocketmq.broker.time.slices import ITEMS_IN_A_TURN
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData, SubscriptionData
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.group import UpdateAndCreateSubscriptionGroup
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.send import EndTransaction
from pocketmq.protocol.wire.command import Command

from .scale_bench import (
    AT_ONCE,
    SLICE,
    SLICES,
    TOPIC,
    Bench,
    Figures,
    accepted,
    commit,
    create,
    frame_of,
    fresh,
    grown,
    pull,
    quartile,
    send,
    unique_id,
)

OFFSETS_A_GROUP: Final = 8
QUEUES_A_TOPIC: Final = 10_000
GROUPS_OF_A_CLIENT: Final = 1000

# -- the rows


def topics(sizes: Sequence[int]) -> Figures:
    with Bench() as bench:
        bench.ask_all(send() for _ in range(100))
        for begin, end in grown(sizes):
            bench.topics(begin, end)
            sent = bench.cost(send)
            pulled = bench.cost(lambda: pull(TOPIC, 0, 0))
            route = bench.cost(lambda: frame_of(GetRouteInfoByTopic(topic=TOPIC)), peer=bench.name_server)
            created, written = bench.settled_cost(lambda: create(f"new-{fresh()}"))
            yield (
                end,
                {
                    "a send, beside topics": sent,
                    "a pull of one message, beside topics": pulled,
                    "the route of a topic, beside topics": route,
                    "creating a topic, beside topics": created,
                    "creating a topic: another thread writes the file": written,
                },
            )


def groups(sizes: Sequence[int]) -> Figures:
    with Bench() as bench:
        for begin, end in grown(sizes):
            bench.groups(begin, end)

            def create_group() -> bytes:
                body = SubscriptionGroupConfig(group_name=f"new-{fresh()}").encode()
                return frame_of(UpdateAndCreateSubscriptionGroup(), body)

            created, _ = bench.settled_cost(create_group)
            yield end, {"creating a group, beside groups": created}


def heartbeat(number: int) -> bytes:
    consumer = ConsumerData(
        group_name=f"group-{number}",
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=[SubscriptionData(topic=TOPIC, sub_string="*")],
    )
    data = HeartbeatData(client_id=f"client-{number}", consumer_data_set=[consumer])
    return frame_of(HeartBeat(), data.encode())


def clients(sizes: Sequence[int]) -> Figures:
    with Bench() as bench:
        for begin, end in grown(sizes):
            bench.groups(begin, end)
            for first in range(begin, end, GROUPS_OF_A_CLIENT):
                numbers = range(first, min(first + GROUPS_OF_A_CLIENT, end))
                peer = bench.connected(bench.server.broker_addr)
                bench.ask_all((heartbeat(number) for number in numbers), peer=peer)
            bench.settle()
            yield end, {"a heartbeat, beside groups with a member": bench.cost(lambda: heartbeat(7))}


def offsets(sizes: Sequence[int]) -> Figures:
    with Bench() as bench:
        bench.groups(1, 2)

        def save() -> None:
            broker = bench.server.broker
            broker.offsets.commit("topic-1", "group-1", 0, bench.server.broker.clock.now_ms())
            broker.tables.save(broker.offsets)

        for begin, end in grown(sizes):

            def fill(begin: int = begin, end: int = end) -> None:
                for number in range(begin, end):
                    group, queue_id = divmod(number, OFFSETS_A_GROUP)
                    bench.server.broker.offsets.commit(f"topic-{group % 1000}", f"group-{group}", queue_id, 1)

            bench.server.call(fill)
            saves = []
            for _ in range(3):
                begun = bench.loop_us()
                bench.server.call(save)
                bench.settle()
                saves.append(bench.loop_us() - begun)
            cost = bench.cost(lambda: commit("group-1"))

            yield (
                end,
                {
                    "a commit, beside offsets": cost,
                    "saving the offsets: what the loop does of it": quartile(saves),
                },
            )


def timed(sizes: Sequence[int]) -> Figures:
    with Bench() as bench:

        def timed_send() -> bytes:
            return send(TIMER_DELAY_SEC=str(3600 + fresh() * 37 % 1800))

        for begin, end in grown(sizes):
            bench.ask_all(timed_send() for _ in range(begin, end))
            yield end, {"a timed send, beside waiting ones": bench.cost(timed_send)}


def transactions(sizes: Sequence[int]) -> Figures:
    with Bench(transactionTimeOut=86_400_000) as bench:

        def half() -> bytes:
            return send(TRAN_MSG="true", PGROUP="producers")

        def ends(reply: Command) -> bytes:
            fields = reply.fields or {}
            request = EndTransaction(
                producer_group="producers",
                tran_state_table_offset=int(fields["queueOffset"]),
                commit_log_offset=int(fields["msgId"][-16:], 16),
                commit_or_rollback=8,
                msg_id=fields["msgId"],
                transaction_id=fields.get("transactionId"),
            )
            return frame_of(request)

        for begin, end in grown(sizes):
            bench.ask_all(half() for _ in range(begin, end))
            taken = []
            for _ in range(SLICES):
                frames = [half() for _ in range(AT_ONCE)]
                begun = bench.loop_us()
                for _ in range(SLICE // AT_ONCE):
                    replies = bench.ask(frames)
                    accepted(bench.ask([ends(one) for one in replies]))
                taken.append((bench.loop_us() - begun) / SLICE)
            yield end, {"a half message and its commit, beside open ones": quartile(taken)}


def held(sizes: Sequence[int]) -> Figures:
    with Bench() as bench:

        def check() -> None:
            for _ in itertools.islice(bench.server.broker.pulling._scan(), ITEMS_IN_A_TURN):
                pass

        waiting = bench.connected(bench.server.broker_addr)
        for begin, end in grown(sizes):
            for first in range(begin, end, QUEUES_A_TOPIC):
                name, queues = f"held-{first // QUEUES_A_TOPIC}", QUEUES_A_TOPIC
                config = TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
                bench.server.call(bench.server.broker.topics.update, config)
            for number in range(begin, end):
                topic, queue_id = divmod(number, QUEUES_A_TOPIC)
                waiting.sendall(pull(f"held-{topic}", queue_id, 0, holds=True))
            waiters = bench.server.broker.pulling.waiters
            while bench.server.call(len, waiters) < end:
                time.sleep(0.05)
            offset = bench.server.call(bench.server.broker.store.max_offset, TOPIC, 0)
            taken = []
            for _ in range(SLICES * 8):
                begun = bench.loop_us()
                bench.ask([pull(TOPIC, 0, offset, holds=True), send()])
                taken.append(bench.loop_us() - begun)
                offset += 1
            yield (
                end,
                {
                    "a held pull and the arrival that ends it, beside held pulls": quartile(taken),
                    "the check of held pulls, every 5 s: its first turn of the loop": bench.turn(check),
                },
            )


def queues(sizes: Sequence[int]) -> Figures:
    with Bench(mappedFileSizeConsumeQueue=4000) as bench:
        for begin, end in grown(sizes):
            for topic in range(begin // QUEUES_A_TOPIC, -(-end // QUEUES_A_TOPIC)):
                name, count = f"wide-{topic}", QUEUES_A_TOPIC
                config = TopicConfig(topic_name=name, read_queue_nums=count, write_queue_nums=count)
                bench.server.call(bench.server.broker.topics.update, config)

            def round_of(end: int = end) -> Iterator[bytes]:
                while True:
                    for number in range(end):
                        topic, queue_id = divmod(number, QUEUES_A_TOPIC)
                        yield send(f"wide-{topic}", queue_id)

            bench.ask_all(itertools.islice(round_of(), end))
            every = itertools.islice(round_of(), 0, None, max(1, end // (SLICES * SLICE)))
            yield end, {"a send, in turns to queues": bench.cost(every.__next__)}


def get(bench: Bench, path: str) -> float:
    """Microseconds of the loop for the first page at an address of the HTTP port."""
    host = bench.server.admin_url.removeprefix("http://")
    taken = []
    for _ in range(3):
        connection = http.client.HTTPConnection(host)
        begun = bench.loop_us()
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        json.loads(answer.read())
        taken.append(bench.loop_us() - begun)
        connection.close()
    return quartile(taken)


def pages(sizes: Sequence[int]) -> Figures:
    with Bench(admin_port=0) as bench:
        bench.ask_all(send() for _ in range(10))
        for begin, end in grown(sizes):
            bench.topics(begin, end)
            bench.groups(begin, end)
            bench.ask_all(commit(f"group-{number}") for number in range(begin, end))
            yield (
                end,
                {
                    f"GET {path}, the first page": get(bench, path)
                    for path in ("/api/topics", "/api/groups", "/api/ledger")
                },
            )


def ledger(sizes: Sequence[int]) -> Figures:
    with Bench(ledger=True) as bench:
        for begin, end in grown(sizes):
            bench.ask_all(send() for _ in range(begin, end))
            last = unique_id(fresh() - 1)
            bench.server.ledger.clear()
            for offset in range(0, end, 32):
                accepted(bench.ask([pull(TOPIC, 0, offset, 32)]))
            looked_up = bench.turn(lambda last=last: bench.server.ledger.message(last))  # type: ignore[misc]
            pulled = bench.cost(lambda: pull(TOPIC, 0, 0), slices=6, size=16)
            yield (
                end,
                {
                    "a pull of one message, beside facts of the ledger": pulled,
                    "ledger.message(id), beside facts": looked_up,
                },
            )
