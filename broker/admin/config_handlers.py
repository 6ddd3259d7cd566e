"""Requests about settings: 25 changes them, 26 returns all of them.

Mirrors `AdminBrokerProcessor.updateBrokerConfig` and `getBrokerConfig`. `config/changes.py` says which keys can be
changed. The remark of the answer to 25 names the keys that take effect at the next start. If the broker was started
with -c, changed keys are written into that file.
"""

from functools import partial

import orjson
from pocketmq.protocol.requests.admin import GetBrokerConfig, GetBrokerConfigReply, UpdateBrokerConfig

from ..broker import Broker
from ..config import changes
from ..config import keys as config_keys
from ..network.dispatch import Answer, Call, handles


@handles(UpdateBrokerConfig)
async def update_broker_config(broker: Broker, request: UpdateBrokerConfig, call: Call) -> Answer:
    """Body: properties text. A change of brokerPermission reaches the name servers before the answer is sent."""
    if not call.body:
        return Answer()
    config, state = broker.config, broker.state
    requested = changes.read_changes(call.body)
    changes.refuse_changes(config, requested, is_5=config.is_5)
    accepted = changes.apply_changes(config, requested, call.connection.peer)
    state.settings_version = state.settings_version.next_version(broker.clock.now_ms())
    # Only now: a client that hangs up ends this handler at the next wait.
    await state.tables.written("changed settings", partial(changes.write_changes, config.conf_file, accepted))
    if "brokerPermission" in requested:
        await broker.cluster.registration.permission_changed()
    waiting = changes.waiting_for_restart(config, accepted.keys())
    return Answer(remark=f"after a restart: {', '.join(waiting)}" if waiting else None)


@handles(GetBrokerConfig)
def get_broker_config(broker: Broker, request: GetBrokerConfig) -> Answer:
    """All official keys of the emulated line, one `key=value` a line."""
    version = broker.state.settings_version
    members: dict[str, int] = {"counter": version.counter}
    if broker.config.is_5:
        members["stateVersion"] = version.state_version
    members["timestamp"] = version.timestamp
    return Answer(
        reply=GetBrokerConfigReply(version=orjson.dumps(members).decode()),
        body=config_keys.official_text(
            broker.config,
            is_5=broker.config.is_5,
            computed={"namesrvAddr": broker.cluster.registration.name_servers},
        ).encode(),
    )
