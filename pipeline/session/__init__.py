"""pocketmq.pipeline.session

class_archive.py  Sessions that start sooner
progress.py       Progress of streaming queries where people look for it
session.py        A Spark session made for this
"""
