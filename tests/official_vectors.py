"""Rows of the recorded vectors in `protocol/vectors/` (see its README)."""

import importlib
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent / "protocol" / "vectors"
_MODULES = (
    *("broker", "client", "client_state", "offsets", "pop", "registration", "routes", "topic_config"),
    *("group_config", "body", "replication", "revive", "security"),
)
NO_BODY_HERE = {
    *("BrokerReplicasInfo", "ElectMasterResponseBody", "GetBrokerLiteInfoResponseBody", "MessageQueue"),
    "EpochEntryCache",
    *("GetLiteClientInfoResponseBody", "GetLiteGroupInfoResponseBody", "GetLiteTopicInfoResponseBody"),
    *("GetParentTopicInfoResponseBody", "LiteSubscriptionCtlRequestBody", "SyncStateSet", "ConsumeByWho"),
    *("RollbackStats", "RoleChangeNotifyEntry", "ClusterAclVersionInfo", "TopicQueueMappingSerializeWrapper"),
}
"""Recorded classes that are no body of a request that is used here."""


def rows(file_name: str) -> list[list[str]]:
    lines = (FOLDER / file_name).read_text(encoding="utf-8").split("\n")
    return [line.split("\t") for line in lines if line]


def rules(version: str, rule: str) -> list[tuple[str, str]]:
    """(input, result) of one rule of one version."""
    return [(row[1], row[2]) for row in rows(f"rules-{version}.tsv") if row[0] == rule]


def body_class(name: str) -> type[msgspec.Struct]:
    for module in _MODULES:
        found = getattr(importlib.import_module(f"pocketmq.protocol.bodies.{module}"), name, None)
        if found is not None:
            return found
    raise LookupError(f"no body class {name}")
