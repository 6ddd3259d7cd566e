"""`pocketmq admin`: clean-up, replication, cold data, the timer's engine.

The calls are those of `pocketmq.client.admin.brokers`.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from click import echo
from pocketmq.client import AdminClient, ClientError
from pocketmq.client.connections.route import MASTER_ID
from pocketmq.protocol.text import fastjson

from .given import Given
from .texts import row, second_text, time_text

ENGINES: Final = {"R": "ROCKSDB_TIMELINE", "F": "FILE_TIME_WHEEL"}
NO_MASTER: Final = "NO_MASTER"


async def clean_expired_cq(admin: AdminClient, given: Given) -> None:
    await admin.clean_expired_consume_queues(**given.place())
    echo("success")


async def clean_unused_topic(admin: AdminClient, given: Given) -> None:
    await admin.clean_unused_topics(**given.place())
    echo("success")


async def delete_expired_commit_log(admin: AdminClient, given: Given) -> None:
    await admin.delete_expired_commit_log(**given.place())
    echo("success")


async def ha_status(admin: AdminClient, given: Given) -> None:
    """Runs once, or with an interval until interrupted."""
    while True:
        address = given.text("brokerAddr")
        masters = [address] if address else await admin.master_addresses(given.needed("clusterName"))
        for master in masters:
            await _show_ha_status(admin, master)
        if not await _again(given):
            return


async def get_broker_epoch(admin: AdminClient, given: Given) -> None:
    """Runs once, or with an interval until interrupted."""
    while True:
        name = given.text("brokerName")
        if name is not None:
            table = (await admin.cluster_info()).broker_addr_table or {}
            broker = table.get(name)
            addresses = sorted((broker.broker_addrs or {}).values()) if broker is not None else []
        else:
            addresses = await admin.broker_addresses(given.needed("clusterName"))
        for address in addresses:
            found = await admin.epochs(address)
            head = ("\n#clusterName\t%s\n#brokerName\t%s\n#brokerAddr\t%s\n#brokerId\t%d",)
            echo(row(*head, found.cluster_name, found.broker_name, address, found.broker_id), nl=False)
            entries = found.epoch_list or []
            for number, one in enumerate(entries, 1):
                end = found.max_offset if number == len(entries) else one.end_offset
                text = f"EpochEntry{{epoch={one.epoch}, startOffset={one.start_offset}, endOffset={end}}}"
                echo(f"\n#Epoch: {text}", nl=False)
            echo()
        if not await _again(given):
            return


async def reset_master_flush_offset(admin: AdminClient, given: Given) -> None:
    given.needed("offset")
    offset = given.number("offset", 0)
    await admin.reset_master_flush_offset(given.needed("brokerAddr"), offset)
    echo(f"reset master flush offset to {offset} success")


async def switch_timer_engine(admin: AdminClient, given: Given) -> None:
    engine = ENGINES.get(given.needed("engineType"))
    if engine is None:
        raise ClientError("switchTimerEngine engineType must be R or F")
    for broker in await admin.switch_timer_engine(engine, **given.place()):
        echo(f"switchTimerEngine to {engine} success, {broker}")


# -- cold data


async def get_cold_data_flow_ctr_info(admin: AdminClient, given: Given) -> None:
    async for address, head in _places(admin, given):
        echo(f" {head}")
        info = await admin.cold_data_info(address)
        if not info:
            echo(f"Broker[{address}] has no cold ctr table !")
            continue
        for one in info.get("runtimeTable", {}).values():
            _name_times(one)
        echo(fastjson.dumps(info, pretty=True).decode())


async def update_cold_data_flow_ctr_group_config(admin: AdminClient, given: Given) -> None:
    group, threshold = given.needed("consumerGroup"), given.needed("threshold")
    for broker in await admin.update_cold_data_limit(group, threshold, **given.place()):
        echo(f"updateColdDataFlowCtrGroupConfig success, {broker}")


async def remove_cold_data_flow_ctr_group_config(admin: AdminClient, given: Given) -> None:
    for broker in await admin.remove_cold_data_limit(given.needed("consumerGroup"), **given.place()):
        echo(f"remove broker cold read threshold success, {broker}")


async def set_commit_log_read_ahead_mode(admin: AdminClient, given: Given) -> None:
    mode = given.needed("commitLogReadAheadMode")
    if mode not in ("0", "1"):
        raise ClientError("set the read mode error; 0 is default, 1 random read")
    async for address, head in _places(admin, given):
        echo(f" {head}")
        echo(f"commitLog set readAhead mode rstStr{await admin.set_read_ahead_mode(address, mode)}")


# -- parts


async def _again(given: Given) -> bool:
    """Waits for the interval in seconds that the user gave; False if none was given."""
    interval = given.number("interval", 0)
    if interval > 0:
        await asyncio.sleep(interval)
    return interval > 0


async def _places(admin: AdminClient, given: Given) -> AsyncIterator[tuple[str, str]]:
    """A heading, and the address of the broker that was named or of each master of the cluster with its slaves."""
    address = given.text("brokerAddr")
    if address is not None:
        yield address, f"============{address}============"
        return
    for broker in await admin.cluster_brokers(given.needed("clusterName")):
        addresses = dict(sorted((broker.broker_addrs or {}).items()))
        master = addresses.pop(MASTER_ID, NO_MASTER)
        if master != NO_MASTER:
            yield master, f"============Master: {master}============"
        for slave in addresses.values():
            yield slave, f"============My Master: {master}=====Slave: {slave}============"


def _name_times(one: dict[str, Any]) -> None:
    """Times as text instead of milliseconds."""
    for key, name in (
        ("lastColdReadTimeMills", "lastColdReadTimeFormat"),
        ("createTimeMills", "createTimeFormat"),
    ):
        if key in one:
            one[name] = second_text(int(one.pop(key)))


async def _show_ha_status(admin: AdminClient, address: str) -> None:
    info = await admin.ha_status(address)
    if info.master:
        echo(f"\n#MasterAddr\t{address}")
        echo(f"#MasterCommitLogMaxOffset\t{info.master_commit_log_max_offset}")
        echo(f"#SlaveNum\t{len(info.ha_connection_info)}")
        echo(f"#InSyncSlaveNum\t{info.in_sync_slave_nums}")
        head = ("#SlaveAddr", "#SlaveAckOffset", "#Diff", "#TransferSpeed(KB/s)", "#Status")
        echo(row("%-32s  %-16s %16s %16s %16s %16s", *head, "#TransferFromWhere"))
        for slave in info.ha_connection_info:
            speed = slave.transferred_byte_in_second / 1024
            cells = (slave.addr, slave.slave_ack_offset, slave.diff, speed)
            status = "OK" if slave.in_sync else "Fall Behind"
            echo(row("%-32s  %-16d %16d %16.2f %16s %16d", *cells, status, slave.transfer_from_where))
        return
    client = info.ha_client_runtime_info
    echo(f"\n#MasterAddr\t{client.master_addr}")
    echo(f"#CommitLogMaxOffset\t{client.max_offset}")
    echo(row("#TransferSpeed(KB/s)\t%.2f", client.transferred_byte_in_second / 1024))
    echo(f"#LastReadTime\t{time_text(client.last_read_timestamp)}")
    echo(f"#LastWriteTime\t{time_text(client.last_write_timestamp)}")
    echo(f"#MasterFlushOffset\t{client.master_flush_offset}")
