"""pocketmq.cli.bench

command.py    `pocketmq bench`
latencies.py  How long many things took
runs.py       What `pocketmq bench` runs
"""
