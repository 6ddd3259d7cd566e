"""Whether a queue may be pulled now: how many of its messages wait unfinished in the client.

All comparisons are "more than", as in the official client, so a queue may exceed its limit by one pull. After the
delays named here the pull loop tries again. Official class: DefaultMQPushConsumerImpl.pullMessage.
"""

from typing import Final

from ..settings.checks import MIB
from ..settings.consumer_settings import PushConsumerSettings
from .process_queue import ProcessQueue

FLOW_CONTROL_DELAY_MS: Final = 50
"""A limit of the client is exceeded."""
BROKER_FLOW_CONTROL_DELAY_MS: Final = 20
"""The broker answered FLOW_CONTROL."""
SUSPENDED_DELAY_MS: Final = 1_000
"""The user paused the consumer."""
FIRST_PULL_DELAY_MS: Final = 500
"""A queue just assigned is pulled after this time (5.x; at once in 4.9)."""
BROKER_SUSPEND_MAX_MS: Final = 15_000
PULL_TIMEOUT_MS: Final = 30_000
"""How long the broker may hold a pull, and how long a push consumer waits for its answer."""


def is_over_limit(process_queue: ProcessQueue, *, count: int, size_mib: int, span: int | None) -> bool:
    """Whether so many messages, MiB or offsets between the first and the last keep a queue from being pulled. The span
    counts for concurrent consumers only: None for the others."""
    return (
        process_queue.count > count
        or process_queue.cached_bytes // MIB > size_mib
        or (span is not None and process_queue.max_span() > span)
    )


def share_of_topic(threshold_for_topic: int, queue_count: int, threshold_for_queue: int) -> int:
    """Limit of one queue once the queues changed: its share of the topic's limit, -1 leaving it as it is.

    `queue_count` counts the queues of all topics of the consumer, as the official client does; none changes nothing.
    """
    if threshold_for_topic == -1 or queue_count == 0:
        return threshold_for_queue
    return max(1, threshold_for_topic // queue_count)


class PullControl:
    """What holds back the loops of one push consumer: the user's pause, and how much may wait in one queue."""

    def __init__(self, settings: PushConsumerSettings) -> None:
        self._settings = settings
        self.is_suspended = False
        """By the user."""
        self.resets = 0
        """Resets of offsets under way."""
        self.max_count = settings.pull_threshold_for_queue
        self.max_size_mib = settings.pull_threshold_size_for_queue

    @property
    def is_paused(self) -> bool:
        return self.is_suspended or self.resets > 0

    def share_thresholds(self, queue_count: int) -> None:
        """Divide the thresholds of a topic among so many queues."""
        settings = self._settings
        self.max_count = share_of_topic(settings.pull_threshold_for_topic, queue_count, self.max_count)
        self.max_size_mib = share_of_topic(
            settings.pull_threshold_size_for_topic, queue_count, self.max_size_mib
        )
