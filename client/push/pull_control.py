"""What holds back the loops of a push consumer: the user's pause, and how much may wait in one queue."""

from ..rebalancing.flow_control import share_of_topic
from ..settings.consumer_settings import PushConsumerSettings


class PullControl:
    """Of one consumer; its pull loops and pop loops read it before each request."""

    def __init__(self, settings: PushConsumerSettings, *, is_paused: bool) -> None:
        self._settings = settings
        self.is_suspended = is_paused
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
