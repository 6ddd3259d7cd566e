"""The broker.conf of a broker: small files, short periods, and what the plan says. The groups that it finds."""

from typing import Any

import orjson
from pocketmq.store import layout

from simulation.grpc_consumer import RENEWED_MS
from simulation.grpc_in_order import IN_ORDER
from simulation.machines import Machine
from simulation.plan import Plan, broker_name_of

BROKER_PORT, HA_PORT = 10911, 10912


def settings_of(plan: Plan, name: str, ip: str, name_servers: str) -> dict[str, Any]:
    """Of the broker on this machine."""
    is_slave = name not in plan.masters
    role = plan.role if name == "b0" else "ASYNC_MASTER"
    settings: dict[str, Any] = {
        "brokerName": broker_name_of(name),
        "brokerId": int(is_slave),
        "brokerRole": "SLAVE" if is_slave else role,
        "emulate": "4.9" if plan.emulate == "4" else "5",
        "flushDiskType": plan.flush,
        "namesrvAddr": name_servers,
        "listenPort": BROKER_PORT,
        "haListenPort": HA_PORT + 10,
        "brokerIP1": ip,
        "brokerIP2": ip,
        "defaultTopicQueueNums": plan.queues,
        "mappedFileSizeCommitLog": 65_536,
        "mappedFileSizeConsumeQueue": 2_000,
        "maxHashSlotNum": 64,
        "maxIndexNum": 1_000,
        "timerWheelEnable": plan.emulate == "5",
        "mappedFileSizeTimerLog": 65_536,
        "registerNameServerPeriod": 10_000,
        "transactionCheckInterval": 5_000,
        "transactionTimeOut": 3_000,
        "bindAddress": ip,
        "enableTopicMessageTypeCheck": False,
        "defaultInvisibleTimeMills": RENEWED_MS,
        "renewAheadTimeMillis": RENEWED_MS // 2,
        "renewSchedulePeriodMillis": 1_000,
    }
    if "recalls" in plan.uses:
        settings["recallMessageEnable"] = True
    if plan.has_record_crc:
        settings |= {"enabledAppendPropCRC": True, "forceVerifyPropCRC": True}
    if plan.emulate == "5" and "pop" in plan.uses:
        settings["defaultMessageRequestMode"] = "POP"
    if plan.emulate == "5" and plan.has_slave and broker_name_of(name) == "b0":
        settings["inSyncReplicas"] = 2
    return settings


def prepare_groups(machine: Machine) -> None:
    """The groups that an administrator has made before the broker's first start; it makes others by itself."""
    root, disk = machine.root, machine.disk
    assert root is not None
    assert disk is not None
    path = root / layout.CONFIG / layout.GROUPS
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = {IN_ORDER: {"groupName": IN_ORDER, "consumeMessageOrderly": True}}
    content = orjson.dumps({"subscriptionGroupTable": rows})
    path.write_bytes(content)
    disk.was_forced(path, content)
    disk.force_directory(path.parent)
    disk.force_directory(root)
