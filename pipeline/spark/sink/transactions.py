"""The driver's part of a transactional write: ends half messages, and stores which batch was committed last.

The last batch of a query is stored as a consumer offset: group `spark-sink-<query id>`, the first queue of the topic at
each broker, batch number + 1; the largest counts. If a driver dies, brokers that check its half messages get no answer,
because no process holds that state. They roll them back after `transactionCheckMax` checks.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from pocketmq.protocol.requests.send import EndTransaction

from ...errors import SourceUnreachable
from ...tables.brokers.batch_sender import HalfMessage
from ...tables.brokers.broker_client import shared_client
from ...tables.planning.positions import Queue
from .sink_options import SinkOptions

ENDED_AT_ONCE: Final = 32


def end_transactions(options: SinkOptions, halves: Iterable[HalfMessage], *, is_commit: bool) -> None:
    """Commit or roll back every half message, each acknowledged. Raises the first refusal."""
    client = shared_client(options.namesrv_addr, options.access)
    remaining = iter(halves)

    async def end_some() -> None:
        for half in remaining:
            request = EndTransaction(
                producer_group=options.group,
                tran_state_table_offset=half.queue_offset,
                commit_log_offset=half.log_position,
                commit_or_rollback=TRANSACTION_COMMIT if is_commit else TRANSACTION_ROLLBACK,
                msg_id=half.message_id,
                transaction_id=half.transaction_id,
                topic=half.topic,
                broker_name=half.broker_name,
            )

            async def ask(fresh: bool, half: HalfMessage = half, request: EndTransaction = request) -> None:
                broker = await client.broker(half.topic, half.broker_name, fresh=fresh)
                await broker.call(request)

            await client.with_retries(f"end of a transaction of {half.topic}", ask, options.retry_timeout_ms)

    async def end_all() -> None:
        results = await asyncio.gather(*(end_some() for _ in range(ENDED_AT_ONCE)), return_exceptions=True)
        for failure in filter(None, results):
            raise failure

    client.run(end_all())


def is_batch_committed(options: SinkOptions, query_id: str, batch_id: int) -> bool:
    """Whether this batch of the query was committed earlier. `SourceUnreachable` if only a broker that does not answer
    may know that."""
    client, away = shared_client(options.namesrv_addr, options.access), None
    for queue in _batch_number_queues(options):
        try:
            stored = client.committed(_group(query_id), [queue], options.retry_timeout_ms)[queue]
        except SourceUnreachable as error:
            away = error
            continue
        if stored is not None and batch_id < stored:
            return True
    if away is not None:
        raise away
    return False


def mark_batch_committed(options: SinkOptions, query_id: str, batch_id: int) -> None:
    """Store the number of a committed batch, at every broker."""
    offsets = dict.fromkeys(_batch_number_queues(options), batch_id + 1)
    shared_client(options.namesrv_addr, options.access).commit(
        _group(query_id), offsets, options.retry_timeout_ms
    )


def _group(query_id: str) -> str:
    return f"spark-sink-{query_id}"


def _batch_number_queues(options: SinkOptions) -> list[Queue]:
    """The first queue of the topic at each broker: which brokers are in the route may change."""
    assert options.topic is not None, "the stream writer requires it"
    queues = shared_client(options.namesrv_addr, options.access).queues(
        options.topic, options.retry_timeout_ms
    )
    return list({queue.broker_name: queue for queue in reversed(queues)}.values())
