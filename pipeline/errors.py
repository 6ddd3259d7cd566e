"""Errors of the pipeline, by what the user of a data frame can do about them."""


class PipelineError(Exception):
    """Root of all errors that this package raises."""


class OptionError(PipelineError):
    """A wrong option or column; the message names it and what is allowed."""


class PathError(OptionError):
    """A path without what should be there: `reason` says what is missing, `option` how the user named the path."""

    def __init__(self, reason: str, option: str = "option path") -> None:
        super().__init__(reason, option)
        self.reason = reason
        self.option = option

    def __str__(self) -> str:
        return f"{self.option}: {self.reason}"

    def with_option(self, option: str) -> "PathError":
        """The same, for the name that the user knows, such as `--store`."""
        return PathError(self.reason, option)


class TopicMissing(OptionError):
    """No broker has the topic, or, if a stream has read it before, none has it at the moment."""


class DataLossError(PipelineError):
    """Requested messages no longer exist; the message names the queue and the missing range."""


class CorruptStoreError(PipelineError):
    """A store file holds bytes that are not a record; the message names the file and the position."""


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
