"""What example programs print, as values: send results and received messages.

The patterns fit 4.9.8 and 5.5.0, whose toString() differ only in what they append.
"""

import re
from dataclasses import dataclass

SENT = re.compile(
    r"SendResult \[sendStatus=(?P<status>\w+), msgId=(?P<ids>[0-9A-F,]+), offsetMsgId=(?P<offset_ids>[0-9A-F,]+), "
    r"messageQueue=MessageQueue \[topic=(?P<topic>\S+), brokerName=(?P<broker>\S+), queueId=(?P<queue>\d+)\], "
    r"queueOffset=(?P<offset>\d+)"
)
MESSAGE = re.compile(
    r"MessageExt \[brokerName=(?P<broker>\S+), queueId=(?P<queue>\d+), storeSize=(?P<size>\d+), "
    r"queueOffset=(?P<offset>\d+), sysFlag=(?P<flag>\d+), bornTimestamp=\d+, bornHost=\S+, storeTimestamp=\d+, "
    r"storeHost=(?P<store_host>\S+), msgId=(?P<offset_id>[0-9A-F]+), commitLogOffset=(?P<position>\d+), "
    r"bodyCRC=(?P<crc>-?\d+), reconsumeTimes=(?P<reconsumed>\d+), preparedTransactionOffset=\d+, "
    r"toString\(\)=Message\{topic='(?P<topic>[^']+)', flag=\d+, properties=\{(?P<properties>.*?)\}, "
    r"body=\[(?P<body>[^\]]*)\], transactionId='[^']*'\}\]"
)
PULLED = re.compile(
    r"^(?P<offset>-?\d+)\tMessageQueue \[topic=(?P<topic>\S+), brokerName=\S+, queueId=(?P<queue>\d+)\]\t"
    r"PullResult \[pullStatus=(?P<status>\w+), nextBeginOffset=(?P<next>-?\d+), minOffset=(?P<min>\d+), "
    r"maxOffset=(?P<max>\d+), msgFoundList=(?P<found>\d+)\]",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Sent:
    """One send that was acknowledged; a batch has several ids and the offset of its first message."""

    topic: str
    queue: int
    offset: int
    ids: tuple[str, ...]
    offset_ids: tuple[str, ...]
    status: str


@dataclass(frozen=True)
class Received:
    """One message as a consumer printed it: its queue and offset, and its content."""

    topic: str
    queue: int
    offset: int
    unique_key: str
    offset_id: str
    size: int
    reconsumed: int
    properties: dict[str, str]
    body: bytes


def sent(output: str) -> list[Sent]:
    return [
        Sent(
            found["topic"],
            int(found["queue"]),
            int(found["offset"]),
            tuple(found["ids"].split(",")),
            tuple(found["offset_ids"].split(",")),
            found["status"],
        )
        for found in SENT.finditer(output)
    ]


def received(output: str) -> list[Received]:
    return [_received(found) for found in MESSAGE.finditer(output)]


def _received(found: re.Match[str]) -> Received:
    properties = dict(pair.split("=", 1) for pair in found["properties"].split(", "))
    values = found["body"].split(", ") if found["body"] else []
    return Received(
        found["topic"],
        int(found["queue"]),
        int(found["offset"]),
        properties["UNIQ_KEY"],
        found["offset_id"],
        int(found["size"]),
        int(found["reconsumed"]),
        properties,
        bytes(int(value) & 0xFF for value in values),
    )
