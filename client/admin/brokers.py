"""Brokers: figures, settings, statistics; and the traffic of topics."""

from collections.abc import Mapping, Sequence
from typing import Unpack

import msgspec
from pocketmq.protocol.bodies.body import PropertiesText
from pocketmq.protocol.bodies.broker import BrokerStatsData
from pocketmq.protocol.requests.admin import (
    GetBrokerConfig,
    GetBrokerRuntimeInfo,
    UpdateBrokerConfig,
    ViewBrokerStatsData,
)
from pocketmq.protocol.text.java_properties import parse_properties, set_properties

from ..arguments import checks_arguments
from ..errors import ClientError
from .calls import Place, master_of
from .offsets import AdminOffsets

TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
GROUP_GET_NUMS = "GROUP_GET_NUMS"


class TopicRates(msgspec.Struct, frozen=True):
    """Traffic of a topic, and of one group that reads it (a line of official StatsAllSubCommand).

    `group` is None for a topic that no group reads. Rates are messages a second over the last minute. The sums are of
    the last day, or of the last hour or minute if the broker has not counted longer.
    """

    topic: str
    group: str | None
    accumulation: int
    in_tps: float
    out_tps: float
    in_24_hours: int
    out_24_hours: int


@checks_arguments
class AdminBrokers(AdminOffsets):
    """The rates of a topic show the lag of its groups, so this builds on `AdminOffsets`."""

    async def broker_runtime(self, address: str) -> dict[str, str]:
        """Figures of a running broker, by name (fetchBrokerRuntimeStats)."""
        return dict(sorted((await self._call(address, GetBrokerRuntimeInfo())).table.items()))

    async def broker_config(self, address: str) -> dict[str, str]:
        """The settings of a broker, by key (getBrokerConfig)."""
        text = await self._read_body(address, GetBrokerConfig(), PropertiesText.decode)
        return {entry.key: entry.value for entry in parse_properties(text)}

    async def update_broker_config(
        self, settings: Mapping[str, str], *, with_slaves: bool = False, **place: Unpack[Place]
    ) -> list[str]:
        """Change settings of a broker, or of all masters of a cluster; the brokers that answered (updateBrokerConfig).

        A broker skips keys it does not know and values it cannot read, and answers with success; only its log says so.
        """
        body = PropertiesText(set_properties("", settings))
        return await self._change(place, UpdateBrokerConfig(), body, with_slaves=with_slaves)

    async def broker_stats(self, address: str, stats_name: str, stats_key: str) -> BrokerStatsData:
        """One series of a broker's statistics (viewBrokerStatsData); `RequestRefused` if it has no such series.

        Names: TOPIC_PUT_NUMS, TOPIC_PUT_SIZE of a topic; GROUP_GET_NUMS, GROUP_GET_SIZE, SNDBCK_PUT_NUMS of
        `topic@group`; BROKER_PUT_NUMS, BROKER_GET_NUMS of a cluster.
        """
        request = ViewBrokerStatsData(stats_name=stats_name, stats_key=stats_key)
        return await self._call(address, request)

    async def topic_rates(self, topic: str) -> list[TopicRates]:
        """Traffic of a topic: a row for each group that reads it, one without a group if none does."""
        route = await self.topic_route(topic)
        masters = [address for address in map(master_of, route.broker_datas) if address is not None]
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

    # -- parts

    async def _rates(self, masters: Sequence[str], name: str, key: str) -> tuple[float, int]:
        """Rate and sum over all masters; one without the series counts as 0."""
        tps, total = 0.0, 0
        for master in masters:
            try:
                data = await self.broker_stats(master, name, key)
            except ClientError:
                continue  # the series begins with the first message
            spans = (data.stats_day, data.stats_hour, data.stats_minute)
            tps += data.stats_minute.tps if data.stats_minute is not None else 0.0
            total += next((span.sum for span in spans if span is not None and span.sum), 0)
        return tps, total
