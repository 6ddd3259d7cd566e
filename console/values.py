"""What the HTTP port answers and reads, as structs: `/openapi.json` is made from them.

The command line prints topics, groups, lag, first positions and messages with the same structs (`--json`), and the test
companion has `Member` and `FirstPosition` of its own views from here. Names of JSON are in snake_case; times are in ms
since 1970. What a broker does not say is null.
"""

import base64
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from pocketmq.broker.first_position.rules import FROM_FIRST, FROM_TIMESTAMP
from pocketmq.protocol.bodies.client_state import Connection
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import Verdict

NotNegative = Annotated[int, Meta(ge=0)]


class Health(msgspec.Struct, frozen=True):
    """That the server runs."""

    status: str


class Error(msgspec.Struct, frozen=True):
    """Why a request is refused; nothing has changed then."""

    error: str
    allowed: list[str | int | float | bool] | UnsetType = UNSET
    """Values, or kinds of them, that are allowed."""


# -- topics and messages


class TopicQueue(msgspec.Struct, frozen=True):
    """One queue of a topic at one broker."""

    broker_name: str
    queue_id: int
    min_offset: int
    max_offset: int


class Topic(msgspec.Struct, frozen=True):
    """One topic. `queues` and `write_queues` are those of all brokers; `messages` are still stored."""

    name: str
    queues: int
    write_queues: int
    perm: int
    """6, 4 (read), 2 (write) or 0."""
    order: bool
    attributes: dict[str, str]
    messages: int
    last_stored_ms: int | None
    """Store time of the newest message; null without one."""
    brokers: list[str]
    queue_list: list[TopicQueue]


def topic_of(configs: Mapping[str, TopicConfig], queues: list[TopicQueue], newest_ms: int) -> Topic:
    """A topic as the brokers of these names have it; `newest_ms` is 0 or less without a message."""
    first = next(iter(configs.values()))
    return Topic(
        name=first.name,
        queues=sum(config.read_queue_nums for config in configs.values()),
        write_queues=sum(config.write_queue_nums for config in configs.values()),
        perm=first.perm,
        order=first.order,
        attributes=first.attributes,
        messages=sum(queue.max_offset - queue.min_offset for queue in queues),
        last_stored_ms=newest_ms if newest_ms > 0 else None,
        brokers=sorted(configs),
        queue_list=queues,
    )


class TopicChanges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is given is changed."""

    queues: Annotated[int, Meta(ge=1, le=1024)] | None = None
    perm: Literal[6, 4, 2, 0] | None = None
    order: bool | None = None


class NewTopic(TopicChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic to make."""

    name: str


class Message(msgspec.Struct, frozen=True):
    """One stored message. Its body is `text` if it is UTF-8, and `body_base64`."""

    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    message_id: str | None
    """The id of its producer (UNIQ_KEY), `msgId` of the official send result."""
    offset_message_id: str
    """The id of the broker: where the message lies."""
    tags: str | None
    keys: list[str]
    properties: dict[str, str]
    flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    text: str | None
    body_base64: str | None
    error: str | UnsetType = UNSET
    """Why the body cannot be shown: `text` and `body_base64` are null then."""


class NewMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to send: its body is `text` or `body_base64`."""

    text: str | None = None
    body_base64: str | None = None
    tags: str | None = None
    keys: str | list[str] | None = None
    properties: dict[str, str] | None = None
    queue_id: NotNegative | None = None
    delay_level: NotNegative | None = None
    delay_ms: NotNegative | None = None


class Sent(msgspec.Struct, frozen=True):
    """Where a sent message is stored."""

    message_id: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    status: str
    """SEND_OK, FLUSH_DISK_TIMEOUT, FLUSH_SLAVE_TIMEOUT or SLAVE_NOT_AVAILABLE."""
    recall_handle: str | None


# -- groups


class Member(msgspec.Struct, frozen=True):
    """One connected consumer of a group; `address` is host and port as the broker sees them."""

    client_id: str
    address: str
    language: str
    version: str


def member_of(one: Connection) -> Member:
    """A member as a broker lists it."""
    address = (one.client_addr or "").lstrip("/")
    return Member(one.client_id or "", address, one.language or "OTHER", version_name(one.version))


class Group(msgspec.Struct, frozen=True):
    """One consumer group."""

    name: str
    mode: str | None
    """CLUSTERING or BROADCASTING, as its members say; null without members."""
    consume_from_where: str | None
    members: list[Member]
    subscriptions: dict[str, str]
    """Topic to expression; empty without members."""
    offsets: dict[str, dict[str, int]]
    """Topic to queue id to the next message that the group reads; with several brokers of a topic to `broker:queue`."""
    lag: int
    """Messages still to read in all these topics."""


class Lag(msgspec.Struct, frozen=True):
    """How many messages a group has still to read, in each topic that it subscribes to or has read."""

    total: int
    topics: dict[str, int]


class GroupQueue(msgspec.Struct, frozen=True):
    """One queue of a group. `offset` is the next message it reads, null if it has committed none."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    held_by: list[str]
    """Client ids of the members that hold it; several if the group broadcasts, empty if none says so."""
    offset: int | None
    min_offset: int
    max_offset: int
    lag: int


def group_queue(
    group: str, queue: MessageQueue, held_by: list[str], offset: int | None, low: int, high: int
) -> GroupQueue:
    """A queue that has messages from offset `low` to below `high`."""
    lag = lag_of(offset, low, high)
    return GroupQueue(group, queue.topic, queue.broker_name, queue.queue_id, held_by, offset, low, high, lag)


class FirstPosition(msgspec.Struct, frozen=True):
    """Where a group starts to read a queue, by which rule (B0 to B6), and that rule in words."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int | None
    """Where a member starts: what the broker answers, else where the group's ConsumeFromWhere leads, LAST if it has no
    members; null if it searches by its consumeTimestamp."""
    rule: str
    because: str
    answer: int | None
    """What the broker answers; null for "not found"."""
    from_last: int | None
    from_first: int | None
    from_timestamp: int | None
    min_offset: int
    max_offset: int
    stored_offset: int
    """-1 if the group has none."""


def first_position(verdict: Verdict, broker_name: str, consume_from_where: str | None) -> FirstPosition:
    """Where a group with this ConsumeFromWhere starts; None counts as CONSUME_FROM_LAST_OFFSET."""
    by_where = {FROM_FIRST: verdict.from_first, FROM_TIMESTAMP: verdict.from_timestamp}
    start = by_where.get(consume_from_where or "", verdict.from_last)
    known = msgspec.structs.asdict(verdict) | {
        "broker_name": verdict.broker_name or broker_name,
        "offset": start if verdict.offset is None else verdict.offset,
        "answer": verdict.offset,
    }
    return msgspec.convert(known, FirstPosition)


# -- faults, requests, time and verdicts


class LoggedRequest(msgspec.Struct, frozen=True):
    """One request with its reply; codes by their official names."""

    id: int
    at_ms: int
    code: str
    topic: str | None
    queue_id: int | None
    group: str | None
    client_id: str | None
    broker: str | None
    """The broker that got it; null for a name server."""
    peer: str
    oneway: bool
    to_client: bool
    fields: dict[str, str]
    text: str | None
    body_base64: str | None
    response: str | None
    """Null while there is no reply."""
    remark: str | None
    reply_fields: dict[str, str]
    error: str | UnsetType = UNSET
    """Why the body cannot be shown."""


class NewFault(msgspec.Struct, frozen=True):
    """A rule to add: its effect, the words of that effect, and which requests it hits."""

    effect: str
    code: str | int | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    queue_id: int | UnsetType = UNSET
    group: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    broker: str | UnsetType = UNSET
    oneway: bool | UnsetType = UNSET
    times: int | UnsetType | None = UNSET
    """Null: until the rule is removed."""
    after: int | UnsetType = UNSET
    probability: float | UnsetType = UNSET
    may_stay_unused: bool | UnsetType = UNSET
    response: str | int | UnsetType = UNSET
    remark: str | UnsetType = UNSET
    execute: bool | UnsetType = UNSET
    reset: bool | UnsetType = UNSET
    within_body: bool | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    jitter: float | UnsetType = UNSET
    fields: dict[str, str | int | float | bool | None] | UnsetType = UNSET
    body: str | UnsetType = UNSET
    body_base64: str | UnsetType = UNSET
    opaque: int | UnsetType = UNSET
    client: str | UnsetType = UNSET
    latency: float | UnsetType = UNSET
    bandwidth: int | UnsetType = UNSET
    slice_bytes: int | UnsetType = UNSET
    half_open: bool | UnsetType = UNSET
    name: str | UnsetType = UNSET
    brokers: list[str] | dict[str, list[str]] | UnsetType = UNSET
    queues: int | UnsetType = UNSET


class Fault(NewFault, frozen=True, kw_only=True):
    """A rule with its newest hits."""

    id: int
    hits: list[LoggedRequest]
    hit_count: int | UnsetType = UNSET
    function: str | UnsetType = UNSET
    """The name of the function of a rule that was added in Python."""


class Words(msgspec.Struct, frozen=True):
    """The names that this server knows, for a form."""

    codes: list[str]
    responses: list[str]
    effects: dict[str, list[str]]
    """Effect to the words that its rules may have."""
    kinds: dict[str, str]
    """Word of a rule to what it is: text, number, bool or json."""


class Clock(msgspec.Struct, frozen=True):
    """The server's time."""

    virtual: bool
    now_ms: int


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds, or a text like `2h30m`; or to the next event."""

    by: float | str | None = None
    to_next: bool = False


class LedgerFinding(msgspec.Struct, frozen=True):
    """One message that did not fare as it should; `requests` prove it, oldest first."""

    message_id: str | None
    requests: list[LoggedRequest]
    broker: str
    topic: str
    queue_id: int
    queue_offset: int
    sharding_key: str | None
    client_id: str | None
    """For a broadcasting group, whose members are judged one by one."""


class LedgerVerdict(msgspec.Struct, frozen=True):
    """How a group fared with the messages of a topic: the first 100 findings of each kind, and `counts` of all."""

    topic: str
    group: str
    lost: list[LedgerFinding]
    duplicated: list[LedgerFinding]
    out_of_order: list[LedgerFinding]
    offset_moved_back: list[LedgerFinding]
    unread: list[LedgerFinding]
    forgotten: int
    """Facts that left the ledger because it was full: the messages they were about are not judged."""
    counts: dict[str, int]


class LedgerDelivery(msgspec.Struct, frozen=True):
    """Who got a message."""

    group: str
    client_id: str | None


class LedgerMessage(msgspec.Struct, frozen=True):
    """What became of one message, its retries included."""

    message_id: str
    topic: str
    deliveries: list[LedgerDelivery]
    sent_back: int
    acknowledged: bool
    dead_lettered: str | None
    """Why it went to a dead-letter topic; null if it did not."""


# -- parts of several


def text_of(body: bytes) -> str | None:
    """The body as text; None if it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def base64_of(body: bytes) -> str:
    return base64.b64encode(body).decode()


def lag_of(offset: int | None, min_offset: int, max_offset: int) -> int:
    """How many messages of a queue are still to read; those that were deleted do not count."""
    return max(0, max_offset - max(offset or 0, min_offset))


def queue_names(offsets: Mapping[tuple[str, int], int], *, brokers: int) -> dict[str, int]:
    """Offsets of a topic for `Group.offsets`, from those by broker name and queue id."""
    return {
        str(queue_id) if brokers < 2 else f"{broker}:{queue_id}": offset
        for (broker, queue_id), offset in sorted(offsets.items())
    }
