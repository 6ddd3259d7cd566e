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

SAID: Final[dict[str, tuple[str, str]]] = {
    # by a broker of 4.9, of 5.5
    "stored": ("B1", B0_OR_B1),
    "stored_zero": (B1_OR_B6, B0_OR_B1),
    "stored_then_lower": ("B1", B0_OR_B1),
    "stored_above_max": ("B1", B0_OR_B1),
    "minus_one_stored_is_no_offset": (B1_OR_B4, "B4"),
    "minus_one_stored_in_an_empty_queue": (B1_OR_B6, "B6"),
    "stored_by_a_pull": ("B1", B0_OR_B1),
    "pull_without_the_commit_flag_stores_nothing": ("B4", "B4"),
    "empty_queue": ("B6", "B6"),
    "empty_queue_beside_full_ones": ("B6", "B6"),
    "unknown_group_of_a_young_topic": ("B4", "B4"),
    "young_topic": ("B4", "B4"),
    "asking_stores_nothing": ("B4", "B4"),
    "queue_just_added": (B1_OR_B6, "B6"),
    "queue_just_added_with_a_message": ("B4", "B4"),
    "empty_retry_topic": ("B6", "B6"),
    "retry_topic_with_a_message": ("B4", "B4"),
    "reset_pending": ("B4", B0_OR_B1),
    "reset_pending_wins_over_stored": ("B1", B0_OR_B1),
    "commit_while_a_reset_waits_is_ignored": ("B1", B0_OR_B1),
    "commit_after_the_reset_was_pulled": ("B1", B0_OR_B1),
    "reset_pending_at_the_end": ("B4", B0_OR_B1),
    "reset_out_of_range_is_refused": ("B4", "B4"),
    "commit_by_an_unknown_group": ("B1", "B4"),
    "cloned_from_another_group": ("B1", B0_OR_B1),
    # while the broker of 4.9 counts no message as in memory; 5.5 on Java 17 never does
    "cold_topic": ("B5", "B4"),
    "cold_but_stored": ("B1", B0_OR_B1),
    "cold_and_minus_one_stored": ("B5", "B4"),
    "empty_queue_where_all_is_cold": ("B6", "B6"),
    "cold_with_a_reset_pending": ("B5", B0_OR_B1),
    "cold_retry_topic": ("B5", "B4"),
    # after the first log file was deleted
    "trimmed_topic": ("B3", "B3"),
    "trimmed_but_stored_below_the_min_offset": ("B1", B0_OR_B1),
    "topic_of_which_nothing_is_left": (
        "B4",
        "B3",
    ),  # 4.9 keeps min offset and queue, and looks at these alone
}
