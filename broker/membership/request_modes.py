"""Which groups pop which topics instead of pulling them, kept in config/messageRequestMode.json.

    {"messageRequestModeMap": {topic: {group: {"consumerGroup", "mode", "popShareQueueNum", "topic"}}}}

`pop/assignment_handlers.py` reads and changes them. Mirrors `MessageRequestModeManager`; owned by the event loop.
"""

from pathlib import Path
from typing import Final

from pocketmq.protocol.bodies.client import (
    MessageRequestModeSerializeWrapper,
    SetMessageRequestModeRequestBody,
)
from pocketmq.store import layout

from ..tables.json_table import JsonTable, NowMs, TextOf
from ..tables.table_text import MapText, file_pieces

MAX_MODES: Final = 100_000
"""Pairs of topic and group; a request for more is refused."""


class RequestModes(JsonTable):
    state_fields = ("_modes",)
    body_type = MessageRequestModeSerializeWrapper

    def __init__(self, folder: Path, now_ms: NowMs) -> None:
        super().__init__(folder / layout.REQUEST_MODES, now_ms)
        self._text = MapText(dict.copy)
        self._modes: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}

    @property
    def is_full(self) -> bool:
        return len(self) >= MAX_MODES

    def find(self, topic: str, group: str) -> SetMessageRequestModeRequestBody | None:
        return self._modes.get(topic, {}).get(group)

    def set(self, topic: str, group: str, mode: SetMessageRequestModeRequestBody) -> None:
        self._modes.setdefault(topic, {})[group] = mode
        self.dirty = True

    def replace_all(self, modes: dict[str, dict[str, SetMessageRequestModeRequestBody]]) -> bool:
        """Replace all modes by those of the master, on a slave. False if nothing changed."""
        if modes == self._modes:
            return False
        self._modes = modes
        self.dirty = True
        return True

    def __len__(self) -> int:
        return sum(map(len, self._modes.values()))

    def to_body(self) -> MessageRequestModeSerializeWrapper:
        """The answer to 402."""
        modes = {topic: of_topic.copy() for topic, of_topic in self._modes.items()}
        return MessageRequestModeSerializeWrapper(message_request_mode_map=modes)

    def _frozen(self) -> TextOf:
        modes = self._modes.copy()
        return lambda: file_pieces({"messageRequestModeMap": self._text.pieces(modes)})

    def _read(self, stored: MessageRequestModeSerializeWrapper) -> None:
        self._modes = stored.message_request_mode_map
