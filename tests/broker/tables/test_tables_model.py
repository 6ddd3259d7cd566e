"""Random histories of a table of `config/`, compared with a model: changes, saves, kills, lost and torn files.

After a kill the table has the last save; if the file is lost or torn, the save before it. If the backup is unusable,
the table is empty, or opening fails with one line and changes nothing.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.broker.tables.offset_table import OffsetTable
from pocketmq.store import StoreDamagedError, VirtualClock

TOPIC, GROUP, QUEUES = "orders", "readers", 3
TORN = b'{"offsetTable":{"orders@rea'
Offsets = dict[int, int]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, QUEUES - 1), st.integers(0, 1 << 40)),
        st.tuples(st.just("persist")),
        st.tuples(st.just("kill")),
        st.tuples(st.sampled_from(["lose", "tear", "empty"]), st.sampled_from(["", ".bak"])),
    ),
    max_size=25,
)


class Model:
    """The table next to what it should hold. `files` is what file ("") and backup (".bak") say: offsets, nothing
    (None), or no sense (TORN)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = VirtualClock()
        self.files: dict[str, Offsets | bytes | None] = {"": None, ".bak": None}
        self.offsets: Offsets = {}
        self.has_changed = False
        self.table = self.open()

    def open(self) -> OffsetTable:
        table = OffsetTable(self.folder, self.clock.now_ms)
        table.load()
        return table

    def path(self, which: str) -> Path:
        return self.folder / f"consumerOffset.json{which}"

    def commit(self, queue_id: int, offset: int) -> None:
        self.table.commit(TOPIC, GROUP, queue_id, offset)
        self.offsets[queue_id] = offset
        self.has_changed = True

    def persist(self) -> None:
        assert self.table.persist() is self.has_changed
        if self.has_changed:
            if self.files[""] is not None:
                self.files[".bak"] = self.files[""]
            self.files[""] = dict(self.offsets)
        self.has_changed = False

    def lose(self, which: str) -> None:
        self.path(which).unlink(missing_ok=True)
        self.files[which] = None
        self.kill()

    def empty(self, which: str) -> None:
        self.folder.mkdir(exist_ok=True)
        self.path(which).write_bytes(b"")
        self.files[which] = None
        self.kill()

    def tear(self, which: str) -> None:
        self.folder.mkdir(exist_ok=True)
        self.path(which).write_bytes(TORN)
        self.files[which] = TORN
        self.kill()

    def kill(self) -> None:
        """Kill the process and start the next one; if it must refuse to start, move the torn file away."""
        file, backup = self.files[""], self.files[".bak"]
        if isinstance(file, dict):
            self.offsets = dict(file)
        elif isinstance(backup, dict):
            self.offsets = dict(backup)
            self.files[""] = None  # a torn file is moved away
        elif TORN in (file, backup):
            self.refused()
            return
        else:
            self.offsets = {}
        self.has_changed = False
        self.table = self.open()

    def refused(self) -> None:
        before = {path: path.read_bytes() for path in self.folder.iterdir()}
        with pytest.raises(StoreDamagedError, match=r"\A[^\n]*consumerOffset\.json[^\n]*\Z"):
            self.open()
        assert {path: path.read_bytes() for path in self.folder.iterdir()} == before
        for which, content in self.files.items():
            if content == TORN:
                self.path(which).unlink()
                self.files[which] = None
        self.kill()

    def check(self) -> None:
        for queue_id in range(QUEUES):
            assert self.table.query(TOPIC, GROUP, queue_id) == self.offsets.get(queue_id, -1)


@settings(max_examples=60)
@example(
    [
        ("commit", 0, 5),
        ("persist",),
        ("commit", 0, 7),
        ("persist",),
        ("tear", ""),
        ("commit", 0, 9),
        ("persist",),
    ]
)
@example([("commit", 0, 5), ("persist",), ("tear", ""), ("kill",)])
@given(steps)
def test_table_has_the_saved_content_after_any_loss(life: list[tuple]) -> None:
    root = Path(tempfile.mkdtemp(prefix="pocketmq-tables-"))
    try:
        model = Model(root / "config")
        for name, *arguments in life:
            getattr(model, name)(*arguments)
            model.check()
        model.persist()
        model.kill()
        model.check()
    finally:
        shutil.rmtree(root)
