"""The part of the broker's settings that the tables of topics and groups look at."""

from pocketmq.store.tables.built_in_topics import TopicSettings
from pocketmq.store.tables.group_table import GroupSettings

from .broker_config import BrokerConfig


def topic_settings(config: BrokerConfig) -> TopicSettings:
    """The part of the configuration that decides which topics exist."""
    return TopicSettings(
        broker_cluster_name=config.broker_cluster_name,
        broker_name=config.broker_name,
        auto_create_topic_enable=config.auto_create_topic_enable,
        default_topic_queue_nums=config.default_topic_queue_nums,
        cluster_topic_enable=config.cluster_topic_enable,
        broker_topic_enable=config.broker_topic_enable,
        trace_topic_enable=config.trace_topic_enable,
        msg_trace_topic_name=config.msg_trace_topic_name,
        revive_queue_num=config.revive_queue_num,
        enable_lmq=config.store.enable_lmq,
        emulate=config.emulate,
    )


def group_settings(config: BrokerConfig) -> GroupSettings:
    """The part of the configuration that decides which groups exist."""
    return GroupSettings(
        auto_create_subscription_group=config.auto_create_subscription_group,
        enable_create_sys_group=config.enable_create_sys_group,
        enable_lmq=config.store.enable_lmq,
        emulate=config.emulate,
    )
