"""Every module of handlers.

Importing such a module registers its handlers (`network/dispatch.py`), together with the official line or the port to
which a handler is limited. The request codes are declared in `protocol/requests/`.
"""

from typing import Final

from .access import plain_acl_handlers, user_handlers
from .admin import (
    client_relay_handlers,
    group_handlers,
    offset_admin_handlers,
    query_handlers,
    runtime_handlers,
    topic_handlers,
)
from .cluster import replication_handlers
from .delayed import timer_handlers
from .first_position import offset_handlers
from .membership import client_handlers
from .name_server import handlers as name_server_handlers
from .pop import ack_handlers, assignment_handlers, peek_handlers, pop_handlers
from .pulling import pull_handlers
from .sending import recall_handlers, reply_handlers, retry_handlers, send_handlers
from .transactions import transaction_handlers

HANDLER_MODULES: Final = (
    *(send_handlers, transaction_handlers, recall_handlers, timer_handlers, reply_handlers),
    *(retry_handlers, pull_handlers, pop_handlers, ack_handlers, peek_handlers, assignment_handlers),
    *(offset_handlers, client_handlers),
    *(group_handlers, topic_handlers, client_relay_handlers, query_handlers, runtime_handlers),
    *(offset_admin_handlers, replication_handlers, plain_acl_handlers, user_handlers),
    name_server_handlers,
)
"""In reading order: requests of producers, of consumers, of administrators, and to the name server."""
