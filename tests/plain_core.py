"""A broker in this process without the native core."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pocketmq.broker.sending import reply_form
from pocketmq.core import choice
from pocketmq.core import sends as core_sends
from pocketmq.store import message_store
from pocketmq.store.log import commit_log
from pocketmq.store.lookup import index_file

CORE: dict[str, tuple[object, str]] = {
    "read_sends": (core_sends, "_read_sends"),
    "fill_replies": (reply_form, "reply_frames"),
    "read_copies": (message_store, "read_copies"),
    "pack_records": (commit_log, "pack_records"),
    "add_entries": (index_file, "add_entries"),
}
"""Where the functions of the core are called, beside those that are tried."""


@contextmanager
def in_plain_python() -> Iterator[None]:
    """The broker's functions that exist in C are those in Python."""
    with pytest.MonkeyPatch.context() as patch:
        for name, (module, attribute) in CORE.items():
            patch.setattr(module, attribute, choice.in_python[name])
        for name in choice.tried:
            patch.setitem(choice.tried, name, choice.in_python[name])
        yield
