"""Headers as literals that change no table, without Huffman.

 0                1
+---+------------+------------------+---...
| 0 | H | length | name             | the value in the same form
+---+------------+------------------+---...
"""


def literal(name: bytes, value: bytes) -> bytes:
    """One header."""
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


def _length(size: int) -> bytes:
    """An integer with a prefix of seven bits."""
    if size < 127:
        return bytes((size,))
    out = bytearray((127,))
    size -= 127
    while size >= 128:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)
