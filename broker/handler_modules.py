"""The table of contents of what is served: every handler module, and what a line or a port leaves out.

Importing a module of handlers registers them (`network/dispatch.py`). Which request is which code stands in the
declarations,
`protocol/requests/`.
"""

from typing import Final

from .access import plain_acl_handlers, user_handlers
from .admin import (
    cleaning_handlers,
    client_relay_handlers,
    config_handlers,
    group_handlers,
    offset_admin_handlers,
    progress_handlers,
    query_handlers,
    runtime_handlers,
    topic_handlers,
)
from .cluster import replication_handlers
from .delayed import timer_handlers
from .first_position import offset_handlers
from .membership import client_handlers
from .name_server import config_handlers as name_server_config_handlers
from .name_server import handlers as name_server_handlers
from .pop import ack_handlers, assignment_handlers, peek_handlers, pop_handlers
from .pulling import pull_handlers
from .sending import reply_handlers, retry_handlers, send_handlers
from .transactions import transaction_handlers

HANDLER_MODULES: Final = (
    send_handlers,
    transaction_handlers,
    timer_handlers,
    reply_handlers,
    retry_handlers,
    pull_handlers,
    pop_handlers,
    ack_handlers,
    peek_handlers,
    assignment_handlers,
    offset_handlers,
    client_handlers,
    group_handlers,
    progress_handlers,
    topic_handlers,
    client_relay_handlers,
    query_handlers,
    runtime_handlers,
    offset_admin_handlers,
    config_handlers,
    cleaning_handlers,
    replication_handlers,
    plain_acl_handlers,
    user_handlers,
    name_server_handlers,
    name_server_config_handlers,
)
"""In reading order: what producers need, what consumers need, what administrators need, the name server."""

MAIN_PORT_ONLY: Final = (11, 361, 200050, 200054, 200055, 200052, 200070)
"""The fast port (listenPort - 2) serves everything but reading."""
ONLY_IN_5: Final = (
    18,
    60,
    61,
    225,
    343,
    345,
    351,
    352,
    353,
    361,
    370,
    400,
    401,
    402,
    906,
    907,
    908,
    *range(3001, 3011),
    200050,
    200051,
    200052,
    200053,
    200054,
    200055,
    200151,
)
"""Requests the 4.9 line does not know."""
ONLY_IN_4: Final = (50, 51, 52, 53)
"""Requests 5.5 does not know any more."""
