"""Damage in the middle of the log, by a disk that changed a byte: what is behind it and sound stays.

The numbers of all later messages stay, too; each lost one is a placeholder. What a power loss may tear is in
`test_power_loss.py`.
"""

import random
import shutil
from pathlib import Path

import pytest
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import BLANK, decode_record, measure_record
from pocketmq.store.at_rest.check import check_store
from pocketmq.store.durability.damage import DAMAGED_TAG

from store_batches import append_batch, leave_as_killed, new_message, put, records_of

COUNT = 60
QUEUES = 3


def fill(store, count=COUNT, size=300):
    """Bodies begin with their number."""
    return [
        put(store, queue_id=number % QUEUES, body=(b"%05d" % number).ljust(size, b"."), KEYS=f"k{number}")
        for number in range(count)
    ]


def flip(root: Path, position: int, count: int = 1, *, file_bytes: int = 4096) -> None:
    path = root / "commitlog" / f"{position // file_bytes * file_bytes:020d}"
    data = bytearray(path.read_bytes())
    for at in range(position % file_bytes, position % file_bytes + count):
        data[at] ^= 0x20
    path.write_bytes(data)


def read(store) -> dict[tuple[int, int], bytes]:
    """(queue id, queue offset) -> the first 5 bytes of the body, or the tag of a placeholder."""
    found = {}
    for queue_id in range(QUEUES):
        for record in records_of(store, queue_id=queue_id):
            tag = decode_properties(bytes(record.properties)).get("TAGS", "")
            found[queue_id, record.queue_offset] = tag.encode() or bytes(record.body[:5])
    return found


def expected(*lost: int, count: int = COUNT) -> dict[tuple[int, int], bytes]:
    return {
        (number % QUEUES, number // QUEUES): DAMAGED_TAG.encode() if number in lost else b"%05d" % number
        for number in range(count)
    }


@pytest.mark.parametrize("at", [0, 5, 9, 85, 90, 200], ids=["size", "magic", "crc", "length", "body", "end"])
@pytest.mark.parametrize(
    ("stop", "number"),
    [("killed", 0), ("killed", 31), ("killed", COUNT - 1), ("clean", COUNT - 3), ("clean", COUNT - 1)],
)
def test_only_the_damaged_message_is_lost(open_store, root, stop, at, number):
    """After a clean stop a start reads the newest file."""
    store = open_store()
    results = fill(store)
    store.close() if stop == "clean" else leave_as_killed(store)
    flip(root, results[number].position + at)
    store = open_store()
    assert read(store) == expected(number)
    assert put(store, queue_id=number % QUEUES).queue_offset == COUNT // QUEUES
    lost = root / "lost" / f"{results[number].position:020d}"
    assert lost.stat().st_size >= results[number].size
    store.close()
    assert not check_store(root).damaged
    again = open_store()
    assert read(again).items() >= expected(number).items()
    assert again.recovery_report.placeholders == 0


def test_damage_over_several_messages_and_files(open_store, root):
    store = open_store()
    results = fill(store)
    leave_as_killed(store)
    flip(root, results[11].position + 2, results[14].position - results[11].position)
    flip(root, results[40].position + 2, 700)
    store = open_store()
    assert read(store) == expected(11, 12, 13, 14, 40, 41)
    assert store.recovery_report.placeholders == 6


def test_damaged_filler_and_the_head_of_a_file(open_store, root):
    store = open_store()
    results = fill(store)
    leave_as_killed(store)
    of_second = next(n for n, result in enumerate(results) if result.position == 4096)
    last = results[of_second - 1]
    flip(root, last.position + last.size + 5)
    flip(root, 4096 + 5)
    store = open_store()
    assert read(store) == expected(of_second)
    record = decode_record(store.log.files[1].view)
    assert record.store_timestamp == 0, "official brokers do not begin a recovery at a file that says 0"


def test_queues_can_be_made_again_from_a_log_with_placeholders(open_store, root):
    """The numbers of later messages are those of before."""
    store = open_store()
    results = fill(store)
    leave_as_killed(store)
    flip(root, results[20].position + 4, 300)
    open_store().close()
    shutil.rmtree(root / "consumequeue")
    assert read(open_store()) == expected(20)


def test_without_queues_a_place_with_an_unknown_message_is_in_no_queue(open_store, clock, root):
    """The checkpoint says that there were messages behind it."""
    store = open_store()
    results = fill(store)
    clock.advance(61_000)
    store.flush_pass()
    leave_as_killed(store)
    flip(root, results[20].position + 4, 300)
    shutil.rmtree(root / "consumequeue")
    store = open_store()
    assert sorted(read(store).values()) == [b"%05d" % number for number in range(COUNT) if number != 20]


def test_after_a_clean_stop_the_checkpoint_is_no_witness_of_damage(open_store, clock, root):
    """An official broker may have stopped last; its mark is not behind what it forced."""
    store = open_store()
    results = fill(store)
    clock.advance(61_000)
    store.flush_pass()
    store.close()
    flip(root, results[20].position + 4, 300)
    shutil.rmtree(root / "consumequeue")
    store = open_store()
    assert store.recovery_report.placeholders == 0
    assert store.log_end == results[20].position
    assert (root / "lost" / f"{results[20].position:020d}").exists()


def test_without_queues_the_heads_name_the_messages_whose_bodies_are_damaged(open_store, clock, root):
    """Two in a row: neither is taken for the end of the other, and what is behind the second stays."""
    store = open_store()
    results = fill(store)
    clock.advance(61_000)
    store.flush_pass()
    leave_as_killed(store)
    for number in (20, 21):
        flip(root, results[number].position + 90)
    shutil.rmtree(root / "consumequeue")
    assert read(open_store()) == expected(20, 21)


def test_placeholders_have_the_crc_that_a_strict_start_asks_for(open_store, root):
    strict = {"enabled_append_prop_crc": True, "force_verify_prop_crc": True}
    store = open_store(**strict)
    results = fill(store)
    leave_as_killed(store)
    flip(root, results[20].position + results[20].size - 30)  # in the properties
    flip(root, results[25].position + 5)
    flip(root, results[30].position + 27)  # its queue offset: the queue knows it
    store = open_store(**strict)
    assert read(store) == expected(20, 25, 30)
    leave_as_killed(store)
    store = open_store(**strict)
    assert store.recovery_report.placeholders == 0
    assert read(store) == expected(20, 25, 30)


def test_bytes_of_a_body_are_not_taken_for_a_record(open_store, root):
    """A body that holds a record with the position where it lies."""
    store = open_store()
    first = put(store, body=b"x")
    record = bytes(store.read_record(first.position))
    begin = first.position + first.size
    inner_at = begin + 88
    inner = record[:28] + inner_at.to_bytes(8, "big") + record[36:]
    outer = put(store, body=inner)
    assert (outer.position, measure_record(store.log.files[0].view, inner_at, 4096)) == (begin, len(inner))
    put(store, body=b"y")
    leave_as_killed(store)
    flip(root, outer.position + 5)
    store = open_store()
    assert [bytes(record.body[:1]) for record in records_of(store)] == [b"x", b"\0", b"y"]


def test_sound_records_that_no_mark_covers_are_cut_and_kept(open_store, root):
    """After a power loss: nobody knows whether the place was ever written."""
    store = open_store()
    results = fill(store)
    leave_as_killed(store)
    (root / "abort").write_text("4711")
    flip(root, results[31].position + 90)
    store = open_store()
    assert store.log_end == results[31].position
    kept = sorted((root / "lost").iterdir())
    assert kept[0].name == f"{results[31].position:020d}"
    position = (results[31].position // 4096 + 1) * 4096
    assert [path.name for path in kept[1:]] == [
        f"{at:020d}" for at in range(position, results[-1].position, 4096)
    ]
    assert measure_record(memoryview(kept[1].read_bytes()), 0, 4096) > 0


def test_torn_end_leaves_nothing_behind(open_store, root):
    store = open_store()
    results = fill(store)
    leave_as_killed(store)
    (root / "abort").write_text("4711")
    flip(root, results[-1].position + 90)
    store = open_store()
    assert store.log_end == results[-1].position
    assert not (root / "lost").exists()


def test_batch_that_a_kill_interrupted_is_cut(open_store, root):
    """Its first length is written last, so sound records may lie behind a place that is empty."""
    store = open_store()
    put(store)
    end = store.log_end
    placed = append_batch(store, [new_message(body=b"%d" % number) for number in range(3)])
    file = store.log.files[0]
    file.map[end : end + 8] = bytes(8)
    queue = store.consume_queue("orders", 0)
    queue.files[0].map[20:80] = bytes(60)
    leave_as_killed(store)
    store = open_store()
    assert (store.log_end, store.max_offset("orders", 0)) == (end, 1)
    assert placed.positions[0] == end


@pytest.mark.parametrize("seed", range(12))
def test_any_damage_leaves_the_sound_messages_at_their_offsets(open_store, root, seed):
    chance = random.Random(seed)
    store = open_store()
    sizes = [chance.choice((1, 20, 300, 900)) for _ in range(40)]
    results = [
        put(store, queue_id=0, body=(b"%05d" % n).ljust(size + 5, b".")) for n, size in enumerate(sizes)
    ]
    leave_as_killed(store)
    hit = set()
    for _ in range(chance.randrange(1, 4)):
        begin = chance.randrange(results[-1].position + results[-1].size)
        count = chance.choice((1, 4, 512))
        for at in range(begin, begin + count):
            if at // 4096 == begin // 4096:
                flip(root, at) if at // 4096 * 4096 <= results[-1].position else None
        hit |= {
            n
            for n, one in enumerate(results)
            if one.position < begin + count and begin < one.position + one.size
        }
    store = open_store()
    found = {record.queue_offset: bytes(record.body[:5]) for record in records_of(store)}
    assert store.max_offset("orders", 0) == 40
    assert {n: body for n, body in found.items() if n not in hit} == {
        n: b"%05d" % n for n in range(40) if n not in hit
    }
    view = store.log.files[0].view
    assert decode_record(view).position == 0
    at = 0
    while (size := measure_record(view, at, 4096)) > 0:
        at += size
    assert size == BLANK
