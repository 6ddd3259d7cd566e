"""Property texts that differ in a few values: cut into what repeats and what does not, and put together again.

    text    MSG_REGION\1r\2UNIQ_KEY\1<id>\2TAGS\1a\2REAL_QID\1<queue>\2
    shape   what repeats: the pieces between the values, and the name before each value
    values  <id>, <queue>

What the broker makes of a text is decided once for a shape. A `TextForm` is the text that it makes, with the values at
their new places. How it is found: the ordinary way is gone with two sets of values that no client sends; if they are
found in the two results, and all else is the same, then that holds for other values, too.

A shape is worth a plan if it is seen again. `ShapePlans` makes the plan when it sees a shape for the second time. If
each text has a shape of its own, because of the number of an order, for example, then few texts are looked at. No
official class.
"""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, Generic, TypeVar

PlanT = TypeVar("PlanT")

Shape = tuple[bytes, ...]
"""Pieces and names in turns, beginning and ending with a piece; a name has the separators around it."""

MAX_SHAPES: Final = 1024
"""Shapes that one memory holds; a full one is emptied and fills again."""
STRANGERS_BEFORE_PAUSE: Final = 64
"""New shapes in a row, after which only one of `LOOK_AT_ONE_OF` texts is looked at."""
LOOK_AT_ONE_OF: Final = 64
LONGEST_SHAPE: Final = 4096
"""Bytes of a text that is looked at."""


class TextCutter:
    """Cuts out the values of some properties."""

    def __init__(self, *names: str) -> None:
        choice = b"|".join([re.escape(name.encode()) for name in names])
        self._split = re.compile(rb"(\x02(?:" + choice + rb")\x01)([^\x02]*)").split

    def cut(self, text: bytes) -> tuple[Shape, list[bytes]] | None:
        """Shape and values, in the order of the text; `None` if a value is empty or not ASCII, or for a long text."""
        if len(text) > LONGEST_SHAPE:
            return None
        parts = self._split(b"\2" + text)
        values = parts[2::3]
        del parts[2::3]
        if not all(values) or not b"".join(values).isascii():
            return None
        return tuple(parts), values


def values_of(shape: Shape) -> tuple[str, ...]:
    """The name of each value."""
    return tuple(name[1:-1].decode() for name in shape[1::2])


def text_of(shape: Shape, values: Sequence[bytes]) -> bytes:
    """The text that was cut."""
    parts = [shape[0]]
    for number, value in enumerate(values):
        parts += (shape[2 * number + 1], value, shape[2 * number + 2])
    return b"".join(parts)[1:]


def probes_of(shape: Shape, *, numbers: Sequence[str] = ()) -> list[list[bytes]]:
    """Two sets of values that no client sends, to see what is made of texts of a shape; those of the properties
    `numbers` are numbers. Empty if the values could not be told from the rest of the text."""
    names = values_of(shape)
    probes = [
        [
            b"%d%04d" % (first, number) if name in numbers else b"\3%d.%d\3" % (first, number)
            for number, name in enumerate(names)
        ]
        for first in (60007, 71113)
    ]
    pieces = shape[0::2]
    is_clear = not any(value in piece for values in probes for value in values for piece in pieces)
    return probes if is_clear and len(set(names)) == len(names) else []


class TextForm:
    """A text with places for values. `numbers` says which value each place gets."""

    __slots__ = ("_one", "_parts", "_pick", "numbers", "pieces")

    def __init__(self, pieces: Sequence[bytes], numbers: Sequence[int]) -> None:
        self.pieces, self.numbers = tuple(pieces), tuple(numbers)
        self._parts = [b""] * (2 * len(numbers) + 1)
        self._parts[0::2] = pieces
        self._one = numbers[0] if len(numbers) == 1 else -1
        self._pick = itemgetter(*numbers) if len(numbers) > 1 else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextForm):
            return NotImplemented
        return (self.pieces, self.numbers) == (other.pieces, other.numbers)

    __hash__ = None  # type: ignore[assignment]

    def fill(self, values: Sequence[bytes]) -> bytes:
        """The text with these values."""
        pick = self._pick
        if pick is None:
            return self.pieces[0] if self._one < 0 else values[self._one].join(self.pieces)
        parts = self._parts
        parts[1::2] = pick(values)
        return b"".join(parts)


def form_of(text: bytes, values: Sequence[bytes]) -> TextForm:
    """The form that becomes `text` with these values, which differ from each other and from all else in the text."""
    parts = re.split(b"(" + b"|".join(map(re.escape, values)) + b")", text) if values else [text]
    return TextForm(parts[0::2], [values.index(value) for value in parts[1::2]])


def same_plan(plans: Sequence[PlanT | None]) -> PlanT | None:
    """The plan that was made with each of two sets of values; `None` if the plans differ, or there are not two."""
    return plans[0] if len(plans) == 2 and plans[0] == plans[1] else None


class ShapePlans(Generic[PlanT]):
    """What is made of each shape. `make` returns `None` for a shape without a plan. Owned by the event loop."""

    def __init__(self, make: Callable[[Shape], PlanT | None]) -> None:
        self._make = make
        self._plans: dict[Shape, PlanT | bool] = {}
        """True: the shape was seen once. False: it has no plan."""
        self._strangers = 0
        self._skipped = 0

    def __len__(self) -> int:
        """How many shapes are remembered."""
        return len(self._plans)

    def skips(self) -> bool:
        """Whether to leave the next text alone, because no shape was seen twice lately; ask once for each text."""
        if self._strangers < STRANGERS_BEFORE_PAUSE:
            return False
        self._skipped += 1
        return self._skipped % LOOK_AT_ONE_OF != 0

    def find(self, shape: Shape) -> PlanT | None:
        """The plan of a shape, from the second time on that it is asked for."""
        plan = self._plans.get(shape)
        if plan is None or plan is True:
            plan = self._learn(shape, is_known=plan is True)
        if plan is True or plan is False:
            return None
        self._strangers = 0
        return plan

    def _learn(self, shape: Shape, *, is_known: bool) -> PlanT | bool:
        if len(self._plans) >= MAX_SHAPES and not is_known:
            self._plans.clear()
        if not is_known:
            self._strangers += 1
        made = self._make(shape) if is_known else True
        self._plans[shape] = plan = False if made is None else made
        return plan
