"""The retry topic's message for a failed one."""

from pocketmq.client.delivery.send_back import retry_delay_level, retry_properties, topic_for_listener


def test_first_failure_keeps_the_message_and_adds_its_origin():
    before = {"UNIQ_KEY": "u", "TAGS": "t", "TRAN_MSG": "true", "WAIT": "true"}
    made = retry_properties(before, topic="orders", message_id="u", reconsume_times=0, max_reconsume_times=16)
    assert made == {
        "UNIQ_KEY": "u",
        "TAGS": "t",
        "WAIT": "true",
        "ORIGIN_MESSAGE_ID": "u",
        "RETRY_TOPIC": "orders",
        "RECONSUME_TIME": "1",
        "MAX_RECONSUME_TIMES": "16",
        "DELAY": "3",
    }
    assert before["TRAN_MSG"] == "true"


def test_the_first_origin_is_kept():
    for origin, expected in (("first", "first"), (" ", "u2"), ("", "u2")):
        made = retry_properties(
            {"ORIGIN_MESSAGE_ID": origin},
            topic="t",
            message_id="u2",
            reconsume_times=4,
            max_reconsume_times=2**31 - 1,
        )
        assert made["ORIGIN_MESSAGE_ID"] == expected
        assert (made["RECONSUME_TIME"], made["DELAY"]) == ("5", "7")


def test_each_try_waits_one_level_longer():
    assert [retry_delay_level(times) for times in range(4)] == [3, 4, 5, 6]


def test_listeners_see_the_topic_the_message_was_sent_to():
    assert topic_for_listener("orders", {"RETRY_TOPIC": "x"}, "g") == "orders"
    assert topic_for_listener("%RETRY%g", {"RETRY_TOPIC": "orders"}, "g") == "orders"
    assert topic_for_listener("%RETRY%g", {}, "g") == "%RETRY%g"
    assert topic_for_listener("%RETRY%g2", {"RETRY_TOPIC": "orders"}, "g") == "%RETRY%g2"
    assert topic_for_listener("%RETRY%g_orders", {}, "g") == "orders"
    assert topic_for_listener("%RETRY%g_", {}, "g") == "%RETRY%g_"
