"""Requests of an administrator that delete old data: log files (329), queues without messages (306) or topic (316).

The store's `retention.py` deletes old files without a request. Mirrors the cleaning part of `AdminBrokerProcessor` and
of `DefaultMessageStore`.
"""

from pocketmq.protocol.message.topics import is_lmq
from pocketmq.protocol.requests.topic import (
    CleanExpiredConsumeQueue,
    CleanUnusedTopic,
    DeleteExpiredCommitLog,
)

from ..broker import Broker
from ..network.dispatch import handles
from ..time.slices import in_slices


@handles(DeleteExpiredCommitLog)
def delete_expired_commit_log(broker: Broker, request: DeleteExpiredCommitLog) -> None:
    """Delete log files older than `fileReservedTime`: at most ten now, the rest in the next rounds of the retention."""
    broker.retention.request_manual()
    broker.retention.run()


@handles(CleanExpiredConsumeQueue)
def clean_expired_consume_queue(broker: Broker, request: CleanExpiredConsumeQueue) -> None:
    """Delete the queues whose messages are all deleted from the log, except those of built-in topics."""
    broker.store.delete_expired_queues(broker.topics.is_system_topic)


@handles(CleanUnusedTopic)
async def clean_unused_topic(broker: Broker, request: CleanUnusedTopic) -> None:
    """Delete the queues of topics that are not in the topic table, except built-in topics and light queues."""
    deleted = set()
    try:
        async for topic in in_slices(list(broker.store.topics_with_queues())):
            if topic in broker.topics or broker.topics.is_system_topic(topic) or is_lmq(topic):
                continue
            broker.store.delete_topic_queues(topic)
            deleted.add(topic)
    finally:
        broker.statistics.forget(deleted, set())
