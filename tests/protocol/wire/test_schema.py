"""Header fields to values and back, compared with how the official reader converts a text (`vectors/`)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.bodies.routes import KVTable, TopicList
from pocketmq.protocol.errors import BodyError, FieldError
from pocketmq.protocol.requests.name_server import (
    GetRouteInfoByTopic,
    GetTopicsByCluster,
    RegisterBroker,
    RegisterBrokerReply,
)
from pocketmq.protocol.requests.offset import GetMaxOffset, OffsetReply, UpdateConsumerOffset
from pocketmq.protocol.requests.pull import QueryConsumeQueue
from pocketmq.protocol.requests.security import AuthGetUser, AuthListUser
from pocketmq.protocol.requests.send import ConsumerSendMsgBack
from pocketmq.protocol.requests.to_client import GetConsumerRunningInfo
from pocketmq.protocol.wire.schema import (
    REQUESTS,
    Int,
    Long,
    NoReply,
    Reply,
    Request,
    field,
    from_fields,
    read_reply,
    request,
    to_fields,
)

from official_vectors import rows


class Everything(Reply, frozen=True, kw_only=True):
    topic: str
    queue_id: Int
    offset: Long
    is_force: bool = False
    committed: bool = True
    ratio: float | None = None
    group: str | None = None
    limit: Int | None = None
    readable: bool | None = None
    broker_name: str | None = field(name="bname", default=None)


LEAST = {"topic": "T", "queueId": "1", "offset": "2"}
PLACE = {"topic": "T", "queueId": "0", "commitOffset": "1"}
SENT_BACK = {"offset": "1", "group": "g", "delayLevel": "0"}

DECLARED: dict[str, tuple[type[Request[Any]], dict[str, str]]] = {
    "GetMaxOffsetRequestHeader": (GetMaxOffset, {"topic": "T", "queueId": "1"}),
    "UpdateConsumerOffsetRequestHeader": (UpdateConsumerOffset, {"consumerGroup": "g", **PLACE}),
    "GetConsumerRunningInfoRequestHeader": (GetConsumerRunningInfo, {"consumerGroup": "g", "clientId": "c"}),
    "namesrv.GetRouteInfoRequestHeader": (GetRouteInfoByTopic, {"topic": "T"}),
    "ConsumerSendMsgBackRequestHeader": (ConsumerSendMsgBack, SENT_BACK),
    "QueryConsumeQueueRequestHeader": (QueryConsumeQueue, {}),
}
TAKEN_FOR_WHOLE_NUMBERS = {"7.0": "7", "1e3": "1000"}
"""The official reader refuses these; here they are read, since looking twice at each number is not worth it."""


def judged_texts() -> list[Any]:
    """Both recorded lines agree in every row."""
    recorded = rows("header-fields-5.5.0.tsv")
    assert recorded == rows("header-fields-4.9.8.tsv")
    return [pytest.param(*row, id=f"{row[0]}-{row[1]}-{row[2]!r}") for row in recorded]


def java_text(cls: type[msgspec.Struct], name: str, fields: dict[str, str]) -> str:
    """The field's value as Java prints it; in Java an unreadable mandatory field stays null."""
    try:
        seen = from_fields(cls, fields)
    except FieldError:
        return "null"
    member = next(member for member in msgspec.structs.fields(cls) if member.encode_name == name)
    value = getattr(seen, member.name)
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(("header", "name", "text", "official"), judged_texts())
def test_a_text_is_converted_as_by_the_official_reader(
    header: str, name: str, text: str, official: str
) -> None:
    cls, others = DECLARED[header]
    fields = {key: value for key, value in others.items() if key != name}
    if text != "absent":
        fields[name] = text
    assert java_text(cls, name, fields) == TAKEN_FOR_WHOLE_NUMBERS.get(text, official)


def test_absent_fields_have_their_defaults() -> None:
    assert from_fields(Everything, LEAST) == Everything(topic="T", queue_id=1, offset=2)


def test_a_header_without_fields_lacks_the_mandatory_ones() -> None:
    with pytest.raises(FieldError, match=r"Everything.*topic"):
        from_fields(Everything, None)
    assert from_fields(NoReply, None) == NoReply()


@pytest.mark.parametrize("text", ["x", "", "2147483648", "-2147483649"])
def test_an_unreadable_mandatory_number_names_class_key_and_text(text: str) -> None:
    with pytest.raises(FieldError, match=r"Everything.*queueId") as caught:
        from_fields(Everything, LEAST | {"queueId": text})
    assert repr(text) in str(caught.value)


def test_an_unreadable_optional_number_is_left_out() -> None:
    assert from_fields(Everything, LEAST | {"limit": "many", "ratio": "half"}).limit is None


def test_one_unreadable_field_leaves_the_others_as_they_are() -> None:
    fields = LEAST | {"limit": "x", "isForce": "TRUE", "committed": "no", "group": "g", "ratio": "0.5"}
    seen = from_fields(Everything, fields)
    assert seen == Everything(
        topic="T", queue_id=1, offset=2, is_force=True, committed=False, group="g", ratio=0.5
    )


@pytest.mark.parametrize("name", ["isForce", "committed", "readable"])
@pytest.mark.parametrize("text", ["1", "yes", "null", "", " true"])
def test_only_the_word_true_is_true(name: str, text: str) -> None:
    seen = from_fields(Everything, LEAST | {name: text})
    assert {"isForce": seen.is_force, "committed": seen.committed, "readable": seen.readable}[name] is False


def test_text_that_looks_like_a_number_stays_text() -> None:
    seen = from_fields(Everything, LEAST | {"topic": "007", "group": "+1", "bname": "null", "limit": "x"})
    assert (seen.topic, seen.group, seen.broker_name) == ("007", "+1", "null")


def test_none_is_left_out_and_the_rest_is_written_as_java_writes_it() -> None:
    value = Everything(topic="", queue_id=-1, offset=1 << 62, is_force=True, broker_name="b")
    written = {"topic": "", "queueId": "-1", "offset": "4611686018427387904"}
    assert to_fields(value) == written | {"isForce": "true", "committed": "true", "bname": "b"}


@given(
    st.builds(
        Everything,
        topic=st.text(),
        queue_id=st.integers(-(1 << 31), (1 << 31) - 1),
        offset=st.integers(-(1 << 63), (1 << 63) - 1),
        is_force=st.booleans(),
        committed=st.booleans(),
        ratio=st.none() | st.floats(allow_nan=False),
        group=st.none() | st.text(),
        limit=st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        readable=st.none() | st.booleans(),
        broker_name=st.none() | st.text(),
    )
)
def test_every_value_is_read_back(value: Everything) -> None:
    assert from_fields(Everything, to_fields(value)) == value


@given(
    st.dictionaries(st.sampled_from([*LEAST, "isForce", "limit", "ratio", "readable"]), st.text(max_size=6))
)
def test_any_texts_give_a_value_or_a_field_error(fields: dict[str, str]) -> None:
    try:
        seen = from_fields(Everything, fields)
    except FieldError:
        return
    assert isinstance(seen, Everything)


def test_two_classes_with_one_code_fail() -> None:
    before = dict(REQUESTS)
    with pytest.raises(TypeError, match=r"code 30 .*GetMaxOffset.*Another"):

        @request(30)
        class Another(Request[NoReply], frozen=True, kw_only=True):
            pass

    assert before == REQUESTS


def test_a_request_without_reply_type_fails_and_claims_no_code() -> None:
    with pytest.raises(TypeError, match="Lonely names no reply"):

        @request(29999)
        class Lonely(Request, frozen=True, kw_only=True):  # type: ignore[type-arg]
            pass

    assert 29999 not in REQUESTS


def test_the_reply_of_a_request_is_its_fields_or_its_body() -> None:
    assert read_reply(GetMaxOffset(topic="T", queue_id=0), {"offset": "7"}, None) == OffsetReply(offset=7)
    assert read_reply(GetTopicsByCluster(cluster="c"), None, b'{"topicList":["T"]}').topic_list == ["T"]
    with pytest.raises(BodyError, match="TopicList: the body is missing"):
        read_reply(GetTopicsByCluster(cluster="c"), None, b"")
    assert read_reply(AuthGetUser(username="u"), None, b"") is None
    users = read_reply(AuthListUser(), None, b'[{"username":"u"}]')
    assert [user.username for user in users] == ["u"]


def test_a_reply_with_fields_names_its_body_separately() -> None:
    assert (RegisterBroker.reply_type, RegisterBroker.reply_body_form) == (RegisterBrokerReply, KVTable)
    assert not RegisterBroker.returns_body
    with pytest.raises(TypeError, match="Twice names the body of its reply twice"):

        @request(29999, reply_body=KVTable)
        class Twice(Request[TopicList], frozen=True, kw_only=True):
            pass

    assert 29999 not in REQUESTS
