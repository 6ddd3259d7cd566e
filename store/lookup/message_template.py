"""What messages of one sender share when they differ in queue, body, unique id and times only.

`MessageStore.template` makes a template from one such message; `append_alike` then stores messages that are filled
into it: the same bytes in log, queues and index as `append` leaves, for a part of the time. Nothing of a property is
read again for them. Owner: the event-loop thread.
"""

from collections.abc import Callable, Sequence

from pocketmq.protocol.message.properties import KEYS, UNIQ_KEY, decode_properties

from ..log.record_template import TEXT_LENGTH_BYTES, RecordTemplate
from ..put_values import AlikeMessage
from .key_hash import UniqueIdHash

_SEPARATOR = b"\x02"
_ID_NAME = _SEPARATOR + UNIQ_KEY.encode() + b"\x01"
_FIRST_ID_AT = TEXT_LENGTH_BYTES + len(_ID_NAME) - 1
_KEYS = _SEPARATOR + KEYS.encode() + b"\x01"


class MessageTemplate:
    """The shared part of the messages of one topic."""

    __slots__ = (
        "_fixed_hashes",
        "_hashes_of_keys",
        "_id_at",
        "_id_name",
        "_unique_ids",
        "record",
        "tags_code",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        record: RecordTemplate,
        tags_code: int,
        unique_ids: UniqueIdHash | None,
        fixed_hashes: tuple[int, ...],
        id_at: int | None = None,
        hashes_of_keys: Callable[[str], Sequence[int]] | None = None,
    ) -> None:
        """`unique_ids` is None if ids are not indexed; `fixed_hashes` are those of the other keys. `id_at`: where the
        id begins in the whole text of a message; None if a message has its id alone. `hashes_of_keys` is for whole
        texts with KEYS, which may differ."""
        self.topic = topic
        self.record = record
        self.tags_code = tags_code
        self._unique_ids = unique_ids
        self._fixed_hashes = fixed_hashes
        self._id_at = id_at
        self._id_name = _ID_NAME if id_at != _FIRST_ID_AT else _ID_NAME[1:]
        self._hashes_of_keys = hashes_of_keys

    def key_hashes(self, unique_id: bytes) -> tuple[int, ...]:
        """Hashes of the keys that a message is indexed by. Raises ValueError for an id that is none."""
        if self._unique_ids is None:
            return self._fixed_hashes
        if self._id_at is not None:
            text, at = unique_id, self._id_at
            if not text.startswith(self._id_name, at - len(self._id_name)):
                raise ValueError("the unique id is at another place")
            end = text.find(_SEPARATOR, at)
            unique_id = text[at:end] if end >= 0 else text[at:]
            if self._hashes_of_keys is not None:
                _, _, behind = (_SEPARATOR + text[TEXT_LENGTH_BYTES:]).partition(_KEYS)
                keys = behind.partition(_SEPARATOR)[0].decode("utf-8", "replace")
                return (self._unique_ids.of(unique_id), *self._hashes_of_keys(keys), *self._fixed_hashes)
        of_id = self._unique_ids.of(unique_id)
        return (of_id, *self._fixed_hashes) if self._fixed_hashes else (of_id,)

    def hashes_of_all(self, unique_ids: Sequence[bytes]) -> Sequence[int]:
        """`key_hashes` of each, one behind the other. Raises ValueError for an id that is none."""
        fixed = self._fixed_hashes
        if self._unique_ids is None:
            return fixed * len(unique_ids)
        hashes = self._unique_ids.of_all(unique_ids)
        return [value for of_id in hashes for value in (of_id, *fixed)] if fixed else hashes

    def properties_of(self, message: AlikeMessage) -> dict[str, str]:
        if self.record.properties is None:
            return decode_properties(message[2][TEXT_LENGTH_BYTES:])
        before_id, _, behind_id = self.record.properties
        return decode_properties(before_id + message[2] + behind_id)
