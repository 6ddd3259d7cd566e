"""Brokers and name servers: figures, settings, key-value settings, write permission, clean-up; statistics of topics.

Part of `AdminClient` (`client.py`). Each docstring names the official method.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from pocketmq.protocol.bodies.body import PropertiesText, Text
from pocketmq.protocol.bodies.broker import BrokerStatsData
from pocketmq.protocol.bodies.replication import EpochEntryCache, HARuntimeInfo
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.requests.admin import (
    GetBrokerConfig,
    GetBrokerRuntimeInfo,
    GetColdDataFlowCtrInfo,
    RemoveColdDataFlowCtrConfig,
    SetCommitLogReadMode,
    SwitchTimerEngine,
    UpdateBrokerConfig,
    UpdateColdDataFlowCtrConfig,
    ViewBrokerStatsData,
)
from pocketmq.protocol.requests.name_server import (
    AddWritePermOfBroker,
    DeleteKvConfig,
    GetKvConfig,
    GetKvListByNamespace,
    GetNamesrvConfig,
    PutKvConfig,
    UpdateNamesrvConfig,
    WipeWritePermOfBroker,
)
from pocketmq.protocol.requests.replication import (
    GetBrokerEpochCache,
    GetBrokerHaStatus,
    ResetMasterFlushOffset,
)
from pocketmq.protocol.requests.topic import (
    CleanExpiredConsumeQueue,
    CleanUnusedTopic,
    DeleteExpiredCommitLog,
)
from pocketmq.protocol.text import fastjson

from ..connections.connection import Connection
from ..connections.route import MASTER_ID
from ..errors import ClientError
from .calls import parse_settings, settings_text
from .offsets import AdminOffsets

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
GROUP_GET_NUMS = "GROUP_GET_NUMS"


class TopicRates(msgspec.Struct, frozen=True):
    """Traffic of a topic, and of one group that reads it (a line of official StatsAllSubCommand).

    `group` is None for a topic nobody reads. Rates are messages a second over the last minute; the sums are of the
    last day, the last hour where no day has passed, the last minute where no hour has.
    """

    topic: str
    group: str | None
    accumulation: int
    in_tps: float
    out_tps: float
    in_24_hours: int
    out_24_hours: int


class AdminBrokers(AdminOffsets):
    """Needs progress, for the rates of a topic show how far its groups are behind."""

    async def broker_runtime(self, address: str) -> dict[str, str]:
        """Figures of a running broker, by name (fetchBrokerRuntimeStats)."""
        reply = await self._call(address, GetBrokerRuntimeInfo())
        return dict(sorted(reply.table.items()))

    async def broker_config(self, address: str) -> dict[str, str]:
        """The settings of a broker, by key (getBrokerConfig)."""
        return parse_settings(PropertiesText.decode(await self._body(address, GetBrokerConfig())))

    async def update_broker_config(
        self,
        settings: Mapping[str, str],
        *,
        address: str | None = None,
        cluster: str | None = None,
        with_slaves: bool = False,
    ) -> list[str]:
        """Change settings of a broker, or of all masters of a cluster; the brokers that did (updateBrokerConfig)."""
        targets = (
            await self.broker_addresses(cluster)
            if cluster is not None and address is None and with_slaves
            else await self._targets(address, cluster)
        )
        for target in targets:
            await self._call(target, UpdateBrokerConfig(), settings_text(settings))
        return targets

    async def broker_stats(self, address: str, stats_name: str, stats_key: str) -> BrokerStatsData:
        """One series of a broker's statistics (viewBrokerStatsData); `RequestRefused` where it has none.

        Names: TOPIC_PUT_NUMS, TOPIC_PUT_SIZE of a topic; GROUP_GET_NUMS, GROUP_GET_SIZE, SNDBCK_PUT_NUMS of
        `topic@group`; BROKER_PUT_NUMS, BROKER_GET_NUMS of a cluster.
        """
        request = ViewBrokerStatsData(stats_name=stats_name, stats_key=stats_key)
        return await self._call(address, request)

    async def topic_rates(self, topic: str) -> list[TopicRates]:
        """Traffic of a topic, a row for each group that reads it, one without group where nobody does."""
        route = await self.topic_route(topic)
        masters = [
            addrs[MASTER_ID] for one in route.broker_datas if MASTER_ID in (addrs := one.broker_addrs or {})
        ]
        in_tps, in_sum = await self._rates(masters, TOPIC_PUT_NUMS, topic)
        rows = []
        for group in await self.groups_of_topic(topic):
            out_tps, out_sum = await self._rates(masters, GROUP_GET_NUMS, f"{topic}@{group}")
            try:
                behind = max(0, await self.lag(group, topic))
            except ClientError:
                behind = 0
            rows.append(TopicRates(topic, group, behind, in_tps, out_tps, in_sum, out_sum))
        return rows or [TopicRates(topic, None, 0, in_tps, 0.0, in_sum, 0)]

    async def ha_status(self, address: str) -> HARuntimeInfo:
        """How far slaves are behind; 5.x (getBrokerHAStatus)."""
        return await self._call(address, GetBrokerHaStatus())

    async def epochs(self, address: str) -> EpochEntryCache:
        """The masterships a broker has seen; 5.x (getBrokerEpochCache)."""
        return await self._call(address, GetBrokerEpochCache())

    async def reset_master_flush_offset(self, address: str, offset: int) -> None:
        """Tell a slave how far its master is on disk; 5.x (resetMasterFlushOffset)."""
        await self._call(address, ResetMasterFlushOffset(master_flush_offset=offset))

    async def switch_timer_engine(
        self, engine_type: str, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Keep timed messages elsewhere: ROCKSDB_TIMELINE or FILE_TIME_WHEEL; 5.5 (switchTimerEngine)."""
        targets = await self._targets(address, cluster)
        for target in targets:
            await self._call(target, SwitchTimerEngine(engine_type=engine_type))
        return targets

    # -- reading from disk; 5.x

    async def update_cold_data_limit(
        self, group: str, threshold: str, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Limit the bytes a group may read from disk (updateColdDataFlowCtrGroupConfig)."""
        targets = await self._targets(address, cluster)
        for target in targets:
            await self._call(target, UpdateColdDataFlowCtrConfig(), settings_text({group: threshold}))
        return targets

    async def remove_cold_data_limit(
        self, group: str, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Take such a limit away (removeColdDataFlowCtrGroupConfig)."""
        targets = await self._targets(address, cluster)
        for target in targets:
            await self._call(target, RemoveColdDataFlowCtrConfig(), Text(group))
        return targets

    async def cold_data_info(self, address: str) -> dict[str, Any]:
        """The limits and what was read, as the broker puts it (getColdDataFlowCtrInfo)."""
        reply = await self._call(address, GetColdDataFlowCtrInfo())
        return fastjson.decode(reply, dict[str, Any]) if reply else {}

    async def set_read_ahead_mode(self, address: str, mode: str) -> str:
        """Advise the system how the log is read: 0 normal, 1 random; the broker's words (setCommitLogReadAheadMode)."""
        request = SetCommitLogReadMode(read_ahead_mode=mode)
        reply = await self._running.connections.exchange(
            address, request, timeout_seconds=self.timeout_ms / 1000
        )
        Connection.read_reply(request, reply)
        return reply.remark or ""

    # -- clean-up; all brokers where neither address nor cluster is given; the brokers that were asked

    async def clean_expired_consume_queues(
        self, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Remove queue files that point before the log's start (cleanExpiredConsumerQueue)."""
        return await self._everywhere(
            address, cluster, lambda one: self._call(one, CleanExpiredConsumeQueue())
        )

    async def clean_unused_topics(
        self, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Remove queues of topics that no longer exist (cleanUnusedTopic)."""
        return await self._everywhere(address, cluster, lambda one: self._call(one, CleanUnusedTopic()))

    async def delete_expired_commit_log(
        self, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Delete commit-log files that are past their time, now (deleteExpiredCommitLog)."""
        return await self._everywhere(address, cluster, lambda one: self._call(one, DeleteExpiredCommitLog()))

    # -- name servers

    async def namesrv_config(self, servers: Sequence[str] | None = None) -> dict[str, dict[str, str]]:
        """The settings of each name server, by its address (getNameServerConfig)."""
        return {
            server: parse_settings(await self._call(server, GetNamesrvConfig()))
            for server in servers or self.name_servers
        }

    async def update_namesrv_config(
        self, settings: Mapping[str, str], servers: Sequence[str] | None = None
    ) -> list[str]:
        """Change settings of every name server; the servers that did (updateNameServerConfig)."""
        targets = list(servers or self.name_servers)
        for server in targets:
            await self._call(server, UpdateNamesrvConfig(), settings_text(settings))
        return targets

    async def put_kv_config(self, namespace: str, key: str, value: str) -> None:
        """Set a key at every name server (createAndUpdateKvConfig)."""
        await self._tell_name_servers(PutKvConfig(namespace=namespace, key=key, value=value))

    async def kv_config(self, namespace: str, key: str) -> str:
        """A key's value (getKVConfig); `RequestRefused` 22 where there is none."""
        return (await self._ask(GetKvConfig(namespace=namespace, key=key))).value or ""

    async def kv_configs(self, namespace: str) -> dict[str, str]:
        """All keys of a namespace (getKVListByNamespace); `RequestRefused` 22 where there is none."""
        reply = await self._running.routes.name_servers.ask(GetKvListByNamespace(namespace=namespace))
        return dict(sorted(reply.table.items()))

    async def delete_kv_config(self, namespace: str, key: str) -> None:
        """Remove a key at every name server, there or not (deleteKvConfig)."""
        await self._tell_name_servers(DeleteKvConfig(namespace=namespace, key=key))

    async def wipe_write_perm(self, broker_name: str) -> dict[str, int]:
        """Take a broker out of all routes for writing; topics changed, by name server (wipeWritePermOfBroker)."""
        request = WipeWritePermOfBroker(broker_name=broker_name)
        return {one: (await self._call(one, request)).wipe_topic_count for one in self.name_servers}

    async def add_write_perm(self, broker_name: str) -> dict[str, int]:
        """Undo `wipe_write_perm` (addWritePermOfBroker)."""
        request = AddWritePermOfBroker(broker_name=broker_name)
        return {one: (await self._call(one, request)).add_topic_count for one in self.name_servers}

    # -- parts

    async def _rates(self, masters: Sequence[str], name: str, key: str) -> tuple[float, int]:
        """Rate and sum over all masters; those that know nothing of it count as 0."""
        tps, total = 0.0, 0
        for master in masters:
            try:
                data = await self.broker_stats(master, name, key)
            except (ClientError, BodyError):
                continue  # the series begins with the first message
            spans = (data.stats_day, data.stats_hour, data.stats_minute)
            tps += data.stats_minute.tps if data.stats_minute is not None else 0.0
            total += next((span.sum for span in spans if span is not None and span.sum), 0)
        return tps, total

    async def _everywhere(
        self, address: str | None, cluster: str | None, act: Callable[[str], Awaitable[object]]
    ) -> list[str]:
        if address is not None:
            targets = [address]
        elif cluster is not None:
            targets = await self.broker_addresses(cluster)
        else:
            table = (await self.cluster_info()).broker_addr_table or {}
            targets = [
                one
                for _, broker in sorted(table.items())
                for _, one in sorted((broker.broker_addrs or {}).items())
            ]
        for target in targets:
            await act(target)
        return targets
