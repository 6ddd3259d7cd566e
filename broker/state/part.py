"""What the part of a broker in each room has of the state, and what most requests of readers check."""

from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import Refusal, faq
from .broker_state import BrokerState


class Part:
    """The state's objects as attributes of the part: some are on hot paths."""

    def __init__(self, state: BrokerState) -> None:
        self.state = state
        self.config = state.config
        self.is_5 = state.config.is_5
        self.is_slave = state.config.is_slave
        self.clock = state.clock
        self.store = state.store
        self.topics = state.topics
        self.groups = state.groups
        self.offsets = state.offsets
        self.statistics = state.statistics
        self.tables = state.tables

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
