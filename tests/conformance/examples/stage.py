"""Many example programs in one JVM: `play` one, read what it printed, `stop` its consumer.

A JVM start costs a second or more, an example in a warm one a tenth; see ExampleStage.java for how outputs are
kept apart.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from conformance.official.programs import Programs, compile_java
from conformance.servers.processes import POLL_S, ProgramFailed

# The 5.5.0 client rebalances a second after its start, and sends its second heartbeat then, too. Where the two meet,
# the broker learns of the rebalance 30 s later and answers "subscription not latest" until then, on any broker. An
# earlier rebalance keeps this random half minute out of the tests.
EARLY_REBALANCE = "-Drocketmq.client.rebalance.minInterval=200"
EXAMPLES = "org.apache.rocketmq.example."
SOURCE = Path(__file__).with_name("ExampleStage.java")


class Act:
    """One example on the stage. Its main may have returned while its consumer still runs."""

    def __init__(self, stage: "Stage", label: str, program: str, instance: str | None, log: Path) -> None:
        self.label = label
        self._stage = stage
        self._program = program
        self._instance = instance
        self._log = log

    @property
    def output(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def wait_for(self, pattern: str, count: int = 1, timeout: float = 40.0) -> str:
        """The output as soon as it matches so often; ProgramFailed when time is up or the JVM has ended."""
        deadline = time.monotonic() + timeout
        while True:
            alive = self._stage.running.alive
            output = self.output
            if len(re.findall(pattern, output, re.MULTILINE)) >= count:
                return output
            if not alive or time.monotonic() > deadline:
                what = f"{self.label}: not {count} times {pattern!r} after {timeout:g} s"
                raise ProgramFailed(f"{what}; last output:\n{output[-4000:]}")
            time.sleep(POLL_S)

    def finish(self, timeout: float = 60.0) -> str:
        """Wait until main returns; all it printed."""
        self._stage.running.wait_for(f"^ended {re.escape(self.label)}$", timeout)
        return self.output

    def stop(self, group: str) -> str:
        """Shut down its consumer, of that group, as the owner would: it commits. All it had printed by then."""
        named = () if self._instance is None else (self._instance,)
        self._stage.command("stop", f"stopped {self.label}", self.label, self._program, group, *named)
        return self.output


class Stage:
    """The JVM with the examples of one version."""

    def __init__(self, programs: Programs, version: str, home: Path, java_opts: Sequence[str] = ()) -> None:
        self._folder = home
        self._plays = 0
        home.mkdir(parents=True, exist_ok=True)
        program = compile_java(version, SOURCE)
        self.running = programs.start_java(program, str(home), java_opts=(EARLY_REBALANCE, *java_opts))

    def command(self, verb: str, answer: str, *words: str, timeout: float = 40.0) -> None:
        self.running.wait_for("^stage ready$")
        self.running.say_words(verb, *words)
        self.running.wait_for(f"^{re.escape(answer)}$", timeout)

    def play(self, name: str, *args: str, instance: str | None = None) -> Act:
        """Start an example such as "quickstart.Producer". instance names the client, which examples leave to the
        JVM's property; without it each clustering consumer gets a name of its own, broadcasting ones share one."""
        self._plays += 1
        label = f"{name}-{self._plays}"
        named = () if instance is None else (f"-Drocketmq.client.name={instance}",)
        self.command("play", f"playing {label}", label, *named, EXAMPLES + name, *args)
        return Act(self, label, EXAMPLES + name, instance, self._folder / f"{label}.out")
