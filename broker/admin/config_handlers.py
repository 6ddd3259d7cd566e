"""Settings over the wire: 25 changes them, 26 tells them all.

Mirrors `AdminBrokerProcessor.updateBrokerConfig` and `getBrokerConfig`. As officially, unknown keys and bad values
are passed over and the answer is SUCCESS all the same (the log says which). What is accepted is looked up on the next
use, except for the keys of `AT_START`: those are shown by 26 and kept in broker.conf, and the remark of the answer
says that they wait for a restart. Where a file was given with -c, changed keys are written into it; officially the
whole file is written anew and its comments are lost.
"""

import logging
from typing import Final

import orjson
from pocketmq.protocol.requests.admin import GetBrokerConfig, GetBrokerConfigReply, UpdateBrokerConfig
from pocketmq.protocol.text.java_properties import (
    PropertiesError,
    decode_text,
    parse_properties,
    set_properties,
)
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.files.json_file import JsonFile

from ..access.access_control import without_secrets
from ..broker import Broker
from ..config import keys as config_keys
from ..config.broker_config import BrokerConfig
from ..config.loading import check_addresses
from ..config.table_settings import group_settings, topic_settings
from ..errors import BrokerError, StartError
from ..network.dispatch import Answer, Call, handles

_log = logging.getLogger("pocketmq.config")

BLACK_LIST: Final = frozenset({"configBlackList", "brokerConfigPath", "rocketmqHome"})
"""Refused by the 5.x line besides those that configBlackList names: a file name from the network is a way to write
anywhere. The 4.9 line takes them; ours does nothing with them there."""

AT_START: Final = frozenset(
    {
        # who it is, and what was bound, opened or registered under that name
        *("brokerClusterName", "brokerName", "brokerId", "brokerIP1", "brokerIP2", "brokerRole"),
        *("listenPort", "bindAddress", "isFastPortRequired", "emulate", "enableSlaveActingMaster"),
        *("serverChannelMaxIdleTimeSeconds", "writeBufferHighWaterMark"),
        *("maxTasksPerConnection", "maxCallsPerConnection", "pullThreadPoolQueueCapacity"),
        # topics and groups a broker is born with
        *("defaultTopicQueueNums", "clusterTopicEnable", "brokerTopicEnable"),
        *("traceTopicEnable", "msgTraceTopicName", "reviveQueueNum"),
        # files and how they are read
        *("storePathRootDir", "storePathCommitLog", "mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue"),
        *("maxHashSlotNum", "maxIndexNum", "messageIndexEnable", "messageIndexSafe"),
        *("checkCRCOnRecover", "commitLogRecoverMaxNum", "forceVerifyPropCRC", "readUnCommitted"),
        *("flushDiskType", "residency", "messageDelayLevel", "enableLmq", "enableMultiDispatch"),
        *("timerWheelEnable", "timerPrecisionMs", "timerRollWindowSlot", "mappedFileSizeTimerLog"),
        "channelExpiredTimeout",
        # who may do what, and how connections are encrypted
        *("aclEnable", "rocketmqHome", "authenticationEnabled", "authenticationMetadataProvider"),
        *("authenticationWhitelist", "authorizationEnabled", "authorizationWhitelist"),
        *("initAuthenticationUser", "innerClientAuthenticationCredentials", "useTLS", "tls.enable"),
        *("tls.config.file", "tls.test.mode.enable", "tls.server.mode", "tls.server.need.client.auth"),
        *("tls.server.keyPath", "tls.server.keyPassword", "tls.server.certPath", "tls.server.authClient"),
        *("tls.server.trustCertPath", "tls.client.keyPath", "tls.client.keyPassword", "tls.client.certPath"),
        *("tls.client.authServer", "tls.client.trustCertPath"),
    }
)
"""Honoured keys that are read once."""


@handles(UpdateBrokerConfig)
async def update_broker_config(broker: Broker, request: UpdateBrokerConfig, call: Call) -> Answer:
    """Body: properties text. A change of brokerPermission is told to the name servers before the answer."""
    if not call.body:
        return Answer()
    try:
        entries = parse_properties(decode_text(call.body))
    except PropertiesError as error:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "string2Properties error") from error
    given = {entry.key: entry.value for entry in entries}
    if broker.config.is_5 and (BLACK_LIST | set(broker.config.config_black_list.split(";"))) & given.keys():
        raise BrokerError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    accepted = {name: value for name, value in given.items() if _accept(broker.config, name, value)}
    if accepted:
        _log.info("%s set %s", call.connection.peer, without_secrets(accepted))
    broker.state.settings_version = broker.state.settings_version.next_version(broker.clock.now_ms())
    _keep(broker.config, accepted)
    if "brokerPermission" in given:
        await broker.cluster.registration.permission_changed()
    broker.topics.settings = topic_settings(broker.config)
    broker.groups.settings = group_settings(broker.config)
    waiting = sorted(AT_START.intersection(accepted))
    return Answer(remark=f"after a restart: {', '.join(waiting)}" if waiting else None)


@handles(GetBrokerConfig)
def get_broker_config(broker: Broker, request: GetBrokerConfig) -> Answer:
    """All official keys of the emulated line, a `key=value` a line."""
    version = broker.state.settings_version
    members: dict[str, int] = {"counter": version.counter}
    if broker.config.is_5:
        members["stateVersion"] = version.state_version
    members["timestamp"] = version.timestamp
    return Answer(
        reply=GetBrokerConfigReply(version=orjson.dumps(members).decode()),
        body=config_keys.official_text(broker.config, broker.config.emulate).encode(),
    )


def _accept(config: BrokerConfig, name: str, text: str) -> bool:
    """Take over one key; False where it is unknown, refused or unreadable."""
    key = config_keys.keys("broker").get(name)
    if key is None or name in BLACK_LIST:
        _log.warning("unknown key %s is ignored", name)
        return False
    try:
        value = config_keys.read_value(key, text)
        if name == "namesrvAddr":
            check_addresses(value, "25")
    except (ValueError, StartError) as error:
        _log.warning("%s=%s is ignored: %s", name, text, error)
        return False
    if key.verdict != "honoured" or name in AT_START:
        config.others[name] = config_keys.write_value(value) or ""
    else:
        config_keys.put(config, name, value)
    return True


def _keep(config: BrokerConfig, accepted: dict[str, str]) -> None:
    """Write changed keys into broker.conf; its former state becomes broker.conf.bak."""
    path = config.conf_file
    if path is None or not accepted:
        return
    try:
        text = decode_text(path.read_bytes()) if path.exists() else ""
        JsonFile(path).save(set_properties(text, accepted).encode())
    except (OSError, PropertiesError) as error:
        _log.error("cannot write changed settings to %s: %s", path, error)
