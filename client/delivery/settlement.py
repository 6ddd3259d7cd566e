"""What becomes of a batch after a concurrent listener: sent back, tried again here, or finished.

A batch carries its settlement, so that delivery is the same for pulled and for popped messages
(`push/pop_settlement.py`). The decisions are `concurrent_results.py`. Mirrors
`ConsumeMessageConcurrentlyService.processConsumeResult`.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.message.message_queue import MessageQueue

from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.process_queue import ProcessQueue
from ..settings.consumer_settings import PushConsumerSettings
from ..values.listener_returns import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from ..values.message import MessageExt
from .concurrent_results import finish, to_send_back
from .send_back import SendBack

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
