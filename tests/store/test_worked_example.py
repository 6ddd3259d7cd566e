"""The worked example of FORMAT.md: one message, and the bytes it becomes in the log, its queue and the index."""

import re
from pathlib import Path

from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import NewMessage

FORMAT = Path(__file__).parents[2] / "store" / "FORMAT.md"
STORED_MS = 1_700_000_000_000


def dump(data: bytes, start: int = 0) -> list[str]:
    """`hexdump -C`: offset, sixteen bytes, the same as text."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        lines.append(f"{start + at:08x}  {row[:8].hex(' '):23}  {row[8:].hex(' '):23}  |{text}|")
    return lines


def test_the_bytes_of_the_worked_example_are_those_a_store_writes(open_store, tmp_path: Path) -> None:
    store = open_store()
    properties = {"KEYS": "order-7", "TAGS": "paid"}
    host = pack_host("127.0.0.1", 10911)
    result = store.append(
        NewMessage(
            "orders",
            0,
            b"hello",
            encode_properties(properties),
            born_timestamp=STORED_MS - 1,
            born_host=host,
            store_host=host,
        )
    )
    unit = bytes(store.consume_queue("orders", 0).units_from(0)[:20])
    (index,) = (tmp_path / "store" / "index").iterdir()
    units_at = 40 + 4 * 64
    index_unit = index.read_bytes()[units_at + 20 : units_at + 40]
    example = [*dump(bytes(store.read_record(result.position))), "", *dump(unit), "", *dump(index_unit, 20)]
    block = re.search(r"```hexdump\n(.*?)```", FORMAT.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None, "\n".join(example)
    assert block.group(1).splitlines() == example, "\n" + "\n".join(example)
