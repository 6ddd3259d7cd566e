"""What is removed from mqadmin's output before two brokers are compared: order of sets, measurements, own settings.

Each mask is a function from text to text; `commands.py` says which command needs which.
"""

import re

from conformance.requests.query_answers import NOW_MS


def in_any_order(text: str) -> str:
    """Java prints sets as its hash tables hold them, which depends on the order of insertion."""
    return "\n".join(sorted(text.splitlines()))


def words_in_any_order(text: str) -> str:
    """For maps and sets printed in one line."""
    return "\n".join(sorted(re.sub(r"[{}\[\],]", " ", text).split()))


def without_numbers(text: str) -> str:
    return re.sub(r" +", " ", re.sub(r"-?\d+(\.\d+)?", "N", text))


def without_tps(text: str) -> str:
    return re.sub(r"TPS: \S+", "TPS", text)


def of_members(text: str) -> str:
    """`producer` without the clients of mqadmin's own commands: now and then one is still disconnecting."""
    return "\n".join(line for line in text.splitlines() if "clientId=" not in line or "@member" in line)


COMMON_OF_49, SERVER_OF_49 = "V4_9_8", "V4_9_7"
"""A broker tells the version of the jar it shares with its clients; the official 4.9 one here runs on that of 4.9.8."""

MEASURED = re.compile(
    r"^(127\S+ +)?(bootTimestamp|runtime|\w+Tps|putLatency\d+|putMessageDistributeTime|[gp]\w+EntireTimeMax"
    r"|\w+HeadWaitTimeMills|pageCacheLockTimeMills|\w+QueueSize|dispatchBehindBytes|timer\w+"
    r"|commitLogDirCapacity|\w+DiskRatio\S*?|earliestMessageTimeStamp|remainHowManyDataToFlush|brokerVersion) *:.*$",
    re.MULTILINE,
)


def without_measured(text: str) -> str:
    """brokerStatus: of values that depend on the moment, the disk or the speed only the name remains.

    earliestMessageTimeStamp is -1 on 4.9.7 until the first log file holds two messages of the largest size; ours is
    right from the first message on.
    """
    return re.sub(r"_/\S+", "_PATH", MEASURED.sub(r"\2", text.replace(COMMON_OF_49, SERVER_OF_49)))


OUR_SETTINGS = {
    "accessMessageInMemoryMaxRatio",  # 30
    "bindAddress",  # 127.0.0.1
    "commitLogRecoverMaxNum",  # no limit
    "writeBufferHighWaterMark",  # of our own machinery
    # The place of the users of 5.5, which the official broker needs to be told:
    "authenticationMetadataProvider",
    "authorizationMetadataProvider",
    # Places:
    "configStorePath",
    "kvConfigPath",
    "listenPort",
    "rocketmqHome",
    "storePathCommitLog",
    "storePathRootDir",
    # The official broker sets it itself, from the size of Bloom filters that ours does not have:
    "bitMapLengthConsumeQueueExt",
}


def without_our_settings(text: str) -> str:
    lines = (line for line in text.splitlines() if line.partition("=")[0].strip() not in OUR_SETTINGS)
    return in_any_order("\n".join(lines))


def without_client_measures(text: str) -> str:
    """Rates; and the client stores the offset of an empty retry queue at some later time."""
    text = re.sub(r"^%RETRY%\S+ +(\S+ +)?broker-a .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\d+\.\d{2,}", "R", text)


MADE_OF_AN_OFFSET = re.compile(r"@\d+$|\b(7F\w{30})\b", re.MULTILINE)
MADE_BY_CLIENT = re.compile(r"\b(?!7F000001)[0-9A-F]{32}\b")
"""The id of a message that the tool sends begins with the address of its machine."""
NOT_SHARED = (
    (MADE_BY_CLIENT, ""),
    (MADE_OF_AN_OFFSET, ""),
    (re.compile(r"\b\d{13}@"), "HOUR@"),
    (re.compile(r"timestamp\(long\)\[\d{13}\]"), "timestamp(long)[TIME]"),
    (re.compile(r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,:.]\d{3})?"), "TIME"),
    (re.compile(r"127\.0\.0\.1:(3[2-9]|[4-6]\d)\d{3}\b"), "127.0.0.1:PORT"),
    (re.compile(r"\b20\d{15}\b|(?<==)1969\d{13}|(?<==)1970\d{13}"), "DIGITS"),
    (NOW_MS, "TIME"),
)


def settled(text: str) -> str:
    """Without what differs between two moments or two clients."""
    for pattern, word in NOT_SHARED:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.splitlines())
