"""Templates for the messages of batches, kept: most batches of a producer have messages of one form.

A template is known by all that its messages share. What must not be shared, such as the queues of a light message, has
no template; that is kept, too. No official class.
"""

from typing import Final

from pocketmq.protocol.message.batch import UNIQUE_ID_BYTES
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.send import AnySend
from pocketmq.store import MessageStore, NewMessage
from pocketmq.store.lookup.message_template import MessageTemplate

MAX_TEMPLATES: Final = 1024
"""Templates kept; a full memory is emptied and fills again."""
_ANY_ID: Final = b"0" * UNIQUE_ID_BYTES

_Key = tuple[str, bytes, bytes, int, int, bytes, int]


class BatchTemplates:
    """The templates of one broker. Owner: the event-loop thread."""

    def __init__(self, store: MessageStore, store_host: bytes) -> None:
        self._store = store
        self._store_host = store_host
        self._templates: dict[_Key, MessageTemplate | None] = {}

    def template(
        self, request: AnySend, flag: int, before_id: bytes, behind_id: bytes, born_host: bytes
    ) -> MessageTemplate | None:
        """The template of a batch's messages: each has this flag, and this property text before and behind its unique
        id. None if the store must look at each message."""
        reconsume_times = request.reconsume_times or 0
        key = (request.topic, before_id, behind_id, flag, request.sys_flag, born_host, reconsume_times)
        try:
            return self._templates[key]
        except KeyError:
            pass
        if len(self._templates) >= MAX_TEMPLATES:
            self._templates.clear()
        properties = before_id + _ANY_ID + behind_id
        template = self._templates[key] = self._store.template(
            NewMessage(
                request.topic,
                0,
                b"",
                properties,
                decode_properties(properties),
                flag,
                request.sys_flag,
                born_host=born_host,
                store_host=self._store_host,
                reconsume_times=reconsume_times,
            )
        )
        return template
