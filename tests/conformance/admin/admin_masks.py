"""What is removed from mqadmin's output before two brokers are compared: order of sets, measurements, own settings.

Each mask is a function from text to text; `admin_scenario.py` says which command needs which.
"""

import re


def in_any_order(text: str) -> str:
    """Java prints sets as its hash tables hold them, which depends on the order of insertion."""
    return "\n".join(sorted(text.splitlines()))


def without_rates(text: str) -> str:
    """clusterList without measured values: rates, waits, hours, disk. Column widths follow their content."""
    text = re.sub(r"(?<![\d.])-?\d+\.\d+(?![\d.])", "R", text)
    text = re.sub(r"\d+ms", "Rms", text.replace(COMMON_OF_49, SERVER_OF_49))
    text = re.sub(r"\(\d+,Rms(\|\d+,Rms)?\)", "(R)", re.sub(r" +", " ", text))
    text = re.sub(r" \d+-\d+\(Rw, R, R\)", " (timer)", text)
    return re.sub(r" \d+ R R\b", " R R R", text)


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
    # Places:
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
    """Clients as tables: rates, times and the process number in a client id."""
    text = re.sub(r"\S*(127\.0\.0\.1|localhost|\d+\.\d+\.\d+\.\d+)@(\d+)#\d+", r"\1@\2#N", text)
    text = re.sub(r"lastUpdateTimestamp=\d+", "lastUpdateTimestamp=T", text)
    text = re.sub(r"\b\d{13}(?=/)", "T", text)
    # The client stores the offset of an empty retry queue at some later time.
    text = re.sub(r"^%RETRY%\S+ +(\S+ +)?broker-a .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\d+\.\d{2,}", "R", text)
