"""A broker in this process without the native core."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pocketmq.broker.sending import reply_form
from pocketmq.core import properties as core_properties
from pocketmq.core import sends as core_sends
from pocketmq.core.choice import in_python
from pocketmq.store import message_store
from pocketmq.store.log import commit_log
from pocketmq.store.lookup import index_file

CORE: dict[str, tuple[object, str]] = {
    "read_sends": (core_sends, "_read_sends"),
    "messages_of": (core_sends, "_messages_of"),
    "fill_replies": (reply_form, "reply_frames"),
    "values_of": (core_properties, "_values_of"),
    "restate": (core_properties, "_restate"),
    "map_of_text": (core_properties, "_map_of_text"),
    "read_copies": (message_store, "read_copies"),
    "pack_records": (commit_log, "pack_records"),
    "add_entries": (index_file, "add_entries"),
}
"""Where the functions of the core are called."""


@contextmanager
def in_plain_python() -> Iterator[None]:
    """The broker's functions that exist in C are those in Python."""
    with pytest.MonkeyPatch.context() as patch:
        for name, (module, attribute) in CORE.items():
            patch.setattr(module, attribute, in_python[name])
        yield
