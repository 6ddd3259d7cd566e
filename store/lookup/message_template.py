"""What messages of one sender share when they differ in queue, body, unique id and times only.

`MessageStore.template` makes a template from one such message; `append_alike` then stores messages that are filled
into it: the same bytes in log, queues and index as `append` leaves, for a part of the time. Nothing of a property is
read again for them. Owner: the event-loop thread.
"""

from pocketmq.protocol.message.properties import decode_properties

from ..log.record_template import RecordTemplate
from ..put_values import AlikeMessage
from .key_hash import UniqueIdHash


class MessageTemplate:
    """The shared part of the messages of one topic."""

    __slots__ = ("_fixed_hashes", "_unique_ids", "record", "tags_code", "topic")

    def __init__(
        self,
        topic: str,
        record: RecordTemplate,
        tags_code: int,
        unique_ids: UniqueIdHash | None,
        fixed_hashes: tuple[int, ...],
    ) -> None:
        """`unique_ids` is None if ids are not indexed; `fixed_hashes` are those of the other keys."""
        self.topic = topic
        self.record = record
        self.tags_code = tags_code
        self._unique_ids = unique_ids
        self._fixed_hashes = fixed_hashes

    def key_hashes(self, unique_id: bytes) -> tuple[int, ...]:
        """Hashes of the keys that a message is indexed by. Raises ValueError for an id that is none."""
        if self._unique_ids is None:
            return self._fixed_hashes
        of_id = self._unique_ids.of(unique_id)
        return (of_id, *self._fixed_hashes) if self._fixed_hashes else (of_id,)

    def properties_of(self, message: AlikeMessage) -> dict[str, str]:
        before_id, _, behind_id = self.record.properties
        return decode_properties(before_id + message[2] + behind_id)
