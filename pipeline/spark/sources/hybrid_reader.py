"""One range of a queue, from the broker's files as far as they reach, the rest from the broker: option `storePath`.

    [lo ................................ | ....... hi)
     units of the consume queue, dispatched  the tail, pulled

Reading files costs the broker nothing and is several times as fast. Nothing is trusted because it is in a file: the
records must be those of the queue, one for each offset, without a gap. Where they are not, for example because a log
file was deleted meanwhile, the broker is asked from there on. The first message is compared with the broker's own, so
that the path of another broker's store is an error and not another broker's messages.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...errors import CorruptStoreError, DataLossError, OptionError, PathError
from ...tables.brokers.broker_client import shared_client
from ...tables.brokers.range_reader import RangeReader
from ...tables.files.consume_queues import QueueSplit, UnitFiles
from ...tables.files.log_files import LogFile, log_files
from ...tables.files.scan import ScanOptions, scan_queue
from ...tables.planning.ranges import Range
from ...tables.planning.topic_options import SourceOptions, tags_of
from ...tables.records.records import Records

_log = logging.getLogger("pocketmq.pipeline")


def records_of(part: Range, options: SourceOptions) -> Iterator[Records]:
    """The records of a range, in the order of the queue."""
    lo = part.lo
    store = options.stores.get(part.queue.broker_name, options.stores.get(""))
    if store is not None:
        for records, after in _from_files(part, Path(store), options):
            lo = after
            if len(records):
                yield records
    if lo < part.hi:
        rest = Range(part.queue, lo, part.hi)
        yield from RangeReader(shared_client(options.namesrv_addr, options.access), rest, options).batches()


def _from_files(part: Range, store: Path, options: SourceOptions) -> Iterator[tuple[Records, int]]:
    """(records, the offset after them), as long as the files have what the queue should have."""
    split, files = _readable(part, store)
    if split is None:
        return
    scan = ScanOptions(
        decompresses=options.decompresses, decode_rows=options.decode_rows, broker_name=part.queue.broker_name
    )
    tags = tags_of(options.expression)
    offset, is_checked = part.lo, False
    try:
        for found in scan_queue(split, files, scan):
            records = found.records
            if records is None or not _are_of_queue(records, part, offset):
                break
            if not is_checked and not _is_in_broker(records, part, store, options):
                break
            is_checked = True
            offset += len(records)
            yield (records.only(records.has_tag(tags)) if tags else records), offset
    except (CorruptStoreError, FileNotFoundError) as error:
        _log.warning("%s is read from the broker from offset %d on: %s", part.queue, offset, error)


def _readable(part: Range, store: Path) -> tuple[QueueSplit | None, list[LogFile]]:
    """The units of the range that files have, from its first message on; None if they do not have that one."""
    try:
        files = log_files(store / "commitlog")
    except PathError as error:
        raise error.named("option storePath") from error
    queue = part.queue
    folder = store / "consumequeue" / queue.topic / str(queue.queue_id)
    if not folder.is_dir():
        return None, files
    first, end = UnitFiles(str(folder)).bounds()
    if not first <= part.lo < end:
        return None, files
    return QueueSplit(queue.topic, queue.queue_id, str(folder), part.lo, min(part.hi, end)), files


def _are_of_queue(records: Records, part: Range, offset: int) -> bool:
    """Whether these are the messages of the queue from `offset` on, one for each offset."""
    expected = np.arange(offset, offset + len(records))
    return bool(
        (records.queue_offsets == expected).all()
        and (records.head("queueId") == part.queue.queue_id).all()
        and records.topics().unique().to_pylist() == [part.queue.topic]
    )


def _is_in_broker(records: Records, part: Range, store: Path, options: SourceOptions) -> bool:
    """Whether the broker has the first message too. `OptionError` if its message is another one."""
    first = Range(part.queue, part.lo, part.lo + 1)
    unfiltered = msgspec.structs.replace(options, expression="*", fail_on_data_loss=True)
    try:
        (own,) = RangeReader(shared_client(options.namesrv_addr, options.access), first, unfiltered).batches()
    except DataLossError:
        return False  # deleted meanwhile: what that means is decided where the broker is read
    if _identity(own) != _identity(records):
        raise OptionError(
            "option storePath",
            f": {store} is not the store of {part.queue.broker_name}: offset {part.lo} of "
            f'{part.queue} is another message there; stores of several brokers are named {{"broker-a":"/path"}}',
        )
    return True


def _identity(records: Records) -> list[Any]:
    """What tells a stored message from every other: its place in the log, times and checksum."""
    names = ("physicalOffset", "storeTimestamp", "bornTimestamp", "bodyCRC", "storeSize")
    return [records.head(name)[0].item() for name in names]
