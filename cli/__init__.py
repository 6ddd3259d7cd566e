"""pocketmq.cli: the program `pocketmq`, one file a command.

In reading order: `main` (the list of commands), `options` (what they share), `exec`, `demo`, `explain`, `send`, `tail`
(and `message_forms`), `store_command` (store check, store show), `bench` (and `bench_runs`, `latencies`). `serve`
lives with the broker, in `pocketmq.broker.serve_command`.

`admin` is a group of commands: `admin` (the table, admin_commands.tsv), `admin_given` (what the user gave),
`admin_texts` (how mqadmin writes), `admin_topics`, `admin_groups`, `admin_offsets`, `admin_messages`, `admin_reading`,
`admin_security`, `admin_brokers`, `admin_upkeep`, `admin_namesrv`, `admin_sending`, `admin_export`.
"""
