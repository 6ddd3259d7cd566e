"""What a slave asks its master beside the log itself, and what tools ask about replication.

Not here: the log's own protocol on the HA port; the topic and group tables (21, 201), which slaves fetch with the
tools' requests.
"""

from ..bodies.body import OtherBytes, Text
from ..bodies.broker import TimerMetricsSerializeWrapper
from ..bodies.offsets import ConsumerOffsetSerializeWrapper
from ..bodies.replication import HARuntimeInfo
from ..wire.schema import Long, NoReply, Reply, Request, request


@request(43)
class GetAllConsumerOffset(Request[ConsumerOffsetSerializeWrapper], frozen=True, kw_only=True):
    """All committed offsets; the reply's body is ConsumerOffsetSerializeWrapper."""


@request(45)
class GetAllDelayOffset(Request[Text], frozen=True, kw_only=True):
    """Offsets of the delay levels; the reply's body is the text of the file."""


@request(60, only_in=5)
class GetTimerCheckPoint(Request[OtherBytes], frozen=True, kw_only=True):
    """Where the timer stands; the reply's body is the 56 bytes of TimerCheckpoint."""


@request(61, only_in=5)
class GetTimerMetrics(Request[TimerMetricsSerializeWrapper], frozen=True, kw_only=True):
    """Timed messages waiting for each topic; the reply's body is TimerMetricsSerializeWrapper."""


class ExchangeBrokerHaInfoReply(Reply, frozen=True, kw_only=True):
    """The master's side of the exchange. `ExchangeHAInfoResponseHeader`."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(906, only_in=5)
class ExchangeBrokerHaInfo(Request[ExchangeBrokerHaInfoReply], frozen=True, kw_only=True):
    """Without an address: where is the master's log? With one: here it is. `ExchangeHAInfoRequestHeader`."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(907, only_in=5)
class GetBrokerHaStatus(Request[HARuntimeInfo], frozen=True, kw_only=True):
    """State of replication; the reply's body is HARuntimeInfo."""


@request(908, only_in=5)
class ResetMasterFlushOffset(Request[NoReply], frozen=True, kw_only=True):
    """Tool to slave: take this as the master's flushed offset. `ResetMasterFlushOffsetHeader`."""

    master_flush_offset: Long
