"""Frames of a template are those of the ordinary encoder; replies read quickly say what the ordinary reader says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.protocol.requests.send_frames import SendTemplate, read_stored_reply
from pocketmq.protocol.wire.command import JSON, Command
from pocketmq.protocol.wire.frame import encode_frame
from pocketmq.protocol.wire.json_header import decode_json_header
from pocketmq.protocol.wire.schema import from_fields, to_fields

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
names = st.text(min_size=1, max_size=20) | st.just('%d %b %% a"b')
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
requests = st.builds(
    SendMessageV2,
    producer_group=names,
    topic=names,
    default_topic=names,
    default_topic_queue_nums=int32,
    queue_id=int32,
    sys_flag=int32,
    born_timestamp=int64,
    flag=int32,
    properties=texts,
    unit_mode=st.booleans(),
    broker_name=st.none() | names,
)


@given(requests, st.lists(st.tuples(int32, int64, texts, st.binary(max_size=20)), max_size=4), st.integers(0))
def test_a_frame_of_a_template_is_the_frame_of_the_ordinary_encoder(
    request: SendMessageV2, sends: list[tuple[int, int, str, bytes]], opaque: int
):
    template = SendTemplate.of(request, "PYTHON", V5_5_0)
    if template is None:
        return  # a name that looks like a place of the template: the ordinary encoder serves it
    for sys_flag, born_timestamp, properties, body in sends:
        fields = to_fields(request) | {"f": str(sys_flag), "g": str(born_timestamp), "i": properties}
        frame = encode_frame(Command(310, opaque, 0, None, fields, body, "PYTHON", V5_5_0, JSON))
        assert template.head(opaque, sys_flag, born_timestamp, properties, len(body)) + body == frame


def test_a_name_that_looks_like_a_place_of_the_template_gets_none():
    letters = {
        "a": "g",
        "b": "\x00properties\x00",
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "0",
        "h": "0",
    }
    request = from_fields(SendMessageV2, letters)
    assert SendTemplate.of(request, "PYTHON", V5_5_0) is None


usual = {"msgId": "7F00", "queueId": "3", "queueOffset": "12"}
odd_values = st.sampled_from(
    ["1", "true", "false", "yes", "null", "TRUE", "", " 7", "+5", "99999999999", "1.0", "x"]
)
field_names = st.sampled_from(
    [
        *("msgId", "queueId", "queueOffset", "transactionId", "batchUniqId", "recallHandle"),
        *("MSG_REGION", "TRACE_ON", "z"),
    ]
)
values = odd_values | st.integers(-9, 9) | st.booleans() | st.none() | st.text(max_size=5)
headers = st.fixed_dictionaries(
    {"code": st.just(0) | st.integers(-1, 20), "opaque": int32, "flag": st.sampled_from([1, 0, 3, "1"])},
    optional={
        "language": st.sampled_from(["JAVA", "PYTHON", "other", 3, None]),
        "remark": st.none() | texts,
        "version": int32,
        "serializeTypeCurrentRPC": st.just("JSON"),
        "extFields": st.none() | st.dictionaries(field_names, values),
    },
)


def ordinary(header: bytes) -> tuple[int, SendMessageReply]:
    command = decode_json_header(memoryview(header), None)
    assert command.code == 0
    assert command.is_reply
    return command.opaque, from_fields(SendMessageReply, command.fields)


def quick(header: bytes) -> tuple[int, SendMessageReply] | None:
    reply = read_stored_reply(header)
    if reply is None:
        return None
    fields = {name: getattr(reply.fields, name) for name in SendMessageReply.__struct_fields__}
    trace_on = fields.pop("trace_on")
    return reply.opaque, SendMessageReply(**fields, trace_on=None if trace_on is None else trace_on == "true")


@given(headers, st.dictionaries(field_names, values, max_size=3), st.booleans())
def test_a_reply_read_quickly_is_the_reply_read_ordinarily(
    header: dict[str, object], odd: dict[str, object], is_usual: bool
):
    if is_usual:
        header = header | {"extFields": usual | odd}
    text = json.dumps(header, separators=(",", ":")).encode()
    found = quick(text)
    if found is not None:
        assert found == ordinary(text)


@pytest.mark.parametrize(
    "more", [{}, {"TRACE_ON": "true", "MSG_REGION": "DefaultRegion"}, {"transactionId": "7F"}]
)
def test_the_usual_replies_are_read_quickly(more: dict[str, str]):
    header = {
        "code": 0,
        "extFields": usual | more,
        "flag": 1,
        "language": "JAVA",
        "opaque": 7,
        "version": 493,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    assert quick(text) == ordinary(text)


@given(st.binary(max_size=60))
def test_random_bytes_are_no_stored_reply(data: bytes):
    assert read_stored_reply(data) is None
    assert read_stored_reply(b'{"msgId":"' + data) is None
