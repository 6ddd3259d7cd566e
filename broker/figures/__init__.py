"""Figures of a broker: what its clients sent and read, and how long appends took.

statistics.py  messages and bytes by topic, by group and in all
traffic.py     one series: sums, snapshots, windows
put_times.py   how long appends took
"""
