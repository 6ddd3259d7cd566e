"""What a slave asks its master beside the log itself, and what tools ask about replication.

Not here: the log's own protocol on the HA port; the topic and group tables (21, 201), which slaves fetch with the
tools' requests.
"""

from ..wire.schema import Long, NoReply, Reply, Request, request


@request(43)
class GetAllConsumerOffset(Request[NoReply], frozen=True, kw_only=True):
    """All committed offsets; the reply's body is ConsumerOffsetSerializeWrapper."""


@request(45)
class GetAllDelayOffset(Request[NoReply], frozen=True, kw_only=True):
    """Offsets of the delay levels; the reply's body is the text of the file."""


@request(60)
class GetTimerCheckPoint(Request[NoReply], frozen=True, kw_only=True):
    """Where the timer stands; the reply's body is the 56 bytes of TimerCheckpoint."""


@request(61)
class GetTimerMetrics(Request[NoReply], frozen=True, kw_only=True):
    """Timed messages waiting for each topic; the reply's body is TimerMetricsSerializeWrapper."""


class ExchangeBrokerHaInfoReply(Reply, frozen=True, kw_only=True):
    """The master's side of the exchange. `ExchangeHAInfoResponseHeader`."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(906)
class ExchangeBrokerHaInfo(Request[ExchangeBrokerHaInfoReply], frozen=True, kw_only=True):
    """Without an address: where is the master's log? With one: here it is. `ExchangeHAInfoRequestHeader`."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(907)
class GetBrokerHaStatus(Request[NoReply], frozen=True, kw_only=True):
    """State of replication; the reply's body is HARuntimeInfo."""


@request(908)
class ResetMasterFlushOffset(Request[NoReply], frozen=True, kw_only=True):
    """Tool to slave: take this as the master's flushed offset. `ResetMasterFlushOffsetHeader`."""

    master_flush_offset: Long
