"""One rule for messages that the broker stores again: delay levels, the timer and revived pops.

stored                                       done
the store never accepts it                   done, logged as lost: the official broker tries for ever
the store or the disk refuses it now         try again later
any other error                              done, logged: one bad message does not block those behind it
"""

import logging
from collections.abc import Callable
from typing import Final

from pocketmq.store import PutStatus, StoreError
from pocketmq.store.put_values import AppendResult

_log = logging.getLogger("pocketmq.storing")

_NEVER: Final = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)
"""Failures that another try cannot mend, for example a topic name that the file system refuses."""


def deliver(kind: str, position: int, store: Callable[[], AppendResult | None]) -> bool:
    """Store one message by `store`, which returns `None` if there is nothing to store; False: try again later.

    `kind` and log position name the message in the log.
    """
    try:
        result = store()
    except (StoreError, OSError, MemoryError) as error:
        _log.error("%s message at log position %d waits: %r", kind, position, error)
        return False
    except Exception:
        _log.exception("%s message at log position %d is skipped", kind, position)
        return True
    if result is None or result.status is PutStatus.PUT_OK:
        return True
    is_lost = is_done(result)
    outcome = "is lost" if is_lost else "waits"
    _log.error("%s message at log position %d %s: %s", kind, position, outcome, result.status.name)
    return is_lost


def is_done(result: AppendResult | None) -> bool:
    """Whether another try is useless: the message is stored, or the store never accepts it."""
    return result is None or result.status is PutStatus.PUT_OK or result.status in _NEVER
