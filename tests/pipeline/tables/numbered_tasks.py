"""Tasks that reader processes import from here: rows that name their reader, and a task that ends its reader."""

import os
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa


class Numbered:
    """A task with its number and the process that read it, in `batches` batches. Some tasks take longer."""

    def __init__(self, number: int, batches: int = 1, seconds: float = 0.0) -> None:
        self.number = number
        self.count = batches
        self.seconds = seconds

    def batches(self, names: Any, condition: Any) -> Iterator[Any]:
        time.sleep(self.seconds)  # a reader that is slow, in a process of its own
        for part in range(self.count):
            row = {"task": self.number, "part": part, "process": os.getpid()}
            yield pa.RecordBatch.from_pylist([row] * (1 + 5000 * (self.number % 3)))


class Dying(Numbered):
    def batches(self, names: Any, condition: Any) -> Iterator[Any]:
        os._exit(7)
