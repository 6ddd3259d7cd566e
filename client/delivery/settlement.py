"""What becomes of a batch after a concurrent listener: sent back, tried again here, or finished.

    1. `to_send_back` names the failed messages; each is sent back (36)
    2. `finish` is given those whose sending failed too: they stay cached, and are tried again here after
       LOCAL_RETRY_DELAY_MS; everything else of the batch is finished. It returns the offset to store

A batch carries its settlement, so that delivery is the same for pulled and for popped messages (`push/pop_queues.py`).
The result of a queue that was dropped meanwhile is discarded: the next owner gets its messages again. A message that is
no longer cached was sent back by the cleaning of expired ones and is not sent a second time (4.9 clients do). Official
class: ConsumeMessageConcurrentlyService.processConsumeResult.
"""

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.message.message_queue import MessageQueue

from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.process_queue import ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..values.listener_returns import ACK_ALL, ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from ..values.message import MessageExt
from .send_back import SendBack

LOCAL_RETRY_DELAY_MS: Final = 5_000


def first_failed(status: ConsumeConcurrentlyStatus, ack_index: int, size: int) -> int:
    """Index of the first message of a batch that failed; `size` if none did."""
    if status is ConsumeConcurrentlyStatus.RECONSUME_LATER:
        return 0
    return size if ack_index >= size else max(ack_index, -1) + 1


def to_send_back(
    queue: ProcessQueue,
    messages: Sequence[MessageExt],
    status: ConsumeConcurrentlyStatus,
    *,
    ack_index: int = ACK_ALL,
    message_model: MessageModel = MessageModel.CLUSTERING,
) -> list[MessageExt]:
    """The messages to send back to the broker. A broadcasting consumer sends none back, it loses them."""
    failed = first_failed(status, ack_index, len(messages))
    if failed == len(messages) or message_model is MessageModel.BROADCASTING:
        return []
    return [message for message in messages[failed:] if message in queue]


def finish(queue: ProcessQueue, messages: Sequence[MessageExt], not_sent: Sequence[MessageExt] = ()) -> int:
    """Finish a batch, except the messages that could not be sent back: their tries are counted.

    The offset to store, which may only raise the stored one; -1 for none.
    """
    if not not_sent:
        return queue.remove(messages)
    for message in not_sent:
        message.reconsume_times += 1
    kept = {message.queue_offset for message in not_sent}
    return queue.remove([message for message in messages if message.queue_offset not in kept])


def batches(messages: Sequence[MessageExt], batch_size: int) -> list[Sequence[MessageExt]]:
    """Pulled messages cut into what one listener call gets (consume_message_batch_max_size)."""
    if len(messages) <= batch_size:
        return [messages]
    return [messages[start : start + batch_size] for start in range(0, len(messages), batch_size)]


_log = logging.getLogger(__name__)


class Settlement(Protocol):
    """For the batches of one queue."""

    @property
    def listener_limit_ms(self) -> int:
        """How long a listener may take."""
        ...

    def accepts(self, messages: Sequence[MessageExt]) -> bool:
        """Whether the batch may be given to the listener now; if not, it is dropped."""
        ...

    async def settle(
        self,
        messages: Sequence[MessageExt],
        status: ConsumeConcurrentlyStatus,
        context: ConsumeConcurrentlyContext,
    ) -> list[MessageExt]:
        """Act on the listener's result. The messages returned are to be tried again here, after a pause."""
        ...


class PulledSettlement:
    """For the messages of one process queue."""

    def __init__(
        self,
        context: ConsumerContext[PushConsumerSettings],
        send_back: SendBack,
        queue: MessageQueue,
        process_queue: ProcessQueue,
    ) -> None:
        self._settings, self._offsets = context.settings, context.offsets
        self._send_back = send_back
        self.queue = queue
        self.process_queue = process_queue

    @property
    def listener_limit_ms(self) -> int:
        return self._settings.consume_timeout * 60_000

    def accepts(self, messages: Sequence[MessageExt]) -> bool:
        """The next owner of a dropped queue gets its messages again."""
        return not self.process_queue.dropped

    def finish(self, messages: Sequence[MessageExt]) -> None:
        """Forget messages that succeeded, and move the offset."""
        process_queue = self.process_queue
        if process_queue.dropped:
            return
        offset = process_queue.remove(messages)
        if offset >= 0:
            self._offsets.update(self.queue, offset, increase_only=True)

    async def settle(
        self,
        messages: Sequence[MessageExt],
        status: ConsumeConcurrentlyStatus,
        context: ConsumeConcurrentlyContext,
    ) -> list[MessageExt]:
        """Send back what failed, keep what could not be sent, and move the offset."""
        process_queue = self.process_queue
        if process_queue.dropped:
            return []
        not_sent: list[MessageExt] = []
        if status is not ConsumeConcurrentlyStatus.CONSUME_SUCCESS or context.ack_index < len(messages) - 1:
            not_sent = await self._send_failed_back(messages, status, context)
        offset = finish(process_queue, messages, not_sent)
        if offset >= 0 and not process_queue.dropped:
            self._offsets.update(self.queue, offset, increase_only=True)
        return not_sent

    async def _send_failed_back(
        self,
        messages: Sequence[MessageExt],
        status: ConsumeConcurrentlyStatus,
        context: ConsumeConcurrentlyContext,
    ) -> list[MessageExt]:
        """Send the failed messages back to the broker; those it did not accept."""
        model = self._settings.message_model
        if model is MessageModel.BROADCASTING:
            _log.warning("a broadcasting consumer failed, its messages are dropped: %r", list(messages))
        failed = to_send_back(
            self.process_queue, messages, status, ack_index=context.ack_index, message_model=model
        )
        level = context.delay_level_when_next_consume
        return [message for message in failed if not await self._send_back.send_back(message, level)]
