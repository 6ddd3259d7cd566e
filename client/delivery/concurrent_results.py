"""After a concurrent listener: which messages go back to the broker, and which offset may be stored.

    1. `to_send_back` names the failed messages; the caller sends each back (36, with SEND_BACK_TIMEOUT_MS)
    2. `finish` is given those whose sending failed too: they stay cached, and are tried again here after
       LOCAL_RETRY_DELAY_MS; everything else of the batch is finished. It returns the offset to store

The result of a queue that was dropped meanwhile is discarded by the caller: the next owner gets its messages again.
A message that is no longer cached was sent back by the cleaning of expired ones and is not sent a second time (4.9
clients do). Official class: ConsumeMessageConcurrentlyService.processConsumeResult.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.bodies.client import MessageModel

from ..rebalancing.process_queue import ProcessQueue
from ..settings.checks import OFF
from ..values.listener_returns import ACK_ALL, ConsumeConcurrentlyStatus
from ..values.message import MessageExt

LOCAL_RETRY_DELAY_MS: Final = 5_000
SEND_BACK_TIMEOUT_MS: Final = 5_000
DEFAULT_MAX_RECONSUME_TIMES: Final = 16


def concurrent_reconsume_limit(setting: int) -> int:
    """Tries after which the broker moves a message to the dead letters: `max_reconsume_times`, 16 if it is not set."""
    return DEFAULT_MAX_RECONSUME_TIMES if setting == OFF else setting


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
