"""Messages made ready to leave: the quick road gives what the ordinary one gives."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client import ClientError, Message, Producer, ProducerSettings
from pocketmq.client.producing.outgoing import Outgoing, OutgoingMaker
from pocketmq.client.values.namespaces import Namespace
from pocketmq.protocol.message.unique_id import UniqueIdMaker

from client_waits import stored

words = st.sampled_from(["", "a", "two words", "\x01", "x\x02y", "\u20ac", "\n"]) | st.text(max_size=8)
messages = st.builds(
    Message,
    topic=st.sampled_from(["T", "%RETRY%g", "other"]),
    body=st.binary(min_size=1, max_size=40),
    tags=words,
    keys=words,
    properties=st.dictionaries(st.sampled_from(["colour", "WAIT", "TAGS", " "]), words, max_size=1),
    flag=st.integers(0, 3),
    delay_level=st.integers(0, 1),
    wait_store_ok=st.booleans(),
)


def maker(namespace: str | None) -> OutgoingMaker:
    settings = ProducerSettings(compress_msg_body_over_howmuch=30, namespace=namespace)
    return OutgoingMaker("g", settings, Namespace(namespace), UniqueIdMaker(bytes(4), 1, 2, lambda: 3))


@given(messages, st.sampled_from([None, "space"]))
def test_a_message_is_prepared_as_by_its_map_of_properties(message: Message, namespace: str | None):
    expected: Outgoing | None = None
    with suppress(ClientError):
        expected = maker(namespace).prepare(message, message.wire_properties())
    found: Outgoing | None = None
    with suppress(ClientError):
        found = maker(namespace).prepare_message(message)
    assert found == expected


async def test_a_body_that_changes_after_the_call_leaves_as_it_was(namesrv_addr: str) -> None:
    async with Producer("p", namesrv_addr=namesrv_addr) as producer:
        await producer.send("T", b"first")
        body = bytearray(b"before")
        sent = producer.send_nowait("T", body)  # type: ignore[arg-type]
        body[:] = b"behind"
        await sent
    bodies = [bytes(record.body) for record in await stored(namesrv_addr, "T")]
    assert sorted(bodies) == [b"before", b"first"]
