"""Headers that repeat: recognised if, and only if, decoding would have given the same but for the changing values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.wire.command import JSON, RESPONSE_FLAG, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.repeated_header import MAX_HEADERS, as_command, frame_bytes

ID = "7F00000100002A9F00000000000000{:02X}"


def a_send(number: int, *, form: int = JSON, opaque: int = 7, **changes: Any) -> Command:
    pairs = {"KEYS": f"key-{number % 10}", "UNIQ_KEY": ID.format(number % 256), "WAIT": "true"}
    fields = {
        "a": "group",
        "b": "orders",
        "e": str(number % 4),
        "g": str(1_700_000_000_000 + number),
        "h": "0",
    }
    fields |= {"i": encode_properties_text({**pairs, **changes.pop("pairs", {})})}
    return Command(310, opaque, 0, None, fields, b"body", "JAVA", 401, form, **changes)


def a_cutter(*known: Command) -> FrameCutter:
    cutter = FrameCutter()
    cutter.recognise_sends()
    for command in known:
        assert cutter.feed_requests(encode_frame(command)) == [command]
    return cutter


def seen(frame: Any) -> Command:
    """A frame as a command, whether it was recognised or decoded."""
    return as_command(frame) if isinstance(frame, tuple) else frame


@pytest.mark.parametrize("form", [JSON, ROCKETMQ])
def test_a_send_is_recognised_by_its_second_header(form: int) -> None:
    cutter = a_cutter(a_send(1, form=form))
    data = encode_frame(a_send(2, form=form, opaque=8))
    (frame,) = cutter.feed_requests(data)
    assert isinstance(frame, tuple)
    _, (opaque, queue_id, born_timestamp, unique_id, keys), body, *_ = frame
    assert opaque == (8 if form == ROCKETMQ else b"8")
    assert (queue_id, born_timestamp, unique_id, keys) == (
        b"2",
        b"1700000000002",
        ID.format(2).encode(),
        b"key-2",
    )
    assert (bytes(body), bytes(frame_bytes(frame))) == (b"body", data)
    assert as_command(frame) == a_send(2, form=form, opaque=8)


@pytest.mark.parametrize("form", [JSON, ROCKETMQ])
def test_what_differs_elsewhere_is_decoded(form: int) -> None:
    others = [
        a_send(1, form=form, pairs={"own": "1"}),
        Command(310, 7, 2, None, a_send(1).fields, b"body", "JAVA", 401, form),
        Command(310, 7, RESPONSE_FLAG, None, a_send(1).fields, b"body", "JAVA", 401, form),
        Command(320, 7, 0, None, a_send(1).fields, b"body", "JAVA", 401, form),
        Command(310, 7, 0, None, a_send(1).fields, None, "JAVA", 401, form),
        Command(310, 7, 0, None, {**(a_send(1).fields or {}), "b": "ordert"}, b"body", "JAVA", 401, form),
    ]
    for other in others:
        cutter = a_cutter(a_send(1, form=form))
        assert cutter.feed_requests(encode_frame(other)) == [other]


def test_a_reply_with_the_code_of_a_send_is_never_recognised() -> None:
    reply = Command(
        10, 7, RESPONSE_FLAG, None, {"queueId": "0", "bornTimestamp": "1", "properties": "x"}, b"body"
    )
    a_cutter(reply, reply, reply)


@pytest.mark.parametrize("pairs", [{"UNIQ_KEY": "short"}, {"UNIQ_KEY": '"' * 32}, {"UNIQ_KEY": "é" * 32}])
def test_a_header_without_a_plain_unique_id_is_decoded(pairs: dict[str, str]) -> None:
    a_cutter(*[a_send(number, pairs=pairs) for number in range(4)])


def test_headers_of_one_length_may_differ_in_topic_and_in_layout() -> None:
    one = a_send(1, opaque=999)
    two = Command(
        310, 1000, 0, None, {**(one.fields or {}), "b": "order"}, b"body", "JAVA", 401
    )  # as long as `one`
    cutter = a_cutter(one, two)
    for command in (one, two, two, one):
        (frame,) = cutter.feed_requests(encode_frame(command))
        assert isinstance(frame, tuple)
        assert as_command(frame) == command


def test_blanks_between_json_tokens_are_no_obstacle() -> None:
    import json

    def frame(number: int) -> bytes:
        command = a_send(number)
        text = json.dumps(
            {
                "code": 310,
                "opaque": number,
                "version": 401,
                "language": "PYTHON",
                "flag": 0,
                "extFields": command.fields,
            }
        ).encode()
        return (len(text) + 8).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + b"body"

    cutter = FrameCutter()
    cutter.recognise_sends()
    cutter.feed_requests(frame(1))
    (recognised,) = cutter.feed_requests(frame(2))
    assert isinstance(recognised, tuple)
    assert as_command(recognised).fields == a_send(2).fields


def test_a_property_that_counts_up_is_learned_less_and_less() -> None:
    cutter = FrameCutter()
    cutter.recognise_sends()
    learned = 0
    for number in range(1000):
        cutter.feed_requests(encode_frame(a_send(1, pairs={"number": f"{number:04}"})))
        learned = sum(len(layout.headers) for layout in cutter._repeated.layouts.values())
    assert 0 < learned < 60
    for _ in range(80):
        (frame,) = cutter.feed_requests(encode_frame(a_send(2)))
    assert isinstance(frame, tuple), "an ordinary send is learned all the same"


def test_memory_of_headers_is_bounded() -> None:
    cutter = FrameCutter()
    cutter.recognise_sends()
    for number in range(2 * MAX_HEADERS):
        for _ in range(2):
            for frame in cutter.feed_requests(encode_frame(a_send(1, pairs={"own": "x" * number}))):
                if isinstance(frame, tuple):
                    frame[0].is_used = True
    assert sum(len(layout.headers) for layout in cutter._repeated.layouts.values()) <= MAX_HEADERS


def test_a_value_that_breaks_the_json_text_is_found_when_it_is_decoded() -> None:
    cutter = a_cutter(a_send(1))
    data = encode_frame(a_send(2)).replace(ID.format(2).encode(), b'"' * 32)
    (frame,) = cutter.feed_requests(data)
    assert isinstance(frame, tuple)
    with pytest.raises(FrameError):
        as_command(frame)


@given(
    st.sampled_from([JSON, ROCKETMQ]),
    st.lists(
        st.tuples(
            st.integers(0, 300),
            st.integers(0, 2**31 - 1),
            st.dictionaries(
                st.sampled_from(["KEYS", "TAGS", "XKEYS", "own"]), st.text('aü"\\\x01 KEYS', max_size=6)
            ),
        ),
        max_size=12,
    ),
    st.integers(1, 60),
)
def test_every_frame_is_what_decoding_gives(
    form: int, sends: list[tuple[int, int, dict[str, str]]], chunk: int
) -> None:
    data = b"".join(
        encode_frame(a_send(number, form=form, opaque=opaque, pairs=pairs)) for number, opaque, pairs in sends
    )
    data += data
    cutter, frames = FrameCutter(), []
    cutter.recognise_sends()
    for at in range(0, len(data), chunk * 37):
        frames += cutter.feed_requests(data[at : at + chunk * 37])
    assert [seen(frame) for frame in frames] == FrameCutter().feed(data)
