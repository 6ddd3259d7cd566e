"""What a program did as a consumer: when messages reached it, and who read which queue when."""

from collections.abc import Iterable, Sequence
from typing import Final

from pocketmq.protocol.message.topics import is_system_topic

from ..ledger.facts import Delivery
from ..ledger.verdict import KINDS, Finding, Verdict
from ..requests.logged_request import LoggedRequest

LOST: Final = 20
"""Lost messages that a report names."""
PULLS: Final = ("PULL_MESSAGE", "LITE_PULL_MESSAGE", "POP_MESSAGE", "ReceiveMessage", "PullMessage")


def received(deliveries: Iterable[Delivery], start_ms: int, began_ms: int) -> dict[str, int | None]:
    """The figures of all deliveries, by their names in `Measures`. A message counts once a group. A message waits from
    when it was stored, or from when trouble had begun."""
    first: dict[tuple[str, str], Delivery] = {}
    retried = 0
    for one in deliveries:
        if is_system_topic(one.queue.topic):
            continue
        if one.is_retry:
            retried += 1
        else:
            first.setdefault((one.group, one.message_id), one)
    times = [one.delivered_ms for one in first.values()]
    waits = [
        one.delivered_ms - max(one.store_timestamp, began_ms)
        for one in first.values()
        if one.delivered_ms >= began_ms
    ]
    return {
        "delivered": len(first),
        "redelivered": retried,
        "first_message_ms": max(0, min(times) - start_ms) if times else None,
        "longest_wait_ms": max(waits, default=None),
    }


def findings(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many findings of each kind. An answer that arrives twice is no second delivery: clients drop it."""
    found = dict.fromkeys(KINDS, 0)
    for verdict in verdicts:
        for kind in KINDS:
            found[kind] += sum(not _is_one_answer(one) for one in getattr(verdict, kind))
    return found


def lost_messages(verdicts: Iterable[Verdict]) -> list[str]:
    """The lost messages, each with its place and the group that lost it; `LOST` of them at most."""
    found = [
        f"{one.message_id} ({one.topic} of {one.broker}, queue {one.queue_id}, offset {one.queue_offset}, "
        f"group {verdict.group})"
        for verdict in verdicts
        for one in verdict.lost
        if not _is_one_answer(one)
    ]
    return found[:LOST]


def _is_one_answer(finding: Finding) -> bool:
    ids = [request.id for request in finding.requests]
    return len(ids) > 1 and len(set(ids)) == 1


def rebalance_ms(
    requests: Sequence[LoggedRequest], joined_ms: Sequence[int], left_ms: Sequence[int]
) -> int | None:
    """How long it took until every queue was read by the member that reads it in the end, and by no other: the longest
    of all changes of members. A member joins with its first heartbeat, and leaves when it is asked to. None if no queue
    changed hands; members that pop, as gRPC consumers do, share every queue."""
    changes = [(_first_heartbeat(requests, at), at) for at in joined_ms] + [(at, at) for at in left_ms]
    took = []
    pulls = [one for one in requests if one.name in PULLS and one.client_id and one.queue_id is not None]
    for joined, at in changes:
        following = [other for other in (*joined_ms, *left_ms) if other > at]
        until = min(following, default=1 << 62)
        for queue in {_queue(one) for one in pulls}:
            before = [one for one in pulls if _queue(one) == queue and one.at_ms < at]
            during = [one for one in pulls if _queue(one) == queue and at <= one.at_ms < until]
            if before and during and during[-1].client_id != before[-1].client_id:
                owner = during[-1].client_id
                taken = next(one.at_ms for one in during if one.client_id == owner)
                last_of_others = max((one.at_ms for one in during if one.client_id != owner), default=0)
                took.append(max(0, taken - joined, last_of_others - joined))
    return max(took, default=None)


def _queue(request: LoggedRequest) -> tuple[str | None, str | None, int | None]:
    return request.broker, request.topic, request.queue_id


def _first_heartbeat(requests: Sequence[LoggedRequest], at_ms: int) -> int:
    """Of a client that was not seen before; `at_ms` if none came."""
    known = {one.client_id for one in requests if one.at_ms < at_ms}
    for one in requests:
        if one.at_ms >= at_ms and one.name == "HEART_BEAT" and one.client_id and one.client_id not in known:
            return one.at_ms
    return at_ms
