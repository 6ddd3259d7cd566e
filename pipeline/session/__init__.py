"""A Spark session ready for use, and what surrounds it.

java.py             finds a Java that Spark can use
class_archive.py    where the class archive lies that makes sessions start sooner
session.py          creates a session and registers the formats
prepare.py          makes the class archive (`pocketmq pipeline prepare`)
progress.py         commits the progress of streams to a consumer group, and prints it
"""
