"""DataVersion: which edition of a table a peer has seen.

It travels in registrations, table answers and every table file. Only equality matters on the wire; the
counter is for people."""

from .body import Body


class DataVersion(Body, frozen=True):
    """Official DataVersion. `timestamp` in ms; `state_version` is 0 outside controller mode and absent in
    4.x."""

    state_version: int = 0
    timestamp: int = 0
    counter: int = 0

    def next_version(self, now_ms: int) -> "DataVersion":
        """The edition after a change made now."""
        return DataVersion(state_version=self.state_version, timestamp=now_ms, counter=self.counter + 1)
