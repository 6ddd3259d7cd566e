"""The replies of a pass: the form of a JSON frame, filled with the few values that differ between replies."""

import struct
from collections.abc import Sequence
from typing import Final

from . import choice
from .sends import Send

Run = tuple[object, int, int]
"""(anything, queue offset, anything)"""
_PREFIX: Final = struct.Struct(">ii").pack


def fill_replies(
    form: bytes,
    sends: list[Send],
    positions: list[int],
    first_position: int,
    runs: Sequence[Run],
    first_run: int,
    has_id: bool,
    handles: list[bytes] | None,
) -> list[bytes] | None:
    """A frame for each send: log position, queue id, queue offset, perhaps unique id and recall handle, and opaque, in
    the places of `form`, which are %016X, %d, %d, %b, %b, %d; %% is a percent sign.

    Positions and runs of the sends begin at these numbers. None if an id is no word of letters and digits; in C also
    if a frame would be longer than 2 KiB, or a value does not fit its place.
    """
    frames = []
    for number, send in enumerate(sends):
        row: tuple[int | bytes, ...] = (
            positions[first_position + number],
            send.queue_id,
            runs[first_run + number][1],
        )
        if has_id:
            if send.unique_id is None or not send.unique_id.isalnum():
                return None
            row += (send.unique_id,)
        if handles is not None:
            row += (handles[number],)
        header = form % (*row, send.opaque)
        frames.append(_PREFIX(len(header) + 4, len(header)) + header)
    return frames


reply_frames = choice.choose(fill_replies)
