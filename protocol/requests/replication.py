"""Replication: what slaves ask their master, and what tools ask about it.

The log itself has a protocol of its own on the HA port (`wire/ha_stream.py`). Slaves fetch topics and groups with the
requests of tools (21, 201).
"""

from ..bodies.body import Text
from ..bodies.broker import TimerCheckpointBytes, TimerMetricsSerializeWrapper
from ..bodies.offsets import ConsumerOffsetSerializeWrapper
from ..bodies.replication import HARuntimeInfo
from ..wire.schema import Long, NoReply, Reply, Request, request


@request(43)
class GetAllConsumerOffset(Request[ConsumerOffsetSerializeWrapper], frozen=True, kw_only=True):
    """All committed offsets."""


@request(45)
class GetAllDelayOffset(Request[Text], frozen=True, kw_only=True):
    """Offsets of the delay levels: the text of the file."""


@request(60, only_in=5)
class GetTimerCheckPoint(Request[TimerCheckpointBytes], frozen=True, kw_only=True):
    """The timer's checkpoint."""


@request(61, only_in=5)
class GetTimerMetrics(Request[TimerMetricsSerializeWrapper], frozen=True, kw_only=True):
    """The number of delayed messages of each topic."""


class ExchangeBrokerHaInfoReply(Reply, frozen=True, kw_only=True):
    """The master's side of the exchange. `ExchangeHAInfoResponseHeader`."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(906, only_in=5)
class ExchangeBrokerHaInfo(Request[ExchangeBrokerHaInfoReply], frozen=True, kw_only=True):
    """Without an address: where is the master's log? With an address: the master's log is here.
    `ExchangeHAInfoRequestHeader`.
    """

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(907, only_in=5)
class GetBrokerHaStatus(Request[HARuntimeInfo], frozen=True, kw_only=True):
    """The state of replication."""


@request(908, only_in=5)
class ResetMasterFlushOffset(Request[NoReply], frozen=True, kw_only=True):
    """Tool to slave: use this as the master's flushed offset. `ResetMasterFlushOffsetHeader`."""

    master_flush_offset: Long
