"""For tests of transactions: half messages and their ends as requests.

No fixtures: those are in `broker/conftest.py`. Works on a broker of `broker_fakes.py`.
"""

from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.send import EndTransaction

from broker_fakes import Asked, ask, send_request

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
KEY = "7F000001000000000000000000000000"
PREPARED = {"TRAN_MSG": "true", "PGROUP": "pg", "UNIQ_KEY": KEY, "WAIT": "true", "KEYS": "k1", "TAGS": "ta"}


async def send_half(broker: Broker, sys_flag: int = 4, **properties: str) -> Asked:
    request = send_request(
        "T",
        queue_id=2,
        sys_flag=sys_flag,
        born_timestamp=broker.clock.now_ms(),
        flag=7,
        properties=encode_properties_text({**PREPARED, **properties}),
    )
    answer = await ask(broker, request, b"half")
    assert answer.code == 0
    return answer


def ending(half: Asked, how: int, **changes: object) -> EndTransaction:
    values: dict[str, object] = {
        "producer_group": "pg",
        "tran_state_table_offset": int(half.fields["queueOffset"]),
        "commit_log_offset": int(half.fields["msgId"][16:], 16),
        "commit_or_rollback": how,
        "msg_id": KEY,
        **changes,
    }
    return EndTransaction(**values)  # type: ignore[arg-type]
