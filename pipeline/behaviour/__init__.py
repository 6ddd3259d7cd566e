"""The jobs that show what clients really did, from journals of brokers and from message traces.

job.py              the report and the command
frames.py           journal entries to data frames: pulls, members, first positions, rates
ownership.py        which client read which queue when: gaps and double owners
drawing.py          the drawings of the report
latency.py          from sent to consumed, from message traces or journals
journal_latency.py  the same questions to journals, in SQL
"""
