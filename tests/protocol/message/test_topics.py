"""Topic and group names, with the refusals recorded from the official validator."""

from base64 import b64decode

import pytest
from pocketmq.protocol.message import topics

from official_vectors import rules


@pytest.mark.parametrize(("encoded", "remark"), rules("5.5.0", "topic-name"))
def test_topic_names_are_refused_in_official_words(encoded: str, remark: str):
    assert (topics.topic_refusal(b64decode(encoded).decode()) or "") == remark


@pytest.mark.parametrize(("encoded", "remark"), rules("5.5.0", "group-name"))
def test_group_names_are_refused_in_official_words(encoded: str, remark: str):
    assert (topics.group_refusal(b64decode(encoded).decode()) or "") == remark


def test_a_line_break_at_the_end_is_no_legal_character():
    assert topics.topic_refusal("a\n") is not None
    assert topics.group_refusal("a\n") is not None


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        ("", "The specified topic is blank."),
        ("a.b", "The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("%RETRY%" + "a" * 121, "The specified topic is longer than topic max length."),
        ("%RETRY%" + "a" * 120, None),
    ],
)
def test_4_x_has_its_own_remarks_and_one_length_limit_for_all_topics(topic: str, remark: str | None):
    assert topics.topic_refusal(topic, emulate=4) == remark


def test_built_names():
    assert topics.retry_topic("g") == "%RETRY%g"
    assert topics.dlq_topic("g") == "%DLQ%g"
    assert topics.reply_topic("DefaultCluster") == "DefaultCluster_REPLY_TOPIC"
    assert topics.revive_topic("DefaultCluster") == "rmq_sys_REVIVE_LOG_DefaultCluster"
    assert topics.pop_retry_topic("t", "g") == "%RETRY%g_t"
    assert topics.pop_retry_topic("t", "g", v2=True) == "%RETRY%g+t"
    assert topics.group_of_retry_topic("%RETRY%g") == "g"
    assert topics.group_of_retry_topic("%DLQ%g") == "g"
    assert topics.group_of_retry_topic("t") == "t"


def test_topics_that_may_not_be_sent_to():
    forbidden = {"SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"}
    forbidden |= {"TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT"}
    forbidden |= {"rmq_sys_wheel_timer", "rmq_sys_REVIVE_LOG_DefaultCluster"}
    assert all(topics.is_unsendable_topic(topic) for topic in forbidden)
    assert not any(
        topics.is_unsendable_topic(topic) for topic in ("TBW102", "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "t")
    )
