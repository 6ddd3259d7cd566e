"""Which threads began after a moment: a worker of the suite may keep servers of other tests, with threads of their own.

before = running_threads()
...
assert begun_since(before) == []
"""

import threading


def running_threads() -> set[threading.Thread]:
    return set(threading.enumerate())


def begun_since(before: set[threading.Thread], *, prefix: str = "pocketmq") -> list[str]:
    """The names of our own threads that run now and did not run before."""
    return sorted(thread.name for thread in running_threads() - before if thread.name.startswith(prefix))
