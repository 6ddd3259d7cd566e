"""pocketmq.pipeline.journal

rows.py  Journal files to columns
"""
