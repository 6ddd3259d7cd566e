"""Options of the source: an error is one line that names the option and what is allowed."""

import re

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sink import sink_options
from pocketmq.pipeline.spark.sink.sink_options import read_sink_options
from pocketmq.pipeline.tables.planning import spelling, topic_options
from pocketmq.pipeline.tables.planning.topic_options import matching_topics, read_source_options
from pocketmq.protocol.message.topics import SYSTEM_TOPICS

GOOD = {"rocketmq.namesrv.addr": "127.0.0.1:9876", "subscribe": "T"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"subscribe": "T"}, "rocketmq.namesrv.addr"),
        ({**GOOD, "subscribePattern": "T"}, "subscribe, subscribePattern, assign"),
        ({"rocketmq.namesrv.addr": "x"}, "exactly one"),
        ({**GOOD, "startingOffset": "latest"}, "unknown option startingOffset;"),
        ({**GOOD, "topic": "T"}, "twice"),
        ({**GOOD, "startingOffsets": "latest"}, "latest is for streams"),
        ({**GOOD, "startingOffsets": "newest"}, "earliest, latest, committed or JSON"),
        ({**GOOD, "startingOffsets": "committed"}, "groupId"),
        ({**GOOD, "endingOffsets": "earliest"}, "endingOffsets"),
        ({**GOOD, "pullBatchsize": "0"}, "pullBatchSize must be a whole number, from 1 to 65536"),
        ({**GOOD, "rocketmq.accessKey": "user"}, "rocketmq.accessKey, rocketmq.secretKey: set both or none"),
        ({**GOOD, "rocketmq.tls.client.certPath": "c"}, "rocketmq.tls.enable is required with"),
        ({"rocketmq.namesrv.addr": "x", "subscribePattern": "("}, "subscribePattern"),
        ({"rocketmq.namesrv.addr": "x", "assign": "{}"}, "assign"),
        ({"rocketmq.namesrv.addr": "x", "subscribePattern": ""}, "subscribePattern is required"),
        ({"rocketmq.namesrv.addr": "x", "assign": '{"T":[true]}'}, "assign"),
        ({"rocketmq.namesrv.addr": "x", "assign": '{"T":{"b":"01"}}'}, "assign must be JSON such as"),
        ({"rocketmq.namesrv.addr": "x", "assign": '{"T":{"b":{"0":5}}}'}, "assign must be JSON such as"),
        ({"rocketmq.namesrv.addr": "localhost", "subscribe": "T"}, "namesrv.addr must be host:port"),
        ({"rocketmq.namesrv.addr": ";", "subscribe": "T"}, "namesrv.addr must be host:port"),
        (
            {**GOOD, "minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "5"},
            "minOffsetsPerTrigger must be at most",
        ),
        ({**GOOD, "subExpression": "||"}, r"subExpression must be \* or tags such as"),
        ({**GOOD, "subExpression": " || "}, r"subExpression must be \* or tags such as"),
        ({**GOOD, "filterType": "SQL92"}, "subExpression must be a condition"),
        (
            {**GOOD, "rocketmq.consumer.offset.reset.to": "latest"},
            "unknown option rocketmq.consumer.offset.reset.to;",
        ),
        ({**GOOD, "rocketmq.groupName": "another"}, "unknown option rocketmq.groupName;"),
        ({**GOOD, "groupId": "a b"}, "groupId: .*illegal characters"),
        ({**GOOD, "groupId": "", "startingOffsets": "committed"}, "groupId is required"),
    ],
)
def test_an_error_names_the_option_and_what_is_allowed(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        read_source_options(options, is_stream=False)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("kafka.bootstrap.servers", "here it is rocketmq.namesrv.addr"),
        ("kafka.group.id", "here it is groupId"),
        ("includeheaders", "here it is includeProperties"),
        ("kafkaConsumer.pollTimeoutMs", "here it is pullTimeoutMs"),
        ("kafka.security.protocol", "here it is rocketmq.tls.enable"),
        ("startingOffset", "similar: startingOffsets"),
        ("maxoffsetpertrigger", "similar: maxOffsetsPerTrigger"),
        ("kafka.fetch.min.bytes", "the options are rocketmq.namesrv.addr, subscribe"),
    ],
)
def test_an_unknown_option_is_answered_with_the_one_that_is_meant(option: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"unknown option {option}; {meant}"):
        read_source_options({**GOOD, option: "x"}, is_stream=True)


@pytest.mark.parametrize("option", [{"endingTimestamp": "5"}, {"endingOffsets": "latest"}])
def test_a_stream_has_no_end(option: dict[str, str]) -> None:
    (name,) = option
    with pytest.raises(OptionError, match=f"{name} is for batches; a stream has no end"):
        read_source_options({**GOOD, **option}, is_stream=True)


def test_an_option_that_is_nearly_right_is_answered_in_a_short_line() -> None:
    with pytest.raises(OptionError) as error:
        read_source_options({**GOOD, "startingOffset": "x"}, is_stream=True)
    assert str(error.value) == "unknown option startingOffset; similar: startingOffsets"


def test_every_option_of_kafka_s_that_is_named_has_a_counterpart_that_exists() -> None:
    for known, others in (
        (topic_options.SOURCE_OPTION_NAMES, spelling.SOURCE_OPTIONS),
        (sink_options._NAMES, spelling.SINK_OPTIONS),
    ):
        for other, here in others.items():
            if "column" not in here and "broker" not in here:
                named = re.split(r" with |=|:", here)[0]
                assert named in known, other


def test_the_sink_ignores_options_of_spark_itself() -> None:
    own = {"queryName": "q", "checkpointLocation": "/c", "path": "T"}
    assert read_sink_options({"nameServer": "x:1", **own}) == read_sink_options({"nameServer": "x:1"})


def test_option_names_are_read_in_any_case_and_by_their_older_spellings() -> None:
    read = read_source_options(
        {"nameserver": "h:1", "TOPIC": "A, B", "MAXOFFSETSPERTRIGGER": "7"}, is_stream=True
    )
    assert (read.namesrv_addr, read.topics, read.max_offsets_per_trigger) == ("h:1", ("A", "B"), 7)


def test_a_group_turns_commits_on_and_a_prefix_does_not() -> None:
    assert read_source_options({**GOOD, "groupId": "g"}, is_stream=True).commits_offsets
    quiet = read_source_options({**GOOD, "groupIdPrefix": "g"}, is_stream=True)
    assert (quiet.commits_offsets, quiet.group) == (False, "g")


def test_retries_and_their_interval_limit_how_long_a_read_is_planned() -> None:
    own = {"fetchOffset.numRetries": "10", "fetchOffset.retryIntervalMs": "1000", "retryTimeoutMs": "5"}
    read = read_source_options({**GOOD, **own}, is_stream=True)
    assert (read.plan_timeout_ms, read.retry_timeout_ms) == (10_000, 5)
    assert read_source_options({**GOOD, "retryTimeoutMs": "5"}, is_stream=True).plan_timeout_ms == 5


def test_a_timestamp_wins_over_offsets() -> None:
    options = {**GOOD, "startingTimestamp": "17", "startingOffsets": "earliest"}
    assert read_source_options(options, is_stream=False).start.timestamp_ms == 17


def test_a_pattern_leaves_out_system_retry_and_dead_letter_topics() -> None:
    topics = ["Orders", "%RETRY%g", "%DLQ%g", "rmq_sys_REVIVE_LOG_x", *SYSTEM_TOPICS]
    assert matching_topics(".*", topics) == ["Orders"]
    assert read_source_options({**GOOD, "subscribe": "%DLQ%g"}, is_stream=False).topics == ("%DLQ%g",)
