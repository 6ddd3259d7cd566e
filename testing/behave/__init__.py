"""What a client program does while its brokers have trouble: behind `pocketmq behave`.

run.py        scenarios, a program, a report: the figures of one client, as a file
scenario.py   a scenario from its YAML: read and checked
stage.py      one scenario is played: cluster, messages that arrive, and the program under test
steps.py      what each word of a scenario does
sends.py      what the program did as a producer: attempts, retries, what was stored; its connections
receives.py   what it did as a consumer: deliveries, waits, who read which queue when
measures.py   the figures of one scenario
table.py      clients side by side
scenarios/    those that come with PocketMQ, a YAML file each

Nothing here knows a language: all but what the program printed is seen by the brokers.
"""
