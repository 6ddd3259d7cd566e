"""What concurrent and ordered delivery have in common: the parts they work with, and how pulled messages reach them."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
from pocketmq.protocol.message.message_queue import MessageQueue

from ..hooks.consume_hooks import ConsumeHooks
from ..offsets.offset_store import OffsetStore
from ..rebalancing.process_queue import ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..values.message import MessageExt
from .listeners import ListenerCall
from .send_back import SendBack
from .statistics import ConsumerStatistics


class DeliveryParts(msgspec.Struct, frozen=True):
    """Of one consumer."""

    group: str
    settings: PushConsumerSettings
    offsets: OffsetStore
    statistics: ConsumerStatistics
    call: ListenerCall
    send_back: SendBack
    hooks: ConsumeHooks | None
    restore_topics: Callable[[Sequence[MessageExt]], None]
    """Gives messages of the retry topics the topic they were sent to."""
    listener_failed: Callable[[Exception, Sequence[MessageExt]], None]


class Delivery(Protocol):
    """Where pull loops put their messages."""

    def deliver(
        self,
        messages: Sequence[MessageExt],
        queue: MessageQueue,
        process_queue: ProcessQueue,
        *,
        starts_task: bool,
    ) -> None:
        """Messages that were just put into the process queue. `starts_task`: what its `put` returned."""
        ...
