"""For tests of the store: messages appended as one batch, and the files that appends leave."""

from pathlib import Path

from pocketmq.core.records import Message
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.store import MessageStore, NewMessage
from pocketmq.store.put_values import Placed


def batch_of(store: MessageStore, messages: list[NewMessage]) -> Message:
    """The messages as `append_all` wants a batch: they share what the first has, but flag, body and properties."""
    elements = [BatchElement(message.flag, message.body, message.properties) for message in messages]
    head, queue_id, _, _, *rest = store.packed(messages[0])
    return (head, queue_id, encode_batch(elements), None, *rest)


def append_batch(store: MessageStore, messages: list[NewMessage]) -> Placed:
    return store.append_all([batch_of(store, messages)])


def queue_offsets(placed: Placed) -> list[int]:
    """The number of each record that was stored."""
    return [offset + number for _, offset, count in placed.runs for number in range(count)]


def files_of(directory: Path) -> dict[str, bytes]:
    """Name and content of each file of log, queues and index."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for part in ("commitlog", "consumequeue", "index")
        for path in sorted((directory / part).rglob("*"))
        if path.is_file()
    }
