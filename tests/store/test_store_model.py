"""Random histories of a store, compared with a list in memory: append, stop, crash, cut, flip, flush, delete."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.record import decode_record
from pocketmq.store import MessageStore, NewMessage, PutStatus, VirtualClock
from pocketmq.store.put_values import Placed

from store_batches import append_batch, leave_as_killed, open_small, queue_offsets, records_of

FILE_BYTES = 2048
QUEUES = 3

queue_ids = st.integers(0, QUEUES - 1)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("append"), queue_ids, st.integers(0, 700)),
        st.tuples(st.just("append"), queue_ids, st.integers(0, 50)),
        st.tuples(st.just("batch"), queue_ids, st.integers(1, 5)),
        st.tuples(st.just("several"), st.lists(queue_ids, min_size=1, max_size=6), st.integers(0, 600)),
        st.tuples(st.just("reopen"), st.sampled_from(["clean", "crash", "power loss"])),
        st.tuples(st.just("cut"), st.floats(0, 1)),
        st.tuples(st.just("flip"), st.floats(0, 1), st.integers(0, 10**6)),
        st.tuples(st.just("flush")),
        st.tuples(st.just("delete")),
        st.tuples(st.just("lose"), st.sampled_from(["index", "checkpoint", "consumequeue"])),
    ),
    max_size=40,
)


class Model:
    """The store under test next to what it should hold: records in log order, as (position, size, queue, body)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.clock = VirtualClock()
        self.records: list[tuple[int, int, int, int, bytes | None]] = []
        """The body is None if the record was damaged."""
        self.numbers = [0] * QUEUES
        self.made = 0
        self.store = self.open()

    def open(self) -> MessageStore:
        sizes = {"mapped_file_size_commit_log": FILE_BYTES, "mapped_file_size_consume_queue": 100}
        # Without a CRC a cut inside the properties, which bodyCRC does not cover, is not detected.
        crc = {"enabled_append_prop_crc": True, "force_verify_prop_crc": True}
        return open_small(self.directory, self.clock, max_hash_slot_num=8, max_index_num=10, **sizes, **crc)

    def leave(self, *, clean: bool) -> None:
        self.store.close() if clean else leave_as_killed(self.store)

    def message(self, queue_id: int, size: int) -> NewMessage:
        self.made += 1
        properties = {"KEYS": f"key{self.made}", "TAGS": f"tag{self.made % 3}"}
        body = (b"%d:" % self.made).ljust(size, b".")
        return NewMessage("orders", queue_id, body, encode_properties(properties))

    def append(self, queue_id: int, size: int) -> None:
        message = self.message(queue_id, size)
        result = self.store.append(message)
        assert result.status is PutStatus.PUT_OK
        self.expect([message], [(result.position, result.size, result.queue_offset)])

    def batch(self, queue_id: int, count: int) -> None:
        messages = [self.message(queue_id, 30) for _ in range(count)]
        self.expect_placed(messages, append_batch(self.store, messages))

    def several(self, queues: list[int], size: int) -> None:
        """Messages of several queues in one append; they may need more than one file."""
        messages = [self.message(queue_id, size) for queue_id in queues]
        self.expect_placed(
            messages, self.store.append_all([self.store.pack_message(one) for one in messages])
        )

    def expect_placed(self, messages: list[NewMessage], placed: Placed) -> None:
        assert placed.refusal is None
        self.expect(messages, list(zip(placed.positions, placed.sizes, queue_offsets(placed), strict=True)))

    def expect(self, messages: list[NewMessage], places: list[tuple[int, int, int]]) -> None:
        for message, (position, size, offset) in zip(messages, places, strict=True):
            assert offset == self.numbers[message.queue_id]
            if self.records:
                assert position >= self.records[-1][0] + self.records[-1][1]
            self.numbers[message.queue_id] += 1
            self.records.append((position, size, message.queue_id, offset, bytes(message.body)))
            self.clock.advance(7)

    def reopen(self, how: str) -> None:
        self.leave(clean=how == "clean")
        if how == "power loss":
            (self.directory / "abort").write_text("")
        self.store = self.open()

    def flush(self) -> None:
        self.clock.advance(61_000)
        self.store.flush_pass()
        assert self.store.flushed_position == self.store.log_end

    def delete(self) -> None:
        if self.store.delete_oldest_log_file():
            self.records = [record for record in self.records if record[0] >= self.store.log_start]

    def lose(self, name: str) -> None:
        if name == "consumequeue" and self.store.log_start > 0:
            return  # queues whose messages are all lost cannot recover their offsets
        self.leave(clean=False)
        path = self.directory / name
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        self.store = self.open()

    def cut(self, where: float) -> None:
        self.damage(where, lambda data, at: data[:at].ljust(FILE_BYTES, b"\0"))

    def flip(self, where: float, bit: int) -> None:
        def flipped(data: bytes, at: int) -> bytes:
            changed = bytearray(data)
            changed[at] ^= 1 << bit % 8
            return bytes(changed)

        self.damage(where, flipped)

    def damage(self, where: float, change) -> None:
        """Damage bytes of records in the newest file of the closed store: placeholders take their places."""
        newest = self.store.log.files[-1:]
        in_newest = [record for record in self.records if newest and record[0] >= newest[0].base]
        if not in_newest:
            return
        start, end = in_newest[0][0], in_newest[-1][0] + in_newest[-1][1]
        position = min(start + int(where * (end - start)), end - 1)
        self.leave(clean=False)
        path, base = newest[0].path, newest[0].base
        data = path.read_bytes()
        damaged = change(data, position - base)

        def is_same(begin: int, end: int) -> bool:
            return begin < 0 or data[begin:end] == damaged[begin:end]

        if damaged != data:
            path.write_bytes(damaged)
            self.records = [
                record if is_same(record[0] - base, record[0] + record[1] - base) else (*record[:4], None)
                for record in self.records
            ]
        self.store = self.open()

    def check(self) -> None:
        store = self.store
        for queue_id in range(QUEUES):
            held = [record for record in self.records if record[2] == queue_id]
            maximum = store.max_offset("orders", queue_id)
            assert maximum == self.numbers[queue_id]
            minimum = held[0][3] if held else maximum
            assert store.min_offset("orders", queue_id) == minimum
            found = records_of(store, queue_id=queue_id, count=4)
            assert [record.queue_offset for record in found] == list(range(minimum, maximum))
            for record, (*_, body) in zip(found, held, strict=True):
                assert body is None or record.body == body
        for position, size, _, _, body in self.records[-5:]:
            if body is None:
                continue
            record = store.read_record(position)
            assert record is not None
            assert len(record) == size
            decoded = decode_record(record)
            key = bytes(decoded.properties).split(b"\x01")[1].split(b"\x02")[0].decode()
            hits = store.query("orders", key, 64, 0, 1 << 62).views
            assert body in [bytes(decode_record(view).body) for view in hits]


@settings(max_examples=60, phases=[Phase.explicit, Phase.generate])
@example(
    [("append", 0, 325), ("append", 1, 0), ("batch", 1, 4), ("append", 0, 635), ("delete",), ("append", 1, 0)]
)
@example(
    [("append", 0, 325), ("append", 1, 0), ("batch", 1, 4), ("append", 1, 635), ("delete",), ("cut", 0.0)]
)
@given(operations)
def test_store_equals_the_model_after_any_history(steps: list[tuple]) -> None:
    directory = Path(tempfile.mkdtemp(prefix="pocketmq-model-"))
    try:
        model = Model(directory)
        for name, *arguments in steps:
            getattr(model, name)(*arguments)
            model.check()
        model.reopen("clean")
        model.check()
        model.leave(clean=True)
    finally:
        shutil.rmtree(directory)
