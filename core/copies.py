"""Records as messages that are stored anew: what such messages share as one key, the rest as numbers and bytes.

    record    queue offset, a number among its properties, born timestamp, body, and its property text, changed
    kind      queue id, flag, sys flag, hosts, reconsume times, topic, and the values of some properties

Whatever a broker decides about a copy depends on its kind, as for a send (`sends.py`).
"""

from collections.abc import Hashable
from typing import Final

from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import RecordError, decode_record

from . import choice
from .properties import Changes, stored_text
from .sends import is_canonical

_MAX_KIND_CHARACTERS: Final = 4096

Copy = tuple[Hashable, int, int, int, memoryview, bytes]
"""(kind, queue offset, number, born timestamp ms, body, property text)"""

CopyForm = tuple[tuple[str, ...], str, Changes, int, bool]
"""(names of the properties whose values are part of the kind, name of the number, and what `properties.stored_text`
takes besides the properties: changes, buckets, whether a separator ends them)"""


def read_copies(log: memoryview, base: int, positions: list[int], *form: *CopyForm) -> list[Copy | None]:
    """The record at each of these log positions. `log` has the bytes of the log from position `base` on.

    None for what has to be looked at more closely: no record, one of another position, properties that are not UTF-8 or
    lack the number, a kind longer than 4 KiB, in C also more than 96 properties.
    """
    return [_read_copy(log, position - base, position, *form) for position in positions]


def _read_copy(log: memoryview, at: int, position: int, *form: *CopyForm) -> Copy | None:
    names, number_name, changes, buckets, has_final_separator = form
    if not 0 <= at < len(log):
        return None
    try:
        record = decode_record(log, at)
        properties = decode_properties(bytes(record.properties).decode())
    except (RecordError, UnicodeDecodeError):
        return None
    values = [properties.get(name) for name in names]
    number = properties.get(number_name, "")
    is_long = len(record.topic) + sum(len(value or "") for value in values) > _MAX_KIND_CHARACTERS
    if record.position != position or not is_canonical(number, 63) or is_long:
        return None
    kind = (
        *(record.queue_id, record.flag, record.sys_flag, record.born_host, record.store_host),
        *(record.reconsume_times, record.topic, *values),
    )
    text = stored_text(record.properties, changes, buckets, has_final_separator)
    body = memoryview(record.body)
    return kind, record.queue_offset, int(number), record.born_timestamp, body, text


read_copies = choice.choose(read_copies)
