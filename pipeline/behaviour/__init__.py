"""The job that shows what clients really did, from the journal of a broker.

job.py              the report and the command
frames.py           journal entries to data frames: pulls, members, first positions, rates
ownership.py        which client read which queue when: gaps and double owners
drawing.py          the drawings of the report
"""
