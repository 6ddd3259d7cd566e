"""Every module of handlers. Importing such a module registers its handlers (`calls/registry.py`)."""

from typing import Final

from .clients import liveness_handlers, telemetry
from .consuming import ack_handlers, assignment_handlers, dead_letters, receive_handlers
from .producing import recall_handlers, route_handlers, send_handlers, transaction_handlers

HANDLER_MODULES: Final = (
    telemetry,
    liveness_handlers,
    route_handlers,
    send_handlers,
    transaction_handlers,
    recall_handlers,
    assignment_handlers,
    receive_handlers,
    ack_handlers,
    dead_letters,
)
"""Of clients in general, of producers, of consumers."""
