"""Cleaning up on an administrator's word: old log files (329), queues without messages (306) or without topic (316).

Mirrors the cleaning part of `AdminBrokerProcessor` and what it calls in `DefaultMessageStore`. What is deleted by
itself, and when, is in the store's `retention.py`.
"""

from pocketmq.protocol.message.topics import is_lmq
from pocketmq.protocol.requests.topic import (
    CleanExpiredConsumeQueue,
    CleanUnusedTopic,
    DeleteExpiredCommitLog,
)

from ..broker import Broker
from ..network.dispatch import handles


@handles(DeleteExpiredCommitLog)
def delete_expired_commit_log(broker: Broker, request: DeleteExpiredCommitLog) -> None:
    """Delete log files past `fileReservedTime` now, at most ten, the rest in the next rounds of cleaning."""
    broker.retention.request_manual()
    broker.retention.run()


@handles(CleanExpiredConsumeQueue)
def clean_expired_consume_queue(broker: Broker, request: CleanExpiredConsumeQueue) -> None:
    """Delete the queues all of whose messages have left the log; the built-in topics keep theirs."""
    broker.store.delete_expired_queues(broker.topics.is_system_topic)


@handles(CleanUnusedTopic)
def clean_unused_topic(broker: Broker, request: CleanUnusedTopic) -> None:
    """Delete the queues of topics that are not in the topic table, but for built-in ones and light queues."""
    for topic in broker.store.topics_with_queues():
        if topic in broker.topics or broker.topics.is_system_topic(topic) or is_lmq(topic):
            continue
        broker.store.delete_topic_queues(topic)
        broker.statistics.topic_deleted(topic)
