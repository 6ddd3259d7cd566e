"""The settings of a producer, with defaults and limits. Official class: DefaultMQProducer.

4.9 clients have neither back pressure nor auto-batch.
"""

from typing import Annotated, Final

from msgspec.structs import force_setattr
from pocketmq.protocol.message.compression import COMPRESSION_TYPES
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.wire.response_codes import ResponseCode

from .checks import MIB, OFF, AtLeast0, AtLeast1, Range, check_range, check_topic_name, invalid_setting
from .client_settings import ClientSettings

RETRY_RESPONSE_CODES: Final = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    }
)
"""Error responses another broker may not give. 4.9 lacks SYSTEM_BUSY and GO_AWAY."""
LATENCY_MAX_MS: Final = (50, 100, 550, 1800, 3000, 5000, 15000)
NOT_AVAILABLE_DURATION_MS: Final = (0, 0, 2000, 5000, 6000, 10000, 30000)


class ProducerSettings(ClientSettings, frozen=True, kw_only=True):
    """Official DefaultMQProducer."""

    topics: tuple[str, ...] = ()
    """Routes of these are fetched at start."""
    create_topic_key: str = AUTO_CREATE_TOPIC
    """The topic whose route is used for a topic that does not exist yet."""
    default_topic_queue_nums: AtLeast1 = 4
    """Queues of a topic that the first send creates, at most those of the template."""
    send_msg_timeout: AtLeast1 = 3_000
    """For the whole call, all attempts together."""
    send_msg_max_timeout_per_request: Annotated[int, Range(0, or_off=True)] = OFF
    """For one attempt, ms; -1 is the time that is left of the call."""
    compress_msg_body_over_howmuch: AtLeast0 = 4_096
    """Bodies of at least so many bytes are compressed."""
    compress_level: int = 5
    """-1 to 9 for ZLIB, to 22 for ZSTD; LZ4 has no level."""
    compress_type: str = "ZLIB"
    """ZLIB, LZ4 or ZSTD."""
    retry_times_when_send_failed: AtLeast0 = 2
    """Attempts after the first of an awaited send."""
    retry_times_when_send_async_failed: AtLeast0 = 2
    """Attempts after the first of a send as a future."""
    retry_another_broker_when_not_store_ok: bool = False
    """Also repeat a send that is stored but not on disk or on a slave."""
    retry_response_codes: frozenset[int] = RETRY_RESPONSE_CODES
    """Refusals after which another broker is tried."""
    max_message_size: AtLeast1 = 4 * MIB
    """Bytes of a body, before compression."""
    enable_backpressure_for_async_mode: bool = False
    """Sends as futures wait while too many are under way."""
    back_pressure_for_async_send_num: Annotated[int, Range(10)] = 1_024
    """Futures under way with back pressure, at least 10."""
    back_pressure_for_async_send_size: Annotated[int, Range(MIB)] = 100 * MIB
    """Bytes of their bodies, at least 1 MiB."""
    auto_batch: bool = False
    """Sends that are under way together travel as batches (5.x)."""
    batch_max_delay_ms: int = OFF
    """-1 takes 10."""
    batch_max_bytes: int = OFF
    """-1 takes 32 KiB."""
    total_batch_max_bytes: int = OFF
    """-1 takes 32 MiB."""
    send_latency_fault_enable: bool | None = None
    """Fault tolerance; None takes send_latency_enable, the same switch of ClientConfig."""
    send_latency_enable: bool = False
    """Producers avoid brokers that failed or were slow; send_latency_fault_enable is the same switch."""
    start_detector_enable: bool = False
    """With fault tolerance: a producer tries in the background whether a failed broker accepts connections again."""
    detect_timeout: AtLeast1 = 200
    """For one connect of the detector (start_detector_enable), ms."""
    detect_interval: AtLeast1 = 2_000
    """Between two connects of the detector to a broker that failed, ms."""
    latency_max: tuple[int, ...] = LATENCY_MAX_MS
    """Durations of a send in ms, ascending: the n-th makes a broker avoided ..."""
    not_available_duration: tuple[int, ...] = NOT_AVAILABLE_DURATION_MS
    """... for the n-th of these times, ms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_auto_batch(self)
        compress_type = self.compress_type.strip().upper()
        if compress_type not in COMPRESSION_TYPES:
            raise invalid_setting("compress_type", self.compress_type, "Unsupported compress type name")
        force_setattr(self, "compress_type", compress_type)
        check_range("compress_level", self.compress_level, Range(-1, 9 if compress_type == "ZLIB" else 22))
        for topic in self.topics:
            check_topic_name("topics", topic)
        check_topic_name("create_topic_key", self.create_topic_key)
        if len(self.latency_max) != len(self.not_available_duration):
            raise invalid_setting(
                "latency_max", self.latency_max, "needs as many numbers as not_available_duration"
            )
        if list(self.latency_max) != sorted(self.latency_max):
            raise invalid_setting("latency_max", self.latency_max, "must ascend")

    @property
    def is_fault_tolerant(self) -> bool:
        if self.send_latency_fault_enable is None:
            return self.send_latency_enable
        return self.send_latency_fault_enable


def _check_auto_batch(settings: ProducerSettings) -> None:
    """In the words of the official ProduceAccumulator."""
    delay_ms, size, total = (
        settings.batch_max_delay_ms,
        settings.batch_max_bytes,
        settings.total_batch_max_bytes,
    )
    if delay_ms != OFF and not 0 < delay_ms <= 30_000:
        reason = f"batchMaxDelayMs expect between 1ms and 30s, but get {delay_ms}!"
        raise invalid_setting("batch_max_delay_ms", delay_ms, reason)
    if size != OFF and not 0 < size <= 2 * MIB:
        reason = f"batchMaxBytes expect between 1B and 2MB, but get {size}!"
        raise invalid_setting("batch_max_bytes", size, reason)
    if total != OFF and total <= 0:
        raise invalid_setting(
            "total_batch_max_bytes", total, f"totalBatchMaxBytes must bigger then 0, but get {total}!"
        )
