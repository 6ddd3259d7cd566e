"""The figures of one scenario, and how they are taken from its stage. `table.py` has the words for people."""

from collections import Counter
from typing import Any

import msgspec

from .receives import findings, lost_messages, rebalance_ms, received
from .sends import by_name, judged, longest_gap_ms, reconnects, refused, sends_of, stored_times, stored_twice
from .stage import Stage


class Measures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one program did in one scenario. Durations are in ms; what did not happen is None, or missing in JSON."""

    seconds: float
    """How long the scenario took."""
    sent: int = 0
    """Messages that a broker said it stored."""
    first_send_ms: int | None = None
    """From the program's start to the first of them."""
    sends_refused: dict[str, int] = {}
    """Attempts to send that were not stored, by answer."""
    sends_retried: dict[str, int] = {}
    """Those of them that were tried again."""
    retry_after_ms: int | None = None
    """The median from an attempt to the next."""
    given_up: int = 0
    """Messages whose last attempt was not stored."""
    stored_twice: int = 0
    """Messages that the brokers have more than once."""
    longest_send_gap_ms: int | None = None
    """Longest time without a stored message once trouble had begun."""
    sent_to: dict[str, int] = {}
    """Stored messages by broker, once trouble had begun."""
    delivered: int = 0
    """Messages that reached the program."""
    redelivered: int = 0
    """Deliveries of messages that it had sent back."""
    first_message_ms: int | None = None
    """From the program's start to the first of them."""
    longest_wait_ms: int | None = None
    """Longest wait of a message, once trouble had begun."""
    recovered_ms: int | None = None
    """From the last mend to the next message that was stored or delivered."""
    rebalance_ms: int | None = None
    """Until the queues had the members that read them in the end."""
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    offset_moved_back: int = 0
    unread: int = 0
    """Verdicts of the ledger, all topics and groups together."""
    lost_messages: list[str] = []
    """The first lost messages: id, place and group."""
    hits: int = 0
    """Requests that the scenario's rules hit."""
    refused: dict[str, int] = {}
    """Other requests that were refused or never answered."""
    reconnects: int = 0
    """Connections beyond the first one of each client to each broker, and of each program to the name servers."""
    requests: dict[str, int] = {}
    requests_per_message: float | None = None
    """All requests by each message that was sent or delivered."""
    exit_codes: list[int] = []
    end_ms: int | None = None
    """Longest time that a program took to end after SIGTERM."""
    killed: int = 0
    """Programs that did not end within 30 s."""
    said: dict[str, int] = {}
    """Lines that the program printed, by their first word in capitals."""
    not_reached: list[str] = []
    """What the scenario waited for in vain."""
    dropped: int = 0
    """Requests that left the log because it was full: the figures lack them."""


def measure(stage: Stage, over_ms: int) -> Measures:
    """What happened on a stage whose steps were over at `over_ms`. Ends the programs first."""
    start_ms = stage.programs[0].started_ms if stage.programs else over_ms
    before_end = stage.requests()
    stage.end_programs(stage.programs)
    requests, ledger = stage.requests(), stage.cluster.ledger
    deliveries = ledger.deliveries()
    began_ms = stage.began_ms or start_ms
    attempts = sends_of(requests)
    times = stored_times(attempts)
    messages = {one.message for one in attempts}
    brokers = [one.broker for one in stage.masters()]
    twice: list[int] = []
    stage.cluster.call(lambda: twice.append(stored_twice(brokers, messages)))
    successes = sorted([*times, *(one.delivered_ms for one in deliveries)])
    asked = len(requests) + stage.cluster.requests.dropped
    verdicts = ledger.verdicts()
    figures: dict[str, Any] = {
        **judged(attempts, start_ms),
        **received(deliveries, start_ms, began_ms),
        **findings(verdicts),
    }
    handled = figures["sent"] + figures["delivered"]
    return Measures(
        **figures,
        seconds=round((over_ms - start_ms) / 1000, 1),
        stored_twice=sum(twice),
        longest_send_gap_ms=longest_gap_ms(times, began_ms, over_ms),
        sent_to=dict(Counter(one.broker for one in attempts if one.is_stored and one.at_ms >= began_ms)),
        recovered_ms=_next_after(stage.mended_ms, successes),
        rebalance_ms=rebalance_ms(before_end, stage.joined_ms, stage.left_ms),
        lost_messages=lost_messages(verdicts),
        hits=stage.hits(),
        refused=refused(before_end),
        reconnects=reconnects(before_end, len(stage.programs)),
        requests=by_name(requests),
        requests_per_message=round(asked / handled, 2) if handled else None,
        exit_codes=[code for program in stage.programs if (code := program.exit_code) is not None],
        end_ms=max((one.end_ms for one in stage.programs if one.end_ms is not None), default=None),
        killed=sum(program.was_killed for program in stage.programs),
        said=dict(sum((program.said() for program in stage.programs), Counter())),
        not_reached=list(stage.not_reached),
        dropped=stage.cluster.requests.dropped,
    )


def _next_after(mended_ms: int | None, times: list[int]) -> int | None:
    if mended_ms is None:
        return None
    return next((at - mended_ms for at in times if at >= mended_ms), None)
