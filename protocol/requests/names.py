"""The names of all requests, also of official ones that nothing here sends, reads or handles.

An official program may send those: journals, the request log and rules of faults name them; a server answers them with
REQUEST_CODE_NOT_SUPPORTED.
"""

from typing import Final

from ..rpc_numbers import RPC_NAMES
from ..wire.schema import REQUESTS, Line
from . import (
    admin,
    group,
    membership,
    name_server,
    offset,
    pop,
    pull,
    replication,
    security,
    send,
    to_client,
    topic,
)

DECLARED_IN: Final = (
    *(admin, group, membership, name_server, offset, pop),
    *(pull, replication, security, send, to_client, topic),
)
"""The modules that declare requests: importing one fills `REQUESTS`."""

UNUSED: Final[dict[int, tuple[str, Line | None, str]]] = {
    13: ("QUERY_BROKER_OFFSET", None, "official brokers do not know it"),
    22: ("GET_TOPIC_CONFIG_LIST", None, "official brokers do not know it"),
    23: ("GET_TOPIC_NAME_LIST", None, "official brokers do not know it"),
    27: ("TRIGGER_DELETE_FILES", None, "official brokers do not know it"),
    47: ("GET_CLIENT_CONFIG", 5, "official brokers do not know it"),
    209: ("SUSPEND_CONSUMER", None, "official programs do not know it"),
    210: ("RESUME_CONSUMER", None, "official programs do not know it"),
    211: ("RESET_CONSUMER_OFFSET_IN_CONSUMER", None, "official programs do not know it"),
    212: ("RESET_CONSUMER_OFFSET_IN_BROKER", None, "official brokers do not know it"),
    213: ("ADJUST_CONSUMER_THREAD_POOL", None, "official programs do not know it"),
    214: ("WHO_CONSUME_THE_MESSAGE", None, "official programs do not know it"),
    301: ("REGISTER_FILTER_SERVER", None, "a process with class filters reports itself"),
    302: ("REGISTER_MESSAGE_FILTER_CLASS", None, "the source text of a class filter"),
    354: ("CHECK_ROCKSDB_CQ_WRITE_PROGRESS", 5, "does the queue store in RocksDB hold the same?"),
    355: ("EXPORT_ROCKSDB_CONFIG_TO_JSON", 5, "write tables of RocksDB to their JSON files"),
    513: ("UPDATE_AND_CREATE_STATIC_TOPIC", 5, "a topic whose queues are numbered across brokers"),
    902: ("ADD_BROKER", 5, "start a broker inside a broker container"),
    903: ("REMOVE_BROKER", 5, "stop a broker inside a broker container"),
    1001: ("CONTROLLER_ALTER_SYNC_STATE_SET", 5, "a master reports which slaves are in sync"),
    1002: ("CONTROLLER_ELECT_MASTER", 5, "choose a master"),
    1003: ("CONTROLLER_REGISTER_BROKER", 5, "a broker with its id takes part"),
    1004: ("CONTROLLER_GET_REPLICA_INFO", 5, "master and slaves of a broker name"),
    1005: ("CONTROLLER_GET_METADATA_INFO", 5, "which controller leads"),
    1006: ("CONTROLLER_GET_SYNC_STATE_DATA", 5, "the replicas of broker names"),
    1007: ("GET_BROKER_EPOCH_CACHE", 5, "the epochs of a broker's masters"),
    1008: ("NOTIFY_BROKER_ROLE_CHANGED", 5, "controller to broker: a master was elected"),
    1009: ("UPDATE_CONTROLLER_CONFIG", 5, "change settings of the controller"),
    1010: ("GET_CONTROLLER_CONFIG", 5, "the settings of the controller"),
    1011: ("CLEAN_BROKER_DATA", 5, "the controller deletes brokers"),
    1012: ("CONTROLLER_GET_NEXT_BROKER_ID", 5, "a broker without an id asks for one"),
    1013: ("CONTROLLER_APPLY_BROKER_ID", 5, "a broker keeps an id"),
    1014: ("BROKER_CLOSE_CHANNEL_REQUEST", 5, "between controllers: a broker's connection closed"),
    1015: ("CHECK_NOT_ACTIVE_BROKER_REQUEST", 5, "between controllers: which brokers were silent?"),
    1016: ("GET_BROKER_LIVE_INFO_REQUEST", 5, "between controllers: when was a broker last heard?"),
    1017: ("GET_SYNC_STATE_DATA_REQUEST", 5, "between controllers: brokers without a live master"),
    1018: ("RAFT_BROKER_HEART_BEAT_EVENT_REQUEST", 5, "between controllers: the keep-alive of a broker"),
    2001: ("UPDATE_COLD_DATA_FLOW_CTR_CONFIG", 5, "limit what groups read from disk"),
    2002: ("REMOVE_COLD_DATA_FLOW_CTR_CONFIG", 5, "remove such a limit"),
    2003: ("GET_COLD_DATA_FLOW_CTR_INFO", 5, "the limits, and what was read"),
    2004: ("SET_COMMITLOG_READ_MODE", 5, "advise the system how the log is read"),
    5001: ("SWITCH_TIMER_ENGINE", 5, "keep delayed messages in RocksDB, or in the timer wheel"),
    200056: ("POP_ROLLBACK", 5, "write the records of a RocksDB pop store back as messages"),
    200070: ("POP_LITE_MESSAGE", 5, "messages of lite topics"),
    200071: ("LITE_SUBSCRIPTION_CTL", 5, "subscribe to lite topics or leave them"),
    200072: ("ACK_LITE_MESSAGE", 5, "official brokers do not know it"),
    200073: ("NOTIFY_UNSUBSCRIBE_LITE", 5, "broker to client: the client no longer has this lite topic"),
    200074: ("GET_BROKER_LITE_INFO", 5, "figures about the lite topics of a broker"),
    200075: ("GET_PARENT_TOPIC_INFO", 5, "a topic that holds lite topics"),
    200076: ("GET_LITE_TOPIC_INFO", 5, "one lite topic"),
    200077: ("GET_LITE_CLIENT_INFO", 5, "the lite topics of one client"),
    200078: ("GET_LITE_GROUP_INFO", 5, "the lag of a group in lite topics"),
    200079: ("TRIGGER_LITE_DISPATCH", 5, "look again for messages of a group"),
}
"""Code -> official name, the line that alone knows it, what it is for."""


def request_codes() -> dict[str, int]:
    """The code of every request by its official name."""
    return {request_name(code): code for code in sorted(REQUESTS.keys() | UNUSED.keys())}


def request_name(code: int) -> str:
    """The official name of a request, or that of the rpc of a gRPC client; otherwise the number as text."""
    if (declared := REQUESTS.get(code)) is not None:
        return declared.name
    return UNUSED[code][0] if code in UNUSED else RPC_NAMES.get(code, str(code))
