"""The functions in C do what those in Python do, byte for byte. Both are called here, whichever the store uses."""

import importlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.record import Record, encode_record
from pocketmq.store.accelerated import (
    batch_records,
    element_records,
    gathered_records,
    id_hashes,
    index_units,
    plain_records,
)
from pocketmq.store.accelerated.choice import SWITCH, in_python, is_native

MODULES = (batch_records, element_records, gathered_records, plain_records, id_hashes, index_units)
REFUSALS = (struct.error, ValueError, IndexError, OverflowError)
IDS = st.text("0123456789ABCDEFabcdef", min_size=32, max_size=32).map(str.encode)


def test_they_are_built_where_there_is_a_compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    assert is_native or os.environ.get(SWITCH) == "off"


def test_the_store_works_without_them() -> None:
    program = "from pocketmq.store.accelerated.choice import is_native; print(is_native)"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, SWITCH: "off"}, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"False"


def test_functions_in_c_that_other_sources_made_are_not_used(in_c) -> None:
    """An editable installation keeps the old ones after a pull; they may take other arguments."""
    program = (
        "import importlib; from pocketmq.store.accelerated import choice, native; native.FORMAT += 1\n"
        "print(importlib.reload(choice).is_native)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
    assert b"install again" in done.stderr


@pytest.fixture(scope="module")
def in_c() -> Callable[[str], Callable[..., Any]]:
    try:
        native = importlib.import_module("pocketmq.store.accelerated.native")
    except ImportError:
        pytest.skip("not built")
    return lambda name: getattr(native, name)


def test_each_has_a_twin_in_python(in_c) -> None:
    native = importlib.import_module("pocketmq.store.accelerated.native")
    functions = {name for name in dir(native) if not name.startswith("_")} - {"FORMAT"}
    assert (
        functions
        == set(in_python)
        == {"add_units", "gather_records", "hash_ids", "pack_batch", "pack_elements", "scan_plain"}
    )


@given(
    messages=st.lists(st.tuples(st.binary(max_size=70), IDS), max_size=6),
    at=st.integers(0, 20),
    pieces=st.tuples(st.binary(max_size=40), st.binary(max_size=9)),
    numbers=st.tuples(st.integers(0, 2**63 - 10_000), st.integers(0, 2**63 - 10)),
    head=st.binary(min_size=60, max_size=60),
)
def test_a_batch_is_packed_alike(in_c, messages, at, pieces, numbers, head) -> None:
    bodies, ids = [body for body, _ in messages], tuple(unique_id for _, unique_id in messages)
    wanted = at + sum(len(body) + 88 + 32 + sum(map(len, pieces)) for body in bodies)
    maps = bytearray(wanted), bytearray(wanted)
    arguments = (at, *numbers, head[:4], head[4:12], head[12:], *pieces, bodies, ids)
    sizes = in_python["pack_batch"](maps[0], *arguments)
    assert in_c("pack_batch")(maps[1], *arguments) == sizes
    assert maps[0] == maps[1]
    assert sum(sizes) == wanted - at


@pytest.mark.parametrize(
    "change",
    [
        {"memory": bytearray(120)},
        {"memory": bytes(1000)},
        {"at": -1},
        {"at": 10_000},
        {"ids": [b"short"]},
        {"ids": []},
        {"bodies": [7]},
        {"bodies": 7},
        {"middle": b""},
        {"queue_offset": 2**63},
    ],
    ids=str,
)
def test_a_batch_that_does_not_fit_is_refused_before_a_byte_is_written(in_c, change) -> None:
    values = {
        "memory": bytearray(1000),
        "at": 0,
        "position": 0,
        "queue_offset": 0,
        "magic": bytes(4),
        "queue_and_flag": bytes(8),
        "middle": bytes(48),
        "up_to_id": b"",
        "behind_id": b"",
        "bodies": [b"x"],
        "ids": [b"1" * 32],
    } | change
    with pytest.raises((*REFUSALS, TypeError, BufferError)):
        in_c("pack_batch")(*values.values())
    assert not any(values["memory"])


VALUES = st.one_of(
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=4),
    st.sampled_from(
        [b"", b" ", b"a b", b" a  b ", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]
    ),
)
PAIRS = st.tuples(st.sampled_from([b"KEYS", b"TAGS", b"UNIQ_KEY", b"KEY", b"", b"WAIT"]), VALUES).map(
    b"\x01".join
)
TEXTS = st.builds(
    lambda pairs, end: b"\x02".join(pairs) + end,
    st.lists(PAIRS | VALUES, max_size=5),
    st.sampled_from([b"", b"\x02", b"\x01"]),
)
ELEMENTS = st.builds(BatchElement, st.integers(-(2**31), 2**31 - 1), st.binary(max_size=40), TEXTS)
STARTS = st.integers(-1, 2**32 - 1)


@given(
    elements=st.lists(ELEMENTS, max_size=5),
    damage=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=1),
    tail=st.binary(max_size=3),
    at=st.integers(0, 20),
    room=st.sampled_from([4096, 4096, 700, 130]),
    numbers=st.tuples(st.integers(0, 2**63 - 10_000), st.integers(0, 2**63 - 10)),
    head=st.binary(min_size=56, max_size=56),
    topic=st.binary(max_size=9),
    most=st.sampled_from([40, 20]),
    starts=st.tuples(STARTS, STARTS),
)
def test_elements_are_packed_alike(
    in_c, elements, damage, tail, at, room, numbers, head, topic, most, starts
) -> None:
    data = bytearray(encode_batch(elements))
    for byte, value in damage:
        if byte < len(data):
            data[byte] = value
    maps = bytearray(room + 30), bytearray(room + 30)
    arguments = (
        *(at, at + room, *numbers, head[:4], head[4:8], head[8:]),
        *(topic, bytes(data) + tail, most, *starts),
    )
    packed = in_python["pack_elements"](maps[0], *arguments)
    assert in_c("pack_elements")(maps[1], *arguments) == packed
    assert maps[0] == maps[1]
    if packed is None:
        assert not any(maps[0])
    else:
        assert sum(packed[1]) <= room
        assert len(packed[2]) == 20 * len(packed[0])


@pytest.mark.parametrize(
    "change",
    [
        {"memory": bytes(1000)},
        {"at": -1},
        {"at": 700},
        {"end": 1001},
        {"end": 2**62},
        {"magic": b""},
        {"queue_id": b"12345"},
        {"middle": b""},
        {"topic": 7},
        {"elements": None},
        {"position": 2**63},
        {"keys_start": 2**64},
    ],
    ids=str,
)
def test_elements_that_do_not_fit_are_refused_before_a_byte_is_written(in_c, change) -> None:
    values = {
        "memory": bytearray(1000),
        "at": 0,
        "end": 600,
        "position": 0,
        "queue_offset": 0,
        "magic": bytes(4),
        "queue_id": bytes(4),
        "middle": bytes(48),
        "topic": b"\1t",
        "elements": encode_batch([BatchElement(1, b"x", b"KEYS\x01a\x02")]),
        "most_body_bytes": 10,
        "keys_start": 0,
        "tags_start": 0,
    }
    packed = in_c("pack_elements")(*values.values())
    assert packed == ([0], [88 + 1 + 2 + 2 + 7], struct.pack(">qiq", 0, 100, 0), [97], [0])
    values |= {"memory": bytearray(1000)} | change
    with pytest.raises((*REFUSALS, TypeError, BufferError)):
        in_c("pack_elements")(*values.values())
    assert not any(values["memory"])


@given(
    slots=st.integers(1, 7),
    first=st.integers(1, 5),
    hashes=st.lists(st.integers(0, 0x7FFFFFFF), max_size=24),
    old=st.binary(min_size=28, max_size=28),
    near=st.lists(st.integers(-2, 16), min_size=7, max_size=7),
    seconds=st.integers(0, 0x7FFFFFFF),
)
def test_units_of_keys_are_chained_alike(in_c, slots, first, hashes, old, near, seconds) -> None:
    units_at = 40 + 4 * slots
    for slot_bytes in (old, struct.pack(">7i", *near)):
        memory = bytearray(units_at + 20 * (first + len(hashes)))
        memory[40:units_at] = slot_bytes[: 4 * slots]
        maps = memory, bytearray(memory)
        arguments = slots, units_at, first, hashes, [2**40 + number for number in range(len(hashes))], seconds
        assert in_python["add_units"](maps[0], *arguments) == in_c("add_units")(maps[1], *arguments)
        assert maps[0] == maps[1]


@pytest.mark.parametrize(
    "arguments",
    [
        (0, 48, 1, [1], [1], 0),
        (2, 48, 0, [1], [1], 0),
        (2, 48, 1, [1], [1, 2], 0),
        (2, 48, 9, [1], [1], 0),
        (2, 20, 1, [1], [1], 0),
        (2, 48, 1, [-1], [1], 0),
        (2, 48, 1, [2**31], [1], 0),
        (2, 48, 1, [1], [2**64], 0),
        (2**62, 48, 1, [1], [1], 0),
        (2, 2**62, 1, [1], [1], 0),
    ],
)
def test_units_that_do_not_fit_are_refused(in_c, arguments) -> None:
    memory = bytearray(48 + 40)
    with pytest.raises(REFUSALS):
        in_c("add_units")(memory, *arguments)
    assert not any(memory)


@given(start=st.integers(0, 2**32 - 1), ids=st.lists(st.one_of(IDS, st.binary(max_size=40)), max_size=4))
def test_ids_have_the_same_hashes(in_c, start, ids) -> None:
    def answer(function: Callable[..., Any]) -> object:
        try:
            return function(start, ids)
        except ValueError as error:
            return str(error)

    assert answer(in_python["hash_ids"]) == answer(in_c("hash_ids"))


def test_the_smallest_int_of_java_has_the_hash_0(in_c) -> None:
    power, all_zero = pow(31, 32, 2**32), in_python["hash_ids"](0, [b"0" * 32])[0]
    signed = in_python["hash_ids"](1, [b"0" * 32])[0]
    assert signed != all_zero
    of_zeros = 0
    for _ in range(32):
        of_zeros = (31 * of_zeros + 48) % 2**32
    start = (2**31 - of_zeros) * pow(power, -1, 2**32) % 2**32
    assert in_c("hash_ids")(start, [b"0" * 32]) == in_python["hash_ids"](start, [b"0" * 32]) == [0]


RECORDS = st.builds(
    Record,
    topic=st.sampled_from(["a", "orders", "%RETRY%x", "t" * 127, "t" * 200]),
    queue_id=st.integers(-5, 2**31 - 1),
    queue_offset=st.integers(-5, 2**63 - 1),
    position=st.just(0),
    body=st.binary(max_size=40),
    properties=st.binary(max_size=30),
    sys_flag=st.sampled_from([0, 1, 4, 8, -256]),
    store_timestamp=st.integers(-1, 2**62),
    born_host=st.sampled_from([bytes(8), bytes(20)]),
)


@given(
    records=st.lists(RECORDS, max_size=5),
    damage=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=2),
    cut=st.integers(0, 5),
    check_crc=st.booleans(),
    most=st.integers(0, 6),
)
def test_records_are_found_alike(in_c, records, damage, cut, check_crc, most) -> None:
    log = bytearray(b"".join(map(encode_record, records)))
    for at, value in damage:
        if at < len(log):
            log[at] = value
    view = memoryview(log)
    end = len(log) - cut
    found = in_python["scan_plain"](view, 0, end, check_crc, most)
    assert in_c("scan_plain")(view, 0, end, check_crc, most) == found
    if not damage and not cut and check_crc and most > len(records):
        common = [record for record in records if record.born_host == bytes(8) and len(record.topic) < 128]
        assert len(found) == len(records) or len(common) < len(records)


@given(data=st.binary(max_size=400), at=st.integers(-5, 500), end=st.integers(-5, 500))
def test_no_bytes_make_the_scan_fail(in_c, data, at, end) -> None:
    view = memoryview(b"\0\0\0\x5c\xda\xa3\x20\xa7" + data)
    for start in (0, at):
        in_c("scan_plain")(view, start, end, True, 9)


UNITS = st.lists(
    st.tuples(
        st.integers(900, 1200) | st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 90) | st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63), 2**63 - 1),
    ),
    max_size=5,
)


@given(
    units=UNITS,
    log=st.binary(min_size=200, max_size=300),
    base=st.just(950) | st.integers(-(2**63), 2**63 - 1),
)
def test_records_are_gathered_alike_or_refused_by_both(in_c, units, log, base) -> None:
    packed = memoryview(b"".join(struct.pack(">qiq", *unit) for unit in units))
    outcomes = []
    for function in (in_python["gather_records"], in_c("gather_records")):
        try:
            outcomes.append(function(packed, memoryview(log), base))
        except ValueError:
            outcomes.append(None)
    assert outcomes[0] == outcomes[1]
    if all(0 <= at - base <= at - base + size <= len(log) for at, size, _ in units):
        assert outcomes[0] == b"".join(log[at - base : at - base + size] for at, size, _ in units)


@pytest.mark.parametrize("function", ["in_python", "in_c"])
def test_half_a_unit_is_refused(in_c, function) -> None:
    gather = in_python["gather_records"] if function == "in_python" else in_c("gather_records")
    with pytest.raises(REFUSALS):
        gather(memoryview(bytes(30)), memoryview(b"log"), 0)
