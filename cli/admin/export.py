"""`pocketmq admin`: files, those of mqadmin below /tmp/rocketmq; topics, groups and settings of a cluster as JSON.

As in mqadmin, the queue numbers of the brokers are added up. Every user of the machine may have laid a link below /tmp
before, so folders there must be ours, a file must be no link, and only its owner can read it.
"""

import os
import stat
from pathlib import Path
from typing import Any, Final

import msgspec
from click import echo
from pocketmq.client import AdminClient, ClientError, SubscriptionGroupConfig, TopicConfig
from pocketmq.client.clock import wall_ms
from pocketmq.client.connections.route import MASTER_ID
from pocketmq.protocol.bodies.topic_config import TopicConfigSerializeWrapper
from pocketmq.protocol.message.topics import (
    is_dlq_topic,
    is_internal_group,
    is_retry_topic,
    is_system_topic,
)
from pocketmq.protocol.text import fastjson

from .given import Given

SHARED: Final = Path("/tmp/rocketmq")
FOLDER: Final = SHARED / "export"
SETTINGS: Final = (
    *("brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime", "filterServerNums"),
    *(
        "flushDiskType",
        "maxMessageSize",
        "messageDelayLevel",
        "msgTraceTopicName",
        "slaveReadEnable",
        "traceOn",
    ),
    *("traceTopicEnable", "useTLS", "autoCreateTopicEnable", "autoCreateSubscriptionGroup"),
)


async def export_metadata(admin: AdminClient, given: Given) -> None:
    """Export the topics or the groups of one broker, or either or both of a cluster."""
    only_topics, only_groups = given.flag("topic"), given.flag("subscriptionGroup")
    with_special = given.flag("specialTopic")
    folder = Path(given.text("filePath") or FOLDER)
    address, cluster = given.text("brokerAddr"), given.text("clusterName")
    if address is not None:
        if only_topics:
            topics = await _user_topics(admin, address, with_special=with_special)
            version = (await admin.topic_table(address)).data_version
            table = TopicConfigSerializeWrapper(topic_config_table=topics, data_version=version)
            _write(folder / "topic.json", table, end="")
        elif only_groups:
            groups = await _user_groups(admin, address)
            whole = await admin.group_table(address)
            kept = msgspec.structs.replace(whole, subscription_group_table=groups)
            _write(folder / "subscriptionGroup.json", kept, end="")
        else:
            raise ClientError("for a broker, give either -t (topic) or -g (subscriptionGroup)")
        return
    if cluster is None:
        raise ClientError("give either -c (clusterName) or -b (brokerAddr)")
    all_topics: dict[str, TopicConfig] = {}
    all_groups: dict[str, SubscriptionGroupConfig] = {}
    for master in await admin.master_addresses(cluster):
        for name, topic in (await _user_topics(admin, master, with_special=with_special)).items():
            all_topics[name] = _joined_topic(topic, all_topics.get(name))
        for name, group in (await _user_groups(admin, master)).items():
            all_groups[name] = _joined_group(group, all_groups.get(name))
    found: dict[str, Any] = {"exportTime": wall_ms()}
    if not only_groups or only_topics:
        found["topicConfigTable"] = all_topics
    if not only_topics:
        found["subscriptionGroupTable"] = all_groups
    name = "topic" if only_topics else "subscriptionGroup" if only_groups else "metadata"
    _write(folder / f"{name}.json", found)


async def export_configs(admin: AdminClient, given: Given) -> None:
    """Export the important settings of each master, and the number of servers."""
    masters = slaves = 0
    configs: dict[str, dict[str, str]] = {}
    for broker in await admin.cluster_brokers(given.needed("clusterName")):
        addresses = dict(broker.broker_addrs or {})
        master = addresses.pop(MASTER_ID, None)
        slaves += len(addresses)
        if master is not None:
            masters += 1
            config = await admin.broker_config(master)
            kept: dict[str, str] = {key: config[key] for key in SETTINGS if key in config}
            configs[config.get("brokerName") or broker.broker_name or ""] = kept
    scale = {"namesrvSize": len(admin.name_servers), "masterBrokerSize": masters, "slaveBrokerSize": slaves}
    found = {"brokerConfigs": configs, "clusterScale": scale}
    _write(Path(given.text("filePath") or FOLDER) / "configs.json", found, end="")


# -- parts


async def _user_topics(admin: AdminClient, address: str, *, with_special: bool) -> dict[str, TopicConfig]:
    """The users' topics; retry and dead-letter topics if asked for."""
    own = await admin.system_topics(address)
    return {
        name: config
        for name, config in (await admin.topic_configs(address)).items()
        if name not in own
        and not is_system_topic(name)
        and (with_special or not (is_retry_topic(name) or is_dlq_topic(name)))
    }


async def _user_groups(admin: AdminClient, address: str) -> dict[str, SubscriptionGroupConfig]:
    return {
        name: config
        for name, config in (await admin.group_configs(address)).items()
        if not is_internal_group(name)
    }


def _joined_topic(topic: TopicConfig, before: TopicConfig | None) -> TopicConfig:
    if before is None:
        return topic
    return msgspec.structs.replace(
        topic,
        write_queue_nums=topic.write_queue_nums + before.write_queue_nums,
        read_queue_nums=topic.read_queue_nums + before.read_queue_nums,
    )


def _joined_group(
    group: SubscriptionGroupConfig, before: SubscriptionGroupConfig | None
) -> SubscriptionGroupConfig:
    if before is None:
        return group
    return msgspec.structs.replace(group, retry_queue_nums=group.retry_queue_nums + before.retry_queue_nums)


def _write(path: Path, content: object, *, end: str = "\n") -> None:
    try:
        write_file(path, fastjson.dumps(content, pretty=True))
    except OSError as error:
        raise ClientError(f"cannot write {path}: {error}") from error
    echo(f"export {path} success{end}", nl=False)


def write_file(path: Path, data: bytes) -> None:
    """Write a file and make its folders. Raises OSError, also for a folder of another user."""
    for folder in reversed(path.parents):
        if folder.is_relative_to(SHARED):
            _make_own(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _make_own(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{folder} is a link, or belongs to another user") from None
