"""For tests of sends by plan: frames of sends and batches as producers write them, and what a broker made of them."""

from collections.abc import Sequence
from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.broker.network.watch import Watcher
from pocketmq.core.sends import Send, frames_of
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.wire.command import JSON, Command
from pocketmq.protocol.wire.frame import encode_frame

IDS = ("7F00000100002A9F00000000000000{:02X}", "0123456789abcdefABCDEF00000000{:02x}")
LONG_NAMES = (
    "producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag properties "
    "reconsumeTimes unitMode batch bname"
)
LONG_FIELDS = dict(zip("abcdefghijkmn", LONG_NAMES.split(), strict=True))


class Decoded(Watcher):
    """Counts the requests that were decoded."""

    def __init__(self) -> None:
        self.count = self.raw_count = 0
        self.requests = self.replies = b""
        self.sees_raw = True

    def received(self, connection: Any, command: Command) -> bool:
        self.count += 1
        return False

    def exchanged(self, connection: Any, frames: Sequence[Send], replies: Sequence[bytes]) -> None:
        self.requests += frames_of(frames)
        self.replies += b"".join(replies)
        self.raw_count += len(frames)


def a_send(
    *,
    code: int = 310,
    form: int = JSON,
    opaque: int = 7,
    flag: int = 0,
    body: bytes = b"body",
    pairs: dict[str, str] | None = None,
    **fields: str,
) -> bytes:
    """The frame of a send; `fields` by their single letters."""
    values = {
        "a": "group",
        "b": "orders",
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": encode_properties_text({"UNIQ_KEY": IDS[0].format(1), "WAIT": "true", **(pairs or {})}),
        "j": "0",
        "k": "false",
        "m": "false",
        **fields,
    }
    if code == 10:
        values = {LONG_FIELDS[name]: value for name, value in values.items()}
    return encode_frame(Command(code, opaque, flag, None, values, body, "JAVA", 401, form))


def a_batch(*, number: int, bodies: list[bytes], pairs: dict[str, str] | None = None, **fields: Any) -> bytes:
    """The frame of a batch: message and batch have an id, `pairs` are properties of the batch."""
    elements = [
        BatchElement(
            0, body, encode_properties_text({"UNIQ_KEY": IDS[0].format(position), "WAIT": "true"}).encode()
        )
        for position, body in enumerate(bodies, number)
    ]
    pairs = {"UNIQ_KEY": IDS[1].format(number), "WAIT": "true", **(pairs or {})}
    return a_send(**{"code": 320, "m": "true", "body": encode_batch(elements), "pairs": pairs, **fields})


def statistics_of(broker: Broker) -> list[object]:
    stored = broker.store.statistics
    seen: list[object] = [stored.messages, stored.bytes, stored.failed, broker.statistics.put_total_now]
    for name, traffic in sorted(broker.statistics._puts.items()):
        seen.append((name, traffic.calls, traffic.count, traffic.size_bytes))
    return seen
