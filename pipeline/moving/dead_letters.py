"""Which dead letters a job is about, and what becomes of them."""

from typing import Final

import msgspec

from ..sql.message_input import MessageInput, sql_text

TIMEOUT_MS: Final = 10_000
ORIGIN, GROUP = "origin", "group"
"""Where copies go: to the topic of origin, or to the retry topic of the group."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters, and what becomes of them."""

    groups: tuple[str, ...] = ()
    origin: str | None = None
    tag: str | None = None
    is_retrying_shown: bool = False
    least_attempts: int | None = None
    send_back: str | None = None
    sends_again: bool = False
    is_dry: bool = False

    def condition(self, source: MessageInput) -> str:
        """SQL over the columns of messages."""
        conditions = [source.time_condition()]
        if self.origin is not None:
            of_message = "coalesce(properties['DLQ_ORIGIN_TOPIC'], properties['RETRY_TOPIC'])"
            conditions.append(f"{of_message} = {sql_text(self.origin)}")
        if self.tag is not None:
            conditions.append(f"tags = {sql_text(self.tag)}")
        if self.least_attempts is not None:
            conditions.append(f"reconsumeTimes >= {self.least_attempts}")
        return " and ".join(conditions)

    def is_of_all(self, source: MessageInput) -> bool:
        """Whether every dead letter of its groups is wanted."""
        return (
            (self.origin, self.tag, self.least_attempts) == (None, None, None)
            and source.since_ms is None
            and source.until_ms is None
        )
