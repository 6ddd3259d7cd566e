"""What `pocketmq explain` must say of official brokers, which answer offsets and do not explain them.

For the rows of the first-position tables whose queue a route names: the rule behind the answer, and the other rule that
would look the same from outside. What decides it is in broker/first_position/rules.py; here it is written by hand.
"""

from typing import Final

B0_OR_B1: Final = "B0 or B1"
"""5.x: an administrator's reset answers as a stored offset does."""
B1_OR_B4: Final = "B1 or B4"
"""4.9: the group has an offset in the topic, and this queue's answer is 0."""
B1_OR_B6: Final = "B1 or B6"

_ROWS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    # said of a broker of 4.9, of 5.5
    ("B1", B0_OR_B1): (
        *("stored", "stored_then_lower", "stored_above_max", "stored_by_a_pull"),
        *("reset_pending_wins_over_stored", "commit_while_a_reset_waits_is_ignored"),
        *("commit_after_the_reset_was_pulled", "cloned_from_another_group", "cold_but_stored"),
        *("trimmed_but_stored_below_the_min_offset",),
    ),
    (B1_OR_B6, B0_OR_B1): ("stored_zero",),
    (B1_OR_B4, "B4"): ("minus_one_stored_is_no_offset",),
    (B1_OR_B6, "B6"): ("minus_one_stored_in_an_empty_queue", "queue_just_added"),
    ("B4", "B4"): (
        *("pull_without_the_commit_flag_stores_nothing", "unknown_group_of_a_young_topic"),
        *("young_topic", "asking_stores_nothing", "queue_just_added_with_a_message"),
        *("retry_topic_with_a_message", "reset_out_of_range_is_refused"),
    ),
    ("B6", "B6"): (
        *("empty_queue", "empty_queue_beside_full_ones", "empty_retry_topic"),
        *("empty_queue_where_all_is_cold",),
    ),
    ("B4", B0_OR_B1): ("reset_pending", "reset_pending_at_the_end"),
    ("B1", "B4"): ("commit_by_an_unknown_group",),
    ("B5", "B4"): ("cold_topic", "cold_and_minus_one_stored", "cold_retry_topic"),
    ("B5", B0_OR_B1): ("cold_with_a_reset_pending",),
    ("B3", "B3"): ("trimmed_topic",),
    # 4.9 keeps min offset and queue, and looks at these alone
    ("B4", "B3"): ("topic_of_which_nothing_is_left",),
}
SAID: Final = {name: rules for rules, names in _ROWS.items() for name in names}
