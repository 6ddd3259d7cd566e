"""A frame made from a form is the frame of the ordinary encoder."""

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.requests.pull import PullMessage, pull_form
from pocketmq.protocol.wire.command import JSON, Command
from pocketmq.protocol.wire.frame import encode_frame
from pocketmq.protocol.wire.header_form import HeaderForm
from pocketmq.protocol.wire.schema import to_fields

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.just('%d %b %% a"b')
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
pulls = st.builds(
    PullMessage,
    consumer_group=names,
    topic=names,
    queue_id=int32,
    queue_offset=int64,
    max_msg_nums=int32,
    sys_flag=int32,
    commit_offset=st.none() | int64,
    suspend_timeout_millis=int64,
    subscription=st.none() | names,
    sub_version=int64,
    expression_type=st.none() | names,
    broker_name=st.none() | names,
)


@given(pulls, st.lists(st.tuples(int64, int32, st.integers(0, 2**31 - 1)), max_size=4))
def test_a_pull_made_from_a_form_is_that_of_the_ordinary_encoder(
    request: PullMessage, others: list[tuple[int, int, int]]
) -> None:
    form = pull_form(request, "PYTHON", V5_5_0)
    assert form is not None
    for offset, count, opaque in others:
        fields = to_fields(request) | {"queueOffset": str(offset), "maxMsgNums": str(count)}
        frame = encode_frame(Command(11, opaque, 0, None, fields, None, "PYTHON", V5_5_0, JSON))
        assert form.head((offset, count, opaque), 0) == frame


def test_values_that_look_like_a_mark_or_come_in_another_order_have_no_form() -> None:
    sample = Command(11, -77, fields={"a": "-55", "b": "-55", "c": "-66"})
    opaque = (b"-77", b"%d")
    assert HeaderForm.of(sample, ((b'"-66"', b'"%d"'), opaque)) is not None
    assert HeaderForm.of(sample, ((b'"-55"', b'"%d"'), opaque)) is None
    assert HeaderForm.of(sample, (opaque, (b'"-66"', b'"%d"'))) is None
    assert HeaderForm.of(sample, ((b'"-88"', b'"%d"'), opaque)) is None
