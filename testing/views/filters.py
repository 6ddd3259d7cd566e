"""Which messages of a topic a group wants, by the subscription of its members; without members, by what the request log
has of it. Called in the server's thread."""

import asyncio
from typing import Final

from pocketmq.broker.broker import Broker

from ..ledger.stored import Wanted, wanted
from ..ledger.subscriptions import Subscription, Subscriptions
from ..requests.request_log import RequestLog

ENTRIES_A_TURN: Final = 200
"""After so many entries of a queue the loop has a turn."""


async def count_wanted(
    broker: Broker,
    log: RequestLog,
    topic: str,
    group: str,
    ranges: dict[int, tuple[int, int]],
    most: int | None,
) -> int:
    """How many messages of these parts of queues (first offset, end) the group wants; with `most`, that many are enough
    to know."""
    if not ranges:
        return 0
    wants = _wanted_by(broker, log, topic, group)
    if wants is None:
        return sum(end - begin for begin, end in ranges.values())
    count = seen = 0
    for queue_id, (begin, end) in ranges.items():
        queue = broker.store.consume_queue(topic, queue_id)
        for offset in range(begin, end) if queue is not None else ():
            unit = queue.unit(offset) if queue is not None else None
            record = None if unit is None else broker.store.read_record(unit[0], unit[1])
            count += unit is not None and record is not None and wants(unit[2], record)
            if count == most:
                return count
            seen += 1
            if seen % ENTRIES_A_TURN == 0:
                await asyncio.sleep(0)
    return count


def _wanted_by(broker: Broker, log: RequestLog, topic: str, group: str) -> Wanted | None:
    """None: all messages."""
    online = broker.membership.consumers.get(group)
    data = None if online is None else online.subscription(topic)
    own = None if data is None else {(data.expression_type, data.sub_string or "*")}
    subscriptions = own or _logged(log, topic, group)
    if not subscriptions or any(expression == "*" for _, expression in subscriptions):
        return None
    return wanted(topic, subscriptions, is_5=broker.config.is_5)


def _logged(log: RequestLog, topic: str, group: str) -> set[Subscription]:
    logged = Subscriptions()
    for kept in log.single_entries():
        logged.read(kept)
    return logged.by_pair.get((topic, group), set())
