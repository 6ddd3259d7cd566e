"""What a client program does while its brokers have trouble: behind `pocketmq behave`.

run.py        scenarios, a program, a report
scenario.py   a scenario from its YAML: read and checked
stage.py      one scenario is played: cluster, programs, messages that arrive
steps.py      what each word of a scenario does
program.py    the program under test: started, ended, what it printed
sends.py      what it did as a producer: attempts, retries, what was stored
receives.py   what it did as a consumer: deliveries, waits, who read which queue when
traffic.py    all its requests, and its connections
measures.py   the figures of one scenario
report.py     the figures of one client, as a file
table.py      clients side by side
scenarios/    those that come with PocketMQ, a YAML file each

Nothing here knows a language: all but what the program printed is seen by the brokers.
"""
