"""The tables of the behaviour report: SQL over the entries of journals, one text for both engines.

    entries    all entries, with a client wherever one is known, and the numbers in their fields
    reads      pulls, and the receives of gRPC clients, which are of no queue and have no offsets; without the reads of
               this package, which own no queue

What is a row for each client, member or owner is made here from the few rows of an answer.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
from pocketmq.protocol.languages import version_name
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS

from ...tables.planning.topic_options import DEFAULT_GROUP
from ...tables.records.columns import TIMESTAMP
from ..sql.arrow_frame import ArrowFrame, frame_of_rows
from ..sql.engine import Engine
from ..sql.message_input import sql_text
from .ownership import PullRun, end_at_next_run, merge_tenures

PULLS: Final = "11, 361"
RECEIVE: Final = RPC_NUMBERS["ReceiveMessage"]
"""What gRPC clients do instead: the broker chooses the queues."""
QUERY_OFFSET, COMMIT = 14, 15
SEND_BACKS: Final = f"36, {RPC_NUMBERS['ForwardMessageToDeadLetterQueue']}"
HEARTBEATS: Final = f"34, {RPC_NUMBERS['Heartbeat']}"
JOINS: Final = f"{HEARTBEATS}, {RPC_NUMBERS['Telemetry']}"
"""Requests that make their client a member; the settings of gRPC clients are on their telemetry streams."""
LEAVES: Final = f"35, {RPC_NUMBERS['NotifyClientTermination']}"
NO_MESSAGE: Final = "19, 40401"
"""The answer that there is no message, also to a gRPC client."""
QUERY_NOT_FOUND: Final = 22
HELD_MICROS: Final = 50_000
"""A pull that takes longer than this waited for messages: one that finds some is answered in a millisecond or two."""

RECORDED: Final = f"""
select {{source}} as source, j.journal as journal, j.kind as kind, j.time as time, j.answered as answered,
       j.tookMicros as tookMicros, j.connection as connection, j.clientId as clientId, j.peer as peer, j.code as code,
       j.request as request, j.language as language, j.version as version, j.group as group, j.topic as topic,
       j.queueId as queueId, j.replyCode as replyCode, j.count as dropped,
       case when j.code in ({JOINS}) then j.detail end as heartbeat,
       coalesce(j.fields['consumerGroup'], '') as leftGroup,
       try_cast(j.fields['queueOffset'] as bigint) as firstOffset,
       try_cast(j.replyFields['nextBeginOffset'] as bigint) as nextOffset,
       try_cast(j.replyFields['maxOffset'] as bigint) as maxOffset,
       try_cast(j.replyFields['offset'] as bigint) as storedOffset,
       try_cast(j.replyFields['messages'] as bigint) as received
from {{table}} as j
"""
ENTRIES: Final = """
select r.*, coalesce(r.clientId, c.knownId, c.knownPeer, cast(r.connection as string)) as client, c.closedAt as closedAt
from recorded as r left join (
    select journal, connection, min(clientId) as knownId, max(peer) as knownPeer,
           max(case when kind = 'closed' then time end) as closedAt
    from recorded group by journal, connection
) as c on r.journal = c.journal and r.connection = c.connection
"""
"""A connection belongs to one client, whose id is known from its first heartbeat on: earlier requests get it too."""
READS: Final = f"""
select source, journal, e.group as group, topic, case when code <> {RECEIVE} then queueId end as queueId, client, time,
       tookMicros, coalesce(answered, closedAt, time) as until, firstOffset, nextOffset, maxOffset,
       coalesce(replyCode in ({NO_MESSAGE}) or tookMicros >= {HELD_MICROS}, false) as isHeld,
       coalesce(replyCode in ({NO_MESSAGE}), true) as isEmpty,
       case when code = {RECEIVE} then received when replyCode = 0 then nextOffset - firstOffset else 0 end as messages
from entries as e where kind = 'exchange'
    and (code = {RECEIVE} or (code in ({PULLS}) and coalesce(e.group, '') <> '{DEFAULT_GROUP}'))
"""
"""A pull that waits for messages holds the queue for its client, also if it is never answered."""
_OF_QUEUE: Final = "partition by p.journal, p.group, p.topic, p.queueId order by p.time, p.client"
RUNS: Final = f"""
select r.journal as journal, r.group as group, r.topic as topic, r.queueId as queueId,
       min(unix_micros(r.time)) / 1e6 as firstSecond, max(unix_micros(r.until)) / 1e6 as lastSecond, r.client as client,
       count(*) as pulls, cast(coalesce(sum(r.messages), 0) as bigint) as messages
from (
    select p.*, sum(p.isChange) over ({_OF_QUEUE} rows between unbounded preceding and current row) as run
    from (
        select p.*, case when p.client <> lag(p.client) over ({_OF_QUEUE}) then 1 else 0 end as isChange
        from reads as p where p.queueId is not null
    ) as p
) as r group by r.journal, r.group, r.topic, r.queueId, r.client, r.run
"""
"""The columns are the fields of `PullRun`, in their order."""
BEATS: Final = f"""
select source, journal, client, heartbeat, min(unix_micros(time)) as firstMicros, max(unix_micros(time)) as lastMicros,
       min(language) as language, min(version) as version, max_by(connection, time) as connection
from entries where code in ({JOINS}) and heartbeat is not null group by source, journal, client, heartbeat
"""
LEFT: Final = f"""
select journal, client, leftGroup, max(unix_micros(time)) as micros from entries where code in ({LEAVES})
group by journal, client, leftGroup
"""
CLOSED: Final = f"""
select journal, connection, max(unix_micros(closedAt)) as micros from entries where code in ({JOINS})
group by journal, connection
"""
_FIRST: Final = """
select f.*, row_number() over (
    partition by f.source, f.journal, f.group, f.topic, f.queueId, f.client order by f.time
) as number from {rows}
"""
POSITIONS: Final = f"""
select p.source as source, p.group as group, p.topic as topic, p.queueId as queueId, p.client as client, p.time as time,
       a.storedOffset as answer, p.firstOffset as firstPull, p.maxOffset as maxOffset,
       case when a.replyCode = {QUERY_NOT_FOUND} then 'not found: the client decides (consumeFromWhere)'
            when a.replyCode is null then 'not asked: the client keeps offsets itself'
            when a.storedOffset > 0 or c.firstCommit < p.time then 'stored offset, or reset'
            when a.storedOffset = 0 then 'broker: no stored offset, first message in memory: read all'
            else 'refused' end as rule
from ({_FIRST.format(rows="reads as f where f.queueId is not null")}) as p
left join ({_FIRST.format(rows=f"entries as f where f.code = {QUERY_OFFSET} and f.kind = 'exchange'")}) as a
    on p.source = a.source and p.journal = a.journal and p.group = a.group and p.topic = a.topic
        and p.queueId = a.queueId and p.client = a.client and a.number = 1
left join (
    select e.journal as journal, e.group as group, e.topic as topic, e.queueId as queueId, min(e.time) as firstCommit
    from entries as e where e.code = {COMMIT} group by e.journal, e.group, e.topic, e.queueId
) as c on p.journal = c.journal and p.group = c.group and p.topic = c.topic and p.queueId = c.queueId
where p.number = 1 order by p.source, p.group, p.topic, p.queueId, p.time
"""


def _rounds(codes: str) -> str:
    """The median time between two rounds of a request of one client; requests within a second are one round."""
    return f"""
select source, client, round(percentile_approx(seconds, 0.5), 1) as seconds from (
    select source, client, (unix_micros(time)
        - lag(unix_micros(time)) over (partition by source, client order by time)) / 1e6 as seconds
    from entries where code in ({codes})
) as timed where seconds is null or seconds > 1 group by source, client
"""


CLIENTS: Final = f"""
select p.source as source, p.group as group, p.client as client, l.language as language, p.pulls as pulls,
       p.messages as messages, p.messagesPerSecond as messagesPerSecond, p.emptyShare as emptyShare,
       p.heldShare as heldShare, p.holdMsMedian as holdMsMedian, p.holdMsMost as holdMsMost, c.seconds as commitSeconds,
       h.seconds as heartbeatSeconds, coalesce(b.sendBacks, 0) as sendBacks, u.unread as unreadAtEnd
from (
    select r.source as source, r.group as group, r.client as client, count(*) as pulls,
           cast(sum(r.messages) as bigint) as messages,
           round(sum(r.messages)
               / greatest((max(unix_micros(r.time)) - min(unix_micros(r.time))) / 1e6, 0.001), 1) as messagesPerSecond,
           round(avg(cast(r.isEmpty as int)), 3) as emptyShare, round(avg(cast(r.isHeld as int)), 3) as heldShare,
           round(percentile_approx(case when r.isHeld then r.tookMicros end, 0.5) / 1000, 1) as holdMsMedian,
           round(max(case when r.isHeld then r.tookMicros end) / 1000, 1) as holdMsMost
    from reads as r group by r.source, r.group, r.client
) as p
left join (
    select n.source as source, n.group as group, n.client as client,
           cast(sum(greatest(n.maxOffset - coalesce(n.nextOffset, n.firstOffset), 0)) as bigint) as unread
    from (
        select r.*, row_number() over (
            partition by r.source, r.group, r.client, r.topic, r.queueId order by r.time desc
        ) as number from reads as r where r.queueId is not null
    ) as n where n.number = 1 group by n.source, n.group, n.client
) as u on p.source = u.source and p.group = u.group and p.client = u.client
left join ({_rounds(str(COMMIT))}) as c on p.source = c.source and p.client = c.client
left join ({_rounds(HEARTBEATS)}) as h on p.source = h.source and p.client = h.client
left join (
    select e.source as source, e.group as group, e.client as client, count(*) as sendBacks
    from entries as e where e.code in ({SEND_BACKS}) group by e.source, e.group, e.client
) as b on p.source = b.source and p.group = b.group and p.client = b.client
left join (select source, client, min(language) as language from entries group by source, client) as l
    on p.source = l.source and p.client = l.client
order by p.group, p.source, p.client
"""
REQUESTS: Final = """
select source, code, request, count(*) as count,
       cast(sum(case when coalesce(replyCode, 0) <> 0 then 1 else 0 end) as bigint) as notSuccess,
       percentile_approx(tookMicros, 0.5) as microsMedian, percentile_approx(tookMicros, 0.99) as micros99
from entries where kind = 'exchange' group by source, code, request order by source, code
"""
MEMBERS: Final = {
    **dict.fromkeys(("source", "journal", "group", "client", "language", "release"), pa.string()),
    **dict.fromkeys(("consumeFromWhere", "messageModel"), pa.string()),
    **dict.fromkeys(("joined", "until"), TIMESTAMP),
    "how": pa.string(),
}
OWNERS: Final = {
    **dict.fromkeys(("journal", "group", "topic"), pa.string()),
    "queueId": pa.int32(),
    "client": pa.string(),
    "since": TIMESTAMP,
    "until": TIMESTAMP,
    **dict.fromkeys(("pulls", "messages"), pa.int64()),
}


def open_journals(engine: Engine, paths: Sequence[str]) -> None:
    """Make the tables `entries` and `reads` of all journals; each path is a source."""
    texts = []
    for number, (path, name) in enumerate(zip(paths, side_names(paths), strict=True)):
        engine.open_journal(f"journal_{number}", path)
        texts.append(RECORDED.format(source=sql_text(name), table=f"journal_{number}"))
    engine.keep("recorded", " union all ".join(texts))
    engine.keep("entries", ENTRIES)
    engine.keep("reads", READS)


def side_names(paths: Sequence[str]) -> list[str]:
    """The last part of each path if that tells them apart, else the paths."""
    names = [Path(path).name or path for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def runs_of(engine: Engine) -> list[PullRun]:
    """Consecutive pulls of one client from one queue, collapsed into runs."""
    return end_at_next_run(PullRun(*row.values()) for row in engine.sql(RUNS).rows())


def owners_of(runs: Sequence[PullRun]) -> ArrowFrame:
    """The tenures in the drawing, as a table."""
    rows = [
        (*run.queue, run.client, _moment(run.begin), _moment(run.end), run.pulls, run.messages)
        for run in merge_tenures(runs)
    ]
    return frame_of_rows(OWNERS, sorted(rows, key=lambda row: (*row[:4], row[5])))


class _Consumer(msgspec.Struct):
    groupName: str
    consumeFromWhere: str | None = None
    messageModel: str | None = None


class _Heartbeat(msgspec.Struct):
    consumerDataSet: list[_Consumer] = []


class _Stay(msgspec.Struct):
    """A member, and the first and last of its heartbeats."""

    first: Any
    last: Any
    consumer: _Consumer


def members_of(engine: Engine) -> list[dict[str, Any]]:
    """Each member from its first heartbeat with a group to its end: unregistered, the connection of its last heartbeat
    closed, or still connected."""
    left = {
        (row["journal"], row["client"], row["leftGroup"]): row["micros"] for row in engine.sql(LEFT).rows()
    }
    closed = {(row["journal"], row["connection"]): row["micros"] for row in engine.sql(CLOSED).rows()}
    members = []
    for (group, journal, client), stay in _stays(engine.sql(BEATS).rows()).items():
        first, last = stay.first, stay.last
        unregistered = left.get((journal, client, group))
        gone = unregistered if unregistered is not None and unregistered >= last["lastMicros"] else None
        closed_at = closed.get((journal, last["connection"]))
        until = min((end for end in (gone, closed_at) if end is not None), default=last["lastMicros"])
        how = "connection closed" if closed_at is not None else "still connected"
        release = None if first["version"] is None else version_name(first["version"])
        members.append(
            {
                "source": first["source"],
                "journal": journal,
                "group": group,
                "client": client,
                "language": first["language"],
                "release": release and release.removeprefix("V").replace("_", "."),
                "consumeFromWhere": stay.consumer.consumeFromWhere,
                "messageModel": stay.consumer.messageModel,
                "joined": _moment(first["firstMicros"] / 1e6),
                "until": _moment(until / 1e6),
                "how": how if gone is None else "unregistered",
            }
        )
    return sorted(members, key=lambda member: (member["journal"], member["group"], member["joined"]))


def _stays(beats: Iterable[Any]) -> dict[tuple[str, str, str], _Stay]:
    """(group, journal, client) -> stay."""
    stays: dict[tuple[str, str, str], _Stay] = {}
    for beat in sorted(beats, key=lambda beat: beat["firstMicros"]):
        try:
            consumers = msgspec.json.decode(beat["heartbeat"], type=_Heartbeat).consumerDataSet
        except msgspec.DecodeError:
            continue
        for consumer in consumers:
            key = consumer.groupName, beat["journal"], beat["client"]
            stay = stays.setdefault(key, _Stay(beat, beat, consumer))
            stay.last = max(stay.last, beat, key=lambda one: one["lastMicros"])
    return stays


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
