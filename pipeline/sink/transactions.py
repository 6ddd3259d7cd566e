"""The transactional sink's second half: ending the half messages of a batch, and knowing which batch was ended last.

The last batch of a query is kept as the offset of a group of its own, `spark-sink-<query id>`, queue 0 of the topic's
first broker: batch number + 1. Brokers that ask what became of a half message (a driver that died) get no answer, for
nobody holds that state; they roll it back after their `transactionCheckMax` questions.
"""

import asyncio
from typing import Final

from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.requests.send import EndTransaction

from ..brokers.batch_sender import StoredMessage
from ..brokers.wire import wire_for
from ..planning.positions import Queue
from .sink_options import SinkOptions

ENDED_AT_ONCE: Final = 32


def end_transactions(options: SinkOptions, halves: list[StoredMessage], *, is_commit: bool) -> None:
    """Commit or roll back every half message; each is answered. Raises what a broker refuses."""
    connection = wire_for(options)
    waiting = iter(halves)

    async def end_some() -> None:
        for half in waiting:
            request = EndTransaction(
                producer_group=options.group,
                tran_state_table_offset=half.queue_offset,
                commit_log_offset=decode_message_id(half.offset_message_id).position,
                commit_or_rollback=TRANSACTION_COMMIT if is_commit else TRANSACTION_ROLLBACK,
                msg_id=half.message_id,
                transaction_id=half.transaction_id,
                topic=half.topic,
                broker_name=half.broker_name,
            )

            async def ask(fresh: bool, half: StoredMessage = half, request: EndTransaction = request) -> None:
                broker = await connection.broker(half.topic, half.broker_name, fresh=fresh)
                await broker.call(request)

            await connection.with_retries(
                f"end of a transaction of {half.topic}", ask, options.retry_timeout_ms
            )

    async def end_all() -> None:
        ways = await asyncio.gather(*(end_some() for _ in range(ENDED_AT_ONCE)), return_exceptions=True)
        for failure in filter(None, ways):
            raise failure

    connection.run(end_all())


def is_batch_committed(options: SinkOptions, query_id: str, batch_id: int) -> bool:
    """Whether this batch of the query was committed before."""
    queue = _memory(options)
    stored = wire_for(options).committed(_group(query_id), [queue], options.retry_timeout_ms)[queue]
    return stored is not None and batch_id < stored


def mark_batch_committed(options: SinkOptions, query_id: str, batch_id: int) -> None:
    """Note a batch as committed."""
    wire_for(options).commit(_group(query_id), {_memory(options): batch_id + 1}, options.retry_timeout_ms)


def _group(query_id: str) -> str:
    return f"spark-sink-{query_id}"


def _memory(options: SinkOptions) -> Queue:
    assert options.topic is not None, "the stream writer asks for one"
    return wire_for(options).queues(options.topic, options.retry_timeout_ms)[0]
