"""One scenario on its stage: a cluster, the programs, and the messages that the bench itself sends.

`steps.py` changes it, `measures.py` looks at what happened on it. Times are in ms since 1970, by this machine's clock.

The program under test is a process group that is started, asked to end, and ended.

What a scenario wants of it is in its environment, and in the words of its command line that are written in braces:

    NAMESRV_ADDR             {namesrv}   the name servers
    ROCKETMQ_GRPC_ENDPOINT   {grpc}      the gRPC ports of all brokers, joined by `;`; not with emulate: 4.9
    BEHAVE_TOPIC             {topic}     the topic to send to or to read
    BEHAVE_GROUP             {group}     the consumer group
    BEHAVE_ROLE              {role}      producer, consumer, ordered or both

A program that knows none of them but the address is judged all the same, by whatever topics and groups it uses. It runs
until SIGTERM. Lines of its standard output that begin with a word in capitals are counted by that word.
"""

import os
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Self

from pocketmq.client import SubscriptionGroupConfig
from pocketmq.client.clock import wall_ms
from pocketmq.protocol.message.topics import dlq_topic

from ..cluster.cluster import RocketMQCluster
from ..cluster.cluster_broker import ClusterBroker
from ..errors import TestingError
from ..faults.rule import AnyRule
from ..requests.logged_request import LoggedRequest
from ..server.after_death import end_after_death, let_live
from ..state.load import Load, LoadedMessage, apply_load, read_load
from .scenario import Scenario, ScenarioError

END_SECONDS: Final = 30.0
"""How long a program may take to end after SIGTERM. The Java client for gRPC waits for its receive: 20 seconds."""
MAX_OUTPUT: Final = 16 << 20
"""Bytes of a program's output that are looked at."""
_IN_BRACES: Final = {"NAMESRV_ADDR": "namesrv", "ROCKETMQ_GRPC_ENDPOINT": "grpc"}
"""Variables whose word in braces is not their end in small letters."""
_SAID: Final = re.compile(rb"^([A-Z][A-Z_]+)\b", re.MULTILINE)


class ProgramError(Exception):
    """The program cannot be run; the text is one line."""


class Program:
    """One process with its children. Not restarted."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], output: Path) -> None:
        """Start it; what it prints goes to `output`. `ProgramError` if it cannot be run."""
        values = {
            _IN_BRACES.get(name, name.removeprefix("BEHAVE_").lower()): value
            for name, value in variables.items()
        }
        words = [_filled(word, values) for word in command]
        self._output: Final = output
        self._file: IO[bytes] = output.open("wb")
        self.started_ms: Final = wall_ms()
        self.end_ms: int | None = None
        """How long it took to end after it was asked to; None if it ended before."""
        self.was_killed = False
        try:
            self._process = subprocess.Popen(
                words,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=self._file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        except OSError as error:
            self._file.close()
            raise ProgramError(f"cannot run {words[0]}: {error.strerror or error}") from error
        end_after_death(-self._process.pid)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """As shells say it: 128 and the signal's number, if a signal ended it. None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def kill(self) -> None:
        """SIGKILL: it closes nothing and notifies no broker."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """SIGTERM, and SIGKILL for what is left after `END_SECONDS`."""
        if self._file.closed:
            return
        try:
            self._end()
        finally:
            self._signal(signal.SIGKILL)  # children that outlived it
            let_live(-self._process.pid)
            self._file.close()

    def _end(self) -> None:
        if not self.is_running:
            return
        began = time.monotonic()
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(END_SECONDS)
            self.end_ms = round((time.monotonic() - began) * 1000)
        except subprocess.TimeoutExpired:
            self.was_killed = True
            self._signal(signal.SIGKILL)
            self._process.wait()

    def said(self) -> Counter[str]:
        """How many lines it printed with each first word in capitals."""
        with self._output.open("rb") as file:
            text = file.read(MAX_OUTPUT)
        return Counter(word.decode() for word in _SAID.findall(text))

    def tail(self, lines: int = 5) -> str:
        """The last lines of its output."""
        with self._output.open("rb") as file:
            file.seek(max(0, self._output.stat().st_size - 4096))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


TOPIC: Final = "BehaveTopic"
GROUP: Final = "BehaveGroup"
FEEDER: Final = "load"
"""The producer group of the messages that the bench sends (`testing/state/load.py`)."""
_AGAIN_SECONDS: Final = 0.05
_FAILING: Final = 10
_FIRST_FAILING: Final = 3


class Stage:
    """A context manager: everything ends with it. Owned by one thread, but for the feeding of messages."""

    def __init__(
        self, scenario: Scenario, command: Sequence[str], folder: Path, ended: threading.Event | None = None
    ) -> None:
        """What programs print goes to files in `folder`. `ended` ends the scenario early."""
        self.scenario: Final = scenario
        self.cluster: Final = RocketMQCluster(
            scenario.name_servers,
            scenario.brokers,
            scenario.slaves,
            emulate=scenario.emulate,
            ledger=True,
            **scenario.settings,
        )
        self.programs: Final[list[Program]] = []
        self.began_ms: int | None = None
        """When the first thing went wrong."""
        self.mended_ms: int | None = None
        """When the last thing that was broken was mended."""
        self.joined_ms: Final[list[int]] = []
        """When further programs were started while others ran."""
        self.left_ms: Final[list[int]] = []
        """When programs were asked to end while others ran on."""
        self.rules: Final[list[AnyRule]] = []
        """All rules that were added, removed ones too."""
        self.planned = 0
        """Messages that the bench sends, those of feeds that are not over included."""
        self.not_reached: Final[list[str]] = []
        """What was waited for in vain."""
        self._command = tuple(command)
        self._folder = folder
        self._feeders: list[threading.Thread] = []
        self._is_over = threading.Event()
        self._ended = ended or threading.Event()

    # -- life

    def __enter__(self) -> Self:
        self.cluster.start()
        try:
            load = {"topics": {TOPIC: self.scenario.queues}, "groups": [GROUP]}
            for broker in self.masters():
                self.cluster.run(apply_load(broker.node, read_load(load)))
                self.cluster.call(broker.broker.groups.update, self._group())
            if self.scenario.slaves:
                self.cluster.wait_replicated()
                self.cluster.grow(TOPIC, self.scenario.queues)
        except BaseException:
            self.cluster.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end_programs(self.programs)
        finally:
            self._is_over.set()
            for feeder in self._feeders:
                feeder.join()
            self.cluster.stop()

    # -- the program

    def start_programs(self, count: int) -> None:
        """`ProgramError` if it cannot be run."""
        variables = {
            "NAMESRV_ADDR": self.cluster.namesrv_addr,
            **self._grpc(),
            "BEHAVE_TOPIC": TOPIC,
            "BEHAVE_GROUP": GROUP,
            "BEHAVE_ROLE": self.scenario.role,
        }
        for _ in range(count):
            output = self._folder / f"{self.scenario.name}-{len(self.programs) + 1}.txt"
            self.programs.append(Program(self._command, variables, output))

    def _group(self) -> SubscriptionGroupConfig:
        """Remoting consumers need none of it: they say themselves whether they consume in order."""
        is_ordered = self.scenario.role == "ordered"
        return SubscriptionGroupConfig(
            group_name=GROUP, consume_message_orderly=is_ordered, retry_max_times=self.scenario.retries
        )

    def _grpc(self) -> dict[str, str]:
        """The 4.9 line has no gRPC clients."""
        is_5 = self.scenario.emulate != "4.9"
        return {"ROCKETMQ_GRPC_ENDPOINT": self.cluster.grpc_endpoint} if is_5 else {}

    def end_of_programs(self) -> str | None:
        """How the last program ended, in words, if all have ended by themselves: nothing more will happen. None while
        one runs, and if the scenario ended some."""
        if not self.programs or self.left_ms or any(program.is_running for program in self.programs):
            return None
        last = self.programs[-1]
        printed = last.tail(1).strip()
        return f"the program ended with exit code {last.exit_code}{f': {printed}' if printed else ''}"

    def kill_programs(self, count: int) -> None:
        """The newest ones that run."""
        for program in [one for one in self.programs if one.is_running][-count:]:
            program.kill()

    def end_programs(self, programs: Iterable[Program]) -> None:
        for program in list(programs):
            program.end()

    # -- messages from the bench

    def feed(self, messages: int, seconds: float, fails: int) -> None:
        """Send messages to the topic, spread over a time, while the next steps are done. Waits for brokers that are
        stopped. With `fails`, every tenth message, the fourth first, says that so many deliveries of it shall fail."""
        first, self.planned = self.planned, self.planned + messages
        feeder = threading.Thread(target=self._feed, args=(first, messages, seconds, fails), daemon=True)
        self._feeders.append(feeder)
        feeder.start()
        if not seconds:
            feeder.join()

    def _feed(self, first: int, messages: int, seconds: float, fails: int) -> None:
        began, queues = time.monotonic(), self.scenario.queues
        for number in range(messages):
            failing = f" fails {fails}" if fails and number % _FAILING == _FIRST_FAILING else ""
            message = LoadedMessage(
                topic=TOPIC,
                body=f"message {first + number}{failing}".encode(),
                keys=str(first + number),
                queue_id=number // max(1, self.scenario.brokers) % queues,
            )
            if not self._send(number, message):
                return
            if self._is_over.wait(max(0.0, began + seconds * (number + 1) / messages - time.monotonic())):
                return

    def _send(self, number: int, message: LoadedMessage) -> bool:
        """To the brokers by turns; to another one, if it fails. False at the end of the scenario."""
        while not self._is_over.is_set():
            masters = self.masters()
            try:
                if masters:
                    node = masters[number % len(masters)].node
                    self.cluster.run(apply_load(node, Load(messages=(message,))))
                    return True
            except TestingError:  # it was stopped meanwhile
                number += 1
            self._is_over.wait(_AGAIN_SECONDS)
        return False

    def wait(self, seconds: float) -> None:
        """Let time pass. `ScenarioError` if the scenario is to end early."""
        if self._ended.wait(seconds):
            raise ScenarioError(f"scenario {self.scenario.name} was ended early")

    # -- looking

    def masters(self) -> list[ClusterBroker]:
        """Those that run."""
        return [one for one in self.cluster.brokers if one.is_running and not one.broker_id]

    def member(self, name: str) -> Any:
        """A broker or a name server by its name."""
        if name in [server.name for server in self.cluster.name_servers]:
            return self.cluster.name_server(name)
        return self.cluster.broker(name)

    def requests(self) -> list[LoggedRequest]:
        """What the clients asked, oldest first; without what the bench sent and what the brokers asked, and without our
        own requests to them."""
        return [
            request
            for request in self.cluster.requests
            if not request.to_client and request.group != FEEDER and not request.is_of_broker
        ]

    def dead_letters(self) -> int:
        """Messages of the group that became dead letters."""
        topic, stores = dlq_topic(GROUP), [one.broker.store for one in self.masters()]
        return self.cluster.call(lambda: sum(store.max_offset(topic, 0) for store in stores))

    def hits(self) -> int:
        """Requests that the rules have hit so far."""
        return sum(len(rule.hits) for rule in self.rules)
