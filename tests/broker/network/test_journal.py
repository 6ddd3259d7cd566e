"""The journal: every request with its answer, in files that survive a kill, without making a broker wait."""

import resource
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.errors import StartError
from pocketmq.broker.network import journal
from pocketmq.broker.network.journal import Journal
from pocketmq.protocol.journal_frames import (
    HEAD,
    Closed,
    Connected,
    Dropped,
    Entry,
    Exchange,
    FrameReader,
    JournalFormatError,
    check_head,
    decode_about,
    decode_entries,
    encode_frame,
    encode_head,
)
from pocketmq.testing import EmbeddedServer, RocketMQ

from frames_client import raw


def entries_of(folder: Path) -> list[Entry]:
    found: list[Entry] = []
    for path in sorted(folder.glob("*.journal")):
        frames = list(FrameReader(path.read_bytes()))
        assert decode_about(frames[0])["brokerName"] == "broker-a"
        found += [entry for frame in frames[1:] for entry in decode_entries(frame)]
    return found


def test_a_send_and_its_answer_stand_in_it(tmp_path: Path) -> None:
    with EmbeddedServer(journal=tmp_path) as server:
        one = RocketMQ(server)
        topic = one.topic("orders", queues=1)
        one.send(topic, "a body")
    entries = entries_of(tmp_path)
    (sent,) = [one for one in entries if isinstance(one, Exchange) and one.code == 310]
    assert sent.fields is not None
    assert (sent.fields["b"], sent.body_bytes, sent.body_crc) == (topic, 6, zlib.crc32(b"a body"))
    assert (sent.reply_code, sent.reply_fields and sent.reply_fields["queueOffset"]) == (0, "0")
    assert 0 < sent.received_ns <= sent.answered_ns
    connected = {one.connection: one for one in entries if isinstance(one, Connected)}
    assert connected[sent.connection].server == "broker"
    assert {one.connection for one in entries if isinstance(one, Closed)} == connected.keys()


def test_sends_whose_header_repeats_are_recorded_like_the_first(tmp_path: Path) -> None:
    """They are not decoded: the reader does it."""
    with EmbeddedServer(journal=tmp_path) as server, raw(server.broker_addr) as client:
        topic = RocketMQ(server).topic("orders", queues=1)
        fields = {"a": "g", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1_700_000_000_000, "h": 0}
        fields |= {"j": 0, "k": "false", "m": "false"}
        client.send(34, body=b'{"clientID": "c1"}')
        client.receive()
        for number in range(10):
            properties = f"UNIQ_KEY\x01C0000202796B7ED92C9068B1{number:08}\x02WAIT\x01true\x02"
            client.send(310, number, body=b"body %d" % number, i=properties, **fields)
        assert [client.receive().code for _ in range(10)] == [0] * 10
    sent = [one for one in entries_of(tmp_path) if isinstance(one, Exchange) and one.code == 310]
    assert [(one.opaque, one.body_bytes, one.body_crc) for one in sent] == [
        (number, 6, zlib.crc32(b"body %d" % number)) for number in range(10)
    ]
    assert [one.reply_fields and one.reply_fields["queueOffset"] for one in sent] == list("0123456789")
    assert {one.client_id for one in sent} == {"c1"}
    assert all(set(one.fields or {}) == {*fields, "i"} for one in sent)
    assert all(0 < one.received_ns <= one.answered_ns for one in sent)
    assert not any(b"body 7" in path.read_bytes() for path in tmp_path.glob("*.journal"))


def test_what_is_never_answered_is_said_to_be_so(tmp_path: Path) -> None:
    """A pull that waits when the connection ends."""
    import socket

    from pocketmq.protocol.wire.command import Command
    from pocketmq.protocol.wire.frame import encode_frame as frame_of

    with EmbeddedServer(journal=tmp_path) as server:
        topic = RocketMQ(server).topic("empty", queues=1)
        pull = {"consumerGroup": "g", "topic": topic, "queueId": "0", "queueOffset": "0", "maxMsgNums": "1"}
        pull |= {"sysFlag": "6", "commitOffset": "0", "suspendTimeoutMillis": "60000", "subVersion": "0"}
        host, _, port = server.broker_addr.partition(":")
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall(frame_of(Command(11, 7, fields={**pull, "subscription": "*"})))
            peer.sendall(frame_of(Command(9999, 8)))
            assert peer.recv(4096), "the second request is answered, so the first one was read"
    asked = {one.code: one for one in entries_of(tmp_path) if isinstance(one, Exchange)}
    assert asked[9999].reply_code == 3
    assert asked[11].opaque == 7


class BlockedJournal(Journal):
    """Its thread waits until it may write."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.may_write = threading.Event()

    def _write(self) -> None:
        self.may_write.wait()
        super()._write()


def test_what_the_writer_cannot_follow_is_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.broker.network.journal.FRAME_ENTRIES", 10)
    journal = BlockedJournal(tmp_path, {"brokerName": "broker-a"})
    journal.start()
    for number in range(25):
        journal.add((2, number, number))
    journal.may_write.set()
    journal.stop()
    entries = entries_of(tmp_path)
    assert [one.connection for one in entries if isinstance(one, Closed)] == list(range(10))
    assert [one.count for one in entries if isinstance(one, Dropped)] == [15]


def test_what_cannot_be_packed_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    """JSON can spell half a surrogate pair, and a client may send one."""
    journal = Journal(tmp_path, {"brokerName": "broker-a"})
    journal.start()
    for name in ("first", "half \ud800", "last"):
        journal.add((1, 1, 1, "broker", name))
    journal.stop()
    entries = entries_of(tmp_path)
    assert [one.peer for one in entries if isinstance(one, Connected)] == ["first", "last"]
    assert [one.count for one in entries if isinstance(one, Dropped)] == [1]


def test_files_roll_and_every_one_can_be_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.broker.network.journal.FILE_BYTES", 1)
    journal = Journal(tmp_path, {"brokerName": "broker-a"})
    journal.start()
    for number in range(5):
        journal.add((2, number, number))
        journal._write()
    journal.stop()
    assert len(list(tmp_path.glob("*.journal"))) >= 5
    assert [one.connection for one in entries_of(tmp_path) if isinstance(one, Closed)] == list(range(5))


def test_the_newest_files_of_all_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "FILES", 3)
    for name in ("5-000000", "10-000000", "10-000001", "x-000000"):
        (tmp_path / f"{name}.journal").write_bytes(b"of another run")
    (tmp_path / "1-000000.txt").write_bytes(b"of another program")
    other = Journal(tmp_path, {"brokerName": "broker-b"})
    other._started_ms = 7
    other.start()
    ours = Journal(tmp_path, {"brokerName": "broker-a"})
    ours.start()
    kept = {path.name.partition("-")[0] for path in tmp_path.iterdir()}
    assert kept == {"1", "x", "7", "10", str(ours._started_ms)}  # 7 is the oldest, but it is being written
    other.stop()
    ours._roll()
    assert not (tmp_path / "7-000000.journal").exists()
    assert len(list(tmp_path.glob("[0-9]*.journal"))) == 3
    ours.stop()


def test_a_folder_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match=r"cannot write a journal to .*file"):
        Journal(tmp_path / "file", {}).start()


class UnattendedJournal(Journal):
    """Written by the test, not by a thread."""

    def _run(self) -> None:
        pass


@contextmanager
def full_disk(file_bytes: int) -> Iterator[None]:
    """Files of this process grow to so many bytes and no further: a write stops half way, the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("file_bytes", [1, 1 << 20], ids=["rolling", "appending"])
def test_a_disk_that_was_full_costs_what_came_meanwhile_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, file_bytes: int
) -> None:
    monkeypatch.setattr("pocketmq.broker.network.journal.FILE_BYTES", file_bytes)
    journal = UnattendedJournal(tmp_path, {"brokerName": "broker-a"})
    journal.start()
    journal.add((2, 1, 1))
    journal._write()
    size = max(path.stat().st_size for path in tmp_path.iterdir())
    with full_disk(size + 5 if file_bytes > 1 else 20):
        for number in (2, 3, 4):
            journal.add((2, number, number))
            journal._write()
    journal.add((2, 5, 5))
    journal._write()
    journal.stop()
    entries = entries_of(tmp_path)
    assert [one.connection for one in entries if isinstance(one, Closed)] == [1, 5]
    assert [one.count for one in entries if isinstance(one, Dropped)] == [3]
    assert journal.dropped_in_all == 3
    said = [record.getMessage() for record in caplog.records]
    assert len([text for text in said if "cannot be written" in text]) == 1
    assert "dropped 3 entries, 3 since the start" in said[-1]


WHOLE = encode_head({"brokerName": "b"}) + encode_frame([[2, 1, 1]]) + encode_frame([[2, 2, 2], [99, "new"]])


@given(st.integers(0, len(WHOLE)))
def test_a_torn_tail_takes_nothing_but_itself(length: int) -> None:
    """Nor does a file that a kill left empty."""
    reader = FrameReader(WHOLE[:length])
    payloads = list(reader)
    entries = [one for payload in payloads[1:] for one in decode_entries(payload)]
    assert entries == [Closed(1, 1), Closed(2, 2)][: max(0, len(payloads) - 1)]
    ends = (
        len(encode_head({"brokerName": "b"})),
        len(WHOLE) - len(encode_frame([[2, 2, 2], [99, "new"]])),
        len(WHOLE),
    )
    assert (reader.torn_at is None) == (length in (len(HEAD), *ends))


@given(st.integers(len(HEAD), len(WHOLE) - 1), st.integers(1, 255))
def test_a_changed_byte_ends_the_reading_there(place: int, change: int) -> None:
    raw = bytearray(WHOLE)
    raw[place] ^= change
    reader = FrameReader(bytes(raw))
    assert len(list(reader)) < 3
    assert reader.torn_at is not None


@pytest.mark.parametrize("head", [b"", b"PMQJRNL\x02", b"NOTHING\x01", b"PMQ"])
def test_another_file_or_a_newer_form_is_refused(head: bytes) -> None:
    with pytest.raises(JournalFormatError, match=r"not a journal|version 2"):
        check_head(head)
