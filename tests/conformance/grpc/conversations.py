"""The recorded conversations: `recorded/NAME.txt`."""

from conformance.access.access_rows import AUTH_SETTINGS
from conformance.grpc import access, consumption, refusals
from conformance.grpc.rows import TOPICS
from conformance.grpc.side import Conversation

CONVERSATIONS = [
    Conversation("refusals", refusals.prepare, refusals.refuse, tuple(TOPICS)),
    Conversation(
        "consumption",
        consumption.prepare,
        consumption.consume,
        tuple(consumption.SCENARIOS),
        consumption.CONF,
    ),
    Conversation("access", access.prepare, access.guard, (), AUTH_SETTINGS, access.PROXY),
]
