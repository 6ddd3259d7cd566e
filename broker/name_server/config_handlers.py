"""Requests about the name server's own settings: 318 changes them, 319 returns them.

Bodies are Java properties text. `config/changes.py` says which keys can be changed. Mirrors the configuration half of
`DefaultRequestProcessor`.
"""

from functools import partial
from pathlib import Path

from pocketmq.protocol.requests.name_server import GetNamesrvConfig, UpdateNamesrvConfig

from ..config import changes
from ..config import keys as config_keys
from ..network.dispatch import NAME_SERVER, Answer, Call
from .name_server import NameServer


@NAME_SERVER.handles(UpdateNamesrvConfig)
async def update_namesrv_config(name_server: NameServer, request: UpdateNamesrvConfig, call: Call) -> None:
    if not call.body:
        return
    config = name_server.config
    requested = changes.read_changes(call.body)
    changes.refuse_changes(config, requested, is_5=name_server.is_5)
    accepted = changes.apply_changes(config, requested, call.connection.peer)
    path = Path(config.config_store_path) if config.config_store_path else None
    await name_server.files.written("changed settings", partial(changes.write_changes, path, accepted))


@NAME_SERVER.handles(GetNamesrvConfig)
def get_namesrv_config(name_server: NameServer, request: GetNamesrvConfig) -> Answer:
    return Answer(body=config_keys.official_text(name_server.config, is_5=name_server.is_5).encode())
