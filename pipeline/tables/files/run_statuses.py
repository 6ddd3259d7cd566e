"""The statuses of runs that are not damage, apart from `runs.py`, so that naming one does not import numpy."""

from typing import Final

OK: Final = "ok"
NO_UNIT: Final = "no unit in its consume queue"
NO_QUEUE: Final = "its consume queue is missing"
NO_RECORD: Final = "unit without a record"
OTHER_RECORD: Final = "unit of another queue or offset"
OTHER_SIZE: Final = "unit with another size"
QUEUE_STATUSES: Final = (NO_UNIT, NO_QUEUE, NO_RECORD, OTHER_RECORD, OTHER_SIZE)
"""Consume queues and log do not match."""
DELETED_TOPIC: Final = "deleted topic"
