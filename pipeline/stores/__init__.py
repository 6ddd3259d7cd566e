"""pocketmq.pipeline.stores

log_files.py  The files of a store as a scan needs them
scan.py       Scanning store files
"""
