"""What a program did as a producer: each attempt to send, and what became of its message.

A message is known by its unique id, which every official client sets before the first attempt; without one, by its
time of birth and its body. A gRPC call may have several messages. Messages of retry topics, traces and the like are no
messages of the program.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from pocketmq.broker.broker import Broker
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import is_system_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..ledger.stored import records
from ..requests.logged_request import LoggedRequest
from ..requests.values import response_name
from .receives import PULLS

RPC_SEND: Final = "SendMessage"
SENDS: Final = ("SEND_MESSAGE", "SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE", RPC_SEND)
NO_ANSWER: Final = "no answer"
_STORED: Final = (
    ResponseCode.SUCCESS,
    ResponseCode.FLUSH_DISK_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE,
    ResponseCode.FLUSH_SLAVE_TIMEOUT,
)
_STORED_RPC: Final = ("MASTER_PERSISTENCE_TIMEOUT", "SLAVE_PERSISTENCE_TIMEOUT", "HA_NOT_AVAILABLE")
"""The same of gRPC calls."""


class Attempt(NamedTuple):
    """One request to store a message. Times are in ms since 1970."""

    message: str
    at_ms: int
    answered_ms: int | None
    result: str
    """The name of the response code, or `no answer`."""
    is_stored: bool
    is_oneway: bool
    broker: str


def sends_of(requests: Iterable[LoggedRequest]) -> list[Attempt]:
    """The attempts among some requests, oldest first."""
    found = []
    for request in requests:
        topic = request.topic or ""
        if request.name not in SENDS or topic.startswith("%") or is_system_topic(topic):
            continue
        response = request.response
        result = NO_ANSWER if response is None else response_name(response)
        found += [
            Attempt(
                message=message,
                at_ms=request.at_ms,
                answered_ms=request.answered_ms,
                result=result,
                is_stored=response in _STORED or result in _STORED_RPC,
                is_oneway=request.oneway,
                broker=request.broker or "",
            )
            for message in (_rpc_messages if request.name == RPC_SEND else _messages)(request)
        ]
    return found


def _messages(request: LoggedRequest) -> list[str]:
    fields = request.fields
    unique = decode_properties(fields.get("properties", "")).get(names.UNIQ_KEY)
    return [unique or f"{fields.get('bornTimestamp')} {request.body!r}"]


def _rpc_messages(request: LoggedRequest) -> list[str]:
    from pocketmq.grpc_endpoint import messages  # a program that speaks remoting needs none of it
    from pocketmq.grpc_endpoint.messages.decoding import MalformedMessage, decode

    try:
        asked = decode(messages.SendMessageRequest, request.body)
    except MalformedMessage:
        return []
    return [one.system_properties.message_id for one in asked.messages]


def judged(attempts: Sequence[Attempt], start_ms: int) -> dict[str, Any]:
    """The figures of all attempts, by their names in `Measures`. One-way ones have no answer, and count nowhere."""
    by_message: dict[str, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if not attempt.is_oneway:
            by_message[attempt.message].append(attempt)
    refused: Counter[str] = Counter()
    retried: Counter[str] = Counter()
    pauses = []
    for tries in by_message.values():
        refused.update(one.result for one in tries if not one.is_stored)
        for one, following in itertools.pairwise(tries):
            retried[one.result] += 1
            pauses.append(following.at_ms - one.at_ms)
    times = stored_times(attempts)
    return {
        "sent": sum(any(one.is_stored for one in tries) for tries in by_message.values()),
        "first_send_ms": max(0, times[0] - start_ms) if times else None,
        "sends_refused": dict(refused),
        "sends_retried": dict(retried),
        "retry_after_ms": round(median(pauses)) if pauses else None,
        "given_up": sum(not tries[-1].is_stored for tries in by_message.values()),
    }


def stored_times(attempts: Iterable[Attempt]) -> list[int]:
    """When messages were stored, in order."""
    return sorted(one.answered_ms or one.at_ms for one in attempts if one.is_stored)


def longest_gap_ms(times: Sequence[int], began_ms: int, end_ms: int) -> int | None:
    """The longest time without one of these events, from `began_ms` on; None if there was none before or after."""
    before = [at for at in times if at < began_ms][-1:]
    during = [*before, *(at for at in times if at >= began_ms), end_ms]
    if len(during) < 2 or not times:
        return None
    return max(later - earlier for earlier, later in itertools.pairwise(during))


def stored_twice(brokers: Iterable[Broker], messages: Collection[str]) -> int:
    """How many of these messages the brokers have more than once: an answer was lost, and they were sent again. Copies
    that wait for a retry do not count."""
    seen: Counter[str] = Counter()
    for queue, _, _, properties in records(brokers):
        unique = properties.get(names.UNIQ_KEY)
        if unique in messages and not queue.topic.startswith("%") and not is_system_topic(queue.topic):
            seen[str(unique)] += 1
    return sum(count > 1 for count in seen.values())


EXPECTED: Final = frozenset(
    (
        "SUCCESS",
        "PULL_NOT_FOUND",
        "PULL_OFFSET_MOVED",
        "PULL_RETRY_IMMEDIATELY",
        "QUERY_NOT_FOUND",
        "TOPIC_NOT_EXIST",
        "MESSAGE_NOT_FOUND",
    )
)
"""Answers that are part of an ordinary day."""


def by_name(requests: Iterable[LoggedRequest]) -> dict[str, int]:
    """How many of each request, the most frequent first."""
    return dict(Counter(one.name for one in requests).most_common())


def refused(requests: Iterable[LoggedRequest]) -> dict[str, int]:
    """Requests other than sends that were refused or not answered, by name and answer. A pull that was not answered may
    be held, and does not count."""
    found: Counter[str] = Counter()
    for one in requests:
        if one.oneway or one.name in SENDS:
            continue
        if one.response is None and one.name in PULLS:
            continue
        answer = NO_ANSWER if one.response is None else response_name(one.response)
        if answer not in EXPECTED:
            found[f"{one.name}: {answer}"] += 1
    return dict(found.most_common())


def reconnects(requests: Iterable[LoggedRequest], programs: int) -> int:
    """Connections beyond the first one of each client to each broker, and of each program to the name servers.

    Connections to name servers do not say whose they are; clients that share none with the others of their program
    have one more.
    """
    owners: dict[tuple[str, str | None], str | None] = {}
    for one in requests:
        connection = one.peer, one.broker
        owners[connection] = one.client_id or owners.get(connection)
    to_brokers = Counter((owner, place[1]) for place, owner in owners.items() if place[1] is not None)
    to_name_servers = sum(broker is None for _, broker in owners)
    return sum(count - 1 for count in to_brokers.values()) + max(0, to_name_servers - programs)
