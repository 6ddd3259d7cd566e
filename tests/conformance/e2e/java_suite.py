"""The Java part of the official suite: `python -m conformance.e2e.java_suite CHECKOUT ours|official-proxy [CLASS...]`.

The suite names the client 5.0.3, which cannot be fetched: 5.0.7 is used. Compiled classes and libraries stay in
`CHECKOUT/java/e2e/target`.
"""

import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from conformance.e2e.sides import SIDES, made_side
from conformance.servers.processes import Running

RUNNER = Path(__file__).with_name("RunSuite.java")
CLIENT = "-DrocketmqV5.client.version=5.0.7"
SECONDS = 1500.0
LEFT_OUT = ("DynamicChangeConsumeGroupTest", "ResetOffsetTest")
"""All of their tests are commented out."""


def compiled(suite: Path) -> str:
    """The class path of the suite, compiled at the first use."""
    target = suite / "target"
    library, classes = target / "lib", target / "suite-classes"
    if not classes.exists():
        maven = ["mvn", "--quiet", "--batch-mode", "--file", str(suite / "pom.xml"), CLIENT]
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={library}"]
        subprocess.run([*maven, *copy], check=True)
        sources = [str(one) for one in (suite / "src").rglob("*.java")]
        unfinished = target / "suite-unfinished"
        unfinished.mkdir(parents=True, exist_ok=True)
        words = ["javac", "-encoding", "UTF-8", "-nowarn", "-cp", f"{library}/*", "-d", str(unfinished)]
        subprocess.run([*words, *sources], check=True)
        unfinished.rename(classes)
    [client] = library.glob(
        "rocketmq-client-java-*.jar"
    )  # first: other libraries bring older classes of the same names
    return f"{classes}:{suite / 'src' / 'test' / 'resources'}:{client}:{library}/*"


def test_classes(suite: Path) -> list[str]:
    """The classes with tests."""
    root = suite / "src" / "test" / "java"
    found = sorted(path for path in root.rglob("*Test.java") if path.stem not in LEFT_OUT)
    return [".".join(path.relative_to(root).with_suffix("").parts) for path in found]


def main(checkout: str, side: str, *classes: str) -> int:
    if side not in SIDES:
        print(f"the side must be one of {', '.join(SIDES)}, got {side!r}", file=sys.stderr)
        return 2
    suite = Path(checkout).resolve() / "java" / "e2e"
    class_path = compiled(suite)
    with tempfile.TemporaryDirectory() as folder, made_side(side, Path(folder) / side) as server:
        options = ["-Xmx512m", f"-Duser.home={folder}", "-cp", class_path]
        command = ["java", *options, str(RUNNER), *(classes or test_classes(suite))]
        output = Path(folder) / "suite.out"
        with Running(
            server.namespace, command, output, name="e2e", cwd=suite, separate_errors=True
        ) as running:
            running.wait_for("^ALL DONE$", timeout=SECONDS)
            lines = [line for line in running.output.splitlines() if line.startswith("RESULT ")]
    print("\n".join(sorted(lines)))
    print(dict(Counter(line.split()[1] for line in lines)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
