"""The Go part of the official suite: `python -m conformance.e2e.go_suite CHECKOUT ours|official-proxy [5.1.4]`.

Without a version the tests run with the client that their go.mod names, one of 2023. With 5.1.4 a copy of them is made
whose imports, and the two options that are called otherwise since, name the published client.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from conformance.e2e.sides import SIDES, made_side
from conformance.official.jars import OPENS, cache, jars
from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running

PACKAGES = ("delay", "fifo", "normal", "transaction")
OLD = "github.com/apache/rocketmq-clients/golang"
RENAMED = {
    "WithAwaitDuration": "WithSimpleAwaitDuration",
    "WithSubscriptionExpressions": "WithSimpleSubscriptionExpressions",
}
SECONDS = 200.0
LAST_LINES = 5
PLACE = {
    "GRPC_ENDPOINT": "127.0.0.1:8081",
    "NAMESERVER": "127.0.0.1:9876",
    "BROKER_ADDR": "127.0.0.1:10911",
    "CLUSTER_NAME": "DefaultCluster",
    "ACCESS_KEY": "",
    "SECRET_KEY": "",
}


def prepared(checkout: Path, folder: Path, version: str) -> Path:
    """A copy of the tests, and the official admin tool where they look for it."""
    tests, tool = folder / "golang", folder / "rocketmq-admintools" / "bin" / "mqadmin"
    shutil.copytree(checkout / "golang", tests)
    tool.parent.mkdir(parents=True)
    options = " ".join((*OPENS, "-Xmx256m", f"-Duser.home={folder}", f"-Drocketmq.home.dir={folder}"))
    library = jars("5.5")[0].parent
    main = "org.apache.rocketmq.tools.command.MQAdminStartup"
    tool.write_text(f'#!/bin/sh\nexec java {options} -cp "{library}/*" {main} "$@"\n')
    tool.chmod(0o755)
    if version:
        for path in tests.rglob("*.go"):
            text = path.read_text().replace(OLD, f"{OLD}/v5")
            for former, name in RENAMED.items():
                text = text.replace(former, name)
            path.write_text(text)
        module = tests / "go.mod"
        module.write_text(re.sub(rf"{OLD} \S+", f"{OLD}/v5 v{version}", module.read_text()))
    return tests


def main(checkout: str, side: str, version: str = "") -> int:
    if side not in SIDES:
        print(f"the side must be one of {', '.join(SIDES)}, got {side!r}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(dir=cache()) as name:
        folder = Path(name)
        tests = prepared(Path(checkout).resolve(), folder, version)
        for package in PACKAGES:
            words = ["go", "test", "-mod=mod", "-c", "-o", str(folder / package), f"./mqgotest/{package}"]
            subprocess.run(words, cwd=tests, check=True)
        with made_side(side, folder / side) as server:
            for package in PACKAGES:
                command = [str(folder / package), "-test.v", "-test.timeout", "150s"]
                output, place = folder / f"{package}.out", tests / "mqgotest" / package
                environment = clean_environment(HOME=str(folder), **PLACE)
                with Running(
                    server.namespace, command, output, name=package, cwd=place, env=environment
                ) as running:
                    code = running.finish(SECONDS)
                    verdicts = [line for line in running.output.splitlines() if line.startswith("--- ")]
                    last = running.output.splitlines()[-LAST_LINES:]
                ended = [f"ended with {code} before a verdict:", *last]
                print(package, *(verdicts or ended), sep="\n  ", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
