"""What the part of a broker in each room has of the state, and refusals that several rooms answer with."""

from collections.abc import Iterator
from typing import Final

from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..config.broker_config import BrokerConfig
from ..errors import Refusal, faq
from ..tables.json_table import JsonTable
from ..time.periodic import Periodic
from .broker_state import BrokerState

UNSET_REMARK: Final = "not set any response code"
"""The remark of some successful answers of official brokers: the handler does not clear its initial remark."""


def invalid_parameter(config: BrokerConfig) -> ResponseCode:
    return ResponseCode.INVALID_PARAMETER if config.is_5 else ResponseCode.SYSTEM_ERROR


def refusal_of(config: BrokerConfig, status: PutStatus) -> Refusal:
    """The answer to a send that the store refused."""
    match status:
        case PutStatus.MESSAGE_ILLEGAL | PutStatus.PROPERTIES_SIZE_EXCEEDED:
            limit = config.store.max_message_size
            return Refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                "the message is illegal, maybe msg body or properties length not matched. "
                f"msg body length limit {limit}B, msg properties length limit 32KB.",
            )
        case PutStatus.SERVICE_NOT_AVAILABLE:
            return Refusal(
                ResponseCode.SERVICE_NOT_AVAILABLE,
                "service not available now. It may be caused by one of the following reasons: the broker's disk is "
                "full, messages are put to the slave, message store has been shut down, etc.",
            )
        case PutStatus.OS_PAGE_CACHE_BUSY:
            code = ResponseCode.SYSTEM_BUSY if config.is_5 else ResponseCode.SYSTEM_ERROR
            return Refusal(code, "[PC_SYNCHRONIZED]broker busy, start flow control for a while")
        case PutStatus.WHEEL_TIMER_NOT_ENABLE:
            remark = "accurate timer message is not enabled, timerWheelEnable is false"
            return Refusal(ResponseCode.SYSTEM_ERROR, remark)
        case PutStatus.WHEEL_TIMER_MSG_ILLEGAL:
            limit_ms = config.store.timer_max_delay_sec * 1000
            return Refusal(
                ResponseCode.MESSAGE_ILLEGAL,
                "timer message illegal, the delay time should not be bigger than the max delay "
                f"{limit_ms}ms; or if set del msg, the delay time should be bigger than the current time",
            )
        case PutStatus.WHEEL_TIMER_FLOW_CONTROL:
            limit = config.store.timer_congest_num_each_slot
            return Refusal(
                ResponseCode.SYSTEM_ERROR,
                f"timer message is under flow control, max num limit is {limit * 2} or the current value is "
                f"greater than {limit} and less than {limit * 2}, trigger random flow control",
            )
        case PutStatus.CREATE_MAPPED_FILE_FAILED:
            return Refusal(ResponseCode.SYSTEM_ERROR, "create mapped file failed, server is busy or broken.")
        case _:
            return Refusal(ResponseCode.SYSTEM_ERROR, "UNKNOWN_ERROR")


class Part:
    """The state's objects as attributes of the part: some are on hot paths."""

    own_tables: tuple[JsonTable, ...] = ()

    def __init__(self, state: BrokerState) -> None:
        self.state = state
        self.config = state.config
        self.is_5 = state.config.is_5
        self.is_slave = state.config.is_slave
        self.identity = state.identity
        self.clock = state.clock
        self.store = state.store
        self.topics = state.topics
        self.groups = state.groups
        self.offsets = state.offsets
        self.statistics = state.statistics
        self.tables = state.tables

    def periodic(self) -> Iterator[Periodic]:
        """The actions that the broker repeats."""
        return iter(())

    def existing_topic(self, topic: str) -> TopicConfig:
        """Raises `Refusal` for an unknown topic."""
        topic_config = self.topics.find(topic)
        if topic_config is None:
            remark = f"topic[{topic}] not exist, apply first please! {faq(is_5=self.is_5)}"
            raise Refusal(ResponseCode.TOPIC_NOT_EXIST, remark)
        return topic_config

    def existing_group(self, group: str) -> SubscriptionGroupConfig:
        """Raises `Refusal` for an unknown group that the broker does not create."""
        group_config = self.groups.find_or_create(group)
        if group_config is None:
            remark = f"subscription group [{group}] does not exist, {faq(is_5=self.is_5)}"
            raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        return group_config


def illegal_queue(topic_config: TopicConfig, queue_id: int, consumer: str) -> str:
    """The remark to a consumer that names a queue beyond those of the topic."""
    return (
        f"queueId[{queue_id}] is illegal, topic:[{topic_config.name}] "
        f"topicConfig.readQueueNums:[{topic_config.read_queue_nums}] consumer:[{consumer}]"
    )
