"""AdminClient and single messages: found by id and key, read, tracked, consumed directly and sent again."""

import pytest
from pocketmq.client import AdminClient, InvalidArgument, MessageNotFound, Producer, RouteNotFound
from pocketmq.client.admin.messages import TrackType

from client_admin import QUEUE, TOPIC, make_groups, make_topic, member, send
from waiting import until_it_says


async def test_a_missing_message_is_not_found(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin)
    await send(namesrv_addr, b"hello")
    for message_id in ("no-id", "7F00000100002A9F00000000000000FF", "00" * 16, "FF" * 28):
        with pytest.raises(MessageNotFound):
            await admin.message(TOPIC, message_id)
    assert await admin.messages_by_key(TOPIC, "absent") == []
    assert await admin.messages_by_key(TOPIC, "k1", begin_ms=0, end_ms=1) == []
    assert await admin.message_at(QUEUE, 99) is None
    with pytest.raises(RouteNotFound):
        await admin.messages_by_key("absent", "k1")


async def test_a_queue_is_read_from_end_to_end(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin)
    await send(namesrv_addr, *(b"%d" % number for number in range(70)))

    async def body_of_last() -> bytes | None:
        last = await admin.message_at(QUEUE, 69)
        return None if last is None else last.body

    await until_it_says(body_of_last, b"69")  # an official broker answers a send before its queue has it
    bodies = [one.body async for result in admin.read(QUEUE, 5, 70) for one in result.messages]
    assert bodies == [b"%d" % number for number in range(5, 70)]
    assert [len(result.messages) async for result in admin.read(QUEUE, 0, 70, tags="paid")] == [0]


async def test_the_track_shows_which_groups_consumed_a_message(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin)
    (sent,) = await send(namesrv_addr, b"hello")
    message = await admin.message(TOPIC, sent.message_id)
    assert await admin.message_track(message) == []
    async with member(namesrv_addr, "billing", count=1):
        assert [one.track_type for one in await admin.message_track(message)] == [TrackType.CONSUMED]
        (later,) = await send(namesrv_addr, b"again")
        await make_groups(admin, "slow")
        await admin.set_offset("slow", QUEUE, 0)
    tracks = {one.group: one for one in await admin.message_track(message)}
    assert tracks["billing"].track_type is TrackType.NOT_ONLINE
    assert tracks["slow"].track_type is TrackType.UNKNOWN, "a group that never had a member"
    assert later.queue_offset == 1


async def test_a_message_is_sent_again_under_its_own_id(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin, queues=1)
    (sent,) = await send(namesrv_addr, b"hello")
    again = await admin.resend(TOPIC, sent.message_id)
    assert (again.message_id, again.queue_offset) == (sent.message_id, 1)
    both = await admin.messages_by_unique_key(TOPIC, sent.message_id)
    assert [(one.queue_offset, one.body, one.tags) for one in both] == [
        (0, b"hello", "created"),
        (1, b"hello", "created"),
    ]


async def test_traces_show_which_client_did_what(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin, "Traces", queues=1)
    pub = ["Pub", "1700000000000", "DefaultRegion", "senders", TOPIC, "ID1", "tag", "key", "127.0.0.1:1", "5"]
    lines = [
        [*pub, "7", "0", "OFFSETID", "true"],
        ["SubBefore", "1", "DefaultRegion", "billing", "R", "ID1", "0", "key"],
        ["SubAfter", "R", "ID1", "12", "false", "key", "0", "1700000000100", "billing"],
        ["SubAfter", "R", "ID2", "1", "true", "key", "0"],
        ["SubBefore", "1", "DefaultRegion", "billing", "R", "ID3", "0", "key"],
    ]
    body = "\x02".join("\x01".join(line) for line in lines).encode()
    async with Producer("tracers", namesrv_addr=namesrv_addr) as producer:
        await producer.send("Traces", body, keys="ID1 key")
    views = await admin.trace("ID1", trace_topic="Traces")
    assert [(one.kind, one.group, one.cost_ms, one.is_success) for one in views] == [
        ("Pub", "senders", 7, True),
        ("SubAfter", "billing", 12, False),
    ]


async def test_tags_that_cannot_be_read_are_a_wrong_argument(admin: AdminClient) -> None:
    with pytest.raises(InvalidArgument, match="subscription exception"):
        await admin.pull(QUEUE, 0, tags="||")
