"""What messages of one sender share when they differ in queue, body, unique id and times only.

`MessageStore.template` makes a template from one such message; `append_alike` then stores messages that are filled
into it: the same bytes in log, queues and index as `append` leaves, for a part of the time. Nothing of a property is
read again for them. Owner: the event-loop thread.
"""

from collections.abc import Sequence

from pocketmq.protocol.message.properties import decode_properties

from ..log.record_template import TEXT_LENGTH_BYTES, RecordTemplate
from ..put_values import AlikeMessage
from .key_hash import UniqueIdHash


class MessageTemplate:
    """The shared part of the messages of one topic."""

    __slots__ = ("_fixed_hashes", "_id_part", "_unique_ids", "hashes_each", "record", "tags_code", "topic")

    def __init__(
        self,
        topic: str,
        record: RecordTemplate,
        tags_code: int,
        unique_ids: UniqueIdHash | None,
        fixed_hashes: list[int],
        id_part: slice | None = None,
    ) -> None:
        """`unique_ids` is None if ids are not indexed; `fixed_hashes` are those of the other keys. `id_part`: where the
        id lies in the whole text of a message; None if a message has its id alone."""
        self.topic = topic
        self.record = record
        self.tags_code = tags_code
        self._unique_ids = unique_ids
        self._fixed_hashes = fixed_hashes
        self._id_part = id_part
        self.hashes_each = (unique_ids is not None) + len(fixed_hashes)
        """Index entries of each message."""

    def index_hashes(self, messages: Sequence[AlikeMessage]) -> list[int]:
        """The key hashes of all messages, `hashes_each` of each. Raises ValueError for an id that is none."""
        fixed = self._fixed_hashes
        if self._unique_ids is None:
            return fixed * len(messages)
        ids, part = [message[2] for message in messages], self._id_part
        if part is not None:
            ids = [text[part] for text in ids]
        hashes = self._unique_ids.of_all(ids)
        return [value for of_id in hashes for value in (of_id, *fixed)] if fixed else hashes

    def properties_of(self, message: AlikeMessage) -> dict[str, str]:
        if self.record.properties is None:
            return decode_properties(message[2][TEXT_LENGTH_BYTES:])
        before_id, _, behind_id = self.record.properties
        return decode_properties(before_id + message[2] + behind_id)
