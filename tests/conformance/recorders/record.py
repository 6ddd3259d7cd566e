"""Record the golden vectors again: `make golden`. Needs Java 11+, Maven and network namespaces; takes some
minutes.

Four networks, so that every conversation crosses the proxy on the official ports:

    clients  --9876, 10911, 10909-->  name server / broker
    broker   --9876-->                name server
    slave    --9876, 10911, 10909-->  name server / broker      (10912, replication, is forwarded but is no
    remoting)
"""

import argparse
import base64
import collections
import contextlib
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from conformance.official.jars import CLIENT_VERSION, SERVER_VERSION, VERSIONS
from conformance.official.programs import BINARY_HEADER, Programs
from conformance.official.servers import OfficialServer
from conformance.recorders import scenario
from conformance.recorders.recording_proxy import (
    FROM_CLIENT,
    Collection,
    Exchange,
    Kind,
    RecordingProxy,
    kind_of,
)
from conformance.servers.namespaces import Namespace
from conformance.servers.remoting import read_header
from conformance.servers.server import NAMESRV_ADDR
from golden import FOLDER

NAME_SERVER_PORT, BROKER_PORT, VIP_PORT, HA_PORT = 9876, 10911, 10909, 10912
HEADERS = {"JSON": (), "ROCKETMQ": BINARY_HEADER}


def record(server: str, client: str, header: str, home: Path, collection: Collection) -> None:
    """One exchange of a server line and a client line, both writing headers of one kind."""
    with contextlib.ExitStack() as stack:
        names, brokers, slaves, clients = (stack.enter_context(Namespace()) for _ in range(4))
        proxy = RecordingProxy()
        stack.callback(proxy.close)
        versions = (SERVER_VERSION[server], CLIENT_VERSION[client])
        for inside, asking in ((brokers, versions[0]), (slaves, versions[0]), (clients, versions[1])):
            to_names = Exchange(asking, "namesrv", collection)
            proxy.forward(NAME_SERVER_PORT, inside, names, to_names)
            if inside is not brokers:
                to_broker = Exchange(asking, "broker", collection)
                proxy.forward(BROKER_PORT, inside, brokers, to_broker)
                proxy.forward(VIP_PORT, inside, brokers, to_broker)
                proxy.forward(HA_PORT, inside, brokers, None)
        options = HEADERS[header]
        name_server = OfficialServer(server, home / "names", namespace=names, java_opts=options)
        stack.callback(name_server.close)
        name_server.start_name_server()
        broker = OfficialServer(
            server, home / "broker", namespace=brokers, with_name_server=False, java_opts=options
        )
        stack.callback(broker.close)
        master = broker.start_broker(conf=scenario.BROKER_CONF)
        slave = OfficialServer(
            server, home / "slave", namespace=slaves, with_name_server=False, java_opts=options
        )
        stack.callback(slave.close)
        replica = slave.start_broker(
            "slave", conf={**scenario.SLAVE_CONF, "compatibleWithOldNameSrv": header == "JSON"}
        )
        programs = Programs(clients, home / "clients", NAMESRV_ADDR)
        stack.callback(programs.close)
        scenario.play(programs, client, options, home / "scenario.txt")
        replica.stop(60)  # in the ordinary way: brokers sign off at the name server (104)
        master.stop(60)


def summary(collection: Collection) -> str:
    codes: dict[str, set[int]] = collections.defaultdict(set)
    for kind in collection.smallest:
        codes[f"{kind.peer} {kind.direction}"].add(kind.request_code)
    return "\n".join(f"  {sort}: {sorted(found)}" for sort, found in sorted(codes.items()))


def vector_file(server: str, client: str) -> Path:
    return FOLDER / f"server-{SERVER_VERSION[server]}-client-{CLIENT_VERSION[client]}.jsonl"


def known_kinds(lines: Iterable[str]) -> set[Kind]:
    found = set()
    for line in lines:
        vector = json.loads(line)
        frame = base64.b64decode(vector["frame"])
        writer = vector["client" if vector["direction"] in FROM_CLIENT else "server"]
        sort = (vector["peer"], vector["direction"], vector["request_code"])
        found.add(kind_of(frame, read_header(frame), writer, *sort))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Record tests/golden/vectors from official clients and servers."
    )
    parser.add_argument("--server", choices=VERSIONS, help="only this server line")
    parser.add_argument("--client", choices=VERSIONS, help="only this client line")
    parser.add_argument("--keep", type=Path, help="keep homes and logs in this folder")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    pairs = [(server, client) for server in VERSIONS for client in VERSIONS]
    pairs.sort(key=lambda pair: pair[0] != pair[1])  # mixed lines last: they add only what differs from these
    with tempfile.TemporaryDirectory(prefix="golden-") as scratch:
        for server, client in pairs:
            if arguments.server in (None, server) and arguments.client in (None, client):
                record_pair(server, client, arguments.keep or Path(scratch))


def record_pair(server: str, client: str, homes: Path) -> None:
    known: set[Kind] = set()
    if server != client:
        for line in VERSIONS:
            known |= known_kinds(vector_file(line, line).read_text(encoding="ascii").splitlines())
    collection = Collection(SERVER_VERSION[server], frozenset(known))
    file = vector_file(server, client)
    for header in HEADERS:
        print(f"{file.stem} {header} ...", flush=True)
        record(server, client, header, homes / f"{file.stem}-{header}", collection)
    lines = collection.lines()
    file.write_text("\n".join(lines) + "\n", encoding="ascii")
    print(f"{file.stem}: {len(lines)} frames\n{summary(collection)}", flush=True)


if __name__ == "__main__":
    main()
