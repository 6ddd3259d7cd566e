"""What can be done with one delivered message: acknowledge it, hide it for another time, make it a dead letter.

The broker's own handlers do it. `renewal.py` hides messages by itself; the rpcs are in the files `..._handlers`.
Mirrors `ConsumerProcessor` and the half of `LocalMessageService` that it needs.
"""

import logging

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import Refusal
from pocketmq.broker.pop.ack_handlers import hide_message, prepare_ack, store_ack
from pocketmq.broker.pop.revive_log import AckedMessage
from pocketmq.broker.sending.retry_handlers import consumer_send_msg_back
from pocketmq.broker.storing.messages import record_at
from pocketmq.protocol.requests.pop import ChangeMessageInvisibleTime
from pocketmq.protocol.requests.send import ConsumerSendMsgBack

from ..calls.broker_call import SERVER_PEER, BrokerCall
from ..calls.handler import PROXY, RpcRefused
from ..messages import Code
from .receipt_handle import ReceiptHandle

_log = logging.getLogger("pocketmq.grpc")


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """One message that was delivered to a group which asked for `topic`."""

    broker: Broker
    group: str
    topic: str
    handle: ReceiptHandle

    @property
    def real_topic(self) -> str:
        """The topic that holds the message: the one asked for, or a retry topic of it."""
        return self.handle.receipt.real_topic(self.topic, self.group)

    def refuse_expired(self) -> None:
        """Raises `RpcRefused` if the message may have been delivered again since."""
        if self.handle.is_expired(self.broker.clock.now_ms()):
            raise RpcRefused(Code.INVALID_RECEIPT_HANDLE, f"{PROXY}receipt handle is expired")

    def prepare_ack(self) -> AckedMessage | None:
        """What to store so that the message is consumed; `None` if that of an orderly group is consumed already. Raises
        `Refusal`."""
        receipt = self.handle.receipt
        return prepare_ack(self.broker.popping, self.real_topic, self.group, receipt, SERVER_PEER)

    def acknowledge(self) -> bool:
        """The message is consumed; False if the broker refuses."""
        try:
            ack = self.prepare_ack()
            if ack is not None:
                store_ack(self.broker.popping, ack)
        except Refusal as error:
            _log.info("%s is not acknowledged for %s: %s", self.handle, self.group, error)
            return False
        return True

    def hide(self, invisible_ms: int, *, is_strict: bool, is_suspended: bool = False) -> ReceiptHandle | None:
        """Hide the message for `invisible_ms` from now; its new handle, `None` if the broker refuses.

        With `is_suspended` the next delivery does not count as another try. A message of an orderly group that is
        consumed keeps its handle.
        """
        handle, receipt = self.handle, self.handle.receipt
        try:
            request = ChangeMessageInvisibleTime(
                consumer_group=self.group,
                topic=self.real_topic,
                queue_id=receipt.queue_id,
                extra_info=str(receipt),
                offset=receipt.offset,
                invisible_time=invisible_ms,
                suspend=is_suspended,
            )
            reply = hide_message(self.broker.popping, request, SERVER_PEER)
        except Refusal as error:
            _log.info("%s of %s stays as it is: %s", handle, self.group, error)
            return None
        if reply is None:
            return handle
        return handle.changed(reply.pop_time, reply.invisible_time, is_strict=is_strict)

    def make_dead_letter(self, message_id: str) -> None:
        """Copy the message to the dead letters of its group. Raises `Refusal`."""
        request = ConsumerSendMsgBack(
            offset=self.handle.position,
            group=self.group,
            delay_level=-1,
            origin_msg_id=message_id,
            origin_topic=self.real_topic,
            max_reconsume_times=0,
        )
        consumer_send_msg_back(self.broker.sending, request, BrokerCall.of_server(request.code))

    def give_up(self, message_id: str) -> bool:
        """Make a message a dead letter that was delivered as often as its group allows. False if it cannot be copied:
        it is delivered once more."""
        try:
            self.make_dead_letter(message_id)
        except Refusal as refusal:
            _log.warning("%s of %s is no dead letter: %s", message_id, self.group, refusal.remark)
            return False
        return self.acknowledge()

    def is_at_its_position(self) -> bool:
        """Whether the record at the handle's position is the message that the handle names."""
        record = record_at(self.broker.store, self.handle.position)
        return (
            record is not None
            and record.topic == self.real_topic
            and record.queue_id == self.handle.receipt.queue_id
            and record.queue_offset == self.handle.receipt.offset
        )
