"""Unique ids: their parts, the counter that wraps, the guessed month."""

from datetime import datetime

import pytest
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.unique_id import UniqueIdMaker, decode_unique_id, month_around

MOMENT_MS = int(datetime(2024, 5, 17, 12, 30).timestamp() * 1000)


def test_id_carries_address_process_time_and_counter():
    maker = UniqueIdMaker(bytes((127, 0, 0, 1)), 70000, 0x18B4AAC2, lambda: MOMENT_MS)
    first, second = maker.next(), maker.next()
    assert len(first) == 32
    assert first.startswith("7F000001" + f"{70000 & 0xFFFF:04X}" + "18B4AAC2")
    decoded = decode_unique_id(second, MOMENT_MS + 5)
    assert (decoded.ip, decoded.counter) == (bytes((127, 0, 0, 1)), 1)
    assert decoded.created_ms == MOMENT_MS
    assert decoded.process_id == 70000 & 0xFFFF


def test_counter_wraps_after_two_bytes():
    maker = UniqueIdMaker(bytes(16), 1, 1, lambda: MOMENT_MS)
    ids = [maker.next() for _ in range(65537)]
    assert len(ids[0]) == 56
    assert ids[0] == ids[65536]
    assert len(set(ids)) == 65536


def test_id_of_last_month_is_read_back_as_last_month():
    start_ms, _ = month_around(MOMENT_MS)
    born_ms = start_ms - 3_600_000
    text = UniqueIdMaker(bytes(4), 1, 1, lambda: born_ms).next()
    assert decode_unique_id(text, start_ms + 60_000).created_ms == born_ms


def test_clock_passing_the_end_of_the_month_starts_a_new_count():
    moment = [MOMENT_MS]
    maker = UniqueIdMaker(bytes(4), 1, 1, lambda: moment[0])
    maker.next()
    _, end_ms = month_around(MOMENT_MS)
    moment[0] = end_ms + 7
    assert decode_unique_id(maker.next(), end_ms + 8).created_ms == end_ms + 7


@pytest.mark.parametrize("text", ["", "7F00", "G" * 32, " 7" * 16])
def test_other_text_is_refused(text: str):
    with pytest.raises(BodyError):
        decode_unique_id(text, MOMENT_MS)
