"""The requests that register a broker at a name server: which fields and topics they contain.

Pure functions of the broker's state; `registration.py` sends the requests. Mirrors `BrokerOuterAPI` and
`BrokerController.registerBrokerAll`.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.registration import (
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
)
from pocketmq.protocol.bodies.routes import QueueData, TopicRouteData
from pocketmq.protocol.bodies.topic_config import TopicConfig, TopicConfigSerializeWrapper
from pocketmq.protocol.message.flags import PERM_READ, PERM_WRITE
from pocketmq.protocol.message.record import body_crc
from pocketmq.protocol.requests.name_server import (
    BrokerHeartbeat,
    QueryDataVersion,
    RegisterBroker,
    RegisterTopicInNamesrv,
    UnregisterBroker,
)
from pocketmq.protocol.text import fastjson

from ..config.broker_config import BrokerConfig
from ..state.broker_state import BrokerState

Topics = dict[str, TopicConfig]


MAX_TOPICS: Final = 50_000
"""Topics of one registration, about 8 MiB: name servers read no frame of more than 16 MiB."""


def registration_parts(config: BrokerConfig, topics: Topics) -> Iterator[Topics]:
    """The topics of each registration: all of them, or a part each with enableSplitRegistration and of large tables."""
    size = max(config.split_registration_size, 2) if config.enable_split_registration else MAX_TOPICS
    if len(topics) <= size:
        yield topics
        return
    names = list(topics)
    starts = list(range(0, len(names) - 1, size))  # a name server reads a single topic as a change
    for start, end in zip(starts, [*starts[1:], len(names)], strict=True):
        yield {name: topics[name] for name in names[start:end]}


def registration_of(state: BrokerState, topics: Topics, version: DataVersion) -> tuple[RegisterBroker, bytes]:
    """Request 103 and its body with these topics, which are of this version of the table."""
    config = state.config
    table = {name: _offered(config, topic_config) for name, topic_config in topics.items()}
    if config.compressed_register:
        wrapper = TopicConfigAndMappingSerializeWrapper(topic_config_table=table, data_version=version)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode_compressed(
            emulate=config.emulate
        )
    elif not config.is_5:
        old = TopicConfigSerializeWrapper(topic_config_table=table, data_version=version)
        body = fastjson.dumps({"filterServerList": [], "topicConfigSerializeWrapper": old})
    else:
        wrapper = TopicConfigAndMappingSerializeWrapper(topic_config_table=table, data_version=version)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode()
    acts = config.enable_slave_acting_master
    request = RegisterBroker(
        broker_name=config.broker_name,
        broker_addr=state.identity.address,
        cluster_name=config.broker_cluster_name,
        ha_server_addr=state.identity.ha_address,
        broker_id=config.broker_id,
        heartbeat_timeout_millis=config.broker_not_active_timeout_millis if acts and config.is_5 else None,
        enable_acting_master=acts if config.is_5 else None,
        compressed=config.compressed_register,
        body_crc32=body_crc(body),
    )
    return request, body


def topic_registration(state: BrokerState, topic_config: TopicConfig) -> tuple[RegisterTopicInNamesrv, bytes]:
    """Request 217 with one topic and without a new data version of the table (enableSingleTopicRegister)."""
    offered = _offered(state.config, topic_config)
    queue = QueueData(
        broker_name=state.config.broker_name,
        read_queue_nums=offered.read_queue_nums,
        write_queue_nums=offered.write_queue_nums,
        perm=offered.perm,
        topic_sys_flag=offered.topic_sys_flag,
    )
    return RegisterTopicInNamesrv(topic=topic_config.name), TopicRouteData(queue_datas=[queue]).encode()


def _offered(config: BrokerConfig, topic_config: TopicConfig) -> TopicConfig:
    """A topic with its permission limited by brokerPermission: 5.x removes the missing bits, 4.x uses brokerPermission
    instead of the topic's own."""
    permission = config.broker_permission
    if permission & PERM_READ and permission & PERM_WRITE:
        return topic_config
    perm = permission if not config.is_5 else topic_config.perm & permission
    return msgspec.structs.replace(topic_config, perm=perm)


def version_query(state: BrokerState) -> QueryDataVersion:
    """Request 322; its body is the data version of the topics."""
    config = state.config
    return QueryDataVersion(
        broker_name=config.broker_name,
        broker_addr=state.identity.address,
        cluster_name=config.broker_cluster_name,
        broker_id=config.broker_id,
    )


def unregistration(state: BrokerState) -> UnregisterBroker:
    """Request 104."""
    config = state.config
    return UnregisterBroker(
        broker_name=config.broker_name,
        broker_addr=state.identity.address,
        cluster_name=config.broker_cluster_name,
        broker_id=config.broker_id,
    )


def heartbeat(state: BrokerState) -> BrokerHeartbeat:
    """Request 904."""
    config = state.config
    return BrokerHeartbeat(
        cluster_name=config.broker_cluster_name,
        broker_addr=state.identity.address,
        broker_name=config.broker_name,
    )
