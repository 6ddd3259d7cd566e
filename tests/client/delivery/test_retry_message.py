"""The retry topic's message for a failed one."""

from pocketmq.client.delivery.send_back import retry_properties, topic_for_listener
from pocketmq.client.values.message import MessageExt

from client_vectors import pulled_message


def failed(properties: dict[str, str], *, tries: int) -> MessageExt:
    message = pulled_message(0, reconsume_times=tries)
    message.properties.update(properties)
    return message


def test_first_failure_keeps_the_message_and_adds_its_origin():
    message = failed({"UNIQ_KEY": "u", "TAGS": "t", "TRAN_MSG": "true", "WAIT": "true"}, tries=0)
    assert retry_properties(message, "orders", 16) == {
        "UNIQ_KEY": "u",
        "TAGS": "t",
        "WAIT": "true",
        "ORIGIN_MESSAGE_ID": "u",
        "RETRY_TOPIC": "orders",
        "RECONSUME_TIME": "1",
        "MAX_RECONSUME_TIMES": "16",
        "DELAY": "3",
    }
    assert message.properties["TRAN_MSG"] == "true"


def test_the_first_origin_is_kept():
    for origin, expected in (("first", "first"), (" ", "u2"), ("", "u2")):
        message = failed({"ORIGIN_MESSAGE_ID": origin, "UNIQ_KEY": "u2"}, tries=4)
        made = retry_properties(message, "t", 2**31 - 1)
        assert made["ORIGIN_MESSAGE_ID"] == expected
        assert (made["RECONSUME_TIME"], made["DELAY"]) == ("5", "7")


def test_each_try_waits_one_level_longer():
    made = [retry_properties(failed({}, tries=tries), "t", 16) for tries in range(4)]
    assert [one["DELAY"] for one in made] == ["3", "4", "5", "6"]


def test_listeners_see_the_topic_the_message_was_sent_to():
    assert topic_for_listener("orders", {"RETRY_TOPIC": "x"}, "g") == "orders"
    assert topic_for_listener("%RETRY%g", {"RETRY_TOPIC": "orders"}, "g") == "orders"
    assert topic_for_listener("%RETRY%g", {}, "g") == "%RETRY%g"
    assert topic_for_listener("%RETRY%g2", {"RETRY_TOPIC": "orders"}, "g") == "%RETRY%g2"
    assert topic_for_listener("%RETRY%g_orders", {}, "g") == "orders"
    assert topic_for_listener("%RETRY%g_", {}, "g") == "%RETRY%g_"
