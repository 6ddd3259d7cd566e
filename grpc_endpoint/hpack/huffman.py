"""Texts in the Huffman code of HPACK (RFC 7541, appendix B): decoded a byte at a time.

The code is canonical: the codes of one length are consecutive, in the order of their symbols, and follow those of the
shorter lengths. So the lengths say everything. A text ends with the first bits of the end mark, at most seven, which
are all ones.

A state is a place inside the tree of codes, and knows what each byte leads to: the symbols that end in it, and the next
state. It works that out when a byte first occurs: official clients fill some hundred of these steps, and there are at
most 65,536 of them, 7 MiB.
"""

from functools import cache
from typing import Final

_END: Final = 256
_BY_LENGTH: Final = (
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b'!"()?'),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\x00$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
    (19, b"\\\xc3\xd0"),
    (20, bytes.fromhex("80 82 83 a2 b8 c2 e0 e2")),
    (21, bytes.fromhex("99 a1 a7 ac b0 b1 b3 d1 d8 d9 e3 e5 e6")),
    (22, bytes.fromhex("81 84 85 86 88 92 9a 9c a0 a3 a4 a9 aa ad b2 b5 b9 ba bb bd be c4 c6 e4 e8 e9")),
    (
        23,
        bytes.fromhex(
            "01 87 89 8a 8b 8c 8d 8f 93 95 96 97 98 9b 9d 9e a5 a6 a8 ae af b4 b6 b7 bc bf c5 e7 ef"
        ),
    ),
    (24, bytes.fromhex("09 8e 90 91 94 9f ab ce d7 e1 ec ed")),
    (25, bytes.fromhex("c7 cf ea eb")),
    (26, bytes.fromhex("c0 c1 c8 c9 ca cd d2 d5 da db ee f0 f2 f3 ff")),
    (27, bytes.fromhex("cb cc d3 d4 d6 dd de df f1 f4 f5 f6 f7 f8 fa fb fc fd fe")),
    (
        28,
        bytes.fromhex(
            "02 03 04 05 06 07 08 0b 0c 0e 0f 10 11 12 13 14 15 17 18 19 1a 1b 1c 1d 1e 1f 7f dc f9"
        ),
    ),
    (30, b"\n\r\x16"),
)
"""Bits, and the symbols with a code of so many. The end mark is the last of 30 bits."""


class MalformedBlock(ValueError):
    """The bytes break a rule of HPACK."""


class _State(dict[int, tuple[str, "_State"]]):
    """What each byte leads to. The root of the tree is where a text begins."""

    __slots__ = ("branches", "may_end", "root")

    def __init__(self, root: "_State | None") -> None:
        super().__init__()
        self.root: _State = self if root is None else root
        self.branches: list[_State | int | None] = [None, None]
        """After a 0 and after a 1: a place, or a symbol that is complete."""
        self.may_end = root is None

    def __missing__(self, byte: int) -> "tuple[str, _State]":
        state, symbols = self, ""
        for shift in range(7, -1, -1):
            following = state.branches[byte >> shift & 1]
            if isinstance(following, _State):
                state = following
                continue
            if following is None or following == _END:
                raise MalformedBlock("the end mark stands inside a Huffman text")
            symbols += chr(following)
            state = self.root
        step = self[byte] = symbols, state
        return step


@cache
def _root() -> _State:
    root = _State(None)
    code = length = 0
    for bits, symbols in _BY_LENGTH:
        code <<= bits - length
        length = bits
        for symbol in symbols:
            _plant(root, code, bits, symbol)
            code += 1
    _plant(root, code, length, _END)
    ending = root
    for _ in range(7):
        following = ending.branches[1]
        assert isinstance(following, _State)
        ending = following
        ending.may_end = True
    return root


def _plant(root: _State, code: int, bits: int, symbol: int) -> None:
    state = root
    for shift in range(bits - 1, 0, -1):
        following = state.branches[code >> shift & 1]
        if following is None:
            following = state.branches[code >> shift & 1] = _State(root)
        assert isinstance(following, _State)
        state = following
    state.branches[code & 1] = symbol


def decode(data: bytes) -> str:
    """The text, a character for each of its bytes. Raises `MalformedBlock`."""
    state, text = _root(), ""
    for byte in data:
        symbols, state = state[byte]
        text += symbols
    if not state.may_end:
        raise MalformedBlock("a Huffman text ends inside a symbol")
    return text
