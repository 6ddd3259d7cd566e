"""One pull that passed its checks: it reads and answers, or waits (`pull_waiters.py`) and reads once more.

Mirrors the second half of `PullMessageProcessor` and `DefaultPullMessageResultHandler`.
"""

from typing import Final

from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.offsets import OffsetMovedEvent
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import OFFSET_MOVED_TOPIC
from pocketmq.protocol.requests.pull import PullMessage, PullMessageReply
from pocketmq.protocol.wire.command import JSON
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import GetResult, GetStatus

from ..config.broker_config import MASTER_ID
from ..filters.sql_filter import MessageFilter
from ..network.dispatch import HELD, Answer, Call, Held
from ..storing.messages import own_message
from .pull_waiters import PullWaiter
from .pulling import Pulling

_CODE_OF_STATUS: Final = {
    GetStatus.FOUND: ResponseCode.SUCCESS,
    GetStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}
"""Without the two statuses of a queue that has no messages: their code also depends on the requested offset."""


class Pull(PullWaiter):
    """One pull that passed its checks. It reads once, or twice with a wait between."""

    __slots__ = ("_broadcaster", "_group_config", "_pulling", "_topic_config")

    def __init__(
        self,
        pulling: Pulling,
        request: PullMessage,
        call: Call,
        topic_config: TopicConfig,
        group_config: SubscriptionGroupConfig,
        wanted: MessageFilter,
    ) -> None:
        super().__init__(call, request, wanted)
        self._pulling = pulling
        self._topic_config = topic_config
        self._group_config = group_config
        self._broadcaster: str | None = None
        """The client id of a broadcasting consumer whose offsets 5.x keeps."""
        if pulling.is_5 and pulling.config.enable_broadcast_offset_store:
            self._broadcaster = pulling.broadcasts.client_of(request, call)

    def try_now(self) -> Answer | Held:
        pulling, request = self._pulling, self.request
        result = self._read()
        code = self._record_code(result)
        commit_offset = request.commit_offset if request.sys_flag & flags.PULL_COMMIT_OFFSET else None
        if commit_offset is not None and not pulling.is_slave:
            pulling.offsets.commit(request.topic, request.consumer_group, request.queue_id, commit_offset)
        if (
            code == ResponseCode.PULL_NOT_FOUND
            and request.sys_flag & flags.PULL_SUSPEND
            and not pulling.waiters.is_full
        ):
            command = self.call.command
            command.body = None  # no longer used, and it may be as large as a frame
            # 4.9.7 answers a suspended pull in JSON, even a request with a binary header
            command.header_type = JSON
            wait_ms = request.suspend_timeout_millis
            if not pulling.config.long_polling_enable:
                wait_ms = pulling.config.short_polling_time_mills
            clock = pulling.clock
            pulling.waiters.hold(self, clock.now_ms() + wait_ms, clock.wall_ms() + wait_ms)
            return HELD
        return self._answer(result, code)

    def answer(self) -> None:
        """The second pass: it answers whether or not it finds messages."""
        result = self._read()
        self.call.answer(self._answer(result, self._record_code(result)))

    def _record_code(self, result: GetResult) -> ResponseCode:
        """The code of a result. Records the offset of a broadcasting consumer."""
        code = self._code(result)
        if self._broadcaster is not None:
            self._pulling.broadcasts.record_pull(self.request, self._broadcaster, code, result.next_offset)
        return code

    def _read(self) -> GetResult:
        pulling, request, (tags, sql) = self._pulling, self.request, self.wanted
        topic, queue_id, store = request.topic, request.queue_id, pulling.store
        reset = pulling.offsets.take_reset(topic, request.consumer_group, queue_id)
        if reset is not None:
            limits = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
            return GetResult(GetStatus.OFFSET_RESET, [], 0, reset, *limits)
        if self._broadcaster is not None:
            start = pulling.broadcasts.start_of(request, self._broadcaster)
            if start is not None:
                return GetResult(GetStatus.OFFSET_RESET, [], 0, start, 0, 0)
        return store.get_message(
            topic,
            queue_id,
            request.queue_offset,
            request.max_msg_nums,
            max_bytes=request.max_msg_bytes,
            matches=tags,
            matches_record=None if sql is None else sql.matches_record,
            max_reads=None if sql is None else sql.max_reads,
        )

    def _answer(self, result: GetResult, code: ResponseCode) -> Answer:
        pulling, request = self._pulling, self.request
        group, topic, queue_id = request.consumer_group, request.topic, request.queue_id
        body = None
        if code == ResponseCode.SUCCESS:
            body = result.views
            pulling.statistics.message_got(topic, group, result.count, result.size_bytes)
        is_5 = pulling.is_5
        if is_5:
            pulling.offsets.commit_pull(topic, group, queue_id, result.next_offset)
        elif code == ResponseCode.PULL_OFFSET_MOVED and not pulling.is_slave:
            _write_offset_moved(pulling, request, result.next_offset)
        reply = PullMessageReply(
            suggest_which_broker_id=self._suggested_broker(result),
            next_begin_offset=result.next_offset,
            min_offset=result.min_offset,
            max_offset=result.max_offset,
            topic_sys_flag=self._topic_config.topic_sys_flag if is_5 else None,
            group_sys_flag=self._group_config.group_sys_flag if is_5 else None,
        )
        return Answer(code=code, reply=reply, remark=result.status.name, body=body)

    def _code(self, result: GetResult) -> ResponseCode:
        pulling, code = self._pulling, _CODE_OF_STATUS.get(result.status)
        if code is None:  # the queue is empty or does not exist: any offset other than 0 must be corrected
            moved = self.request.queue_offset != 0
            code = ResponseCode.PULL_OFFSET_MOVED if moved else ResponseCode.PULL_NOT_FOUND
        if not pulling.is_slave or code == ResponseCode.SUCCESS:
            return code  # without them the consumer would skip its messages
        is_unchecked = (
            code == ResponseCode.PULL_OFFSET_MOVED and not pulling.config.store.offset_check_in_slave
        )
        if is_unchecked or (pulling.is_5 and self._goes_back_to_master(result)):
            return ResponseCode.PULL_RETRY_IMMEDIATELY
        return code

    def _goes_back_to_master(self, result: GetResult) -> bool:
        """Whether a slave sends the consumer back to the master: in the 4.9 line unless slaveReadEnable, in 5.x unless
        the consumer is far behind."""
        config = self._pulling.config
        if not self._pulling.is_slave:
            return False
        return not (config.slave_read_enable if not self._pulling.is_5 else result.suggest_slave)

    def _suggested_broker(self, result: GetResult) -> int:
        if not self._pulling.config.slave_read_enable or self._goes_back_to_master(result):
            return MASTER_ID
        group_config = self._group_config
        return (
            group_config.which_broker_when_consume_slowly if result.suggest_slave else group_config.broker_id
        )


def _write_offset_moved(pulling: Pulling, request: PullMessage, new_offset: int) -> None:
    """Store a message about a pull whose offset the broker corrected, whether or not the store accepts it (4.9 line).

    Its tag and its key are the consumer group. 5.x has the same method but no longer calls it. Mirrors
    `PullMessageProcessor.generateOffsetMovedEvent`.
    """
    group = request.consumer_group
    event = OffsetMovedEvent(
        consumer_group=group,
        message_queue=MessageQueue(request.topic, pulling.config.broker_name, request.queue_id),
        offset_request=request.queue_offset,
        offset_new=new_offset,
    )
    changes = (names.TAGS, group, names.DELAY, "0", names.KEYS, group)
    pulling.store.append(own_message(pulling.state, OFFSET_MOVED_TOPIC, 0, event.encode(), changes))
