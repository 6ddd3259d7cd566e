"""What the parts of one consumer have in common: its group, settings, subscriptions, offsets and rates."""

from typing import Generic, TypeVar

import msgspec
from pocketmq.protocol.bodies.client import MessageModel

from ..hooks.hooks import Hooks
from ..instance.instance import ClientInstance
from ..offsets.broker_store import RemoteBrokerOffsetStore
from ..offsets.file_store import LocalFileOffsetStore
from ..offsets.offset_store import OffsetStore
from ..settings.consumer_settings import LitePullConsumerSettings, PushConsumerSettings
from .statistics import ConsumerStatistics
from .subscriptions import Subscriptions

SettingsT = TypeVar(
    "SettingsT",
    PushConsumerSettings,
    LitePullConsumerSettings,
    PushConsumerSettings | LitePullConsumerSettings,
)


class ConsumerContext(msgspec.Struct, Generic[SettingsT], frozen=True):
    """Of one started consumer. `group` has the namespace, if one is set."""

    instance: ClientInstance
    group: str
    settings: SettingsT
    subscriptions: Subscriptions
    offsets: OffsetStore
    statistics: ConsumerStatistics
    hooks: Hooks

    @property
    def is_clustering(self) -> bool:
        return self.settings.message_model is MessageModel.CLUSTERING


def consumer_context(
    instance: ClientInstance,
    group: str,
    settings: SettingsT,
    subscriptions: Subscriptions,
    hooks: Hooks,
    own_offsets: OffsetStore | None = None,
) -> ConsumerContext[SettingsT]:
    """With the offset store of the user, or else the one of the message model."""
    offsets = own_offsets
    if offsets is None and settings.message_model is MessageModel.CLUSTERING:
        offsets = RemoteBrokerOffsetStore(instance, group)
    elif offsets is None:
        offsets = LocalFileOffsetStore(instance.client_id, group)
    statistics = ConsumerStatistics(instance.loop.time)
    return ConsumerContext(instance, group, settings, subscriptions, offsets, statistics, hooks)
