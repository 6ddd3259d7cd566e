"""Reading a queue: 11 PULL_MESSAGE and 361 LITE_PULL_MESSAGE.

Checks, subscription, read, answer, in the order of `PullMessageProcessor`. A pull at the very end of its queue that
may wait is held by `pull_waiters.py` and run again, without waiting, when it is woken. Messages travel as views of
the mapped log.
"""

from typing import Final

from pocketmq.protocol.bodies.client import is_tag_type
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message import flags
from pocketmq.protocol.requests.pull import LitePullMessage, PullMessage, PullMessageReply
from pocketmq.protocol.wire.command import JSON
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import GetResult, GetStatus

from ..config.broker_config import MASTER_ID
from ..errors import Refusal, faq
from ..filters.sql_filter import ExpressionRefused, SqlFilter, compile_expression
from ..filters.tag_filter import (
    TagsMatch,
    check_filter_enabled,
    expression_match,
    tags_match,
)
from ..network.dispatch import HELD, Answer, Call, Held, handles
from ..state.refusals import invalid_parameter
from .offset_moved_events import write_offset_moved
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
"""The two statuses of a queue without messages depend on the offset asked for as well."""

FORBIDDEN_BROKER: Final = 1
FORBIDDEN_GROUP: Final = 2
FORBIDDEN_TOPIC: Final = 3
FORBIDDEN_BROADCAST: Final = 4
FORBIDDEN_SUBSCRIPTION: Final = 5


class PullForbidden(Refusal):
    """NO_PERMISSION with the number that tells a 5.x client who forbade it."""

    def __init__(self, forbidden_type: int, remark: str) -> None:
        super().__init__(ResponseCode.NO_PERMISSION, remark)
        self.forbidden_type = forbidden_type


@handles(PullMessage, main_port=True)
@handles(LitePullMessage, main_port=True)
def pull_message(pulling: Pulling, request: PullMessage, call: Call) -> Answer | Held:
    """Messages from `queue_offset` on; held where the queue has no more and the request may wait."""
    try:
        group_config = _checked_group(pulling, request)
        topic_config = _checked_topic(pulling, request, call)
        matches, sql = _checked_subscription(pulling, request, group_config)
    except PullForbidden as refusal:
        fields = {"forbiddenType": str(refusal.forbidden_type)} if pulling.is_5 else None
        return Answer(code=refusal.code, remark=refusal.remark, fields=fields)
    pull = _Pull(pulling, request, call, topic_config, group_config, matches, sql)
    return pull.first_pass()


class _Pull:
    """One pull that passed its checks; run once, or twice with a wait between."""

    __slots__ = (
        "_broadcaster",
        "_call",
        "_group_config",
        "_matches",
        "_pulling",
        "_request",
        "_sql",
        "_topic_config",
    )

    def __init__(
        self,
        pulling: Pulling,
        request: PullMessage,
        call: Call,
        topic_config: TopicConfig,
        group_config: SubscriptionGroupConfig,
        matches: TagsMatch | None,
        sql: SqlFilter | None,
    ) -> None:
        self._pulling = pulling
        self._request = request
        self._call = call
        self._topic_config = topic_config
        self._group_config = group_config
        self._matches = matches
        self._sql = sql
        self._broadcaster: str | None = None
        """The client id, where 5.x looks after the offsets of a broadcasting consumer."""
        config = pulling.config
        if pulling.is_5 and config.enable_broadcast_offset_store:
            self._broadcaster = pulling.broadcasts.client_of(request, call)

    def first_pass(self) -> Answer | Held:
        pulling, request = self._pulling, self._request
        result = self._read()
        code = self._noted(result)
        commit_offset = request.commit_offset if request.sys_flag & flags.PULL_COMMIT_OFFSET else None
        if commit_offset is not None and not pulling.is_slave:
            pulling.offsets.commit(request.topic, request.consumer_group, request.queue_id, commit_offset)
        if (
            code == ResponseCode.PULL_NOT_FOUND
            and request.sys_flag & flags.PULL_SUSPEND
            and not pulling.waiters.is_full
        ):
            self._hold()
            return HELD
        return self._answer(result, code)

    def woken(self, waiter: PullWaiter) -> None:
        """The second pass: whatever it finds is the answer."""
        result = self._read()
        self._call.answer(self._answer(result, self._noted(result)))

    def _noted(self, result: GetResult) -> ResponseCode:
        """The code of a result, after the offset of a broadcasting consumer was noted."""
        code = self._code(result)
        if self._broadcaster is not None:
            self._pulling.broadcasts.pulled(self._request, self._broadcaster, code, result.next_offset)
        return code

    def _hold(self) -> None:
        pulling, request = self._pulling, self._request
        command = self._call.command
        command.body = None  # it is not used again, and it may be as large as a frame
        command.header_type = JSON  # 4.9.7 answers a suspended pull in JSON, whatever the request had
        config = pulling.config
        wait_ms = (
            request.suspend_timeout_millis if config.long_polling_enable else config.short_polling_time_mills
        )
        deadline_ms = pulling.clock.now_ms() + wait_ms
        pulling.waiters.hold(
            PullWaiter(
                self._call,
                request.topic,
                request.queue_id,
                request.queue_offset,
                deadline_ms,
                self._matches,
                self.woken,
                self._sql,
            )
        )

    def _read(self) -> GetResult:
        pulling, request = self._pulling, self._request
        group, topic, queue_id = request.consumer_group, request.topic, request.queue_id
        reset = pulling.offsets.take_reset(topic, group, queue_id)
        if reset is not None:
            return GetResult(
                status=GetStatus.OFFSET_RESET,
                views=[],
                count=0,
                next_offset=reset,
                min_offset=pulling.store.min_offset(topic, queue_id),
                max_offset=pulling.store.max_offset(topic, queue_id),
            )
        if self._broadcaster is not None:
            start = pulling.broadcasts.start_of(request, self._broadcaster)
            if start is not None:
                return GetResult(
                    status=GetStatus.OFFSET_RESET,
                    views=[],
                    count=0,
                    next_offset=start,
                    min_offset=0,
                    max_offset=0,
                )
        return pulling.store.get_message(
            topic,
            queue_id,
            request.queue_offset,
            request.max_msg_nums,
            max_bytes=request.max_msg_bytes,
            matches=self._matches,
            matches_record=None if self._sql is None else self._sql.matches_record,
        )

    def _answer(self, result: GetResult, code: ResponseCode) -> Answer:
        pulling, request = self._pulling, self._request
        group, topic, queue_id = request.consumer_group, request.topic, request.queue_id
        body = None
        if code == ResponseCode.SUCCESS:
            body = result.views
            pulling.statistics.message_got(topic, group, result.count, result.size_bytes)
        is_5 = pulling.is_5
        if is_5:
            pulling.offsets.commit_pull(topic, group, queue_id, result.next_offset)
        elif code == ResponseCode.PULL_OFFSET_MOVED and not pulling.is_slave:
            write_offset_moved(pulling, request, result.next_offset)
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
        code = _code_of(result, self._request.queue_offset)
        if self._goes_back_to_master(result) and (
            not self._pulling.is_5 or result.status is not GetStatus.FOUND
        ):
            return ResponseCode.PULL_RETRY_IMMEDIATELY
        return code

    def _goes_back_to_master(self, result: GetResult) -> bool:
        """A slave sends the consumer to its master where that can serve as well: in the 4.9 line unless
        slaveReadEnable, in 5.x unless the consumer is far behind."""
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


def _code_of(result: GetResult, queue_offset: int) -> ResponseCode:
    code = _CODE_OF_STATUS.get(result.status)
    if code is not None:
        return code
    # The queue is empty or does not exist: an offset other than 0 has to be corrected.
    return ResponseCode.PULL_OFFSET_MOVED if queue_offset != 0 else ResponseCode.PULL_NOT_FOUND


def _checked_group(pulling: Pulling, request: PullMessage) -> SubscriptionGroupConfig:
    config = pulling.config
    if not config.broker_permission & flags.PERM_READ:
        raise PullForbidden(FORBIDDEN_BROKER, f"the broker[{config.broker_ip1}] pulling message is forbidden")
    if isinstance(request, LitePullMessage) and not config.lite_pull_message_enable:
        remark = f"the broker[{config.broker_ip1}] for lite pull consumer is forbidden"
        raise PullForbidden(FORBIDDEN_BROKER, remark)
    group_config = pulling.groups.find_or_create(request.consumer_group)
    if group_config is None:
        remark = (
            f"subscription group [{request.consumer_group}] does not exist, {faq(is_5=pulling.config.is_5)}"
        )
        raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if not group_config.consume_enable:
        remark = f"subscription group no permission, {request.consumer_group}"
        raise PullForbidden(FORBIDDEN_GROUP, remark)
    return group_config


def _checked_topic(pulling: Pulling, request: PullMessage, call: Call) -> TopicConfig:
    topic = request.topic
    topic_config = pulling.topics.find(topic)
    if topic_config is None:
        remark = f"topic[{topic}] not exist, apply first please! {faq(is_5=pulling.config.is_5)}"
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, remark)
    if not topic_config.perm & flags.PERM_READ:
        raise PullForbidden(FORBIDDEN_TOPIC, f"the topic[{topic}] pulling message is forbidden")
    if not 0 <= request.queue_id < topic_config.read_queue_nums:
        raise Refusal(
            invalid_parameter(pulling.config),
            f"queueId[{request.queue_id}] is illegal, topic:[{topic}] "
            f"topicConfig.readQueueNums:[{topic_config.read_queue_nums}] consumer:[/{call.connection.peer}]",
        )
    return topic_config


def _checked_subscription(
    pulling: Pulling, request: PullMessage, group_config: SubscriptionGroupConfig
) -> tuple[TagsMatch | None, SqlFilter | None]:
    """What the pull wants, from its own text or from the group's heartbeats."""
    if request.sys_flag & flags.PULL_SUBSCRIPTION:
        if not is_tag_type(request.expression_type):
            return None, _sql_of_request(pulling, request)
        try:
            return expression_match(request.topic, request.subscription or "*"), None
        except ProtocolError as error:
            raise _parse_failed() from error
    group = pulling.consumers.get(request.consumer_group)
    if group is None:
        remark = f"the consumer's group info not exist{faq(is_5=pulling.config.is_5)}"
        raise Refusal(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
    if not group_config.consume_broadcast_enable and group.message_model == "BROADCASTING":
        remark = f"the consumer group[{request.consumer_group}] can not consume by broadcast way"
        raise PullForbidden(FORBIDDEN_BROADCAST, remark)
    if pulling.groups.is_forbidden(request.consumer_group, request.topic):
        remark = f"the consumer group[{request.consumer_group}] is forbidden for topic[{request.topic}]"
        raise PullForbidden(FORBIDDEN_SUBSCRIPTION, remark)
    subscription = group.subscription(request.topic)
    if subscription is None:
        remark = f"the consumer's subscription not exist{faq(is_5=pulling.config.is_5)}"
        raise Refusal(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
    if subscription.sub_version < request.sub_version:
        raise Refusal(ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest")
    if is_tag_type(subscription.expression_type):
        return tags_match(subscription), None
    return None, _sql_of_group(pulling, request, subscription.expression_type)


def _parse_failed() -> Refusal:
    return Refusal(ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed")


def _sql_of_request(pulling: Pulling, request: PullMessage) -> SqlFilter | None:
    """The filter a pull carries itself. One that cannot be compiled filters nothing, as in the official broker: its
    client asked 46 before."""
    if not request.subscription:
        raise _parse_failed()
    check_filter_enabled(pulling.config, request.expression_type)
    try:
        return compile_expression(request.subscription, request.expression_type, is_5=pulling.config.is_5)
    except ExpressionRefused:
        return None


def _sql_of_group(pulling: Pulling, request: PullMessage, expression_type: str) -> SqlFilter:
    """The filter the group's heartbeats registered."""
    known = pulling.filters.find(request.topic, request.consumer_group)
    if known is None:
        raise Refusal(
            ResponseCode.FILTER_DATA_NOT_EXIST,
            "The broker's consumer filter data is not exist!Your expression may be wrong!",
        )
    data, sql = known
    if data.client_version < request.sub_version:
        raise Refusal(ResponseCode.FILTER_DATA_NOT_LATEST, "the consumer's consumer filter data not latest")
    check_filter_enabled(pulling.config, expression_type)
    return sql
