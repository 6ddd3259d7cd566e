"""Source: where views and waits look, the embedded server or any server over the wire.

Every coroutine runs on the source's own loop; `run` and `run_async` bring it there, from a thread and from another
loop. None of them changes anything at the server, but `load` and `send`.
"""

from collections.abc import Coroutine
from typing import Any, Literal, Protocol, TypeVar

from pocketmq.console.values import FirstPosition, Member
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2

from ..state.load import Load
from .values import StoredMessage

ResultT = TypeVar("ResultT")

QueueEnds = dict[int, tuple[int, int]]
"""Min and max offset by queue id, of the queues that have ever held a message."""


class Source(Protocol):
    """An unknown topic has no messages and no offsets; an unknown group no members."""

    look_seconds: float
    """How often a wait looks."""

    @property
    def emulate(self) -> Literal[4, 5]:
        """The official line of the server."""

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """From a thread that may wait. Errors of the work."""

    async def run_async(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """From any loop. Cancelling it cancels the work."""

    # -- looking

    async def messages(self, topic: str) -> list[StoredMessage]: ...

    async def queue_ends(self, topic: str) -> QueueEnds: ...

    async def offsets(self, topic: str, group: str) -> dict[int, int]: ...

    async def members(self, group: str) -> list[Member]: ...

    async def subscriptions(self, group: str) -> dict[str, str]: ...

    async def is_broadcasting(self, group: str) -> bool: ...

    async def count_wanted(
        self, topic: str, group: str, ranges: dict[int, tuple[int, int]], most: int | None
    ) -> int:
        """How many messages of these parts of queues (first offset, end) the group's filter matches; with `most`, the
        count may stop there."""

    async def unacknowledged(self, topic: str, group: str) -> int | None:
        """How many messages of a topic the group has popped and not acknowledged; `None` if only members know."""

    async def unknown_name(self, topic: str | None, group: str | None) -> str | None:
        """What is wrong with the names, in words; `None` if both exist."""

    async def running_info(self, group: str, client_id: str) -> ConsumerRunningInfo | None:
        """What a member says of itself (307); `None` if it does not answer."""

    async def explain(self, group: str, topic: str) -> list[FirstPosition]:
        """`Refusal` or `RequestRefused` for an unknown topic, or if the broker is not ours."""

    async def state(self, topic: str, group: str) -> object:
        """Differs as soon as something was stored, or committed by the group; `None` if that is not known."""

    # -- changing

    async def load(self, load: Load) -> None:
        """Make topics, groups with their retry topics, and messages."""

    async def before_send(self, topic: str) -> tuple[int, str]:
        """How many queues a topic has or will have, and an id for the message."""

    async def send(self, request: SendMessageV2, body: bytes) -> SendMessageReply: ...
