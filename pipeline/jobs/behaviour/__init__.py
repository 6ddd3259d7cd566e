"""The jobs that show what clients really did, from journals of brokers and from message traces.

job.py        the report and the command
questions.py  journal entries to tables: pulls, members, first positions, rates
ownership.py  which client read which queue when: gaps and double owners
drawing.py    the drawings of the report
latency.py    from sent to consumed, from message traces or journals
"""
