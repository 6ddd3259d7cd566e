"""The parts of a push consumer, made in the order in which they need each other.

offsets, statistics -> what delivery works with -> locks -> delivery -> the queues with their pull loops
"""

from collections.abc import Callable, Sequence

import msgspec
from pocketmq.protocol.bodies.client import MessageModel

from ..delivery.concurrent_delivery import ConcurrentDelivery
from ..delivery.delivery_parts import DeliveryParts
from ..delivery.listeners import ListenerCall
from ..delivery.ordered_delivery import OrderedDelivery
from ..delivery.send_back import SendBack
from ..delivery.statistics import ConsumerStatistics
from ..hooks.consume_hooks import consume_hooks
from ..hooks.hooks import Hooks
from ..instance.groups import INNER_PRODUCER_GROUP
from ..instance.instance import ClientInstance
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.file_store import LocalFileOffsetStore
from ..offsets.offset_store import OffsetStore
from ..producing.sender import Sender
from ..rebalancing.plan import needs_lock
from ..rebalancing.queue_locks import QueueLocks
from ..rebalancing.queue_table import QueueTable
from ..rebalancing.subscriptions import Subscriptions
from ..settings.consumer_settings import PushConsumerSettings
from ..settings.producer_settings import ProducerSettings
from ..values.message import MessageExt
from ..values.namespaces import Namespace
from .pull_control import PullControl
from .push_queues import PushQueues, QueuesChanged


class ConsumerParts(msgspec.Struct, frozen=True):
    """What a push consumer works with from its start on."""

    statistics: ConsumerStatistics
    offsets: OffsetStore
    queues: PushQueues
    delivery: ConcurrentDelivery | OrderedDelivery


def build_parts(
    instance: ClientInstance,
    group: str,
    settings: PushConsumerSettings,
    subscriptions: Subscriptions,
    listener_call: ListenerCall,
    hooks: Hooks,
    namespace: Namespace,
    *,
    orderly: bool,
    own_offsets: OffsetStore | None,
    is_paused: bool,
    restore_topics: Callable[[Sequence[MessageExt]], None],
    listener_failed: Callable[[Exception, Sequence[MessageExt]], None],
    on_assigned: QueuesChanged | None,
    on_revoked: QueuesChanged | None,
) -> ConsumerParts:
    """The parts of one consumer. `own_offsets`: the offset store of the user, in place of the usual one."""
    routes, connections = instance.routes, instance.connections
    offsets = own_offsets or _offset_store(instance, group, settings)
    statistics = ConsumerStatistics(instance.loop.time)
    sender = Sender(instance, INNER_PRODUCER_GROUP, ProducerSettings())
    delivery_parts = DeliveryParts(
        group,
        settings,
        offsets,
        statistics,
        listener_call,
        SendBack(routes, connections, sender, group, namespace, settings.max_reconsume_times),
        consume_hooks(hooks, group, settings),
        restore_topics,
        listener_failed,
    )
    table = QueueTable()
    locks = None
    if needs_lock(orderly=orderly, message_model=settings.message_model):
        locks = QueueLocks(routes, connections, instance.client_id, group, table)
    delivery = OrderedDelivery(delivery_parts, locks) if orderly else ConcurrentDelivery(delivery_parts)
    queues = PushQueues(
        instance,
        group,
        settings,
        subscriptions,
        offsets,
        table,
        statistics,
        delivery,
        locks,
        PullControl(settings, is_paused=is_paused),
        hooks,
        on_assigned=on_assigned,
        on_revoked=on_revoked,
    )
    return ConsumerParts(statistics, offsets, queues, delivery)


def _offset_store(
    instance: ClientInstance, group: str, settings: PushConsumerSettings
) -> RemoteBrokerOffsetStore | LocalFileOffsetStore:
    if settings.message_model is MessageModel.CLUSTERING:
        return RemoteBrokerOffsetStore(instance, group)
    return LocalFileOffsetStore(instance.client_id, group)
