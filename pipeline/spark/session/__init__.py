"""A Spark session ready for use, and what surrounds it.

own_folder.py       the folder for what is kept on a machine
java.py             finds a Java that Spark can use
class_archive.py    where the class archive lies that makes sessions start sooner
settings.py         which master a session uses, which settings and log configuration it gets
session.py          creates a session and registers the formats
prepare.py          makes the class archive (`pocketmq pipeline prepare`)
metrics.py          the numbers of a stream's batch: lag, messages, bytes, missing messages
progress.py         commits the progress of streams to consumer groups, and reports it
"""
