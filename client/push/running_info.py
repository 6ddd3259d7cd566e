"""The inner state of a push consumer, as tools show it: the answer to GET_CONSUMER_RUNNING_INFO (307).

Mirrors `DefaultMQPushConsumerImpl.consumerRunningInfo`.
"""

from collections.abc import Mapping
from typing import Final

from pocketmq.protocol.bodies.client import ConsumeType
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.message.message_queue import MessageQueue

from ..rebalancing.consumer_context import ConsumerContext
from ..rebalancing.process_queue import PopProcessQueue, QueueTable
from ..settings.client_settings import SECRETS
from ..settings.consumer_settings import PushConsumerSettings

CLIENT_VERSION: Final = "V5_5_0"


def push_running_info(
    context: ConsumerContext[PushConsumerSettings],
    pulled: QueueTable,
    popped: Mapping[MessageQueue, PopProcessQueue],
    *,
    orderly: bool,
    start_ms: int,
) -> ConsumerRunningInfo:
    """Settings without secrets, subscriptions, queues and rates."""
    settings, offsets, subscriptions = context.settings, context.offsets, context.subscriptions.values()
    properties = {
        _camel(name): _text(getattr(settings, name))
        for name in settings.__struct_fields__
        if name not in SECRETS
    }
    properties |= {
        "PROP_NAMESERVER_ADDR": ";".join(context.instance.routes.name_servers.servers),
        "PROP_THREADPOOL_CORE_SIZE": str(settings.consume_thread_min),
        "PROP_CONSUMEORDERLY": _text(orderly),
        "PROP_CONSUME_TYPE": ConsumeType.CONSUME_PASSIVELY.value,
        "PROP_CLIENT_VERSION": CLIENT_VERSION,
        "PROP_CONSUMER_START_TIMESTAMP": str(start_ms),
    }
    return ConsumerRunningInfo(
        properties=properties,
        subscription_set=sorted(subscriptions, key=lambda subscription: subscription.topic or ""),
        mq_table={
            queue: process_queue.info(max(offsets.read(queue), 0)) for queue, process_queue in pulled.items()
        },
        mq_pop_table={queue: pop_queue.info() for queue, pop_queue in popped.items()},
        status_table={
            subscription.topic: context.statistics.of_topic(subscription.topic)
            for subscription in subscriptions
            if subscription.topic is not None
        },
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
