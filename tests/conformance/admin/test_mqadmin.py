"""mqadmin prints on ours what it prints on the official broker of the same line, byte for byte of the same log.

The commands are in `admin_scenario.py` and then `admin_scenario_online.py`: both sides run them side by side, each
with mqadmin and Java client of one version. A test compares one step. POCKETMQ_INTEROP_ALL=1 adds the other pairs of
tool and broker; they agreed when they last ran.
"""

import difflib
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.admin import admin_scenario, admin_scenario_online
from conformance.admin.admin_scenario import Admin
from conformance.official.servers import OfficialServer
from conformance.on_demand import chosen
from conformance.servers.our_server import OurServer
from conformance.servers.server import Server

PAIRS = chosen([("5.5", "5.5"), ("4.9", "4.9")], [("4.9", "5.5"), ("5.5", "4.9")])
"""Version of mqadmin, line of the broker."""

SETTINGS: dict[str, object] = {
    # The same on both sides, for getBrokerConfig prints them all.
    "mappedFileSizeCommitLog": 16 << 20,
    "mappedFileSizeConsumeQueue": 6_000_000,
    "mappedFileSizeTimerLog": 8 << 20,
    "maxHashSlotNum": 100_000,
    "maxIndexNum": 400_000,
    "diskMaxUsedSpaceRatio": 95,
    "traceTopicEnable": True,
    "enablePropertyFilter": True,
}

# What the official transcript must contain: two sides that fail alike would agree as well.
WORDS = {
    "updateTopic": (
        "create topic to 127.0.0.1:10911 success",
        "orderConf=[broker-a:2]",
        "illegal characters",
    ),
    "updateSubGroup": ("create subscription group to 127.0.0.1:10911 success",),
    "java_sends": ("SENT plain", "SENT delayed"),
    "stored_bytes": ("SCHEDULE_TOPIC_XXXX", "%DLQ%admin_group", "REAL_TOPIC=admin_topic"),
    "clusterList": ("DefaultCluster broker-a 0 127.0.0.1:10911",),
    "topicList": ("admin_topic_two", "%RETRY%admin_group"),
    "topicRoute": ('"readQueueNums":4', "No topic route info"),
    "topicStatus": ("broker-a                          1     0                     6",),
    "consumerProgress": ("Diff Total: 8",),
    "query_msg_by_id": (
        "CommitLog Offset:",
        "Tags:                [TagA]",
        "Message Body Path:",
    ),
    "queryMsgByKey": ("7F00000100002A9F0000000000000001", "<id of tagged-0>", "<id of batch-1>"),
    "query_msg_by_unique_key": ("Message Body Path:",),
    "queryMsgByOffset": ("OffsetID:",),
    "queryCq": ("physicOffset",),
    "brokerStatus": ("putMessageFailedTimes           : 0", "scheduleMessageOffset_1         : 1,1"),
    "getBrokerConfig": ("mappedFileSizeCommitLog", "16777216"),
    "cloneGroupOffset": ("clone group offset success",),
    "offsets_after_cloning": ("admin_group_three 1 0  [('offset', '3')]",),
    "resetOffsetByTime": ("admin_group", "broker-a"),
    "deleteTopic": ("delete topic [admin_topic] from cluster [DefaultCluster] success.",),
}

STEPS = admin_scenario.STEPS | admin_scenario_online.STEPS

Transcript = dict[str, str]


def play(server: Server, tool: str) -> Transcript:
    """What each step printed on a server of its own."""
    with server, Admin(server, tool) as admin:
        return {name: admin.settled(step(admin)) for name, step in STEPS.items()}


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: f"tool-{pair[0]}-broker-{pair[1]}")
def transcripts(
    request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Transcript, Transcript]:
    """Ours and the official one."""
    tool, line = request.param
    home = tmp_path_factory.mktemp("mqadmin")
    sides = (
        OurServer(home / "ours", emulate="4.9" if line == "4.9" else "5", broker_conf=SETTINGS),
        OfficialServer(line, home / "official", broker_conf=SETTINGS),
    )
    with ThreadPoolExecutor() as pool:
        ours, official = pool.map(lambda server: play(server, tool), sides)
    return ours, official


@pytest.mark.parametrize("step", STEPS)
def test_mqadmin_prints_the_same(transcripts: tuple[Transcript, Transcript], step: str) -> None:
    ours, official = (transcript[step].splitlines() for transcript in transcripts)
    differences = "\n".join(difflib.unified_diff(official, ours, "official", "ours", lineterm="", n=2))
    assert not differences, differences


def test_the_official_transcript_holds_what_was_asked(transcripts: tuple[Transcript, Transcript]) -> None:
    _, official = transcripts
    if "request type 351 not supported" in official["topicStatus"]:
        pytest.skip("mqadmin 5.5.0 asks what a broker of the 4.9 line does not know")
    missing = [(step, word) for step, words in WORDS.items() for word in words if word not in official[step]]
    assert not missing
