"""Errors of the pipeline, by what the user of a data frame can do about them."""

from typing import Final, Self


class PipelineError(Exception):
    """Root of all errors that this package raises."""


class OptionError(PipelineError):
    """A wrong option or column: what is called `option` has a `problem`, which says what is allowed.

    A problem goes on after the name, `must be 1 or more`, or is a sentence of its own and begins with a colon. Code
    that several doors share names options as Spark's formats do; a door that has other names puts its own (`named`).
    """

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(option, problem)
        self.option = option
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.option}{'' if self.problem[:1] in ':;' else ' '}{self.problem}"

    def named(self, option: str) -> Self:
        """The same, for the name that the user knows, such as `--store`."""
        return type(self)(option, self.problem)


PATH: Final = "option path"


class PathError(OptionError):
    """A path without what should be there. The problem is a sentence that names the path."""

    def __str__(self) -> str:
        return f"{self.option}: {self.problem}"


class TopicMissing(OptionError):
    """No broker has the topic, or, if a stream has read it before, none has it at the moment."""


class DataLossError(PipelineError):
    """Requested messages no longer exist; the message names the queue and the missing range."""


class CorruptStoreError(PipelineError):
    """A store file holds bytes that are not a record; the message names the file and the position.

    `advice` says how to read on, in the words of programs: the text ends with it.
    """

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(problem, advice)
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.problem}{self.advice}"


class CheckpointError(PipelineError):
    """The offsets of a checkpoint belong to other topics, or to a newer version."""


class JournalError(PipelineError):
    """A file is not a journal, or of a newer version."""


class GroupInUse(OptionError):
    """Consumers of a group are connected, and commit its offsets; the message names the group."""


class SourceUnreachable(PipelineError):
    """A name server or broker did not answer within the time for retries."""


class SendError(PipelineError):
    """A message could not be sent, with all retries; the task fails and Spark may repeat it."""


class NoJavaError(PipelineError):
    """No Java 17 or newer was found for Spark."""
