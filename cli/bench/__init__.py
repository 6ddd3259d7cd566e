"""`pocketmq bench`: load for a broker, and how fast it answered.

command.py      options and output
runs.py         the producers and consumers that are measured
latencies.py    a histogram of bounded size
"""
