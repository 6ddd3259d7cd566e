"""Errors of the pipeline: what the user of a data frame does about them."""


class PipelineError(Exception):
    """Root of everything this package raises."""


class OptionError(PipelineError):
    """A wrong option or column; the message names the option and what it may be."""


class DataLossError(PipelineError):
    """Messages that were asked for are not there any more; the message names the queue and the missing range."""


class CorruptStoreError(PipelineError):
    """A store file holds bytes that are no record; the message names the file and the position."""


class CheckpointError(PipelineError):
    """The offsets of a checkpoint do not belong to the topics asked for, or are of a newer form."""


class JournalError(PipelineError):
    """A journal file is of a newer form, or none at all."""


class SourceUnreachable(PipelineError):
    """Name server or broker did not answer as long as retries were allowed."""


class SendError(PipelineError):
    """A message could not be sent, retries included; the task fails and Spark may repeat it."""


class NoJavaError(PipelineError):
    """No Java 17 or newer was found for Spark."""
