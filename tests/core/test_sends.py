"""A pass of frames becomes sends: C does what Python does, and neither finds a send where the decoder finds none."""

import itertools
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.sends import SPECIAL, End, RequestCutter, Send, frames_of
from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame

from property_texts import TEXTS
from send_headers import COMMANDS, LETTERS, NUMBERS, commands, decoded, framed, read, same_sends

ROOT = Path(__file__).resolve().parents[2]


@given(
    frames=st.integers(0, 23).flatmap(
        lambda order: st.lists(commands(order, (None,)), min_size=2, max_size=6)
    )
)
def test_frames_of_one_writer_have_the_same_kinds_in_both(native, frames) -> None:
    """Frames of several writers may have more kinds in C, where order and blanks count."""
    data = b"".join(frames)
    kinds = [
        [frame.kind for frame in both]
        for both in zip(read(native.read_sends, data)[1], read(in_python["read_sends"], data)[1], strict=True)
        if isinstance(both[0], Send)
    ]
    for (in_c, plain), (next_in_c, next_plain) in itertools.combinations(kinds, 2):
        assert (in_c == next_in_c) == (plain == next_plain)


@given(frames=st.lists(COMMANDS, max_size=5), cut=st.integers(0, 30))
def test_frames_as_clients_write_them_are_read_alike(native, frames, cut) -> None:
    data = b"".join(frames)
    same_sends(native, data[: len(data) - cut] if cut < 25 else data)


@given(
    frames=st.lists(COMMANDS, min_size=1, max_size=3),
    damage=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_damaged_frames_are_read_alike(native, frames, damage) -> None:
    data = bytearray(b"".join(frames))
    for at, value in damage:
        data[at % len(data)] = value
    same_sends(native, bytes(data))


JSON_VALUES = [
    *('"1"', "1", "null", "true", "{}", "[]", "[1,2]", '"a', "1x", "tru", "-", "01", "1.0", "1e2", "NaN"),
    *('"\x01"', '"03"', '"-7"', '"1700000000000"', "99999999999", "-1", '"ü"', '"JSON"', '""'),
    *(
        r'"\u0041"',
        r'"\u00e9"',
        r'"\ud83d\ude00"',
        r'"\ud800"',
        r'"a\nb"',
        r'"a\x"',
        r'"\u0031"',
        r'"\/\"\\"',
    ),
    *(r'"UNIQ_KEY\u0001AB\u0002"', r'"WAIT\u0001true\u0002DELAY\u00013"'),
]
TOP_NAMES = [
    *('"code"', '"opaque"', '"flag"', '"language"', '"version"', '"remark"', '"extFields"', '"x"'),
    *(r'"c\u006fde"', "code", '""', '"serializeTypeCurrentRPC"'),
]
FIELD_NAMES = st.sampled_from(
    [
        *('"queueId"', '"bornTimestamp"', '"properties"', '"e"', '"g"', '"i"', '"topic"', '"b"'),
        *(r'"q\u0075eueId"', "'e'", '""', '"transactionId"', '"msgId"'),
    ]
)
BLANKS = st.sampled_from(["", "", "", " ", "\n\t", "\r ", "\x0b", "\xa0"])
SOUND_FIELDS = {
    10: ('"queueId"', '"bornTimestamp"', '"properties"'),
    37: ('"tranStateTableOffset"', '"commitLogOffset"', '"msgId"'),
    310: ('"e"', '"g"', '"i"'),
    320: ('"e"', '"g"', '"i"'),
}
SOUND_VALUES = ('"1"', '"7"', '"WAIT\\u0001true"')


@st.composite
def json_headers(draw: st.DrawFn) -> bytes:
    code = draw(st.sampled_from([10, 310, 320, 37]))
    fields = []
    if draw(st.integers(0, 3)):
        values = list(SOUND_VALUES)
        if draw(st.booleans()):
            values[draw(st.integers(0, 2))] = draw(st.sampled_from(JSON_VALUES))
        names = SOUND_FIELDS[code]
        fields = [f"{name}:{value}" for name, value in zip(names, values, strict=True)]
    fields += [
        f"{draw(FIELD_NAMES)}:{draw(BLANKS)}{draw(st.sampled_from(JSON_VALUES))}"
        for _ in range(draw(st.integers(0, 3)))
    ]
    joined = f"{draw(BLANKS)}{f',{draw(BLANKS)}'.join(fields)}{draw(BLANKS)}"
    all_fields = f'"extFields"{draw(BLANKS)}:{draw(BLANKS)}{{{joined}}}'
    members = list(draw(st.permutations([f'"code":{code}', all_fields, '"opaque":7'])))
    members += [
        f"{draw(st.sampled_from(TOP_NAMES))}:{draw(BLANKS)}{draw(st.sampled_from(JSON_VALUES))}"
        for _ in range(draw(st.integers(0, 2)))
    ]
    if draw(st.integers(0, 5)) == 0:
        members = draw(st.permutations(members))[1:]
    separators = draw(st.sampled_from([",", ",", ", ", ",,", ";", "\n,"]))
    text = f"{draw(BLANKS)}{{{draw(BLANKS)}{separators.join(members)}{draw(BLANKS)}}}{draw(BLANKS)}"
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8", "latin-1"])), "replace")


@given(headers=st.lists(json_headers(), min_size=1, max_size=4))
def test_odd_json_headers_are_read_alike(native, headers) -> None:
    same_sends(native, b"".join(framed(0, header, b"body") for header in headers))


@pytest.mark.parametrize("value", JSON_VALUES)
def test_one_odd_value_in_a_sound_json_header_is_read_alike(native, value) -> None:
    headers = []
    for place in range(3):
        values = [*SOUND_VALUES[:place], value, *SOUND_VALUES[place + 1 :]]
        fields = ",".join(f"{name}:{one}" for name, one in zip(SOUND_FIELDS[310], values, strict=True))
        headers.append(f'{{"code":310,"extFields":{{{fields}}},"flag":0,"opaque":7}}')
    fields = ",".join(f"{name}:{one}" for name, one in zip(SOUND_FIELDS[310], SOUND_VALUES, strict=True))
    headers.append(f'{{"code":310,"extFields":{{{fields},"b":{value}}},"flag":0,"opaque":7}}')
    for name in TOP_NAMES:
        headers += [
            f'{{"code":310,"extFields":{{{fields}}},"opaque":7,{name}:{value}}}',
            f'{{{name}:{value},"code":310,"extFields":{{{fields}}},"opaque":7}}',
        ]
    headers.append(f'{{"code":{value},"extFields":{{{fields}}},"opaque":7}}')
    headers.append(f'{{"code":310,"extFields":{{{fields}}},"opaque":{value}}}')
    headers.append(f'{{"code":310,"extFields":{value},"opaque":7}}')
    same_sends(native, b"".join(framed(0, header.encode(), b"body") for header in headers))


@st.composite
def binary_headers(draw: st.DrawFn) -> bytes:
    code = draw(st.sampled_from([10, 37, 310, 320, -310]))
    names = [name.strip('"').encode() for name in SOUND_FIELDS.get(code, SOUND_FIELDS[310])]
    values = [draw(NUMBERS).encode(), draw(NUMBERS).encode(), draw(TEXTS)]
    pairs = [*zip(names, values, strict=True)]
    names = st.sampled_from([b"b", b"e", b"topic", b"", b"\xff", b"transactionId"])
    pairs += draw(st.lists(st.tuples(names, st.sampled_from([b"", b"x", b"\xff"])), max_size=2))
    fields = b"".join(
        struct.pack(">h", len(name)) + name + struct.pack(">i", len(value)) + value
        for name, value in draw(st.permutations(pairs))
    )
    remark = draw(st.sampled_from([b"", b"", b"", b"r"]))
    flag = draw(st.sampled_from([0, 0, 0, 1, 2, -2]))
    language, opaque = draw(st.sampled_from([0, 7, -1, 99])), draw(st.integers(-5, 5))
    head = struct.pack(">hbhiii", code, language, 401, opaque, flag, len(remark))
    length = len(fields) + draw(st.sampled_from([0, 0, 0, 0, -1, 1, -len(fields)]))
    return (
        head + remark + struct.pack(">i", length) + fields + draw(st.sampled_from([b"", b"", b"", b"tail"]))
    )


@given(headers=st.lists(binary_headers(), min_size=1, max_size=4))
def test_odd_binary_headers_are_read_alike(native, headers) -> None:
    same_sends(native, b"".join(framed(1, header, b"body") for header in headers))


@given(data=st.binary(max_size=60), form=st.sampled_from([0, 1, 2]), length=st.integers(-5, 80))
def test_no_bytes_make_it_fail(native, data, form, length) -> None:
    same_sends(native, struct.pack(">iI", length, form << 24 | 20) + data)
    same_sends(native, data)


def a_send(
    code: int = 310, form: int = 0, opaque: int = 7, body: bytes = b"body", pairs=None, **changes: str
) -> bytes:
    fields = {"topic": "orders", "queueId": "1", "bornTimestamp": "1700000000000", "flag": "0"} | changes
    fields["properties"] = encode_properties_text({"UNIQ_KEY": "AB", "WAIT": "true"} | (pairs or {}))
    if code != 10:
        fields = {LETTERS.get(name, name): text for name, text in fields.items()}
    return encode_frame(Command(code, opaque, 0, None, fields, body, "JAVA", 401, form))


@pytest.mark.parametrize("code", [10, 310, 320])
@pytest.mark.parametrize("form", [0, 1])
def test_sends_of_all_forms_are_recognised(core, code, form) -> None:
    function = core.read_sends
    data = a_send(code, form)
    position, (send,) = read(function, data)
    assert position == len(data)
    assert (send.opaque, send.queue_id, send.born_timestamp, send.unique_id) == (7, 1, 1700000000000, b"AB")
    assert (send.properties, bytes(send.body)) == (b"UNIQ_KEY\x01AB\x02WAIT\x01true\x02", b"body")
    assert bytes(send.frame) == data == bytes(send.head) + b"body"


@pytest.mark.parametrize("code", [10, 310, 320])
@pytest.mark.parametrize("form", [0, 1])
def test_sends_have_one_kind_if_they_differ_in_the_four_values_only(core, code, form) -> None:
    function = core.read_sends

    def kind(**changes) -> object:
        _, (send,) = read(function, a_send(**{"code": code, "form": form, **changes}))
        return send.kind

    one = kind()
    same = [kind(opaque=-12345), kind(queueId="16"), kind(bornTimestamp="-1"), kind(body=b"other")]
    same += [kind(pairs={"own": "ü"}), kind(pairs={"UNIQ_KEY": "CD", "WAIT": "false"})]
    assert same == [one] * 6
    other = [kind(topic="others"), kind(flag="1"), kind(more="")]
    other += [kind(pairs={name: "1"}) for name in SPECIAL[2:]]
    assert one not in other[:2]
    assert len(set(other)) == len(other) if form == 0 else len(set(other)) >= len(other) - 1


def an_end(form: int = 0, opaque: int = 7, flag: int = 0, body: bytes | None = None, **changes: str) -> bytes:
    fields = {"producerGroup": "g", "tranStateTableOffset": "5", "commitLogOffset": "900", "msgId": "AB"}
    fields |= {"commitOrRollback": "8", "fromTransactionCheck": "false", "transactionId": "CD"}
    return encode_frame(Command(37, opaque, flag, None, {**fields, **changes}, body, "JAVA", 401, form))


@pytest.mark.parametrize("form", [0, 1])
def test_ends_of_transactions_have_one_kind_if_they_differ_in_their_values_only(core, form) -> None:
    data = an_end(form)
    position, (end,) = read(core.read_sends, data)
    assert position == len(data)
    assert isinstance(end, End)
    assert (end.opaque, end.queue_offset, end.position) == (7, 5, 900)
    assert end.decode() == FrameCutter().feed(data)[0]

    def kind(**changes) -> object:
        _, (one,) = read(core.read_sends, an_end(form, **changes))
        return one.kind

    same = [kind(opaque=-12345), kind(tranStateTableOffset="16"), kind(commitLogOffset=str(2**59))]
    same += [kind(msgId="other"), kind(transactionId="other"), kind(body=b"ignored")]
    assert same == [end.kind] * 6
    other = [kind(producerGroup="h"), kind(commitOrRollback="12"), kind(flag=2), kind(more="x")]
    other += [kind(fromTransactionCheck="true")]
    assert end.kind not in other
    assert len(set(other)) == len(other)


def test_a_kind_is_at_most_4_kib(core) -> None:
    function = core.read_sends
    _, (send,) = read(function, a_send(topic="t" * 3500))
    assert isinstance(send, Send)
    _, (frame,) = read(function, a_send(topic="t" * 4097))
    assert not isinstance(frame, Send)


def test_the_newest_kind_is_used_again(native) -> None:
    _, (first,) = read(native.read_sends, a_send())
    _, (second,) = read(native.read_sends, a_send(opaque=8), first.kind)
    _, (third,) = read(native.read_sends, a_send(opaque=8), b"another")
    assert second.kind is first.kind
    assert third.kind == first.kind


def test_both_know_the_same_special_properties() -> None:
    source = (ROOT / "core" / "requests.c").read_text()
    listed = re.search(r"special\[\] = \{(.*?)\};", source, re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r'NAME\("(\w+)"\)', listed[1])) == SPECIAL


@given(frames=st.lists(COMMANDS, max_size=4), sizes=st.lists(st.integers(1, 300), max_size=20))
def test_a_cutter_of_requests_gives_what_the_decoder_does_however_the_bytes_arrive(frames, sizes) -> None:
    data = b"".join(frames)
    cutter, pieces, at = RequestCutter(), [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    seen = [frame for piece in [*pieces, data[at:]] for frame in cutter.feed(piece)]
    commands = [frame.decode() if isinstance(frame, Send | End) else frame for frame in seen]
    wanted = FrameCutter().feed(data)
    for frame, command in zip(seen, wanted, strict=True):
        if isinstance(frame, End):
            command.body = None
    assert [decoded(one) for one in commands] == [decoded(one) for one in wanted]
    assert (cutter.failure, cutter.pending_bytes) == (None, 0)


def test_frames_of_sends_are_their_bytes(native) -> None:
    data = [a_send(opaque=number) for number in range(3)]
    _, together = read(native.read_sends, b"".join(data))
    _, (single,) = read(native.read_sends, data[0])
    assert frames_of(together) == b"".join(data)
    assert frames_of([together[0], together[2]]) == data[0] + data[2]
    assert frames_of([single, together[1]]) == data[0] + data[1]


def test_a_header_of_a_send_that_cannot_be_read_ends_the_stream() -> None:
    cutter = RequestCutter()
    bad = framed(0, b'{"code":310,"opaque":7,"extFields":{"e":"1","g":"7","i":"a"},"version":"x"}', b"body")
    assert len(cutter.feed(a_send() + bad)) == 1
    assert isinstance(cutter.failure, FrameError)
