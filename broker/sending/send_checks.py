"""What a send must pass before it is stored, in the official order and words.

Mirrors `AbstractSendMessageProcessor.msgCheck` and the store status table of `SendMessageProcessor`. The 4.9 line
answers SYSTEM_ERROR where 5.x has INVALID_PARAMETER.
"""

from datetime import datetime

from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message.topics import is_retry_topic, is_unsendable_topic, topic_refusal
from pocketmq.protocol.requests.send import AnySend
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.values import PutStatus

from ..broker import Broker
from ..errors import BrokerError
from ..network.dispatch import Call

def check_send(broker: Broker, request: AnySend, call: Call) -> TopicConfig:
    """The topic a send goes to, made on the way if it may be. Raises `BrokerError`."""
    config = broker.config
    if config.store.broker_role == "SLAVE":
        refuse_at_slave(broker)
    if call.command.body is None and config.emulate >= 5:
        # Officially its length is read before anything else is looked at.
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "NullPointerException: a message without a body")
    if broker.waiting_sends >= config.send_thread_pool_queue_capacity:
        raise BrokerError(ResponseCode.SYSTEM_BUSY, OVERLOAD)
    if config.start_accept_send_request_time_stamp > 0:
        _check_accepting(broker)
    topic = request.topic
    topic_config = broker.topics.find(topic)
    if topic_config is None or not config.broker_permission & flags.PERM_WRITE or is_unsendable_topic(topic):
        topic_config = _check_topic(broker, request, call)
    queues = max(topic_config.write_queue_nums, topic_config.read_queue_nums)
    if request.queue_id >= queues:
        text = topic_config_text(broker, topic_config)
        raise BrokerError(
            invalid_parameter(broker),
            f"request queueId[{request.queue_id}] is illegal, {text} Producer: {call.connection.peer}",
        )
    return topic_config


def refuse_at_slave(broker: Broker) -> None:
    """5.x turns sends to a slave away before it looks at them; in the 4.9 line the store refuses them."""
    if not broker.is_emulating_4 and broker.config.store.broker_role == "SLAVE":
        remark = "[REJECTREQUEST]system busy, start flow control for a while"
        raise BrokerError(ResponseCode.SYSTEM_BUSY, remark)


def _check_accepting(broker: Broker) -> None:
    start_ms = broker.config.start_accept_send_request_time_stamp
    if broker.clock.now_ms() < start_ms:
        start = datetime.fromtimestamp(start_ms / 1000).strftime("%Y-%m-%d %H:%M:%S:%f")[:-3]
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {start}")


def _check_topic(broker: Broker, request: AnySend, call: Call) -> TopicConfig:
    config, topic = broker.config, request.topic
    topic_config = broker.topics.find(topic)
    if not config.broker_permission & flags.PERM_WRITE and topic_config is not None and topic_config.order:
        raise BrokerError(
            ResponseCode.NO_PERMISSION, f"the broker[{config.broker_ip1}] sending message is forbidden"
        )
    refusal = topic_refusal(topic, emulate=config.emulate)
    if refusal is not None:
        raise BrokerError(invalid_parameter(broker), refusal)
    if is_unsendable_topic(topic):
        raise BrokerError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
    if topic_config is None:
        topic_config = _create(broker, request)
    if topic_config is None:
        raise BrokerError(
            ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!{faq(broker)}"
        )
    return topic_config


def _create(broker: Broker, request: AnySend) -> TopicConfig | None:
    topic_sys_flag = 0
    if request.unit_mode:
        topic_sys_flag = flags.TOPIC_UNIT_SUB if is_retry_topic(request.topic) else flags.TOPIC_UNIT
    created = broker.topics.create_for_send(
        request.topic, request.default_topic, request.default_topic_queue_nums, topic_sys_flag
    )
    if created is None and is_retry_topic(request.topic):
        created = broker.topics.create_for_send_back(request.topic, 1, topic_sys_flag=topic_sys_flag)
    return created


def topic_config_text(broker: Broker, topic_config: TopicConfig) -> str:
    """`TopicConfig.toString`, as remarks show it."""
    order = "true" if topic_config.order else "false"
    text = (
        f"TopicConfig [topicName={topic_config.topic_name}, readQueueNums={topic_config.read_queue_nums}, "
        f"writeQueueNums={topic_config.write_queue_nums}, perm={flags.perm_text(topic_config.perm)}, "
        f"topicFilterType={topic_config.topic_filter_type}, topicSysFlag={topic_config.topic_sys_flag}, order={order}"
    )
    if broker.config.emulate < 5:
        return text + "]"
    attributes = ", ".join(f"{key}={value}" for key, value in topic_config.attributes.items())
    return f"{text}, attributes={{{attributes}}}]"
