"""What becomes of a batch after a concurrent listener: sent back, tried again here, or finished.

Failed messages are sent back (36). Those whose sending failed too stay cached, and are tried again here after
LOCAL_RETRY_DELAY_MS; everything else of the batch is finished.

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
from ..values.listener_returns import ConsumeConcurrentlyStatus
from ..values.message import MessageExt
from .send_back import SendBack

LOCAL_RETRY_DELAY_MS: Final = 5_000


def first_failed(status: ConsumeConcurrentlyStatus, ack_index: int, size: int) -> int:
    """Index of the first message of a batch that failed; `size` if none did."""
    if status is ConsumeConcurrentlyStatus.RECONSUME_LATER:
        return 0
    return size if ack_index >= size else max(ack_index, -1) + 1


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

    def accepts(self, messages: Sequence[MessageExt]) -> bool:
        """Whether the batch may be given to the listener now; if not, it is dropped."""

    async def settle(self, messages: Sequence[MessageExt], failed: int, delay_level: int) -> list[MessageExt]:
        """Act on the listener's result: those from the index `failed` on failed, and wait for `delay_level`. What is
        returned is to be tried again here, after a pause."""


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

    async def settle(self, messages: Sequence[MessageExt], failed: int, delay_level: int) -> list[MessageExt]:
        """Send back what failed, keep what could not be sent, and move the offset."""
        if self.process_queue.dropped:
            return []
        not_sent = await self._send_back_failed(messages[failed:], delay_level)
        for message in not_sent:
            message.reconsume_times += 1
        self.finish([message for message in messages if message not in not_sent] if not_sent else messages)
        return not_sent

    async def _send_back_failed(self, failed: Sequence[MessageExt], level: int) -> list[MessageExt]:
        """Send them to the broker; those it did not accept. A broadcasting consumer sends none back, it loses them."""
        if not failed:
            return []
        if self._settings.message_model is MessageModel.BROADCASTING:
            _log.warning("a broadcasting consumer failed, its messages are dropped: %r", list(failed))
            return []
        cached = [message for message in failed if message in self.process_queue]
        return [message for message in cached if not await self._send_back.send_back(message, level)]
